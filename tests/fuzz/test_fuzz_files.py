"""A few hundred seeded damages per kind of file: read, or rejected by name.

``fuzz_files.py`` runs many more. Its findings have tests here, or with the tests of the
file's reader.
"""

import pathlib
import random

import pytest

RUNS, SLOW_RUNS = 25, 3
NEEDED = {
    **{"model": "onnx", "attackers": "onnx", "mass": "edfio", "tracebase": "pyarrow"},
    **{"keys": "flwr", "letter": "flwr", "pecan_street": "pyarrow"},
}


def names():
    """Returns all targets' names from the source, without importing data sets."""
    return (
        *("own data", "own tokens", "own csv", "input npz", "config", "metrics"),
        *("recordings", "recordings, tables", "recordings, sensors"),
        *("recordings, presets", "anonymized", "anonymized, tables", "source", "told"),
        *("metrics, resumed", "checkpoint", "budget", "sweep", "clients"),
        *("model", "attackers", "street", "readings", "report", "letter", "csv input"),
        *("csv append", "keys", "motion_sense", "mobi_act"),
        *("wifi_har", "uci_hapt", "uci_har", "wisdm", "sleep_edf", "mass", "casas"),
        *("smart_homes", "room_climate", "occupancy", "cifar10", "cifar10_archive"),
        *("households", "tracebase", "pecan_street", "zipped", "input npy"),
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_a_damaged_file_is_read_or_refused_by_name(name, script, tmp_path):
    if name in NEEDED:
        pytest.importorskip(NEEDED[name])
    fuzz = script("fuzz_files")
    at = fuzz.Fuzz(name, tmp_path)
    refused = 0
    for seed in range(SLOW_RUNS if at.target.slow else RUNS):
        path, content, finding = at.try_one(f"smoke {name} {seed}")
        assert finding is None, (path.name, seed, finding)
        refused += content != at.good[path]
    assert refused


def test_every_target_is_tried(script):
    assert set(names()) == set(script("fuzz_targets").TARGETS)


def test_every_data_set_has_a_maker(script):
    from jaxanon import datasets

    raw = script("fuzz_raw")
    assert {raw.NAMED.get(name, name) for name in raw.MAKERS} == {*datasets.names()}


@pytest.mark.parametrize(
    ("error", "wrong"),
    [
        (KeyError("in.csv"), True),
        (RecursionError("in.csv"), True),
        (MemoryError("in.csv"), True),
        (ValueError("it is damaged"), True),
        (ValueError("in.csv is damaged"), False),
        (FileNotFoundError("in.csv is not there"), False),
    ],
)
def test_what_counts_as_a_finding(error, wrong, script, tmp_path):
    """The check detects a wrong exception type, or an error that names no file."""

    def read(folder):
        raise error

    (tmp_path / "in.csv").write_text("a")
    target = script("fuzz_targets").Target({}, None, read)
    found = script("fuzz_files").wrong(target, tmp_path)
    assert (found is not None) == wrong


def test_a_hang_is_found(script, tmp_path, monkeypatch):
    fuzz = script("fuzz_files")

    def read(folder):
        while True:
            try:
                pathlib.Path(folder).exists()
            except Exception:
                pass

    target = script("fuzz_targets").Target({}, None, read)
    limited = fuzz.limited
    monkeypatch.setattr(fuzz, "limited", lambda: limited(0.05))
    assert fuzz.wrong(target, tmp_path).startswith("hangs")


@pytest.mark.parametrize(
    "kind", ["json", "jsonl", "text", "zip", "npz", "npy", "bytes"]
)
def test_damage_is_seeded_and_changes_most_contents(kind, script):
    damage = script("fuzz_bytes").mutated
    data = b'{"a": [1, 2], "b": "x"}\n{"a": 3}'
    made = [damage(random.Random(seed), data, kind) for seed in range(50)]
    again = [damage(random.Random(seed), data, kind) for seed in range(50)]
    assert made == again
    assert sum(each != data for each in made) > 40
