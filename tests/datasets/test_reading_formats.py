"""One table in every file format and kind of object gives the same samples."""

import sys

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from jaxanon.datasets.importing import frames, reading
from jaxanon.datasets.importing.table import Columns

COLUMNS = Columns(channels=("x", "y"), labels=("act",), time="time")
SAMPLES = np.stack([np.arange(6.0), [0.5, -1, np.nan, 3, 4, 5]], axis=1)
TIMES = np.arange(6) / 50
ACTS = ["sit", "sit", None, "walk", "walk", "sit"]


def table():
    """Returns the table that every format holds."""
    columns = {"time": TIMES, "act": ACTS, "x [g]": SAMPLES[:, 0], "y": SAMPLES[:, 1]}
    return pa.table(columns)


def read(source, columns=COLUMNS):
    """Returns the table of one source."""
    (found,) = reading.tables([source], columns)
    return found


def check(found, units=("g", ""), stem=None):
    """Checks that a table holds the rows of ``table()``."""
    np.testing.assert_array_equal(found.samples, SAMPLES)
    np.testing.assert_array_equal(found.times, TIMES)
    labels = found.labels["act"]
    assert [labels.names[c] if c >= 0 else None for c in labels.codes] == ACTS
    assert (found.units, found.losses) == (units, {})
    assert stem is None or found.stem == stem


def test_parquet(tmp_path):
    pa.parquet.write_table(table(), tmp_path / "ann.parquet", row_group_size=4)
    check(read(tmp_path / "ann.parquet"), stem="ann")


@pytest.mark.parametrize("size", [1, 3, 7, 40])
def test_row_groups_of_parquet_join(tmp_path, size):
    """Row groups have dictionaries of their own, and each may lack values."""
    random = np.random.default_rng(size)
    acts = [None if n > 4 else "abcde"[n] for n in random.integers(0, 6, 40)]
    samples = np.where(random.random(40) < 0.2, np.nan, np.arange(40.0))
    whole = pa.table(
        {
            "time": pa.array(np.arange(40) * 20, pa.timestamp("ms")),
            "x": pa.array(samples, mask=np.isnan(samples)),
            "y": pa.array(np.arange(40), pa.int32()),
            "act": acts,
            "who": random.integers(1, 3, 40),
        }
    )
    pa.parquet.write_table(whole, tmp_path / "ann.parquet", row_group_size=size)
    columns = COLUMNS._replace(subject="who")
    found, expected = read(tmp_path / "ann.parquet", columns), read(whole, columns)
    np.testing.assert_array_equal(found.samples, expected.samples)
    np.testing.assert_array_equal(found.times, expected.times)
    names = lambda each: [(*each.names, None)[code] for code in each.codes]
    assert names(found.labels["act"]) == names(expected.labels["act"]) == acts
    assert names(found.subject) == names(expected.subject)


def test_infinite_numbers_in_row_groups_are_counted(tmp_path):
    columns = {"time": TIMES, "x": [1, 2, np.inf, 4, 5, np.inf], "act": ACTS}
    path = tmp_path / "ann.parquet"
    pa.parquet.write_table(pa.table(columns), path, row_group_size=2)
    found = read(path, COLUMNS._replace(channels=("x",)))
    np.testing.assert_array_equal(found.samples[:, 0], [1, 2, 4, 5])
    assert found.losses == {reading.INVALID: 2}
    assert found.first_lines == {reading.INVALID: 3}
    columns["x"] = [1, np.inf, np.inf, np.inf, 5, np.inf]
    pa.parquet.write_table(pa.table(columns), path, row_group_size=2)
    with pytest.raises(ValueError, match="line 2: x must be a number.* 4 of 6 rows"):
        read(path, COLUMNS._replace(channels=("x",)))


def test_parquet_without_rows(tmp_path):
    pa.parquet.write_table(table().slice(0, 0), tmp_path / "ann.parquet")
    found = read(tmp_path / "ann.parquet")
    assert found.samples.shape == (0, 2) and len(found.times) == 0


@pytest.mark.parametrize("compression", ["uncompressed", "lz4"])
def test_feather(tmp_path, compression):
    path = tmp_path / "ann.feather"
    pa.feather.write_feather(table(), path, compression=compression)
    check(read(path), stem="ann")


