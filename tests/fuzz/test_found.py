"""Regression tests for faults that fuzzing found."""

import base64
import io
import json
import zipfile

import numpy as np
import pytest

from jaxanon import datasets
from jaxanon.datasets import registry, sources, store
from jaxanon.edge import Budget
from jaxanon.privacy import ledger
from jaxanon.sweeps import folder as sweeps_folder
from jaxanon.training import metrics_log, profiling, run_folder

DEEP = "[" * 200_000  # More than Python's stack can hold.
LARGE = f'{{"a": 1{400 * "0"}}}'  # More than a float can hold.


def header(shape, descr="'<f4'"):
    """Returns an empty ``.npy`` whose header claims other numbers."""
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def packed(path, **members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return path


@pytest.mark.parametrize(
    "content",
    [
        header("(99999999999999,)"),  # MemoryError
        header("(" + "9" * 30 + ",)"),  # OverflowError
        header("("),  # tokenize.TokenError
        header("(None,)"),  # TypeError
        b"no array",  # NumPy returns such members as bytes.
    ],
    ids=["memory", "overflow", "syntax", "type", "bytes"],
)
def test_own_arrays_with_a_false_header_are_refused(content, tmp_path):
    path = packed(tmp_path / "own.npz", windows=content)
    with pytest.raises(ValueError, match="own.npz' is (truncated|damaged)"):
        datasets.load(path, public="act", private="side")


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("rate_hz", np.zeros(3), "0-dimensional|size-1|length-1"),  # TypeError
        ("mean", np.array(["a", "b"]), "could not convert"),
        # SystemError: the numbers are not valid characters.
        ("act_names", np.frombuffer(b"\xff" * 8, "<U1"), "damaged or of another"),
        ("windows", np.zeros((4, 2)), "windows must be a non-empty float"),
    ],
)
def test_errors_of_own_data_name_the_file(name, value, why, own, tmp_path):
    path = tmp_path / "mine.npz"
    np.savez(path, **(own | {"split": np.arange(40) % 2, name: value}))
    with pytest.raises(ValueError, match=f"mine.npz': .*({why})"):
        datasets.load(path, public="act", private="subject")


@pytest.fixture
def own():
    random = np.random.default_rng(1)
    return {
        "windows": random.normal(size=(40, 8, 2)).astype(np.float32),
        "subject": np.repeat([3, 7], 20),
        "act": np.arange(40) // 10 % 2,
    }


def test_json_that_no_stack_holds_is_damage(tmp_path):
    write = lambda name: (tmp_path / name).write_text(DEEP)
    for name in ("budget.json", ledger.FILE, profiling.FILE, sweeps_folder.FILE):
        write(name)
    write("config.json")
    readers = {
        "budget.json": lambda: Budget(tmp_path / "budget.json"),
        ledger.FILE: lambda: ledger.read(tmp_path),
        sweeps_folder.FILE: lambda: sweeps_folder.read(tmp_path),
        "config.json": lambda: run_folder.read_config(tmp_path),
    }
    for name, read in readers.items():
        with pytest.raises(ValueError, match=f"{name} is .*damaged"):
            read()
    with pytest.warns(UserWarning, match="costs.json is damaged"):
        assert profiling.read(tmp_path) is None


@pytest.mark.parametrize("text", [DEEP, '{"epsilon": 1e999, "check": 1}', "[1]"])
def test_a_budget_of_other_json_is_damaged(text, tmp_path):
    (tmp_path / "budget.json").write_text(text)
    with pytest.raises(ValueError, match="budget.json is not a budget or is damaged"):
        Budget(tmp_path / "budget.json", 1.0)


