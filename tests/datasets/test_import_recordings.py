"""CSV recordings become windows of one class each, or an error with the line."""

import itertools
import warnings
import zipfile

import hypothesis.strategies as st
import numpy as np
import pytest
from custom_csv import made, recorded
from hypothesis import given

from jaxanon.cli import app
from jaxanon.datasets import import_recordings, load
from jaxanon.datasets.importing import summary

PEOPLE = {"ann": {"gender": "female"}, "bob": {"gender": "male"}}


@pytest.fixture
def folder(tmp_path):
    return recorded(tmp_path)


def test_windows_are_cut_within_each_act(folder):
    arrays = made(folder, "ann")
    np.testing.assert_array_equal(arrays["windows"][:, 0, 0], [0, 2, 4, 6, 10, 12])
    np.testing.assert_array_equal(
        arrays["windows"][4], [[i, -i] for i in range(10, 14)]
    )
    np.testing.assert_array_equal(arrays["act"], [0, 0, 0, 0, 1, 1])
    assert arrays["act_names"].tolist() == ["sit", "walk"]
    assert arrays["subject_names"].tolist() == ["ann"]
    assert arrays["channels"].tolist() == ["x", "y"] and arrays["rate_hz"] == 10.0
    assert "units" not in arrays


def test_strides_units_and_people(folder):
    (folder / "bob.csv").write_text((folder / "ann.csv").read_text())
    arrays = made(folder, "bob", "ann", stride=1, units=["g"], people=PEOPLE)
    assert arrays["units"].tolist() == ["g", "g"]
    np.testing.assert_array_equal(arrays["subject"], [1] * 10 + [0] * 10)
    np.testing.assert_array_equal(arrays["gender"], arrays["subject"])
    assert arrays["gender_names"].tolist() == ["female", "male"]
    data = load(folder / "own.npz", public="act", private=["gender"])
    assert data.spec.units == ("g", "g") and data.spec.classes["act"] == ("sit", "walk")


def test_a_person_s_column_and_a_file_s_order_hold(folder):
    lines = ["who,x,y,act", *("ann,1,1,sit",) * 3, *("bob,2,2,sit",) * 4]
    (folder / "all.csv").write_text("\n".join(lines))
    arrays = made(folder, "all", subject="who", length=3)
    np.testing.assert_array_equal(arrays["windows"][:, 0, 0], [1, 2, 2])
    assert arrays["subject_names"].tolist() == ["ann", "bob"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_what_spreadsheets_write_is_read(folder, delimiter):
    text = (folder / "ann.csv").read_text()
    expected = made(folder, "ann")["windows"]
    text = text.replace(",", f" {delimiter} ").replace("\n", "\r\n") + "\r\n"
    (folder / "ann.csv").write_text("\ufeff" + text, encoding="utf-8", newline="")
    found = made(folder, "ann", overwrite=True)
    np.testing.assert_array_equal(found["windows"], expected)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (",0,sit", "missing number"),
        ("4,NaN,sit", "missing number"),
        ("4,-4,", "missing label"),
        ("4,-4,NaN", "missing label"),
    ],
)
def test_short_gaps_are_interpolated_and_longer_ones_end_a_stretch(folder, line, told):
    lines = (folder / "ann.csv").read_text().splitlines()
    lines[5] = line  # Row 5, where x = 4.
    (folder / "ann.csv").write_text("\n".join(lines))
    with pytest.warns(UserWarning, match=f"1 of 16 rows .*1 {told}"):
        arrays = made(folder, "ann")
    np.testing.assert_allclose(arrays["windows"][:, 0, 0], [0, 2, 4, 6, 10, 12])
    with pytest.warns(UserWarning, match=f"rows are in no window .*1 {told}"):
        arrays = made(folder, "ann", max_gap_s=0.15, overwrite=True)
    np.testing.assert_array_equal(arrays["windows"][:, 0, 0], [0, 5, 10, 12])
    assert arrays["act_names"].tolist() == ["sit", "walk"]


def test_gaps_in_time_end_a_stretch(folder):
    seconds = [0.0, 0.1, 0.2, 0.3, 0.6, 0.7, 0.8, 0.9, 1.3, 1.4, 1.5, 1.6, 0.0, 0.1]
    lines = [f"{t},{i},0,sit" for i, t in enumerate(seconds)]
    (folder / "bob.csv").write_text("\n".join(["t,x,y,act", *lines]))
    with pytest.warns(UserWarning, match="2 out of order"):
        arrays = made(folder, "bob", time="t", rate_hz=None, stride=1)
    # Three periods from 3 to 4 are interpolated; four from 7 to 8 are too many.
    assert arrays["rate_hz"] == 10.0
    expected = [0, 1, 2, 3, 3 + 1 / 3, 3 + 2 / 3, 4, 8]
    np.testing.assert_allclose(arrays["windows"][:, 0, 0], expected, rtol=1e-6)
    with pytest.raises(
        ValueError, match="rate_hz must agree with the times, which give 10 Hz .* 50"
    ):
        settings = {"time": "t", "rate_hz": 50.0, "resample": False}
        made(folder, "bob", overwrite=True, **settings)