def test_arrow_streams(tmp_path):
    with pa.ipc.new_stream(str(tmp_path / "ann.arrow"), table().schema) as writer:
        writer.write_table(table())
    check(read(tmp_path / "ann.arrow"), stem="ann")


def test_float32_stays_float32_and_integers_and_text_become_float64(tmp_path):
    columns = table().to_pydict()
    for dtype, wanted in ((np.float32, np.float32), (np.float16, np.float64)):
        columns["x"] = np.arange(6).astype(dtype)
        columns["y"] = np.arange(6).astype(dtype)
        found = read({k: v for k, v in columns.items() if k != "x [g]"})
        assert found.samples.dtype == wanted
    columns["x"], columns["y"] = np.arange(6), [str(n / 2) for n in range(6)]
    path = tmp_path / "a.parquet"
    pa.parquet.write_table(
        pa.table({k: v for k, v in columns.items() if k != "x [g]"}), path
    )
    found = read(path)
    np.testing.assert_array_equal(found.samples[:, 1], np.arange(6) / 2)


def test_units_of_arrow_fields_and_nested_columns(tmp_path):
    schema = pa.schema(
        [
            pa.field("time", pa.float64()),
            pa.field("x", pa.float64(), metadata={"unit": "mg"}),
            pa.field("more", pa.list_(pa.float64())),
        ]
    )
    rows = pa.table([[0.0, 0.1], [1000.0, 500.0], [[1.0], []]], schema=schema)
    pa.parquet.write_table(rows, tmp_path / "a.parquet")
    columns = Columns(channels=("x",), time="time")
    found = read(tmp_path / "a.parquet", columns)
    np.testing.assert_array_equal(found.samples[:, 0], [1.0, 0.5])
    assert found.units == ("g",)
    with pytest.raises(ValueError, match=r"a\.parquet'.*column 'more'"):
        read(tmp_path / "a.parquet", columns._replace(channels=("more",)))


def test_other_kinds_of_columns(tmp_path):
    columns = {
        "time": pa.array([0, 20], pa.timestamp("ms", "UTC")),
        "x": pa.array([1, None], pa.int16()),
        "y": pa.array(["1", "2"]).dictionary_encode(),
        "act": pa.array([3.0, 2.5]),
        "who": pa.array([7, 8], pa.int8()),
    }
    columns["y"] = pa.array([1, 2], pa.decimal128(5, 2))
    pa.parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    found = read(tmp_path / "a.parquet", COLUMNS._replace(subject="who"))
    np.testing.assert_array_equal(found.samples, [[1, 1], [np.nan, 2]])
    assert found.labels["act"].names == ("3", "2.5")
    assert found.subject.names == ("7", "8")
    assert found.times[1] == np.datetime64("1970-01-01T00:00:00.020")
    assert found.time_format == "iso"


def test_text_in_a_column_of_numbers_is_counted():
    columns = {"time": np.arange(6), "x": ["1", "2", "oh", "4", "5", None], "act": ACTS}
    found = read(columns, COLUMNS._replace(channels=("x",)))
    np.testing.assert_array_equal(found.times, [0, 1, 3, 4, 5])
    assert found.losses == {"cell that is not a number": 1}
    assert found.first_lines == {"cell that is not a number": 3}


def test_objects_in_memory():
    columns = table().to_pydict()
    check(read(columns), stem="table 1")
    check(read(table()))
    arrays = {name: np.array(values) for name, values in columns.items()}
    check(read(arrays))
    found = list(reading.tables([{"ann": columns, "bob": table()}], COLUMNS))
    assert [each.stem for each in found] == ["ann", "bob"]
    for each in found:
        check(each)


def test_arrays():
    found = read(SAMPLES, Columns(channels=("x", "y"), units=("g",)))
    np.testing.assert_array_equal(found.samples, SAMPLES)
    assert found.times is None and found.units == ("g", "g")
    fields = np.zeros(3, [("time", "f8"), ("x", "i2"), ("act", "U4")])
    fields["x"], fields["act"] = [1, 2, 3], ["a", "b", ""]
    found = read(fields, COLUMNS._replace(channels=("x",)))
    np.testing.assert_array_equal(found.samples[:, 0], [1, 2, 3])
    np.testing.assert_array_equal(found.labels["act"].codes, [0, 1, -1])
    stacked = {"acc": np.arange(6.0).reshape(3, 2), "act": ["a"] * 3}
    found = read(stacked, Columns(channels=("acc.1",), labels=("act",)))
    np.testing.assert_array_equal(found.samples[:, 0], [1, 3, 5])


