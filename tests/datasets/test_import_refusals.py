"""Files that yield no windows raise an error with the file and the line."""

import zipfile

import numpy as np
import pytest
from custom_csv import CHOICE, made, recorded

from jaxanon.datasets import import_recordings
from jaxanon.datasets.importing import summary


@pytest.fixture
def folder(tmp_path):
    return recorded(tmp_path)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (
            {"channels": ["x", "z"]},
            r"ann.csv': it must have exactly one column 'z', .*\['x', 'y",
        ),
        (
            {"channels": []},
            r"channels .* got none; 'ann.csv' has the columns \['x', 'y', 'act'\]",
        ),
        (
            {"labels": ["act_names"]},
            "labels must not use reserved names .*, got 'act_names'",
        ),
        (
            {"people": {"ann": {"windows": "2"}}},
            "people must not use reserved .* got 'windows'",
        ),
        (
            {"people": {"ann": {"side": ""}}},
            r"people must give each person a class of \['side'\]",
        ),
        ({"channels": ["act", "y"], "labels": ["x"]}, "line 2: act must be a number"),
        ({"channels": ["x", "x"]}, "channels and labels must be distinct"),
        (
            {"labels": ["subject"]},
            "labels must not use reserved names .*, got 'subject'",
        ),
        (
            {"rate_hz": None},
            r"rate_hz .--rate-hz, rows per second. or time .* neither; 'ann.csv' has",
        ),
        ({"rate_hz": 0.0}, "rate_hz must be > 0 and finite"),
        ({"length": 11}, "as long as a window of 11 samples at 10 Hz, got none in 16"),
        ({"length": 0}, "length must be at least 1"),
        ({"stride": 0}, "stride must be at least 1"),
        ({"units": ["g", "g", "g"]}, "units must be one for all channels or one for"),
        (
            {"people": {"bob": {"gender": "male"}}},
            "people must have an entry .* for 'ann' of ann.csv",
        ),
        ({"people": {"ann": {"act": "run"}}}, "no other attribute or column"),
        ({"time": "act"}, "ann.csv: times must be numbers or ISO 8601"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_written(folder, settings, why):
    with pytest.raises(ValueError, match=why):
        made(folder, "ann", **settings)
    assert [path.name for path in folder.iterdir()] == ["ann.csv"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "ann.csv: it must hold a header and rows, got no line"),
        ("x,y,act\n1,2\n", "ann.csv, line 2: a row must have 3 cells"),
        ("x,y,act\n1_0,2,sit\n", "line 2: x must be a number"),
        ("x,y,act\n1e39,2,sit\n", "line 2: x must be a number"),
        ("x,y,act\n1;5,2,sit\n", "line 2: x must be a number, or empty"),
        ("x,y,act\ninf,2,sit\n", "line 2: x must be a number"),
        ("x,y,x,act\n1,2,3,sit\n", "it must have exactly one column 'x'"),
        ("x,y,act\n", "'ann.csv': .* got none in 0 rows"),
    ],
)
def test_damage_is_told_with_its_line(folder, text, why):
    (folder / "ann.csv").write_text(text)
    with pytest.raises(ValueError, match=why):
        made(folder, "ann")


def test_files_are_looked_for_and_never_replaced_unasked(folder):
    with pytest.raises(FileNotFoundError, match="nobody.csv"):
        made(folder, "nobody")
    with pytest.raises(ValueError, match="paths must have at least one CSV file"):
        made(folder)
    (folder / "in").mkdir()
    (folder / "in" / "ann.csv").write_text((folder / "ann.csv").read_text())
    with pytest.raises(ValueError, match="paths must have distinct file names"):
        made(folder, "ann", "in/ann")
    (folder / "ann.csv").rename(folder / "in" / "bob.csv")
    (folder / "in" / "ann.csv").rename(folder / "ann.csv")
    assert len(made(folder, "ann", "in/bob")["windows"]) == 12
    (folder / "own.npz").unlink()
    with pytest.raises(ValueError, match=r"must end in \.npz"):
        import_recordings([folder / "ann.csv"], folder / "own.npy", **CHOICE)
    with pytest.raises(ValueError, match="paths must be distinct"):
        import_recordings(
            [folder / "ann.csv"] * 2, folder / "own.npz", subject="act", **CHOICE
        )
    for wrong in ({"channels": "x"}, {"labels": "act"}, {"units": "g"}):
        with pytest.raises(TypeError, match="must be a list, got"):
            made(folder, "ann", **wrong)
    with pytest.raises(TypeError, match="paths must be a list, got"):
        import_recordings(folder / "ann.csv", folder / "own.npz", **CHOICE)
    for wrong in ({"length": 2.5}, {"stride": 2.5}, {"stride": True}):
        with pytest.raises(TypeError, match="must be a whole number of samples"):
            made(folder, "ann", **wrong)
    (folder / "own.npz").touch()
    with pytest.raises(FileExistsError, match="own.npz exists"):
        made(folder, "ann")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("subject,gender\nann,female\nann,male\n", "people.csv, line 3: a line must"),
        ("subject,gender\nann,\n", "people.csv, line 2: a line must have a new person"),
        (
            "subject,gender\n,male\n",
            "people.csv, line 2: a line must have a new person",
        ),
        ("subject\nann\n", "people.csv must have one column 'subject' and at least"),
        ("subject,gender\n", "people.csv must have at least one person"),
        ("subject,split\nann,1\n", "people.csv must not use reserved .* got 'split'"),
        (
            "subject,act\nann,run\n",
            "people.csv must give .* no other attribute or column",
        ),
        (
            "subject,gender\nbob,male\n",
            "people must have an entry .* for 'ann' of .*ann.csv",
        ),
    ],
)
def test_people_are_named_once_and_wholly(folder, text, why):
    (folder / "people.csv").write_text(text)
    with pytest.raises(ValueError, match=why):
        made(folder, "ann", people=folder / "people.csv")


