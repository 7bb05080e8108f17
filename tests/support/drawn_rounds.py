"""Every algorithm on a linear model of three small clients, for drawn tests."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
from hypothesis import strategies as st

from jaxanon import federated as fed
from jaxanon import kernels
from jaxanon.federated import PoissonSampling, Population, Steps
from jaxanon.federated.engine import local

CLIENTS, ROWS, FEATURES, CLASSES = 3, 4, 2, 3
RADIUS = 2.0
_NUMBERS = np.random.default_rng(7)
START = {
    "base": {"w": _NUMBERS.normal(size=(FEATURES, CLASSES)) / 2},
    "head": {"b": _NUMBERS.normal(size=CLASSES) / 2},
}
TWO = Steps(num_steps=2, batch_size=2, shuffle=False)
MANY = {"steps": TWO, "num_clients": CLIENTS}
LOTS = PoissonSampling(
    sampling_probability=1.0, expected_batch_size=4.0, max_examples=ROWS
)
ALL = PoissonSampling(
    sampling_probability=1.0, expected_batch_size=3.0, max_examples=CLIENTS
)


def loss_fn(params, batch, key):
    del key
    logits = batch["x"] @ params["base"]["w"] + params["head"]["b"][None]
    return optax.softmax_cross_entropy_with_integer_labels(logits, batch["y"])


def meta(start, loss_fn):
    groups = ("base", "head")
    mean = lambda params, own: local.masked_mean(loss_fn(params, own[0], 0), own[1])

    def draw(key, client, data):
        rows = jax.tree.map(lambda leaf: leaf[client], data)
        return rows, rows, jnp.any(data.mask[client]).astype(float)

    return fed.fed_maml(
        start,
        draw,
        lambda hyper: [kernels.Phase(groups, mean, hyper["adaptation_learning_rate"])],
        lambda hyper: [kernels.Objective(groups, lambda p, b: (mean(p, b), {}))],
        hyper={"server_learning_rate": 0.5, "adaptation_learning_rate": 0.5},
        server_optimizer=optax.sgd(1.0),
        second_order=False,
    )


masks = st.lists(st.booleans(), min_size=12, max_size=12).map(
    lambda bits: np.reshape(bits, (CLIENTS, ROWS))
)
MEMBERS = {"num_clusters": 1, "members": np.ones((CLIENTS, 1))}
OWN = {"personal_layers": ("head",)}
SETTINGS = {
    "atlas": MANY,
    "atlas of lots": MANY | {"lots": LOTS, "scores": "released"},
    "clusterfl": MANY | MEMBERS,
    "centralized_clustering": MANY | {"num_clusters": 2, "steps": Steps(num_steps=2)},
    "ditto": MANY | {"personal_steps": TWO},
    "dp_fedavg": {"steps": TWO, "cohorts": ALL, "count_stddev": 2.0},
    "fedavg": {"steps": TWO},
    "feddl": MANY | {"layers": ("base", "head")},
    "fedmask": MANY | {"masked_layers": ("base",)},
    "fedper": MANY | OWN,
    "fedprox": MANY,
    "fedrep": MANY | OWN | {"personal_steps": TWO},
    "fedsgd": {},
    "fedsgd_ldp": {"lots": LOTS, "steps": TWO, "num_clients": CLIENTS},
    "ldp_fl": MANY | {"radii": RADIUS},
    "localized": MANY,
    "pfedme": MANY | {"personal_steps": 2},
    "per_fedavg": MANY | {"second_order": False},
    "scaffold": MANY,
}
NAMES = (*SETTINGS, "meta")


def start(key):
    del key
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), START)


def made(name, start=start, loss_fn=loss_fn, **more):
    if name == "meta":
        return meta(start, loss_fn)
    return getattr(fed, name.split()[0])(start, loss_fn, **(SETTINGS[name] | more))


@functools.cache
def begun(name):
    return made(name).init(jax.random.key(0))


def of_rows(seed, mask, lone=False, junk=0.0, dtype=np.float32):
    """Returns clients with labels of all classes, or one class each.

    Pads with ``junk``.
    """
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(CLIENTS, ROWS, FEATURES)).astype(dtype)
    y = rng.integers(0, CLASSES, (CLIENTS, 1 if lone else ROWS))
    y = np.broadcast_to(y, mask.shape)
    x = np.where(mask[..., None], x, dtype(junk))
    y = np.where(mask, y, int(junk) % CLASSES).astype(np.int32)
    return Population({"x": x, "y": y}, mask)