@pytest.mark.parametrize(
    ("source", "error", "why"),
    [
        (7, TypeError, "table 1 must be a DataFrame, .* got int"),
        (np.zeros((3, 3)), ValueError, r"one name in channels .* got shape \(3, 3\)"),
        ({"x": [1, 2], "y": [1]}, ValueError, "columns must have one length"),
        ({"x": np.zeros((2, 2, 2)), "y": [1, 2]}, ValueError, "column 'x' must be"),
        ({"z": [1]}, ValueError, "exactly one column 'x'"),
    ],
)
def test_other_objects_are_refused(source, error, why):
    with pytest.raises(error, match=why):
        read(source, Columns(channels=("x", "y")))


@pytest.mark.parametrize("suffix", ["parquet", "feather", "h5", "zip", "csv.gz"])
@pytest.mark.parametrize("data", [b"", b"PAR1 no", b"ARROW1\0\0"])
def test_damaged_files_are_named(tmp_path, suffix, data):
    if suffix == "h5":
        pytest.importorskip("h5py")
    path = tmp_path / f"ann.{suffix}"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=rf"ann\.{suffix}"):
        read(path)


def test_pandas():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(table().to_pydict())
    check(read(frame))
    check(read(frame.astype({"act": "category"})))
    zoned = pandas.to_datetime([0, 20], unit="ms", utc=True).tz_convert("Asia/Tokyo")
    indexed = pandas.DataFrame({"x": [1, 2]}, index=zoned)
    found = read(indexed, Columns(channels=("x",), time="index"))
    assert found.times[1] == np.datetime64("1970-01-01T00:00:00.020")
    levels = pandas.DataFrame([[1, 2]], columns=[["acc", "acc"], ["x", "y"]])
    found = read(levels, Columns(channels=("acc.y",)))
    np.testing.assert_array_equal(found.samples, [[2]])


def test_polars():
    polars = pytest.importorskip("polars")
    check(read(polars.DataFrame(table().to_pydict())))
    check(
        read(
            polars.from_arrow(table()).with_columns(
                polars.col("act").cast(polars.Categorical)
            )
        )
    )


def test_hugging_face(tmp_path):
    if "datasets" not in sys.modules:  # The checkout holds a folder of this name.
        pytest.importorskip("datasets.arrow_dataset")
    import datasets

    data = datasets.Dataset.from_dict(table().to_pydict())
    check(read(data))
    # Indices of a selection are applied.
    found = read(data.select([5, 4]), COLUMNS)
    np.testing.assert_array_equal(found.samples[:, 0], [5, 4])
    split = datasets.DatasetDict({"train": data, "test": data})
    assert [t.stem for t in reading.tables([split], COLUMNS)] == ["train", "test"]


class TestHdf5:
    """HDF5 files in the layouts that recorders write."""

    @pytest.fixture
    def h5py(self):
        return pytest.importorskip("h5py")

    def test_columns(self, h5py, tmp_path):
        with h5py.File(tmp_path / "ann.h5", "w") as file:
            for name, values in table().to_pydict().items():
                values = (
                    ["" if v is None else v for v in values]
                    if name == "act"
                    else values
                )
                file[name] = values
            file["y"].attrs["units"] = "m/s2"
        check(read(tmp_path / "ann.h5"), units=("g", "m/s^2"), stem="ann")

    def test_matrices_and_tables(self, h5py, tmp_path):
        rows = np.zeros(3, [("time", "f8"), ("act", "S4")])
        rows["act"] = [b"sit", b"", b"walk"]
        with h5py.File(tmp_path / "ann.hdf5", "w") as file:
            file["imu/acc"] = np.arange(6.0).reshape(3, 2)
            file["imu/gyro"] = np.arange(6.0).reshape(3, 2)
            file["imu/gyro"].attrs["columns"] = ["x", "y"]
            file["rows"] = rows
        columns = COLUMNS._replace(channels=("imu/acc.1", "imu/gyro.x"))
        found = read(tmp_path / "ann.hdf5", columns)
        np.testing.assert_array_equal(found.samples, [[1, 0], [3, 2], [5, 4]])
        assert found.labels["act"].names == ("sit", "walk")

    def test_a_missing_package_is_named(self, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "h5py", None)
        (tmp_path / "a.h5").write_bytes(b"")
        with pytest.raises(ImportError, match=r"a\.h5.*pip install 'jaxanon\[hdf5\]'"):
            read(tmp_path / "a.h5")