def timed(folder, name, hz, *, scale=1.0, digits=6, rows=400, kept=None):
    """Writes a file at ``hz`` rows per second, only the rows at ``kept`` if given."""
    at = np.arange(rows) if kept is None else np.flatnonzero(kept)
    lines = [f"{scale * i / hz:.{digits}f},{i % 7},0,sit" for i in at]
    (folder / f"{name}.csv").write_text("\n".join(["t,x,y,act", *lines]) + "\n")


@pytest.mark.parametrize(
    ("second", "why"),
    [
        ({"hz": 25}, r"bob.csv at 25 Hz, .*ann.csv at 50 Hz; .* allow resampling"),
        ({"hz": 55}, r"ann.csv at 50 Hz, .*bob.csv at 55 Hz; .* allow resampling"),
        (
            {"hz": 6.4, "digits": 1},
            r"bob.csv at 6.4\d* Hz, .*ann.csv at 50 Hz; .*allow r",
        ),
        ({"hz": 0.1}, r"bob.csv at 0.1 Hz, .*"),
    ],
)
def test_files_of_different_rates_are_refused_by_name(tmp_path, second, why):
    timed(tmp_path, "ann", 50)
    timed(tmp_path, "bob", **second)
    settings = {"time": "t", "resample": False, "time_format": "s"}
    with pytest.raises(ValueError, match="paths must be files of one .*" + why):
        made(tmp_path, "ann", "bob", **settings, rate_hz=None)
    with pytest.raises(ValueError, match=r"rate_hz must agree .*bob.csv, got 50"):
        made(tmp_path, "ann", "bob", **settings, rate_hz=50.0)
    assert not (tmp_path / "own.npz").exists()


def test_rates_that_differ_by_the_unit_of_time_are_refused(tmp_path):
    timed(tmp_path, "ann", 50)
    timed(tmp_path, "bob", 50, scale=1000)
    with pytest.raises(ValueError, match=r"bob.csv: times .* \(milliseconds\?\)"):
        made(tmp_path, "ann", "bob", time="t", rate_hz=None)
    for rate_hz, why in ((None, "bob.csv at 0.05 Hz"), (50.0, "fit the times")):
        with pytest.raises(ValueError, match=f"{why}.*times .*in another unit"):
            settings = {"time_format": "s", "rate_hz": rate_hz}
            made(tmp_path, "ann", "bob", time="t", **settings)
    arrays = made(tmp_path, "ann", "bob", time="t", rate_hz=50.0)
    assert np.bincount(arrays["subject"]).tolist() == [199, 199]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"hz": 50}, {"hz": 51}),  # The clocks differ.
        ({"hz": 50}, {"hz": 50, "scale": 1 + 1e-5, "digits": 3}),
        ({"hz": 64}, {"hz": 64, "digits": 2}),  # Steps of 0.01 and 0.02 s.
        ({"hz": 80}, {"hz": 80, "digits": 2}),
        ({"hz": 80}, {"hz": 80, "digits": 3}),
        ({"hz": 50}, {"hz": 50, "kept": np.random.default_rng(0).random(400) < 0.7}),
    ],
)
def test_files_of_one_rate_still_merge(tmp_path, first, second):
    timed(tmp_path, "ann", **first)
    timed(tmp_path, "bob", **second)
    arrays = made(tmp_path, "ann", "bob", time="t", rate_hz=None, resample=False)
    assert arrays["rate_hz"] == first["hz"]
    assert arrays["subject_names"].tolist() == ["ann", "bob"]


@pytest.mark.filterwarnings("ignore:3 of 403 rows")
def test_a_recording_shorter_than_a_window_does_not_set_the_rate(tmp_path):
    timed(tmp_path, "ann", 50)
    timed(tmp_path, "bob", 25, rows=3)
    settings = {"time": "t", "rate_hz": None, "allow_lost": True}
    assert made(tmp_path, "ann", "bob", **settings)["rate_hz"] == 50


def test_a_file_without_rows_is_named_without_a_warning(tmp_path):
    timed(tmp_path, "ann", 50)
    timed(tmp_path, "bob", 50, rows=0)
    with pytest.raises(ValueError, match=r"got none of subject 'bob' \(0 rows\)"):
        made(tmp_path, "ann", "bob", time="t", rate_hz=None)


def test_many_files_are_told_in_a_line(tmp_path):
    names = [f"p{i}" for i in range(9)]
    for i, name in enumerate(names):
        timed(tmp_path, name, 50 + 50 * (i == 8))
    with pytest.raises(ValueError, match=r"3 more, .*p8.csv at 100 Hz; import them"):
        made(tmp_path, *names, time="t", rate_hz=None, resample=False)


@pytest.mark.parametrize("content", ["[]", "{", ""])
def test_a_damaged_summary_names_its_file(tmp_path, content):
    path = tmp_path / "mine.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(summary.MEMBER, content)
    with pytest.raises(ValueError, match="mine.npz' must be an .npz file of jaxanon"):
        summary.read(path)
