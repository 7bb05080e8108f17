"""Cards of methods and learners: description, settings, recipes, results and source."""

import dataclasses
import inspect
import json
import re

from recipe_cards import listed
from rows import RESULTS, bench, table

from jaxanon import federated
from jaxanon.core import registry

SECTION = re.compile(r"^(Args|Returns|Raises|Example|References):$", re.MULTILINE)


def pages(kind: str) -> dict[str, str]:
    """Returns a Markdown card for each registered method of a kind by file name."""
    return {f"{name}.md": card(name) for name in registry.names(kind)}


def card(name: str) -> str:
    """Returns the card of one method or learner."""
    entry = registry.entry(name)
    sections = _sections(entry.builder)
    if entry.kind == "learner" and hasattr(federated, name):
        sections = _sections(getattr(federated, name)) | {
            key: text for key, text in sections.items() if key != "" or "\n\n" in text
        }
    parts = [f"# {name}", _markdown(sections[""]), _usage(name, entry)]
    if "References" in sections:
        parts += ["**Source.** " + _markdown(sections["References"])]
    if recipes := getattr(entry, "recipes", None):
        head = ("recipe", "purpose", "epochs", "settings")
        parts += ["## Recipes", table(head, listed(recipes))]
    if entry.config is not None:
        parts += ["## Settings", settings(entry.config)]
    find = _learned if entry.kind == "learner" else _anonymized
    if rows := find(name):
        parts += ["## Results", rows]
    return "\n\n".join(parts) + "\n"


def settings(config) -> str:
    """Returns the table of a config's fields, from their declarations."""
    rows = []
    for field in dataclasses.fields(config):
        bounds = field.metadata.get("bounds")
        help, limits = field.metadata.get("help", ""), ""
        if bounds:
            parts = [each for each in (bounds.range.words, bounds.entries) if each]
            listed = f"one of {', '.join(map(str, bounds.choices))}"
            for each in (*parts[::-1], listed):  # ``setting`` appends them to the help.
                help = help.removesuffix(f"; {each}").removesuffix(each)
            choices = (f"`{each}`" for each in bounds.choices)
            limits = ", ".join([*choices] or parts)
        rows.append((f"`{field.name}`", f"`{_default(field)}`", limits, help))
    return table(("setting", "default", "bounds", "meaning"), rows)


def _default(field):
    if field.default_factory is not dataclasses.MISSING:
        return repr(field.default_factory())
    return "required" if field.default is dataclasses.MISSING else repr(field.default)


def _usage(name, entry):
    module = "learners" if entry.kind == "learner" else "methods"
    python = f"jaxanon.{module}.{name}(data.spec)"
    if entry.kind == "learner":
        python = f'jaxanon.learners.build("{name}", data.spec)'
    shell = f"jaxanon train {name} --help"
    return f"- Python: `{python}`\n- Shell: `{shell}`"


def _anonymized(name):
    """Returns the rows of the benchmark of anonymizers that trained a method."""
    pair = lambda value: f"{value[0]:.1f}" + (f" ± {value[1]:.1f}" if value[1] else "")
    rows = []
    for row in json.loads((RESULTS / "anonymizers.json").read_text()):
        if row["method"] == name and row.get("private_balanced_accuracy"):
            retrained = row["retrained_balanced"].get(row["worst"], [None])
            system = " ".join(filter(None, (row["system"], row["form"])))
            utility = f"{row['public']} {pair(row['public_accuracy'])}"
            raw = f"{row['private']} {pair(row['private_balanced_accuracy'])}"
            strongest = f"{pair(retrained)} ({row['worst']})" if retrained[0] else ""
            rows.append((row["case"], system, utility, raw, strongest))
    head = ("data", "variant", "utility", "raw-data classifier", "strongest attacker")
    text = (
        "Percent; utility is accuracy, the others balanced accuracy; one or two seeds"
    )
    link = "see {doc}`/results/anonymizers`."
    return f"{text}, {link}\n\n{_plain(table(head, rows))}" if rows else ""


def _learned(name):
    """Returns the rows of Atlas's benchmark that trained a learner."""
    plain = lambda text: re.sub(r"\W|_", "", text.partition(",")[0].lower())
    rows = []
    for row in json.loads((RESULTS / "atlas.json").read_text()):
        if row["question"] == "methods" and plain(row["name"]) == plain(name):
            percent = row["metric"] != "r2"
            scale, unit = (100, " %") if percent else (1, " R²")
            score = f"{scale * row['value']:.{1 if percent else 3}f}{unit}"
            epsilon = f"{row['epsilon']:g}" if row["epsilon"] else "no noise"
            rows.append((row["application"], row["name"], epsilon, score))
    text = "Mean over clients on their own test windows, see {doc}`/results/learners`."
    head = ("data", "variant", "ε", "score")
    return f"{text}\n\n{_plain(table(head, sorted(rows)))}" if rows else ""


def _plain(text):
    return bench("readme.stamp").plain(text)


def _sections(thing):
    """Returns the sections of a docstring by heading; the first one is ``""``."""
    parts = SECTION.split(inspect.getdoc(thing) or "")
    names = ["", *parts[1::2]]
    return dict(zip(names, (text.strip() for text in parts[::2]), strict=True))


def _markdown(text):
    """Returns docstring prose as Markdown: unindented, with single backticks."""
    lines = [line.strip() for line in text.splitlines()]
    text = "\n".join(lines).replace("``", "`")
    return re.sub(r"(?<![*`\w])\*(?=\w)", r"\\*", text)
