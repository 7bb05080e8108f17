"""Public names of version 0.1 still exist, under their old or new name.

``tests/inventory.tsv`` has a line for each public Python name, registered name and
command; a rename must enter the new name there.
"""

import contextlib
import importlib
import io
import pathlib

import pytest

from jaxanon import attacks, datasets, learners, methods
from jaxanon.cli import app
from jaxanon.edge import command
from jaxanon.evaluation import attackers

TABLE = pathlib.Path(__file__).with_name("inventory.tsv")
PROGRAMS = {"jaxanon": app.main, "jaxanon-edge": command.main}
REGISTERED = {
    "anonymizer": methods.NAMES,
    "learner": learners.NAMES,
    "dataset": datasets.names(),
    "attacker": attacks.ATTACKERS,
    "attack": attackers.ATTACKS,
}
# Counts of version 0.1, so that no line is lost.
COUNTS = {
    "python": 901,
    "anonymizer": 25,
    "learner": 18,
    "dataset": 17,
    "attacker": 8,
    "attack": 9,
    "command": 26,
}


def read(text):
    """Returns kind -> old name -> new name; ``None`` for a removed name."""
    found = {kind: {} for kind in COUNTS}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        kind, old, new, *reason = line.split("\t")
        assert old not in found[kind], f"{old} stands there twice"
        assert (new == "-") == bool(reason), f"{old}: a dash and a reason, or neither"
        found[kind][old] = {"=": old, "-": None}.get(new, new)
    return found


@pytest.fixture(scope="module")
def table():
    return read(TABLE.read_text(encoding="utf-8"))


def resolve(name):
    """Returns the object with that dotted name, by its longest module."""
    parts = ["jaxanon", *name.split(".")]
    for end in range(len(parts) - 1, 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            found = getattr(found, part)
        return found


def helps(words):
    """Returns whether a command answers ``--help``."""
    program, *verbs = words.split()
    said = io.StringIO()
    with contextlib.redirect_stdout(said), pytest.raises(SystemExit) as ended:
        PROGRAMS[program]([*verbs, "--help"])
    usage = f"usage: {program} {verbs[0]} "
    return ended.value.code in (0, None) and said.getvalue().startswith(usage)


def test_no_line_is_lost(table):
    assert {kind: len(names) for kind, names in table.items()} == COUNTS


def test_names_of_python_resolve(table):
    lost = {}
    for old, new in table["python"].items():
        try:
            new is None or resolve(new)
        except AttributeError as error:
            lost[old] = str(error)
    assert not lost


@pytest.mark.parametrize("kind", REGISTERED)
def test_registered_names_are_registered(table, kind):
    wanted = {name for name in table[kind].values() if name}
    assert not wanted - set(REGISTERED[kind])


def test_commands_answer(table):
    assert not [new for new in table["command"].values() if new and not helps(new)]


def test_what_is_lost_is_found():
    with pytest.raises(AttributeError, match="no attribute 'never_there'"):
        resolve("kernels.never_there")
    with pytest.raises(AttributeError):
        resolve("never.there")
    with pytest.raises(AssertionError, match="a dash and a reason"):
        read("learner\tfedavg\t-")
    with pytest.raises(AssertionError, match="twice"):
        read("learner\tfedavg\t=\nlearner\tfedavg\t=")
    assert read("learner\ta\tb\nlearner\tc\t-\tgone")["learner"] == {
        "a": "b",
        "c": None,
    }
