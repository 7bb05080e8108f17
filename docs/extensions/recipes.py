"""Makes the page of all methods by recipe, from the registry and the benchmark."""

import json
import pathlib
import statistics

import reference

from jaxanon.core import registry

FILE = "recipes.md"
MEASURED = pathlib.Path(__file__).parents[2] / "bench" / "results" / "recipes.json"
TITLES = {
    "anonymizer": "Anonymizers",
    "learner": "Learners",
    "controller": "Controllers",
}
COLUMNS = {
    "kept": "public, %",
    "raw_classifier": "private, raw-data classifier, %",
    "retrained": "private, strongest retrained attacker, %",
    "retrained_stream": "the same over 30 windows, %",
    "cpu_minutes": "CPU minutes",
}
ABOUT = """---
orphan: true
---

# Recipes

A recipe is a named set of settings. `recommended` applies unless another one is named;
`paper` has the paper's settings, with corrected formulas; `official` is the authors'
program, with its errors; `fast` is a first look. Choose one with
`jaxanon train METHOD --recipe NAME` or `jaxanon.methods.METHOD(spec, recipe=NAME)`.
Single settings override those of the recipe, and the run's folder records its name."""


def setup(app):
    """Makes Sphinx ask the registry before it looks for pages."""
    app.connect("builder-inited", lambda app: write(pathlib.Path(app.srcdir)))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write(folder: pathlib.Path) -> None:
    """Writes the page into ``folder``."""
    reference.put(folder / FILE, page())


def page() -> str:
    """The page in Markdown."""
    parts = [ABOUT]
    for kind, title in TITLES.items():
        parts += [f"## {title}", _table(HEAD, _rows(kind))]
    if MEASURED.is_file():
        head = ("data", "recipe", "seeds", *COLUMNS.values())
        rows = _measured(json.loads(MEASURED.read_text()))
        parts += ["## Blinder, measured", _table(head, rows)]
    return "\n\n".join(parts) + "\n"


HEAD = ("method", "recipe", "purpose", "epochs", "settings that differ from defaults")


def _rows(kind):
    """Methods whose recipes are the same share their lines."""
    groups: dict[str, list[str]] = {}
    for name in registry.names(kind):
        groups.setdefault(repr(registry.entry(name).recipes), []).append(name)
    for names in groups.values():
        own = registry.entry(names[0])
        for name in own.recipes:
            recipe = own.recipes[name]
            methods = ", ".join(f"`{method}`" for method in names)
            epochs = registry.default_epochs(names[0], name)
            yield methods, f"`{name}`", recipe.purpose, epochs, _settings(recipe)


def _settings(recipe):
    return ", ".join(f"`{name}={value!r}`" for name, value in recipe.settings.items())


def _measured(rows):
    groups: dict[tuple, list[dict]] = {}
    for row in rows:
        groups.setdefault((row["case"], row["recipe"]), []).append(row)
    for (case, recipe), own in groups.items():
        cells = []
        for name in COLUMNS:
            values = [row[name] for row in own if row.get(name) is not None]
            cells.append(_spread(values))
        yield case, f"`{recipe}`", len(own), *cells


def _spread(values):
    if not values:
        return "–"
    more = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.1f}{more}"


def _table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    cells = [[str(cell).replace("|", "\\|") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)
