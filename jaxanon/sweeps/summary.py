"""What a sweep found, by setting: mean and deviation over seeds and splits."""

import copy
import math

from rich.table import Table

from jaxanon.evaluation.summary import aggregate
from jaxanon.report import verdicts


def summarise(members, reports) -> list[dict]:
    """One row per setting of the grid, in order.

    Args:
      members: with ``settings``, ``seed``, ``split``, ``losses`` and ``stopped``.
      reports: of ``evaluate``, one per member, None for one that diverged or was
        stopped, empty for one that got lost; or none at all.

    Returns:
      Dicts of ``settings``, ``seeds`` and ``splits`` (how many), ``diverged`` (how many
      members of ``seeds * splits``), ``lost`` (how many nobody trained, or
      evaluated), ``stopped`` (after which epoch, or None),
      ``losses`` and ``scores``, the last two with ``{"mean", "std"}`` under each name;
      ``scores`` are those of members with a report, and empty if there is none.
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
            "losses": _losses([members[i].losses for i in indices]),
            "scores": _of_reports([reports[i] for i in indices if reports]),
        }
        for settings, indices in cells
    ]


def reference(members, reports) -> dict | None:
    """A report that tells of raw windows what those of all splits do, on the mean.

    Args:
      members, reports: as in ``summarise``.
    """
    told = {m.split: r for m, r in zip(members, reports, strict=True) if r}
    if len(told) < 2 or "utility" not in next(iter(told.values())):
        return next(iter(told.values()), None)
    found = copy.deepcopy(next(iter(told.values())))

    def put(of, name):
        of(found)[name] = math.fsum(of(each)[name] for each in told.values()) / len(
            told
        )

    put(lambda each: each["utility"]["raw"], "accuracy")
    for attribute, judged in found["intrusive"].items():
        for measure in ("balanced_accuracy", "chance") if judged else ():
            put(lambda each, at=attribute: each["intrusive"][at]["raw"], measure)
    return found


def _losses(of_members):
    found = [losses for losses in of_members if losses]
    return aggregate(found) if found else {}


def _of_reports(reports):
    found = [scores(report) for report in reports if report]
    return aggregate(found) if found else {}


def scores(report: dict) -> dict[str, float]:
    """The figures of a report that settings are chosen by, each in [0, 1].

    Returns:
      Of a learner every mean score over clients, or R² of a target. Of an anonymizer
      ``"<public> accuracy"``; for each private attribute ``"<name> intrusive"`` and
      ``"<name> re-identified"``, balanced accuracies of classifiers of raw windows and
      of the strongest attacker retrained on anonymized ones, if they exist.
    """
    if "utility" not in report:
        public = report["attribute"]
        if "unit" in report:  # Errors are in the unit of the target, R² is not.
            return {f"{public} r2": report["mean"]["r2"]}
        return {f"{public} {name}": value for name, value in report["mean"].items()}
    kept = report["utility"]
    found = {f"{kept['attribute']} accuracy": kept["anonymized"]["accuracy"]}
    for name, of_raw in report["intrusive"].items():
        if of_raw:
            balanced = of_raw["anonymized"]["balanced_accuracy"]
            found[f"{name} intrusive"] = balanced
        attacked = report["reidentification"].get(name)
        if attacked:
            scores = attacked["attackers"][verdicts.strongest(attacked)]
            found[f"{name} re-identified"] = scores["balanced_accuracy"]
    return found


def table(summary: list[dict]) -> Table:
    """The summary as a ``rich`` table: scores in % where there are any, else losses.

    Where members diverged, a column says how many; scores are those of the others.
    Where settings were stopped early, a column says after which epoch; where members
    got lost, one says how many.
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
    fates = [fate for fate in ("diverged", "lost") if any(row[fate] for row in summary)]
    for fate in fates:
        table.add_column(fate, justify="right")
    halved = any(row["stopped"] for row in summary)
    if halved:
        table.add_column("stopped", justify="right")
    for row in summary:
        found = row[shown]
        cells = [str(value) for value in row["settings"].values()]
        cells += [
            _spread(found[name], scale, digits) if found else "-" for name in names
        ]
        whole = row["seeds"] * row["splits"]
        cells += [f"{row[fate]} of {whole}" for fate in fates]
        ended = f"epoch {row['stopped']}" if row["stopped"] else "-"
        cells += [ended] if halved else []
        table.add_row(*cells)
    return table


def _spread(found, scale, digits):
    mean = f"{scale * found['mean']:.{digits}f}"
    if found["std"] is None:  # One seed.
        return mean
    return f"{mean} ± {scale * found['std']:.{digits}f}"
