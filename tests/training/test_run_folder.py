"""One process at a time writes a run's folder, and a kill releases it."""

import socket
import subprocess
import sys
import types
import warnings

import pytest
import toy

from jaxanon import energy, learners, methods
from jaxanon.core import registry
from jaxanon.flower.server import serve
from jaxanon.flower.settings import Serving
from jaxanon.sweeps import homes as sweeps_homes
from jaxanon.sweeps import runner
from jaxanon.training import checkpoint, run_folder, trainer

HOLD = """
import pathlib, sys
from jaxanon.training import checkpoint
with checkpoint.lock_folder(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""
STREET = energy.PFDRLSettings(
    days=1, test_days=1, forecaster="lr", hidden_sizes=(4,), alpha=1, slot_min=720
)


def orf(data, out):
    method = methods.orf(data.spec)
    return trainer.train(
        method, data, output_dir=out, epochs=1, resume=True, progress=False
    )


def sweep(data, out):
    options = {"epochs": 1, "resume": True, "progress": False, "evaluate": False}
    grid = {"fraction": [0.5]}
    return runner.sweep("orf", data, grid=grid, output_dir=out, **options)


def served(data, out):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    method = learners.build("fedavg", data.spec, hidden_sizes=(4,))
    serving = Serving(address=address, min_available_clients=1, wait_s=1)
    return serve(
        method, data, serving, epochs=1, output_dir=out, resume=True, show=False
    )


def homes():
    return energy.load_homes("simulated", homes=2, devices=1, days=1, test_days=1)


def street(data, out):
    method = registry.rebuild("pfdrl", homes().spec, STREET)
    return trainer.train(method, homes(), output_dir=out, resume=True, progress=False)


def search(data, out):
    return sweeps_homes.search(STREET, homes(), grid={}, output_dir=out, resume=True)


@pytest.fixture(scope="module")
def data():
    return toy.data()


@pytest.fixture(scope="module")
def held(tmp_path_factory):
    """Yields a folder that another process holds, and that process."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    words = [sys.executable, "-P", "-c", HOLD, str(folder)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(words, **pipes, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield folder, process
        process.kill()


@pytest.mark.parametrize("write", [orf, sweep, street, search, served])
def test_a_second_process_is_refused(write, held, data):
    folder, _ = held
    with pytest.raises(FileExistsError) as caught:
        write(data, folder)
    told = str(caught.value)
    assert told.startswith(f"{folder} must be written by one process at a time")
    assert "wait for that process or end it" in told
    assert [path.name for path in folder.iterdir()] == [checkpoint.LOCK]


@pytest.mark.slow
def test_a_kill_gives_the_folder_free(held, data):
    folder, process = held
    process.kill()
    process.wait()
    for _ in range(2):  # This process releases it, too.
        assert orf(data, folder).folder == folder


def test_what_is_no_run_is_left_as_it_is(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with checkpoint.lock_folder(tmp_path), checkpoint.lock_folder(None):
        with pytest.raises(FileExistsError, match="must be empty or hold a run"):
            run_folder.claim(tmp_path, {}, resume=True)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_windows_locks_a_byte(tmp_path, monkeypatch):
    """Its C library is not available here, so the test checks the call."""
    asked = []
    library = types.ModuleType("msvcrt")
    library.LK_NBLCK, library.locking = 2, lambda *words: asked.append(words[1:])
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setitem(sys.modules, "msvcrt", library)
    with checkpoint.lock_folder(tmp_path / "run"):
        assert asked == [(2, 1)]

    def taken(*words):
        raise PermissionError(13, "Permission denied")

    library.locking = taken
    with pytest.raises(FileExistsError, match="by one process at a time"):
        with checkpoint.lock_folder(tmp_path / "run"):
            pass


def test_a_place_without_locks_is_warned_of(tmp_path, monkeypatch):
    def unable(handle):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(checkpoint, "_lock", unable)
    with pytest.warns(UserWarning, match="without locks .*not supported"):
        with checkpoint.lock_folder(tmp_path / "run"):
            pass
    monkeypatch.undo()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with checkpoint.lock_folder(tmp_path / "run"):
            pass