def test_a_metrics_file_with_another_row_ends_there(tmp_path):
    good, more = '{"round": 1, "losses": {}}', '{"round": 2, "losses": {"a": 0.5}}'
    rounds = [f'{{"round": {bad}, "losses": {{}}}}' for bad in ('"x"', "null")]
    losses = [f'{{"round": 1, "losses": {bad}}}' for bad in ("3", '{"a": "x"}', LARGE)]
    for bad in (*rounds, *losses, '{"round": 1}', DEEP, "\udcff"):
        text = "\n".join([good, bad, more]).encode(errors="surrogateescape")
        (tmp_path / "metrics.jsonl").write_bytes(text)
        assert metrics_log.read(tmp_path, 9) == [json.loads(good)]
    (tmp_path / "metrics.jsonl").write_text(f"{good}\n{more}\n")
    rows = metrics_log.read(tmp_path, 9)
    assert rows == [json.loads(good), json.loads(more)]


def test_a_sweep_s_file_must_hold_an_object(tmp_path):
    (tmp_path / sweeps_folder.FILE).write_text("[]")
    with pytest.raises(ValueError, match="sweep.json is damaged .it holds a list"):
        sweeps_folder.claim(tmp_path, {"seeds": [1]}, resume=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("dataset", 3), ("split_seed", "x"), ("preset", 1.5), ("other", "x")),
        *(("test_people", "ann"), ("test_people", [3])),
    ],
)
def test_a_damaged_record_of_the_data_is_refused(name, value, tmp_path):
    from jaxanon.cli import data as of_commands

    path = tmp_path / of_commands.RECORD
    path.write_text(json.dumps({"dataset": "smartwatch"} | {name: value}))
    with pytest.raises(ValueError, match="source.json is damaged .*by --dataset"):
        of_commands.recorded(path)
    path.write_text('{"dataset": "smartwatch", "preset": null, "split_seed": 3}')
    assert of_commands.recorded(path)["split_seed"] == 3


@pytest.mark.parametrize("lacks", ["seed", "settings", "architecture"])
def test_a_config_of_other_types_describes_no_run(lacks, tmp_path):
    told = {"version": "", "method": "orf", "settings": {}, "seed": 1, "spec": {}}
    told |= {"data": {}, "architecture": []}
    for value in (None, "x", 3.5):
        (tmp_path / "config.json").write_text(json.dumps(told | {lacks: value}))
        with pytest.raises(ValueError, match=f"lacks .'{lacks}'"):
            run_folder.read_config(tmp_path)


def test_a_run_s_settings_that_make_no_method_name_the_file(tmp_path):
    from jaxanon.training import run_folder

    told = {"version": "", "method": "orf", "settings": {}, "seed": 1}
    told |= {"spec": {"channels": 3}, "data": {}, "architecture": []}
    (tmp_path / "config.json").write_text(json.dumps(told))
    with pytest.raises(ValueError, match="config.json: damaged or of another layout"):
        run_folder.open_run(tmp_path)


@pytest.mark.parametrize(
    "told",
    [
        *({"most_rows": value} for value in (None, 0, 10**15)),
        {"num_clients": 9},
        {"arrays": {"x": ["|O", [2]]}},
        {"arrays": {"x": ["<f4", [-2]]}},
    ],
)
def test_stored_clients_told_wrong_are_damaged(told, tmp_path):
    pytest.importorskip("array_record")
    from jaxanon import federated

    folder = tmp_path / "clients"
    federated.write_clients(folder, [{"x": np.ones((3, 2), np.float32)}])
    path = folder / "clients.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | told))
    with pytest.raises(ValueError, match="the clients in .*clients are damaged"):
        federated.open_clients(folder).read([0])


def test_a_csv_without_a_header_is_named(tmp_path):
    from jaxanon.edge import csv_input

    (tmp_path / "in.csv").write_text("1,2\n")
    with pytest.raises(ValueError, match="in.csv, line 1: the header must name"):
        csv_input.open_rows(tmp_path / "in.csv")