def test_persons_and_classes_without_a_window_are_named(folder):
    (folder / "bob.csv").write_text("x,y,act\n1,1,run\n1,1,run\n")
    with pytest.raises(
        ValueError, match=r"none of act 'run' \(2 rows\) and subject 'bob' \(2 rows\)"
    ):
        made(folder, "ann", "bob")
    assert not (folder / "own.npz").exists()
    with pytest.warns(UserWarning, match="2 of 18 rows are in no window"):
        arrays = made(folder, "ann", "bob", allow_lost=True)
    assert arrays["subject_names"].tolist() == ["ann"]
    assert arrays["act_names"].tolist() == ["sit", "walk"]
    about = summary.read(folder / "own.npz")
    assert about["lost"] == {"act": ["run"], "subject": ["bob"]}
    lines = summary.lines(about)
    assert "No window: subject 'bob'." in lines and lines[-1].endswith(
        "x, y without units."
    )


def test_the_summary_names_channels_and_units(folder):
    for units, shown in (["mg"], "x, y in g"), (["g", "deg/s"], "x [g], y [deg/s]"):
        made(folder, "ann", units=units, overwrite=True)
        about = summary.read(folder / "own.npz")
        assert summary.lines(about)[-1] == f"Channels: {shown}."


def test_rows_of_several_people_may_alternate(folder):
    lines = [f"{i / 10},{who},{i},0,sit" for i in range(8) for who in ("bob", "ann")]
    (folder / "all.csv").write_text("\n".join(["t,who,x,y,act", *lines]))
    arrays = made(folder, "all", subject="who", time="t", rate_hz=None)
    assert arrays["rate_hz"] == 10.0
    names = arrays["subject_names"][arrays["subject"]]
    assert sorted(names.tolist()) == ["ann"] * 3 + ["bob"] * 3
    np.testing.assert_array_equal(arrays["windows"][:, 0, 0], [0, 2, 4, 0, 2, 4])


@pytest.mark.parametrize("begin", [0.0, 1700000000.1])
def test_three_periods_are_no_gap_however_they_were_rounded(folder, begin):
    at = [0.0, 0.02, 0.08, 0.14, 0.16, 0.18]  # At 50 Hz.
    lines = [f"{begin + t:.2f},{i},0,sit" for i, t in enumerate(at)]
    (folder / "bob.csv").write_text("\n".join(["t,x,y,act", *lines]))
    windows = made(folder, "bob", time="t", rate_hz=50.0, length=6)["windows"]
    expected = [0, 1, 4 / 3, 5 / 3, 2, 7 / 3, 8 / 3, 3, 4]
    np.testing.assert_allclose(windows[:, :, 0].ravel()[:6], expected[:6], rtol=1e-5)
    np.testing.assert_allclose(windows[1, :, 0], [*expected[3:], 5][:6], rtol=1e-5)


def test_rows_that_share_whole_seconds_are_spaced_evenly(folder):
    lines = [f"{i // 10},{i},0,sit" for i in range(40)]
    (folder / "bob.csv").write_text("\n".join(["t,x,y,act", *lines]))
    arrays = made(folder, "bob", time="t", rate_hz=None, length=8)
    assert arrays["rate_hz"] == pytest.approx(10, rel=0.05)
    first = arrays["windows"][:, 0, 0]
    np.testing.assert_allclose(first, 4 * np.arange(9), rtol=0.05)


def test_files_that_are_too_short_together_are_told_of_together(folder):
    (folder / "bob.csv").write_text((folder / "ann.csv").read_text())
    with pytest.raises(
        ValueError, match="'bob.csv', 'ann.csv': a stretch of one person"
    ):
        made(folder, "bob", "ann", length=100)


def test_blank_lines_and_quotes_and_a_delimiter_at_the_end(folder):
    text = 'x, y, "act",\n1, 2, "sit",\n\n  \n3, 4, "sit",\n'
    (folder / "bob.csv").write_text(text)
    arrays = made(folder, "bob", length=2)
    np.testing.assert_array_equal(arrays["windows"], [[[1, 2], [3, 4]]])
    assert arrays["act_names"].tolist() == ["sit"]
    (folder / "bob.csv").write_text(text.replace("  \n", ",,,\n"))
    with pytest.warns(UserWarning, match="1 of 3 rows .*1 missing"):
        arrays = made(folder, "bob", length=1, overwrite=True)
    np.testing.assert_allclose(arrays["windows"][:, 0, 0], [1, 2, 3])


