"""Functions reject hyper-parameters that are out of range."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxanon import federated
from jaxanon.federated import PoissonSampling, Steps
from jaxanon.federated.engine.hyper import RANGES, in_range
from jaxanon.kernels.bounds import POSITIVE

ONE = Steps(num_steps=1)
FORMS = {
    "fedavg": (federated.fedavg, {"steps": ONE}),
    "fedprox": (federated.fedprox, {"steps": ONE, "num_clients": 1}),
    "scaffold": (federated.scaffold, {"steps": ONE, "num_clients": 1}),
    "fedmask": (
        federated.fedmask,
        {"steps": ONE, "num_clients": 1, "masked_layers": ("w",)},
    ),
    "centralized_clustering": (
        federated.centralized_clustering,
        {"steps": ONE, "num_clients": 1, "num_clusters": 1, "alone": 1},
    ),
    "dp_fedavg": (
        federated.dp_fedavg,
        {
            "steps": ONE,
            "cohorts": PoissonSampling(
                sampling_probability=1.0, expected_batch_size=1.0, max_examples=1
            ),
            "count_stddev": 1.0,
        },
    ),
}


def begun(name, **hyper):
    make, settings = FORMS[name]
    loss = lambda params, x, key: params["w"] * x
    algorithm = make(lambda key: {"w": jnp.ones(())}, loss, **settings)
    return algorithm.init(jax.random.key(0), **hyper)


@pytest.mark.parametrize(
    ("name", "hyper", "message"),
    [
        (
            "fedavg",
            {"learning_rate": -1.0},
            "learning_rate must be finite and >= 0, got -1.0",
        ),
        ("fedprox", {"proximal_mu": math.nan}, "mu must be finite and >= 0, got nan"),
        (
            "scaffold",
            {"learning_rate": -0.5},
            "learning_rate must be finite and >= 0, got -0.5",
        ),
        ("fedmask", {"certainty": 0.5}, r"certainty must be in \(0.5, 1\), got 0.5"),
        (
            "centralized_clustering",
            {"learning_rate": math.inf},
            "learning_rate must be finite and >= 0",
        ),
        (
            "dp_fedavg",
            {"noise_multiplier": -1},
            "got -1; 0 adds no noise, and guarantees nothing",
        ),
        ("dp_fedavg", {"quantile": 1.5}, r"quantile must be in \[0, 1\], got 1.5"),
    ],
)
def test_numbers_out_of_range_are_refused(name, hyper, message):
    with pytest.raises(ValueError, match=message):
        begun(name, **hyper)


@pytest.mark.parametrize("name", sorted(FORMS))
def test_defaults_and_what_is_traced_pass(name):
    begun(name)
    state = jax.eval_shape(lambda x: begun(name, learning_rate=x), jnp.float32(-1.0))
    assert state.hyper["learning_rate"].shape == ()


@pytest.mark.parametrize(
    ("name", "inside", "outside"),
    [
        ("learning_rate", (0, 3.0, np.float32(0.5)), (-1e-9, math.inf, np.float64(-1))),
        ("clip_norm", (1e-9, 5), (0, 0.0, -1.0, math.nan)),
        ("quantile", (0, 0.5, 1), (-0.1, 1.1, -math.inf)),
        ("similarity", (-1, 0.0, 1.0), (-1.1, 1.1)),
        ("first_score", (0.1, 0.9), (0, 1)),
    ],
)
def test_ends_belong_to_a_range_or_not(name, inside, outside):
    for value in inside:
        in_range({name: value})
    for value in outside:
        with pytest.raises(ValueError, match=f"{name} must be"):
            in_range({name: value})
    in_range({name: jnp.array(outside[0]), "of no range": -9.0})
    with pytest.raises(ValueError, match="of no range must be finite and > 0"):
        in_range({"of no range": -9.0}, **{"of no range": POSITIVE})


def test_every_default_is_in_its_range():
    for name in FORMS:
        hyper = {n: float(x) for n, x in begun(name).hyper.items()}
        assert set(hyper) <= set(RANGES)
        in_range(hyper)


@pytest.mark.parametrize("value", [True, np.True_, "0.1", None, 1j, np.array(1j), []])
def test_what_is_no_number_is_refused_by_name(value):
    with pytest.raises(TypeError, match="learning_rate must be a number"):
        in_range({"learning_rate": value})


@pytest.mark.parametrize("value", [np.ones(2), jnp.ones(2), jnp.ones((1, 1))])
def test_several_numbers_are_mapped_over_and_not_given_at_once(value):
    with pytest.raises(
        ValueError, match=r"learning_rate must be one number.*jax\.vmap"
    ):
        in_range({"learning_rate": value})
    seen = []
    jax.vmap(lambda one: seen.append(in_range({"learning_rate": one})) or one)(
        jnp.ones(2)
    )
    assert seen == [None]


@pytest.mark.parametrize(
    ("name", "value"),
    [("cohort_size", 1.5), ("cohort_size", 0), ("rounds_per_cohort", True)],
)
def test_cohorts_that_are_none_are_refused_when_they_are_asked_for(name, value):
    with pytest.raises((TypeError, ValueError), match=name):
        federated.RoundConfig(**{name: value})
    with pytest.raises((TypeError, ValueError), match=name):
        federated.fedavg(
            lambda key: 0.0,
            lambda *args: 0.0,
            steps=federated.Steps(num_steps=1),
            **{name: value},
        )


@pytest.mark.parametrize("count", [math.nan, 1.5, True, 0])
def test_so_many_clients_there_are_not(count):
    steps = federated.Steps(num_steps=1)
    with pytest.raises((TypeError, ValueError), match="num_clients"):
        federated.ditto(
            lambda key: 0.0,
            lambda *args: 0.0,
            steps=steps,
            personal_steps=steps,
            num_clients=count,
        )


@pytest.mark.parametrize(
    ("name", "value"),
    [("batch_size", 0), ("batch_size", -1), ("num_steps", math.inf), ("num_steps", 0)],
)
def test_steps_that_would_learn_nothing_are_refused(name, value):
    options = {"learning_rate": 0.1, "num_steps": 1, "batch_size": None} | {name: value}
    loss_fn = lambda w, x, key: (w - x) ** 2
    with pytest.raises((TypeError, ValueError), match=name):
        federated.local_sgd(
            *(loss_fn, jax.random.key(0), jnp.zeros(()), jnp.ones(2)),
            jnp.ones(2, bool),
            **options,
        )


@pytest.mark.parametrize("name", ["expected_batch_size", "sampling_probability"])
@pytest.mark.parametrize("value", ["1", None, True])
def test_lots_of_words_are_refused(name, value):
    options = {
        "sampling_probability": 0.5,
        "expected_batch_size": 1.0,
        "max_examples": 4,
    } | {name: value}
    with pytest.raises(TypeError, match=f"{name} must be a number"):
        federated.PoissonSampling(**options)


def test_meta_learning_and_looking_on_refuse_what_they_cannot_do():
    algorithm = federated.fed_maml(
        *(lambda key: {"net": jnp.zeros(())}, len, lambda hyper: [], lambda hyper: []),
        hyper={"server_learning_rate": 1.0},
        server_optimizer=optax.sgd(1.0),
    )
    with pytest.raises(ValueError, match="server_learning_rate must be finite"):
        algorithm.init(jax.random.key(0), server_learning_rate=math.nan)
    average = federated.fedavg(lambda key: 0.0, len, steps=federated.Steps(num_steps=1))
    with pytest.raises(TypeError, match="num_rounds"):
        federated.simulate_observed(average, jax.random.key(0), None, None, 1.5)


@pytest.mark.parametrize(("radius", "epsilon"), [(-1.0, 1.0), (0, 1.0), (1.0, 0.0)])
def test_two_points_have_a_radius_and_an_epsilon(radius, epsilon):
    wrong = "radius" if radius <= 0 else "epsilon"
    with pytest.raises(ValueError, match=f"^{wrong} must be > 0, got"):
        federated.two_points(jax.random.key(0), jnp.ones(2), radius, epsilon)
