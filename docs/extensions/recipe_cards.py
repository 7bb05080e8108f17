"""Page of recipes: every method's named settings, and their measured results."""

import json

from rows import RESULTS, bench, table

from jaxanon.core import registry

KINDS = ("anonymizer", "learner", "controller")
HEAD = ("method", "recipe", "purpose", "epochs", "settings")
ABOUT = """# Recipes

*For readers who choose settings. 3 minutes.*

A recipe is a named set of settings with a stated purpose. `recommended` is the default.
`paper` holds the architecture, losses and schedule of the paper, with corrected
formulas. `official` repeats the authors' program with its errors. `fast` is for a first
look. Select one with `jaxanon train METHOD --recipe NAME` or
`jaxanon.methods.METHOD(spec, recipe=NAME)`. Single settings override those of the
recipe."""


def pages() -> dict[str, str]:
    """Returns the page in Markdown by its file name."""
    parts = [ABOUT]
    for kind in KINDS:
        if rows := list(_rows(kind)):
            parts += [f"## {kind.capitalize()}s", table(HEAD, rows)]
    if (RESULTS / "recipes.json").is_file():
        rows = json.loads((RESULTS / "recipes.json").read_text())
        measured = bench("recipes.command").table(rows)
        stamp = bench("readme.stamp").measured(rows)
        parts += ["## Blinder's recipes, measured", measured, stamp]
    return {"index.md": "\n\n".join(parts) + "\n"}


def listed(recipes) -> list[tuple[str, str, str, str]]:
    """Returns name, purpose, epochs and settings of each recipe."""
    code = lambda settings: ", ".join(f"`{k}={v!r}`" for k, v in settings.items())
    return [
        (f"`{name}`", one.purpose, str(one.epochs or ""), code(one.settings))
        for name, one in recipes.items()
    ]


def _rows(kind):
    """Yields a row for each recipe; methods with the same recipes share their rows."""
    groups: dict[str, list[str]] = {}
    for name in registry.names(kind):
        recipes = getattr(registry.entry(name), "recipes", {})
        groups.setdefault(repr(recipes), []).append(name)
    for names in groups.values():
        for recipe in listed(getattr(registry.entry(names[0]), "recipes", {})):
            yield ", ".join(f"`{name}`" for name in names), *recipe
