"""Documents the fields of classes for autodoc, from the comments next to them."""

import ast
import functools
import importlib
import inspect
import io
import pkgutil
import re
import textwrap
import tokenize

COLON = "\ue000"  # Protects colons in sentences, which napoleon takes for types.
SECTION = re.compile(r"^(\s*)(\w+):\s*$")
SHOWN = (bool, int, float, str, tuple, type(None))  # Types of defaults to print.


def setup(app):
    """Processes docstrings before napoleon (priority 500) and after it."""
    app.connect("autodoc-process-docstring", before_napoleon, priority=400)
    app.connect("autodoc-process-docstring", after_napoleon, priority=600)
    app.connect("autodoc-process-signature", signature)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def before_napoleon(app, what, name, obj, options, lines):
    """Removes the section ``Attributes:`` of a class and protects colons."""
    if what in ("class", "exception"):
        inside = _section(lines, "Attributes")
        if inside:
            start = [line.strip() for line in lines].index("Attributes:")
            del lines[start : start + 1 + len(inside)]
    if what == "property":
        lines[:1] = [line.replace(":", COLON) for line in lines[:1]]
    for number, line in enumerate(lines[:-1]):
        header = SECTION.match(line)
        if header and header[2] in ("Returns", "Yields"):
            lines[number + 1] = lines[number + 1].replace(":", COLON)


def after_napoleon(app, what, name, obj, options, lines):
    """Restores the colons and inserts the documentation of a field."""
    lines[:] = [line.replace(COLON, ":") for line in lines]
    path, _, field = name.rpartition(".")
    package, _, last = path.rpartition(".")
    if what == "attribute" and package:
        try:
            owner = getattr(importlib.import_module(package), last, None)
        except ImportError:
            return
        if inspect.isclass(owner) and _has_fields(owner):
            lines[:] = [f"{documented(owner).get(field, '')}{_default(owner, field)}"]


def signature(app, what, name, obj, options, shown, returned):
    """Omits the signature of a class whose arguments are the fields listed below."""
    return ("", None) if what == "class" and _has_fields(obj) else None


def skip(app, what, name, obj, skipped, options):
    """Skips methods without a docstring."""
    return True if inspect.isroutine(obj) and not obj.__doc__ else None


def _has_fields(thing):
    return hasattr(thing, "_fields") or hasattr(thing, "__dataclass_fields__")


@functools.cache
def documented(owner: type) -> dict[str, str]:
    """Returns the text for each field: help, docstring section, or a comment near it.

    A comment above a field belongs to it, unless the field has a comment of its own:
    then the comment above continues that of the previous field.
    """
    source = textwrap.dedent(inspect.getsource(owner))
    body = ast.parse(source).body[0].body
    behind, alone = _comments(source)
    found, last = {}, None
    for node, after in zip(body, [*body[1:], None], strict=True):
        if not isinstance(node, ast.AnnAssign):
            continue
        own = _text(after) or behind.get(node.end_lineno)
        above = " ".join(_above(alone, node.lineno))
        if own is not None and above and last is not None:
            found[last] = " ".join(filter(None, (found[last], above)))
        found[node.target.id] = above if own is None else own
        last = node.target.id
    for name, field in getattr(owner, "__dataclass_fields__", {}).items():
        if "help" in field.metadata:  # Declared by ``jaxanon.kernels.bounds.setting``.
            found[name] = field.metadata["help"]
    escaped = {name: _escaped(text) for name, text in found.items()}
    return escaped | _attributes(inspect.getdoc(owner) or "")


def comment_of(package: str, name: str) -> str:
    """Returns the comment on the line of a package that assigns a constant."""
    path = getattr(importlib.import_module(package), "__path__", ())
    inside = sorted(i.name for i in pkgutil.walk_packages(path, f"{package}."))
    for module in (package, *(n for n in inside if not n.endswith("__main__"))):
        source = inspect.getsource(importlib.import_module(module))
        for node in ast.parse(source).body:
            targets = node.targets if isinstance(node, ast.Assign) else ()
            names = {getattr(n, "id", "") for t in targets for n in ast.walk(t)}
            if name in names:
                return _escaped(_comments(source)[0].get(node.end_lineno, ""))
    return ""


def _default(owner, field):
    """Returns the default of a field of a NamedTuple; autodoc prints the others."""
    default = getattr(owner, "_field_defaults", {}).get(field, ...)
    return f" (default: ``{default!r}``)" if isinstance(default, SHOWN) else ""


def _text(node):
    """Returns the docstring below a field in one line, or None."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return " ".join(str(node.value.value).split())
    return None


def _comments(source):
    """Returns comments by line: those behind code and those on lines of their own."""
    behind, alone = {}, {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            first = not token.line[: token.start[1]].strip()
            text = token.string.lstrip("#").strip()
            (alone if first else behind)[token.start[0]] = text
    return behind, alone


def _above(alone, line):
    """Returns the block of comment lines that ends above ``line``."""
    found = []
    while (line := line - 1) in alone:
        found.append(alone[line])
    return found[::-1]


def _escaped(text):
    """Returns text as reStructuredText; double backticks keep their meaning."""
    parts = re.split(r"(``.+?``)", text)
    parts[::2] = [re.sub(r"([*|`\\]|_\b)", r"\\\1", part) for part in parts[::2]]
    return "".join(parts)


def _attributes(doc):
    """Returns the fields in the section ``Attributes:`` of a docstring."""
    section = textwrap.dedent("\n".join(_section(doc.splitlines(), "Attributes")))
    found = re.split(r"^(\w+): ", section, flags=re.MULTILINE)
    texts = (" ".join(text.split()) for text in found[2::2])
    return dict(zip(found[1::2], texts, strict=True))


def _section(lines, title):
    """Returns the indented lines below a heading."""
    heads = [n for n, line in enumerate(lines) if line.strip() == f"{title}:"]
    if not heads:
        return []
    indent = lambda line: len(line) - len(line.lstrip())
    inside = []
    for line in lines[heads[0] + 1 :]:
        if line.strip() and indent(line) <= indent(lines[heads[0]]):
            break
        inside.append(line)
    return inside
