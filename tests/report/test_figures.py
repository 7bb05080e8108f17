"""Figures: unusual histories, many classes, names that look like formulas."""

import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure

from jaxanon.report import figures
from jaxanon.report.writer import choose_examples


def test_windows_show_few_channels(made):
    report = made.anonymizer()
    names = tuple(map(str, range(20)))
    dataset = {
        **report["dataset"], "channels": names, "units": ("g",) * 20, "time": 4
    }  # fmt: skip
    picture = figures.windows(dataset, made.examples(6, 20))
    assert "17 more channels are not shown." in picture.caption
    assert len(picture.figure.axes) == 6 * figures.MAX_CHANNELS


def test_examples_have_both_classes_of_the_private_attribute(made):
    rows = np.arange(24)
    labels = {"act": rows % 4, "side": rows // 4 % 2, "subject": rows // 12}
    classes = {"act": "abcd", "side": ("left", "right"), "subject": ("ann", "bea")}
    spec = SimpleNamespace(
        public="act", private=("subject", "side"), classes=classes, mean=(0,), std=(1,)
    )
    windows = np.ones((24, 4, 1))
    data = spec, None, SimpleNamespace(windows=windows, labels=labels)
    names = choose_examples(data, windows).names
    assert names == tuple(f"{a}, {side}" for a in "abc" for side in ("left", "right"))


def test_leakage_draws_every_attack_and_marks_the_strongest(made):
    report = made.anonymizer("")
    figure = figures.leakage(report).figure
    words = {text.get_text(): text for text in figure.axes[0].texts}
    assert "raw windows" in words
    assert words["forest retrained"].get_fontweight() == "bold"
    assert words["raw-data classifier"].get_fontweight() == "normal"
    assert "50.0 % balanced accuracy" in words


def test_labels_beside_lines_do_not_overlap():
    figure, axes = figures.grid(1, 1, 4, 3)
    axes[0, 0].set_ylim(0, 100)
    levels = [(50, "one", "k"), (50.5, "two", "k"), (51, "three", "k")]
    figures.label_lines(axes[0, 0], levels, gap=0.08)
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in axes[0, 0].texts]
    assert len(boxes) == 3
    assert not any(
        one.overlaps(other) for k, one in enumerate(boxes) for other in boxes[:k]
    )


def test_every_color_has_one_for_dark_pages():
    svg = figures.training([{"round": k, "loss": 1.0} for k in range(3)]).svg.decode()
    used = set(re.findall(r"(?:stroke|fill): (#[0-9a-f]{6})", svg))
    known = {color.lower() for color in figures.DARK} | {"#ffffff", "#b0b0b0"}
    assert used <= known


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
        ([2.0**-k for k in range(60)], False),  # A falling loss is shown completely.
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
    """An unfinished formula would raise; powers of ten stay formulas."""
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
