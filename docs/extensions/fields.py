"""Tells autodoc what a class says of its fields: beside, below or above each."""

import ast
import functools
import importlib
import inspect
import io
import re
import textwrap
import tokenize

COLON = "\ue000"  # Stands for a colon that napoleon shall not take for its own.
SECTION = re.compile(r"^(\s*)(\w+):\s*$")
SHOWN = (bool, int, float, str, tuple, type(None))  # Defaults that read well.


def setup(app):
    """Works on docstrings before napoleon does (500), and after it."""
    app.connect("autodoc-process-docstring", before_napoleon, priority=400)
    app.connect("autodoc-process-docstring", after_napoleon, priority=600)
    app.connect("autodoc-process-signature", signature)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def before_napoleon(app, what, name, obj, options, lines):
    """Takes a class's ``Attributes:`` away, which its fields have, and guards colons.

    In ``Returns:`` and of a property the words before one are a sentence's, no type.
    """
    if what in ("class", "exception"):
        lines[:] = _without(lines, "Attributes")
    if what == "property":
        lines[:1] = [line.replace(":", COLON) for line in lines[:1]]
    for number, line in enumerate(lines[:-1]):
        header = SECTION.match(line)
        if header and header[2] in ("Returns", "Yields"):
            lines[number + 1] = lines[number + 1].replace(":", COLON)


def after_napoleon(app, what, name, obj, options, lines):
    """Gives back the colons, and to a field what its class says of it."""
    lines[:] = [line.replace(COLON, ":") for line in lines]
    if what == "attribute":
        owner = _owner(name)
        if owner is not None:
            field = name.rpartition(".")[2]
            lines[:] = [f"{said_of(owner).get(field, '')}{_default(owner, field)}"]


def signature(app, what, name, obj, options, shown, returned):
    """Leaves out the arguments of a class that are its fields, shown below it."""
    if what == "class" and _has_fields(obj):
        return "", None
    return None


def skip(app, what, name, obj, skipped, options):
    """Leaves out methods that say nothing."""
    return True if inspect.isroutine(obj) and not obj.__doc__ else None


def _has_fields(thing):
    return hasattr(thing, "_fields") or hasattr(thing, "__dataclass_fields__")


def _owner(name):
    """The class of whose fields ``name`` is one; None if it is no such class's."""
    path, _, _ = name.rpartition(".")
    package, _, last = path.rpartition(".")
    try:
        thing = getattr(importlib.import_module(package), last, None)
    except ImportError:
        return None
    return thing if inspect.isclass(thing) and _has_fields(thing) else None


@functools.cache
def said_of(owner: type) -> dict[str, str]:
    """Field -> what is said of it: in the class's docstring, its help, below or beside.

    A comment above a field is the field's, unless it goes on from the field before:
    then the field has words of its own.
    """
    source = textwrap.dedent(inspect.getsource(owner))
    body = ast.parse(source).body[0].body
    comments, alone = _comments(source)
    found, last = {}, None
    for node, after in zip(body, [*body[1:], None], strict=True):
        if not isinstance(node, ast.AnnAssign):
            continue
        beside = comments.get(node.end_lineno)
        below = _text(after)
        above = _above(alone, node.lineno)
        if beside is None and below is None:
            found[node.target.id] = " ".join(above)
        else:
            if above and last is not None:
                found[last] = " ".join(filter(None, (found[last], *above)))
            found[node.target.id] = below or beside
        last = node.target.id
    for name, field in getattr(owner, "__dataclass_fields__", {}).items():
        if "help" in field.metadata:  # Of ``jaxanon.kernels.bounds.setting``.
            found[name] = field.metadata["help"]
    told = {name: _escaped(text) for name, text in found.items()}
    return told | _attributes(inspect.getdoc(owner) or "")


def _default(owner, field):
    """What autodoc shows of a dataclass, and of a NamedTuple does not."""
    defaults = getattr(owner, "_field_defaults", {})
    if field not in defaults or not isinstance(defaults[field], SHOWN):
        return ""
    return f" (default: ``{defaults[field]!r}``)"


def beside(member) -> str:
    """What a comment behind a constant's assignment says of it."""
    source = inspect.getsource(importlib.import_module(member.home))
    behind, _ = _comments(source)
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign):
            names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
            if member.name.rpartition(".")[2] in names:
                return _escaped(behind.get(node.end_lineno, ""))
    return ""


def _text(node):
    """The docstring that ``node`` is, in one line; None if it is something else."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return " ".join(str(node.value.value).split())
    return None


def _comments(source):
    """Comments by line: those behind code, and those that stand alone."""
    behind, alone = {}, {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            first = not token.line[: token.start[1]].strip()
            text = token.string.lstrip("#").strip()
            (alone if first else behind)[token.start[0]] = text
    return behind, alone


def _above(alone, line):
    """The comments that stand together and end above ``line``, in reading order."""
    found = []
    while (line := line - 1) in alone:
        found.append(alone[line])
    return found[::-1]


def _escaped(text):
    """Plain words as reStructuredText; what stands in double backticks stays."""
    parts = re.split(r"(``.+?``)", text)
    plain = [re.sub(r"([*|`\\]|_\b)", r"\\\1", part) for part in parts[::2]]
    parts[::2] = plain
    return "".join(parts)


def _attributes(doc):
    """Field -> its lines in a docstring's section ``Attributes:``."""
    lines = doc.splitlines()
    section = textwrap.dedent("\n".join(_section(lines, "Attributes")))
    found = re.split(r"^(\w+): ", section, flags=re.MULTILINE)
    texts = (" ".join(text.split()) for text in found[2::2])
    return dict(zip(found[1::2], texts, strict=True))


def _section(lines, title):
    """The lines below a heading that are deeper than it."""
    heads = [n for n, line in enumerate(lines) if line.strip() == f"{title}:"]
    if not heads:
        return []
    depth = len(lines[heads[0]]) - len(lines[heads[0]].lstrip())
    inside = []
    for line in lines[heads[0] + 1 :]:
        if line.strip() and len(line) - len(line.lstrip()) <= depth:
            break
        inside.append(line)
    return inside


def _without(lines, title):
    """The lines without a section and its heading."""
    inside = _section(lines, title)
    if not inside:
        return lines
    start = [line.strip() for line in lines].index(f"{title}:")
    return [*lines[:start], *lines[start + 1 + len(inside) :]]
