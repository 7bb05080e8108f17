"""What ``evaluate`` found of a run, as its card tells it."""

import json
import pathlib

from jaxanon.datasets.sources import naming


def of_run(run, weights: str) -> list[str]:
    """``lines`` of the report in a run's folder, if there is one.

    Args:
      run: ``Run``.
      weights: as of ``lines``.

    Raises:
      ValueError: if the report is damaged.
    """
    path = None if run.folder is None else pathlib.Path(run.folder, "report.json")
    if path is None or not path.is_file():
        return lines(None, weights)
    with naming(f"{path} (jaxanon evaluate --overwrite writes it anew)"):
        report = json.loads(path.read_text(encoding="utf-8"))
        # Reports of before do not say after how many rounds.
        seen, done = (report.get("method") or {}).get("rounds"), int(run.state.round)
        if seen not in (None, done):
            return [
                f"Not measured after {done} rounds: `jaxanon evaluate` attacked the "
                f"run after {seen}. Evaluated anew (`--overwrite`), it is told here."
            ]
        return lines(report if "intrusive" in report else None, weights)


def lines(report: dict | None, weights: str) -> list[str]:
    """What a card says was measured, line by line.

    Args:
      report: of ``evaluate``; None if the run was not evaluated.
      weights: ``float32``, ``float16`` or ``int8``.

    Example:
      >>> lines(None, "float32")[0][:12]
      'Not measured'
    """
    if report is None:
        return [
            "Not measured: `jaxanon evaluate` before `jaxanon export` attacks the run, "
            "and what it finds is told here."
        ]
    percent = lambda scores: f"{100 * scores['balanced_accuracy']:.1f} %"
    before = "" if weights == "float32" else f", before weights were cut to {weights}"
    rows = [
        "Balanced accuracies on test windows of "
        f"{report['dataset']['name']} ({report['dataset']['split']} split){before}:",
        "",
        "| attribute | role | who reads | raw | anonymized | guessing |",
        "|---|---|---|---|---|---|",
    ]
    judged = [(report["utility"]["attribute"], "kept", report["utility"])]
    # None of what no classifier of raw windows can be asked, such as unseen subjects.
    intrusive = report["intrusive"].items()
    judged += [(name, "hidden", own) for name, own in intrusive if own is not None]
    for name, role, own in judged:
        cells = (name, role, "trained on raw windows", percent(own["raw"]))
        chance = f"{100 * own['raw']['chance']:.1f} %"
        rows.append(_row(*cells, percent(own["anonymized"]), chance))
    for name, found in report["reidentification"].items():
        for attacker, scores in found["attackers"].items():
            chance = f"{100 * scores['chance']:.1f} %"
            who = f"{attacker}, trained on anonymized windows"
            rows.append(_row(name, "hidden", who, "", percent(scores), chance))
    return rows


def _row(*cells):
    return f"| {' | '.join(cells)} |"
