"""Recordings become windows of the right rate, signal and people, or an error.

The cases come from public bug reports of comparable tools.
"""

import warnings
import zipfile

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from jaxanon.datasets import custom, import_recordings
from jaxanon.datasets.importing import convert, summary
from jaxanon.datasets.importing.options import Options
from jaxanon.datasets.importing.table import Labels, Table
from jaxanon.recordings import grid

SETTINGS = {"channels": ["x"], "labels": ["act"], "time": "time", "length": 64}


def signal(seconds, hertz=2.0):
    """Returns a signal in which no two windows are equal."""
    return np.sin(2 * np.pi * hertz * seconds) + 0.002 * seconds


def rows(hz, seconds, *, digits=6, scale=1.0, start=0.0, label="walk", hertz=2.0):
    t = np.arange(int(hz * seconds)) / hz
    return [
        f"{(start + a) * scale:.{digits}f},{b:.6f},{label}"
        for a, b in zip(t, signal(t, hertz), strict=True)
    ]


def write(folder, **people):
    """Writes lines to one file per person; returns the paths."""
    paths = []
    for person, lines in people.items():
        paths.append(folder / f"{person}.csv")
        paths[-1].write_text("time,x,act\n" + "\n".join(lines) + "\n")
    return paths


def imported(folder, paths, **settings):
    """Returns the arrays and the summary of an import."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        path = import_recordings(
            paths, folder / "own.npz", **SETTINGS | settings, overwrite=True
        )
    return custom.read_arrays(path), summary.read(path)


def rates_of(about):
    return {file["person"]: file["rate_hz"] for file in about["files"]}


def hertz(window, rate_hz):
    """Returns the strongest frequency of a window."""
    spectrum = np.abs(np.fft.rfft(window - window.mean(), 4096))
    return np.argmax(spectrum) * rate_hz / 4096


def test_rates_of_rounded_times(tmp_path):
    paths = write(tmp_path, ann=rows(80, 20, digits=3), bob=rows(64, 20, digits=2))
    arrays, about = imported(tmp_path, paths)
    assert rates_of(about) == {"ann": 80, "bob": 64} and arrays["rate_hz"] == 64
    np.testing.assert_array_equal(np.bincount(arrays["subject"]), [39, 39])
    # Bob's times are spaced evenly again, and Ann's signal is resampled.
    exact = signal(np.arange(64) / 64)
    for person in (0, 1):
        first = arrays["windows"][arrays["subject"] == person][0, :, 0]
        np.testing.assert_allclose(first[10:], exact[10:], atol=[0.01, 1e-5][person])
    arrays, _ = imported(tmp_path, paths[:1], rate_hz=80.0)
    np.testing.assert_allclose(
        arrays["windows"][0, :, 0], signal(np.arange(64) / 80), atol=1e-5
    )


def test_recordings_of_different_rates_keep_their_frequencies(tmp_path):
    paths = write(tmp_path, ann=rows(50, 20), bob=rows(25, 20))
    for rate_hz, expected in ((None, 25), (50.0, 50), (40.0, 40)):
        arrays, about = imported(tmp_path, paths, rate_hz=rate_hz)
        assert arrays["rate_hz"] == expected
        assert rates_of(about) == {"ann": 50, "bob": 25}
        for window in arrays["windows"][..., 0]:
            assert hertz(window, expected) == pytest.approx(2, abs=0.2)
    with pytest.raises(ValueError, match="bob.csv at 25 Hz, .*ann.csv at 50 Hz"):
        imported(tmp_path, paths, resample=False)


def test_frequencies_above_the_common_rate_are_filtered(tmp_path):
    paths = write(tmp_path, ann=rows(100, 20, hertz=17.0), bob=rows(25, 20))
    arrays, _ = imported(tmp_path, paths)
    ann = arrays["windows"][arrays["subject"] == 0]
    middle = ann[1:-1, :, 0] - ann[1:-1, :, 0].mean(axis=1, keepdims=True)
    assert np.abs(middle).max() < 0.05  # 17 Hz would be 8 Hz at 25 Hz.


def test_a_rate_that_changes_within_a_file(tmp_path):
    lines = rows(50, 20) + rows(25, 20, start=100, label="run")
    arrays, about = imported(tmp_path, write(tmp_path, ann=lines))
    assert arrays["rate_hz"] == 25
    assert sorted(file["rate_hz"] for file in about["files"]) == [25, 50]
    for window in arrays["windows"][..., 0]:
        assert hertz(window, 25) == pytest.approx(2, abs=0.2)


@pytest.mark.parametrize(
    ("scale", "start", "found"),
    [
        *((1e3, 1.77e9, "ms"), (1e6, 1.77e9, "us"), (1e9, 1.77e9, "ns")),
        *((1.0, 1.77e9, "s"), (1e9, 3600.0, "ns")),
    ],
)
def test_units_of_time_may_differ_from_file_to_file(tmp_path, scale, start, found):
    lines = rows(50, 10, digits=0 if scale > 1 else 2, scale=scale, start=start)
    arrays, about = imported(tmp_path, write(tmp_path, ann=lines, bob=rows(50, 10)))
    assert arrays["rate_hz"] == 50 and rates_of(about) == {"ann": 50, "bob": 50}
    assert [file["times"] for file in about["files"]] == [found, "s"]
    ann, bob = arrays["windows"][:14], arrays["windows"][14:]
    np.testing.assert_allclose(ann, bob, atol=1e-5)


def test_dates_and_day_first_times(tmp_path):
    iso = [f"2026-03-02T08:00:{i / 50:06.3f}Z,{i},walk" for i in range(640)]
    german = [f"02.03.2026 08:00:{i / 50:06.3f},{i},walk" for i in range(640)]
    paths = write(tmp_path, ann=iso, bob=german)
    arrays, about = imported(tmp_path, paths[:1])
    assert arrays["rate_hz"] == 50 and about["files"][0]["times"] == "iso"
    np.testing.assert_array_equal(arrays["windows"][0, :, 0], np.arange(64))
    with pytest.raises(ValueError, match=r"bob.csv: times .*give its format"):
        imported(tmp_path, paths[1:])
    again, _ = imported(tmp_path, paths[1:], time_format="%d.%m.%Y %H:%M:%S.%f")
    np.testing.assert_array_equal(again["windows"], arrays["windows"])


def test_repeated_times_lose_few_windows_and_are_counted(tmp_path):
    lines = rows(50, 60, digits=3)
    for i in range(99, len(lines), 100):
        lines[i] = ",".join([lines[i - 1].split(",")[0], *lines[i].split(",")[1:]])
    arrays, about = imported(tmp_path, write(tmp_path, ann=lines))
    assert len(arrays["windows"]) >= 0.95 * ((3000 - 64) // 32 + 1)
    assert about["losses"]["repeat"] == {"rows": 30, "files": 1, "first": "ann.csv"}


def test_missing_rows_are_interpolated(tmp_path):
    kept = np.flatnonzero(np.random.default_rng(0).random(3800) < 0.7)
    lines = [f"{i / 50:.3f},{i},walk" for i in kept]
    arrays, about = imported(tmp_path, write(tmp_path, ann=lines))
    assert arrays["rate_hz"] == 50
    assert len(arrays["windows"]) >= 0.95 * ((3800 - 64) // 32 + 1)
    steps = np.diff(arrays["windows"][..., 0], axis=1)
    np.testing.assert_allclose(steps, 1, atol=1e-3)
    assert about["events"]["interpolated rows"] == kept[-1] - kept[0] + 1 - len(kept)
    split, about = imported(tmp_path, [tmp_path / "ann.csv"], max_gap_s=0.05)
    assert len(split["windows"]) < len(arrays["windows"]) / 2
    assert about["events"]["gaps"] > 10
    np.testing.assert_allclose(np.diff(split["windows"][..., 0], axis=1), 1, atol=1e-3)


def test_a_change_of_label_between_grid_points_counts_once(tmp_path):
    lines = rows(50, 4) + rows(50, 4, start=4.007, label="run")
    _, about = imported(tmp_path, write(tmp_path, ann=lines))
    assert about["events"] == {"label changes": 1}


def test_packets_are_spread_evenly(tmp_path):
    lines = [f"{i // 10 / 5:.1f},{i},walk" for i in range(2000)]
    arrays, about = imported(tmp_path, write(tmp_path, ann=lines))
    assert rates_of(about) == {"ann": 50}
    np.testing.assert_allclose(np.diff(arrays["windows"][..., 0]), 1, atol=1e-3)
    assert "repeat" not in about["losses"]


def test_rows_that_were_logged_twice_count_once(tmp_path):
    lines = [line for line in rows(50, 10, digits=2) for _ in range(2)]
    arrays, about = imported(tmp_path, write(tmp_path, ann=lines))
    assert rates_of(about) == {"ann": 50}
    assert about["losses"]["repeat"]["rows"] == 500 and len(arrays["windows"]) == 14


def test_a_sensor_with_its_own_rate_is_interpolated(tmp_path):
    lines = [f"{i / 50},{i},{i / 50 if i % 50 == 0 else ''},sit" for i in range(951)]
    (tmp_path / "ann.csv").write_text("time,x,heart,act\n" + "\n".join(lines))
    arrays, about = imported(tmp_path, [tmp_path / "ann.csv"], channels=["x", "heart"])
    assert about["own_rate_hz"] == {"heart": 1.0}
    assert any(line.startswith("heart has its own") for line in summary.lines(about))
    x, heart = np.moveaxis(arrays["windows"], 2, 0)
    np.testing.assert_allclose(heart[:-1], x[:-1] / 50, atol=1e-4)
    assert "missing number" not in about["losses"]


def test_lost_persons_and_classes_are_errors_unless_allowed(tmp_path):
    falls = [
        line for k in range(10) for line in rows(50, 1, start=100 + 5 * k, label="fall")
    ]
    paths = write(tmp_path, ann=rows(50, 20) + falls, bob=rows(50, 1.2))
    with pytest.raises(ValueError, match=r"act 'fall' .* subject 'bob' \(60 rows\)"):
        imported(tmp_path, paths)
    arrays, about = imported(tmp_path, paths, allow_lost=True)
    assert about["lost"] == {"act": ["fall"], "subject": ["bob"]}
    assert about["losses"]["short stretch"] == {
        "rows": 560,
        "files": 2,
        "first": "ann.csv",
    }
    assert arrays["subject_names"].tolist() == ["ann"]


def test_many_equal_losses_are_one_warning(tmp_path):
    lines = rows(50, 10)
    lines[100] = "2.0,,walk"
    paths = write(tmp_path, **{f"p{n}": lines for n in range(12)})
    with pytest.warns(UserWarning) as caught:
        import_recordings(paths, tmp_path / "own.npz", **SETTINGS)
    (warning,) = caught
    assert "12 of 6000 rows are in no window (12 missing number)" in str(
        warning.message
    )
    about = summary.read(tmp_path / "own.npz")
    assert about["losses"]["missing number"]["files"] == 12


def test_every_row_is_in_a_window_or_counted(tmp_path):
    lines = rows(50, 11.5) + rows(50, 3.3, start=11.5, label="run")
    lines += rows(50, 9.7, start=30, label="run") + rows(50, 0.7, start=60)
    _, about = imported(tmp_path, write(tmp_path, ann=lines), stride=64)
    lost = sum(loss["rows"] for loss in about["losses"].values())
    assert lost + about["windows"] * 64 == about["rows"] == len(lines)
    assert {*about["losses"]} == {
        "short stretch",
        "rest before a gap",
        "rest before a label change",
    }


def test_numbers_become_classes_between_bounds(tmp_path):
    (tmp_path / "ann.csv").write_text(
        "time,x,act\n"
        + "\n".join(f"{i / 50},{i},{20 + 20 * (i // 200)}" for i in range(600))
    )
    settings = {
        "people": {"ann": {"weight": "81.5"}},
        "bins": {"act": [30, 50], "weight": [60]},
    }
    arrays, about = imported(tmp_path, [tmp_path / "ann.csv"], **settings)
    assert arrays["act_names"].tolist() == ["30-50", "<30", ">=50"]
    assert about["classes"]["weight"] == {">=60": about["windows"]}
    for wrong, why in (
        ({"height": [1]}, "bins must be of the attributes"),
        ({"act": [50, 30]}, "numbers that increase"),
        ({"act": []}, "numbers that increase"),
    ):
        with pytest.raises(ValueError, match=why):
            imported(tmp_path, [tmp_path / "ann.csv"], bins=wrong)
    (tmp_path / "ann.csv").write_text("time,x,act\n0,1,old\n0.1,1,old\n")
    with pytest.raises(ValueError, match="act must have numbers for bins .*'old'"):
        imported(tmp_path, [tmp_path / "ann.csv"], bins={"act": [30]})


def test_the_summary_is_a_member_of_the_file(tmp_path):
    arrays, about = imported(tmp_path, write(tmp_path, ann=rows(50, 10)))
    with zipfile.ZipFile(tmp_path / "own.npz") as archive:
        assert archive.testzip() is None and "import.json" in archive.namelist()
    assert about["rows"] == 500 and about["windows"] == len(arrays["windows"]) == 14
    assert about["windows_by_person"] == {"people": ["ann"], "act": [[14]]}
    np.savez(tmp_path / "plain.npz", x=1)
    assert summary.read(tmp_path / "plain.npz") is None
    (tmp_path / "text.npz").write_text("oh")
    with pytest.raises(ValueError, match="must be an .npz file"):
        summary.read(tmp_path / "text.npz")


@given(
    seed=st.integers(0, 10**6),
    hz=st.sampled_from([20.0, 25.0, 50.0, 64.0, 80.0, 100.0]),
    digits=st.sampled_from([3, 6]),
    start=st.sampled_from([0.0, 12.345, 1.77e9]),
    faults=st.sets(st.sampled_from(["lost", "swapped", "repeated", "gap", "NaN"])),
    chunk=st.sampled_from([128, 1 << 18]),
)
def test_kept_windows_are_the_known_signal(seed, hz, digits, start, faults, chunk):
    """A line is interpolated exactly, so that every kept window must be a line."""
    rng = np.random.default_rng(seed)
    index = np.arange(1500)
    if "lost" in faults:
        index = index[rng.random(len(index)) > 0.2]
    if "gap" in faults:
        index = index[(index < 700) | (index > 700 + 2 * hz)]
    seconds = np.round(start + index / hz, digits)
    values = index.astype(float)
    codes = (index > 1000).astype(np.int32)
    some = rng.choice(np.arange(5, len(index) - 5, 3), 20, replace=False)
    if "swapped" in faults:
        order = np.arange(len(index))
        order[some[:10]], order[some[:10] + 1] = some[:10] + 1, some[:10]
        seconds, values, codes = seconds[order], values[order], codes[order]
    if "repeated" in faults:
        again = np.sort(np.concatenate([np.arange(len(seconds)), some[10:15]]))
        seconds, values, codes = seconds[again], values[again], codes[again]
    if "NaN" in faults:
        values[some[15:]] = np.nan
    table = Table(
        source="ann.csv",
        samples=values[:, None],
        channels=("x",),
        units=("",),
        times=seconds,
        labels={"act": Labels(codes, ("sit", "walk"))},
        subject=None,
        stem="ann",
        losses={},
        first_lines={},
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jaxanon.datasets.importing.stretches.CHUNK", chunk)
        arrays, about = convert.to_windows(
            lambda: [table], Options(length=32, stride=16)
        )
    assert arrays["rate_hz"] == hz
    windows = arrays["windows"][..., 0]
    # Times rounded to milliseconds that cannot be spaced evenly are off by half of one.
    tolerance = 1.5e-3 * hz if digits == 3 else 2e-3
    np.testing.assert_allclose(np.diff(windows, axis=1), 1, atol=tolerance)
    expected = 1500 if "gap" not in faults else 1500 - 2 * hz
    assert len(windows) >= (expected - 3 * 48) // 16
    walks = arrays["act_names"][arrays["act"]] == "walk"
    assert (windows[walks].min() > 1000 - 0.1) and (windows[~walks].max() < 1001)
    used = about["rows"] - sum(loss["rows"] for loss in about["losses"].values())
    assert used <= windows.size


def test_long_recordings_are_cut_like_short_ones():
    """Windows do not depend on the pieces in which rows are put on the grid."""
    rng = np.random.default_rng(0)
    index = np.flatnonzero(rng.random(3000) > 0.1)
    table = Table(
        source="ann.csv",
        samples=rng.normal(size=(len(index), 2)),
        channels=("x", "y"),
        units=("", ""),
        times=index / 50 + rng.uniform(0, 0.004, len(index)),
        labels={"act": Labels((index // 430 % 2).astype(np.int32), ("a", "b"))},
        subject=None,
        stem="ann",
        losses={},
        first_lines={},
    )
    for stride in (7, 20, 33):
        results = []
        for chunk in (1 << 18, 64, 101):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("jaxanon.datasets.importing.stretches.CHUNK", chunk)
                results.append(
                    convert.to_windows(
                        lambda: [table], Options(length=20, stride=stride)
                    )
                )
        for arrays, about in results[1:]:
            np.testing.assert_allclose(
                arrays["windows"], results[0][0]["windows"], atol=1e-6
            )
            np.testing.assert_array_equal(arrays["act"], results[0][0]["act"])
            assert about["losses"] == results[0][1]["losses"]


def test_the_grid_is_that_of_a_device():
    """Windows equal those that a ``Grid`` passes on, as ``jaxanon.edge`` uses it."""
    rng = np.random.default_rng(1)
    seconds = np.flatnonzero(rng.random(600) > 0.2) / 50
    seconds = seconds + rng.uniform(0, 0.003, len(seconds))
    samples = rng.normal(size=(len(seconds), 1))
    table = Table(
        source="ann.csv",
        samples=samples,
        channels=("x",),
        units=("",),
        times=seconds,
        labels={},
        subject=None,
        stem="ann",
        losses={},
        first_lines={},
    )
    arrays, _ = convert.to_windows(
        lambda: [table], Options(length=32, stride=32, rate_hz=50.0)
    )
    events = grid.Grid(50.0, 1, max_gap=12.5).push(seconds, samples)
    points = np.concatenate([e.samples for e in events if isinstance(e, grid.Samples)])
    count = len(points) // 32
    assert len(arrays["windows"]) == count
    np.testing.assert_allclose(
        arrays["windows"], points[: 32 * count].reshape(count, 32, 1), atol=1e-6
    )
