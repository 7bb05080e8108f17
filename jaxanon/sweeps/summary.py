"""Summary of a sweep: mean and standard deviation by setting."""

import copy
import math

from rich.table import Table

from jaxanon.evaluation.summary import aggregate
from jaxanon.report import verdicts


def summarize(members, reports) -> list[dict]:
    """Returns one row per setting of the grid, in order.

    Args:
      members: objects with ``settings``, ``seed``, ``split``, ``losses`` and
        ``stopped``.
      reports: one report per member, None for one that diverged or was stopped, empty
        for a lost one; or an empty sequence.

    Returns:
      List of dicts with these entries:

      - ``settings``;
      - ``seeds`` and ``splits``, their numbers;
      - ``diverged``, the number of diverged members among ``seeds * splits``;
      - ``lost``, the number of members that were not trained or not evaluated;
      - ``stopped``, the epoch at which the setting was stopped, or None;
      - ``losses`` and ``scores``, ``{"mean", "std"}`` by name. ``scores`` covers the
        members with a report and is empty without any.
    """
    diverged = [
        (report is None and member.stopped is None and bool(member.losses))
        or not all(map(math.isfinite, member.losses.values()))
        for member, report in zip(members, reports or [()] * len(members), strict=True)
    ]
    cells: list[tuple[dict, list[int]]] = []
    for index, member in enumerate(members):
        if not cells or cells[-1][0] != member.settings:
            cells.append((member.settings, []))
        cells[-1][1].append(index)
    return [
        {
            "settings": settings,
            "seeds": len({members[i].seed for i in indices}),
            "splits": len({members[i].split for i in indices}),
            "diverged": sum(diverged[i] for i in indices),
            "stopped": members[indices[0]].stopped,
            "lost": sum(
                not members[i].losses or (bool(reports) and reports[i] == {})
                for i in indices
            ),
            "losses": _mean_losses([members[i].losses for i in indices]),
            "scores": _mean_scores([reports[i] for i in indices if reports]),
        }
        for settings, indices in cells
    ]


def reference(members, reports) -> dict | None:
    """Returns a report whose results on raw windows are means over splits.

    Args:
      members: members, as for ``summarize``.
      reports: reports, as for ``summarize``.

    Returns:
      A report, or None without reports.
    """
    by_split = {m.split: r for m, r in zip(members, reports, strict=True) if r}
    if len(by_split) < 2 or "utility" not in next(iter(by_split.values())):
        return next(iter(by_split.values()), None)
    result = copy.deepcopy(next(iter(by_split.values())))

    def average(entry, name):
        values = [entry(report)[name] for report in by_split.values()]
        entry(result)[name] = math.fsum(values) / len(values)

    average(lambda report: report["utility"]["raw"], "accuracy")
    for attribute, measured in result["intrusive"].items():
        for measure in ("balanced_accuracy", "chance") if measured else ():
            average(lambda report, a=attribute: report["intrusive"][a]["raw"], measure)
    return result


def _mean_losses(losses):
    known = [each for each in losses if each]
    return aggregate(known) if known else {}


def _mean_scores(reports):
    known = [scores(report) for report in reports if report]
    return aggregate(known) if known else {}


def scores(report: dict) -> dict[str, float]:
    """Returns the scores of a report that compare settings, each at most 1.

    Returns:
      For a learner, all mean scores over clients, or R² of a target. For an anonymizer,
      ``"<public> accuracy"`` and, for each measured private attribute, ``"<name>
      intrusive"`` and ``"<name> re-identified"``. These are balanced accuracies of a
      raw-data classifier and of the strongest attacker retrained on anonymized windows.
    """
    if "utility" not in report:
        public = report["attribute"]
        if "unit" in report:  # Errors have the unit of the target; R² has none.
            return {f"{public} r2": report["mean"]["r2"]}
        return {f"{public} {name}": value for name, value in report["mean"].items()}
    utility = report["utility"]
    result = {f"{utility['attribute']} accuracy": utility["anonymized"]["accuracy"]}
    for name, measured in report["intrusive"].items():
        if measured:
            balanced = measured["anonymized"]["balanced_accuracy"]
            result[f"{name} intrusive"] = balanced
        attacked = report["reidentification"].get(name)
        if attacked:
            strongest = attacked["attackers"][verdicts.strongest(attacked)]
            result[f"{name} re-identified"] = strongest["balanced_accuracy"]
    return result


def table(summary: list[dict]) -> Table:
    """Returns the summary as a ``rich`` table of scores in %, or else of losses.

    Columns for diverged and lost members and for early stops appear if necessary.
    Scores are means over the members that have one.
    """
    shown = "scores" if any(row["scores"] for row in summary) else "losses"
    scale, digits = (100.0, 1) if shown == "scores" else (1.0, 4)
    seeds, splits = summary[0]["seeds"], summary[0]["splits"]
    over = "1 seed" if seeds == 1 else f"{seeds} seeds"
    over += f" x {splits} splits" if splits > 1 else ""
    table = Table(title=f"{shown}, mean ± standard deviation over {over}")
    for name in summary[0]["settings"]:
        table.add_column(name)
    names = next((row[shown] for row in summary if row[shown]), ())
    for name in names:
        table.add_column(name + (" %" if shown == "scores" else ""), justify="right")
    counts = [key for key in ("diverged", "lost") if any(row[key] for row in summary)]
    for key in counts:
        table.add_column(key, justify="right")
    halved = any(row["stopped"] for row in summary)
    if halved:
        table.add_column("stopped", justify="right")
    for row in summary:
        values = row[shown]
        cells = [str(value) for value in row["settings"].values()]
        cells += [
            _mean_and_std(values[name], scale, digits) if values else "-"
            for name in names
        ]
        total = row["seeds"] * row["splits"]
        cells += [f"{row[key]} of {total}" for key in counts]
        ended = f"epoch {row['stopped']}" if row["stopped"] else "-"
        cells += [ended] if halved else []
        table.add_row(*cells)
    return table


def _mean_and_std(values, scale, digits):
    mean = f"{scale * values['mean']:.{digits}f}"
    if values["std"] is None:  # One seed.
        return mean
    return f"{mean} ± {scale * values['std']:.{digits}f}"
