"""``jaxanon dashboard`` runs ``jaxanon-edge dashboard``, found where JAX is."""

import importlib.util

import pytest

from jaxanon.cli import app
from jaxanon.edge import command


def test_words_are_handed_on(monkeypatch):
    seen = []
    monkeypatch.setattr(command, "main", lambda words: seen.append(words) or 0)
    words = ["dashboard", "a.onnx", "--input", "-", "--port", "0"]
    assert app.main([*words, "--attackers", "b.onnx"]) == 0
    assert seen == [[*words, "--attackers", "b.onnx"]]


def test_what_the_page_refuses_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        app.main(["dashboard", str(tmp_path / "none.onnx"), "--input", "-"])
    assert stopped.value.code == 2
    assert "does not exist; create it with" in capsys.readouterr().err


def test_the_extra_is_named(monkeypatch, refused):
    there = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: None if name == "onnxruntime" else there(name, *rest),
    )
    words = "dashboard", "a.onnx", "--input", "-"
    assert "pip install 'jaxanon[edge]'" in refused(*words)
