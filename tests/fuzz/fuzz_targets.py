"""Every kind of file that jaxanon reads: how to make a valid one, and its reader."""

import json
import pathlib
import warnings
from collections.abc import Callable
from typing import NamedTuple

import fuzz_edge
import fuzz_raw
import fuzz_recordings
import fuzz_reports
import numpy as np


class Target(NamedTuple):
    """A kind of file with its reader.

    Attributes:
      kinds: pattern of names -> the ``kind`` that ``fuzz_bytes.mutated`` uses for these
      files. make: function that writes valid files into an empty folder. read: function
      that reads them. slow: True if reading takes at least a tenth of a second.
    """

    kinds: dict[str, str]
    make: Callable[[pathlib.Path], object]
    read: Callable[[pathlib.Path], object]
    slow: bool = False


def custom_arrays():
    """Returns arrays of a custom file: 2 people, 2 acts, 20 windows of each."""
    random = np.random.default_rng(1)
    return {
        "windows": random.normal(size=(40, 8, 2)).astype(np.float32),
        "subject": np.repeat([3, 7], 20),
        "act": np.tile(np.repeat([0, 1], 10), 2),
        "act_names": np.array(["sit", "walk"]),
        "side": np.arange(40) % 2,
        "split": (np.arange(40) % 5 > 3).astype(int),
        **{"targets": np.array(["load"]), "load": random.normal(size=40)},
        **{"target_units": np.array(["W"]), "target_mean": np.zeros(1)},
        **{"target_std": np.ones(1), "target_channels": np.array([""])},
        **{"channels": np.array(["x", "y"]), "units": np.array(["g", "g"])},
        **{"rate_hz": np.array(50.0), "name": np.array("mine")},
        **{"mean": np.zeros(2), "std": np.ones(2), "preset": np.array("file")},
        **{"public": np.array("act"), "private": np.array(["side"])},
    }


def own_npz(folder):
    from jaxanon import datasets

    datasets.load(str(folder / "own.npz"))


def tokens_npz(folder):
    windows = np.tile(np.arange(8), (40, 1))[..., None]
    arrays = custom_arrays() | {"windows": windows, "tokens": np.array(9)}
    for name in ("targets", "load", *(n for n in arrays if n.startswith("target_"))):
        del arrays[name]
    arrays |= {"channels": np.array(["event"]), "units": np.array([""])}
    arrays |= {"mean": np.zeros(1), "std": np.ones(1)}
    np.savez(folder / "own.npz", **arrays)


def custom_csv(folder):
    if not (folder / "ann.csv").exists():
        rows = "".join(f"{i / 10},{i},act{i // 20}\n" for i in range(40))
        (folder / "ann.csv").write_text("t,x,act\n" + rows)
        (folder / "people.csv").write_text("subject,side\nann,left\n")
        return
    from jaxanon import datasets

    people = folder / "people.csv"
    settings = {"channels": ["x"], "labels": ["act"], "time": "t", "people": people}
    own = folder / "own.npz"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # Rows with missing values.
        datasets.import_recordings([folder / "ann.csv"], own, length=8, **settings)
    datasets.load(own, public="act", private=["side"])


def read_windows(folder):
    from jaxanon.cli import files

    (path,) = (path for path in folder.iterdir() if path.suffix in (".npy", ".npz"))
    files.read_windows(path)


def make_run(folder):
    from jaxanon import datasets, methods
    from jaxanon.cli import data as cli_data
    from jaxanon.training import trainer

    np.savez(folder / "own.npz", **custom_arrays())
    data = datasets.load(str(folder / "own.npz"))
    method = methods.orf(data.spec)
    trainer.train(method, data, epochs=1, output_dir=folder / "run", progress=False)
    cli_data.remember(
        folder / "run", cli_data.DataOptions(dataset=str(folder / "own.npz"))
    )


def open_run(folder):
    from jaxanon.training import run_folder

    return run_folder.open_run(folder / "run").unfinished


def recall(folder):
    from jaxanon.cli import data as cli_data
    from jaxanon.training import run_folder

    cli_data.recall(run_folder.open_run(folder / "run"))


def resume(folder):
    from jaxanon import datasets, methods
    from jaxanon.training import trainer

    data = datasets.load(str(folder / "own.npz"))
    method = methods.orf(data.spec)
    trainer.train(
        method, data, epochs=1, output_dir=folder / "run", progress=False, resume=True
    )


def make_told(folder):
    from jaxanon.privacy import ledger
    from jaxanon.training import profiling

    ledger.write_report(folder, {"epsilon": 1.5, "rounds": {"done": 3, "asked": 4}})
    told = dict.fromkeys(profiling.KEYS, 1)
    (folder / profiling.FILE).write_text(json.dumps(told))


def read_told(folder):
    from jaxanon.privacy import ledger
    from jaxanon.training import profiling

    ledger.read(folder)
    profiling.read(folder)


SWEEP = {"method": "orf", "settings": {"a": [1, 2]}, "seeds": [0], "splits": None}


def make_sweep(folder):
    from jaxanon.sweeps import folder as sweeps_folder

    sweeps_folder.claim(folder / "sweep", SWEEP, resume=False)
    sweeps_folder.add(folder / "sweep", rungs=[{"epoch": 1, "stopped": [0]}])


