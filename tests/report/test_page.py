"""Pages show every number, escape every name, and load nothing else."""

import base64
import re
from html import unescape
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from jaxanon import report as reports
from jaxanon.report import figures, page, sweep, writer

HISTORY = [{"round": 10 * i, "loss": 2.0**-i, "kl": 1.0} for i in range(5)]


class Page(HTMLParser):
    """Parser that collects fetched resources, and checks the order of closing tags."""

    def __init__(self, html):
        super().__init__()
        self.links, self.open, self.alts, self.tags = [], [], [], set()
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.add(tag)
        self.links += [attrs[name] for name in ("src", "href") if name in attrs]
        if tag == "img":
            self.alts.append(attrs["alt"])
        if tag not in ("img", "meta"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def rows(html):
    """Returns the texts of each table row."""
    lines = re.findall(r"<tr>(.*?)</tr>", html, re.S)
    cells = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", line, re.S) for line in lines]
    return [[unescape(cell) for cell in line] for line in cells]


def write_all(made, folder):
    """Writes every kind of page under the name of its kind."""
    bad = made.BAD
    summary = [
        {"settings": {bad: bad}, "diverged": 2, "stopped": 4, "scores": {}},
        {
            "settings": {"alpha": f"0.1 {bad}"},
            "diverged": 0,
            "scores": {
                f"act {bad} accuracy": {"mean": 0.875, "std": 0.125},
                f"sex {bad} intrusive": {"mean": 0.625, "std": None},
            },
        },
    ]
    judged = {"raw": {"balanced_accuracy": 0.9, "chance": 0.5}}
    scored = {
        "utility": {"attribute": f"act {bad}", "raw": {"accuracy": 0.97}},
        "intrusive": {f"sex {bad}": judged},
    }
    return {
        "anonymizer": reports.write(
            folder / "a", made.anonymizer(), made.examples(), HISTORY
        ),
        "learner": reports.write_learned(folder / "l", made.learner()),
        "regression": reports.write_learned(folder / "r", made.regression()),
        "energy": reports.write_neighborhood(folder / "e", made.pfdrl()),
        "sweep": reports.write_pareto_front(folder / "s", bad, summary, scored),
        "budget": reports.write_budget(folder / "b", bad, bad, made.budget()),
    }


@pytest.fixture(scope="module")
def written(made, tmp_path_factory):
    return write_all(made, tmp_path_factory.mktemp("pages"))


KINDS = pytest.mark.parametrize(
    "kind", ["anonymizer", "learner", "regression", "energy", "sweep", "budget"]
)


@KINDS
def test_a_page_is_well_formed_and_needs_no_network(written, kind):
    html = written[kind].read_text()
    parsed = Page(html)
    assert not parsed.open and all(parsed.alts)
    assert all(link.startswith("data:image/svg+xml;base64,") for link in parsed.links)
    html = re.sub(r"base64,[^\"]+", "", html)
    assert "http" not in html and "@import" not in html and "url(" not in html
    assert "viewport" in html and "prefers-color-scheme: dark" in html


@KINDS
def test_names_are_text(written, kind):
    """Names create no tag, template or formula, and stay complete."""
    html = written[kind].read_text()
    assert "i" not in Page(html).tags and "&lt;i&gt;&amp;&#39;" in html
    assert "{{ 7 * 7 }}" in html
    shown = re.sub(r"base64,[^\"]+", "", html)
    assert not re.search(r"\bnan\b|\bNone\b|Undefined", shown)


@KINDS
def test_every_figure_is_a_file_and_stands_in_the_page(written, kind):
    inside = re.findall(r"base64,([^\"]+)", written[kind].read_text())
    files = {path.read_bytes() for path in written[kind].parent.glob("*.svg")}
    assert {base64.b64decode(x) for x in inside} == files and files
    for svg in files:
        root = ElementTree.fromstring(svg)
        assert root.tag.endswith("svg") and not list(root.iter("script"))
        # Vector, transparent, in light and dark, no wider than the column of text.
        assert b"<image" not in svg and b"prefers-color-scheme:dark" in svg
        width = float(root.attrib["width"].removesuffix("pt"))
        assert width <= 72 * figures.WIDTH + 0.1


def test_files_stay_in_their_folder(written):
    root = written["anonymizer"].parent.parent
    files = [path for path in root.rglob("*") if path.is_file()]
    assert {path.parent.name for path in files} == set("alresb")
    names = {path.name.split("_")[0] for path in (root / "a").glob("*.svg")}
    assert names == {"leakage.svg", "windows.svg", "training.svg", "confusion"}


def test_a_report_of_an_anonymizer_shows_every_number(made):
    report = made.anonymizer()
    html = writer.render_anonymizer(report, {})
    found = {tuple(row) for row in rows(html)}
    public, (private, subject) = f"activity {made.BAD}", (f"side {made.BAD}", "subject")
    judge, forest = "raw-data classifier", "forest, retrained (strongest)"
    bounded = lambda x: f"{x:.1f} % <small>({x - 3:.1f} to {x + 3:.1f} %)</small>"
    all_, half = "100.0 %", "50.0 %"
    guesses = half, "66.7 %"
    # By hand: 2 windows of one class and 4 of the other, so majority is 4 of 6. Half of
    # each class is right at HALF: a recall of 50 % each.
    assert found >= {
        (f"utility: {public}", judge, bounded(100), "none", all_, *guesses),
        (f"intrusive inference: {private}", judge, bounded(0), "none", all_, *guesses),
        (f"re-identification: {private}", forest, bounded(50), "none", all_, *guesses),
        (f"linkage: {subject}", forest, bounded(50), "none", all_, *guesses),
        (private, "0.1234 nat", "0.4321 nat"),
        (private, "forest", f"n {made.BAD}", "correlation 0.125", "", "", "", ""),
        (private, "forest", f"n {made.BAD}", "not measured", f"few {made.BAD}",
         "", "", ""),
        (private, "forest", f"n {made.BAD}", half, "none", "none", *guesses),
        ("time warping, deviations", "0", "1.25 ± 0.50", "", ""),
        ("steps per window, threshold", "4", "3", "-25.0 %", "1"),
        (f"x {made.BAD}: mean", "0", "0.25", "+0.25", "0.25"),
        # Two of six are called right: one of two left ones, two of four right ones.
        (f"left {made.BAD}", "2", "50.0 %", "33.3 %", "40.0 %", "none", "none"),
    }  # fmt: skip
    for word in (
        "1,234 test windows of 2 subjects",
        "seed 7",
        "500 ms",
        "3 MB",
        "50 % of",
    ):
        assert word in html
    for sentence in [*report["headline"], *report["protocol"].values()]:
        assert sentence in unescape(html)
    assert "&#34;gamma&#34;" in html and "&#34;mean&#34;" not in html


def test_a_report_of_an_anonymizer_without_a_method_or_linkage(made):
    less = made.anonymizer("", **{"method": None, "linkage": None, "attacks": {}})
    html = writer.render_anonymizer(less | {"costs": None}, {})
    assert not Page(html).open and "anonymizer on toy" in html
    for left_out in ("linkage: subject", "Further attacks", "Training costs"):
        assert left_out not in html


def test_a_report_of_a_learner_shows_every_number(written, made):
    html = written["learner"].read_text()
    assert [f"ann {made.BAD}", "5", "87.5", "62.5", ""] in rows(html)
    assert [f"bea {made.BAD}", "5", "37.5", "62.5", "no training windows"] in rows(html)
    for words in ("87.5 ± 12.5 %", "Macro F1 is 62.5 %", "largest class has 56.2 %",
                  "sends 1.5 kB and receives 2,500.0 kB", "3 rounds", "no privacy gua",
                  "above; their accuracy is 37.5 %"):  # fmt: skip
        assert words in " ".join(html.split())
    html = written["regression"].read_text()
    assert ["ann", "5", "0.750", "1.5", "2.5", ""] in rows(html)
    for words in ("R² -1.125 ± -1.125 (mean and", "median 0.500). The MAE is 1.5 W",
                  "RMSE 2.5 W", "lowest R² of a client is -3.000", "windows is 0.250",
                  "(persistence): R² 0.062", "(mean of the client): R² 0.062",
                  "over all windows 0.031", "at random in 3 slots", "links 25 % of",
                  "(chance level: 12 %)", "1 below -1 are drawn there"):  # fmt: skip
        assert words in " ".join(html.split())


def test_a_report_of_pfdrl_shows_every_number(written, made):
    html = written["energy"].read_text()
    cells = ["4.000", "2.500", "62.50", "29.25", "31.50", "1,210", "1.25", "2.25"]
    cells.append("81.25")
    assert rows(html).count(["2", *cells]) == 1
    assert [f"home {made.BAD}", *cells] in rows(html)
    assert [made.BAD, *cells, "3.250"] in rows(html)
    assert ["tv", *cells, ""] in rows(html)
    # Without standby energy, the cell is empty.
    assert [made.BAD, *cells[:2], "", *cells[3:]] in rows(html)
    for words in ("62.5 % of the standby energy of 4 devices: 2.50 of 4.00 kWh",
                  "29.2 cents at 11.5 cents per kWh, or 31.5 cents", "off in 1.25 % of",
                  "to standby in 2.25 %. 81.25 % of all", "the next 20 minutes (",
                  "accuracy of 75.0 %, an MAE of 11.50 W and an RMSE of 22.5 W",
                  "87.5 %",
                  "MASE is 2.125", "for 4 devices", "b, c and 1 more",
                  "from 1.5 others of its kind on average; 3 receive", "1 home joined",
                  "reached by day 2;", "them, never, because nothing was saved.",
                  "1 of the 2 devices that joined", "1 training days · 1 held-out",
                  "20 minutes at a time", "no privacy guarantee"):  # fmt: skip
        assert words in " ".join(html.split())


def test_a_curve_of_budgets_shows_every_number(written):
    assert rows(written["budget"].read_text())[1:] == [
        ["raw windows", "97.5", "92.5"],
        ["0.5", "62.5", "52.5"],
        ["500", "87.5", "57.5"],
    ]


def test_a_sweep_shows_every_number(written, made):
    html = written["sweep"].read_text()
    assert [f"★ alpha 0.1 {made.BAD}", "87.5 ± 12.5", "62.5"] in rows(html)
    assert "2 runs of the sweep diverged" in html and "(epoch 4)" in html


def test_parts_of_other_pages():
    picture = figures.Picture(b"png", "a <b>")
    body = page.section("1 < 2", "<p>x</p>" + page.figure("f", picture))
    html = page.document("<t>", "<k>", body + page.table(("<h>",), [(("<c>", "key"),)]))
    assert not Page(html).open and type(body) is str
    for part in ("<h2>1 &lt; 2</h2>", "<p>x</p>", 'alt="a &lt;b&gt;"', "cG5n", "&lt;t",
                 "&lt;k", "&lt;h", '<td class="key">&lt;c&gt;</td>'):  # fmt: skip
        assert part in html
    assert "<thead>" not in page.table((), [("1",)])


def test_words_in_a_second_column_stand_on_the_left_and_numbers_on_the_right():
    worded = lambda *rows: 'class="worded"' in page.table((), rows)
    assert worded(("side", "judge"), ("side", "0.5"))
    assert worded(("side", ("forest", "key")))
    assert not worded(("mean", "0.5"), ("std", "-1e-3"), ("range", "none"))
    assert not worded(("alone",))
    assert ".worded td:nth-child(2) { text-align: left" in page.document("", "", "")
    assert (
        sweep.panels([], {"utility": {"attribute": "a"}, "intrusive": {"b": 1}}) == {}
    )
