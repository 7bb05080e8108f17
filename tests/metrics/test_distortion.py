"""Distortion: by hand, and against NumPy and SciPy."""

import json

import numpy as np
import pytest
from plain_warping import warped
from scipy import stats

from jaxanon import metrics
from jaxanon.metrics import distortion
from jaxanon.report import page

RNG = np.random.default_rng(0)


def test_warping_averages_the_channels():
    raw, safe = np.float32(RNG.normal(size=(2, 3, 9, 2)))
    channels = lambda a, b: [warped(a[:, c], b[:, c]) for c in (0, 1)]
    want = [np.mean(channels(*pair)) for pair in zip(raw, safe, strict=True)]
    np.testing.assert_allclose(metrics.warping_distances(raw, safe), want, rtol=1e-5)


def test_a_delay_is_no_distance_and_an_offset_is():
    wave = np.sin(np.arange(40) / 3).astype(np.float32).reshape(1, 40, 1)
    late = np.roll(wave, 2, axis=1)
    late[0, :2] = wave[0, 0]
    moved = metrics.warping_distances(wave, late)[0]
    # Only the truncated end is unmatched.
    assert moved < 0.1 * np.abs(wave - late).sum()
    offset = metrics.warping_distances(wave * 0, wave * 0 + 0.5)
    np.testing.assert_allclose(offset, 40 * 0.5)


def test_more_windows_than_a_chunk(monkeypatch):
    raw, safe = np.float32(RNG.normal(size=(2, 7, 5, 1)))
    whole = metrics.warping_distances(raw, safe)
    monkeypatch.setattr(distortion, "CHUNK", 3)
    np.testing.assert_allclose(metrics.warping_distances(raw, safe), whole, rtol=1e-6)


def test_statistics_agree_with_numpy_and_scipy():
    raw = RNG.gamma(2.0, size=(20, 16, 2))
    safe = RNG.normal(3.0, 2.0, size=(20, 16, 2))
    got = metrics.compare_statistics(raw, safe, ["x", "y"])
    json.dumps(got, allow_nan=False)
    oracles = {
        "mean": lambda x: x.mean(1),
        "std": lambda x: x.std(1),
        "skewness": lambda x: stats.skew(x, axis=1),
        "kurtosis": lambda x: stats.kurtosis(x, axis=1),
        "energy": lambda x: (x**2).sum(1),
    }
    for column, channel in enumerate(("x", "y")):
        assert set(got[channel]) == set(oracles)
        for name, oracle in oracles.items():
            before, after = oracle(raw)[:, column], oracle(safe)[:, column]
            want = {
                "raw": before.mean(),
                "anonymized": after.mean(),
                "relative_error": after.mean() / before.mean() - 1,
                "absolute_error": np.abs(after - before).mean(),
            }
            assert got[channel][name] == pytest.approx(want, rel=1e-4)


def test_a_share_of_nothing_is_none():
    still = np.zeros((2, 4, 1))
    found = metrics.compare_statistics(still, still + 1, ["x"])["x"]["mean"]
    assert found["relative_error"] is None and found["absolute_error"] == 1


def walk(steps_per_window, windows=3, rate_hz=50.0):
    """Returns windows of 4 s with one swing per step about gravity, then rest."""
    seconds = np.arange(int(4 * rate_hz)) / rate_hz
    cycle = np.minimum(seconds * 2, steps_per_window)  # Two steps per second.
    swing = 9.81 + 3 * np.sin(2 * np.pi * cycle)
    return np.tile(np.float32(swing)[None, :, None], (windows, 1, 1))


def test_both_counters_count_what_is_left_of_a_walk():
    got = metrics.step_errors(walk(6), walk(3), 50.0)
    json.dumps(got, allow_nan=False)
    for counter in ("threshold", "jerk_pace"):
        assert got[counter]["raw"] == pytest.approx(6, abs=1)
        assert got[counter]["anonymized"] == pytest.approx(3, abs=1)
    # Each swing crosses 10.5 twice, so that counter is exact.
    assert got["threshold"] == {
        "raw": 6, "anonymized": 3, "relative_error": -0.5, "absolute_error": 3,
    }  # fmt: skip


def test_the_counters_are_two():
    # With a jerk bound of 1.25, a tremble about the threshold is not a step.
    still, tremble = walk(0), 10.5 + 0.2 * (walk(6) - 9.81) / 3
    got = metrics.step_errors(still, tremble, 50.0)
    assert got["threshold"]["anonymized"] > 4 and got["jerk_pace"]["anonymized"] == 0


def test_errors_that_cancel_are_seen():
    mixed = np.concatenate([walk(6, 1), walk(2, 1)])
    found = metrics.step_errors(mixed, mixed[::-1], 50.0)["threshold"]
    assert found["relative_error"] == 0 and found["absolute_error"] == 4


def test_too_low_a_rate_for_the_filter():
    found = metrics.step_errors(walk(2), walk(2), 7.0)
    assert found["jerk_pace"] is None and found["threshold"]["raw"] == 2


def test_says_what_was_wrong():
    one, other = np.zeros((2, 4, 1)), np.zeros((2, 5, 1))
    for call in (
        lambda: metrics.warping_distances(one, other),
        lambda: metrics.compare_statistics(one, other, ["x"]),
        lambda: metrics.step_errors(one, other, 50.0),
    ):
        with pytest.raises(ValueError, match=r"the same windows.*\(2, 4, 1\) and"):
            call()
    with pytest.raises(ValueError, match=r"N at least 1, got shapes \(0, 4, 1\)"):
        metrics.warping_distances(one[:0], one[:0])
    with pytest.raises(ValueError, match=r"channels must name the 1 channels"):
        metrics.compare_statistics(one, one, ["x", "y"])


def test_a_mean_near_nothing_has_no_percentage():
    raw = np.float32([[[1e-6, 2.0]], [[0.0, 2.0]]])
    kept = metrics.compare_statistics(raw, raw + np.float32([0.25, 0.5]), ["x", "y"])
    assert page.change(kept["x"]["mean"]) == "+0.25"
    assert page.change(kept["y"]["mean"]) == "+25.0 %"
