"""Every example in the README runs as printed."""

import ast
import importlib.metadata
import pathlib
import re
import shlex
import sys

import pytest

import jaxanon

README = pathlib.Path(__file__).resolve().parents[2] / "README.md"


def _blocks(text):
    """(language, code) of every fenced block."""
    return re.findall(r"^```([\w-]*)[^\n]*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def _readme():
    if not README.exists():
        pytest.skip("README.md is not beside the tests; only a checkout has both")
    return _blocks(README.read_text())


def test_readme_python_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = _readme()
    assert not [language for language, _ in blocks if language == "python-norun"]
    code = [code for language, code in blocks if language == "python"]
    assert code, "the README must show how the library is used from Python"
    namespace = {"__name__": "readme"}
    for number, block in enumerate(code):
        exec(compile(block, f"README.md, Python block {number}", "exec"), namespace)


def _kernels_in(code):
    """Every name ``x`` that stands in code as ``kernels.x``."""
    return {
        node.attr
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "kernels"
    }


def test_kernels_are_found_in_code_alone():
    code = "# kernels.a\nprint('kernels.b', kernels.c(1), map(kernels.d, x))\n"
    assert _kernels_in(code) == {"c", "d"}


def _kernels_section():
    """The README's section on the kernels, and the code of its Python blocks."""
    _readme()  # Skips where there is none.
    section = README.read_text().split("\n## The kernels\n")[1].split("\n## ")[0]
    return section, [
        code for language, code in _blocks(section) if language == "python"
    ]


def _kernel_functions():
    things = {name: getattr(jaxanon.kernels, name) for name in jaxanon.kernels.__all__}
    return {name for name, thing in things.items() if not isinstance(thing, type)}


def test_readme_shows_every_kernel_in_use():
    _, code = _kernels_section()
    shown = set().union(*map(_kernels_in, code))
    assert not _kernel_functions() - shown


def test_readme_examples_of_kernels_are_short():
    _, code = _kernels_section()
    assert len(code) > 40
    long = [block for block in code if len(block.strip().splitlines()) > 8]
    assert not long


def test_readme_lists_every_kernel():
    section, _ = _kernels_section()
    listed = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    names = re.findall(r"`(\w+)`", " ".join(listed))
    assert sorted(names) == sorted(_kernel_functions())


def _commands(blocks):
    """The words of every shell line that calls jaxanon."""
    for language, code in blocks:
        if language in ("bash", "sh", "shell", "console"):
            for line in code.replace("\\\n", " ").splitlines():
                words = shlex.split(line.removeprefix("$ "), comments=True)
                if words[:1] in (["jaxanon"], ["jaxanon-edge"]):
                    yield words


def test_commands_are_found():
    text = (
        "```bash\n$ jaxanon demo  # quick\npip x\njaxanon train a \\\n  --out b\n```\n"
    )
    found = list(_commands(_blocks(text)))
    assert found == [["jaxanon", "demo"], ["jaxanon", "train", "a", "--out", "b"]]


def test_readme_commands_exist(monkeypatch, capsys):
    commands = list(_commands(_readme()))
    assert ["jaxanon", "demo"] in [words[:2] for words in commands]
    for words in commands:
        found = importlib.metadata.entry_points(group="console_scripts", name=words[0])
        (script,) = found
        main = script.load()
        # Which settings there are depends on the method.
        most = 3 if words[1] in ("train", "serve", "sweep", "privacy") else 2
        verb = [word for word in words[1:most] if not word.startswith("-")]
        monkeypatch.setattr(sys, "argv", [words[0], *verb, "--help"])
        with pytest.raises(SystemExit) as stopped:
            main()
        shown = capsys.readouterr().out
        assert not stopped.value.code, f"jaxanon {verb} is unknown"
        for option in (word.partition("=")[0] for word in words if word[:2] == "--"):
            assert option in shown, f"{shlex.join(words)}: {option} is unknown"
