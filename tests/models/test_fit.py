"""Training a classifier: its result, its invariances, and its errors."""

import jax
import numpy as np
import pytest

from jaxanon.models import fit
from jaxanon.models.fit import arrange_rows

pytestmark = pytest.mark.slow

SMALL = {"hidden": (16,), "epochs": 8, "batch": 16}


def toy(rows=96, classes=3, seed=0):
    """Returns windows whose level is their class, plus noise of a third of the gap."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=rows)
    windows = labels[:, None, None] + 0.3 * rng.normal(size=(rows, 4, 2))
    return np.float32(windows), np.int32(labels)


def fitted(key=0, data=None, classes=3, **options):
    windows, labels = toy() if data is None else data
    options = {**SMALL, **options}
    return fit.fit_classifier(jax.random.key(key), windows, labels, classes, **options)


def leaves(one):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(one.params)]


def same(one, other):
    return all(map(np.array_equal, leaves(one), leaves(other)))


def test_learns_what_can_be_learned():
    windows, labels = toy(400, seed=1)
    got = fit.predict(fitted(epochs=40, hyper=fit.Hyper(1e-2)), windows)
    assert got.dtype == np.int32
    assert np.mean(got == labels) > 0.95


def test_the_key_decides_and_nothing_else():
    assert same(fitted(0), fitted(0))
    assert not same(fitted(0), fitted(1))


def test_a_masked_row_changes_nothing():
    windows, labels = toy()
    more = np.concatenate([windows, np.full((9, 4, 2), np.nan, np.float32)])
    marks = np.concatenate([labels, np.full(9, 77, np.int32)])
    mask = np.arange(len(more)) < len(windows)
    assert same(fitted(), fitted(data=(more, marks), mask=mask))


def test_a_masked_label_is_not_learned():
    windows, labels = toy(seed=2)
    wrong = np.where(np.arange(96) < 48, 0, labels)
    mask = np.arange(96) >= 48
    got = fitted(data=(windows, wrong), mask=mask, epochs=40, hyper=fit.Hyper(1e-2))
    assert np.mean(fit.predict(got, windows) == labels) > 0.9


def test_many_sets_agree_with_one_by_one():
    windows, labels = toy()
    other = np.int32(labels > 0)
    keys = jax.random.split(jax.random.key(3), 2)
    many = fit.fit_many(keys, windows, np.stack([labels, other]), [3, 2], **SMALL)
    for index, (own, classes) in enumerate([(labels, 3), (other, 2)]):
        key = jax.random.split(jax.random.key(3), 2)[index]
        one = fit.fit_classifier(key, windows, own, classes, **SMALL)
        for got, want in zip(leaves(many), leaves(one), strict=True):
            np.testing.assert_allclose(got[index], want, rtol=1e-5, atol=1e-6)


def test_side_by_side_agrees_with_one_after_another(monkeypatch):
    windows, labels = toy()
    sets = np.stack([labels, (labels + 1) % 3])
    train = lambda: fit.fit_many(
        jax.random.split(jax.random.key(3), 2), windows, sets, [3, 3], **SMALL
    )
    one = train()
    monkeypatch.setattr(fit.jax, "default_backend", lambda: "gpu")
    other = train()
    for got, want in zip(leaves(one), leaves(other), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_sets_of_their_own_windows():
    pairs = [toy(96, seed=1), toy(64, seed=2)]

    def train(filler):
        windows = np.full((2, 96, 4, 2), filler, np.float32)
        labels, mask = np.full((2, 96), 2), np.zeros((2, 96), bool)
        for index, (own, truth) in enumerate(pairs):
            rows = slice(len(own))
            windows[index, rows], labels[index, rows] = own, truth
            mask[index, rows] = True
        keys = jax.random.split(jax.random.key(3), 2)
        return fit.fit_many(keys, windows, labels, [3, 3], mask=mask, **SMALL)

    many = train(np.nan)
    key = jax.random.split(jax.random.key(3), 2)[0]
    one = fit.fit_classifier(key, *pairs[0], 3, **SMALL)
    for got, want in zip(leaves(many), leaves(one), strict=True):
        np.testing.assert_allclose(got[0], want, rtol=1e-5, atol=1e-6)
    # What the second is filled up with does not count.
    assert same(many, train(7.0))


def test_windows_of_other_sets_are_refused():
    windows, labels = toy()
    with pytest.raises(ValueError, match=r"for 1 sets.*\(2, 96, 4, 2\)"):
        fit.fit_many(
            jax.random.split(jax.random.key(0), 1),
            np.stack([windows] * 2), labels[None], [3], **SMALL,
        )  # fmt: skip


def test_new_seeds_rates_and_class_counts_compile_nothing():
    jax.clear_caches()  # Otherwise a full cache would evict entries during the count.
    fitted()
    before = fit._fit_sets._cache_size()
    windows, labels = toy()
    fitted(9)
    fitted(hyper=fit.Hyper(1e-2, 0.3))
    fitted(data=(windows, np.int32(labels > 0)), classes=2)
    fitted(valid=np.arange(96) < 9)
    between = fit._fit_sets._cache_size()
    fitted(data=(windows[:93], labels[:93]), valid=np.arange(93) < 5)
    assert fit._fit_sets._cache_size() == between
    before += 1  # For the one with validation.
    assert fit._fit_sets._cache_size() == before


def test_the_rate_falls_linearly_to_zero():
    # At so small a rate gradients stay constant, and each step of Adam equals the rate.
    # Four steps move 1 + 3/4 + 1/2 + 1/4 of it.
    got = fitted(hyper=fit.Hyper(1e-6, 0.0), epochs=4, batch=96)
    bias = np.abs(got.params["params"]["Dense_1"]["bias"])
    np.testing.assert_allclose(bias[:3], 2.5e-6, rtol=1e-3)
    np.testing.assert_array_equal(bias[3:], 0)  # Absent classes.


def test_the_best_validation_epoch_is_kept():
    windows, labels = toy()
    valid = np.arange(96) % 3 == 0
    # Validation windows have the wrong class, so later parameters score worse there.
    labels = np.where(valid, (labels + 1) % 3, labels)
    slow = {"hyper": fit.Hyper(1e-2, 0.0), "valid": valid, "epochs": 20}
    got = fitted(data=(windows, labels), **slow)
    best = int(got.best_epoch)
    score = np.asarray(got.score)
    assert score[best] == score.max() > score[-1]
    # The returned parameters reproduce the score in the history.
    guesses = fit.predict(got, windows[valid])
    recalls = [np.mean(guesses[labels[valid] == c] == c) for c in range(3)]
    np.testing.assert_allclose(np.mean(recalls), score[best], rtol=1e-5)


def test_validation_rows_are_not_trained_on():
    windows, labels = toy()
    valid = np.arange(96) % 4 == 0
    other = np.where(valid, (labels + 1) % 3, labels)
    one = fitted(valid=valid)
    two = fitted(data=(windows, other), valid=valid)
    np.testing.assert_array_equal(one.loss, two.loss)
    assert np.any(np.asarray(one.score) != np.asarray(two.score))


def test_without_validation_the_last_epoch_stays():
    assert int(fitted().best_epoch) == SMALL["epochs"] - 1


@pytest.mark.parametrize(
    ("steps", "epochs"),
    [(60, 10), (1, 1), (1000, 100), (100, 17)],  # 6 steps per epoch.
)
def test_epochs_follow_from_steps(steps, epochs, monkeypatch):
    asked = []

    def program(net, epochs, *rest):
        asked.append(epochs)
        return [np.zeros((1, 1))] * 5

    monkeypatch.setattr(fit, "_fit_sets", program)
    fitted(epochs=None, steps=steps)
    assert asked == [epochs]


def test_of_many_rows_there_are_epochs_enough(monkeypatch):
    """12 for each 1,000 steps, though fewer would suffice for as many."""
    asked = []

    def program(net, epochs, *rest):
        asked.append(epochs)
        return [np.zeros((1, 1))] * 5

    monkeypatch.setattr(fit, "_fit_sets", program)
    for steps in (1000, 500):
        fitted(data=toy(3200), epochs=None, steps=steps, batch=16)  # 200 per epoch.
    assert asked == [12, 6]


def test_class_weights_are_majority_over_count():
    labels = np.int32([[0, 0, 0, 0, 0, 0, 1, 1, 1, 2]])
    # Class 3 is absent.
    rows = arrange_rows(np.zeros((10, 4, 1)), labels, [4], None, labels == 2, 4)
    # Six of class 0 and three of class 1 train, padded to 12 = 3 batches of 4.
    np.testing.assert_array_equal(
        rows.train_weights.ravel(), [1] * 6 + [2] * 3 + [0] * 3
    )
    np.testing.assert_array_equal(rows.valid_weights.ravel(), [1, 0, 0, 0])
    valid = np.arange(10)[None] % 9 > 0  # Five of class 0, three of class 1.
    scored = arrange_rows(np.zeros((10, 4, 1)), labels, [4], None, valid, 4)
    np.testing.assert_allclose(
        scored.valid_weights.ravel(), [1 / 10] * 5 + [1 / 6] * 3, rtol=1e-6
    )


def test_a_rare_class_is_found_nevertheless():
    # One class-1 window in 16, and overlapping levels: unweighted, class 0 would win
    # the middle.
    rng = np.random.default_rng(0)
    labels = np.int32(np.arange(960) % 16 == 0)
    windows = np.float32(labels[:, None, None] + 0.7 * rng.normal(size=(960, 1, 1)))
    got = fitted(data=(windows, labels), classes=2, epochs=40)
    midway = fit.predict(got, np.full((1, 1, 1), 0.8, np.float32))
    assert midway[0] == 1


def test_logits_come_for_any_number_of_windows():
    net = fitted()
    windows = toy(fit.CHUNK + 3)[0]
    logits = fit.predict_logits(net, windows)
    assert logits.shape == (fit.CHUNK + 3, 3)
    np.testing.assert_allclose(
        logits[-5:], fit.predict_logits(net, windows[-5:]), rtol=1e-4, atol=1e-5
    )
    assert fit.predict_logits(net, windows[:0]).shape == (0, 3)
    assert fit.predict(net, windows[:0]).shape == (0,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"windows": np.zeros((96, 4))}, r"windows must be float\[N, time, channels\]"),
        ({"labels": np.zeros(5, int)}, r"int\[96\], one per window.*\(5,\)"),
        ({"labels": np.full(96, 3)}, r"labels must be in \[0, 3\), got 3 to 3"),
        ({"labels": np.full(96, -1)}, r"labels must be in \[0, 3\), got -1 to -1"),
        ({"labels": np.zeros(96)}, r"labels must be integers, got dtype float64"),
        ({"num_classes": 1}, r"num_classes must be at least 2, got 1"),
        ({"mask": np.zeros(96, bool)}, r"leave windows to train on, got 0 of 96"),
        ({"valid": np.ones(96, bool)}, r"leave windows to train on, got 0 of 96"),
        ({"valid": np.ones(9, bool)}, r"valid must be bool\[96\], one per window"),
        ({"mask": np.ones(9, bool)}, r"mask must be bool\[96\], one per window"),
        ({"batch": 0}, r"batch must be > 0, got 0"),
        ({"epochs": 0}, r"epochs must be > 0, got 0"),
    ],
)
def test_says_what_was_wrong(change, message):
    windows, labels = toy()
    given = {"windows": windows, "labels": labels, "num_classes": 3, **SMALL, **change}
    with pytest.raises(ValueError, match=message):
        fit.fit_classifier(jax.random.key(0), **given)
