"""Real processes: what a person types, a client that is killed, errors at the door."""

import concurrent.futures
import json
import os
import signal
import subprocess
import sys
import time

import chex
import pytest

import jaxanon as ja
from jaxanon import learners
from jaxanon.cli import app
from jaxanon.flower import joining
from jaxanon.training import run_folder

pytestmark = pytest.mark.slow

SETTINGS = "--filters 4 --hidden 8 --local-steps 2 --batch 4".split()
SMALL = {"filters": (4,), "hidden": (8,), "local_steps": 2, "batch": 4}
PROGRAM = [sys.executable, "-P", "-c", "from jaxanon.cli.app import main; exit(main())"]


@pytest.fixture
def start(file, tmp_path):
    """``start(*words)``: a process, killed with all its own at the end of the test."""
    started, named = [], ["--dataset", str(file), "--public", "activity"]

    def run(*words):
        with (tmp_path / f"{len(started)}.log").open("w") as log:
            process = subprocess.Popen(
                [*PROGRAM, *map(str, words), *named, "--private", "gender"],
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=os.environ | {"JAX_PLATFORMS": "cpu"},
            )
        process.log = tmp_path / f"{len(started)}.log"
        started.append(process)
        return process

    yield run
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)


def _ended(process, timeout_s=90):
    """Its exit status, and all that it printed."""
    try:
        return process.wait(timeout_s), process.log.read_text()
    except subprocess.TimeoutExpired:
        return None, process.log.read_text()


def _rows(folder):
    path = folder / "metrics.jsonl"
    return [*map(json.loads, path.read_text().splitlines())] if path.exists() else []


def test_processes_train_and_go_on_though_one_is_killed(
    start, data, file, port, tmp_path
):
    address, out = f"127.0.0.1:{port}", tmp_path / "run"
    serve = ["serve", "fedavg", *SETTINGS, "--out", str(out), "--seed", "5"]
    serve += ["--address", address, "--timeout-s", "10"]
    client = lambda number: start("client", "--server", address, "--client", number)
    server = start(*serve, "--clients", "2", "--epochs", "60")
    stays, goes = client(0), client(1)
    end = time.monotonic() + 90
    while len(_rows(out)) < 4:
        assert time.monotonic() < end, server.log.read_text()
        time.sleep(0.05)
    os.killpg(goes.pid, signal.SIGKILL)
    for process in (server, stays):
        status, said = _ended(process)
        assert status == 0, said
    assert "the training is done; round 60 was its last." in said
    rows = _rows(out)
    answers = [row["answers"] for row in rows]
    assert len(answers) == 60 and answers[:3] == [2, 2, 2] and answers[-1] == 1
    refused = (out / "refused.jsonl").read_text()
    assert '"client": 1' in refused and '"client": 0' not in refused
    # The others never came: as if they had no window. Losses are of what was sent.
    method = learners.build("fedavg", data.spec, **SMALL)
    mine = data.train.labels["subject"] < 2
    windows = data.train.windows[mine]
    labels = {name: label[mine] for name, label in data.train.labels.items()}
    some = data._replace(train=data.train._replace(windows=windows, labels=labels))
    wanted = ja.train(method, some, epochs=3, seed=5, progress=False)
    for row, told in zip(rows[:3], wanted.history, strict=True):
        chex.assert_trees_all_close(row["losses"], told["losses"], rtol=1e-4)

    serve += ["--dataset", str(file), "--public", "activity", "--private", "gender"]
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        last = pool.submit(joining.join, address, 0, data, wait_s=20.0)
        assert app.main([*serve, "--clients", "1", "--epochs", "61", "--resume"]) == 0
        assert last.result(20) == "the training is done; round 61 was its last."
    assert len(_rows(out)) == 61
    assert int(run_folder.open_run(out).state.round) == 61


def _refused(capsys, *words):
    capsys.readouterr()
    assert app.main([str(word) for word in words]) == 2
    said = capsys.readouterr().err
    assert said.startswith("jaxanon: error: ") and said.count("\n") == 1
    return said


def test_errors_at_the_door_leave_nothing_behind(file, port, tmp_path, capsys):
    import socket

    out = tmp_path / "run"
    named = ["--dataset", file, "--public", "activity", "--private", "gender"]
    serve = ["serve", "fedavg", *SETTINGS, *named, "--out", out, "--clients", "1"]
    serve += ["--address", f"127.0.0.1:{port}"]
    with socket.create_server(("127.0.0.1", port)):
        assert f"127.0.0.1:{port} is not to be had" in _refused(capsys, *serve)
    said = _refused(capsys, *serve, "--secure-aggregation")
    assert "--secure-aggregation is not to be had" in said
    assert "1 are needed" in _refused(capsys, *serve, "--wait-s", "0.2")
    assert "cvae can't run on real devices" in _refused(
        capsys, "serve", "cvae", *named, "--out", tmp_path / "other", "--clients", "1"
    )
    assert not (tmp_path / "other").exists()
    client = ["client", "--client", "0", *named, "--wait-s", "0.1"]
    said = _refused(capsys, *client, "--server", f"127.0.0.1:{port}")
    assert f"nobody answers at 127.0.0.1:{port}" in said


def test_without_flower_its_extra_is_named(file, monkeypatch, capsys, tmp_path):
    for name in [name for name in sys.modules if name.startswith("jaxanon.flower")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "flwr", None)
    named = ["--dataset", file, "--public", "activity", "--private", "gender"]
    for words in (["serve", "fedavg", "--clients", "1"], ["client", "--client", "0"]):
        said = _refused(capsys, *words, *named)
        assert "run pip install 'jaxanon[flower]'" in said
