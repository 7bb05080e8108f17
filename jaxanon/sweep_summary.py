"""What a sweep found, by setting: mean and deviation over seeds."""

from rich.table import Table

from jaxanon.summary import aggregate


def summarise(members, reports) -> list[dict]:
    """One row per setting of the grid, in order.

    Args:
      members: with ``settings`` and ``losses``.
      reports: of ``evaluate``, one per member, or none at all.

    Returns:
      Dicts of ``settings``, ``seeds`` (how many), ``losses`` and ``scores``, the last
      two with ``{"mean", "std"}`` under each name; ``scores`` is empty without reports.
    """
    cells: list[tuple[dict, list[int]]] = []
    for index, member in enumerate(members):
        if not cells or cells[-1][0] != member.settings:
            cells.append((member.settings, []))
        cells[-1][1].append(index)
    return [
        {
            "settings": settings,
            "seeds": len(indices),
            "losses": aggregate([members[i].losses for i in indices]),
            "scores": aggregate([scores(reports[i]) for i in indices])
            if reports
            else {},
        }
        for settings, indices in cells
    ]


def scores(report: dict) -> dict[str, float]:
    """The figures of a report that settings are chosen by, each in [0, 1].

    Returns:
      ``"<public> accuracy"``; for each private attribute ``"<name> intrusive"`` and
      ``"<name> re-identified"``, balanced accuracies of classifiers of raw windows and
      of the worst adversary retrained on anonymized ones, where there are such.
    """
    kept = report["utility"]
    found = {f"{kept['attribute']} accuracy": kept["anonymized"]["accuracy"]}
    for name, of_raw in report["intrusive"].items():
        if of_raw:
            balanced = of_raw["anonymized"]["balanced_accuracy"]
            found[f"{name} intrusive"] = balanced
        attacked = report["reidentification"].get(name)
        if attacked:
            worst = attacked["attackers"][attacked["worst"]]
            found[f"{name} re-identified"] = worst["balanced_accuracy"]
    return found


def table(summary: list[dict]) -> Table:
    """The summary as a ``rich`` table: scores in % where there are any, else losses."""
    shown = "scores" if summary[0]["scores"] else "losses"
    scale, digits = (100.0, 1) if shown == "scores" else (1.0, 4)
    seeds = summary[0]["seeds"]
    table = Table(title=f"{shown}, mean ± standard deviation over {seeds} seeds")
    for name in summary[0]["settings"]:
        table.add_column(name)
    for name in summary[0][shown]:
        table.add_column(name + (" %" if shown == "scores" else ""), justify="right")
    for row in summary:
        settings = [str(value) for value in row["settings"].values()]
        figures = [_spread(each, scale, digits) for each in row[shown].values()]
        table.add_row(*settings, *figures)
    return table


def _spread(found, scale, digits):
    mean = f"{scale * found['mean']:.{digits}f}"
    if found["std"] is None:  # One seed.
        return mean
    return f"{mean} ± {scale * found['std']:.{digits}f}"
