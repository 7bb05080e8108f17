"""Wi-Fi HAR from small files in the original layout."""

import csv
import re
import shutil

import numpy as np
import pytest

from jaxanon.datasets import load
from jaxanon.datasets.wifi_har.wifi_har_dataset_builder import (
    read_amplitudes,
    read_people,
)

CODES = {"01": "sit", "03": "lie", "04": "stand", "07": "turn", "09": "turn"}


@pytest.fixture
def copy(wifi_har_folder, tmp_path):
    """Returns a copy of the folder to corrupt."""
    return shutil.copytree(wifi_har_folder, tmp_path / "copy")


def a_file(folder):
    return folder / "Environment 2" / "Subject 12" / "E2_S12_C03_A07_T17.csv"


def files(folder):
    """Yields subject, activity, trial and amplitudes of each file by hand."""
    found = []
    for path in sorted(folder.rglob("E2_*.csv")):
        subject, activity, trial = re.search(
            r"S(..)_C.._A(..)_T(..)", path.name
        ).groups()
        if activity in CODES:
            with path.open() as file:
                cells = [row[13:] for row in list(csv.reader(file))[1:]]
            values = [
                [complex(c.replace("+-", "-").replace("i", "j")) for c in row]
                for row in cells
            ]
            found.append((subject, CODES[activity], int(trial), np.abs(values)))
    return found


def test_windows_are_80_packets_of_90_amplitudes(wifi_har_folder):
    data = load("wifi_har", source=wifi_har_folder)
    spec = data.spec
    assert (spec.rate_hz, spec.time, len(spec.channels)) == (320.0, 80, 90)
    assert (spec.public, spec.private, spec.split) == ("activity", ("weight",), "trial")
    assert spec.classes["activity"] == ("stand", "sit", "lie", "turn")
    assert spec.classes["subject"] == ("11", "12", "13")
    assert spec.channels[:2] + spec.channels[-1:] == (
        "csi_1_1_1",
        "csi_1_1_2",
        "csi_1_3_30",
    )
    all_files = files(wifi_har_folder)
    for trial, side in ((16, data.train), (17, data.test)):
        mine = [file for file in all_files if file[2] == trial]
        # 130 packets: from 0 to 80 and from 40 to 120.
        expected = [rows[start : start + 80] for *_, rows in mine for start in (0, 40)]
        np.testing.assert_allclose(side.windows, expected, rtol=1e-6)
        activity = [spec.classes["activity"].index(name) for _, name, *_ in mine]
        subject = [spec.classes["subject"].index(who) for who, *_ in mine]
        np.testing.assert_array_equal(side.labels["activity"], np.repeat(activity, 2))
        np.testing.assert_array_equal(side.labels["subject"], np.repeat(subject, 2))
        # Four experiments of two activities each: the four classes are equally large.
        assert np.bincount(side.labels["activity"]).tolist() == [12] * 4
    rows = np.concatenate([rows for _, _, trial, rows in all_files if trial == 16])
    np.testing.assert_allclose(spec.mean, rows.mean(axis=0), rtol=1e-6)


def test_weight_and_height_are_hidden_at_once(wifi_har_folder):
    data = load("wifi_har", source=wifi_har_folder, private=["weight", "height"])
    assert data.spec.private == ("weight", "height")
    assert data.spec.classes["weight"] == ("<=80", ">80")
    assert data.spec.classes["height"] == ("<=175", ">175")
    # 80 kg and 175 cm, 95 and 160, 60.5 and 190.
    for attribute, label in {"weight": [0, 1, 0], "height": [0, 0, 1]}.items():
        wanted = np.array(label)[data.test.labels["subject"]]
        np.testing.assert_array_equal(data.test.labels[attribute], wanted)


