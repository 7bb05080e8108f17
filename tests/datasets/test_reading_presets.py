"""Presets read tiny files in the published layout of each app, logger and data set."""

import zipfile

import numpy as np
import pytest

from jaxanon.datasets.importing import presets, reading
from jaxanon.datasets.importing.table import Columns

START = 1_772_438_400  # 2026-03-02 08:00:00 UTC.


def read(source, name, **choice):
    """Returns the tables of a source in a preset."""
    return list(reading.tables([source], Columns(format=name, **choice)))


def names_of(labels):
    """Returns the label of each row; None where it is missing."""
    return [labels.names[code] if code >= 0 else None for code in labels.codes]


def sensor_logger(folder):
    """Writes an export: accelerometer at 100 Hz, gyroscope at 50 Hz, an annotation."""
    folder.mkdir()
    for name, hz, scale in (("Accelerometer", 100, 1.0), ("Gyroscope", 50, 10.0)):
        rows = (
            f"{START * 10**9 + i * 10**9 // hz},{i / hz},{3 * scale},{2 * scale},"
            f"{scale * i / hz:.4f}"
            for i in range(hz)
        )
        text = "\n".join(["time,seconds_elapsed,z,y,x", *rows]) + "\n"
        (folder / f"{name}.csv").write_text(text)
    (folder / "Annotation.csv").write_text(
        f"time,seconds_elapsed,text,millisecond_press_duration\n"
        f"{START * 10**9 + 4 * 10**8},0.4,walk,10\n"
    )
    (folder / "Metadata.csv").write_text("version,device name\n3,phone\n")


def test_sensor_logger_joins_its_files_by_time(tmp_path):
    sensor_logger(tmp_path / "ann")
    (table,) = read(tmp_path / "ann", "sensor_logger", labels=("Annotation.text",))
    assert table.stem == "ann"
    wanted = [f"{s}.{axis}" for s in ("Accelerometer", "Gyroscope") for axis in "xyz"]
    assert list(table.channels) == wanted
    assert table.units == (*("m/s^2",) * 3, *("rad/s",) * 3)
    np.testing.assert_array_equal(
        table.times, START * 10**9 + np.arange(100) * 10_000_000
    )
    # x is the time in both files, ten times larger in the gyroscope's.
    np.testing.assert_allclose(table.samples[:, 0], np.arange(100) / 100)
    np.testing.assert_allclose(table.samples[:99, 3], np.arange(99) / 10, atol=1e-6)
    np.testing.assert_array_equal(table.samples[:, 1:3], [[2.0, 3.0]] * 100)
    labels = names_of(table.labels["Annotation.text"])
    assert labels == [None] * 40 + ["walk"] * 60
    assert table.sparse == {f"Gyroscope.{axis}": 50.0 for axis in "xyz"}


def test_sensor_logger_reads_its_zip(tmp_path):
    sensor_logger(tmp_path / "export")
    with zipfile.ZipFile(tmp_path / "bob.zip", "w") as archive:
        for path in (tmp_path / "export").iterdir():
            archive.write(path, path.name)
    (table,) = read(tmp_path / "bob.zip", "Sensor-Logger", channels=("Gyroscope.z",))
    assert (table.stem, table.units) == ("bob", ("rad/s",))
    np.testing.assert_array_equal(table.samples, np.full((50, 1), 30.0))
    assert table.time_format == "ns"


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_phyphox_reads_each_of_its_delimiters(tmp_path, delimiter):
    kind = "Linear Acceleration"
    header = ["Time (s)", *(f"{kind} {axis} (m/s^2)" for axis in "xyz")]
    rows = [[f"{n / 100:.9E}", f"{n}.5", "-1.25E-1", "0.0"] for n in range(5)]
    lines = [delimiter.join(f'"{name}"' for name in [*header, "Absolute (m/s^2)"])]
    lines += [delimiter.join([*row, "1.0"]) for row in rows]
    text = "\n".join(lines) + "\n"
    if delimiter != ",":
        text = text.replace(".", ",")
    with zipfile.ZipFile(tmp_path / "ann.zip", "w") as archive:
        archive.writestr("Raw Data.csv", text)
        archive.writestr("meta/device.csv", '"property","value"\n"version","1.1"\n')
        archive.writestr("meta/time.csv", '"event","experiment time"\n"START",0\n')
    (table,) = read(tmp_path / "ann.zip", "phyphox")
    assert table.channels == tuple(f"{kind} {axis}" for axis in "xyz")
    assert (table.units, table.time_format, table.stem) == (("m/s^2",) * 3, "s", "ann")
    np.testing.assert_allclose(table.times, np.arange(5) / 100)
    np.testing.assert_array_equal(
        table.samples[:, :2], [[n + 0.5, -0.125] for n in range(5)]
    )


