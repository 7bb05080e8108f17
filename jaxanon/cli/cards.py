"""``jaxanon methods`` and ``jaxanon learners``: lists and cards."""

import importlib
import inspect
import re
import shutil
import textwrap
from typing import Annotated

import tyro

from jaxanon.cli import arguments, console

Name = Annotated[tyro.conf.Positional[str | None], arguments.optional("[NAME]")]

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z]|init\(|update\()")
_LINK = re.compile(r"see ``(?:jaxanon\.)?(federated\.[\w.]+)``")
_BUILDS = re.compile(r"(Builds|Returns) [^.:]*\bfor windows of spec\b[^.:]*\.$")


def methods(name: Name = None, /) -> None:
    """Lists the methods that anonymize windows, or shows the card of one.

    pfdrl, which controls standby of devices in homes, is listed, too.

    Args:
      name: method whose recipes and settings to show
    """
    _show(name, "anonymizer", "controller")


def learners(name: Name = None, /) -> None:
    """Lists the learners, which predict the public attribute, or shows a card.

    Args:
      name: learner whose recipes and settings to show
    """
    _show(name, "learner")


def _show(name, *kinds):
    from jaxanon.core import registry

    if name is not None:
        show(registry.entry(name, *kinds))
        return
    entries = [registry.entry(each) for kind in kinds for each in registry.names(kind)]
    width = max(len(each.name) for each in entries)
    for each in entries:
        first = sentences(each)[0]
        row(each.name, first, width)


def row(name: str, text: str, width: int) -> None:
    """Prints a name and a text in one line of the terminal."""
    columns = shutil.get_terminal_size().columns
    room = max(20, columns - width - 3)
    short = textwrap.shorten(text, room, placeholder=" ...")
    console.say(f"{name:<{width}}  {short}")


def show(entry) -> None:
    """Prints a card: description, source, recipes and settings."""
    from jaxanon.core import registry

    console.say(f"{entry.name}\n\n{about(entry)}\n")
    table = console.table_of("Recipes (--recipe NAME)", "name", "epochs", "purpose")
    table.columns[2].justify = "left"
    for name, recipe in entry.recipes.items():
        epochs = registry.default_epochs(entry.name, name)
        table.add_row(name, str(epochs), recipe.purpose)
    console.table(table)
    if entry.config is not None:
        table = console.table_of("Settings", "name", "default", "description")
        for column in table.columns:
            column.justify, column.overflow = "left", "fold"
        defaults = registry.settings_of(entry.name)
        for field in inspect.signature(entry.config).parameters:
            text = entry.config.__dataclass_fields__[field].metadata.get("help", "")
            value = getattr(defaults, field)
            table.add_row(field, _text(value), text)
        console.table(table)
    console.say(f"Next: jaxanon train {entry.name} --help")


def _text(value):
    if isinstance(value, tuple):
        return " ".join(map(str, value)) or "(empty)"
    return "" if value is None else str(value)


def about(entry) -> str:
    """Returns two sentences about a method, and its source.

    Example:
      >>> from jaxanon.core import registry
      >>> "Source: McMahan et al." in about(registry.entry("fedavg"))
      True
    """
    text = textwrap.fill(" ".join(sentences(entry)[:2]), 88)
    source = references(entry) or (
        "none published; a baseline."
        if entry.kind == "learner"
        else f"see {entry.builder.__module__}."
    )
    return f"{text}\n\n" + textwrap.fill(f"Source: {source}", 88)


def sentences(entry) -> list[str]:
    """Returns the sentences that describe a method, without the call of its builder."""
    found = [_sentences(doc) for doc in _documents(entry)]
    text = max(found, key=len) if found else []
    return text or [f"{entry.name}, a registered {entry.kind}."]


def references(entry) -> str:
    """Returns the section ``References`` of a builder, in one line; "" without one."""
    for doc in _documents(entry):
        section = doc.partition("References:\n")[2].split("\n\n")[0]
        if section:
            return _plain(section)
    return ""


def _documents(entry):
    """Returns the docstring of a builder, and before it the one that it refers to."""
    own = inspect.getdoc(entry.builder) or ""
    link = _LINK.search(own)
    if link is None:
        return [own]
    module, _, name = f"jaxanon.{link[1]}".rpartition(".")
    linked = getattr(importlib.import_module(module), name, None)
    if inspect.ismodule(linked):  # It defines the function of its own or this name.
        linked = getattr(linked, name, getattr(linked, entry.name, linked))
    return [*filter(None, (inspect.getdoc(linked),)), own]


def _sentences(doc):
    parts = re.split(r"\n(?:Args|Returns|Raises|Example|References):\n", doc)
    paragraphs = [_plain(each) for each in parts[0].split("\n\n")]
    if len(paragraphs) > 1 and _BUILDS.match(paragraphs[0]):
        paragraphs = paragraphs[1:]
    text = [one for each in paragraphs for one in _SENTENCE_END.split(each) if one]
    text = [one for one in text if not re.match(r"(init|update)\(", one)]
    return [re.sub(r"^Builds (.)", lambda m: m[1].upper(), one) for one in text]


def _plain(text):
    return " ".join(text.replace("``", "").split())