def test_public_keys_that_are_none_are_refused(tmp_path):
    pytest.importorskip("flwr")
    from jaxanon.flower import keys

    # Non-ASCII text, and a point that is not on the curve, found by atheris.
    point = base64.b64encode(
        b"".join(
            len(part).to_bytes(4, "big") + part
            for part in (b"ecdsa-sha2-nistp256", b"nistp256", b"\x05" + bytes(64))
        )
    )
    for line in (b"0 \xff\xfe", b"0 ecdsa-sha2-nistp256 " + point):
        (tmp_path / "keys.txt").write_bytes(line)
        with pytest.raises(ValueError, match="keys.txt, line 1, must be"):
            keys.public_keys(tmp_path / "keys.txt")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"draws": ["noise"]}, "a draw must have a name"),
        ({"draws": [{"law": "normal", "shape": [1]}]}, "a draw must have a name"),
        ({"input": {"name": "windows"}}, "input description is invalid"),
        ({"output": []}, "outputs of"),
        ({"format": float("inf")}, "cannot be read"),
    ],
)
def test_a_model_s_words_that_contradict_it_name_the_file(
    change, why, script, tmp_path
):
    pytest.importorskip("onnx")
    targets = script("fuzz_edge")
    targets.make_model(tmp_path)
    (tmp_path / "told.json").write_text(json.dumps(targets.TOLD | change))
    with pytest.raises(ValueError, match=f"model.onnx.*{why}|{why}.*model.onnx"):
        targets.read_model(tmp_path)


def test_a_time_far_from_the_others_is_no_measurement_of_ages(script, tmp_path):
    """It once allocated an entry for every four seconds until memory ran out."""
    raw = script("fuzz_raw")
    raw.room_climate(tmp_path)
    path = tmp_path / "room_climate-location_B-measurement01.csv"
    path.write_text(
        path.read_text() + "1, 9223372036854775808, 1, 1, 2, 2, 2, 2, 1, 1, 0, 1"
    )
    with pytest.raises(ValueError, match="location_B.*must last from 4 s to"):
        raw.read("room_climate", tmp_path)


def test_an_activity_far_from_the_others_is_damage(script, tmp_path):
    raw = script("fuzz_raw")
    raw.smart_homes(tmp_path)
    (tmp_path / "houseA.activities").write_text("1267401600\t600\t5\n2\t600\t5\n")
    with pytest.raises(ValueError, match="days of activities, got 14"):
        raw.read("smart_homes", tmp_path)


def test_a_trial_that_tfds_cannot_store_is_named():
    from jaxanon.datasets.builder import RecordingsBuilder

    class Late(RecordingsBuilder):
        name, dataset = "late", registry.find("wisdm")

        def recordings(self, source):
            yield np.zeros((1, 3)), 2**31, {"task": 0}

    made = object.__new__(Late)
    made._source = ()
    with pytest.raises(ValueError, match="an int32 trial, got 2147483648"):
        list(made._generate_examples())


def test_a_zip_that_is_cut_short_is_named(script, tmp_path):
    """Its directory states where files begin; some of these places are empty."""
    raw = script("fuzz_raw")
    folder = tmp_path / "folder"
    folder.mkdir()
    raw.zipped(folder)
    path = folder / "all.zip"
    data = path.read_bytes()
    path.write_bytes(data[:100] + bytes(60) + data[160:])
    with pytest.raises(ValueError, match="motion_sense, read from .*all.zip"):
        raw.read("zipped", folder)


def test_what_the_system_says_of_a_file_stays(tmp_path):
    with pytest.raises(IsADirectoryError), sources.naming("x"):
        open(tmp_path)
    with pytest.raises(ValueError, match="^x: damaged or of another layout .OSError"):
        with sources.naming("x"):
            raise OSError("of gzip")
    with pytest.raises(ValueError, match="^toy.csv: three is missing$"):
        with sources.naming("toy.csv"):
            raise ValueError("three is missing")


def test_a_place_that_cannot_be_listed_is_named(tmp_path):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("sub_1.csv", "a")
    data = bytearray(made.getvalue())
    at = data.rindex(b"PK\x01\x02")
    data[at] = 0  # The directory of the archive begins differently.
    (tmp_path / "all.zip").write_bytes(data)
    with pytest.raises(ValueError, match="motion_sense, searched in .*BadZipFile"):
        store.locate(registry.find("motion_sense"), tmp_path, tmp_path)
