"""A few kills of each kind; ``kills.py --kills 200`` runs more."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).with_name("kills.py")


@pytest.mark.slow
def test_what_is_killed_and_gone_on_with_ends_in_the_same_bits(tmp_path):
    """Runs in a separate process, which forks before JAX starts."""
    words = [sys.executable, "-P", str(SCRIPT), "--kills", "6", "--seed", "1"]
    words += ["--task", "budget", "--task", "dataset", "--task", "train"]
    done = subprocess.run(
        words, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "'findings': 0" in done.stdout


@pytest.mark.slow
def test_the_hook_kills_before_the_call_that_was_named(script, tmp_path):
    """Only the first of the two files exists."""
    kills = script("kills")
    tell = os.open(tmp_path / "told", os.O_RDWR | os.O_CREAT)
    out = tmp_path / "out"
    out.mkdir()
    code = f"""
import os, sys
sys.path.append({str(SCRIPT.parent)!r})
import kills
kills.watch({str(out)!r}, 2, os.open({str(tmp_path / "told")!r}, os.O_RDWR))
for name in "abc":
    open(os.path.join({str(out)!r}, name), "w").close()
"""
    done = subprocess.run([sys.executable, "-P", "-c", code], check=False)
    assert done.returncode == -signal.SIGKILL
    assert [path.name for path in out.iterdir()] == ["a"]
    assert int(os.pread(tell, 9, 0)) == 1
    os.close(tell)
    assert set(kills.TASKS) >= {"train", "sweep", "anonymize", "export", "dataset"}
