"""``jaxanon inferences``: what sensors are known to tell."""

from jaxanon.commands import show


def inferences() -> None:
    """Lists what sensors are known to tell, and which data sets here label it.

    Each name can be given wherever an attribute can: `--public`, `--private`.
    """
    from rich.table import Table

    from jaxanon import datasets
    from jaxanon.inferences import REPOSITORY

    known = {row["name"]: row["attributes"] for row in datasets.describe()}
    table = Table(title="Inferences, of DEEProtect's Table I", title_justify="left")
    for column in ("inference", "tells", "sensors", "labelled here as"):
        table.add_column(column)
    for each in REPOSITORY:
        labelled = [
            f"{attribute}: {', '.join(names)}"
            for attribute in each.attributes
            if (names := [name for name in known if attribute in known[name]])
        ]
        sensors = ", ".join(each.sensors)
        table.add_row(each.name, each.tells, sensors, "; ".join(labelled))
    show.table(table)
