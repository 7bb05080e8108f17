"""Tests that README's tables agree with the rows in bench/results."""

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


def test_no_table_is_old(tables):
    new, old = tables.filled(TEXT, RESULTS)
    assert old == [] and new == TEXT


def test_tables_are_of_their_width(tables):
    for _, name, table, _ in tables.BLOCK.findall(TEXT):
        lines = table.strip().splitlines()
        assert len({line.count(" | ") for line in lines}) == 1, name
        assert len(lines) > 3 and re.fullmatch(r"\|( --- \|)+", lines[1]), name


def test_a_figure_that_moves_is_seen_and_written(tables, tmp_path):
    results = shutil.copytree(RESULTS, tmp_path / "results")
    rows = json.loads((results / "layouts_cpu.json").read_text())
    assert rows  # If no table used them, none would be outdated.
    path = results / "meta_cpu.json"
    rows = json.loads(path.read_text())
    (row,) = [
        row for row in rows if row["name"] == "torch.func.vmap, 5 adversary steps"
    ]
    row["value"] = 12345.6
    path.write_text(json.dumps(rows))
    new, old = tables.filled(TEXT, results)
    assert old == ["meta-gradients"] and "| 12,346 |" in new
    assert tables.filled(new, results) == (new, [])


def test_a_table_that_nobody_makes_is_refused(tables):
    with pytest.raises(ValueError, match=r"README.md has the tables .*'of thin air'"):
        tables.filled(TEXT.replace("table: kernels", "table: of thin air"), RESULTS)


def test_a_row_that_is_not_there_is_named(bench):
    found = bench("harness.results").Rows(RESULTS, "meta_cpu")
    with pytest.raises(LookupError, match="0 rows 'nothing' of shapes ''"):
        found.row("nothing")
    with pytest.raises(LookupError, match="rows 'factored, 5 adversary steps'"):
        found.row("factored, 5 adversary steps")
