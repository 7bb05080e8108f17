"""The attacker with very few labels."""

import jax
import numpy as np
import pytest

from jaxanon import attacks
from jaxanon.attacks import self_training


def bars(rows, seed=0):
    """Returns two long parallel clusters, as levels of two channels, in order."""
    rng = np.random.default_rng(seed)
    labels = np.repeat([0, 1], rows)
    across = 2 * labels - 1 + 0.2 * rng.normal(size=2 * rows)
    along = np.tile(np.linspace(-2.5, 2.5, rows), 2)
    levels = np.stack([across, along], 1)
    return np.float32(levels[:, None] * np.ones((1, 3, 1))), labels


def read(rounds):
    windows, labels = bars(120)
    known = [90, 150]  # At opposite ends of the two clusters.
    evidence = attacks.self_train(
        jax.random.key(0), windows[known], labels[known], windows, 2, rounds=rounds
    )
    return np.mean(evidence.argmax(1) == labels)


def test_windows_without_labels_teach_what_few_labels_cannot():
    # Two windows tilt the line; the clusters straighten it.
    assert read(rounds=0) < 0.85
    assert read(rounds=8) > 0.97


def test_few_windows_train_and_all_are_read(monkeypatch):
    learned, whole = [], self_training._fit
    note = lambda rows, labels: learned.append(len(rows)) or whole(rows, labels)
    monkeypatch.setattr(self_training, "_fit", note)
    monkeypatch.setattr(self_training, "MOST", 100)
    read(rounds=4)  # Scores all 240.
    # The two with labels, then the most certain quarter of 100, half, 3/4, all.
    assert learned[0] == 2 and learned[-1] == 102
    np.testing.assert_allclose(learned[1:], [27, 52, 77, 102], atol=1)


def test_nothing_to_read_and_classes_never_seen():
    windows, labels = bars(4)
    key = jax.random.key(0)
    none = attacks.self_train(key, windows, 2 * labels, windows[:0], 3)
    assert none.shape == (0, 3)
    evidence = attacks.self_train(key, windows, 2 * labels, windows, 3)
    assert set(evidence.argmax(1)) == {0, 2}


def test_says_what_was_wrong():
    windows, labels = bars(4)
    key = jax.random.key(0)
    with pytest.raises(ValueError, match=r"at least 2 classes, got \[0\]; label"):
        attacks.self_train(key, windows, 0 * labels, windows, 2)
    with pytest.raises(ValueError, match="rounds must be >= 0, got -1"):
        attacks.self_train(key, windows, labels, windows, 2, rounds=-1)
