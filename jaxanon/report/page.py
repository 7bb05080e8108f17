"""HTML pages: one file each, without network access, in light and dark."""

import base64
import json
from typing import Any

import jinja2

from jaxanon.report import origin, text, verdicts

_MAX_RATIO = 10.0  # Larger ratios of means near 0 are uninformative.


def change(scores: dict) -> str:
    """Formats the change of a mean in percent, or in its unit if it is large."""
    relative = scores["relative_error"]
    if relative is None or abs(relative) > _MAX_RATIO:
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
    "base64": lambda content: base64.b64encode(content).decode(),
    "change": change,
    "duration": origin.duration,
    "f": format,
    "interval": text.interval,
    "json": lambda value: json.dumps(value, indent=1),
    "percent": text.percent,
    "settings": text.settings,
    "spread": text.spread,
    "suffix": "{}{}".format,
}
_PAGES.globals |= {
    **{"costs": text.costs, "attacks": text.ATTACKS, "strongest": verdicts.strongest},
    **{"grades": text.GRADES, "utility_grades": text.UTILITY, "footer": None},
}


def render(template: str, **values) -> str:
    """Renders a template; all text in ``values`` is escaped."""
    return _PAGES.get_template(template).render(values)


def document(title: str, kicker: str, body: str) -> str:
    """Renders a page; ``title`` and ``kicker`` are text, ``body`` is HTML."""
    return render("base.html", title=title, kicker=kicker, body=body)


def section(title: str, content: str) -> str:
    """Renders a card with a heading; ``content`` is HTML."""
    return str(_parts().section(title, content))


def figure(name: str, picture) -> str:
    """Renders a ``figures.Picture`` with its caption."""
    return str(_parts().figure(name, picture))


def table(head, rows) -> str:
    """Renders a table, without a header row if ``head`` is empty.

    A cell is text or ``(text, class name)``. The second column is left-aligned if it
    holds words.
    """
    rows = [[(c, "") if isinstance(c, str) else c for c in row] for row in rows]
    words = [row[1][0] for row in rows if len(row) > 1]
    worded = any(word[:1].isalpha() and word != "none" for word in words)
    return str(_parts().table(head, worded, caller=lambda: _parts().rows(rows)))


def _parts():
    return _PAGES.get_template("parts.html").module
