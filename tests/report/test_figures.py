"""Figures: odd histories, many classes, names that look like formulas."""

import math

import pytest
from matplotlib.figure import Figure

from jaxanon.report import figures


def test_figures_admit_many_classes_and_channels(made):
    report = made.anonymizer()
    names = tuple(map(str, range(20)))
    dataset = {
        **report["dataset"], "channels": names, "units": ("g",) * 20, "time": 4
    }  # fmt: skip
    shown = made.examples(20, 20)
    caption = figures.windows(dataset, shown).caption
    assert "The last 14 channels are not shown." in caption
    assert "The last 12 classes are not shown." in caption


def test_a_history_with_gaps_is_drawn():
    gaps = [{"round": 1, "loss": 2.0, "kl": 1.0}, {"round": 2, "loss": float("nan")}]
    assert figures.training(gaps).png.startswith(b"\x89PNG")
    one = {"round": 1, "loss": 2.0}  # No curve.
    for history in ([], [{"round": 1}], [{"round": 1}, {"round": 2}], [one]):
        assert figures.training(history) is None
    assert figures.training([one, one | {"round": 2}]) is not None


@pytest.mark.parametrize(
    ("values", "cut"),
    [
        ([5.0 + k % 3 for k in range(60)], False),
        ([2.0**-k for k in range(60)], False),  # A loss that falls is all shown.
        ([5.0 + k % 3 for k in range(59)] + [2e11], True),
        ([-2e11] + [5.0 + k % 3 for k in range(59)], True),
        ([7.0] * 60, False),
        ([math.nan, math.inf], False),
    ],
)
def test_a_few_peaks_hide_no_history(values, cut):
    axis = Figure().subplots()
    axis.plot(values)
    figures.cut_peaks(axis, values)
    low, high = axis.get_ylim()
    assert (high - low < 20 and len(axis.texts) == 1) == cut
    if cut:
        assert "2e+11" in axis.texts[0].get_text()


def test_names_are_no_formulas():
    """A formula that does not end would raise; powers of ten stay formulas."""
    figure, axes = figures.grid(1, 1, 4, 4)
    axis = axes[0, 0]
    axis.plot([1, 1e4], [1, 2], label="$\\frac$")
    axis.set_yscale("log")
    axis.set_xticks([1, 2], ["$\\frac$", "$x$"])
    figures.label(axis, "$\\frac$", "$\\frac$", "$\\frac$")
    axis.legend()
    figures.picture(figure, "")
    marks = lambda which: [one.get_parse_math() for one in which.get_ticklabels()]
    assert not any(marks(axis.xaxis)) and all(marks(axis.yaxis))
