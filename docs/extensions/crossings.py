"""Makes a link of every name in double backticks that the reference documents."""

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

SHORT = {"ja": "jaxanon", "fed": "jaxanon.federated"}  # As examples import them.


def setup(app):
    """Adds the transforms."""
    app.add_transform(Bars)
    app.add_post_transform(Crossings)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class Bars(SphinxTransform):
    """Takes what stands between bars for an absolute value: nothing else is meant."""

    default_priority = 215  # Before docutils looks for something to put there.

    def apply(self, **kwargs):
        """Gives the bars of one document back."""
        for node in list(self.document.findall(nodes.substitution_reference)):
            node.replace_self(nodes.Text(f"|{node.astext()}|"))


class Crossings(SphinxPostTransform):
    """Looks names up as a reader does: near where they stand first."""

    default_priority = 5  # Before references are resolved.

    def run(self, **kwargs):
        """Replaces the literals of one document."""
        objects = self.env.domains.python_domain.objects
        for literal in list(self.document.findall(nodes.literal)):
            here = _around(literal)
            if here is None:
                continue
            name = found(literal.astext(), here, objects)
            if name is None:
                continue
            entry = objects[name]
            place = self.env.docname
            link = make_refnode(
                self.app.builder, place, entry.docname, entry.node_id, [], name
            )
            literal.replace_self(link)
            link += literal


def found(text: str, here: tuple[str, set[str]], objects) -> str | None:
    """The full name of the object that ``text`` names where it stands, or None.

    Args:
      text: as in the docstring, without a call's arguments.
      here: full name of what the docstring is of, "" in prose; names that mean
        something else there, such as arguments.
      objects: of the Python domain, by full name.
    """
    scope, taken = here
    first, dot, rest = text.partition(".")
    if not all(part.isidentifier() for part in text.split(".")) or first in taken:
        return None
    if first in SHORT and dot:
        text = f"{SHORT[first]}.{rest}"
    scopes = []
    parts = scope.split(".") if scope else ["jaxanon"]
    for end in range(len(parts), 0, -1):
        scopes.append(".".join(parts[:end]))
    if not scope and not dot:
        if "_" not in text:
            return None  # In prose a word alone may mean anything.
        scopes = ["jaxanon.kernels", "jaxanon.methods"]
    for name in (*(f"{each}.{text}" for each in scopes), text):
        if name not in objects or name == scope:
            continue
        if dot or objects[name].objtype != "module":
            return name
    if text.islower() or "." in text:
        return None
    known = [name for name in objects if name.endswith(f".{text}") and name != scope]
    shown = [name for name in known if not objects[name].aliased]
    return shown[0] if len(shown) == 1 else None  # A class's name, that one alone has.


def _around(literal):
    """What a literal's docstring is of, and its arguments; None for no link at all.

    Titles and signatures stay as they are, and what is a link already.
    """
    taken, scope = set(), ""
    node = literal.parent
    while node is not None:
        if isinstance(node, nodes.title | nodes.reference | addnodes.desc_signature):
            return None
        if isinstance(node, addnodes.pending_xref):
            return None
        if isinstance(node, addnodes.desc) and node.get("domain") == "py":
            signature = node[0]
            if not scope and signature.get("fullname"):
                scope = f"{signature['module']}.{signature['fullname']}"
            for parameter in signature.findall(addnodes.desc_parameter):
                taken.add(parameter.astext().lstrip("*").split(":")[0].split("=")[0])
        node = node.parent
    return scope, taken
