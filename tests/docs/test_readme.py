"""README is short, and its examples and commands run."""

import importlib.metadata
import re
import shlex
import sys

import documents
import pytest
from hasty import hasty

SMALL = "latent_dim=10, hidden_sizes=(32,), samples_per_class=16"


def _code(path, language):
    return [
        code
        for what, code in documents.blocks(documents.read(path))
        if what == language
    ]


def test_readme_is_short():
    text = documents.read(documents.README)
    assert len(text.encode()) <= 8192


@pytest.mark.slow
def test_readme_python_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    [code] = _code(documents.README, "python")
    assert len(code.replace("\n\n", "\n").strip().splitlines()) == 6
    # Small networks, because a test compiles without most optimizations.
    small = code.replace("blinder(data.spec", f"blinder(data.spec, {SMALL}")
    assert small != code
    names = {"__name__": "readme"}
    with hasty():
        exec(compile(small, "README.md", "exec"), names)
    assert names["safe"].shape == names["data"].test.windows.shape


def test_readme_shell_example_has_three_lines():
    lines = [len(code.strip().splitlines()) for code in _code(documents.README, "bash")]
    assert lines == [2, 3]


def test_the_first_example_of_the_site_is_the_readme_s():
    index = documents.DOCS / "index.md"
    assert _code(index, "python") == _code(documents.README, "python")


def test_commands_are_found():
    text = (
        "```bash\n$ jaxanon demo  # quick\npip x && jaxanon a\njaxanon train a \\\n"
        "  --out b &\n```\n"
    )
    found = list(documents.commands(text))
    assert found == [
        ["jaxanon", "demo"],
        ["jaxanon", "a"],
        ["jaxanon", "train", "a", "--out", "b"],
    ]


def _pages():
    return [documents.README, *documents.guides(), *documents.tutorials()]


@pytest.mark.parametrize("path", _pages(), ids=lambda path: path.stem)
def test_commands_exist(path, monkeypatch, capsys):
    for words in documents.commands(documents.read(path)):
        if "--plugin" in words:  # Its module is in the notebook.
            continue
        found = importlib.metadata.entry_points(group="console_scripts", name=words[0])
        (script,) = found
        main = script.load()
        # The settings depend on the method.
        narrow = ("train", "serve", "server", "sweep", "privacy", "datasets")
        most = 3 if words[1] in narrow else 2
        command = [word for word in words[1:most] if word[0] != "-" and "/" not in word]
        monkeypatch.setattr(sys, "argv", [words[0], *command, "--help"])
        with pytest.raises(SystemExit) as stopped:
            main()
        shown = capsys.readouterr().out
        assert not stopped.value.code, f"jaxanon {command} is unknown"
        for option in (word.partition("=")[0] for word in words if word[:2] == "--"):
            pattern = rf"(?<![\w-]){re.escape(option)}(?![\w-])"
            assert re.search(pattern, shown), f"{option} of {shlex.join(words)}"


def _value(words, option):
    """Returns the value of an option, or None."""
    words = [part for word in words for part in re.split(rf"(?<=^{option})=", word)]
    return words[words.index(option) + 1] if option in words else None


def _refused(commands, there):
    """Yields the indices of commands whose input is missing or whose output exists."""
    there, reported = set(there), set()
    for number, words in enumerate(commands):
        verb, folder = words[1], words[2] if len(words) > 2 else ""
        out = _value(words, "--output-dir") or _value(words, "--output")
        if verb in ("train", "serve", "server", "sweep") and out is None:
            out = f"runs/{folder}{'-sweep' if verb == 'sweep' else ''}"
        read = [_value(words, "--input"), _value(words, "--dataset"), folder]
        read = [name for name in read if name and re.search(r"/|\.\w", name)]
        tests = "evaluate", "budget-curve", "personalize"
        report = verb in tests and (folder, verb)
        again = {"--resume", "--overwrite", "--process-id"} & set(words)
        kind = {"anonymize": ".npy", "sample": ".npz", "export": ".onnx"}.get(verb, "")
        if "--output-dir" in words or (verb == "export" and "." not in out):
            kind = ""  # A folder: exports of sweeps are folders, too.
        if words[1:3] == ["datasets", "import"]:  # Recordings are the reader's own.
            there |= {word for word in words if word.endswith(".csv")}
        if (
            not set(read) <= there
            or ((out in there or report in reported) and not again)
            or (out and not out.endswith(kind))
        ):
            yield number
        written = {out, _value(words, "--attackers"), _value(words, "--samples")}
        there |= written - {None}
        reported |= {report} - {False}


@pytest.mark.parametrize(
    "path", [documents.README, *documents.guides()], ids=lambda path: path.stem
)
def test_commands_follow_one_another(path):
    """A reader who types a page's commands meets no missing or existing file."""
    text = documents.read(path)
    made = set(re.findall(r'"(\S+\.npz)"', "".join(_code(path, "python"))))
    commands = list(documents.commands(text))
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
