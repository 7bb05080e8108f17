"""A full disk, a read-only folder, two runs in one, and a clock set back."""

import os
import pathlib
import resource
import signal
import subprocess
import sys
import time

import jax
import numpy as np
import pytest

from jaxanon import datasets, edge, methods
from jaxanon.training import checkpoint, run_folder, trainer

LIMIT = 4096  # Maximum file size in bytes while the disk is full.


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "waves.npz"
    random = np.random.default_rng(0)
    np.savez(
        path,
        windows=random.normal(size=(72, 8, 2)).astype(np.float32),
        subject=np.repeat(np.arange(3), 24),
        activity=np.arange(72) % 2,
        gender=np.arange(72) // 2 % 2,
        split=(np.arange(72) % 24 >= 16).astype(int),
    )
    return datasets.load(path, public="activity", private=["gender"])


def train(data, out, **options):
    method = methods.orf(data.spec)
    options = {"epochs": 1, "progress": False} | options
    return trainer.train(method, data, output_dir=out, **options)


@pytest.fixture
def full():
    """Returns a context in which no file exceeds ``LIMIT``, like a full disk.

    The limit belongs to the process and needs no root. Writing fails with EFBIG, an
    OSError like ENOSPC. JAX's compilation cache is exempt, because a truncated program
    in it would cause warnings in later tests.
    """
    lasts = "jax_persistent_cache_min_compile_time_secs"

    class Full:
        def __enter__(self):
            self.lasts = getattr(jax.config, lasts)
            jax.config.update(lasts, 1e9)
            self.before = resource.getrlimit(resource.RLIMIT_FSIZE)
            self.handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, self.before[1]))

        def __exit__(self, *_):
            resource.setrlimit(resource.RLIMIT_FSIZE, self.before)
            signal.signal(signal.SIGXFSZ, self.handler)
            jax.config.update(lasts, self.lasts)

    return Full()


def test_output_that_does_not_fit_leaves_nothing_and_keeps_what_was_there(
    full, tmp_path
):
    from jaxanon.cli import files

    path = tmp_path / "safe.npy"
    small = np.zeros(3, np.float32)
    files.write_array(path, small)
    with full, pytest.raises(OSError):
        files.write_array(path, np.zeros(LIMIT, np.float32))
    np.testing.assert_array_equal(np.load(path), small)
    assert [entry.name for entry in tmp_path.iterdir()] == ["safe.npy"]


def test_a_budget_that_cannot_be_written_spends_nothing_and_allows_nothing(
    full, tmp_path, monkeypatch
):
    path = tmp_path / "budget.json"
    budget = edge.Budget(path, 10.0)
    budget.charge(1.0)
    before = path.read_bytes()
    monkeypatch.setattr(sys.modules[__name__], "LIMIT", 16)
    with full, pytest.raises(OSError):
        budget.charge(1.0)
    assert path.read_bytes() == before
    budget.charge(1.0)
    assert budget.spent == 2.0


@pytest.mark.slow
@pytest.mark.parametrize("fails", ["config", "checkpoint"])
def test_training_on_a_full_disk_says_so_and_goes_on_when_there_is_room(
    fails, full, data, tmp_path, monkeypatch
):
    whole = train(data, tmp_path / "whole")
    kept = [p for p in (tmp_path / "whole/checkpoints").rglob("*") if p.is_file()]
    sizes = {"config": 17, "checkpoint": max(p.stat().st_size for p in kept)}
    monkeypatch.setattr(sys.modules[__name__], "LIMIT", sizes[fails] - 1)
    with pytest.raises((OSError, ValueError)):
        with full:
            train(data, tmp_path / "run")
    again = train(data, tmp_path / "run", resume=True)
    assert (checkpoint.digest(again.state) == checkpoint.digest(whole.state)).all()


def unwritable():
    """Returns a folder that even root cannot write to, or None."""
    for place in ("/sys/kernel", "/proc/self"):
        if os.path.isdir(place):
            return pathlib.Path(place).resolve()
    return None


@pytest.mark.slow
@pytest.mark.skipif(unwritable() is None, reason="every folder here can be written")
def test_a_folder_that_cannot_be_written_is_named(data):
    from jaxanon.cli import files

    place = unwritable()
    with pytest.raises(OSError, match=str(place)):
        files.write_array(place / "safe.npy", np.zeros(3))
    with pytest.raises(OSError, match=str(place)):
        edge.Budget(place / "budget.json", 1.0)
    with pytest.raises((OSError, FileExistsError), match=str(place)):
        train(data, place / "run")


TOGETHER = """
import sys
sys.path.insert(0, {folder!r})
import test_disk as t
from jaxanon import datasets
data = datasets.load({file!r}, public="activity", private=["gender"])
print("ready", flush=True)
sys.stdin.readline()
t.train(data, {out!r}, epochs=3, resume=True, checkpoint_s=0.0)
"""


def test_a_second_run_in_a_folder_is_refused_without_resume(data, tmp_path):
    train(data, tmp_path / "run")
    with pytest.raises(FileExistsError, match="already holds a run"):
        train(data, tmp_path / "run")


@pytest.mark.slow
def test_two_runs_in_one_folder_at_once_leave_a_whole_one(data, tmp_path):
    """Each works or raises an error with the reason; the folder then holds the run."""
    random = np.random.default_rng(0)
    file = tmp_path / "waves.npz"
    np.savez(
        file,
        windows=random.normal(size=(72, 8, 2)).astype(np.float32),
        subject=np.repeat(np.arange(3), 24),
        activity=np.arange(72) % 2,
        gender=np.arange(72) // 2 % 2,
        split=(np.arange(72) % 24 >= 16).astype(int),
    )
    own = datasets.load(file, public="activity", private=["gender"])
    script = TOGETHER.format(
        folder=str(pathlib.Path(__file__).parent),
        file=str(file),
        out=str(tmp_path / "run"),
    )
    pipe = subprocess.PIPE
    words = [sys.executable, "-P", "-c", script]
    both = [
        subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        for _ in range(2)
    ]
    for process in both:
        assert process.stdout.readline() == "ready\n"
    told = [process.communicate("go\n", timeout=300)[1] for process in both]
    assert any(process.returncode == 0 for process in both), told
    for process, text in zip(both, told, strict=True):
        assert process.returncode == 0 or "Error" in text
    found = train(own, tmp_path / "run", epochs=3, resume=True)
    wanted = train(own, tmp_path / "alone", epochs=3)
    assert (checkpoint.digest(found.state) == checkpoint.digest(wanted.state)).all()


@pytest.mark.slow
def test_a_clock_that_goes_back_changes_no_result(data, tmp_path, monkeypatch):
    wanted = train(data, tmp_path / "alone", epochs=2)
    clock = iter(range(2_000_000_000, 0, -1000))
    monkeypatch.setattr(time, "time", lambda: float(next(clock)))
    train(data, tmp_path / "run", checkpoint_s=0.0)
    for path in (tmp_path / "run").rglob("*"):
        os.utime(path, (2**31, 2**31))  # Future years.
    found = train(data, tmp_path / "run", epochs=2, resume=True)
    assert (checkpoint.digest(found.state) == checkpoint.digest(wanted.state)).all()
    assert run_folder.open_run(tmp_path / "run").unfinished is None
