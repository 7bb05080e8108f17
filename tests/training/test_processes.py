"""Runs on several cores and processes equal runs on one; failures are reported."""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

import chex
import jax
import numpy as np
import pytest

import jaxanon as ja
from jaxanon import learners, methods
from jaxanon.cli import app
from jaxanon.training import processes as training_processes
from jaxanon.training import run_folder, trainer

SUPPORT = pathlib.Path(__file__).parents[1] / "support"
SMALL = ["--hidden-sizes", "8", "--filters", "4"]  # For FedAvg, which compiles fast.
BLINDER = methods.recipes("blinder")["paper"].settings | {
    **{
        "hidden_sizes": (8,),
        "latent_dim": 2,
        "samples_per_class": 4,
        "support_size": 1,
        "query_size": 3,
    },
    **{"extra": 0, "discriminator_hidden_sizes": (4,), "discriminator_rounds": 1},
    **{"second_order": False, "shadows": False},
}
pytestmark = pytest.mark.slow
SECRET = "sixteen or more characters"
LIMIT_S = 240  # For a whole multi-process run on a busy machine.


@pytest.fixture(scope="module")
def data():
    return ja.load("smartwatch", public="exercise", private=["side"])


@pytest.fixture(autouse=True)
def secret(monkeypatch):
    monkeypatch.setenv(training_processes.SECRET, SECRET)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("127.0.0.1:1", 1, 0), "num_processes must be >= 2, got 1"),
        (("127.0.0.1:1", 2, 2), "process_id must be at least 0 and below .* got 2"),
        (("127.0.0.1", 2, 0), "coordinator must be HOST:PORT .* got '127.0.0.1'"),
        (("localhost:x", 2, 0), "coordinator must be HOST:PORT"),
    ],
)
def test_addresses_and_numbers_of_processes(given, message):
    with pytest.raises(ValueError, match=message):
        training_processes.join(*given)


def test_a_port_in_use_is_told_before_anything_waits():
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"port {port} is in use on this machine"):
            training_processes.join(f"127.0.0.1:{port}", 2, 0)


def test_devices_are_shared_out_evenly():
    with pytest.raises(ValueError, match="multiple of num_processes=2, got 3"):
        training_processes.launch([], 2, 3)
    with pytest.raises(ValueError, match="num_processes must be >= 2, got 1"):
        training_processes.launch([], 1)


def test_process_id_and_coordinator_go_together(capsys):
    words = ["train", "fedavg", "--dataset", "smartwatch", "--num-processes", "2"]
    assert app.main([*words, "--process-id", "1"]) == 2
    assert "--process-id requires --coordinator-address" in capsys.readouterr().err
    words += ["--process-id", "2", "--coordinator-address", "127.0.0.1:1"]
    assert app.main(words) == 2
    told = capsys.readouterr()
    assert "process_id must be at least 0 and below" in told.err
    assert "waits at" not in told.out + told.err


@pytest.mark.parametrize("process_id", [0, 1])
def test_others_that_do_not_come_are_told_in_time(process_id):
    with pytest.raises(ConnectionError, match="within 1 s, but .* waited in vain at"):
        training_processes.join(f"127.0.0.1:{free_port()}", 2, process_id, joining_s=1)


@pytest.mark.parametrize("own", [None, "too short"])
def test_a_secret_is_needed(monkeypatch, own):
    monkeypatch.delenv(training_processes.SECRET)
    size = 0 if own is None else len(own)
    with pytest.raises(ValueError, match=f"secret must .* 16 characters, got {size};"):
        training_processes.join("127.0.0.1:1", 2, 0, secret=own)


@pytest.fixture
def meeting():
    """Returns ``(port, first)``: process 0 of three, waiting for others in a thread."""
    port, came = free_port(), threading.Event()
    waits = threading.Thread(
        target=lambda: (
            training_processes._meet_all("127.0.0.1", port, 3, SECRET.encode(), 60),
            came.set(),
        ),
        daemon=True,
    )
    waits.start()
    yield port, came
    if came.is_set():
        return
    others = [threading.Thread(target=come, args=(port, index)) for index in (1, 2)]
    for other in others:
        other.start()
    for thread in (*others, waits):
        thread.join(timeout=60)
    assert came.is_set()


