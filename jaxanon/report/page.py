"""``report.html``: one file, no network, readable on a phone and in the dark."""

import base64
import json
from html import escape

from jaxanon.report import words
from jaxanon.report.more_tables import attack_tables, distortion_table
from jaxanon.report.style import STYLE
from jaxanon.report.tables import class_tables, key_table

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
<header><p class="kicker">{kicker}</p><h1>{title}</h1></header>
{body}
</main>
</body>
</html>
"""
_HEADINGS = {
    "plane": "Utility against privacy",
    "windows": "Raw and anonymized windows",
    "training": "Training",
}


def render(report: dict, pictures: dict) -> str:
    """The whole page; ``pictures`` are those of ``figures.draw``."""
    data, method = report["dataset"], report["method"]
    name = method["name"] if method else "anonymizer"
    hidden = ", ".join(data["private"])
    title = f"{name} on {data['name']}: keep {data['public']}, hide {hidden}"
    first, *rest = report["headline"]
    sentences = [f"<strong>{escape(first)}</strong>", *map(escape, rest)]
    lines = "".join(f"<p>{sentence}</p>" for sentence in sentences)
    parts = [
        f'<section class="headline">{lines}</section>',
        section("At a glance", key_table(report)),
    ]
    confusion = {k: v for k, v in pictures.items() if k.startswith("confusion_")}
    for key in ("plane", "windows", "training"):
        if key in pictures:
            parts.append(section(_HEADINGS[key], figure(key, pictures[key])))
    shown = "".join(figure(key, picture) for key, picture in confusion.items())
    parts.append(section("Who is taken for whom", shown + class_tables(report)))
    if report["attacks"]:
        parts.append(section("Further attacks", attack_tables(report)))
    parts.append(section("Distortion", distortion_table(report)))
    terms = "".join(
        f"<dt>{escape(term)}</dt><dd>{escape(text)}</dd>"
        for term, text in report["protocol"].items()
    )
    parts += costs(report.get("costs"))
    parts.append(section("How each number was obtained", f"<dl>{terms}</dl>"))
    parts.append(section("Configuration", _configuration(report)))
    kicker = (
        f"jaxanon evaluation · {data['test_windows']:,} test windows of "
        f"{data['test_subjects']} subjects · seed {report['seed']}"
    )
    return document(title, kicker, "\n".join(parts))


def document(title: str, kicker: str, body: str) -> str:
    """A whole page of HTML; ``title`` and ``kicker`` are text, ``body`` is HTML."""
    return _PAGE.format(
        title=escape(title), style=STYLE, kicker=escape(kicker), body=body
    )


def costs(told: dict | None) -> list[str]:
    """A section of what training cost, where ``costs.json`` tells; else none."""
    if told is None:
        return []
    lines = "".join(f"<p>{escape(line)}</p>" for line in words.costs(told))
    return [section("What training cost", lines)]


def section(title: str, content: str) -> str:
    """A card with a heading; ``content`` is HTML."""
    return f"<section><h2>{escape(title)}</h2>{content}</section>"


def figure(name: str, picture) -> str:
    """A ``figures.Picture`` inside the page, with its caption."""
    source = base64.b64encode(picture.png).decode()
    caption = escape(picture.caption)
    return (
        f'<figure id="{escape(name)}"><div class="scroll"><img alt="{caption}" '
        f'src="data:image/png;base64,{source}"></div>'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def _configuration(report):
    data = {k: v for k, v in report["dataset"].items() if k not in ("mean", "std")}
    chosen = {
        "method": report["method"],
        "dataset": data,
        "attackers": report["attackers"],
        "attacks": list(report["attacks"]),
        "share": report["share"],
        "seed": report["seed"],
    }
    text = escape(json.dumps(chosen, indent=1))
    return f"<details><summary>as JSON</summary><pre>{text}</pre></details>"
