"""Kills jaxanon at random moments, resumes, and compares with an uninterrupted task.

Half of the kills come before a file-system call of Python, between two states of the
disk; an audit hook counts the calls. The other half come at a random time after the
first call, which also hits Orbax, array_record and XLA.

    python tests/fuzz/kills.py --kills 200

A killed task is resumed, and perhaps killed again, until it is done. Its result must
then equal that of the uninterrupted task bit for bit. After each kill the script reads
the folder as a user would: it must be empty or hold a whole result.
"""

import argparse
import collections
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings

sys.path.append(str(pathlib.Path(__file__).resolve().parent))

from kill_tasks import TASKS, prepare, train_real

WRITES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "os.link")


def watch(out, at, tell):
    """Counts file-system calls in ``out``; kills the process before number ``at``."""
    inside, count = os.fspath(out), 0

    def heard(event, args):
        nonlocal count
        if event not in WRITES:
            if event != "open" or not isinstance(args[2], int):
                return
            if not args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                return
        if not any(inside in os.fspath(a) for a in args if isinstance(a, (str, bytes))):
            return
        count += 1
        if count == at:
            os.kill(os.getpid(), signal.SIGKILL)
        os.pwrite(tell, f"{count:9d} {time.monotonic():24.6f}".encode(), 0)

    sys.addaudithook(heard)


def start(task, place, out, at, tell) -> int:
    """Forks a process that runs a task; returns its id."""
    with warnings.catch_warnings():
        # JAX warns about forks, but has not started yet.
        warnings.simplefilter("ignore")
        pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        warnings.simplefilter("ignore")
        watch(out, at, tell)
        task(place, out)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def finished(pid, kill_after=None) -> int:
    """Waits, or kills after ``kill_after`` seconds; returns the exit status.

    It is negative for a signal.
    """
    until = None if kill_after is None else time.monotonic() + kill_after
    while True:
        done, status = os.waitpid(pid, 0 if until is None else os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= until:
            os.kill(pid, signal.SIGKILL)
            until = None
        time.sleep(0.002)


def in_child(look, out):
    """Returns ``look`` of a folder from a child process, which keeps JAX out."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            warnings.simplefilter("ignore")
            found = repr(look(out))
        except FileNotFoundError:
            found = "nothing"
        except BaseException:
            found = f"broken: {traceback.format_exc()}"
        with os.fdopen(theirs, "w") as file:
            file.write(found)
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as file:
        found = file.read()
    os.waitpid(pid, 0)
    return found


class Bench:
    """Tasks with their results and times.

    A class because it owns a folder.
    """

    def __init__(self, place: pathlib.Path, names):
        self.place, self.known = place, {}
        self.tell = os.open(place / "told", os.O_RDWR | os.O_CREAT)
        prepare(place)
        os.environ["JAXANON_CACHE"] = str(place / "cache")
        if {"anonymize", "model"} & set(names):
            assert finished(start(train_real, place, place, 0, self.tell)) == 0
        for name in names:
            self.known[name] = self._whole(name)

    def _whole(self, name):
        """Returns the uninterrupted result, its file-system calls, and their times."""
        task, look = TASKS[name]
        # Runs once first, so that compiled or prepared files exist.
        assert finished(start(task, self.place, self._folder(), 0, self.tell)) == 0
        out = self._folder()
        begun = time.monotonic()
        pid = start(task, self.place, out, 0, self.tell)
        first = None
        while first is None and os.waitpid(pid, os.WNOHANG)[0] == 0:
            if any(out.iterdir()):
                first = time.monotonic() - begun
            time.sleep(0.002)
        if first is not None:
            assert finished(pid) == 0, f"{name} fails by itself"
        lasts = time.monotonic() - begun
        count = int(os.pread(self.tell, 9, 0))
        result = in_child(look, out)
        assert "broken" not in result and result != "nothing", result
        return result, count, min(first or 0, lasts), lasts

    def _folder(self):
        return pathlib.Path(tempfile.mkdtemp(dir=self.place))

    def kill_one(self, name, draw) -> tuple[int, str | None]:
        """Runs a task with kills; returns their number and the faults."""
        task, look = TASKS[name]
        result, count, first, lasts = self.known[name]
        out, kills = self._folder(), 0
        for turn in range(3):
            before_call = draw.random() < 0.5
            at = draw.randint(1, count) if before_call and turn < 2 else 0
            after = draw.uniform(first, lasts) if not at and turn < 2 else None
            status = finished(start(task, self.place, out, at, self.tell), after)
            if status not in (0, -signal.SIGKILL):
                return kills, f"ended with {status}"
            kills += status == -signal.SIGKILL
            found = in_child(look, out)
            if status == 0:
                same = found == result
                shutil.rmtree(out)
                return kills, None if same else f"another result: {found[:2000]}"
            if name in ("anonymize", "export") and found not in ("nothing", result):
                return kills, f"partial output: {found[:2000]}"
            if found.startswith("broken") and name != "budget":
                return kills, found[:2000]
        return kills, "not done after the last turn"


def kill(names, kills: int, seed: int, tell=lambda _: None) -> collections.Counter:
    """Kills tasks in turn; returns the kills and findings of each."""
    import orbax.checkpoint
    import tensorflow_datasets

    import jaxanon.cli

    # Every fork inherits it.
    assert jaxanon.cli and orbax.checkpoint and tensorflow_datasets
    counts = collections.Counter()
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as place:
        bench = Bench(pathlib.Path(place).resolve(), names)
        while sum(counts[name, "kills"] for name in names) < kills:
            for name in names:
                done, wrong = bench.kill_one(name, draw)
                counts[name, "kills"] += done
                counts[name, "tasks"] += 1
                so_far = sum(counts[task, "kills"] for task in names)
                tell(f"{so_far} kills; {name}: {done}, {wrong or 'all is well'}")
                counts[name, "findings"] += wrong is not None
        for name in names:
            counts[name, "calls"] = bench.known[name][1]
    return counts


def main():
    """Kills, and prints the numbers; exits with status 1 after a finding."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--task", choices=[*TASKS], action="append")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    names = options.task or [*TASKS]
    show = lambda line: print(line, flush=True)
    counts = kill(names, options.kills, options.seed, show)
    for name in names:
        told = {what: counts[name, what] for what in ("kills", "tasks", "findings")}
        print(name, told, f"{counts[name, 'calls']} file-system calls", flush=True)
    sys.exit(any(counts[name, "findings"] for name in names))


if __name__ == "__main__":
    main()
