"""MobiAct from small files in the original layout."""

import csv
import itertools
import shutil

import numpy as np
import pytest

from jaxanon.datasets import load
from jaxanon.datasets.mobi_act.description import SELECTED
from jaxanon.datasets.mobi_act.mobi_act_dataset_builder import (
    read_people,
    read_signal,
)

ACTIVITIES = ("WAL", "STD", "JOG", "STU")
PEOPLE = ("9", "10", "21", "35")  # The selected people of the small files.


@pytest.fixture
def copy(mobi_act_folder, tmp_path):
    """Returns a copy of the folder to corrupt."""
    return shutil.copytree(mobi_act_folder, tmp_path / "copy")


def file_of(folder, activity, subject):
    return (
        folder / "Annotated Data" / activity / f"{activity}_{subject}_1_annotated.csv"
    )


def read(folder, activity, subject):
    """Returns rows of six numbers and their labels, read without the library."""
    with file_of(folder, activity, subject).open() as file:
        rows = list(csv.DictReader(file))
    names = ("acc_x", "acc_y", "acc_z", "gyro_x", "gyro_y", "gyro_z")
    numbers = [[np.float32(row[name]) for name in names] for row in rows]
    return numbers, [row["label"] for row in rows]


def cut(rows):
    return [rows[start : start + 128] for start in range(0, len(rows) - 127, 10)]


def stretches(folder, subject):
    """Returns activity and rows of each stretch with one of the four labels."""
    for activity in ACTIVITIES:
        rows, labels = read(folder, activity, subject)
        for label, group in itertools.groupby(range(len(rows)), labels.__getitem__):
            if label in ACTIVITIES:
                yield ACTIVITIES.index(label), [rows[index] for index in group]


@pytest.mark.filterwarnings("ignore:the test windows must have at least two")
def test_raw6_cuts_stretches_of_one_activity_and_drops_the_others(mobi_act_folder):
    data = load("mobi_act", source=mobi_act_folder, split="subject")
    assert (data.spec.preset, data.spec.rate_hz, data.spec.time) == ("raw6", 200.0, 128)
    assert data.spec.classes["activity"] == ACTIVITIES
    assert data.spec.classes["subject"] == PEOPLE
    assert data.spec.units == ("m/s^2",) * 3 + ("rad/s",) * 3
    for side in data[1:]:
        expected, activity, subject = [], [], []
        for who in np.unique(side.labels["subject"]):
            for label, rows in stretches(mobi_act_folder, PEOPLE[who]):
                windows = cut(rows)
                expected += windows
                activity += [label] * len(windows)
                subject += [who] * len(windows)
        np.testing.assert_array_equal(side.windows, np.array(expected))
        np.testing.assert_array_equal(side.labels["activity"], activity)
        np.testing.assert_array_equal(side.labels["subject"], subject)


def test_time_blocks_are_a_window_apart(mobi_act_folder):
    data = load("mobi_act", source=mobi_act_folder)
    assert data.spec.split == "time_block"
    walking = [
        side.windows[(side.labels["activity"] == 0) & (side.labels["subject"] == 0)]
        for side in data[1:]
    ]
    # 703 rows, and 71 at the end of the jogging file: 70 % of 774 is 542. So 414 rows
    # train, 128 are the gap, 161 test; the 71 fill no window.
    assert [len(side) for side in walking] == [29, 4]
    rows, _ = read(mobi_act_folder, "WAL", "9")
    np.testing.assert_array_equal(walking[0][-1][-1], rows[407])
    np.testing.assert_array_equal(walking[1][0][0], rows[542])
    # A row occurs once in the files, so it is on one side only.
    sides = [np.unique(side.windows.reshape(-1, 6), axis=0) for side in data[1:]]
    both = np.unique(np.concatenate(sides), axis=0)
    assert len(both) == len(sides[0]) + len(sides[1])


