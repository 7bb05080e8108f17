"""Pages of data sets: README, attributes, presets and citation."""

import importlib
import pathlib

from rows import table

from jaxanon.datasets import registry

MOST = 12  # Classes listed by name.


def pages() -> dict[str, str]:
    """Returns a Markdown page for each data set by file name."""
    return {f"{name}.md": page(name) for name in registry.names()}


def page(name: str) -> str:
    """Returns the page of one data set."""
    dataset = registry.find(name)
    module = importlib.import_module(f"jaxanon.datasets.{name}")
    folder = pathlib.Path(module.__file__).parent
    private = ", ".join(f"`{each}`" for each in dataset.private) or "none"
    rows = [
        ("default public attribute", f"`{dataset.public}`"),
        ("default private attributes", private),
        ("splits (the first is the default)", ", ".join(map(repr, dataset.splits))),
        *((f"attribute `{a}`", _classes(c)) for a, c in dataset.attributes.items()),
        *((f"target `{a}`", f"number in {u}") for a, u in dataset.targets.items()),
        *((f"preset `{a}`", preset.about) for a, preset in dataset.presets.items()),
    ]
    parts = [
        f"# {name}",
        (folder / "README.md").read_text().strip(),
        f'```python\ndata = jaxanon.load("{name}")\n```',
        table(("setting or label", "values"), rows),
        "## Citation",
        f"```bibtex\n{(folder / 'CITATIONS.bib').read_text().strip()}\n```",
    ]
    return "\n\n".join(parts) + "\n"


def _classes(names):
    if not names:
        return "classes are read from the recordings"
    more = ", …" if len(names) > MOST else ""
    return f"{len(names)} classes: {', '.join(names[:MOST])}{more}"
