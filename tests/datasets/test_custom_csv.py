"""CSV recordings become windows of one class each, or an error with the line."""

import itertools
import warnings

import hypothesis.strategies as st
import numpy as np
import pytest
from custom_csv import made, recorded
from hypothesis import given

from jaxanon.cli import app
from jaxanon.datasets import load

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
    [(",0,sit", "line 6"), ("4,NaN,sit", "line 6"), ("4,-4,", "line 6")],
)
def test_no_window_reaches_over_what_is_missing(folder, line, told):
    lines = (folder / "ann.csv").read_text().splitlines()
    lines[5] = line  # Row 5, where x = 4.
    (folder / "ann.csv").write_text("\n".join(lines))
    with pytest.warns(UserWarning, match=f"dropped 1 of 16 rows .*{told}; no window"):
        arrays = made(folder, "ann")
    np.testing.assert_array_equal(arrays["windows"][:, 0, 0], [0, 5, 10, 12])
    assert arrays["act_names"].tolist() == ["sit", "walk"]


def test_gaps_in_time_and_clocks_set_back_end_a_recording(folder):
    seconds = [0.0, 0.1, 0.2, 0.3, 0.6, 0.7, 0.8, 0.9, 1.3, 1.4, 1.5, 1.6, 0.0, 0.1]
    lines = [f"{t},{i},0,sit" for i, t in enumerate(seconds)]
    (folder / "bob.csv").write_text("\n".join(["t,x,y,act", *lines]))
    arrays = made(folder, "bob", time="t", rate_hz=None, stride=1)
    # Three periods from 3 to 4 are allowed; four from 7 to 8 are too many.
    assert arrays["rate_hz"] == 10.0
    np.testing.assert_array_equal(arrays["windows"][:, 0, 0], [0, 1, 2, 3, 4, 8])
    with pytest.raises(
        ValueError, match="rate_hz must agree with the times, which give 10 Hz, got 50"
    ):
        made(folder, "bob", time="t", rate_hz=50.0, overwrite=True)


def test_who_has_no_window_is_not_named(folder):
    (folder / "bob.csv").write_text("x,y,act\n1,1,run\n1,1,run\n")
    arrays = made(folder, "ann", "bob")
    assert arrays["subject_names"].tolist() == ["ann"]
    assert arrays["act_names"].tolist() == ["sit", "walk"]


def test_rows_of_several_people_may_alternate(folder):
    lines = [f"{i / 10},{who},{i},0,sit" for i in range(8) for who in ("bob", "ann")]
    (folder / "all.csv").write_text("\n".join(["t,who,x,y,act", *lines]))
    arrays = made(folder, "all", subject="who", time="t", rate_hz=None)
    assert arrays["rate_hz"] == 10.0 and arrays["subject"].tolist() == [
        0,
        0,
        0,
        1,
        1,
        1,
    ]
    np.testing.assert_array_equal(arrays["windows"][:, 0, 0], [0, 2, 4, 0, 2, 4])


@pytest.mark.parametrize("begin", [0.0, 1700000000.1])
def test_three_periods_are_no_gap_however_they_were_rounded(folder, begin):
    at = [0.0, 0.02, 0.08, 0.14, 0.16, 0.18]  # At 50 Hz.
    lines = [f"{begin + t:.2f},{i},0,sit" for i, t in enumerate(at)]
    (folder / "bob.csv").write_text("\n".join(["t,x,y,act", *lines]))
    assert len(made(folder, "bob", time="t", rate_hz=50.0, length=6)["windows"]) == 1


def test_times_without_fractions_are_told(folder):
    lines = [f"{i // 10},{i},0,sit" for i in range(40)]
    (folder / "bob.csv").write_text("\n".join(["t,x,y,act", *lines]))
    with pytest.raises(ValueError, match="bob.csv': times must be seconds"):
        made(folder, "bob", time="t", rate_hz=None)


def test_files_that_are_too_short_together_are_told_of_together(folder):
    (folder / "bob.csv").write_text((folder / "ann.csv").read_text())
    with pytest.raises(
        ValueError, match="bob.csv' and 1 more: a stretch of one person"
    ):
        made(folder, "bob", "ann", length=100)


def test_blank_lines_and_quotes_and_a_delimiter_at_the_end(folder):
    text = 'x, y, "act",\n1, 2, "sit",\n\n  \n3, 4, "sit",\n'
    (folder / "bob.csv").write_text(text)
    arrays = made(folder, "bob", length=2)
    np.testing.assert_array_equal(arrays["windows"], [[[1, 2], [3, 4]]])
    assert arrays["act_names"].tolist() == ["sit"]
    (folder / "bob.csv").write_text(text.replace("  \n", ",,,\n"))
    with pytest.warns(UserWarning, match="dropped 1 of 3 rows .* first in line 4"):
        assert len(made(folder, "bob", length=1, overwrite=True)["windows"]) == 2


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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        if not expected:
            with pytest.raises(ValueError, match="ann.csv': a stretch of one person"):
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
    assert "act: sit 4, walk 2" in told and "gender: female 6" in told
    assert "6 windows of 4 samples at 10 Hz" in told
    assert app.main(words) == 2
    assert "exists; pass overwrite=True (--overwrite)" in capsys.readouterr().err
