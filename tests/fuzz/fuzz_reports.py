"""Other files: runs of homes, reports, and payloads of untrusted senders."""

import functools
import json
import pathlib
import types
from typing import NamedTuple

import numpy as np

SIZES = {"homes": 2, "devices": 2, "days": 1, "test_days": 1}


@functools.cache
def homes():
    from jaxanon import energy

    return energy.load_homes("simulated", **SIZES)


def make_street(folder):
    from jaxanon import energy
    from jaxanon.training import trainer

    method = energy.pfdrl_method(
        homes().spec, **SIZES, joining=0, forecaster="lr", hidden_sizes=(6,), alpha=1,
        forecaster_steps=1, max_age=1, graph="k-regular", degree=1,
    )  # fmt: skip
    trainer.train(method, homes(), output_dir=folder / "run", progress=False)


def open_street(folder):
    from jaxanon.cli import data as cli_data
    from jaxanon.training import run_folder

    cli_data.of_homes(folder / "run")
    return run_folder.open_run(folder / "run")


def make_readings(folder):
    """Makes plugs of two homes, a day of ten-minute readings each."""
    minute = np.tile(np.arange(0, 2880, 10), 2)
    home = np.repeat(["a", "b"], len(minute) // 2)
    power = np.where(minute % 60 < 30, 5.0, 40.0)
    device = np.full(len(minute), "lamp")
    np.savez(folder / "own.npz", home=home, device=device, minute=minute, power=power)


def read_readings(folder):
    from jaxanon import energy

    energy.load_homes(folder / "own.npz", days=1, test_days=1)


class Evaluated(NamedTuple):
    """The part of a run that its report uses."""

    folder: pathlib.Path
    state: types.SimpleNamespace = types.SimpleNamespace(round=3)


def scores(**more):
    return {"balanced_accuracy": 0.75, "chance": 0.5, **more}


REPORT = {
    "dataset": {"name": "toy", "split": "given"},
    "utility": {"attribute": "activity", "raw": scores(), "anonymized": scores()},
    "intrusive": {
        "gender": {"raw": scores(), "anonymized": scores()},
        "subject": None,
    },
    "reidentification": {"gender": {"attackers": {"mlp": scores()}}},
}


def make_report(folder):
    (folder / "report.json").write_text(json.dumps(REPORT))


def read_report(folder):
    from jaxanon.exporting import card

    card.measured_of_run(Evaluated(folder), "float16")


def make_letter(folder):
    from jaxanon.flower.records import Payload, to_record

    arrays = {"w": np.ones((2, 3), np.float32), "n": np.int32(4)}
    record = to_record(Payload({"round": 3, "why": None}, arrays))
    for name in ("facts", "arrays"):
        (folder / f"{name}.json").write_text(record["header"][name])
    (folder / "numbers").write_bytes(record["numbers"]["all"].numpy().tobytes())


def read_letter(folder):
    from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

    from jaxanon.flower.records import to_payload

    told = lambda name: (folder / f"{name}.json").read_text(errors="replace")
    config = ConfigRecord({name: told(name) for name in ("facts", "arrays")})
    record = RecordDict({"header": config})
    whole = np.frombuffer((folder / "numbers").read_bytes(), np.uint8)
    record["numbers"] = ArrayRecord({"all": Array(whole)})
    try:
        to_payload(record)
    except ValueError as error:
        if not str(error).startswith("it is not a message of jaxanon"):
            raise
        raise ValueError(f"{folder}: {error}") from error
