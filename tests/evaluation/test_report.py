"""The report's files, words and page."""

import base64
import json
import math
import re
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure

from jaxanon import metrics
from jaxanon import report as reports
from jaxanon.evaluation.anonymizers import evaluate
from jaxanon.report import describe, figures, files, page, style, tables, words

HISTORY = [{"round": 10 * i, "losses": {"loss": 2.0**-i, "kl": 1.0}} for i in range(5)]


@pytest.fixture(scope="module")
def written(cases, judges, tmp_path_factory):
    """(report, folder) of one evaluation that wrote its files."""
    folder = tmp_path_factory.mktemp("run")
    run = cases.Run(cases.flip_side, folder, HISTORY)
    run.method = SimpleNamespace(name="<mirror>", config={"gamma": 0.2})
    return evaluate(run, cases.data(), judges=judges, **cases.QUICK), folder


def test_json_is_what_evaluate_returned(written):
    report, folder = written

    def refuse(name):
        pytest.fail(f"{name} is no JSON")

    text = (folder / "report.json").read_text()
    assert json.loads(text, parse_constant=refuse) == report
    told = {"name": "<mirror>", "config": {"gamma": 0.2}, "rounds": None}
    assert report["method"] == told


def test_every_figure_is_a_png_and_stands_in_the_page(written):
    _, folder = written
    names = {path.stem for path in folder.glob("*.png")}
    attributes = ("activity", "side", "subject")
    assert names == {
        "plane", "windows", "training", *(f"confusion_{a}" for a in attributes)
    }  # fmt: skip
    html = (folder / "report.html").read_text()
    inside = {base64.b64decode(x) for x in re.findall(r"base64,([^\"]+)", html)}
    assert inside == {path.read_bytes() for path in folder.glob("*.png")}
    assert all(png.startswith(b"\x89PNG") for png in inside)


def test_figures_of_any_attribute_stay_in_the_folder(tmp_path):
    names = ["../../up", "a / b", "a _ b", "/tmp/there", "side"]
    drawn = {name: figures.Picture(b"\x89PNG", "") for name in names}
    folder = tmp_path / "runs" / "run"
    files._written(folder, "report", {}, drawn, "")
    made = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert {path.parent for path in made} == {folder} and len(made) == 5 + 2
    assert folder / "side.png" in made


