"""Tables of a leave-one-person-out evaluation."""

from rich.table import Table

from jaxanon.cli import console


def show(report: dict) -> None:
    """Prints scores by attribute, then scores by person.

    Args:
      report: result of ``jaxanon.evaluation.leave_one_out``.
    """
    people = len(report["persons"])
    console.table(_by_attribute(report, f"Mean over {people} left-out people"))
    console.table(_by_person(report))
    for name, reason in report["not_measured"].items():
        if name == "diverged":
            who = ", ".join(reason)
            console.say(f"Warning: training diverged without {who}; not in the means.")
        else:
            console.say(f"{name}: not measured, because {reason}.")
    for name, about in report["attributes"].items():
        for kind, scores in about["scores"].items():
            if scores.get("not_measured"):
                console.say(
                    f"{name}, {kind}: balanced accuracy and AUC are not measured, "
                    f"because {scores['not_measured']}."
                )
    if report["repeated_fraction"] > 0:
        console.say(
            f"At most {100 * report['repeated_fraction']:.1f} % of the windows "
            "of a training are repeated, so that all trainings have one size."
        )


def _by_attribute(report, title) -> Table:
    table = Table(title=title, title_justify="left")
    for column in ("attribute", "goal", "windows"):
        table.add_column(column)
    for column in ("score", "95 % interval", "balanced accuracy", "AUC", "chance"):
        table.add_column(column, justify="right")
    table.columns[4].min_width = len("100 to 100 %")
    for name, about in report["attributes"].items():
        for kind, scores in about["scores"].items():
            cells = (name, about["goal"], kind)
            if about["unit"] is not None:
                for measure, one in scores.items():
                    unit = "" if measure == "r2" else f" {about['unit']}"
                    score = f"{measure} {one['mean']:.4g}{unit}"
                    table.add_row(*cells, score, _bounds(one["interval"]), "", "", "")
                continue
            chance = f"{100 * about['chance']:.1f} %"
            pooled = (scores["balanced_accuracy"], scores["auc"])
            table.add_row(
                *cells,
                f"{100 * scores['mean']:.1f} %",
                _bounds(scores["interval"], percent=True),
                *("" if value is None else f"{100 * value:.1f} %" for value in pooled),
                chance,
            )
    return table


def _bounds(interval, *, percent: bool = False) -> str:
    if interval is None:
        return "too few people"
    low, high = (100 * bound if percent else bound for bound in interval)
    return f"{low:.0f} to {high:.0f} %" if percent else f"{low:.4g} to {high:.4g}"


def _by_person(report) -> Table:
    """Returns accuracies of each person; for a target, R2."""
    columns = [
        (name, kind)
        for name, about in report["attributes"].items()
        for kind in about["scores"]
    ]
    measure = {
        name: "accuracy" if about["unit"] is None else "r2"
        for name, about in report["attributes"].items()
    }
    words = "R2" if "r2" in measure.values() else "Accuracy in %"
    table = Table(title=f"{words} by left-out person", title_justify="left")
    table.add_column("person")
    table.add_column("windows", justify="right")
    for name, kind in columns:
        table.add_column(f"{name}: {kind}", justify="right")
    for person in report["persons"]:
        cells = []
        for name, kind in columns:
            scores = person["scores"].get(name, {}).get(kind)
            if scores is None:
                cells.append("diverged")
            elif measure[name] == "r2":
                cells.append(f"{scores['r2']:.3f}")
            else:
                cells.append(f"{100 * scores['accuracy']:.1f}")
        table.add_row(person["subject"], str(person["windows"]), *cells)
    return table
