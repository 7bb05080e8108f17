"""Every example in the README runs as printed."""

import ast
import importlib.metadata
import itertools
import pathlib
import re
import shlex
import sys

import numpy as np
import pytest
from hasty import hasty

import jaxanon
from jaxanon.attacks import ATTACKERS
from jaxanon.evaluation import attackers

README = pathlib.Path(__file__).resolve().parents[2] / "README.md"


def _blocks(text):
    """(language, code) of every fenced block."""
    return re.findall(r"^```([\w-]*)[^\n]*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def _readme():
    if not README.exists():
        pytest.skip("README.md is not beside the tests; only a checkout has both")
    return _blocks(README.read_text())


def _parts(text):
    """The Python blocks of every part, which goes from one heading to the next."""
    bare = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    cuts = [text.index(f"{line}\n") for line in re.findall(r"^##+ .*$", bare, re.M)]
    for start, end in itertools.pairwise([0, *cuts, len(text)]):
        code = [code for what, code in _blocks(text[start:end]) if what == "python"]
        yield text[start:end].partition("\n")[0], code


def test_parts_are_found():
    python = "```python\n## no heading\n```\n"
    text = f"# t\n## a\n{python}### b\nwords\n## c\n{python}{python}"
    block = "## no heading\n"
    found = [("# t", []), ("## a", [block]), ("### b", []), ("## c", [block, block])]
    assert list(_parts(text)) == found


@pytest.mark.slow
def test_readme_python_runs(tmp_path, monkeypatch):
    """Whoever comes to a part need have read its section's beginning, and no other."""
    monkeypatch.chdir(tmp_path)
    blocks = _readme()
    assert not [language for language, _ in blocks if language == "python-norun"]
    _record(tmp_path / "ann.csv", 3)
    _record(tmp_path / "bob.csv", 5)
    parts = dict(_parts(README.read_text()))
    assert sum(map(len, parts.values())) == sum(what == "python" for what, _ in blocks)
    assert "## From Python" in parts
    above = {}
    for name, code in parts.items():  # A section without code lends its parts nothing.
        names = {**above, "__name__": "readme"} if name.startswith("### ") else {}
        for number, block in enumerate(code):
            with hasty():
                exec(
                    compile(block, f"README.md, {name}, block {number}", "exec"), names
                )
        above = above if name.startswith("### ") else names
    own = np.load(tmp_path / "ours.npz")
    assert own["windows"].shape == (2 * 10, 128, 3)
    assert own["subject_names"].tolist() == ["ann", "bob"]


def _record(path, level):
    """Eight seconds of each of two activities, as CSV, of a sensor that shakes."""
    shaking = level * np.random.default_rng(level).normal(size=(800, 3))
    rows = ["time,acc.x,acc.y,acc.z,activity"]
    for number, (x, y, z) in enumerate(shaking):
        rows.append(f"{number / 50},{x},{y},{z},{('rest', 'walk')[number // 400]}")
    path.write_text("\n".join(rows) + "\n")


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


def test_readme_lists_every_attack():
    _readme()  # Skips where there is none.
    table = README.read_text().split("\n| `--attacks` |")[1].split("\n\n")[0]
    listed = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    names = re.findall(r"`([\w-]+)`", " ".join(listed))
    assert sorted(names) == sorted([*ATTACKERS, *attackers.ATTACKS])


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
        "```bash\n$ jaxanon demo  # quick\npip x\njaxanon train a \\\n  --seed b\n```\n"
    )
    found = list(_commands(_blocks(text)))
    assert found == [
        ["jaxanon", "demo"],
        ["jaxanon", "train", "a", "--seed", "b"],
    ]


def test_readme_commands_exist(monkeypatch, capsys):
    commands = list(_commands(_readme()))
    assert ["jaxanon", "demo"] in [words[:2] for words in commands]
    for words in commands:
        found = importlib.metadata.entry_points(group="console_scripts", name=words[0])
        (script,) = found
        main = script.load()
        # Which settings there are depends on the method.
        narrow = ("train", "server", "sweep", "privacy", "datasets")
        most = 3 if words[1] in narrow else 2
        verb = [word for word in words[1:most] if not word.startswith("-")]
        monkeypatch.setattr(sys, "argv", [words[0], *verb, "--help"])
        with pytest.raises(SystemExit) as stopped:
            main()
        shown = capsys.readouterr().out
        assert not stopped.value.code, f"jaxanon {verb} is unknown"
        for option in (word.partition("=")[0] for word in words if word[:2] == "--"):
            assert option in shown, f"{shlex.join(words)}: {option} is unknown"


def _given(words, option):
    """What follows an option, or stands behind its =, or nothing."""
    words = [part for word in words for part in re.split(rf"(?<=^{option})=", word)]
    return words[words.index(option) + 1] if option in words else None


def _refused(commands, there):
    """Numbers of the commands that stop at what is there, or at what is not."""
    there, reported = set(there), set()
    for number, words in enumerate(commands):
        verb, folder = words[1], words[2] if len(words) > 2 else ""
        out = _given(words, "--output-dir") or _given(words, "--output")
        if verb in ("train", "server", "sweep") and out is None:
            out = f"runs/{folder}{'-sweep' if verb == 'sweep' else ''}"
        read = [_given(words, "--input"), _given(words, "--dataset"), folder]
        read = [name for name in read if name and re.search(r"/|\.\w", name)]
        tests = "evaluate", "budget-curve", "personalize"
        report = verb in tests and (folder, verb)
        again = {"--resume", "--overwrite", "--process-id"} & set(words)
        kind = {"anonymize": ".npy", "sample": ".npz", "export": ".onnx"}.get(verb, "")
        if (
            not set(read) <= there
            or ((out in there or report in reported) and not again)
            or (out and not out.endswith(kind))
        ):
            yield number
        told = {out, _given(words, "--attackers"), _given(words, "--samples")}
        there |= told - {None}
        reported |= {report} - {False}


def test_readme_commands_follow_one_another():
    """Whoever types them all meets no file that is missing, or there already."""
    blocks = _readme()
    made = {name for _, code in blocks for name in re.findall(r'"(\S+\.npz)"', code)}
    assert "ours.npz" in made
    commands = list(_commands(blocks))
    assert not [shlex.join(commands[number]) for number in _refused(commands, made)]


def test_commands_that_would_be_refused_are_found():
    said = """train a --output-dir r/a; train a --output-dir=r/a; train b
    train b --resume; train b
        evaluate r/a; budget-curve r/a --epsilons 1; evaluate r/a; evaluate r/x
        anonymize r/a --input x.npz --output s.npy
        anonymize r/a --input y.npz --output t.npy
        anonymize r/a --input x.npz --output t.npz; sample r/a --output s.npy
        sweep a; evaluate runs/a-sweep; sweep a"""
    commands = [f"jaxanon {one}".split() for one in re.split(r"[;\n]", said)]
    assert list(_refused(commands, ["x.npz"])) == [1, 4, 7, 8, 10, 11, 12, 15]
