"""Recordings in every format and preset that the import reads, and their reader."""

import gzip
import importlib.util
import io
import pathlib
import zipfile

import numpy as np

COUNT = 24
ROWS = [f"{n / 50},{n % 5}.5,{-n},act{n // 12}" for n in range(COUNT)]
CSV = "time [s],x [mg],y,act\n" + "\n".join(ROWS) + "\n"
COLUMNS = {"channels": ("x", "y"), "labels": ("act",), "time": "time"}
PRESETS = {
    "actigraph": "--- ActiGraph date format M/d/yyyy at 30 Hz ---\n"
    "Start Time 13:00:00\nStart Date 3/13/2013\n"
    "Accelerometer X,Accelerometer Y,Accelerometer Z\n" + "0,0.5,1\n" * COUNT,
    "axivity": "2013-01-01 12:00:00.010+0000 [Europe/London],0.5,-1.0,1\n" * COUNT,
    "pamap2": "\n".join(" ".join([f"{n / 100}", "4", *["1.5"] * 52]) for n in range(9)),
    "wisdm_raw": "".join(f"33,Jogging,{n}0000000,-0.6,12,0.5;\n" for n in range(COUNT)),
    "sensorlog": "loggingTime(txt),accelerometerAccelerationX(G),"
    "accelerometerAccelerationY(G),accelerometerAccelerationZ(G)\n"
    + "2026-03-02T09:00:01.020+01:00,1,2,3\n"
    * COUNT,
    "apple_health": "<HealthData>"
    + "".join(
        '<Record type="HKQuantityTypeIdentifierHeartRate" '
        f'startDate="2026-03-02 09:00:{n:02d} +0100" value="{60 + n}"/>\n'
        for n in range(COUNT)
    )
    + "</HealthData>",
    "empatica": "1772438400.0, 1772438400.0, 1772438400.0\n32.0, 32.0, 32.0\n"
    + "1,2,64\n" * COUNT,
}
NAMES = {
    "apple_health": "export.xml",
    "pamap2": "subject101.dat",
    "empatica": "ACC.csv",
}


def make_csv(folder):
    """Writes one table in several dialects."""
    foreign = CSV.replace(",", ";").replace(".", ",")
    texts = {
        "plain": CSV.encode(),
        "foreign": ("sep=;\n" + foreign).replace("\n", "\r\n").encode("utf-16"),
        "preamble": b"Serial 12\n# remark\n\n" + CSV.replace("\n", "\r").encode(),
    }
    texts["quoted"] = "\n".join(
        ",".join(f'"{cell}"' for cell in line.split(",")) for line in CSV.splitlines()
    ).encode()
    for name, data in texts.items():
        (folder / f"{name}.csv").write_bytes(data)


def make_tables(folder):
    """Writes one table in the formats of columns, and compressed."""
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet

    numbers = np.arange(COUNT)
    acts = [f"act{n // 12}" for n in range(COUNT)]
    columns = {"time": numbers / 50, "x": numbers * 0.5, "y": -numbers, "act": acts}
    table = pa.table(columns)
    pa.parquet.write_table(table, folder / "a.parquet")
    pa.feather.write_feather(table, folder / "b.feather")
    with pa.ipc.new_stream(str(folder / "c.arrow"), table.schema) as writer:
        writer.write_table(table)
    (folder / "d.csv.gz").write_bytes(gzip.compress(CSV.encode()))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ann.csv", CSV)
        archive.write(folder / "a.parquet", "bob.parquet")
    (folder / "e.zip").write_bytes(packed.getvalue())
    if importlib.util.find_spec("h5py"):
        import h5py

        with h5py.File(folder / "f.h5", "w") as file:
            for name, values in columns.items():
                file[name] = values


def make_sensors(folder):
    """Writes two sensors of one recording."""
    for name, hz in (("accelerometer", 50), ("gyroscope", 20)):
        rows = "".join(f"{n / hz},{n},{-n}\n" for n in range(hz // 2))
        (folder / f"{name}.csv").write_text("time,x,y\n" + rows)


def make_presets(folder):
    """Writes a file of each preset."""
    for name, text in PRESETS.items():
        (folder / name).mkdir()
        (folder / name / NAMES.get(name, "ann.csv")).write_text(text)


def _read(source, **columns):
    from jaxanon.datasets.importing import reading
    from jaxanon.datasets.importing.table import Columns

    for table in reading.tables([source], Columns(**columns)):
        count, width = table.samples.shape
        assert width == len(table.channels) == len(table.units)
        assert table.times is None or len(table.times) == count
        for labels in table.labels.values():
            assert len(labels.codes) == count
            assert labels.codes.max(initial=-1) < len(labels.names)


def read_each(folder: pathlib.Path):
    """Reads every file of a folder."""
    for path in sorted(folder.iterdir()):
        _read(path, **COLUMNS)


def read_sensors(folder):
    """Reads a folder as one recording."""
    _read(folder, channels=("accelerometer.x", "gyroscope.y"), time="time")


def read_presets(folder):
    """Reads the file of each preset."""
    for name in PRESETS:
        _read(folder / name, format=name)


def _run():
    """Returns what ``anonymize`` needs of a run, for channels x and y."""
    import types

    from jaxanon.datasets import spec

    of = spec.Spec(
        name="mine",
        preset="file",
        time=8,
        channels=("x", "y"),
        units=("", ""),
        rate_hz=50.0,
        public="act",
        private=("side",),
        classes={
            "act": ("act0", "act1"),
            "side": ("left", "right"),
            "subject": ("a", "b"),
        },
        mean=(3.0, -12.0),
        std=(2.0, 7.0),
        split="given",
    )
    return types.SimpleNamespace(spec=of)


def anonymize_each(folder):
    """Anonymizes every file of a folder, at exact times and on a grid."""
    from jaxanon.datasets.importing.table import Columns
    from jaxanon.streaming import anonymizing, sources

    run, columns = _run(), Columns(channels=("x", "y"), labels=("act",))
    for path in sorted(folder.iterdir()):
        if not sources.suffix_of(path):
            continue
        for time in ("exact", "grid", "relative"):
            options = anonymizing.Options(time=time, carry=("act",), gaps="column")
            with sources.items(path, folder / "safe" / path.name, columns) as items:
                for item in items:
                    opened = item.open()
                    work = anonymizing._Anonymizing(run, opened, options, lambda x: -x)
                    work.write_to(None, item.name, item.target)
