"""The modules of the page on plugins are short, and its commands run."""

import importlib
import sys

import documents
import pytest
from hasty import hasty

from jaxanon import cli
from jaxanon.core import registry
from jaxanon.datasets import registry as datasets

PAGE = documents.DOCS / "how-to" / "plugins.md"
NAMES = "my_vae", "my_learner", "my_data"


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """Writes the page's modules to the current folder, and forgets them afterwards."""
    blocks = documents.blocks(documents.read(PAGE))
    *sources, make = [code for what, code in blocks if what == "python"]
    for name, source in zip(NAMES, sources, strict=True):
        (tmp_path / f"{name}.py").write_text(source)
    registry.names("anonymizer")  # Loads the built-in ones.
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))
    monkeypatch.setattr(registry, "_PLUGINS", [])
    monkeypatch.setattr(datasets, "_DATASETS", dict(datasets._DATASETS))
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("JAXANON_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    exec(compile(make, "make_gestures.py", "exec"), {})
    yield sources
    for name in NAMES:
        sys.modules.pop(name, None)


def test_modules_are_short_and_registered(modules):
    assert all(len(source.splitlines()) <= 40 for source in modules)
    for name in NAMES:
        importlib.import_module(name)
    assert "tiny_vae" in registry.names("anonymizer")
    assert "fedavgm" in registry.names("learner")
    assert "gestures" in registry.names("dataset")


def test_a_builder_needs_no_package_and_no_name():
    builder = importlib.import_module("jaxanon.datasets.builder")

    class Builder(builder.RecordingsBuilder):
        dataset, num_channels = datasets.find("smartwatch"), 6

    assert Builder.name == "smartwatch"
    assert str(Builder.code_path) == __file__


@pytest.mark.slow
def test_commands_run(modules, tmp_path, capsys):
    commands = list(documents.commands(documents.read(PAGE)))
    assert {words[1] for words in commands} == {
        *("train", "evaluate", "export", "sweep", "datasets"),
    }
    for words in commands:
        with hasty():
            assert cli.main(words[1:]) == 0, capsys.readouterr().err
    said = capsys.readouterr().out
    # The next command names the modules and the source that it needs.
    next_ = (
        "jaxanon evaluate runs/vae --plugin my_vae --plugin my_data --source gestures"
    )
    assert f"Next: {next_}" in said
    for path in (
        *("runs/vae/report.html", "runs/fedavgm/report.html", "tiny_vae.onnx"),
        *("runs/vae-sweep/sweep.html", "runs/fedavgm-sweep/sweep.html", "gestures.npz"),
    ):
        assert (tmp_path / path).stat().st_size > 1000, path
