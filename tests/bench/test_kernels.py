"""Tests of rows on kernels: required fields, by hand and from a run of one area."""

import datetime
import json

import pytest

NEEDED = {"operations", "bytes", "seconds", "date", "device", "unit", "shapes"}


@pytest.fixture
def timing(bench, monkeypatch):
    """Returns the module for a machine with 200 operations and 10 bytes per second."""
    module = bench("harness.timing")
    monkeypatch.setattr(module, "matmul_rate", lambda n: 200.0)
    monkeypatch.setattr(module, "copy_bandwidth", lambda num_bytes: 10.0)
    return module


def test_shares_of_the_limits(timing):
    report = timing.KernelReport(smoke=True)
    report.add(
        "clip", 5.0, "ms", "8 x 4", operations=100, bytes=40, seconds=5, least_bytes=20
    )
    row = report.rows[-1]
    # 100 operations in 5 s are 20 of 200 per second; 40 bytes are 8 of 10, 20 are 4.
    assert row["share_of_matmul_rate"] == 0.1
    assert row["share_of_copy_bandwidth"] == 0.8
    assert row["share_of_copy_bandwidth_by_least_bytes"] == 0.4
    assert row["date"] == datetime.date.today().isoformat()


@pytest.mark.parametrize("missing", ["operations", "bytes", "seconds"])
def test_no_row_without_its_work(timing, missing):
    work = {"operations": 1, "bytes": 1, "seconds": 1}
    del work[missing]
    with pytest.raises(TypeError, match=missing):
        timing.KernelReport(smoke=True).add("x", 1.0, "ms", "1", **work)


def test_limits_are_reached_by_what_measures_them(timing):
    rows = {row["name"]: row for row in timing.KernelReport(smoke=True).rows}
    assert rows["matmul rate"]["share_of_matmul_rate"] == pytest.approx(1)
    assert rows["copy bandwidth"]["share_of_copy_bandwidth"] == pytest.approx(1)


def test_says_when_fresh_memory_is_slow(timing, monkeypatch, capsys):
    monkeypatch.setenv("GLIBC_TUNABLES", "")
    timing.KernelReport(smoke=True)
    assert "no huge pages" in capsys.readouterr().out
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")
    report = timing.KernelReport(smoke=True)
    assert "no huge pages" not in capsys.readouterr().out
    assert report.rows[1]["huge_pages"]


def test_a_run_that_is_stopped_keeps_its_rows_and_replaces_none(timing, tmp_path):
    path, part = tmp_path / "rows.json", tmp_path / "rows.json.part"
    path.write_text("[]")
    report = timing.Report(path, smoke=True)
    report.add("first", 1.0, "ms", "1")
    assert json.loads(path.read_text()) == []
    limits_and_first = json.loads(part.read_text())
    assert [row["name"] for row in limits_and_first[2:]] == ["first"]
    report.add("second", 2.0, "ms", "1")
    report.write()
    assert not part.exists()
    assert json.loads(path.read_text()) == report.rows and len(report.rows) == 4


def test_every_row_of_an_area_has_its_work(timing, bench):
    report = timing.KernelReport(smoke=True)
    bench("kernels.aggregation").rows(report, smoke=True)
    assert len(report.rows) == 9
    for row in report.rows:
        assert NEEDED < set(row)
        assert row["share_of_copy_bandwidth"] > 0 and row["share_of_matmul_rate"] > 0


def test_a_clipped_sum_reads_twice_and_need_read_once(timing, bench):
    clipping = bench("kernels.clipping")
    took = timing.Timed(1.0, 0.0, None)
    # 8 rows of 4 float32 numbers are 128 bytes, their sum 16.
    work = clipping._work(32, 4, 4, took)
    assert (work["bytes"], work["least_bytes"]) == (2 * 128 + 16, 128 + 16)
    assert work["operations"] == 4 * 32
