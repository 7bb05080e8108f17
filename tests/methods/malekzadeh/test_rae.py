"""Tests of RAE: the replaced windows, their targets, and training."""

import dataclasses
import functools

import jax
import numpy as np
import pytest
import toy

from jaxanon import datasets
from jaxanon.methods.malekzadeh import replacement
from jaxanon.methods.malekzadeh.replacement import rae
from jaxanon.training import trainer

LISTS = {"black": ("c",), "gray": ("a",)}
SMALL = {
    "replacer_filters": (6, 4),
    "replacer_hidden_sizes": (32, 24),
    "batch_size": 48,
} | LISTS


def _level():
    """The toy data with constant windows of class a."""
    data = toy.data()

    def part(windows):
        still = windows.labels["activity"] == 0
        noise = np.random.default_rng(0).normal(0, 0.1, windows.windows.shape)
        made = np.where(still[:, None, None], 14 + noise, windows.windows)
        return windows._replace(windows=np.float32(made))

    return data._replace(train=part(data.train), test=part(data.test))


def _batch(targets, size=200, **lists):
    data = _level()
    config = replacement.ReplacementConfig(**LISTS | lists, targets=targets)
    _, classes = replacement.with_classes("rae", config, data.spec)
    paired = replacement.pair(data.spec, datasets.by_client(data.train), classes)
    draw = functools.partial(replacement.draw, data=paired, size=size, targets=targets)
    return paired, draw


@pytest.mark.parametrize("targets", ["fresh", "kept"])
def test_black_windows_are_to_become_gray_ones_and_others_themselves(targets):
    paired, draw = _batch(targets)
    batch = draw(jax.random.key(0))
    activity = np.asarray(batch.labels["activity"])
    black = activity == 2
    assert 20 < black.sum() < 150
    same = (batch.windows == batch.targets).all((1, 2))
    np.testing.assert_array_equal(same, ~black)
    # Every target of a black window is one of the neutral windows.
    grays = {x.tobytes() for x in np.asarray(paired.weighed.pool.windows[paired.gray])}
    chosen = [x.tobytes() for x in np.asarray(batch.targets[black])]
    assert set(chosen) <= grays and len(set(chosen)) > 10


def test_kept_targets_are_one_to_one_and_fresh_ones_are_not_kept():
    paired, draw = _batch("kept")
    black = np.flatnonzero(paired.black)
    kept = np.asarray(paired.fixed)[black]
    num_gray = len(paired.gray)
    counts = np.bincount(kept, minlength=len(paired.black))[np.asarray(paired.gray)]
    assert counts.max() - counts.min() <= 1 and counts.sum() == len(black)
    # Neighboring windows of one person have distant targets.
    assert np.abs(np.diff(np.searchsorted(paired.gray, kept))).mean() > num_gray / 4
    targets = lambda draw: {
        (x.tobytes(), y.tobytes())
        for seed in range(8)
        for x, y in zip(*map(np.asarray, draw(jax.random.key(seed))[::3]), strict=True)
    }
    windows = lambda pairs: len({x for x, _ in pairs})
    found = targets(draw)
    assert len(found) == windows(found)  # Each window keeps its target.
    found = targets(_batch("fresh")[1])
    assert len(found) > 1.5 * windows(found)


@functools.cache
def _trained():
    data = _level()
    method = rae(data.spec, **SMALL, replacer_learning_rate=5e-3)
    run = trainer.train(method, data, epochs=150, progress=False)
    shown = run.anonymize(jax.random.key(2), data.test.windows)
    return data, run, np.asarray(shown)


@pytest.mark.slow
def test_what_leaves_is_neutral_in_place_of_the_sensitive_and_kept_otherwise():
    data, run, shown = _trained()
    windows, labels = data.test
    assert shown.shape == windows.shape and shown.dtype == np.float32
    activity = labels["activity"]
    # RMS error in standard deviations of the data.
    away = lambda x, y: float(np.sqrt(np.mean(((x - y) / np.mean(data.spec.std)) ** 2)))
    black, white = activity == 2, activity == 1
    assert away(windows[black], 14) > 1
    assert away(shown[black], 14) < 0.5
    assert away(shown[black], windows[black]) > 1
    assert away(shown[white], windows[white]) < 0.6
    # The result depends on neither the following windows nor the key.
    np.testing.assert_allclose(
        run.anonymize(jax.random.key(3), windows[:5]), shown[:5], rtol=1e-4
    )


def test_lists_of_classes_that_cannot_be(data):
    with pytest.raises(
        ValueError, match=r"black must name classes .* got \(\); .* of 'toy'"
    ):
        rae(data.spec)
    with pytest.raises(ValueError, match=r"gray must name classes .* got \(\);"):
        rae(data.spec, black=("a",))
    with pytest.raises(ValueError, match=r"black must name classes .* got \('jog',\);"):
        rae(data.spec, black=("jog",), gray=("a",))
    with pytest.raises(ValueError, match=r"must not share classes, got \['a'\]"):
        rae(data.spec, black=("a", "b"), gray=("a",))
    clients = datasets.by_client(data.train)
    clients.labels["activity"][clients.labels["activity"] == 2] = 1
    with pytest.raises(
        ValueError, match=r"must have training windows, got none for \['c'\]"
    ):
        rae(data.spec, **LISTS).prepare(clients)


def test_motion_sense_s_lists_are_known(data):
    for names, gray in [(("jog", "std", "wlk"), "std"), (("wlk", "jog", "ups"), "wlk")]:
        classes = data.spec.classes | {"activity": names}
        spec = dataclasses.replace(data.spec, name="motion_sense", classes=classes)
        config = rae(spec, replacer_filters=(4,)).config
        assert (config.black, config.gray) == (("jog",), (gray,))
