"""A thousand clients with an LSTM of 8 layers and 3 dense layers, in one program."""

import time
from typing import NamedTuple

import jax
import numpy as np
import optax

from federated import work
from jaxanon import federated
from jaxanon.federated import PoissonSampling, Steps
from jaxanon.models.predictors import predictor

CLASSES = 6


class Many(NamedTuple):
    """A case: number of clients, network, and work per round."""

    clients: int = 1000
    rows: int = 32
    time: int = 128
    channels: int = 6
    features: tuple[int, ...] = (32,) * 8
    hidden: tuple[int, ...] = (64, 64)
    batch: int = 16
    steps: int = 1

    def __str__(self):
        return (
            f"{self.clients} clients x {self.rows} x {self.time} x {self.channels}, "
            f"{len(self.features)} LSTM of {self.features[0]} and "
            f"{len(self.hidden) + 1} dense, {self.steps} step of {self.batch}"
        )


SIZES = {"": Many(), ", smoke": Many(6, 4, 5, 2, (4,), (5,), batch=2)}
NAMES = ("FedAvg, LSTM", "Atlas, LSTM", "Atlas with noise, LSTM")
CASES = {name + suffix: (name, SIZES[suffix]) for suffix in SIZES for name in NAMES}


def flops_per_update(many: Many) -> int:
    """Returns two products forward and four backward per weight and sample."""
    weights, width = 0, many.channels
    for features in many.features:
        weights += many.time * 4 * features * (width + features)
        width = features
    for units in (*many.hidden, CLASSES):
        weights += width * units
        width = units
    first = many.time * 4 * many.features[0] * many.channels
    return (6 * weights - 2 * first) * many.batch * many.steps


def measure(out, case):
    """Measures seconds per compiled round; checks that the weights are finite."""
    name, many = CASES[case]
    net = predictor(
        "lstm",
        many.time,
        many.channels,
        CLASSES,
        hidden=many.hidden,
        lstm_features=many.features,
    )
    draws = np.random.default_rng(0)
    shape = many.clients, many.rows
    x = draws.standard_normal((*shape, many.time, many.channels), np.float32)
    rows = {"x": x, "y": draws.integers(0, CLASSES, shape)}
    clients = federated.population(rows, np.ones(shape, bool))

    def loss_fn(layers, batch, key):
        del key
        logits = net.apply(layers, batch["x"])
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["y"])

    algorithm = algorithm_of(name, many, net.init, loss_fn)
    state = algorithm.init(jax.random.key(0), learning_rate=0.1)
    key = jax.random.key(1)
    start = jax.device_get(state.params)
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        state, _ = federated.simulate(algorithm, key, state, clients, 1)
        jax.block_until_ready(state)
        seconds.append(time.perf_counter() - began)
    moved = jax.tree.map(lambda a, b: np.abs(a - b).max(), start, state.params)
    if not all(0 < leaf < np.inf for leaf in jax.tree.leaves(moved)):
        raise AssertionError(f"{case}: a weight did not move or is not finite.")
    size = sum(leaf.size for leaf in jax.tree.leaves(start))
    work.write(out, seconds[1:], [], seconds[0], jax=jax.__version__, num_weights=size)


def algorithm_of(name, many: Many, init_fn, loss_fn):
    """Returns FedAvg, or Atlas with or without noise."""
    steps = Steps(num_steps=many.steps, batch_size=many.batch)
    if name.startswith("FedAvg"):
        return federated.fedavg(init_fn, loss_fn, steps=steps)
    lots = PoissonSampling(
        sampling_probability=many.batch / many.rows,
        expected_batch_size=float(many.batch),
        max_examples=many.rows,
    )
    return federated.atlas(
        init_fn,
        loss_fn,
        steps=steps,
        num_clients=many.clients,
        lots=lots if "noise" in name else None,
        weighting="clients",
    )
