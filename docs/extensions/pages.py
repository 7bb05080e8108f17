"""Plans the pages of the reference: which public names stand on which of them."""

import ast
import importlib
import inspect
import pkgutil
from typing import NamedTuple

import mentions

import jaxanon

# What is neither a part of the library's surface nor data: verbs have their own pages.
LEFT_OUT = {"jaxanon.cli"}
# Packages whose modules are imported by their own names, beside what ``__all__`` has.
WHOLE = (
    "jaxanon.flower",
    "jaxanon.learners",
    "jaxanon.models",
    "jaxanon.recordings",
)
# Single modules that are imported by their own names; the others serve these.
BESIDE = (
    "jaxanon.attacks.auditing",
    "jaxanon.core.method",
    "jaxanon.core.programs",
    "jaxanon.core.registry",
    "jaxanon.core.release",
    "jaxanon.core.run",
    "jaxanon.energy.method",
    "jaxanon.evaluation.energy",
    "jaxanon.evaluation.federated",
    "jaxanon.evaluation.newcomers",
    "jaxanon.evaluation.summary",
    "jaxanon.kernels.portable",
    "jaxanon.methods.deeprotect.inferences",
    "jaxanon.methods.dysan.online_selection",
    "jaxanon.privacy.ledger",
    "jaxanon.privacy.poisson_sampling",
    "jaxanon.sweeps.homes",
    "jaxanon.sweeps.online_selection",
    "jaxanon.sweeps.summary",
    "jaxanon.training.processes",
    "jaxanon.training.profiling",
)
KINDS = ("function", "class", "exception", "data")  # In the order of a page.


class Member(NamedTuple):
    """A public name, and how autodoc is to take it."""

    name: str  # by which it is to be imported, dotted
    kind: str  # one of KINDS
    home: str  # module that defines it


class Page(NamedTuple):
    """A page on a module, or on a folder of them."""

    name: str  # of what it is about, dotted, and of its file
    members: tuple[Member, ...]


class Room(NamedTuple):
    """A package: what stands on its own page, and the pages below."""

    name: str
    members: tuple[Member, ...]  # that its ``__init__`` defines itself
    pages: tuple[Page, ...]
    elsewhere: tuple[str, ...]  # its names for what has its place in another room


def plan() -> list[Room]:
    """Every room with its pages, in the order in which they are to be read."""
    claimed: dict[int, str] = {}  # id of what has its place -> its name there
    found = [_top(claimed), *(_room(name, claimed) for name in rooms())]
    while named := _named(found, claimed):
        found = [_with(room, named, claimed) for room in found]
    return found


def _named(found, claimed):
    """Our classes that have no place, though signatures and docstrings name them."""
    members = [
        member
        for room in found
        for page in (room, *room.pages)
        for member in page.members
    ]
    named = {}
    for member in members:
        for each in mentions.of(resolve(member.name)):
            if id(each) not in claimed and not each.__qualname__.startswith("_"):
                named[f"{each.__module__}.{each.__qualname__}"] = each
    return named


def _with(room, named, claimed):
    """The room with pages for those of the named classes that are of it."""
    pages = {page.name: page for page in room.pages}
    inner = () if room.name != "jaxanon" else rooms()
    for each in (named[name] for name in sorted(named)):
        home = each.__module__
        if not home.startswith(f"{room.name}.") or home.startswith(tuple(inner)):
            continue
        member = _claim(home, each.__qualname__, claimed)
        place = _page_of(room.name, home, each)
        old = pages.get(place, Page(place, ()))
        pages[place] = Page(place, (*old.members, member))
    return room._replace(pages=tuple(pages[name] for name in sorted(pages)))


def rooms() -> list[str]:
    """Dotted names of the packages that have a page, data sets' own left out."""
    inside = pkgutil.iter_modules(jaxanon.__path__)
    found = {f"jaxanon.{info.name}" for info in inside if info.ispkg}
    # Of a checkout installed in place, these lie beside the package's folder.
    found |= {f"jaxanon.{name}" for name in jaxanon.__all__ if _is_package(name)}
    return sorted(found - LEFT_OUT)


def _is_package(name):
    thing = getattr(jaxanon, name)
    return inspect.ismodule(thing) and hasattr(thing, "__path__")


