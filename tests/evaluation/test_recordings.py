"""Recordings as they are released are attacked, next to windows."""

import numpy as np
import pytest

from jaxanon.datasets import Data, Windows
from jaxanon.evaluation import anonymizers, recordings

TIME, STRIDE = 16, 4


def part(seed, subjects=3, recordings_each=4, count=9):
    """Overlapping windows; channel y has the level of the side, which a trial keeps."""
    rng = np.random.default_rng(seed)
    windows, labels = [], []
    for subject in range(subjects):
        for trial in range(recordings_each):
            activity, side = trial // 2, trial % 2
            length = TIME + STRIDE * (count - 1)
            t = np.arange(length)
            x = np.sin(
                2 * np.pi * (4 if activity else 1) * t / TIME + rng.uniform(0, 6)
            )
            signal = np.stack([x, np.full(length, 2.0 * side - 1), np.ones(length)], 1)
            signal += 0.2 * rng.normal(size=signal.shape)
            for first in range(0, length - TIME + 1, STRIDE):
                windows.append(signal[first : first + TIME])
                labels.append((subject, activity, side))
    standard = np.stack(windows) * np.array([2.0, 3.0, 4.0]) + np.array([1.0, 2.0, 3.0])
    names = ("subject", "activity", "side")
    columns = {
        n: np.int32(c) for n, c in zip(names, zip(*labels, strict=True), strict=True)
    }
    return Windows(np.float32(standard), columns)


@pytest.fixture(scope="module")
def data(cases):
    return Data(cases.spec(), part(0), part(1))


def test_windows_are_joined_to_their_recordings(data):
    found = recordings.stitch(data.train)
    assert found.stride == STRIDE and len(found.chains) == 12
    whole = np.sort(np.concatenate([chain.rows for chain in found.chains]))
    np.testing.assert_array_equal(whole, np.arange(len(data.train.windows)))
    for chain in found.chains:
        assert chain.samples.shape == (TIME + 8 * STRIDE, 3)
        np.testing.assert_array_equal(
            chain.samples[2 * STRIDE : 2 * STRIDE + TIME],
            data.train.windows[chain.rows[2]],
        )


def test_interleaved_people_and_lone_windows(data):
    order = np.random.default_rng(0).permutation(3)
    rows = (
        np.arange(108).reshape(3, 36)[order].T.ravel()
    )  # One window of each, in turn.
    windows = data.train.windows[rows]
    windows[0] += 1  # Overlaps nothing any more.
    labels = {"subject": data.train.labels["subject"][rows]}
    found = recordings.stitch(Windows(windows, labels))
    assert sorted(len(chain.rows) for chain in found.chains) == [1, 8, *[9] * 11]


def test_unchanged_windows_come_back(data):
    found = recordings.stitch(data.test)
    same = recordings.release(found, lambda key, windows: windows, None, TIME)
    np.testing.assert_allclose(same, data.test.windows, atol=1e-5)


def test_a_sample_is_the_mean_of_its_windows(data):
    """Windows that are +1 and -1 in turn cancel where their weights are equal."""
    chain = recordings.Chain(np.arange(3), np.zeros((TIME + 2 * 8, 1), np.float32))
    signs = np.float32([1, -1, 1])[:, None, None]
    cut = recordings.release(
        recordings.Chains(8, [chain]),
        lambda key, windows: windows + signs,
        None,
        TIME,
    )
    weights = np.sin(np.pi * (np.arange(TIME) + 0.5) / TIME) ** 2
    middle = weights[8:] - weights[:8]  # The weights of two windows add up to 1.
    np.testing.assert_allclose(cut[0, :, 0], [*np.ones(8), *middle], atol=1e-6)


def rows(report, name):
    return [row for row in report["attacks"]["recordings"] if row["attribute"] == name]


def test_reports_quote_recordings_next_to_windows(cases, data):
    runs = [cases.Run(lambda key, windows: windows), cases.Run(cases.noise)]
    kept, lost = anonymizers.evaluate_each(
        runs, data, [0, 1], attacks=("tree", "recordings")
    )
    (row,) = rows(kept, "side")
    assert row["attacker"] == "tree" and row["scores"]["balanced_accuracy"] > 0.95
    assert rows(lost, "side")[0]["scores"]["balanced_accuracy"] < 0.75
    found = rows(kept, "activity")[0]["scores"]["balanced_accuracy"]
    assert found == pytest.approx(kept["utility"]["anonymized"]["balanced_accuracy"])
    sentence = next(x for x in kept["headline"] if "recordings as released" in x)
    assert sentence.startswith("Balanced accuracy on recordings as released: activity ")
    assert "side" in sentence and "by the tree" in sentence


def test_windows_without_an_order_in_time_are_not_measured(cases):
    report = anonymizers.evaluate(
        cases.Run(cases.noise), cases.data(), attacks=("tree", "recordings")
    )
    (row,) = rows(report, "side")
    assert row["scores"] is None and "order in time is unknown" in row["reason"]
    assert any("not measured, because windows do not" in x for x in report["headline"])
