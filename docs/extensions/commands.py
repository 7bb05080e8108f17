"""Makes pages of what every verb of the command lines says to ``--help``."""

import contextlib
import io
import pathlib
import re

import reference

from jaxanon.cli import app as cli_app
from jaxanon.edge import command

FOLDER = "commands"
PROGRAMS = {"jaxanon": cli_app.main, "jaxanon-edge": command.main}
# Verbs that have verbs of their own, or further settings behind a name.
DEEPER = {"datasets": ("datasets", "datasets export")}


def setup(app):
    """Makes Sphinx ask the commands before it looks for pages."""
    app.connect("builder-inited", lambda app: write(pathlib.Path(app.srcdir) / FOLDER))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write(folder: pathlib.Path) -> None:
    """Writes a page for each of the programs into ``folder``."""
    folder.mkdir(exist_ok=True)
    for name, main in PROGRAMS.items():
        reference.put(folder / f"{name}.md", page(name, main))
    names = "\n".join(PROGRAMS)
    about = "# Commands\n\nWhat they say of themselves."
    reference.put(folder / "index.md", f"{about}\n\n```{{toctree}}\n{names}\n```\n")


def page(name: str, main) -> str:
    """What a program and its verbs say, a section each."""
    said = help_of(main)
    sections = [f"# {name}", _block(f"{name} --help", said)]
    named = [deep for verb in verbs(said) for deep in DEEPER.get(verb, (verb,))]
    for verb in named:
        sections += [f"## {verb}", _block(f"{name} {verb} --help", help_of(main, verb))]
    return "\n\n".join(sections) + "\n"


def verbs(said: str) -> list[str]:
    """The verbs that a program's help lists, in its own order."""
    listed = re.search(r"\{([\w,-]+)\}", said)  # tyro's usage
    if listed:
        return listed[1].split(",")
    return re.findall(r"^    ([\w-]+)(?: {2,}|$)", said, re.MULTILINE)  # argparse's


def help_of(main, verb: str = "") -> str:
    """What ``--help`` behind a verb prints."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        main([*verb.split(), "--help"])
    return said.getvalue().strip()


def _block(asked, said):
    return f"```text\n$ {asked}\n{said}\n```"
