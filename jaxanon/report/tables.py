"""The tables of a report's page."""

from html import escape

from jaxanon.report.words import percent


def table(head, rows):
    """A table as HTML, without a head if that is empty.

    A cell is text, or ``(text, class name)``.
    """

    def cell(content):
        text, kind = content if isinstance(content, tuple) else (content, "")
        return f'<td class="{kind}">{escape(text)}</td>'

    words = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    top = f"<thead><tr>{words}</tr></thead>" if head else ""
    body = "".join(
        "<tr>" + "".join(cell(content) for content in row) + "</tr>" for row in rows
    )
    kind = ' class="worded"' if any(map(_worded, rows)) else ""
    return f'<div class="scroll"><table{kind}>{top}<tbody>{body}</tbody></table></div>'


def _worded(row):
    """Whether the second column of a row is no number, and stands on the left."""
    second = row[1] if len(row) > 1 else ""
    text = second[0] if isinstance(second, tuple) else second
    return text[:1].isalpha() and text != "none"


def _row(what, who, scores, raw, field, kind=""):
    before = percent(raw[field]) if raw else "none"
    return (
        what,
        who,
        (percent(scores[field]), f"key {kind}".strip()),
        before,
        percent(scores["chance"]),
        percent(scores["majority"]),
    )


def key_table(report):
    """Utility, every adversary, mutual information; the worst adversary in bold."""
    utility = report["utility"]
    public, judge = utility["attribute"], "judge, trained on raw"
    safe, raw = utility["anonymized"], utility["raw"]
    rows = [
        _row(f"utility: {public}, accuracy", judge, safe, raw, "accuracy"),
        # Chance and majority are accuracies, and no measure for an F1.
        (
            *_row(f"utility: {public}, macro F1", judge, safe, raw, "macro_f1")[:4],
            "",
            "",
        ),
    ]
    for attribute, found in report["intrusive"].items():
        what = f"intrusive inference: {attribute}"
        if found:
            safe, raw = found["anonymized"], found["raw"]
            rows.append(_row(what, judge, safe, raw, "balanced_accuracy"))
    for attribute, found in report["reidentification"].items():
        known = report["intrusive"][attribute]
        what = f"re-identification: {attribute}"
        rows += _attacks(what, found, known and known["raw"])
    if report["linkage"] and "subject" not in report["reidentification"]:
        rows += _attacks(
            "linkage: subject", report["linkage"], report["linkage"]["raw"]
        )
    for attribute, told in report["mutual_information"].items():
        nats = (f"{told['anonymized']:.4f} nat", "key")
        what = f"mutual information: {attribute}"
        rows.append(
            (what, "mean of components", nats, f"{told['raw']:.4f} nat", "0", "")
        )
    note = (
        "<p class='note'>Utility should stay near its raw value; what is read of other "
        "attributes should fall to chance. Mutual information is given for the public "
        "attribute too, where it may rise: what else was in the windows is gone. "
        "Adversaries are given by balanced accuracy.</p>"
    )
    head = ("what", "by whom", "anonymized", "raw", "chance", "majority")
    return table(head, rows) + note


def _attacks(what, found, raw):
    return [
        _row(
            what,
            f"{name}, retrained" + (" (worst)" if name == found["worst"] else ""),
            scores,
            raw,
            "balanced_accuracy",
            "worst" if name == found["worst"] else "",
        )
        for name, scores in found["attackers"].items()
    ]


def class_tables(report):
    """Folded tables of per-class figures of who read anonymized windows best."""
    utility = report["utility"]
    found = {f"{utility['attribute']}, judge": utility["anonymized"]}
    for attribute, scores in report["intrusive"].items():
        if scores:
            found[f"{attribute}, judge"] = scores["anonymized"]
    sections = dict(report["reidentification"])
    if report["linkage"]:
        sections["subject"] = report["linkage"]
    for attribute, section in sections.items():
        worst = section["worst"]
        found[f"{attribute}, {worst} retrained"] = section["attackers"][worst]
    head = ("class", "test windows", "recall", "precision", "F1", "AUC", "equal error")
    return "".join(
        f"<details><summary>{escape(title)}: per class</summary>"
        + table(head, [_class_row(row) for row in scores["per_class"]])
        + "</details>"
        for title, scores in found.items()
    )


def _class_row(row):
    fields = ("recall", "precision", "f1", "auc", "equal_error_rate")
    shares = (row[field] for field in fields)
    return (
        row["name"],
        f"{row['windows']:,}",
        *("none" if share is None else percent(share) for share in shares),
    )