def released_windows(folder):
    """Cuts as published: one stream, other activities as walking, ends compared."""
    rows, activity, subject = [], [], []
    for who, activity_file in itertools.product(PEOPLE, ACTIVITIES):
        more, labels = read(folder, activity_file, who)
        rows += more
        known = [label if label in ACTIVITIES else "WAL" for label in labels]
        activity += [ACTIVITIES.index(label) for label in known]
        subject += [PEOPLE.index(who)] * len(more)
    starts = [10 * i for i in range(round((len(rows) - 128) / 10))]
    starts = [s for s in starts if s < len(rows) - 128]
    starts = [s for s in starts if activity[s] == activity[s + 127]]
    windows = np.array([rows[s : s + 128] for s in starts])
    pick = lambda labels: np.array([labels[s] for s in starts])
    return np.array(rows, np.float64), windows, pick(activity), pick(subject)


def test_released_is_the_published_cut_and_split(mobi_act_folder):
    data = load("mobi_act", source=mobi_act_folder, preset="official", split="official")
    rows, windows, activity, subject = released_windows(mobi_act_folder)
    # Statistics cover everything, including other activities and test rows.
    np.testing.assert_allclose(data.spec.mean, rows.mean(axis=0), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(data.spec.std, rows.std(axis=0), rtol=1e-9)
    # The two sides together contain each window once, in order within a side.
    place = {window.tobytes(): index for index, window in enumerate(windows)}
    sides = [[place[window.tobytes()] for window in side.windows] for side in data[1:]]
    assert sorted(sides[0] + sides[1]) == list(range(len(windows)))
    for found, side in zip(sides, data[1:], strict=True):
        assert found == sorted(found)
        np.testing.assert_array_equal(side.labels["activity"], activity[found])
        np.testing.assert_array_equal(side.labels["subject"], subject[found])
    counts = [np.bincount(side.labels["subject"]) for side in data[1:]]
    whole = counts[0] + counts[1]
    assert counts[1].tolist() == [-(-number // 5) for number in whole.tolist()]


def test_everyone_is_all_who_have_the_four_files(mobi_act_folder):
    spec = load("mobi_act", source=mobi_act_folder, preset="everyone").spec
    assert spec.classes["subject"] == (*PEOPLE, "57")


def test_several_attributes_are_hidden_at_once(mobi_act_folder):
    hidden = ("gender", "weight", "height", "age")
    data = load("mobi_act", source=mobi_act_folder, private=hidden)
    assert data.spec.private == hidden
    assert data.spec.classes["gender"] == ("male", "female")
    assert data.spec.classes["weight"] == ("<=70", "71-90", ">90")
    assert data.spec.classes["height"] == ("<=170", "171-177", ">177")
    assert data.spec.classes["age"] == ("<=23", "24-26", ">26")
    # 9: 102 kg, 177 cm, 30 years; 10: 90, 170, 26; 21: 70, 180, 25; 35: 76, 181, 23.
    expected = {
        "gender": [0, 1, 0, 0],
        "weight": [2, 1, 0, 1],
        "height": [1, 0, 2, 2],
        "age": [2, 1, 1, 0],
    }
    for side, (attribute, label) in itertools.product(data[1:], expected.items()):
        wanted = np.array(label)[side.labels["subject"]]
        np.testing.assert_array_equal(side.labels[attribute], wanted)


def test_the_selected_people_are_those_published(mobi_act_folder):
    people = read_people([(mobi_act_folder / "Readme.txt").read_bytes()])
    selected = [people[who] for who in SELECTED]
    counts = {
        name: np.bincount([person[name] for person in selected]).tolist()
        for name in ("gender", "weight", "height")
    }
    # 20 men and 16 women; 18, 14 and 4 up to 70 kg, up to 90 kg and above.
    assert counts == {"gender": [20, 16], "weight": [18, 14, 4], "height": [13, 11, 12]}
    assert people["57"]["gender"] == 0  # Contains a Greek letter.


def test_zip_inner_folder_and_other_spellings_give_the_same(
    copy, mobi_act_folder, zipped, tmp_path
):
    spec = load("mobi_act", source=mobi_act_folder).spec
    archive = zipped(mobi_act_folder, tmp_path / "MobiAct.zip")
    assert load("mobi_act", source=archive).spec == spec
    assert load("mobi_act", source=copy / "Annotated Data").spec == spec
    readme = copy / "Readme.txt"
    text = readme.read_bytes().decode("latin-1")  # An editor may save it like this.
    readme.unlink()
    (copy / "README.TXT").write_text(text, encoding="utf-8")
    assert load("mobi_act", source=copy).spec == spec


def test_says_what_is_missing(copy, tmp_path, monkeypatch):
    file_of(copy, "STU", "10").unlink()
    with pytest.raises(ValueError, match="STU_10_1_annotated.csv is missing; unpack"):
        load("mobi_act", source=copy)
    (copy / "Readme.txt").write_text("a copy without its table")
    with pytest.raises(ValueError, match="Readme.txt must hold a table of subjects"):
        load("mobi_act", source=copy)
    (copy / "Readme.txt").unlink()
    with pytest.raises(
        FileNotFoundError, match=r"Readme.txt .*not found.*request MobiAct"
    ):
        load("mobi_act", source=copy)
    with pytest.raises(FileNotFoundError, match="has no file of mobi_act"):
        load("mobi_act", source=tmp_path / "nowhere")
    monkeypatch.setattr("jaxanon.datasets.sources.find", lambda *args: None)
    with pytest.raises(
        FileNotFoundError, match=r"mobi_act was not found; .*bmi.hmu.gr"
    ):
        load("mobi_act")


def test_says_who_is_unknown(copy):
    file_of(copy, "WAL", "9").rename(file_of(copy, "WAL", "68"))
    with pytest.raises(
        ValueError, match=r"WAL_68_1_a.* a subject in Readme.txt, .*, got 68"
    ):
        load("mobi_act", source=copy)
    for line in (
        "| 68 | a | b | 20 | 180 | 70 | M |",
        "| 1 | a | b | 20 | 180 | 70 | X |",
    ):
        with pytest.raises(
            ValueError, match=r"Readme.txt must list subjects .* got the line '\| "
        ):
            read_people([line.encode()])


def test_without_the_selected_people(copy):
    for subject in PEOPLE:
        for activity in ACTIVITIES:
            file_of(copy, activity, subject).unlink()
    with pytest.raises(
        ValueError, match=r"must hold a recording .* of subjects \('1', "
    ):
        load("mobi_act", source=copy)


def test_says_which_file_is_damaged(copy):
    path = file_of(copy, "JOG", "21")
    whole = path.read_text()
    for cut_off in (2, 10, 60):  # In the label, before it, and in a number.
        path.write_text(whole[:-cut_off])
        with pytest.raises(ValueError, match="JOG_21_1_annotated.csv must hold 6 num"):
            load("mobi_act", source=copy)
    path.write_text(whole.replace("gyro_y", "gyro_w"))
    with pytest.raises(
        ValueError, match=r"JOG_21.* must have the columns \['gyro_y'\]"
    ):
        load("mobi_act", source=copy)
    path.write_text(whole.splitlines()[0] + "\n")
    with pytest.raises(
        ValueError, match="JOG_21_1_annotated.csv is truncated, it has no rows"
    ):
        load("mobi_act", source=copy)
    number = whole.splitlines()[7].split(",")[4]
    path.write_text(whole.replace(f",{number},", ",nan,", 1))
    with pytest.raises(ValueError, match="JOG_21.*NaN or infinity"):
        load("mobi_act", source=copy)
    with pytest.raises(ValueError, match="a.csv must have the columns"):
        read_signal("a.csv", b"")
