"""``load`` takes recordings in memory and in files, as the import does."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from jaxanon.datasets import import_recordings, load
from jaxanon.datasets.importing import convert

SETTINGS = {"channels": ["x"], "labels": ["act"], "time": "time", "length": 20}
CHOICE = {"public": "act", "private": "subject"}


def walk(start):
    """Returns 8 s at 50 Hz: walking, then running."""
    numbers = start + np.arange(400.0)
    return {
        "time": np.arange(400) / 50,
        "x": numbers,
        "act": ["walk"] * 200 + ["run"] * 200,
    }


def test_tables_in_memory_and_files_give_the_same_windows(tmp_path):
    people = {"ann": walk(0.0), "bob": walk(1000.0)}
    for name, table in people.items():
        pa.parquet.write_table(pa.table(table), tmp_path / f"{name}.parquet")
    files = sorted(tmp_path.glob("*.parquet"))
    path = import_recordings(files, tmp_path / "own.npz", **SETTINGS)
    expected = load(path, **CHOICE)
    (tmp_path / "own.npz").unlink()
    sources = [people, [{"ann": pa.table(people["ann"])}, files[1]], tmp_path, files]
    for source in sources:
        found = load(source, **SETTINGS, **CHOICE)
        np.testing.assert_array_equal(found.train.windows, expected.train.windows)
        np.testing.assert_array_equal(found.test.windows, expected.test.windows)
        assert found.spec.classes == expected.spec.classes
        assert found.spec.rate_hz == 50.0 and found.spec.channels == ("x",)


def test_settings_belong_to_recordings(tmp_path):
    with pytest.raises(TypeError, match="length must be omitted for 'smartwatch'"):
        load("smartwatch", length=20)
    with pytest.raises(TypeError, match=r"settings of recordings .* got \['size'\]"):
        load(walk(0.0), size=20, **CHOICE)
    with pytest.raises(FileNotFoundError, match=r"none\.csv' does not exist"):
        load(tmp_path / "none.csv", **SETTINGS, **CHOICE)
    with pytest.raises(ValueError, match="source must be None for recordings"):
        load(walk(0.0), source="x", **SETTINGS, **CHOICE)
    with pytest.raises(ValueError, match="public .--public. must be given"):
        load({"ann": walk(0.0)}, **SETTINGS)


def test_losses_are_told():
    table = walk(0.0)
    table["x"][100] = np.nan
    table["time"][150:] += 9.0
    with pytest.warns(UserWarning, match="of 400 rows are in no window"):
        load({"ann": table}, **SETTINGS, **CHOICE)


def test_a_short_recording_at_a_higher_rate_has_windows():
    # 100 rows in 9.9 s are 496 points at 50 Hz: (496 - 128) // 64 + 1 = 6 windows.
    walk = {"time": np.arange(100) / 10, "x": np.arange(100.0), "act": ["a"] * 100}
    arrays = convert.windows_of(
        [{"ann": walk}],
        channels=["x"],
        labels=["act"],
        time="time",
        rate_hz=50.0,
        length=128,
    )
    assert arrays["windows"].shape == (6, 128, 1)
