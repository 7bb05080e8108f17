"""Renders pages: one file each, no network, readable on a phone and in the dark."""

import base64
import json
from typing import Any

import jinja2

from jaxanon.report import text

_MOST = 10.0  # Times the mean; means near 0 change by more, and that says nothing.


def change(scores: dict) -> str:
    """The change of a mean: in percent of it, or in its unit if that is too much."""
    relative = scores["relative_error"]
    if relative is None or abs(relative) > _MOST:
        return f"{scores['anonymized'] - scores['raw']:+.4g}"
    return f"{100 * relative:+.1f} %"


_PAGES: Any = jinja2.Environment(
    loader=jinja2.PackageLoader("jaxanon.report"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_PAGES.filters |= {
    "base64": lambda png: base64.b64encode(png).decode(),
    "change": change,
    "f": format,
    "json": lambda value: json.dumps(value, indent=1),
    "percent": text.percent,
    "settings": text.settings,
    "spread": text.spread,
    "suffix": "{}{}".format,
}
_PAGES.globals |= {"costs": text.costs, "attacks": text.ATTACKS}


def render(template: str, **values) -> str:
    """The page that a template makes of ``values``; all text in them is escaped."""
    return _PAGES.get_template(template).render(values)


def document(title: str, kicker: str, body: str) -> str:
    """A whole page of HTML; ``title`` and ``kicker`` are text, ``body`` is HTML."""
    return render("base.html", title=title, kicker=kicker, body=body)


def section(title: str, content: str) -> str:
    """A card with a heading; ``content`` is HTML."""
    return str(_parts().section(title, content))


def figure(name: str, picture) -> str:
    """A ``figures.Picture`` inside the page, with its caption."""
    return str(_parts().figure(name, picture))


def table(head, rows) -> str:
    """A table as HTML, without a head if that is empty.

    A cell is text, or ``(text, class name)``. A second column with words is aligned
    left, one with numbers right.
    """
    rows = [[(c, "") if isinstance(c, str) else c for c in row] for row in rows]
    words = [row[1][0] for row in rows if len(row) > 1]
    worded = any(word[:1].isalpha() and word != "none" for word in words)
    return str(_parts().table(head, worded, caller=lambda: _parts().rows(rows)))


def _parts():
    return _PAGES.get_template("parts.html").module
