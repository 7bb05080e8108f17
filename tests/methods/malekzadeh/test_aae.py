"""Tests of AAE: classifiers of raw windows, and the autoencoder."""

import functools

import jax
import numpy as np
import pytest
import toy

from jaxanon import datasets
from jaxanon.methods import personalise
from jaxanon.methods.common.pool import draw_weighed, weigh
from jaxanon.methods.malekzadeh.anonymizing import aae

pytestmark = pytest.mark.slow


SMALL = {
    "filters": 6,
    "classifier_filters": 6,
    "classifier_hidden_sizes": (12,),
    "batch_size": 48,
}
MODEL, READERS = ("encoder", "decoder"), ("readers",)


def test_aae_s_readers_learn_first_and_once(given_to_central, active_groups):
    components = given_to_central("aae", **SMALL, pretraining=2)["components"]
    assert active_groups(components, 4) == [[READERS]] * 2 + [[MODEL]] * 2
    settings = {"pretraining": 2, "frozen": False}
    components = given_to_central("aae", **SMALL, **settings)["components"]
    assert active_groups(components, 4) == [[READERS]] * 2 + [[READERS, MODEL]] * 2


@pytest.mark.parametrize("raw", [True, False])
def test_who_shows_windows_to_the_readers(given_to_central, data, raw):
    # The loss on raw windows does not depend on the decoder.
    built = given_to_central("aae", **SMALL, frozen=False)
    params = jax.jit(built["init_fn"])(jax.random.key(0))
    prepared = weigh(data.spec, datasets.by_client(data.train))
    batch = draw_weighed(jax.random.key(1), prepared, 20)
    component = built["components"][0 if raw else 1]
    other = params | {"decoder": jax.tree.map(lambda leaf: 2 * leaf, params["decoder"])}
    loss = jax.jit(
        lambda params: component.loss_fn(
            jax.random.key(2), params, {"weight_decay": 0.0}, batch, None
        )[0]
    )
    assert (loss(params) == loss(other)) == raw


def test_one_client_trains_on_in_the_last_phase(data):
    """One client has fewer rounds per epoch than all clients together."""
    method = aae(data.spec, **SMALL, pretraining=2)
    alone = jax.tree.map(lambda rows: rows[:1], datasets.by_client(data.train))
    state = method.init(jax.random.key(0))
    own, _ = personalise(method, jax.random.key(1), state, alone, num_rounds=1)
    assert (
        int(own.round)
        == 2 * method.schedule.rounds_per_epoch(method.prepare(alone)) + 1
    )
    groups = {"readers": True, "encoder": False}
    for name, same in groups.items():
        leaves = [jax.tree.leaves(each.params[name]) for each in (state, own)]
        assert all(map(np.array_equal, *leaves)) == same, name


@functools.cache
def _built():
    """A method, and a function that trains it on the toy data."""
    data = toy.data()
    method = aae(data.spec, **SMALL, pretraining=30)
    prepared = method.prepare(datasets.by_client(data.train))

    @jax.jit
    def train(state, data):
        step = lambda state, _: method.update(jax.random.key(1), state, data)
        return jax.lax.scan(step, state, length=300)

    return method, lambda state: train(state, prepared)


@functools.cache
def _trained(weight):
    """Returns the state for a confusion weight, and the gender and activity losses."""
    method, train = _built()
    hyper = {"distortion": 0.1, "learning_rate": 3e-3, "classifier_learning_rate": 3e-3}
    state, infos = train(method.init(jax.random.key(0), confusion=weight, **hyper))
    mean = lambda name: float(np.mean(infos[name][-50:]))
    return state, mean("gender confusion"), mean("activity loss")


def test_what_confuses_takes_the_gender_away_and_leaves_the_activity():
    # The frozen classifiers are confident; even odds give log 2 = 0.69.
    _, sure, activity = _trained(0.0)
    assert sure > 0.9 and activity < 0.9 * np.log(3)
    _, confused, activity = _trained(2.0)
    assert confused < 0.76 and activity < 0.9 * np.log(3)


def test_windows_leave_in_physical_units(data):
    method, _ = _built()
    state, _, _ = _trained(2.0)
    windows = data.test.windows
    anonymize = jax.jit(method.anonymize)
    shown = np.asarray(anonymize(jax.random.key(2), state, windows))
    assert shown.shape == windows.shape and shown.dtype == np.float32
    assert abs(shown.mean() - 10) < 1.5  # In g, not standardised.
    # The result depends on neither the following windows nor the key.
    again = anonymize(jax.random.key(3), state, windows[:5])
    np.testing.assert_allclose(again, shown[:5], rtol=1e-4)


def test_settings_are_refused(data):
    with pytest.raises(ValueError, match="utility must be finite and >= 0"):
        aae(data.spec, utility=-1.0)
    with pytest.raises(TypeError, match="AAEConfig has no 'utlity'; .*mean 'utility'"):
        aae(data.spec, utlity=2)
