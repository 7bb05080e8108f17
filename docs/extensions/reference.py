"""Writes the reference's pages, which autodoc then fills from the docstrings."""

import importlib
import inspect
import pathlib

import data_sets
import fields
import pages

from jaxanon.datasets import registry

FOLDER = "reference"
MOST = 400  # Characters of a constant's value.
FIELDS = "__dataclass_fields__"
OPTIONS = {
    "class": ("members:", "undoc-members:", "special-members: __call__"),
    "exception": ("members:",),
}


def setup(app):
    """Makes Sphinx write the pages before it looks for them."""
    app.connect("builder-inited", lambda app: write(pathlib.Path(app.srcdir) / FOLDER))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write(folder: pathlib.Path) -> None:
    """Writes all pages into ``folder``, and removes those that are no more."""
    rooms = pages.plan()
    texts = {"index.rst": _index(rooms)}
    for room in rooms:
        below = [page.name for page in room.pages]
        if room.name == "jaxanon.datasets":
            below += [f"{room.name}.{name}" for name in registry.names()]
        texts[f"{room.name}.rst"] = _room(room, below)
        texts |= {f"{page.name}.rst": _page(page) for page in room.pages}
    for name in registry.names():
        texts[f"jaxanon.datasets.{name}.md"] = data_sets.page(name)
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        put(folder / name, text)


def put(path: pathlib.Path, text: str) -> None:
    """Writes a file where it says something new, so that Sphinx reads that alone."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def _index(rooms):
    about = [
        "Everything that is there to be imported, by package, from its docstrings.",
        "",
    ]
    for room in rooms:
        first = inspect.getdoc(importlib.import_module(room.name)).partition("\n")[0]
        about += [f":doc:`{room.name}`", f"   {first}", ""]
    names = [room.name for room in rooms]
    return _lines(_title("Reference"), *about, *_toctree(names))


def _room(room, below):
    own = [member.name for member in room.members if member.kind != "data"]
    text = [
        *_title(room.name),
        f".. automodule:: {room.name}",
        "   :no-members:",
        "",
        *_table("", own),
    ]
    for page in room.pages:
        names = [m.name for m in page.members if m.kind != "data"]
        text += _table(f":doc:`{page.name}`", names)
    text += _table("In other rooms", room.elsewhere)
    for member in room.members:
        text += _member(member)
    return _lines(text, *_toctree(below))


def _page(page):
    text = [
        *_title(page.name.rpartition(".")[2]),
        f".. automodule:: {page.name}",
        "   :no-members:",
        "   :no-index:",
        "",
    ]
    for member in page.members:
        text += _member(member)
    return _lines(text)


def _member(member):
    if member.kind == "data":
        yield from _constant(member)
        return
    yield f".. auto{member.kind}:: {member.name}"
    yield from (f"   :{option}" for option in OPTIONS.get(member.kind, ()))
    if {"name", "parent"} <= getattr(pages.resolve(member.name), FIELDS, {}).keys():
        yield "   :exclude-members: name, parent, scope"  # Every Flax module has them.
    yield ""


def _constant(member):
    """By hand: autodoc would print a dict of functions, and what dicts are."""
    value = pages.resolve(member.name)
    own = type(value).__module__.startswith("jaxanon.")
    if isinstance(value, dict):
        shown, said = f"{{{', '.join(map(repr, value))}}}", "Keys of a dict."
    else:
        shown, said = repr(value), inspect.getdoc(value) if own else ""
    said = said or fields.beside(member)
    package, _, name = member.name.rpartition(".")
    yield from (f".. py:data:: {name}", f"   :module: {package}")
    yield from (f"   :value: {_short(shown)}", "")
    yield from (f"   {said}", "")


def _short(text):
    return text if len(text) <= MOST else f"{text[:MOST].rpartition(',')[0]}, ..."


def _table(heading, names):
    if not names:
        return
    if heading:
        yield from (f".. rubric:: {heading}", "")
    for name in names:
        first = " ".join(
            inspect.getdoc(pages.resolve(name)).partition("\n\n")[0].split()
        )
        yield f"* :py:obj:`{name.rpartition('.')[2]} <{name}>`: {first}"
    yield ""


def _title(text):
    return [text, "=" * len(text), ""]


def _toctree(names):
    if names:
        yield from (".. toctree::", "   :hidden:", "")
        yield from (f"   {name}" for name in names)


def _lines(*parts):
    flat = []
    for part in parts:
        flat += [part] if isinstance(part, str) else list(part)
    return "\n".join(flat) + "\n"
