"""What DySan's networks may be told of a wearer beside a window."""

import jax
import numpy as np
import pytest

from jaxanon import datasets
from jaxanon.methods import sanitizers
from jaxanon.methods.dysan import dysan

SMALL = {
    "filters": (4, 6),
    "hidden": (16, 8),
    "predictor_filters": (8,),
    "discriminator_filters": 6,
    "judge_hidden": 8,
    "batch": 48,
    "physiology": ("subject",),
}


@pytest.fixture(scope="module")
def trained(data):
    """The method, its data on the device, the state after a round, what it told."""
    method = dysan(data.spec, **SMALL)
    prepared = method.prepare(datasets.by_client(data.train))
    state = method.init(jax.random.key(0), alpha=0.2, lambda_=0.5)
    state, info = jax.jit(method.update)(jax.random.key(1), state, prepared)
    return method, prepared, state, info


def test_its_change_is_paid_for_as_that_of_each_channel_is(trained):
    info = trained[3]
    others = 0.5 * info["activity error"] + 0.2 * abs(0.5 - info["gender error"])
    paid = info["sanitizer"] - others - 0.3 * 2 * info["change"]
    # What is told of 5 people is in [-1, 1], 0.6 on average; what comes out is near 0.
    assert 0.3 * 0.4 < paid < 0.3 * 0.8


def test_classes_are_told_from_minus_one_to_one(data, trained):
    method, prepared, _, _ = trained
    told = sanitizers.told_beside(data.spec, method.config, prepared)
    subjects = np.asarray(prepared.labels["subject"])
    np.testing.assert_allclose(told[:, 0], subjects / 2 - 1)


def test_all_three_networks_heed_it_and_minus_one_stands_for_it(data, trained):
    method, prepared, state, _ = trained
    nets, params = sanitizers.networks(data.spec, method.config), state.params
    windows, public = prepared.windows[:8], np.zeros(8, int)
    composed, key = nets.compose(params), jax.random.key
    ways = [
        lambda sides: nets.sanitize(key(3), composed, windows, sides)[0],
        lambda sides: nets.predict(params, windows, sides)[0],
        lambda sides: nets.discriminate(params, windows, public, sides)[0]["gender"],
    ]
    for way in ways:
        low, high = (way(np.full((8, 1), level)) for level in (-1.0, 1.0))
        assert np.max(abs(low - high)) > 1e-3
        np.testing.assert_array_equal(low, way(None))


def test_what_nobody_recorded_is_refused(data):
    with pytest.raises(ValueError, match=r"physiology .* got \['height'\]"):
        dysan(data.spec, **SMALL | {"physiology": ("subject", "height")})