def _top(claimed):
    functions = [n for n in jaxanon.__all__ if inspect.isfunction(getattr(jaxanon, n))]
    members = tuple(_claim("jaxanon", name, claimed) for name in functions)
    return Room("jaxanon", members, (), ())


def _room(name, claimed):
    room = importlib.import_module(name)
    own, elsewhere, pages = [], [], {}
    for public in getattr(room, "__all__", ()):
        thing = getattr(room, public)
        home = _home(room, public)
        if id(thing) in claimed or not f"{home}.".startswith(f"{name}."):
            elsewhere.append(claimed.get(id(thing), f"{home}.{public}"))
            continue
        member = _claim(name, public, claimed, home)
        if home == name:
            own.append(member)
        else:
            pages.setdefault(_page_of(name, home, thing), []).append(member)
    for found in (own, *pages.values()):
        found.sort(key=lambda member: KINDS.index(member.kind))
    beside = [each for each in BESIDE if each.startswith(f"{name}.")]
    for module in sorted(_modules(room)) if name in WHOLE else beside:
        page = _page(module, claimed)
        pages.setdefault(module, []).extend(page.members)
    made = (Page(page, tuple(found)) for page, found in sorted(pages.items()) if found)
    return Room(name, tuple(own), tuple(made), tuple(elsewhere))


def _page_of(room, home, thing):
    """The page for ``thing``: kernels stand by folder, a config with its method."""
    if room == "jaxanon.kernels":
        return ".".join(home.split(".")[:3])
    if room == "jaxanon.methods":
        methods = importlib.import_module(room)
        for name in methods.NAMES:
            if methods.config_class(name) is thing:
                return getattr(methods, name).__module__
    return home


def _page(module_name, claimed):
    """The page of a module with all its public classes and functions."""
    module = importlib.import_module(module_name)
    names = [name for name in _defined(module) if not name.startswith("_")]
    shown = getattr(module, "__all__", names)
    members = (
        _claim(module_name, name, claimed)
        for name in names
        if name in shown and id(getattr(module, name)) not in claimed
    )
    return Page(module_name, tuple(members))


def _claim(package, name, claimed, home=None):
    thing = getattr(importlib.import_module(package), name)
    full = f"{package}.{name}"
    kind = kind_of(thing)
    if kind != "data":  # Equal numbers may be one object.
        claimed[id(thing)] = full
    return Member(full, kind, home or getattr(thing, "__module__", package))


def resolve(name: str):
    """What has that dotted name."""
    package, _, last = name.rpartition(".")
    return getattr(importlib.import_module(package), last)


def kind_of(thing) -> str:
    """How autodoc takes it, one of ``KINDS``."""
    if inspect.isclass(thing):
        return "exception" if issubclass(thing, BaseException) else "class"
    return "function" if callable(thing) else "data"


def _home(room, public):
    """Dotted name of the module that defines a public name of ``room``."""
    thing = getattr(room, public)
    if kind_of(thing) != "data":
        return thing.__module__
    inside = pkgutil.walk_packages(room.__path__, f"{room.__name__}.")
    names = sorted(each.name for each in inside if not each.name.endswith("__main__"))
    for module in (room.__name__, *names):
        if public in _assigned(importlib.import_module(module)):
            return module
    raise LookupError(f"no module of {room.__name__} assigns {public}.")


def _modules(room):
    """Dotted names of a package's modules, those of its own packages left out."""
    for info in pkgutil.iter_modules(room.__path__):
        if not info.ispkg and not info.name.startswith("_"):
            yield f"{room.__name__}.{info.name}"


def _defined(module):
    """Names of the classes and functions of a module, in its own order."""
    return [
        node.name
        for node in ast.parse(inspect.getsource(module)).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
    ]


def _assigned(module):
    """Names that a module assigns at its top level."""
    targets = []
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.Assign):
            targets += node.targets
        elif isinstance(node, ast.AnnAssign):
            targets.append(node.target)
    flat = [
        each
        for target in targets
        for each in (target.elts if isinstance(target, ast.Tuple) else [target])
    ]
    return {each.id for each in flat if isinstance(each, ast.Name)}
