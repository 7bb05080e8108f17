"""``load`` takes recordings in memory and in files, as the import does."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from jaxanon.datasets import import_recordings, load

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
