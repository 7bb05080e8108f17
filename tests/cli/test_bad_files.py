"""Commands end with one line and status 2 for files that they cannot use."""

import os
import pwd
import sys

import pytest

from jaxanon.cli import app
from jaxanon.datasets import store

COMMANDS = {
    "evaluate": "evaluate RUN",
    "budget-curve": "budget-curve RUN --epsilons 1",
    "personalize": "personalize RUN",
    "anonymize": "anonymize RUN --input in.npy --output out.npy",
    "sample": "sample RUN --label 0 --count 1 --output out.npz",
    "export": "export RUN --output out.onnx",
    "privacy": "privacy RUN",
    "train": "train blinder --dataset RUN --output-dir out",
    "sweep": "sweep blinder --dataset RUN --output-dir out",
    "import": "datasets import RUN --channels a --rate-hz 5 --output out.npz",
    "dashboard": "dashboard RUN --input in.csv",
}
FOLDERS = {
    "missing": None,
    "no run": {},
    "bytes": {"config.json": b"\xff\xfe"},
    "no object": {"config.json": b"[1]"},
    "deep": {"config.json": b"[" * 100_000},
    "another layout": {
        "config.json": b'{"version": "1", "method": "blinder", "architecture": [], '
        b'"settings": {}, "spec": {"a": 1}, "data": {}, "seed": -1}'
    },
    "unknown method": {
        "config.json": b'{"version": "1", "method": "other", "architecture": [], '
        b'"settings": {}, "spec": {}, "data": {}, "seed": 0}'
    },
    "a line\nbreak": {},
    os.fsdecode(b"\xff"): {},
    "n" * 300: None,
}


def refused(capfd, words):
    """Runs a command; returns the line with which it ends."""
    try:
        status = app.main(words)
    except SystemExit as ended:
        status = ended.code
    lines = capfd.readouterr().err.splitlines()
    assert status == 2, lines
    lines = [line for line in lines if "error: " in line]
    assert len(lines) == 1
    assert not any(word in lines[0] for word in ("Traceback", "Errno", "NoneType"))
    return lines[0]


@pytest.mark.parametrize("command", COMMANDS)
def test_folders_that_hold_no_run(command, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    for name, files in FOLDERS.items():
        folder = tmp_path / name
        if files is not None:
            folder.mkdir()
            for file, content in files.items():
                (folder / file).write_bytes(content)
        words = COMMANDS[command].split()
        refused(capfd, [str(folder) if word == "RUN" else word for word in words])


@pytest.mark.parametrize("command", COMMANDS)
def test_files_with_other_content(command, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    contents = {"a.npz": b"PK\x03\x04", "b.npz": b"", "c.csv": b"\xff\x00\n1"}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        words = [name if word == "RUN" else word for word in COMMANDS[command].split()]
        refused(capfd, words)


@pytest.mark.parametrize("where", ["file/run", "/dev/full", "/proc/none/run"])
@pytest.mark.parametrize("command", ["train", "sweep"])
def test_folders_that_cannot_be_written(command, where, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_bytes(b"")
    words = [command, "blinder", "--dataset", "smartwatch", "--output-dir", where]
    refused(capfd, words)


def test_no_home_folder(monkeypatch):
    def unknown(uid):
        raise KeyError(uid)

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("JAXANON_CACHE", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    with pytest.raises(ValueError, match="JAXANON_CACHE must be a path without ~"):
        store.cache_folder()


def test_closed_output(monkeypatch, capfd):
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        assert "the output pipe was closed" in refused(capfd, ["learners"])
    monkeypatch.setattr(sys, "stdout", None)
    assert "standard output must be open" in refused(capfd, ["learners"])