def folder_of_sensors(folder, start=0.0, gyroscope_start=0.0):
    """Writes an accelerometer at 50 Hz, a gyroscope at 20 Hz and a heart rate."""
    folder.mkdir(parents=True)
    sensors = {"accelerometer": (50, 100, 0.0), "gyroscope": (20, 40, gyroscope_start)}
    for name, (hz, count, delay) in sensors.items():
        times = start + delay + np.arange(count) / hz
        rows = "".join(f"{t:.4f},{2 * t:.4f},{-t:.4f}\n" for t in times)
        (folder / f"{name}.csv").write_text("time,x,y\n" + rows)
    rows = "".join(f"{start + n},{60 + n}\n" for n in range(3))
    (folder / "heart_rate.csv").write_text("time,rate\n" + rows)


def test_files_of_one_folder_are_joined_by_time(tmp_path):
    for name in ("ann", "bob"):
        folder_of_sensors(tmp_path / name)
    channels = ("accelerometer.x", "gyroscope.y", "heart_rate.rate")
    found = list(reading.tables([tmp_path], Columns(channels=channels, time="time")))
    assert [each.stem for each in found] == ["ann", "bob"]
    times = np.arange(100) / 50
    np.testing.assert_allclose(found[0].times, times)
    # All values are linear in time, so interpolation is exact between samples.
    inside = times <= 39 / 20
    np.testing.assert_allclose(found[0].samples[:, 0], 2 * times, atol=1e-9)
    np.testing.assert_allclose(found[0].samples[inside, 1], -times[inside], atol=1e-9)
    np.testing.assert_allclose(found[0].samples[:, 2], 60 + times, atol=1e-9)
    assert found[0].sparse == {"gyroscope.y": 20.0, "heart_rate.rate": 1.0}


def test_rows_before_another_sensor_begins_are_counted(tmp_path):
    folder_of_sensors(tmp_path / "ann", gyroscope_start=1.0)
    columns = Columns(channels=("accelerometer.x", "gyroscope.x"), time="time")
    found = read(tmp_path / "ann", columns)
    # The gyroscope begins after 1 s; its first value holds one step of 0.05 s before.
    assert found.losses == {"row outside the times of another sensor": 48}
    np.testing.assert_allclose(found.samples[2:, 0], found.samples[2:, 1], atol=1e-9)


def test_sensors_without_common_times_are_refused(tmp_path):
    folder_of_sensors(tmp_path / "ann", gyroscope_start=50.0)
    columns = Columns(channels=("accelerometer.x", "gyroscope.x"), time="time")
    with pytest.raises(ValueError, match="ann: sensors must be recorded at the same"):
        read(tmp_path / "ann", columns)


def test_a_gap_of_a_joined_sensor_stays_missing(tmp_path):
    folder_of_sensors(tmp_path / "ann")
    path = tmp_path / "ann/gyroscope.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:10] + lines[25:]))  # From 0.40 s to 1.20 s.
    columns = Columns(channels=("accelerometer.x", "gyroscope.x"), time="time")
    found = read(tmp_path / "ann", columns)
    missing = np.isnan(found.samples[:, 1])
    np.testing.assert_array_equal(
        found.times[missing], [t for t in np.arange(100) / 50 if 0.401 < t < 1.199]
    )


def test_frames_name_a_column_once():
    frame = frames.of_object({"x [g]": [1], "x [m]": [2], "y": [1]}, "a")
    assert frame.find("x") is None and frame.find("x [m]") == 1 and frame.find("y") == 2
