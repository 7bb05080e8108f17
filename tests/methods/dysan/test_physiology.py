"""Tests of DySan's networks with attributes of the wearer as further inputs."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import small_dysan

from jaxanon import datasets
from jaxanon.methods.common import pool
from jaxanon.methods.dysan import online_selection, sanitizers
from jaxanon.methods.dysan.dysan import dysan
from jaxanon.models.dysan import DySanNetworks

SMALL = small_dysan.SMALL | {"physiology": ("subject",)}


@pytest.fixture(scope="module")
def trained(data):
    """Returns the method, its prepared data, the state after a round and the info."""
    method = dysan(data.spec, **SMALL)
    prepared = method.prepare(datasets.by_client(data.train))
    state = method.init(jax.random.key(0), alpha=0.2, lambda_=0.5)
    state, info = jax.jit(method.update)(jax.random.key(1), state, prepared)
    return method, prepared, state, info


def test_its_change_is_paid_for_as_that_of_each_channel_is(trained):
    info = trained[3]
    others = 0.5 * info["activity error"] + 0.2 * abs(0.5 - info["gender error"])
    paid = info["sanitizer"] - others - 0.3 * 2 * info["change"]
    # Inputs of 5 people are in [-1, 1], 0.6 on average; outputs are near 0.
    assert 0.3 * 0.4 < paid < 0.3 * 0.8


def test_classes_are_told_from_minus_one_to_one(data, trained):
    method, prepared, _, _ = trained
    told = sanitizers.side_inputs(data.spec, method.config, prepared)
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


def test_judges_are_told_what_the_sanitizer_makes_of_it(data, trained, monkeypatch):
    method, _, state, _ = trained
    seen, said = [], 0.125

    def sanitize(self, key, composed, windows, sides=None):
        return windows, jnp.full((len(windows), 1), said)

    def predict(self, params, windows, sides=None, key=None):
        seen.append(sides)
        return jnp.ones((len(windows), 3)) * params["scale"], params["averages"]

    def discriminate(self, params, windows, public, sides=None, key=None):
        seen.append(sides)
        return {"gender": jnp.ones((len(windows), 2)) * params["scale"]}, params

    for function in (sanitize, predict, discriminate):
        monkeypatch.setattr(DySanNetworks, function.__name__, function)
    params = state.params | {"scale": jnp.ones(())}
    _, one = online_selection.once(method)
    one(jax.random.key(0), (None, params), data.test.windows[:4], np.zeros(4, int))
    # They train, too.
    nets = sanitizers.networks(data.spec, method.config)
    components = sanitizers._classifiers(data.spec, nets, method.config, raw=False)
    batch = pool.draw(jax.random.key(1), trained[1], 4)
    components.loss_fn(jax.random.key(2), params, {}, batch, None)
    assert len(seen) == 4
    for sides in seen:
        np.testing.assert_array_equal(sides, np.full((4, 1), said))


def test_in_the_released_turns_each_side_has_one_of_its_own(data, monkeypatch):
    counted = []
    central = sanitizers.central
    monkeypatch.setattr(
        sanitizers,
        "central",
        lambda *args, components, **more: (
            counted.append(len(components)),
            central(*args, components=components, **more),
        )[1],
    )
    dysan(data.spec, **SMALL, optimization="vector")
    # Activity, gender, two channels, the side input; and the classifiers.
    assert counted == [1 + 1 + 2 + 1 + 1]


def test_windows_leave_without_it(data, trained):
    method, _, state, _ = trained
    windows = data.test.windows[:5]
    safe = method.anonymize(jax.random.key(2), state, windows)
    assert safe.shape == windows.shape and bool(jnp.all(jnp.isfinite(safe)))


@pytest.mark.parametrize("name", ["height", "gender", "activity", "alone"])
def test_what_nobody_recorded_or_tells_nothing_is_refused(data, name):
    spec = dataclasses.replace(data.spec, classes=data.spec.classes | {"alone": ("a",)})
    with pytest.raises(ValueError, match=f"physiology .*must .* got .*{name}"):
        dysan(spec, **SMALL | {"physiology": ("subject", name)})
