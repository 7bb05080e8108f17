"""Tests of GEN: estimator pretraining, and the guardian's loss."""

import dataclasses
import functools

import jax
import numpy as np
import pytest
import toy

from jaxanon import datasets
from jaxanon.methods.malekzadeh.gen import gen

pytestmark = pytest.mark.slow

TIME = 32  # Minimum for three convolutions is 30.

SMALL = {
    "filters": (8, 8, 8),
    "estimator_hidden_sizes": 24,
    "hidden_sizes": (32,),
    "batch_size": 48,
}
EARLY, LATE = 16, 80  # Epochs of 3 rounds.


@functools.cache
def _built():
    data = toy.data(time=TIME)
    method = gen(data.spec, **SMALL, pretraining=EARLY)
    prepared = method.prepare(datasets.by_client(data.train))
    assert method.schedule.rounds_per_epoch(prepared) == 3

    @functools.partial(jax.jit, static_argnums=2)
    def train(state, data, length):
        step = lambda state, _: method.update(jax.random.key(1), state, data)
        return jax.lax.scan(step, state, length=length)

    return data, method, prepared, train


@functools.cache
def _trained(confusion, utility):
    """The states after training the estimator and the guardian, and the infos."""
    _, method, prepared, train = _built()
    hyper = {"confusion": confusion, "utility": utility, "learning_rate": 3e-3}
    start = method.init(jax.random.key(0), **hyper)
    first, early = train(start, prepared, 3 * EARLY)
    last, late = train(first, prepared, 3 * LATE)
    return start, first, last, early, late


def _differs(one, two, group):
    pairs = jax.tree.map(
        lambda a, b: np.any(a != b), one.params[group], two.params[group]
    )
    return any(jax.tree.leaves(pairs))


def test_the_estimator_learns_first_and_is_frozen():
    start, first, last, early, late = _trained(*WEIGHTS[1])
    assert _differs(start, first, "estimator") and not _differs(
        start, first, "guardian"
    )
    assert not _differs(first, last, "estimator") and _differs(first, last, "guardian")
    losses = np.asarray(early["estimator"])
    assert losses[-5:].mean() < 0.9 * losses[:5].mean()
    assert (np.asarray(late["estimator"]) == 0).all()


WEIGHTS = ((0.0, 1.0), (1.0, 0.0))  # Confusion, utility.


def test_what_the_guardian_pays_for():
    _, method, prepared, train = _built()
    hyper = {"confusion": 0.5, "utility": 2.0}
    state = method.init(jax.random.key(0), **hyper)
    state = state._replace(round=state.round + 3 * EARLY)
    _, late = train(state, prepared, 3 * EARLY)
    expected = 2 * late["activity loss"] + 0.5 * late["gender off chance"]
    np.testing.assert_allclose(late["guardian"], expected, rtol=1e-5)


def test_each_term_does_its_part():
    # Each term alone decreases its own loss and not the other.
    mean = lambda info: float(np.mean(info[-30:]))
    useful, private = (_trained(*weights)[-1] for weights in WEIGHTS)
    off = [mean(info["gender off chance"]) for info in (useful, private)]
    assert off[1] < 0.15 and off[1] < 0.5 * off[0]
    activity = [mean(info["activity loss"]) for info in (useful, private)]
    assert activity[0] < 0.8 * activity[1]


def test_windows_leave_in_physical_units():
    data, method, _, _ = _built()
    last = _trained(*WEIGHTS[0])[2]
    windows = data.test.windows
    anonymize = jax.jit(method.anonymize)
    shown = anonymize(jax.random.key(2), last, windows)
    assert shown.shape == windows.shape and shown.dtype == np.float32
    assert abs(float(shown.mean()) - 10) < 3
    again = anonymize(jax.random.key(3), last, windows[:5])
    np.testing.assert_allclose(again, shown[:5], rtol=1e-4)


def test_windows_too_short(data):
    with pytest.raises(ValueError, match="at least 30 samples .* got 16"):
        gen(data.spec)


def test_the_shortest_window_leaves_one_sample(data):
    spec = dataclasses.replace(data.spec, time=30)
    shapes = jax.eval_shape(gen(spec, filters=(3, 4, 5)).init, jax.random.key(0))
    rows = shapes.params["estimator"]["Dense_2"]["kernel"].shape[0]
    assert rows == len(spec.channels) * 5
