"""MotionSense from small files in the original layout."""

import shutil

import numpy as np
import pytest

from jaxanon.datasets import load
from jaxanon.datasets.motion_sense.motion_sense_dataset_builder import (
    read_people,
    read_signal,
)


@pytest.fixture
def copy(motion_sense_folder, tmp_path):
    """Returns a copy of the folder to corrupt."""
    return shutil.copytree(motion_sense_folder, tmp_path / "copy")


def rows_of(folder, trial, subject):
    path = folder / "A_DeviceMotion_data" / trial / f"sub_{subject}.csv"
    return np.loadtxt(path, delimiter=",", skiprows=1)[:, 1:]


def magnitude(rows):
    total = rows[:, 9:12] + rows[:, 3:6]
    return np.stack([(rows[:, 6:9] ** 2).sum(1) ** 0.5, (total**2).sum(1) ** 0.5], 1)


def test_mag4_streams_subject_then_activity_then_trial(motion_sense_folder):
    data = load("motion_sense", source=motion_sense_folder)
    assert data.spec.preset == "mag4" and data.spec.split == "trial"
    assert data.spec.classes["activity"] == ("dws", "ups", "wlk", "jog")
    trials = "dws_1 dws_2 ups_3 ups_4 wlk_7 wlk_8 jog_9".split()
    parts = [
        magnitude(rows_of(motion_sense_folder, trial, subject))
        for subject in (1, 2, 3)
        for trial in trials
    ]
    stream = np.concatenate(parts)
    np.testing.assert_allclose(data.spec.mean, stream.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(data.spec.std, stream.std(axis=0), rtol=1e-6)
    ends = np.cumsum([len(part) for part in parts])
    starts = np.arange(0, len(stream) - 128, 10)
    starts = starts[: round((len(stream) - 128) / 10)]  # As published.
    same = np.searchsorted(ends, starts, "right") == np.searchsorted(
        ends, starts + 127, "right"
    )
    starts = starts[same]
    expected = stream[starts[:, None] + np.arange(128)]
    np.testing.assert_allclose(data.train.windows, expected, rtol=1e-5)
    subject = np.searchsorted(ends, starts, "right") // len(trials)
    np.testing.assert_array_equal(data.train.labels["subject"], subject)
    # The three people lie on the class bounds.
    people = {"gender": [1, 0, 0], "weight": [2, 0, 1], "height": [2, 0, 1]}
    for attribute, classes in people.items():
        label = data.train.labels[attribute]
        np.testing.assert_array_equal(label, np.array(classes)[subject])
    assert data.spec.classes["age"] == ("<=25", "26-30", ">30")
    np.testing.assert_array_equal(
        data.train.labels["age"], np.array([2, 0, 1])[subject]
    )


def test_mag5_keeps_the_statistics_of_five_and_the_windows_of_four(motion_sense_folder):
    four = load("motion_sense", source=motion_sense_folder)
    five = load("motion_sense", source=motion_sense_folder, preset="mag5")
    assert five.spec.classes["activity"] == ("dws", "ups", "wlk", "jog")
    assert five.spec.mean != four.spec.mean
    assert set(five.test.labels["activity"].tolist()) == {0, 1, 2, 3}


def test_raw12_has_all_channels_and_activities(motion_sense_folder):
    data = load(
        "motion_sense", source=motion_sense_folder, preset="raw12", private="age"
    )
    assert data.spec.classes["activity"] == ("dws", "ups", "wlk", "jog", "std", "sit")
    assert data.spec.private == ("age",)
    rows = rows_of(motion_sense_folder, "dws_11", 1)
    np.testing.assert_allclose(data.test.windows[1], rows[64:192], rtol=1e-6)


def test_raw6_has_the_last_six_channels(motion_sense_folder):
    data = load("motion_sense", source=motion_sense_folder, preset="raw6")
    assert data.spec.classes["activity"] == ("dws", "ups", "wlk", "jog")
    assert data.spec.channels[::3] == ("rotationRate.x", "userAcceleration.x")
    assert data.spec.units[::3] == ("rad/s", "g")
    rows = rows_of(motion_sense_folder, "dws_11", 1)
    np.testing.assert_allclose(data.test.windows[1], rows[63:188, 6:], rtol=1e-6)


def test_acc10_is_the_total_acceleration_five_rows_a_sample(motion_sense_folder):
    data = load("motion_sense", source=motion_sense_folder, preset="acc10")
    assert data.spec.classes["activity"] == ("dws", "ups", "wlk", "jog", "std", "sit")
    assert (data.spec.rate_hz, data.spec.units) == (10.0, ("g",) * 3)
    rows = rows_of(motion_sense_folder, "dws_11", 1)[50:100]
    total = (rows[:, 3:6] + rows[:, 9:]).reshape(10, 5, 3).mean(1)
    np.testing.assert_allclose(data.test.windows[1], total, rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore:the test windows must have at least two")
@pytest.mark.parametrize("split", ["subject", "time_block"])
def test_other_splits(motion_sense_folder, split):
    data = load("motion_sense", source=motion_sense_folder, split=split)
    train, test = ({*side.labels["subject"].tolist()} for side in data[1:])
    assert data.spec.split == split
    assert train | test == {0, 1, 2}
    assert (train & test == set()) == (split == "subject")


def test_zip_and_environment_give_the_same(
    motion_sense_folder, zipped, tmp_path, monkeypatch
):
    folder = load("motion_sense", source=motion_sense_folder)
    (tmp_path / "data" / "motion_sense").mkdir(parents=True)
    zipped(motion_sense_folder, tmp_path / "data" / "motion_sense" / "any.zip")
    monkeypatch.setenv("JAXANON_DATA", str(tmp_path / "data"))
    found = load("motion_sense")
    np.testing.assert_array_equal(found.test.windows, folder.test.windows)
    assert found.spec == folder.spec


def test_the_inner_folder_will_do(motion_sense_folder):
    inner = load("motion_sense", source=motion_sense_folder / "A_DeviceMotion_data")
    assert inner.spec == load("motion_sense", source=motion_sense_folder).spec


def test_raw_sensors_of_the_same_layout_are_left_alone(copy, motion_sense_folder):
    shutil.copytree(copy / "A_DeviceMotion_data", copy / "B_Accelerometer_data")
    assert load("motion_sense", source=copy).spec == (
        load("motion_sense", source=motion_sense_folder).spec
    )


def test_says_which_file_is_damaged(copy):
    path = copy / "A_DeviceMotion_data" / "jog_9" / "sub_2.csv"
    path.write_text(path.read_text()[:-40])
    with pytest.raises(ValueError, match=r"jog_9/sub_2.csv must hold 12 numbers"):
        load("motion_sense", source=copy)
    path.write_text(path.read_text().splitlines()[0] + "\n")
    with pytest.raises(
        ValueError, match=r"jog_9/sub_2.csv is truncated, it has no rows"
    ):
        load("motion_sense", source=copy)


def test_says_who_is_missing(copy):
    people = copy / "data_subjects_info.csv"
    people.write_text("\n".join(people.read_text().splitlines()[:-1]))
    with pytest.raises(
        ValueError, match=r"sub_3.csv must belong to a subject .*'1', '2'.*got 3"
    ):
        load("motion_sense", source=copy)
    people.unlink()
    with pytest.raises(
        FileNotFoundError, match=r"data_subjects_info.csv .* must be in"
    ):
        load("motion_sense", source=copy)


def test_says_what_is_wrong_in_a_file():
    with pytest.raises(ValueError, match=r"a.csv must have the columns .*got"):
        read_signal("a.csv", b",x,y\n0,1,2\n")
    with pytest.raises(ValueError, match="must hold code, weight"):
        read_people(b"code,weight,height,age,gender\n1,heavy,170,20,1\n")
    with pytest.raises(ValueError, match="must hold code, weight"):
        read_people(b"code,weight\n1,70\n")


def test_too_short_for_a_window(copy):
    for path in copy.glob("A_DeviceMotion_data/*/sub_2.csv"):
        path.write_text("\n".join(path.read_text().splitlines()[:100]))
    with pytest.raises(ValueError, match=r"got shorter ones of \['2'\]"):
        load("motion_sense", source=copy, preset="raw12")
    for path in copy.glob("A_DeviceMotion_data/*/sub_*.csv"):
        path.write_text("\n".join(path.read_text().splitlines()[:100]))
    with pytest.raises(
        ValueError, match=r"no training windows: .* has 99 rows.* needs 128"
    ):
        load("motion_sense", source=copy)


def test_without_the_activities_of_the_preset(copy):
    for folder in (copy / "A_DeviceMotion_data").iterdir():
        if folder.name not in ("sit_5", "sit_13"):
            shutil.rmtree(folder)
    with pytest.raises(ValueError, match="must hold a recording with activity in"):
        load("motion_sense", source=copy)
