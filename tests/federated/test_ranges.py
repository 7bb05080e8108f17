"""Hyper-parameters out of their range, at the doors of the functions that take them."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import federated
from jaxanon.federated import Lots, Steps
from jaxanon.federated.ranges import POSITIVE, RANGES, in_range

ONE = Steps(num_steps=1)
FORMS = {
    "fed_avg": (federated.fed_avg, {"num_steps": 1}),
    "fed_prox": (federated.fed_prox, {"steps": ONE, "num_clients": 1}),
    "scaffold": (federated.scaffold, {"steps": ONE, "num_clients": 1}),
    "fed_mask": (
        federated.fed_mask,
        {"steps": ONE, "num_clients": 1, "masked_layers": ("w",)},
    ),
    "clustered": (
        federated.clustered,
        {"steps": ONE, "num_clients": 1, "num_clusters": 1, "alone": 1},
    ),
    "dp_fed_avg": (
        federated.dp_fed_avg,
        {
            "steps": ONE,
            "cohorts": Lots(sampling_probability=1.0, size=1.0, records=1),
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
        ("fed_avg", {"step_size": -1.0}, "step_size must be finite and >= 0, got -1.0"),
        ("fed_prox", {"mu": math.nan}, "mu must be finite and >= 0, got nan"),
        ("scaffold", {"step_size": 0.0}, "step_size must be finite and > 0, got 0.0"),
        ("fed_mask", {"certainty": 0.5}, r"certainty must be in \(0.5, 1\), got 0.5"),
        ("clustered", {"step_size": math.inf}, "step_size must be finite and >= 0"),
        (
            "dp_fed_avg",
            {"noise_multiplier": -1},
            "got -1; 0 adds no noise, and guarantees nothing",
        ),
        ("dp_fed_avg", {"quantile": 1.5}, r"quantile must be in \[0, 1\], got 1.5"),
    ],
)
def test_numbers_out_of_range_are_refused(name, hyper, message):
    with pytest.raises(ValueError, match=message):
        begun(name, **hyper)


@pytest.mark.parametrize("name", sorted(FORMS))
def test_defaults_and_what_is_traced_pass(name):
    begun(name)
    state = jax.eval_shape(lambda x: begun(name, step_size=x), jnp.float32(-1.0))
    assert state.hyper["step_size"].shape == ()


@pytest.mark.parametrize(
    ("name", "inside", "outside"),
    [
        ("step_size", (0, 3.0, np.float32(0.5)), (-1e-9, math.inf, np.float64(-1))),
        ("max_norm", (1e-9, 5), (0, 0.0, -1.0, math.nan)),
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
