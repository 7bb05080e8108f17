"""Tables in Markdown, and such tables as HTML."""

from jaxanon.report.page import table as html_table


def table(head, lines) -> str:
    """A table in Markdown; nothing without lines.

    Example:
      >>> print(table(("name", "value"), [("a", 1)]))
      | name | value |
      | --- | --- |
      | a | 1 |
    """
    lines = list(lines)
    if not lines:
        return ""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)


def html(markdown) -> str:
    """What ``table`` made, as HTML."""
    head, _, *lines = (
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in markdown.splitlines()
    )
    return html_table(head, lines)
