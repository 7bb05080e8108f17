"""Writes the smallest files in each data set's original format."""

import gzip
import importlib
import io
import pathlib
import tarfile
import zipfile

import numpy as np

from jaxanon.datasets import registry, store
from jaxanon.datasets.households.description import COLUMNS as APPLIANCES
from jaxanon.datasets.motion_sense.description import CHANNELS as MOTION
from jaxanon.datasets.occupancy.description import COLUMNS as ROOM
from jaxanon.datasets.smartwatch.description import EXERCISES
from jaxanon.datasets.wifi_har.description import CHANNELS as CARRIERS

RANDOM = np.random.default_rng(0)
MS = 1_000_000


def rows(count, columns, separator=","):
    """Returns lines of seeded numbers."""
    values = RANDOM.normal(size=(count, columns)).round(3).tolist()
    return [separator.join(map(repr, row)) for row in values]


def write(folder, name, content):
    """Writes a file of text, lines or bytes."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, list):
        content = "\n".join(content) + "\n"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def motion_sense(folder):
    header = ",".join(["", *MOTION])
    lines = [f"{i},{row}" for i, row in enumerate(rows(3, len(MOTION)))]
    write(folder, "A_DeviceMotion_data/dws_1/sub_1.csv", [header, *lines])
    people = ["code,weight,height,age,gender", "1,102,188,46,1"]
    write(folder, "data_subjects_info.csv", people)


def mobi_act(folder):
    header = "timestamp,rel_time,acc_x,acc_y,acc_z,gyro_x,gyro_y,gyro_z,azimuth,label"
    for activity in ("WAL", "STD", "JOG", "STU"):
        lines = [f"{row},{activity}" for row in rows(3, 9)]
        name = f"Annotated Data/{activity}/{activity}_28_1_annotated.csv"
        write(folder, name, [header, *lines])
    person = "|  28  | sub28   | sub28     |   23  |    178   |   70     |   M      |"
    write(folder, "Readme.txt", ["Subjects:", person])


def wifi_har(folder):
    cells = RANDOM.integers(-60, 60, (3, len(CARRIERS), 2)).tolist()
    lines = [",".join(f"{a}+{b}i" for a, b in row) for row in cells]
    write(folder, "E2_S11_C01_A01_T16.csv", [",".join(CARRIERS), *lines])
    write(folder, "people.csv", ["subject,weight,height", "11,80,175"])


def uci_hapt(folder):
    for sensor in ("acc", "gyro"):
        write(folder, f"RawData/{sensor}_exp01_user01.txt", rows(9, 3, " "))
    write(folder, "RawData/labels.txt", ["1 1 1 1 4", "1 1 4 5 9"])


def uci_har(folder):
    for side in ("train", "test"):
        for kind in ("body_acc", "body_gyro", "total_acc"):
            for axis in "xyz":
                name = f"{side}/Inertial Signals/{kind}_{axis}_{side}.txt"
                write(folder, name, rows(2, 128, " "))
        write(folder, f"{side}/subject_{side}.txt", ["1", "2"])
        write(folder, f"{side}/y_{side}.txt", ["1", "6"])


def wisdm(folder):
    for sensor in ("accel", "gyro"):
        lines = [
            f"1600,{letter},{50 * at * MS},{row};"
            for letter in "AL"
            for at, row in enumerate(rows(5, 3))
        ]
        write(folder, f"raw/watch/{sensor}/data_1600_{sensor}_watch.txt", lines)


def sleep_edf(folder):
    stages = np.repeat([0, 2, 4, 0], 3)
    made = io.BytesIO()
    np.savez(made, X=RANDOM.normal(size=(12, 72)), y=stages)
    write(folder, "SC4001E0.npz", made.getvalue())


def mass(folder):
    import edfio

    labels = ("EOG Left Horiz", "EOG Right Horiz", "EEG C4-CLE", "EMG Chin")
    signals = [
        edfio.EdfSignal(
            RANDOM.uniform(-50, 50, 640),
            10,
            label=label,
            physical_dimension="uV",
            physical_range=(-200, 200),
        )
        for label in labels
    ]
    scores = [
        edfio.EdfAnnotation(1 + 30 * i, 30, f"Sleep stage {score}")
        for i, score in enumerate("W2")
    ]
    edfio.Edf(signals).write(folder / "01-01-0002 PSG.edf")
    edfio.Edf([], annotations=scores).write(folder / "01-01-0002 Base.edf")


def smart_homes(folder):
    day = 1267401600
    sensors = {
        "A": "Microwave",
        "B": "toilet flush",
        "C": "bathtub pir",
        "D": "Bathroom,Toilet Flush ",
        "E": "Den,Stereo",
    }
    for home, sensor in sensors.items():
        act = "Sleeping" if home in "DE" else "go-to-bed"
        write(folder, f"house{home}.sensors", [f"{day + 90}\t15\t1"])
        write(folder, f"house{home}.activities", [f"{day}\t600\t5"])
        write(folder, f"house{home}.sensor_names", [f"1\t{sensor}"])
        write(folder, f"house{home}.activity_names", [f"5\t{act}"])
    head = ["Start time \tEnd time  \tActivity", "----------\t--------\t--------"]
    times = "2010-03-01 01:00:00\t\t2010-03-01 01:10:00 \t"
    for home in "AB":
        sensor = f"{times}Shower\t\tPIR\t\tBathroom"
        write(folder, f"Ordonez{home}_Sensors.txt", [*head, sensor])
        write(folder, f"Ordonez{home}_ADLs.txt", [*head, f"{times}Sleeping\t"])


def room_climate(folder):
    lines = [
        f"{4 * i + node}, {1458031648000 + 4000 * i + node}, {i}, {node}, "
        f"20.{node}, 40, 1, 300, 1, {i // 4}, 0, 1"
        for i in range(8)
        for node in (1, 2, 3)
    ]
    for room in "ABC":
        write(folder, f"room_climate-location_{room}-measurement01.csv", lines)


def occupancy(folder):
    header = ",".join(["Date", "Time", *ROOM, "Room_Occupancy_Count"])
    lines = [
        f"2017/12/22,10:{minute:02}:00,{row},{minute % 2}"
        for minute, row in enumerate(rows(6, len(ROOM)))
    ]
    write(folder, "Occupancy_Estimation.csv", [header, *lines])


def casas(folder):
    lines = [
        f"2009-10-16 0{hour}:00:0{hour}.5 M00{hour} ON {note}"
        for hour, note in enumerate(["Sleep begin", "", "Sleep end", "", "Read begin"])
    ]
    write(folder, "milan/data", [*lines, "2009-10-17 08:00:00 T001 21.5 Read end"])
    write(folder, "kyoto1/p01.t1", ["2009-10-16 12:43:27.4\tM08\tON", *lines])


def _photographs():
    records = RANDOM.integers(0, 256, (2, 1 + 3 * 32 * 32), np.uint8)
    records[:, 0] = 3, 5
    return records.tobytes()


def cifar10(folder):
    for name in ("data_batch_1", "test_batch"):
        write(folder, f"{name}.bin", _photographs())


def cifar10_archive(folder):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name in ("data_batch_1", "test_batch"):
            info = tarfile.TarInfo(f"cifar-10-batches-bin/{name}.bin")
            content = _photographs()
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    write(folder, "cifar-10-binary.tar.gz", made.getvalue())


def households(folder):
    header = ",".join(["Time", *APPLIANCES])
    times = [f"2014-04-29 {h:02}:{m:02}:00" for h in range(2) for m in range(60)]
    lines = [f"{time},{100 + i},0,0,0,0,0" for i, time in enumerate(times)]
    content = "\n".join([header, *lines, ""]).encode()
    write(folder, "REFIT_House1_2014-04.csv", content)
    write(folder, "REFIT_House2_2014-04.gzip", gzip.compress(content))


def tracebase(folder):
    import pyarrow
    import pyarrow.parquet

    day = 1440
    time = np.datetime64("2011-08-06", "m") + np.arange(day)
    columns = {
        "time": time.astype("datetime64[us]"),
        "power_w": np.full(day, 3, np.float32),
        **{"set": ["complete"] * day, "type": ["Lamp"] * day, "device": ["a"] * day},
    }
    table = pyarrow.table(columns)
    pyarrow.parquet.write_table(table, folder / "tracebase_1min.parquet")


def pecan_street(folder):
    times = [f"2019-06-03 {h:02}:{m:02}:00-05" for h in range(2) for m in range(60)]
    lines = [f"26,{time},1.5,0.25,0.5" for time in times]
    content = "\n".join(["dataid,localminute,grid,solar,air1", *lines, ""])
    write(folder, "1minute_data_austin.csv", content)
    write(folder, "1minute_data.csv.gz", gzip.compress(content.encode()))
    write(folder, "metadata.csv", ["dataid,state,city", "26,Texas,Austin"])


def smartwatch(folder):
    watch = {
        "X": [RANDOM.normal(size=(9, 6)) for _ in range(2)],
        "y": np.array([0, 3]),
        "side": np.array([0.0, 1.0]),
        "subject": np.array([1, 2]),
        "y_labels": list(EXERCISES),
    }
    np.save(folder / "watch_dataset.npy", watch, allow_pickle=True)


def zipped(folder):
    """Writes one of them as a zip, like a downloaded archive."""
    inside = folder.with_name("inside")
    motion_sense(inside)
    with zipfile.ZipFile(folder / "all.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(inside.rglob("*")):
            archive.write(path, path.relative_to(inside))


MAKERS = {
    maker.__name__: maker
    for maker in (
        *(motion_sense, mobi_act, wifi_har, uci_hapt, uci_har, wisdm, sleep_edf, mass),
        *(smart_homes, room_climate, occupancy, casas, cifar10, cifar10_archive),
        *(households, tracebase, pecan_street, smartwatch, zipped),
    )
}
# Data sets registered by others.
NAMED = {"cifar10_archive": "cifar10", "zipped": "motion_sense"}


def read(name: str, folder: pathlib.Path) -> int:
    """Reads a folder's original files as preparation would, without storing them.

    Raises:
      any error of the loader.
    """
    dataset = registry.find(NAMED.get(name, name))
    module, builder = dataset.builder.split(":")
    made = object.__new__(getattr(importlib.import_module(module), builder))
    source = folder / "watch_dataset.npy" if name == "smartwatch" else folder
    made._source, _ = store.locate(dataset, source, folder)
    return sum(1 for _ in made._generate_examples())
