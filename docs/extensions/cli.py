"""Pages of the command line: the ``--help`` text of every command."""

import contextlib
import io
import re

from jaxanon.cli import app
from jaxanon.edge import command

PROGRAMS = {"jaxanon": app.main, "jaxanon-edge": command.main}
DEEPER = {
    "datasets": ("datasets", "datasets show", "datasets export", "datasets import")
}


def pages() -> dict[str, str]:
    """Returns a Markdown page for each program by file name."""
    return {f"{name}.md": page(name, main) for name, main in PROGRAMS.items()}


def page(name: str, main) -> str:
    """Returns the help texts of a program and its commands, a section each."""
    text = help_of(main)
    sections = [f"# {name}", _block(f"{name} --help", text)]
    for top in commands(text):
        for each in DEEPER.get(top, (top,)):
            shown = _block(f"{name} {each} --help", help_of(main, each))
            sections += [f"## {each}", shown]
    return "\n\n".join(sections) + "\n"


def commands(text: str) -> list[str]:
    """Returns the commands that a program's help lists, in its order."""
    listed = re.search(r"\{([\w,-]+)\}", text)  # Written by tyro.
    if listed:
        return listed[1].split(",")
    return re.findall(r"^    ([\w-]+) {2,}", text, re.MULTILINE)  # Written by argparse.


def help_of(main, words: str = "") -> str:
    """Returns the output of a command with ``--help``."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.suppress(SystemExit):
        main([*words.split(), "--help"])
    return output.getvalue().strip()


def _block(command, text):
    return f"```text\n$ {command}\n{text}\n```"
