"""Recordings as CSV become windows of one thing each, or an error that says where."""

import itertools
import warnings

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from jaxanon import cli
from jaxanon.datasets import import_csv, load, read_people

CHOICE = {"channels": ["x", "y"], "labels": ["act"], "rate_hz": 10.0}
PEOPLE = {"ann": {"gender": "female"}, "bob": {"gender": "male"}}


@pytest.fixture
def folder(tmp_path):
    """With ann.csv: ten rows of sitting, then six of walking, that count."""
    acts = ["sit"] * 10 + ["walk"] * 6
    lines = [f"{i},{-i},{act}" for i, act in enumerate(acts)]
    (tmp_path / "ann.csv").write_text("\n".join(["x,y,act", *lines]) + "\n")
    return tmp_path


def made(folder, *names, **settings):
    """Arrays of the file that is made of these."""
    paths = [folder / f"{name}.csv" for name in names]
    settings = CHOICE | {"length": 4} | settings
    with np.load(import_csv(paths, folder / "own.npz", **settings)) as file:
        return dict(file)


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
    [(",0,sit", "line 6"), ("4,NaN,sit", "line 6"), ("4,-4,", "line 6")],
)
def test_no_window_reaches_over_what_is_missing(folder, line, told):
    lines = (folder / "ann.csv").read_text().splitlines()
    lines[5] = line  # The fifth row, of x = 4.
    (folder / "ann.csv").write_text("\n".join(lines))
    with pytest.warns(UserWarning, match=f"1 of 16 rows lack .*{told}; they are left"):
        arrays = made(folder, "ann")
    np.testing.assert_array_equal(arrays["windows"][:, 0, 0], [0, 5, 10, 12])
    assert arrays["act_names"].tolist() == ["sit", "walk"]


def test_gaps_in_time_and_clocks_set_back_end_a_recording(folder):
    seconds = [0.0, 0.1, 0.2, 0.3, 0.6, 0.7, 0.8, 0.9, 1.3, 1.4, 1.5, 1.6, 0.0, 0.1]
    lines = [f"{t},{i},0,sit" for i, t in enumerate(seconds)]
    (folder / "bob.csv").write_text("\n".join(["t,x,y,act", *lines]))
    arrays = made(folder, "bob", time="t", rate_hz=None, stride=1)
    # Three periods from 3 to 4 are none too many; four from 7 to 8 are.
    assert arrays["rate_hz"] == 10.0
    np.testing.assert_array_equal(arrays["windows"][:, 0, 0], [0, 1, 2, 3, 4, 8])
    with pytest.raises(ValueError, match="rate_hz is 50, and by their times .* 10 Hz"):
        made(folder, "bob", time="t", rate_hz=50.0, overwrite=True)


def test_who_has_no_window_is_not_named(folder):
    (folder / "bob.csv").write_text("x,y,act\n1,1,run\n1,1,run\n")
    arrays = made(folder, "ann", "bob")
    assert arrays["subject_names"].tolist() == ["ann"]
    assert arrays["act_names"].tolist() == ["sit", "walk"]


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"channels": ["x", "z"]}, r"ann.csv': it has no column 'z'; .*\['x', 'y', 'a"),
        ({"channels": ["act", "y"], "labels": ["x"]}, "line 2: act must be a number"),
        ({"channels": ["x", "x"]}, "channels and labels must differ"),
        ({"labels": ["subject"]}, "a label cannot be called 'subject'"),
        ({"rate_hz": None}, "give rate_hz, rows a second .--rate-hz., or the column"),
        ({"rate_hz": 0.0}, "rate_hz must be > 0 and finite"),
        ({"length": 11}, "as long as a window of 11; the longest has 10 rows"),
        ({"length": 0}, "length must be at least 1"),
        ({"stride": 0}, "stride must be at least 1"),
        ({"units": ["g", "g", "g"]}, "units must be one for all channels or one for"),
        (
            {"people": {"bob": {"gender": "male"}}},
            r"people must say \['gender'\] of 'a",
        ),
        ({"people": {"ann": {"act": "run"}}}, "nothing that is a column"),
        ({"time": "act"}, "line 2: act must be a number"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_written(folder, settings, why):
    with pytest.raises(ValueError, match=why):
        made(folder, "ann", **settings)
    assert [path.name for path in folder.iterdir()] == ["ann.csv"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it has no column 'x'; its first line names \\[\\]"),
        ("x,y,act\n1,2\n", "line 2 has 2 cells, and the first line 3"),
        ("x,y,act\n1;5,2,sit\n", "line 2: x must be a number with a point, or empty"),
        ("x,y,act\ninf,2,sit\n", "line 2: x must be a number with a point"),
        ("x,y,x,act\n1,2,3,sit\n", "names a column twice"),
        ('x,y,act\n1,2,"sit\n', "it is no CSV file in UTF-8"),
        ("x,y,act\n", "the longest has 0 rows"),
    ],
)
def test_damage_is_told_with_its_line(folder, text, why):
    (folder / "ann.csv").write_text(text)
    with pytest.raises(ValueError, match=why):
        made(folder, "ann")


def test_files_are_looked_for_and_never_replaced_unasked(folder):
    with pytest.raises(FileNotFoundError, match="nobody.csv"):
        made(folder, "nobody")
    with pytest.raises(ValueError, match="paths is empty"):
        made(folder)
    with pytest.raises(ValueError, match="two files have the same name"):
        made(folder, "ann", "ann")
    with pytest.raises(ValueError, match=r"must end in \.npz"):
        import_csv([folder / "ann.csv"], folder / "own.npy", **CHOICE)
    with pytest.raises(TypeError, match="channels must be a list of names, got 'x'"):
        made(folder, "ann", channels="x")
    (folder / "ann.csv").write_bytes(b"x,y,act\n\xff\xfe,1,sit\n")
    with pytest.raises(ValueError, match="it is no CSV file in UTF-8"):
        made(folder, "ann")
    (folder / "own.npz").touch()
    with pytest.raises(FileExistsError, match="own.npz exists"):
        made(folder, "ann")


@pytest.mark.parametrize(
    "text",
    [
        "subject,gender\nann,female\nann,male\n",
        "subject,gender\nann,\n",
        "subject,gender\n,male\n",
        "subject\nann\n",
    ],
)
def test_people_are_named_once_and_wholly(folder, text):
    (folder / "people.csv").write_text(text)
    with pytest.raises(ValueError, match="a line must name a person that no other"):
        read_people(folder / "people.csv")


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
    # Slowly: the whole rows, run by run, each cut from its own beginning.
    good = [i for i, act in enumerate(acts) if act and i not in empty]
    expected = []
    for _, run in itertools.groupby(
        enumerate(good), lambda pair: (pair[1] - pair[0], acts[pair[1]])
    ):
        rows = [row for _, row in run]
        expected += [rows[0] + at for at in range(0, len(rows) - length + 1, stride)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        if not expected:
            with pytest.raises(ValueError, match="no stretch of rows"):
                made(folder, "ann", length=length, stride=stride)
            return
        arrays = made(folder, "ann", length=length, stride=stride)
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
        "x, y",
        "--labels",
        "act",
        "--rate-hz",
        "10",
        "--units",
        "g",
    ]
    assert cli.main(words) == 0
    told = capsys.readouterr().out
    assert "act: sit 4, walk 2" in told and "gender: female 6" in told
    assert "6 windows of 4 samples" in told
    assert cli.main(words) == 2
    assert "exists; pass overwrite=True (--overwrite)" in capsys.readouterr().err
