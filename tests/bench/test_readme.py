"""Tables of the README and the docs say what the rows in bench/results say."""

import json
import pathlib
import re
import shutil

import pytest

ROOT = pathlib.Path(__file__).parents[2]
RESULTS = ROOT / "bench" / "results"
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def tables(bench):
    return bench("readme.command")


def test_no_table_is_outdated(tables):
    pages = tables.pages(ROOT)
    assert ROOT / "README.md" in pages
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert tables.filled(text, RESULTS) == (text, []), page


def test_every_function_makes_a_table(tables):
    for name, function in tables.TABLES.items():
        lines = [line for line in function(RESULTS).splitlines() if line[:1] == "|"]
        assert len({line.count(" | ") for line in lines}) == 1, name
        assert len(lines) > 3 and re.fullmatch(r"\|( --- \|)+", lines[1]), name


def test_a_changed_row_changes_the_table(tables, tmp_path):
    results = shutil.copytree(RESULTS, tmp_path / "results")
    path = results / "anonymizers.json"
    rows = json.loads(path.read_text())
    [row] = [
        row for row in rows if (row["case"], row["system"]) == ("MotionSense", "ORF")
    ]
    row["public_accuracy"] = [12.3, 0.4]
    path.write_text(json.dumps(rows))
    new, old = tables.filled(TEXT, results)
    assert old == ["front door"] and "| 12.3 ± 0.4 |" in new
    assert tables.filled(new, results) == (new, [])


def test_an_unknown_table_is_refused(tables):
    with pytest.raises(ValueError, match="tables must be among .*'unknown'"):
        tables.filled(TEXT.replace("table: front door", "table: unknown"), RESULTS)


def test_a_missing_row_is_named(bench):
    found = bench("harness.results").Rows(RESULTS, "meta_cpu")
    with pytest.raises(LookupError, match="0 rows 'nothing' of shapes ''"):
        found.row("nothing")
    with pytest.raises(LookupError, match="rows 'factored, 5 adversary steps'"):
        found.row("factored, 5 adversary steps")