def connected(port):
    """Returns a connection to a port that a thread is about to open."""
    until = time.monotonic() + 10
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=10)
        except ConnectionRefusedError:
            assert time.monotonic() < until
            time.sleep(0.05)


def come(port, index, num_processes=3, secret=SECRET, joining_s=20):
    training_processes._meet_first(
        "127.0.0.1", port, num_processes, index, secret.encode(), joining_s
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"index": 1, "secret": SECRET + "!"}, "secret must equal that of process 0"),
        ({"index": 0}, "process_id must be at least 1 and below num_processes"),
        ({"index": 3}, "process_id must be at least 1 and below num_processes"),
        ({"index": 2**40}, "process_id must be at least 1 and below num_processes"),
        (
            {"index": 1, "num_processes": 2},
            "num_processes must equal that of process 0",
        ),
    ],
)
def test_whom_the_first_process_refuses_at_once(meeting, given, message):
    port, came = meeting
    with pytest.raises(ConnectionError, match=f"was rejected at .*{port}: {message}"):
        come(port, **given)
    assert not came.is_set()  # It continues to wait for the other members.


def test_an_id_is_taken_as_long_as_its_process_is_there(meeting):
    port, came = meeting
    with pytest.raises(TimeoutError):  # If a process leaves before the others arrive,
        come(port, 1, joining_s=1)
    patient = threading.Thread(target=come, args=(port, 1))
    patient.start()  # its place is free again.
    time.sleep(0.5)
    with pytest.raises(ConnectionError, match="process_id is taken; give each process"):
        come(port, 1)
    come(port, 2)
    patient.join(timeout=20)
    assert not patient.is_alive() and came.wait(20)


def test_strangers_neither_come_nor_keep_others_from_coming(meeting):
    port, came = meeting
    for said in (b"", b"1", b"\0" * 500, b"GET / HTTP/1.1\r\n\r\n"):
        with connected(port) as door:
            door.sendall(said)
    assert not came.is_set()


def test_a_first_process_that_knows_no_secret_is_not_joined():
    """A process that takes its port cannot prove its identity."""
    with socket.create_server(("127.0.0.1", 0)) as door:

        def lie():
            guest = door.accept()[0]
            with guest:
                guest.sendall(b"jaxanon " + bytes(32))
                training_processes._read(guest, 80, time.monotonic() + 10)
                guest.sendall(b"come" + bytes(32))

        liar = threading.Thread(target=lie)
        liar.start()
        with pytest.raises(
            ConnectionError, match="secret must equal that of process 0"
        ):
            come(door.getsockname()[1], 1)
        liar.join(timeout=20)


def test_the_first_process_listens_at_the_named_address_alone():
    with training_processes._listen("127.0.0.1", free_port(), 2) as door:
        host, port = door.getsockname()
        assert host == "127.0.0.1"
        with socket.create_server(("127.0.0.2", port)):  # Free at another one.
            pass
    with pytest.raises(OSError, match="coordinator must be an address of process 0's"):
        training_processes.join("192.0.2.1:5115", 2, 0)  # An unused address: RFC 5737.


def test_jax_is_told_to_listen_at_the_named_address_alone(monkeypatch):
    told = {}
    monkeypatch.setattr(training_processes, "_meet_all", lambda *given: None)
    monkeypatch.setattr(
        jax.distributed, "initialize", lambda *given, **more: told.update(more)
    )
    monkeypatch.setattr(training_processes.multihost_utils, "sync_global_devices", id)
    training_processes.join("127.0.0.1:5115", 2, 0)
    assert told["coordinator_bind_address"] == "127.0.0.1:5115"


def test_nobody_gets_the_port_that_a_launcher_named(monkeypatch):
    """The port stays reserved before and after the first process had it."""
    found = []

    def launched(words, num_processes, devices, port):
        monkeypatch.setenv(training_processes.RESERVED, str(port))
        for _ in range(2):
            with pytest.raises(OSError, match="in use"):
                socket.create_server(("127.0.0.1", port))
            with training_processes._listen("127.0.0.1", port, 2):
                found.append(port)
        return 0

    monkeypatch.setattr(training_processes, "_launch", launched)
    assert training_processes.launch([], 2, 2) == 0
    assert len(found) == 2