def test_released_draws_windows_and_takes_statistics_of_everything(wifi_har_folder):
    data = load("wifi_har", source=wifi_har_folder, split="official")
    everything = [rows for *_, rows in files(wifi_har_folder)]
    rows = np.concatenate(everything)
    np.testing.assert_allclose(data.spec.mean, rows.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(data.spec.std, rows.std(axis=0), rtol=1e-6)
    # 32 windows of each person, of which 6.4, so 7, test.
    assert np.bincount(data.train.labels["subject"]).tolist() == [25] * 3
    assert np.bincount(data.test.labels["subject"]).tolist() == [7] * 3
    first = {window[0].tobytes() for side in data[1:] for window in side.windows}
    assert len(first) == 96


@pytest.mark.filterwarnings("ignore:the test windows must have at least two")
def test_people_may_be_split(wifi_har_folder):
    data = load("wifi_har", source=wifi_har_folder, split="subject")
    train, test = ({*side.labels["subject"].tolist()} for side in data[1:])
    assert len(train) == 2 and len(test) == 1 and train | test == {0, 1, 2}


def test_zips_give_the_same(wifi_har_folder, zipped, tmp_path):
    data = load("wifi_har", source=wifi_har_folder)
    one = load("wifi_har", source=zipped(wifi_har_folder, tmp_path / "all.zip"))
    assert one.spec == data.spec
    many = tmp_path / "many"
    many.mkdir()
    shutil.copy(wifi_har_folder / "people.csv", many)
    for place in sorted((wifi_har_folder / "Environment 2").iterdir()):
        zipped(place, many / f"{place.name}.zip")
    apart = load("wifi_har", source=many)
    np.testing.assert_array_equal(apart.test.windows, data.test.windows)
    # A zip given by name is used alone.
    named = many / "Subject 12.zip"
    alone = load("wifi_har", source=named, private="subject", split="official")
    assert alone.spec.classes["subject"] == ("12",)
    named.write_bytes(named.read_bytes()[:-100])
    with pytest.raises(
        ValueError, match="Subject 12.zip is a damaged zip archive; download"
    ):
        load("wifi_har", source=many)


def test_columns_are_found_by_their_titles(wifi_har_folder):
    text = a_file(wifi_har_folder).read_text()
    rows = [line.split(",") for line in text.splitlines()]
    rows = [[*row[:13], *reversed(row[13:])] for row in rows]
    turned = "\n".join(",".join(row) for row in rows)
    np.testing.assert_array_equal(
        read_amplitudes("a.csv", turned.encode()),
        read_amplitudes("a.csv", text.encode()),
    )


def test_amplitudes_by_hand():
    titles = [f"csi_1_{rx}_{carrier}" for rx in (1, 2, 3) for carrier in range(1, 31)]
    row = ["3+4i", "-5+-12i", "8-6i", *["0+0i"] * 87]
    got = read_amplitudes("a.csv", f"{','.join(titles)}\n{','.join(row)}".encode())
    assert got.shape == (1, 90)
    np.testing.assert_array_equal(got[0, :4], [5, 13, 10, 0])  # By Pythagoras.


def test_says_which_file_is_damaged(copy):
    path = a_file(copy)
    whole = path.read_text()
    # Cut before the i of the last cell, before its imaginary part, and within a row.
    for end in (len(whole) - 2, whole.rindex("+"), len(whole) - 300):
        path.write_text(whole[:end])
        with pytest.raises(ValueError, match=r"A07_T17.csv must hold 90 complex num"):
            load("wifi_har", source=copy)
    path.write_text(whole.replace("csi_1_2_7,", "csi_x,"))
    with pytest.raises(
        ValueError,
        match=r"A07_T17.csv must have 90 channels, but lacks 1, first csi_1_2_7",
    ):
        load("wifi_har", source=copy)
    path.write_text(whole.splitlines()[0])
    with pytest.raises(
        ValueError, match=r"A07_T17.csv is truncated, it has no packets"
    ):
        load("wifi_har", source=copy)


def test_says_who_and_what_is_missing(copy, tmp_path, monkeypatch):
    people = copy / "people.csv"
    people.write_text("\n".join(people.read_text().splitlines()[:-1]))
    with pytest.raises(
        ValueError, match=r"E2_S13.* a subject in people.csv, .*'11', '12'.*got 13"
    ):
        load("wifi_har", source=copy)
    for row in ("12,heavy,170", "12,nan,170", "12,80,-1", "99,80,170", "12"):
        with pytest.raises(
            ValueError, match=r"people.csv must hold .* the row .*; write a file"
        ):
            read_people(f"subject,weight,height\n{row}\n".encode())
    people.unlink()
    with pytest.raises(
        FileNotFoundError, match=r"people.csv .* must be in .*'subject,wei"
    ):
        load("wifi_har", source=copy)
    with pytest.raises(FileNotFoundError, match="has no file of wifi_har"):
        load("wifi_har", source=tmp_path / "nowhere")
    monkeypatch.setattr("jaxanon.datasets.sources.find", lambda *args: None)
    with pytest.raises(
        FileNotFoundError, match=r"wifi_har was not found; .*v38wjmz6f6"
    ):
        load("wifi_har")