class Page(HTMLParser):
    """Collects what a browser would fetch, and whether tags are closed in order."""

    def __init__(self):
        super().__init__()
        self.links, self.open, self.alts = [], [], []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.links += [attrs[name] for name in ("src", "href") if name in attrs]
        if tag == "img":
            self.alts.append(attrs["alt"])
        if tag not in ("img", "meta"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_needs_no_network_and_is_well_formed(written):
    _, folder = written
    html = (folder / "report.html").read_text()
    parsed = Page()
    parsed.feed(html)
    assert not parsed.open
    assert len(parsed.links) == 6 and all(parsed.alts)
    assert all(link.startswith("data:image/png;base64,") for link in parsed.links)
    assert "http" not in html and "@import" not in html and "url(" not in html
    assert "viewport" in html and "prefers-color-scheme: dark" in html


def test_names_are_escaped(written):
    _, folder = written
    html = (folder / "report.html").read_text()
    assert "<mirror>" not in html and "&lt;mirror&gt;" in html


def test_the_table_shows_each_number_with_its_references(written):
    report, folder = written
    html = (folder / "report.html").read_text()
    row = re.search(r"<tr><td[^>]*>intrusive inference: side</td>.*?</tr>", html)[0]
    judged = report["intrusive"]["side"]
    assert re.findall(r"([\d.]+) %", row) == [
        f"{100 * value:.1f}"
        for value in (
            judged["anonymized"]["balanced_accuracy"],
            judged["raw"]["balanced_accuracy"],
            0.5,
            0.5,
        )
    ]
    for start in ("utility: activity, accuracy", "utility: activity, macro F1",
                  "re-identification: side", "linkage: subject",
                  "mutual information: side"):  # fmt: skip
        assert f">{start}</td>" in html
    assert "forest, retrained (worst)" in html
    words_only = re.sub(r"base64,[^\"]+", "", html)
    assert not re.search(r"\bnan\b|\bNone\b", words_only)


def test_out_comes_before_the_folder_of_the_run(cases, judges, tmp_path):
    run = cases.Run(cases.identity, tmp_path / "run")
    out = tmp_path / "new" / "out"
    evaluate(run, cases.data(), judges=judges, out=out, **cases.QUICK)
    assert (out / "report.html").exists() and not (tmp_path / "run").exists()
    # No history, no training curves.
    assert not (out / "training.png").exists()


@pytest.mark.parametrize(
    ("worst", "raw", "grade"),
    [
        (0.5, 0.9, "well hidden"),
        (0.45, 0.9, "well hidden"),
        (0.6, 0.9, "mostly hidden"),
        (0.75, 0.9, "partly exposed"),
        (0.89, 0.9, "exposed"),
        (0.9, 0.51, "not readable even from raw windows"),
    ],
)
def test_grades(worst, raw, grade):
    # Of the way from chance 0.5 to raw 0.9: 0, below, 1/4, 5/8, nearly all.
    assert words.exposure(worst, raw, 0.5) == grade


def test_examples_are_in_physical_units(cases):
    data = cases.data()
    safe = (data.test.windows - np.float32([1, 2, 3])) / np.float32([2, 3, 4])
    examples = reports.choose_examples(data, safe)
    assert examples.names == ("slow", "fast")
    np.testing.assert_allclose(examples.safe, examples.raw, rtol=1e-5, atol=1e-5)
    # A slow and a fast window of theirs, not the same one twice.
    rows = [(data.test.windows == raw).all((1, 2)).argmax() for raw in examples.raw]
    assert data.test.labels["activity"][rows].tolist() == [0, 1]


def test_figures_admit_many_classes_and_channels(written):
    report, _ = written
    names = tuple(map(str, range(20)))
    dataset = {
        **report["dataset"], "channels": names, "units": ("g",) * 20, "time": 4
    }  # fmt: skip
    shown = describe.Examples(names, *np.ones((2, 20, 4, 20)))
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


def test_the_page_without_a_method_or_linkage_is_well_formed(written):
    report, _ = written
    less = {**report, "method": None, "linkage": None}
    parsed = Page()
    html = page.render(less, {})
    parsed.feed(html)
    assert not parsed.open and "anonymizer on toy" in html
    assert "linkage: subject" not in html


def test_a_split_that_leaks_says_so(written):
    report, _ = written
    assert "never by window" in words.protocol(report)["Split"]
    leaking = report | {"dataset": report["dataset"] | {"split": "released"}}
    assert "twins in training" in words.protocol(leaking)["Split"]
    assert words.headline(leaking)[:-1] == words.headline(report)
    assert "leaks" in words.headline(leaking)[-1]


def told(raw, safe, hide=()):
    """The first sentences, of guesses of raw and rewritten windows of three classes."""
    labels, names = [0, 0, 1, 1, 1, 1, 2, 2], ("a", "b", "c")
    sides = {"raw": raw, "anonymized": safe}
    return words.headline(
        {
            "utility": {"attribute": "activity"}
            | {k: metrics.scores(labels, guess, names) for k, guess in sides.items()},
            "method": {"name": "privatehub", "config": {"hide": list(hide)}},
            "dataset": {"split": "given"},
            **{"intrusive": {}, "linkage": None, "reidentification": {}},
        }
    )


def test_classes_to_hide_have_sentences_of_their_own_and_do_not_count_as_lost():
    raw, safe = [0, 0, 1, 1, 1, 1, 2, 2], [0, 0, 0, 2, 0, 1, 2, 2]
    whole, hiding = told(raw, safe), told(raw, safe, hide=["b"])
    assert whole == [
        "activity suffers: 62.5 % of anonymized windows are classified right, of raw "
        "windows 100.0 %."
    ]
    assert hiding == [
        "activity survives: 100.0 % of anonymized windows of classes to show (all but "
        "b) are classified right, of raw windows 100.0 %.",
        "activity b was to be hidden: 25.0 % of its windows are still recognised, of "
        "raw ones 100.0 %.",
    ]


def test_what_raw_windows_do_not_tell_either_is_not_called_lost():
    # Less than always naming b, and less than guessing evenly, which gives a third.
    (first,) = told([1, 2, 0, 0, 1, 2, 2, 0], [0, 0, 0, 0, 0, 0, 0, 0])
    assert first.startswith("activity is not readable even from raw windows: 25.0 % of")


def test_where_one_class_is_left_to_show_nothing_of_it_is_lost():
    same = [0, 0, 1, 1, 1, 1, 2, 2]
    first, *rest = told(same, [0, 0, 0, 0, 0, 0, 0, 0], hide=["b", "c"])
    assert first.startswith("activity survives: 100.0 % of anonymized windows of class")
    assert [line.split(":")[1][:6] for line in rest] == [" 0.0 %", " 0.0 %"]
    first, *_ = told(same, [1, 1, 1, 1, 1, 1, 1, 1], hide=["b", "c"])
    assert first.startswith("activity is lost: 0.0 % of")


def test_a_class_that_is_nearly_all_there_is_hides_nothing_from_the_verdict():
    """Always naming b is right in 4 of 6 windows to show, and tells nothing of a."""
    both = [0, 0, 1, 1, 0, 0, 2, 2]  # No more are right, and both are told.
    assert told(both, both, hide=["c"])[0].startswith("activity survives: 66.7 %")
    none = [1, 1, 1, 1, 1, 1, 2, 2]
    assert told(both, none, hide=["c"])[0].startswith("activity is lost: 66.7 %")


def test_words_in_a_second_column_stand_on_the_left_and_numbers_on_the_right():
    worded = lambda *rows: 'class="worded"' in tables.table((), rows)
    assert worded(("side", "judge"), ("side", "0.5"))
    assert worded(("side", ("forest", "key")))
    assert not worded(("mean", "0.5"), ("std", "-1e-3"), ("range", "none"))
    assert not worded(("alone",))
    assert ".worded td:nth-child(2) { text-align: left" in style.STYLE
