"""Pages of the API reference: one for each package and each public module."""

import ast
import importlib
import inspect
import pkgutil
import re
import sys
import typing

import fields

import jaxanon
from jaxanon.core import registry

LEFT_OUT = {"jaxanon.cli"}  # The command line has pages of its own.
# Packages and modules that users import by name, besides the names in ``__all__``.
WHOLE = ("flower", "learners", "models", "recordings")
MODULES = (
    "jaxanon.attacks.auditing",
    "jaxanon.core.method",
    "jaxanon.core.programs",
    "jaxanon.core.registry",
    "jaxanon.core.release",
    "jaxanon.core.run",
    "jaxanon.datasets.builder",
    "jaxanon.datasets.description",
    "jaxanon.datasets.sources",
    "jaxanon.edge.forest",
    "jaxanon.energy.method",
    "jaxanon.evaluation.energy",
    "jaxanon.evaluation.federated",
    "jaxanon.evaluation.newcomers",
    "jaxanon.evaluation.summary",
    "jaxanon.kernels.bounds",
    "jaxanon.kernels.portable",
    "jaxanon.methods.common.alternating",
    "jaxanon.methods.common.pool",
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
KINDS = ("function", "class", "exception", "data")  # In this order on a page.
LONGEST = 400  # Characters of a constant's value.
OPTIONS = {
    "class": ("members:", "undoc-members:", "special-members: __call__"),
    "exception": ("members:",),
}


def plan() -> dict[str, list[str]]:
    """Returns the dotted public names by page; a page is a module or a package."""
    found, placed = {"jaxanon": []}, set()

    def place(name, page):
        thing = resolve(name)
        if id(thing) not in placed or kind_of(thing) == "data":
            placed.add(id(thing))
            found.setdefault(page, []).append(name)

    for name in jaxanon.__all__:
        if inspect.isfunction(getattr(jaxanon, name)):
            place(f"jaxanon.{name}", "jaxanon")
    for package in packages():
        found.setdefault(package, [])
        for public in getattr(importlib.import_module(package), "__all__", ()):
            thing = getattr(importlib.import_module(package), public)
            home = getattr(thing, "__module__", package)
            if kind_of(thing) == "data":
                place(f"{package}.{public}", package)
            elif f"{home}.".startswith(f"{package}."):
                place(f"{package}.{public}", page_of(thing, package))
        for module in modules(package):
            for public in _defined(importlib.import_module(module)):
                place(f"{module}.{public}", module)
    while missing := _mentioned(found, placed):
        for thing in missing:
            place(f"{thing.__module__}.{thing.__qualname__}", page_of(thing))
    for names in found.values():
        names.sort(key=lambda name: KINDS.index(kind_of(resolve(name))))
    return found


def packages() -> list[str]:
    """Returns the packages with a page; ``jaxanon`` itself is not in the list."""
    names = {i.name for i in pkgutil.iter_modules(jaxanon.__path__) if i.ispkg}
    # In an editable install, some folders are outside the package's own.
    names |= {n for n in jaxanon.__all__ if hasattr(getattr(jaxanon, n), "__path__")}
    return sorted({f"jaxanon.{name}" for name in names} - LEFT_OUT)


def modules(package) -> list[str]:
    """Returns the modules of a package whose definitions are all public."""
    if package.rpartition(".")[2] not in WHOLE:
        return [name for name in MODULES if name.startswith(f"{package}.")]
    inside = pkgutil.iter_modules(importlib.import_module(package).__path__)
    names = (info.name for info in inside if not info.ispkg)
    return sorted(f"{package}.{name}" for name in names if name[0] != "_")


def page_of(thing, package="") -> str:
    """Returns the page of a class or function: its module, with two exceptions.

    A kernel is on the page of its folder, and a method's config on the method's page.
    """
    home = thing.__module__
    if home.startswith("jaxanon.kernels."):
        return ".".join(home.split(".")[:3])
    if package == "jaxanon.methods":
        for name in registry.names("anonymizer"):
            if registry.entry(name).config is thing:
                return registry.entry(name).builder.__module__
    return home


def pages() -> dict[str, str]:
    """Returns the pages by file name; kernels have cards instead."""
    found = plan()
    tops = ["jaxanon", *packages()]
    texts = {"index.rst": _index(tops)}
    for page, names in found.items():
        below = sorted(p for p in found if p.startswith(f"{page}.") and p not in tops)
        title = page if page in tops else page.rpartition(".")[2]
        text = [title, "=" * len(title), "", f".. automodule:: {page}"]
        text += ["   :no-members:", "" if page in tops else "   :no-index:\n"]
        if page in tops and page != "jaxanon":
            text += [line for each in below for line in _listed(each, found[each])]
            text += _toctree(_link(each) for each in below)
        text += [line for name in names for line in member(name)]
        if not page.startswith("jaxanon.kernels."):
            texts[f"{page}.rst"] = "\n".join(text) + "\n"
    return texts


def member(name) -> list[str]:
    """Returns the directive that documents one public name."""
    thing = resolve(name)
    kind = kind_of(thing)
    if kind == "data":
        return _constant(name, thing)
    lines = [f".. auto{kind}:: {name}", *(f"   :{o}" for o in OPTIONS.get(kind, ()))]
    if {"name", "parent"} <= getattr(thing, "__dataclass_fields__", {}).keys():
        lines += ["   :exclude-members: name, parent, scope"]  # Fields of Flax modules.
    return [*lines, ""]


def resolve(name: str):
    """Returns the object with a dotted name."""
    package, _, last = name.rpartition(".")
    return getattr(importlib.import_module(package), last)


def kind_of(thing) -> str:
    """Returns the kind of an object, one of ``KINDS``."""
    if inspect.isclass(thing):
        return "exception" if issubclass(thing, BaseException) else "class"
    return "function" if callable(thing) else "data"


def _constant(name, value):
    """Documents a constant by hand: autodoc prints a dict of functions in full."""
    own = type(value).__module__.startswith("jaxanon.")
    if isinstance(value, dict):
        shown, text = f"{{{', '.join(map(repr, value))}}}", "Keys of a dict."
    else:
        shown, text = repr(value), inspect.getdoc(value) if own else ""
    package, _, last = name.rpartition(".")
    if len(shown) > LONGEST:
        shown = f"{shown[:LONGEST].rpartition(',')[0]}, ..."
    head = [f".. py:data:: {last}", f"   :module: {package}", f"   :value: {shown}", ""]
    return [*head, f"   {text or fields.comment_of(package, last)}", ""]


def _index(tops):
    text = ["API", "===", "", "For JAX programmers; a page for each package.", ""]
    for name in tops:
        summary = inspect.getdoc(importlib.import_module(name)).partition("\n")[0]
        text += [f":doc:`{name}`", f"   {summary}", ""]
    return "\n".join([*text, *_toctree(tops)]) + "\n"


def _listed(page, names):
    """Lists the functions and classes of a page with their summaries."""
    yield from (f".. rubric:: :doc:`{page.rpartition('.')[2]} <{_link(page)}>`", "")
    for name in names:
        if kind_of(resolve(name)) != "data":
            summary = " ".join(
                inspect.getdoc(resolve(name)).partition("\n\n")[0].split()
            )
            yield f"* :py:obj:`{name.rpartition('.')[2]} <{name}>`: {summary}"
    yield ""


def _link(page):
    kernel = page.startswith("jaxanon.kernels.")
    return f"../kernels/{page.rpartition('.')[2]}" if kernel else page


def _toctree(names):
    return [".. toctree::", "   :hidden:", "", *(f"   {name}" for name in names), ""]


def _defined(module):
    """Returns the public classes and functions that a module defines."""
    kinds = ast.ClassDef | ast.FunctionDef
    body = ast.parse(inspect.getsource(module)).body
    names = [n.name for n in body if isinstance(n, kinds) and n.name[0] != "_"]
    return [name for name in names if name in getattr(module, "__all__", names)]


def _mentioned(found, placed):
    """Returns our classes in public signatures and docstrings that have no page."""
    things = [resolve(name) for names in found.values() for name in names]
    classes = {each for thing in things if callable(thing) for each in mentions(thing)}
    public = lambda each: (
        each.__module__.startswith("jaxanon.")
        and (id(each) not in placed and not each.__qualname__.startswith("_"))
    )
    return sorted(filter(public, classes), key=lambda each: each.__qualname__)


def mentions(thing) -> set[type]:
    """Returns the classes in the annotations and ``Raises:`` sections of ``thing``."""
    own = list(vars(thing).values()) if inspect.isclass(thing) else []
    own = [each.fget if isinstance(each, property) else each for each in own]
    found = set()
    for each in (thing, *filter(inspect.isfunction, own)):
        try:
            each = inspect.unwrap(each)
            values = inspect.get_annotations(each, eval_str=True).values()
        except (NameError, TypeError):  # Names that only type checkers import.
            values = ()
        for value in values:
            found |= _parts(value)
        raised = re.search(
            r"^Raises:\n((?:  .*\n?|\n)+)", inspect.getdoc(each) or "", re.MULTILINE
        )
        names = re.findall(r"^  (\w+):", raised[1], re.MULTILINE) if raised else ()
        home = vars(sys.modules[each.__module__])
        found |= {home[n] for n in names if inspect.isclass(home.get(n))}
    return found


def _parts(annotation):
    inside = typing.get_args(annotation)
    if not inside:
        return {annotation} if inspect.isclass(annotation) else set()
    return set().union(*map(_parts, inside))
