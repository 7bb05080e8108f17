"""The page of a data set: its README, the ways to cut it, whom to cite."""

import importlib
import pathlib

from jaxanon.datasets import registry

MOST = 12  # Classes that are named; a row of 44 tells nobody more.


def page(name: str) -> str:
    """The page in Markdown."""
    found = registry.find(name)
    folder = pathlib.Path(importlib.import_module(f"jaxanon.datasets.{name}").__file__)
    folder = folder.parent
    rows = [
        ("`public`, default", f"`{found.public}`"),
        ("`private`, default", ", ".join(f"`{a}`" for a in found.private) or "nothing"),
        *((f"attribute `{a}`", _classes(own)) for a, own in found.attributes.items()),
        *((f"target `{a}`", f"a number, {unit}") for a, unit in found.targets.items()),
        *((f"preset `{a}`", preset.about) for a, preset in found.presets.items()),
        ("`split`, the first by default", ", ".join(f"`{s}`" for s in found.splits)),
    ]
    lines = [
        f"# {name}",
        (folder / "README.md").read_text().strip(),
        "## How it is loaded",
        f'```python\ndata = jaxanon.load("{name}")\n```',
        "\n".join(
            [
                "| setting or label | what there is |",
                "|---|---|",
                *(f"| {what} | {_cell(value)} |" for what, value in rows),
            ]
        ),
        "## Whom to cite",
        f"```bibtex\n{(folder / 'CITATIONS.bib').read_text().strip()}\n```",
    ]
    return "\n\n".join(lines) + "\n"


def _classes(names):
    if not names:
        return "as many classes as the recordings name"
    more = ", …" if len(names) > MOST else ""
    return f"{len(names)} classes: {', '.join(names[:MOST])}{more}"


def _cell(text):
    return text.replace("|", "\\|").replace("<", "\\<")