def test_phyphox_joins_sensors_of_an_experiment(tmp_path):
    with zipfile.ZipFile(tmp_path / "ann.zip", "w") as archive:
        for name, unit in (("Accelerometer", "m/s^2"), ("Gyroscope", "rad/s")):
            header = ",".join(['"Time (s)"', *(f'"{axis} ({unit})"' for axis in "XYZ")])
            rows = "".join(f"{n / 50},{n},1.0,2.0\n" for n in range(6))
            archive.writestr(f"{name}.csv", f"{header}\n{rows}")
    (table,) = read(tmp_path / "ann.zip", "phyphox")
    assert table.channels[::3] == ("Accelerometer.X", "Gyroscope.X")
    np.testing.assert_allclose(table.samples[:, 3], np.arange(6), atol=1e-9)


def test_sensorlog(tmp_path):
    header = (
        "loggingTime(txt),loggingSample(N),accelerometerTimestamp_sinceReboot(s),"
        "accelerometerAccelerationX(G),accelerometerAccelerationY(G),"
        "accelerometerAccelerationZ(G),motionRotationRateX(rad/s),"
        "motionRotationRateY(rad/s),motionRotationRateZ(rad/s),activity(txt)"
    )
    rows = [
        f"2026-03-02T09:00:0{n}.020+01:00,{n},{n}.5,0.1,0.2,-{n}.0,1,2,3,walking"
        for n in range(4)
    ]
    for name, delimiter in (("a", ","), ("b", "|")):
        text = "\n".join([header, *rows]).replace(",", delimiter)
        (tmp_path / f"{name}.csv").write_text(text)
        (table,) = read(
            tmp_path / f"{name}.csv", "sensorlog", labels=("activity(txt)",)
        )
        assert table.units == (*("g",) * 3, *("rad/s",) * 3)
        np.testing.assert_array_equal(table.samples[:, 2], [0.0, -1.0, -2.0, -3.0])
        assert table.times[0] == np.datetime64("2026-03-02T08:00:00.020")
        assert names_of(table.labels["activity(txt)"]) == ["walking"] * 4


ACTIGRAPH = """\
------------ Data File Created By ActiGraph GT3X+ ActiLife v6.13.3 Firmware v2.5.0 \
date format {order} at 30 Hz  Filter Normal -----------
Serial Number: NEO1F18120387
Start Time 13:00:00
Start Date {date}
Epoch Period (hh:mm:ss) 00:00:00
Download Time 14:49:53
Download Date {date}
Current Memory Address: 0
Current Battery Voltage: 4.22     Mode = 12
--------------------------------------------------
"""


@pytest.mark.parametrize(
    ("order", "date"), [("M/d/yyyy", "3/13/2013"), ("dd.MM.yyyy", "13.03.2013")]
)
def test_actigraph_times_follow_from_its_first_lines(tmp_path, order, date):
    text = ACTIGRAPH.format(order=order, date=date)
    text += "Accelerometer X,Accelerometer Y,Accelerometer Z\n"
    text += "".join(f"-0.{n},0.5,1.0\n" for n in range(1, 7))
    (tmp_path / "ann.csv").write_text(text)
    (table,) = read(tmp_path / "ann.csv", "actigraph")
    assert (table.units, table.stem) == (("g",) * 3, "ann")
    np.testing.assert_array_equal(
        table.samples[:, 0], [-0.1, -0.2, -0.3, -0.4, -0.5, -0.6]
    )
    since = (table.times - np.datetime64("2013-03-13T13:00")).astype("m8[us]")
    np.testing.assert_allclose(since.astype(float) / 1e6, np.arange(6) / 30, atol=1e-6)


def test_actigraph_with_timestamps_keeps_the_date_format(tmp_path):
    text = ACTIGRAPH.format(order="M/d/yyyy", date="3/13/2013")
    text += "Timestamp,Accelerometer X,Accelerometer Y,Accelerometer Z\n"
    text += "".join(f"3/13/2013 13:00:00.{33 * n:03d},0,0,1\n" for n in range(4))
    (tmp_path / "ann.csv").write_text(text)
    (table,) = read(tmp_path / "ann.csv", "actigraph")
    assert table.time_format == "%m/%d/%Y %H:%M:%S.%f"
    assert table.times[1] == "3/13/2013 13:00:00.033"


def test_actigraph_without_its_first_lines_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text(
        "Accelerometer X,Accelerometer Y,Accelerometer Z\n0,0,1\n0,0,1\n"
    )
    with pytest.raises(ValueError, match="a.csv: a raw file of ActiGraph without"):
        read(tmp_path / "a.csv", "actigraph")


