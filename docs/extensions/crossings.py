"""Links names in backticks to the API reference."""

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

SHORT = {"ja": "jaxanon", "fed": "jaxanon.federated"}  # Abbreviations in examples.


def setup(app):
    """Adds the transforms."""
    app.add_transform(Bars)
    app.add_post_transform(Crossings)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class Bars(SphinxTransform):
    """Reads ``|x|`` as an absolute value: no page uses substitutions."""

    default_priority = 215  # Before docutils looks for substitutions.

    def apply(self, **kwargs):
        """Restores the bars of one document."""
        for node in list(self.document.findall(nodes.substitution_reference)):
            node.replace_self(nodes.Text(f"|{node.astext()}|"))


class Crossings(SphinxPostTransform):
    """Replaces literals that name a documented object by links."""

    default_priority = 5  # Before references are resolved.

    def run(self, **kwargs):
        """Replaces the literals of one document."""
        objects = self.env.domains.python_domain.objects
        for literal in list(self.document.findall(nodes.literal)):
            context = _context(literal)
            name = None if context is None else find(literal.astext(), context, objects)
            if name is not None:
                entry = objects[name]
                here = (self.app.builder, self.env.docname)
                link = make_refnode(*here, entry.docname, entry.node_id, [], name)
                literal.replace_self(link)
                link += literal


def find(text: str, context: tuple[str, set[str]], objects) -> str | None:
    """Returns the full name of the object that ``text`` names, or None.

    Args:
      text: content of the literal, without the arguments of a call.
      context: full name of the object whose docstring holds the literal ("" in prose)
        and the names of its arguments.
      objects: objects of the Python domain by full name.
    """
    scope, arguments = context
    first, dot, rest = text.partition(".")
    if first in arguments or not all(part.isidentifier() for part in text.split(".")):
        return None
    if first in SHORT and dot:
        text = f"{SHORT[first]}.{rest}"
    parts = scope.split(".") if scope else ["jaxanon"]
    scopes = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
    if not scope and not dot:
        if "_" not in text:
            return None  # A single word in prose is ambiguous.
        scopes = ["jaxanon.kernels", "jaxanon.methods"]
    for name in (*(f"{each}.{text}" for each in scopes), text):
        if name in objects and name != scope:
            if dot or objects[name].objtype != "module":
                return name
    if text.islower() or "." in text:
        return None
    known = [name for name in objects if name.endswith(f".{text}") and name != scope]
    shown = [name for name in known if not objects[name].aliased]
    return shown[0] if len(shown) == 1 else None  # An unambiguous class name.


def _context(literal):
    """Returns the context that ``find`` takes; None inside titles and links."""
    arguments, scope = set(), ""
    closed = nodes.title | nodes.reference | addnodes.desc_signature
    node = literal.parent
    while node is not None:
        if isinstance(node, closed | addnodes.pending_xref):
            return None
        if isinstance(node, addnodes.desc) and node.get("domain") == "py":
            signature = node[0]
            if not scope and signature.get("fullname"):
                scope = f"{signature['module']}.{signature['fullname']}"
            for parameter in signature.findall(addnodes.desc_parameter):
                name = parameter.astext().lstrip("*")
                arguments.add(name.split(":")[0].split("=")[0])
        node = node.parent
    return scope, arguments