def read_sweep(folder):
    from jaxanon.sweeps import folder as sweeps_folder

    sweeps_folder.claim(folder / "sweep", SWEEP, resume=True)
    sweeps_folder.add(folder / "sweep", members=[])


def clients(folder):
    from jaxanon import federated

    if not (folder / "clients").exists():
        rows = ({"x": np.ones((n, 2), np.float32), "y": np.arange(n)} for n in (1, 3))
        federated.write_clients(folder / "clients", rows)
        return
    stored = federated.open_clients(folder / "clients")
    stored.read(np.arange(min(stored.num_clients, 1000)))


def saved(name, **arrays):
    """Returns a function that saves one file of windows."""
    from_array = lambda path: np.save(path, np.zeros((4, 8, 2), np.float32))
    if name.endswith(".npy"):
        return lambda folder: from_array(folder / name)
    return lambda folder: np.savez(folder / name, **(arrays or custom_arrays()))


TARGETS = {
    "own data": Target({"own.npz": "npz"}, saved("own.npz"), own_npz),
    "own csv": Target({"*.csv": "text"}, custom_csv, custom_csv),
    "recordings": Target(
        {"*": ""}, fuzz_recordings.make_csv, fuzz_recordings.read_each
    ),
    "recordings, tables": Target(
        {"*": ""}, fuzz_recordings.make_tables, fuzz_recordings.read_each
    ),
    "recordings, sensors": Target(
        {"*": "text"}, fuzz_recordings.make_sensors, fuzz_recordings.read_sensors
    ),
    "recordings, presets": Target(
        {"*/*": "text"}, fuzz_recordings.make_presets, fuzz_recordings.read_presets
    ),
    "anonymized": Target(
        {"*": ""}, fuzz_recordings.make_csv, fuzz_recordings.anonymize_each
    ),
    "anonymized, tables": Target(
        {"*": ""}, fuzz_recordings.make_tables, fuzz_recordings.anonymize_each
    ),
    "own tokens": Target({"own.npz": "npz"}, tokens_npz, own_npz),
    "input npy": Target({"in.npy": "npy"}, saved("in.npy"), read_windows),
    "input npz": Target({"in.npz": "npz"}, saved("in.npz"), read_windows),
    "config": Target({"run/config.json": "json"}, make_run, open_run, True),
    "metrics": Target({"run/metrics.jsonl": "jsonl"}, make_run, open_run, True),
    "metrics, resumed": Target({"run/metrics.jsonl": "jsonl"}, make_run, resume, True),
    "source": Target({"run/source.json": "json"}, make_run, recall, True),
    "checkpoint": Target({"run/checkpoints/**/*": "bytes"}, make_run, open_run, True),
    "budget": Target({"budget.json": "json"}, fuzz_edge.budget, fuzz_edge.budget),
    "told": Target({"*.json": "json"}, make_told, read_told),
    "sweep": Target({"sweep/sweep.json": "json"}, make_sweep, read_sweep),
    "clients": Target(
        {"clients/*.json": "json", "clients/*[!n]": "bytes"}, clients, clients
    ),
    "model": Target(
        {"*.json": "json", "*.onnx": "bytes"},
        fuzz_edge.make_model,
        fuzz_edge.read_model,
    ),
    "attackers": Target(
        {"*.json": "json", "*.onnx": "bytes"},
        fuzz_edge.make_attackers,
        fuzz_edge.read_attackers,
    ),
    "street": Target(
        {"run/config.json": "json", "run/checkpoints/**/*": "bytes"},
        fuzz_reports.make_street,
        fuzz_reports.open_street,
        True,
    ),
    "readings": Target(
        {"own.npz": "npz"}, fuzz_reports.make_readings, fuzz_reports.read_readings
    ),
    "report": Target(
        {"report.json": "json"}, fuzz_reports.make_report, fuzz_reports.read_report
    ),
    "letter": Target(
        {"*.json": "json", "numbers": "bytes"},
        fuzz_reports.make_letter,
        fuzz_reports.read_letter,
    ),
    "csv input": Target({"in.csv": "text"}, fuzz_edge.make_csv, fuzz_edge.read_csv),
    "csv append": Target({"out.csv": "text"}, fuzz_edge.csv_file, fuzz_edge.csv_file),
    "keys": Target({"key*": "text"}, fuzz_edge.make_keys, fuzz_edge.read_keys),
}
KINDS = {".zip": "zip", ".npz": "npz", ".npy": "bytes", ".csv": "text", ".txt": "text"}
BINARY = {".gz": "bytes", ".gzip": "bytes", ".bin": "bytes", ".edf": "bytes"}
BINARY |= dict.fromkeys((".parquet", ".feather", ".arrow", ".h5"), "bytes")
for _name, _make in fuzz_raw.MAKERS.items():
    if _name != "smartwatch":  # A pickle, trusted like the package that contains it.
        _read = lambda folder, name=_name: fuzz_raw.read(name, folder)
        TARGETS[_name] = Target({"**/*": ""}, _make, _read, _name == "smart_homes")


def victims(target: Target, folder: pathlib.Path) -> list[tuple[pathlib.Path, str]]:
    """Returns the target's files that may be damaged, with their kinds."""
    found = {}
    for pattern, kind in target.kinds.items():
        for path in sorted(folder.glob(pattern)):
            if path.is_file() and path not in found:
                known = KINDS | BINARY
                found[path] = kind or known.get(path.suffix, "text")
    return list(found.items())