def watched(*programs):
    command = [sys.executable, "-c"]
    return training_processes._wait([subprocess.Popen([*command, x]) for x in programs])


def test_what_is_said_of_processes_that_end(capsys):
    assert watched("", "") == 0
    assert watched("", "raise SystemExit(2)") == 2
    assert capsys.readouterr().err == ""  # The processes reported it themselves.
    assert (
        watched("", f"raise SystemExit({training_processes.LOST})")
        == training_processes.LOST
    )
    killed = "import os; os.kill(os.getpid(), 9)"
    assert watched(killed, "") == 137
    told = "process 0 of 2 was lost, so all were ended; continue with the same"
    assert told in capsys.readouterr().err


def test_an_error_of_one_s_own_is_no_lost_process(monkeypatch):
    monkeypatch.setattr(training_processes, "several", lambda: True)
    for text, kind in (
        ("RESOURCE_EXHAUSTED: Out of memory", jax.errors.JaxRuntimeError),
        ("UNKNOWN: Gloo all-reduce failed", training_processes.ProcessLost),
    ):
        with (
            pytest.raises(kind, match=text),
            training_processes.raise_on_lost_process("here"),
        ):
            raise jax.errors.JaxRuntimeError(text)


def test_alone_a_process_asks_nobody(data):
    assert training_processes.first() and not training_processes.several()
    assert training_processes.run_on_first(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        training_processes.run_on_first(lambda: 1 / 0)
    assert training_processes.broadcast_from_first({"w": 1.0}) == {"w": 1.0}
    training_processes.check_alike({})
    with (
        pytest.raises(jax.errors.JaxRuntimeError),
        training_processes.raise_on_lost_process("here"),
    ):
        raise jax.errors.JaxRuntimeError("of another kind")


@pytest.fixture
def start(tmp_path):
    """Starts Python programs, and kills them at the end of the test."""
    processes = []

    def started(command):
        log = tmp_path / f"{len(processes)}.log"
        env = os.environ | {"JAX_PLATFORMS": "cpu"}
        with log.open("w") as out:
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", *command],
                env=env, cwd=tmp_path, stdout=out, stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip
        processes.append(process)
        return process, log

    yield started
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def ended(process, log):
    """Returns the exit status and the output."""
    return process.wait(timeout=LIMIT_S), log.read_text()


def train_words(folder, name, *more, epochs=1):
    return [
        "import sys; from jaxanon import cli; sys.exit(cli.main())",
        *("train", name, "--dataset", "smartwatch", "--public", "exercise"),
        *(
            "--private",
            "side",
            "--epochs",
            str(epochs),
            "--output-dir",
            str(folder),
            *more,
        ),
    ]


def test_three_processes_train_what_one_does(data, tmp_path, start):
    words = train_words(tmp_path / "run", "fedavg", *SMALL, "--num-processes", "3")
    status, said = ended(*start(words))
    assert status == 0, said
    assert said.count("The run is in") == 1  # From the first process only.
    run = run_folder.open_run(tmp_path / "run")
    learner = learners.build("fedavg", data.spec, hidden_sizes=(8,), filters=(4,))
    alone = trainer.train(learner, data, epochs=1, progress=False)
    assert int(run.state.round) == int(alone.state.round)
    chex.assert_trees_all_close(alone.state.params, run.state.params, atol=2e-3)
    # Elsewhere it continues on one device.
    more = trainer.train(
        learner,
        data,
        epochs=2,
        output_dir=tmp_path / "run",
        resume=True,
        progress=False,
    )
    assert int(more.state.round) == 2 * int(run.state.round)


PARTS = """
import sys

import jax
import numpy as np

import jaxanon as ja
from jaxanon.training import processes, trainer as training

index, port, seed, folder = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
settings = eval(sys.argv[5])
processes.join(f"127.0.0.1:{port}", 2, index)
import chex
import shared_out
from jaxanon import federated

# Of clients in their places, seven on two devices, and of copies.
clients = federated.stack([np.arange(n + 1.0) for n in range(7)])
for make, size, copies in (
    (shared_out.averaging, 1, False),  # A device has nobody.
    (shared_out.keeping, None, False),  # All are where they are.
    (shared_out.keeping, 5, True),
    (shared_out.meta, 5, False),
):
    algorithm, key = make(size), jax.random.key(1)
    placed = federated.shard_clients(clients, copies=copies)
    start = lambda: algorithm.init(jax.random.key(0))
    one, info = federated.simulate(algorithm, key, start(), clients, 3)
    many, told = federated.simulate(
        algorithm, placed.replicated(key), placed.replicated(start()), placed, 3)
    own = jax.tree.map(lambda leaf: leaf.addressable_data(0), (many, told))
    chex.assert_trees_all_close((one, info), own, rtol=1e-5)
print("PLACED", flush=True)

try:
    processes.run_on_first(lambda: open("/no such file"))
except (processes.Stopped, FileNotFoundError) as error:
    print(type(error).__name__, "FileNotFoundError" in repr(error), flush=True)
data = ja.load("smartwatch", public="exercise", private=["side"])
method = ja.methods.blinder(data.spec, **settings)
try:
    training.train(method, data, epochs=1, seed=seed * index, output_dir=folder)
except ValueError as error:
    print(error, flush=True)

# Half of a run, and its checkpoint gone on from by both.
options = {"output_dir": folder, "progress": False, "seed": 3}
training.train(method, data, epochs=1, **options)
run = training.train(method, data, epochs=2, resume=True, **options)
print("ROUNDS", int(run.state.round), len(run.history), flush=True)
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_two_processes_and_what_they_refuse(data, tmp_path, start):
    port, folder = free_port(), tmp_path / "run"
    path = f"import sys; sys.path += {[str(SUPPORT)]!r}\n"
    words = [str(port), "5", str(folder), repr(BLINDER)]
    both = [start([path + PARTS, str(i), *words]) for i in (0, 1)]
    said = [ended(*one) for one in both]
    for index, (status, text) in enumerate(said):
        assert status == 0, text
        assert "PLACED" in text
        assert ("FileNotFoundError True", "Stopped True")[index] in text
        assert "processes [1] differ from process 0 in seed, epochs or spec" in text
        assert not folder.exists() or "ROUNDS" in text
    alone = trainer.train(
        methods.blinder(data.spec, **BLINDER),
        data, epochs=2, seed=3, progress=False,
    )  # fmt: skip
    run = run_folder.open_run(folder)
    assert int(run.state.round) == int(alone.state.round)
    chex.assert_trees_all_close(alone.state.params, run.state.params, atol=2e-3)


def test_a_lost_process_ends_the_run_and_its_checkpoint_stays(tmp_path, start):
    folder, port = tmp_path / "run", free_port()
    words = lambda index: train_words(
        folder, "fedavg", *SMALL, "--num-processes", "2", "--process-id", str(index),
        "--coordinator-address", f"127.0.0.1:{port}", "--resume", epochs=4000,
    )  # fmt: skip
    several = [start(words(index)) for index in (0, 1)]
    until = time.monotonic() + LIMIT_S
    kept = folder / "checkpoints"
    while not (kept.is_dir() and any(p.name.isdigit() for p in kept.iterdir())):
        assert time.monotonic() < until
        time.sleep(0.2)
    several[1][0].kill()
    status, said = ended(*several[0])
    assert status != 0
    assert "another of the 2 processes was lost after round" in said
    assert "--resume" in said
    done = max(int(p.name) for p in kept.iterdir() if p.name.isdigit())
    run = run_folder.open_run(folder)
    assert int(run.state.round) == done > 0
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(run.state.params))


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "interrupted; continue with the same commands"),
        (
            training_processes.ProcessLost("one is gone"),
            training_processes.LOST,
            "one is gone",
        ),
        (ValueError("no such thing"), 2, "no such thing"),
    ],
)
def test_one_of_several_leaves_at_once(monkeypatch, capsys, error, code, said):
    """JAX would wait a day for the others, which would wait for it."""
    left = []
    monkeypatch.setattr(training_processes, "several", lambda: True)
    monkeypatch.setattr(training_processes, "PARTING_S", 0.0)
    monkeypatch.setattr(training_processes.os, "_exit", left.append)
    with training_processes.exit_on_error():
        raise error
    assert left == [code] and said in capsys.readouterr().err
    monkeypatch.setattr(training_processes, "several", lambda: False)
    with pytest.raises(type(error)), training_processes.exit_on_error():
        raise error
