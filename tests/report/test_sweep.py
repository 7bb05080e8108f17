"""The Pareto front of a sweep: undominated settings, plotted and listed."""

import hypothesis
import hypothesis.strategies as st
import pytest

from jaxanon import report
from jaxanon.report import figures, sweep


def row(settings, kept, *scores, diverged=0, std=None):
    """Returns a row of a summary; ``scores`` are of the attributes sex and age."""
    named = {"act accuracy": kept}
    for name, score in zip(
        ("sex re-identified", "age intrusive"), scores, strict=False
    ):
        named[name] = score
    spread = {name: {"mean": mean, "std": std} for name, mean in named.items()}
    return {"settings": settings, "diverged": diverged, "scores": spread}


RAW = {"raw": {"balanced_accuracy": 0.9, "chance": 0.5}}
REPORT = {
    "utility": {"attribute": "act", "raw": {"accuracy": 0.97}},
    "intrusive": {"sex": RAW, "age": None},
}
SUMMARY = [
    row({"alpha": 0.1, "lambda_": 0.3}, 0.95, 0.7, 0.4),
    row({"alpha": 0.2, "lambda_": 0.3}, 0.90, 0.6, 0.5),
    row({"alpha": 0.3, "lambda_": 0.3}, 0.90, 0.65, 0.3),
    {"settings": {"alpha": 0.4, "lambda_": 0.3}, "diverged": 2, "scores": {}},
]

SHARES = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])


@hypothesis.given(st.lists(st.tuples(SHARES, SHARES), max_size=8))
def test_a_point_is_on_the_front_unless_another_beats_it(points):
    for own, on in zip(points, sweep.best(points), strict=True):
        as_useful = [other for other in points if other[0] >= own[0]]
        as_private = [other for other in points if other[1] <= own[1]]
        more_useful = any(other[0] > own[0] for other in as_private)
        more_private = any(other[1] < own[1] for other in as_useful)
        assert on == (not (more_useful or more_private))


def test_panels_are_of_the_attributes_that_somebody_reads():
    found = sweep.panels(SUMMARY, REPORT)
    told = {
        name: [(kept["mean"], leaked["mean"], on) for _, kept, leaked, on in own.points]
        for name, own in found.items()
    }
    assert [own.measure for own in found.values()] == ["re-identified", "intrusive"]
    assert told == {
        "sex": [(0.95, 0.7, True), (0.9, 0.6, True), (0.9, 0.65, False)],
        "age": [(0.95, 0.4, True), (0.9, 0.5, False), (0.9, 0.3, True)],
    }


@pytest.mark.parametrize("std", [None, 0.02])
def test_the_page_marks_the_front_and_says_who_diverged(std, tmp_path):
    rows = [
        row({"alpha": 0.1}, 0.8, 0.6, std=std),
        row({"alpha": 0.2}, 0.9, 0.5, std=std),
        SUMMARY[-1],
    ]
    page = report.write_pareto_front(tmp_path, "toy <on> waves", rows, REPORT)
    told = page.read_text()
    assert "★ alpha 0.2" in told and "★ alpha 0.1" not in told
    assert told.index("alpha 0.2") < told.index("alpha 0.1")  # By utility.
    assert "alpha 0.4" not in told and "2 runs of the sweep diverged" in told
    assert ("90.0 ± 2.0" in told) == (std is not None)
    assert "toy &lt;on&gt; waves" in told and "<on>" not in told
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "pareto_front.png",
        "pareto_front.svg",
        "sweep.html",
    ]


def test_nothing_is_drawn_where_nobody_was_tried(tmp_path):
    rows = [row({"alpha": 0.1}, 0.8)]
    assert report.write_pareto_front(tmp_path, "toy", rows, REPORT) is None
    assert not list(tmp_path.iterdir())


def test_the_goal_is_drawn_where_raw_windows_were_judged():
    """Without a raw-data classifier, there is no raw level to plot."""
    one = sweep.draw(sweep.panels(SUMMARY, REPORT), REPORT).png
    blind = {**REPORT, "intrusive": {"sex": None, "age": None}}
    assert one != sweep.draw(sweep.panels(SUMMARY, blind), blind).png


def test_words_never_stand_over_other_words(monkeypatch):
    """Labels may be missing between nearly equal settings, but not at the ends."""
    rows = [row({"alpha": k}, 0.9 + k / 1e4, 0.7 + k / 1e4) for k in range(20)]
    rows += [row({"alpha": 30}, 0.6, 0.52), row({"alpha": 40}, 0.8, 0.6)]
    drawn = []
    monkeypatch.setattr(figures, "picture", lambda figure, words: drawn.append(figure))
    sweep.draw(sweep.panels(rows, REPORT), REPORT)
    (axis,) = drawn[0].axes
    drawn[0].draw_without_rendering()
    goal = {"goal", "raw windows", "chance"}
    notes = [text for text in axis.texts if text.get_text() not in goal]
    boxes = [note.get_window_extent() for note in notes]
    assert not any(
        one.overlaps(other) for k, one in enumerate(boxes) for other in boxes[:k]
    )
    said = {note.get_text() for note in notes}
    assert said >= {"alpha 30", "alpha 40", "alpha 19"} and len(said) < len(rows)
