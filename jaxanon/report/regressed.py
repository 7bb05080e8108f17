"""What the page of a learner says where it predicts numbers."""

from collections.abc import Callable

from jaxanon.report import figures
from jaxanon.report.figures import INK, QUIET, RAW, SAFE, Picture

LOWEST = -1.0  # R² below is drawn here: there is no end to how bad it may be.
MOST_NAMES = 60
HEAD = ("client", "test windows", "R²", "MAE", "RMSE", "")
NAMES = {"persistence": "persistence", "mean": "own mean"}


def draw(report: dict) -> Picture:
    """Every client's R² from the worst to the best, and what one of them predicted."""
    rows = sorted(report["clients"], key=lambda row: row["r2"])
    width = max(7.5, 0.2 * min(len(rows), MOST_NAMES))
    figure, axes = figures.grid(2, 1, width, 3.0)
    _bars(axes[0, 0], rows, report)
    _forecast(axes[1, 0], report)
    clipped = sum(row["r2"] < LOWEST for row in rows)
    more = f" {clipped} below {LOWEST:g} are drawn there." if clipped else ""
    return figures.picture(
        figure,
        f"Above, R² of each client on its own test windows; dashed, their mean.{more} "
        f"Below, the last test windows of client {report['example']['subject']}, whose "
        "R² is the median, and what it predicted.",
    )


def _bars(axis, rows, report):
    colours = [SAFE if row["new"] else RAW for row in rows]
    heights = [max(row["r2"], LOWEST) for row in rows]
    axis.bar(range(len(rows)), heights, color=colours, alpha=0.7)
    levels = {"mean": ("--", report["mean"])}
    if "persistence" in report["baselines"]:
        levels["persistence"] = (":", report["baselines"]["persistence"]["mean"])
    for name, (style, scores) in levels.items():
        level, label = max(scores["r2"], LOWEST), f"{name} {scores['r2']:.2f}"
        axis.axhline(level, color=INK, ls=style, lw=1.3, label=label)
    if any(row["new"] for row in rows):
        axis.plot([], [], "s", color=SAFE, alpha=0.7, label="had no training windows")
    axis.axhline(0, color=QUIET, lw=0.8)
    if len(rows) <= MOST_NAMES:
        names = [row["subject"] for row in rows]
        axis.set_xticks(range(len(rows)), names, rotation=90, fontsize=7)
    axis.set_ylim(min(0, *heights) * 1.02, 1.02)
    axis.set_xlabel("client", fontsize=9)
    axis.set_ylabel(f"R² of {report['attribute']}", fontsize=9)
    _legend(axis)


def _forecast(axis, report):
    example = report["example"]
    axis.plot(example["truth"], color=INK, lw=1.1, label="true")
    axis.plot(example["told"], color=RAW, lw=1.1, label="predicted")
    axis.set_xlabel(f"test window of client {example['subject']}", fontsize=9)
    axis.set_ylabel(f"{report['attribute']} [{report['unit']}]", fontsize=9)
    axis.grid(alpha=0.25, lw=0.5)
    _legend(axis)


def _legend(axis):
    place = {"loc": "lower left", "bbox_to_anchor": (0, 1)}
    axis.legend(fontsize=8, frameon=False, ncols=3, **place)


def sentences(report: dict) -> list[str]:
    """What the scores come to, in words."""
    mean, std, unit = report["mean"], report["std"], report["unit"]
    (worst,) = [
        row["r2"] for row in report["clients"] if row["subject"] == report["worst"]
    ]
    told = [
        f"Clients predict {report['attribute']} of their own test windows with R² "
        f"{mean['r2']:.3f} ± {std['r2']:.3f} (median {report['median']['r2']:.3f}), "
        f"{mean['mae']:.4g} {unit} off (MAE; RMSE {mean['rmse']:.4g} {unit}), the "
        f"worst of them with R² {worst:.3f}; of all windows together R² is "
        f"{report['pooled']['r2']:.3f}."
    ]
    for name, scores in report["baselines"].items():
        told.append(
            f"Without a model, by {NAMES[name]}: R² {scores['mean']['r2']:.3f}, MAE "
            f"{scores['mean']['mae']:.4g} {unit}, RMSE {scores['mean']['rmse']:.4g} "
            f"{unit}, of all windows together R² {scores['pooled']['r2']:.3f}."
        )
    return told + of_new(report, lambda r2: f"with R² {r2:.3f}")


def of_new(report: dict, tell: Callable[[float], str]) -> list[str]:
    """What is said of clients who had nothing to train on, if there are any.

    Args:
      report: with ``new_clients``, their mean score or None, and ``clients``.
      tell: that score in words.
    """
    if report["new_clients"] is None:
        return []
    if all(row["new"] for row in report["clients"]):
        return [
            "None of them has training windows; `jaxanon evaluate --join SHARE` lets "
            "each fit what is not shared to so many of their own."
        ]
    return [
        "Clients without training windows, who are not counted there, predict "
        f"{tell(report['new_clients'])}."
    ]


def row(client: dict) -> tuple[str, ...]:
    """A client's cells under ``HEAD``."""
    return (
        client["subject"],
        str(client["windows"]),
        f"{client['r2']:.3f}",
        f"{client['mae']:.4g}",
        f"{client['rmse']:.4g}",
        "no training windows" if client["new"] else "",
    )