AXIVITY = {
    "omgui": ("", "2013-01-01 12:00:00.0{n}0,0.5,-1.0,{n}"),
    "omconvert": (
        "Time,Accel-X (g), Accel-Y (g), Accel-Z (g), Gyro-X (d/s), Gyro-Y (d/s), "
        "Gyro-Z (d/s)\n",
        "2013-01-01 12:00:00.0{n}0,0.5,-1.0,{n},1,2,3",
    ),
    "biobank": (
        "time,x,y,z\n",
        "2013-01-01 12:00:00.0{n}0+0000 [Europe/London],0.5,-1.0,{n}",
    ),
}


@pytest.mark.parametrize("kind", AXIVITY)
def test_axivity_with_and_without_a_header(tmp_path, kind):
    header, row = AXIVITY[kind]
    text = header + "\n".join(row.format(n=n) for n in range(1, 5)) + "\n"
    (tmp_path / "ann.csv").write_text(text)
    (table,) = read(tmp_path / "ann.csv", "axivity")
    assert table.units == ("g",) * 3
    np.testing.assert_array_equal(
        table.samples, [[0.5, -1.0, float(n)] for n in range(1, 5)]
    )
    first = str(table.times[0])
    assert first.startswith(("2013-01-01T12:00:00.010", "2013-01-01 12:00:00.010+0000"))
    assert "[" not in first
    if kind == "omconvert":
        (table,) = read(tmp_path / "ann.csv", "axivity", channels=("Gyro-Z",))
        assert table.units == ("deg/s",) and table.samples[0, 0] == 3


def test_empatica_starts_at_its_first_line(tmp_path):
    folder = tmp_path / "ann"
    folder.mkdir()
    acc = "".join(f"{n},-{n},64\n" for n in range(64))
    start = f"{START}.000000"
    (folder / "ACC.csv").write_text(
        f"{start}, {start}, {start}\n32.000000, 32.000000, 32.000000\n{acc}"
    )
    (folder / "HR.csv").write_text(f"{START}.0\n1.000000\n60.0\n70.0\n80.0\n")
    (folder / "TEMP.csv").write_text(f"{START}.0\n4.000000\n30.5\n31.5\n")
    (folder / "IBI.csv").write_text(f"{START}.0, IBI\n1.0,0.9\n")
    (folder / "tags.csv").write_text(f"{START}.5\n")
    (table,) = read(folder, "empatica")
    assert (table.units, table.stem) == (("g",) * 3, "ann")
    np.testing.assert_allclose(table.samples[:, 0], np.arange(64) / 64)  # 1/64 g.
    np.testing.assert_allclose(table.times - START, np.arange(64) / 32)
    (table,) = read(folder, "empatica", channels=("ACC.x", "HR"))
    assert table.units == ("g", "1/min")
    # The heart rate rises by 10 in each second.
    np.testing.assert_allclose(table.samples[:, 1], 60 + 10 * np.arange(64) / 32)


def test_apple_health_labels_are_workouts(tmp_path):
    record = (
        '<Record type="HKQuantityTypeIdentifierHeartRate" sourceName="Watch" '
        'unit="count/min" startDate="2026-03-02 09:00:{s:02d} +0100" '
        'endDate="2026-03-02 09:00:{s:02d} +0100" value="{v}"/>\n'
    )
    other = '<Record type="HKQuantityTypeIdentifierStepCount" value="7"/>\n'
    workout = (
        '<Workout workoutActivityType="HKWorkoutActivityTypeRunning" duration="1" '
        'startDate="2026-03-02 09:00:05 +0100" endDate="2026-03-02 09:00:10 +0100">'
        '<MetadataEntry key="HKIndoorWorkout" value="0"/></Workout>\n'
    )
    records = [record.format(s=s, v=60 + s) for s in (10, 0, 5, 15, 15)]
    text = f"<HealthData>\n{''.join(records)}{other}{workout}</HealthData>\n"
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE HealthData [\n' + (
        "<!ELEMENT HealthData (Record|Workout)*>\n]>\n"
    )
    with zipfile.ZipFile(tmp_path / "ann.zip", "w") as archive:
        archive.writestr("apple_health_export/export.xml", head + text)
        archive.writestr("apple_health_export/workout-routes/a.gpx", "<gpx/>")
    (table,) = read(tmp_path / "ann.zip", "apple_health")
    assert (table.stem, table.units) == ("ann", ("1/min",))
    np.testing.assert_array_equal(table.times - START, [0, 5, 10, 15])
    np.testing.assert_array_equal(table.samples[:, 0], [60, 65, 70, 75])
    assert names_of(table.labels["workout"]) == [None, "Running", "Running", None]


