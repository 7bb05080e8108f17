"""The page of a federated learner: how well every client predicts."""

from html import escape

from jaxanon.report import figures, page, regressed, words
from jaxanon.report.figures import INK, RAW, SAFE, Picture
from jaxanon.report.regressed import MOST_NAMES
from jaxanon.report.tables import table


def draw(report: dict) -> Picture:
    """Every client's accuracy, or R², from the worst to the best, and their mean."""
    if "unit" in report:
        return regressed.draw(report)
    rows = sorted(report["clients"], key=lambda row: row["accuracy"])
    figure, axes = figures.grid(1, 1, max(4.8, 0.22 * len(rows)), 3.6)
    axis = axes[0, 0]
    colours = [SAFE if row["new"] else RAW for row in rows]
    heights = [100 * row["accuracy"] for row in rows]
    axis.bar(range(len(rows)), heights, color=colours, alpha=0.7)
    mean = 100 * report["mean"]["accuracy"]
    axis.axhline(mean, color=INK, ls="--", lw=1.3, label=f"mean {mean:.1f} %")
    chance = 100 * report["pooled"]["majority"]
    axis.axhline(chance, color=INK, ls=":", lw=1.3, label="largest class")
    if any(row["new"] for row in rows):
        axis.plot([], [], "s", color=SAFE, alpha=0.7, label="had no training windows")
    if len(rows) <= MOST_NAMES:
        names = [row["subject"] for row in rows]
        axis.set_xticks(range(len(rows)), names, rotation=90, fontsize=7)
    axis.set_ylim(0, 100)
    axis.set_xlabel("client", fontsize=9)
    axis.set_ylabel(f"{report['attribute']} predicted, %", fontsize=9)
    figure.legend(fontsize=8, frameon=False, loc="outside upper right", ncols=3)
    return figures.picture(
        figure, "Accuracy of each client on its own test windows; dashed, their mean."
    )


def sentences(report: dict) -> list[str]:
    """What the report comes to, in words."""
    late = words.unfinished(report["method"].get("unfinished"))
    told = regressed.sentences(report) if "unit" in report else _classified(report)
    told = late + told
    traffic = report["traffic"]
    told.append(
        f"In a round a client sends {traffic['up'] / 1e3:,.1f} kB and gets "
        f"{traffic['down'] / 1e3:,.1f} kB."
    )
    return told + _shuffled(report.get("shuffled")) + guaranteed(report["privacy"])


def _shuffled(told):
    if told is None:
        return []
    said = f"Layers come one by one, at random in {told['slots']} slots of a round, "
    said += "without names"
    if told["linked"] is not None:
        said += (
            f"; a server that compares directions puts {100 * told['linked']:.0f} % of "
            f"them to the right client of the round before (guessing: "
            f"{100 * told['guessing']:.0f} %)"
        )
    return [f"{said}. Epsilon counts on none of it, and counts no rounds of that test."]


def _classified(report):
    mean, std = report["mean"], report["std"]
    (worst,) = [
        row["accuracy"]
        for row in report["clients"]
        if row["subject"] == report["worst"]
    ]
    told = [
        f"Clients predict {report['attribute']} of {100 * mean['accuracy']:.1f} ± "
        f"{100 * std['accuracy']:.1f} % of their own test windows (macro F1 "
        f"{100 * mean['macro_f1']:.1f} %), the worst of them {100 * worst:.1f} %; the "
        f"largest class is {100 * report['pooled']['majority']:.1f} %."
    ]
    return told + regressed.of_new(report, lambda share: f"{100 * share:.1f} %")


def guaranteed(privacy: dict | None) -> list[str]:
    """What a ledger comes to, in words.

    Args:
      privacy: of ``told`` of a guarantee in ``jaxanon.privacy.guarantee``; None
        without noise.
    """
    if privacy is None:
        return ["No noise, and so no guarantee."]
    bound = "at most " if _bounded(privacy) else ""
    claim = (
        f"epsilon {bound}{privacy['epsilon']:,.3g} at delta {privacy['delta']:g} for "
        f"{privacy['neighbours']}, after {privacy['steps']:,} noisy {privacy['noisy']}"
    )
    for part in privacy.get("parts", ()):
        claim += f"; {part['what']} by themselves {part['epsilon']:.3g}"
    if "claimed" in privacy:
        return [
            f"No guarantee: this form claims epsilon {privacy['claimed']:.3g}, which "
            f"is of one of its noisy {privacy['noisy']}; together they cost {claim}."
        ]
    if not privacy["holds"]:
        told = [f"No guarantee: this form claims {claim}, and does not keep it."]
        return told + _true(privacy)
    return [
        f"{privacy['released']} keeps {claim}.",
        f"Not covered: {'; '.join(privacy['not_covered'])}.",
    ]


def _true(privacy):
    """What noise by scores came to, where that is less than what is claimed."""
    true = privacy.get("true")
    if true is None:
        return []
    known = " if the scores are taken for known beforehand"
    if true["known"]:
        known = " and that holds, for the scores are public"
    cost = "more than can be told"
    if true["epsilon"] is not None:
        bound = "at most " if true["accountant"] == "rdp" else ""
        cost = f"epsilon {bound}{true['epsilon']:,.3g}"
    return [
        f"Of the noise multiplier {privacy['noise_multiplier']:.3g} that it claims, "
        f"scores left {true['noise_multiplier']:.3g} where they left least; with that "
        f"the same releases cost {cost},{known}."
    ]


def _bounded(privacy):
    """Whether ε is by Rényi divergences, where others would find less."""
    return privacy["accountant"] == "rdp" and "weight_epsilon" not in privacy


def render(report: dict, picture: Picture) -> str:
    """The page: sentences, the figure, a table of clients."""
    method, data = report["method"], report["dataset"]
    lines = "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences(report))
    head = ("client", "test windows", "accuracy %", "macro F1 %", "")
    row_of = _row
    if "unit" in report:
        head, row_of = regressed.HEAD, regressed.row
    rows = [row_of(client) for client in report["clients"]]
    parts = [
        f'<section class="headline">{lines}</section>',
        page.section("Clients", page.figure("clients", picture)),
        page.section("Every client", table(head, rows)),
        *page.costs(report.get("costs")),
    ]
    title = f"{method['name']} on {data['name']}: predict {report['attribute']}"
    kicker = f"jaxanon evaluation · {method['rounds']} rounds · seed {report['seed']}"
    return page.document(title, kicker, "\n".join(parts))


def _row(client):
    return (
        client["subject"],
        str(client["windows"]),
        f"{100 * client['accuracy']:.1f}",
        f"{100 * client['macro_f1']:.1f}",
        "no training windows" if client["new"] else "",
    )
