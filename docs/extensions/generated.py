"""Writes the generated folders of the reference before Sphinx reads the sources."""

import pathlib

import api
import cli
import dataset_cards
import kernel_cards
import method_cards
import recipe_cards

# Folder below ``docs/reference`` -> function that returns its pages by file name.
FOLDERS = {
    "api": api.pages,
    "cli": cli.pages,
    "datasets": dataset_cards.pages,
    "kernels": kernel_cards.pages,
    "learners": lambda: method_cards.pages("learner"),
    "methods": lambda: method_cards.pages("anonymizer"),
    "recipes": recipe_cards.pages,
}


def setup(app):
    """Connects ``write`` to the start of the build."""
    app.connect("builder-inited", lambda app: write(pathlib.Path(app.srcdir)))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write(docs: pathlib.Path) -> None:
    """Writes all pages, and removes pages that are no longer generated."""
    for name, pages in FOLDERS.items():
        folder = docs / "reference" / name
        folder.mkdir(exist_ok=True)
        texts = pages()
        for path in folder.iterdir():
            if path.name not in texts:
                path.unlink()
        for file, text in texts.items():
            path = folder / file
            if not path.exists() or path.read_text() != text:  # Sphinx compares times.
                path.write_text(text)