def test_pamap2_has_labels_and_a_sparse_heart_rate(tmp_path):
    rows = []
    for n in range(40):
        row = [f"{n / 100:.2f}", "0" if n < 10 else "4", "NaN"]
        row += [str(n + place / 10) for place in range(51)]
        if n % 10 == 0:
            row[2] = str(100 + n)
        rows.append(" ".join(row))
    folder = tmp_path / "Protocol"
    folder.mkdir()
    (folder / "subject101.dat").write_text("\n".join(rows) + "\n")
    (folder / "readme.txt").write_text("About the data set, in words.\n")
    (table,) = read(folder, "pamap2")
    assert table.stem == "subject101" and len(table.channels) == 18
    assert table.units == (*("m/s^2",) * 3, *("rad/s",) * 3) * 3
    # Columns 5 to 7 of the file are the hand's acceleration within 16 g.
    np.testing.assert_allclose(table.samples[7, :3], [7.1, 7.2, 7.3])
    assert names_of(table.labels["activity"]) == [None] * 10 + ["walking"] * 30
    (table,) = read(folder, "pamap2", channels=("heart rate", "chest mag z"))
    assert table.units == ("1/min", "µT")
    # The importer interpolates between the values in every tenth row.
    np.testing.assert_array_equal(table.samples[::10, 0], [100, 110, 120, 130])
    assert np.isnan(table.samples[:, 0]).sum() == 36


def test_wisdm_raw_repairs_its_line_ends(tmp_path):
    text = (
        "33,Jogging,49105962326000,-0.69,12.68,0.5;\n"
        "33,Jogging,49106062271000,5.01,11.26,0.95;33,Jogging,49106112167000,4.9,10.8,0;\n"
        "17,Walking,49106222305000,-0.61,18.49,3.06,;\n"
        "17,Walking,49106332290000,-1.18,;\n"
        "17,Walking,49106442306000,1.5,2.5,3.5\n"
    )
    (tmp_path / "WISDM_ar_v1.1_raw.txt").write_text(text)
    (table,) = read(tmp_path / "WISDM_ar_v1.1_raw.txt", "wisdm_raw")
    assert names_of(table.subject) == ["33"] * 3 + ["17"] * 2
    assert names_of(table.labels["activity"]) == ["Jogging"] * 3 + ["Walking"] * 2
    np.testing.assert_array_equal(table.samples[:, 0], [-0.69, 5.01, 4.9, -0.61, 1.5])
    assert table.times[0] == 49105962326000 and table.time_format == "ns"
    assert table.losses == {"malformed row": 1} and table.units == ("m/s^2",) * 3


def test_motion_sense_takes_label_and_person_from_the_path(tmp_path):
    names = [
        *("attitude.roll", "attitude.pitch", "attitude.yaw"),
        *(
            f"{kind}.{axis}"
            for kind in ("gravity", "rotationRate", "userAcceleration")
            for axis in "xyz"
        ),
    ]
    for place in ("dws_1/sub_1", "wlk_7/sub_24"):
        path = tmp_path / f"A_DeviceMotion_data/{place}.csv"
        path.parent.mkdir(parents=True)
        rows = [f"{n},{','.join(f'{n}.{k}' for k in range(12))}" for n in range(4)]
        path.write_text("\n".join([",".join(["", *names]), *rows]))
    (tmp_path / "data_subjects_info.csv").write_text("code,weight\n1,102\n")
    tables = read(tmp_path, "motion_sense")
    assert [table.stem for table in tables] == ["sub_1", "sub_24"]
    assert [table.labels["activity"].names for table in tables] == [
        ("downstairs",),
        ("walking",),
    ]
    assert tables[0].units == (*("g",) * 3, *("rad/s",) * 3)
    np.testing.assert_allclose(tables[0].times, np.arange(4) / 50)
    np.testing.assert_allclose(tables[0].samples[2], [2.9, 2.10, 2.11, 2.6, 2.7, 2.8])


def test_formats_have_titles_and_unknown_ones_are_named():
    assert all(preset.title for preset in presets.PRESETS.values())
    with pytest.raises(ValueError, match="preset must be one of .*phyphox.* got 'x'"):
        presets.find("x")


@pytest.mark.parametrize("name", presets.PRESETS)
def test_a_file_of_another_origin_is_named(tmp_path, name):
    (tmp_path / "a.csv").write_text("time,v,w\n1,2,3\n2,3,4\n")
    with pytest.raises(ValueError, match=r"a\.csv"):
        read(tmp_path / "a.csv", name)
