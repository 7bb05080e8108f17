"""Flower's programs: the commands over TLS with keys, and a killed client.

Each test takes most of a minute, because Flower's programs load for seconds.
"""

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
from jaxanon.flower import client as flower_client
from jaxanon.training import run_folder

pytestmark = pytest.mark.slow

SETTINGS = "--filters 4 --hidden-sizes 8 --local-steps 2 --batch-size 4".split()
SMALL = {"filters": (4,), "hidden_sizes": (8,), "local_steps": 2, "batch_size": 4}
PROGRAM = [sys.executable, "-P", "-c", "from jaxanon.cli.app import main; exit(main())"]


@pytest.fixture
def start(file, tmp_path, tmp_path_factory):
    """Returns ``start(*words)``, whose processes are killed at the test's end."""
    started, named = [], ["--dataset", str(file), "--public", "activity"]
    kept = str(tmp_path_factory.mktemp("bytecode"))  # Flower runs several programs.
    env = os.environ | {"JAX_PLATFORMS": "cpu", "PYTHONPYCACHEPREFIX": kept}
    env.pop("PYTHONDONTWRITEBYTECODE", None)

    def run(*words):
        with (tmp_path / f"{len(started)}.log").open("w") as log:
            process = subprocess.Popen(
                [*PROGRAM, *map(str, words), *named, "--private", "gender"],
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=env,
            )
        process.log = tmp_path / f"{len(started)}.log"
        started.append(process)
        return process

    yield run
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)


def _ended(process, timeout_s=600):
    """Returns the exit status and all output."""
    try:
        return process.wait(timeout_s), process.log.read_text()
    except subprocess.TimeoutExpired:
        return None, process.log.read_text()


def _rows(folder):
    path = folder / "metrics.jsonl"
    return [*map(json.loads, path.read_text().splitlines())] if path.exists() else []


def _until(condition, *processes):
    end = time.monotonic() + 600
    while not condition():
        over = [each.log.read_text() for each in processes if each.poll() is not None]
        assert time.monotonic() < end and not over, (over, processes[0].log.read_text())
        time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the server rejects this client's key yet")
def test_clients_with_certificate_and_key_take_part_though_one_is_killed(
    start, data, port, tmp_path, tls, client_keys
):
    (certificate, key), (own, known) = tls, client_keys
    address, out = f"127.0.0.1:{port}", tmp_path / "run"
    server = start(
        *("server", "fedavg", *SETTINGS, "--output-dir", out, "--seed", "5"),
        *("--epochs", "4"),
        *("--address", address, "--timeout-s", "40", "--min-available-clients", "2"),
        *("--certificate", certificate, "--private-key", key, "--client-keys", known),
    )
    _until(lambda: "Serving fedavg" in server.log.read_text(), server)
    root = {"root_certificate": certificate}
    others = {
        "plain": {},
        "without a key": root,
        "unknown": root | {"private_key": own[2]},
        "somebody else's": root | {"private_key": own[1]},
    }
    outcomes = {}
    with concurrent.futures.ThreadPoolExecutor(len(others)) as pool:
        for name, how in others.items():
            how = how | {"wait_s": 60.0 if "else" in name else 1.0}
            outcomes[name] = pool.submit(flower_client.join, address, 0, data, **how)
    found = {name: outcome.exception() for name, outcome in outcomes.items()}
    for name in ("plain", "without a key", "unknown"):
        assert isinstance(found[name], ConnectionError), (name, found[name])
        assert "rejects this client" in str(found[name])
    # The second client's key is known, and shows that it is not the first client.
    assert isinstance(found["somebody else's"], ValueError), found
    assert "the key of client 1 says that it is client 0" in str(
        found["somebody else's"]
    )
    assert (
        "Rejected a client whose key is not in --client-keys" in server.log.read_text()
    )

    secured = ["--root-certificate", certificate, "--server", address]
    join = lambda number: start(
        *("client", "--client", number, "--private-key", own[number], *secured)
    )
    stays, goes = join(0), join(1)
    _until(lambda: len(_rows(out)) >= 2, server, stays, goes)
    os.killpg(goes.pid, signal.SIGKILL)
    for process in (server, stays):
        status, said = _ended(process)
        assert status == 0, said
    assert "the training is done; round 4 was its last." in said
    rows = _rows(out)
    assert [row["answers"] for row in rows][:2] == [2, 2] and len(rows) == 4
    assert rows[-1]["answers"] == 1
    lines = (out / "refused.jsonl").read_text().splitlines()
    assert json.loads(lines[-1])["client"] == 1
    # The others never joined, as if they had no window. Losses cover received payloads.
    method = learners.build("fedavg", data.spec, **SMALL)
    mine = data.train.labels["subject"] < 2
    windows = data.train.windows[mine]
    labels = {name: label[mine] for name, label in data.train.labels.items()}
    some = data._replace(train=data.train._replace(windows=windows, labels=labels))
    wanted = ja.train(method, some, epochs=2, seed=5, progress=False)
    for row, told in zip(rows[:2], wanted.history, strict=True):
        chex.assert_trees_all_close(row["losses"], told["losses"], rtol=1e-4)
    assert int(run_folder.open_run(out).state.round) == 4


def _refused(capsys, *words):
    capsys.readouterr()
    assert app.main([str(word) for word in words]) == 2
    said = capsys.readouterr().err
    assert said.startswith("jaxanon: error: ") and said.count("\n") == 1
    return said


def test_errors_at_the_door_leave_nothing_behind(
    file, port, tmp_path, capsys, monkeypatch
):
    import contextlib
    import socket

    from jaxanon.flower import server_transport

    out = tmp_path / "run"
    named = ["--dataset", file, "--public", "activity", "--private", "gender"]
    serve = [
        "server",
        "fedavg",
        *SETTINGS,
        *named,
        "--output-dir",
        out,
        "--min-available-clients",
        "1",
    ]
    serve += ["--address", f"127.0.0.1:{port}"]
    with socket.create_server(("127.0.0.1", port)):
        assert f"cannot bind 127.0.0.1:{port}" in _refused(capsys, *serve)
    said = _refused(capsys, *serve, "--secure-aggregation")
    assert "--secure-aggregation is not supported" in said
    assert "cvae cannot train over Flower" in _refused(
        capsys,
        "server",
        "cvae",
        *named,
        "--output-dir",
        tmp_path / "other",
        "--min-available-clients",
        "1",
    )
    assert not out.exists() and not (tmp_path / "other").exists()
    nobody = type("Nobody", (), {"nodes": lambda _: [], "pull": lambda _, names: {}})
    serving = lambda *_, **__: contextlib.nullcontext((nobody(), {}))
    monkeypatch.setattr(server_transport, "serving", serving)
    assert "1 are needed" in _refused(capsys, *serve, "--wait-s", "0.2")
    client = ["client", "--client", "0", *named, "--wait-s", "0.1"]
    said = _refused(capsys, *client, "--server", f"127.0.0.1:{port}")
    assert f"no server answers at 127.0.0.1:{port}" in said


def test_without_flower_its_extra_is_named(file, monkeypatch, capsys):
    for name in [name for name in sys.modules if name.startswith("jaxanon.flower")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "flwr", None)
    named = ["--dataset", file, "--public", "activity", "--private", "gender"]
    for words in (
        ["server", "fedavg", "--min-available-clients", "1"],
        ["client", "--client", "0"],
    ):
        said = _refused(capsys, *words, *named)
        assert "pip install 'jaxanon[flower]'" in said
