"""README and docs as tests read them: code blocks, shell commands, links."""

import json
import pathlib
import re
import shlex

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
BLOCK = re.compile(r"^```([\w-]*)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)


def blocks(text):
    """Returns (language, code) of every fenced block."""
    return BLOCK.findall(text)


def read(path):
    """Returns the Markdown of a page; skips the test if there is no checkout."""
    if not README.exists() or not DOCS.exists():
        pytest.skip("README.md and docs/ are not next to the tests; use a checkout")
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        return "\n\n".join(
            "".join(cell["source"])
            for cell in json.loads(text)["cells"]
            if cell["cell_type"] == "markdown"
        )
    return text


def cells(path):
    """Returns the code cells of a notebook."""
    read(path)
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return [
        "".join(cell["source"])
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


def guides():
    """Returns the how-to pages but the index."""
    return sorted(set((DOCS / "how-to").glob("*.md")) - {DOCS / "how-to" / "index.md"})


def tutorials():
    """Returns the notebooks."""
    return sorted((DOCS / "tutorials").glob("*.ipynb"))


def commands(text):
    """Yields the words of every shell command of jaxanon in a page."""
    for language, code in blocks(text):
        if language in ("bash", "sh", "shell", "console"):
            for line in code.replace("\\\n", " ").splitlines():
                words = shlex.split(line.removeprefix("$ "), comments=True)
                for command in _split(words):
                    if command[:1] in (["jaxanon"], ["jaxanon-edge"]):
                        yield command


def _split(words):
    """Yields the commands of a line that ``&&`` or ``&`` separates."""
    command = []
    for word in [*words, "&&"]:
        if word in ("&&", "&", ";"):
            yield command
            command = []
        else:
            command.append(word)


def links(text):
    """Returns the targets of Markdown links and images outside code."""
    return re.findall(r"\]\(([^)\s]+)\)", BLOCK.sub("", text))
