"""Archives, HDF5 and folders with one file per sensor become safe ones."""

import dataclasses
import gzip
import zipfile

import numpy as np
import pytest

from jaxanon.datasets.importing import frames
from jaxanon.datasets.importing.files import expand
from jaxanon.streaming import anonymize_recordings

COUNT = 120


def signal(seed=0):
    return np.random.default_rng(seed).normal(10, 3, (COUNT, 2)).round(3)


def text(samples, first=7.0, head="time,x,y,mood"):
    rows = [f"{first + n / 10:.2f},{x},{y},ok" for n, (x, y) in enumerate(samples)]
    return "\n".join([head, *rows]) + "\n"


def numbers(lines):
    return np.array([line.split(",")[:3] for line in lines], np.float64)


def mirrored(run, samples):
    return 2 * np.array(run.spec.mean) - samples


def test_an_archive_becomes_an_archive_of_the_same_names(run, tmp_path):
    path = tmp_path / "walks.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("ann/walk.csv", text(signal(0)))
        archive.writestr("bob/walk.csv.gz", gzip.compress(text(signal(1)).encode()))
        archive.writestr("notes.md", "ann is ill")
    found = anonymize_recordings(run, path, tmp_path / "safe", carry=["mood"])
    assert found.output == [tmp_path / "safe" / "walks.zip"]
    assert [*(tmp_path / "safe").iterdir()] == found.output  # Nothing else is left.
    assert [one.output for one in found.recordings] == 2 * found.output
    with zipfile.ZipFile(found.output[0]) as archive:
        assert archive.namelist() == ["ann/walk.csv", "bob/walk.csv.gz"]
        assert {info.date_time[0] for info in archive.infolist()} == {1980}
        contents = [archive.read(name) for name in archive.namelist()]
    contents[1] = gzip.decompress(contents[1])
    for seed, content in enumerate(contents):
        head, *lines = content.decode().splitlines()
        assert head == "time,x,y,mood" and lines[0].startswith("7.00,")
        wanted = mirrored(run, signal(seed))
        np.testing.assert_allclose(numbers(lines)[:, 1:], wanted, atol=1e-3)


def test_names_inside_archives_are_counted(run, tmp_path):
    (tmp_path / "1").mkdir()
    with zipfile.ZipFile(tmp_path / "1" / "walks.zip", "w") as archive:
        archive.writestr("0/walk.csv", text(signal(0)))
        archive.writestr("walk.csv", text(signal(1)))
    path = tmp_path / "1" / "walks.zip"
    found = anonymize_recordings(run, path, tmp_path / "safe")
    assert "names of 1 of 2 outputs are classes of 'subject'" in found.warnings[1]


def test_two_members_of_one_name_are_refused(run, tmp_path):
    path = tmp_path / "walks.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("walk.csv", text(signal(0)))
        archive.writestr("/walk.csv", text(signal(1)))
    with pytest.raises(ValueError, match="distinct names, got 'walk.csv' twice"):
        anonymize_recordings(run, path, tmp_path / "safe")


def test_a_damaged_archive_leaves_nothing(run, tmp_path):
    path = tmp_path / "walks.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.csv", text(signal()))
        archive.writestr("b.csv", "time,x\n0,1\n")
    with pytest.raises(ValueError, match=r"walks\.zip/b\.csv.*'y'"):
        anonymize_recordings(run, path, tmp_path / "safe")
    assert not (tmp_path / "safe").exists()
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(ValueError, match=r"walks\.zip: the zip archive is damaged"):
        anonymize_recordings(run, path, tmp_path / "safe")


def test_an_archive_in_a_folder_counts_as_a_file(run, tmp_path):
    folder = tmp_path / "raw"
    folder.mkdir()
    (folder / "a.csv").write_text(text(signal()))
    with zipfile.ZipFile(folder / "b.zip", "w") as archive:
        archive.writestr("../c.csv", text(signal()))  # Hidden: it leads outside.
        archive.writestr("d.csv", text(signal()))
    anonymize_recordings(run, folder, tmp_path / "safe")
    found = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert found == ["a.csv", "a.csv", "b.zip", "b.zip"]


def test_hdf5_keeps_names_units_and_types(run, tmp_path):
    h5py = pytest.importorskip("h5py", reason="needs the extra `hdf5`")
    path, samples = tmp_path / "walk.h5", signal()
    with h5py.File(path, "w") as file:
        file["time"] = 7 + np.arange(COUNT) / 10
        for name, values in zip("xy", samples.T, strict=True):
            file[name] = 1000 * values
            file[name].attrs["units"] = "mg"
        file["mood"] = np.array(["ok"] * COUNT, h5py.string_dtype())
        file["heart"] = np.arange(3.0)  # Of another length.
    found = anonymize_recordings(
        run, path, tmp_path / "safe", carry=["mood"], gaps="column"
    )
    with h5py.File(found.output[0]) as file:
        assert sorted(file) == ["gap", "mood", "time", "x", "y"]
        assert file["time"][()].tolist() == (7 + np.arange(COUNT) / 10).tolist()
        assert file["x"].attrs["units"] == "mg" and file["x"].dtype == np.float64
        safe = np.stack([file["x"][()], file["y"][()]], 1) / 1000
        assert set(file["mood"].asstr()[()]) == {"ok"} and set(file["gap"][()]) == {b""}
    np.testing.assert_allclose(safe, mirrored(run, samples), atol=1e-3)
    (again,) = expand(found.output[0])
    assert frames.of_file(again).units == ("", "", "", "mg", "mg")
    path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    with pytest.raises(ValueError, match=r"walk\.h5.*HDF5"):
        anonymize_recordings(run, path, tmp_path / "other")


def sensors(run, folder, zipped):
    """Writes two sensors at different rates; returns the run and the path."""
    spec = dataclasses.replace(run.spec, channels=("acc.x", "Gyro.y"))
    samples, slow = signal(), np.interp(np.arange(COUNT), [0, COUNT], [8.0, 12.0])
    acc = "".join(f"{1000 * n}.5,{x}\n" for n, x in enumerate(samples[:, 0]))
    gyro = "".join(f"{2000 * n}.5,{slow[2 * n]:.6f}\n" for n in range(COUNT // 2))
    walk = {
        "acc.csv": "timestamp [ms],x [g]\n" + acc.replace("000.5", "00.5"),
        "gyro.csv": "timestamp [ms],y [g]\n" + gyro.replace("000.5", "00.5"),
    }
    path = folder / ("walk.zip" if zipped else "walk")
    if zipped:
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in walk.items():
                archive.writestr(name, content)
    else:
        path.mkdir()
        for name, content in walk.items():
            (path / name).write_text(content)
    wanted = np.stack([samples[:, 0], slow], axis=1)
    return dataclasses.replace(run, spec=spec), path, wanted


@pytest.mark.parametrize("zipped", [False, True])
def test_sensors_are_joined_into_one_file(run, tmp_path, zipped):
    renamed, path, wanted = sensors(run, tmp_path, zipped)
    found = anonymize_recordings(renamed, path, tmp_path / "safe", time_format="ms")
    assert found.output == [tmp_path / "safe" / "walk.csv"]
    head, *lines = found.output[0].read_text().splitlines()
    assert head == "time,acc.x [g],Gyro.y [g]"
    assert [line.split(",")[0] for line in lines[:3]] == ["0.5", "100.5", "200.5"]
    safe = numbers(lines)[:, 1:]
    assert len(safe) == COUNT
    np.testing.assert_allclose(safe[:-2], mirrored(run, wanted)[:-2], atol=1e-3)