@given(
    acts=st.lists(st.sampled_from(["sit", "walk", ""]), min_size=1, max_size=40),
    empty=st.sets(st.integers(0, 39), max_size=3),
    length=st.integers(1, 6),
    stride=st.integers(1, 4),
)
def test_every_window_is_of_consecutive_rows_of_one_act(
    tmp_path_factory, acts, empty, length, stride
):
    folder = tmp_path_factory.mktemp("own")
    lines = [f"{i if i not in empty else ''},0,{act}" for i, act in enumerate(acts)]
    (folder / "ann.csv").write_text("\n".join(["x,y,act", *lines]))
    # The slow version: whole rows, run by run, each cut from its start.
    good = [i for i, act in enumerate(acts) if act and i not in empty]
    expected = []
    for _, run in itertools.groupby(
        enumerate(good), lambda pair: (pair[1] - pair[0], acts[pair[1]])
    ):
        rows = [row for _, row in run]
        expected += [rows[0] + at for at in range(0, len(rows) - length + 1, stride)]
    settings = {"length": length, "stride": stride, "allow_lost": True}
    settings["max_gap_s"] = 0.15  # At 10 Hz, no missing row is interpolated.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        if not expected:
            with pytest.raises(ValueError, match="ann.csv': a stretch of one person"):
                made(folder, "ann", **settings)
            return
        arrays = made(folder, "ann", **settings)
    found = arrays["windows"][..., 0]
    np.testing.assert_array_equal(found[:, 0], expected)
    np.testing.assert_array_equal(found - found[:, :1], [range(length)] * len(found))
    names = arrays["act_names"][arrays["act"]]
    assert names.tolist() == [acts[int(start)] for start in found[:, 0]]


def test_the_command_counts_what_it_made(folder, capsys):
    (folder / "people.csv").write_text("subject,gender\nann,female\n")
    words = ["datasets", "import", str(folder / "ann.csv"), "--length", "4"]
    words += [
        "--output",
        str(folder / "own.npz"),
        "--people",
        str(folder / "people.csv"),
    ]
    words += [
        "--channels",
        "x",
        "y",
        "--labels",
        "act",
        "--rate-hz",
        "10",
        "--units",
        "g",
    ]
    assert app.main(words) == 0
    told = capsys.readouterr().out
    table = told.splitlines()
    assert ["windows", "by", "act", "sit", "walk", "all"] in [t.split() for t in table]
    assert ["ann", "4", "2", "6"] in [line.split() for line in table]
    assert "gender: female 6" in table
    assert "6 windows of 4 samples at 10 Hz" in told
    for show in (["show"], []):
        assert app.main(["datasets", *show, str(folder / "own.npz")]) == 0
        assert capsys.readouterr().out.splitlines() == table[:-1]
    assert app.main(words) == 2
    assert "exists; pass overwrite=True (--overwrite)" in capsys.readouterr().err


def test_the_command_takes_formats_bins_and_gaps(tmp_path, capsys):
    lines = [f"02.03.2026 08:00:{i / 10:04.1f},{i},{i}" for i in range(40)]
    (tmp_path / "ann.csv").write_text("\n".join(["t,x,age", *lines]))
    words = ["datasets", "import", str(tmp_path / "ann.csv"), "--channels", "x"]
    words += ["--output", str(tmp_path / "own.npz"), "--labels", "age", "--time", "t"]
    words += ["--time-format", "%d.%m.%Y %H:%M:%S.%f", "--max-gap-s", "0.5"]
    words += ["--length", "8", "--resample", "no", "--allow-lost"]
    assert app.main([*words, "--bins", "age=10,35"]) == 0
    shown = capsys.readouterr().out
    assert "times in %d.%m.%Y" in shown and "No window: age '>=35'." in shown
    assert app.main([*words, "--bins", "age:10", "--overwrite"]) == 2
    assert "bins must be like age=30,50, got 'age:10'" in capsys.readouterr().err


@pytest.mark.parametrize("hz", [[10], [20, 10]])  # A lower rate restarts the windows.
def test_checksums_and_sizes_of_the_archive_are_right(tmp_path, hz):
    for n, rate in enumerate(hz):
        rows = "".join(f"{i / rate},{i}\n" for i in range(100))
        (tmp_path / f"p{n}.csv").write_text("time,x\n" + rows)
    paths = [tmp_path / f"p{n}.csv" for n in range(len(hz))]
    output = tmp_path / "own.npz"
    import_recordings(paths, output, channels=["x"], time="time", length=10)
    with zipfile.ZipFile(output) as archive:
        assert archive.testzip() is None
        sizes = sum(i.compress_size + len(i.filename) for i in archive.infolist())
    assert output.stat().st_size < sizes + 2000  # Nothing is left of earlier windows.
    with np.load(output) as arrays:
        expected = 19 + (9 if len(hz) > 1 else 0)
        assert arrays["windows"].shape == (expected, 10, 1)
        np.testing.assert_array_equal(arrays["windows"][-1, :, 0], np.arange(90, 100))
