"""Tests of shared benchmark code: options, rates, memory, earlier answers."""

import argparse
import mmap
import sys

import jax
import numpy as np
import pytest

NAMES = {"dysan": "dysan", "meta": "blinder.meta_gradient"}


@pytest.mark.parametrize(
    ("script", "option"),
    [
        ("anonymizers", "case"),
        ("anonymizers", "only"),
        ("anonymizers", "further"),
        ("atlas", "case"),
        ("atlas", "only"),
        ("atlas", "question"),
        ("audit", "part"),
        ("blinder", "experiment"),
        ("blinder", "variant"),
        ("deeprotect", "part"),
        ("devices", "part"),
        ("dysan", "part"),
        ("edge", "part"),
        ("meta", "clients"),
        ("pfdrl", "case"),
        ("pfdrl", "question"),
        ("privatehub", "choice"),
        ("privatehub", "question"),
    ],
)
def test_a_name_that_there_is_not_is_refused(bench, monkeypatch, script, option):
    module = bench(NAMES.get(script, f"{script}.command"))
    monkeypatch.setattr(sys, "argv", [script, "--smoke", f"--{option}", "nothing"])
    begun = lambda **given: pytest.fail("It began.")
    monkeypatch.setattr(module.timing, "Report", begun)
    with pytest.raises(SystemExit, match=rf"--{option} must be one of .*\['nothing'\]"):
        module.main()


def test_cohorts_are_chosen_by_their_size(bench):
    meta = bench("blinder.meta_gradient")
    table = [meta.Case("factored", 14), meta.Case("reference", 2), meta.Case("x", 14)]
    assert meta.chosen(table, "14") == [table[0], table[2]]
    assert meta.chosen(table, "2,14") == table == meta.chosen(table, None)


def test_a_sweep_takes_windows_of_a_file(bench, tmp_path):
    windows = np.random.default_rng(0).normal(size=(100, 4, 1)).astype(np.float32)
    classes = np.arange(100) % 2
    np.savez(
        tmp_path / "windows.npz",
        windows=windows,
        activity=classes,
        gender=classes[::-1],
        subject=np.arange(100) // 25,
        split=(np.arange(100) >= 50).astype(int),
    )
    path = str(tmp_path / "windows.npz")
    found = bench("sweep").load(path, smoke=False)
    np.testing.assert_array_equal(found.train.windows, windows[:50])
    assert (found.spec.public, found.spec.private) == ("activity", ("gender",))
    assert len(bench("sweep").load(path, smoke=True).train.windows) == 2


def test_rows_say_where_programs_may_have_been_compiled_before(bench, tmp_path):
    kept = jax.config.jax_compilation_cache_dir
    try:
        jax.config.update("jax_compilation_cache_dir", None)
        assert "compilation_cache" not in bench("harness.timing").about()
        jax.config.update("jax_compilation_cache_dir", str(tmp_path))
        assert bench("harness.timing").about()["compilation_cache"]
    finally:
        jax.config.update("jax_compilation_cache_dir", kept)


def test_names_that_there_are_are_taken(bench):
    among = bench("harness.timing").among
    among("only", ["a", "b"], ("a", "b", "c"))
    with pytest.raises(SystemExit, match=r"--only must be one of \['a'\], got \['b'\]"):
        among("only", ["a", "b"], ("a",))


def test_of_atlas(bench, monkeypatch, tmp_path, capsys):
    atlas = bench("atlas.command")
    monkeypatch.setattr(sys, "argv", ["atlas", "--smoke", "--folder", str(tmp_path)])
    monkeypatch.setattr(atlas.ja, "load", raising(FileNotFoundError("nowhere")))
    atlas.main()
    assert "Skipping Smartwatch: nowhere" in capsys.readouterr().out
    monkeypatch.setattr(atlas.ja, "load", raising(ValueError("a file is damaged")))
    with pytest.raises(ValueError, match="a file is damaged"):
        atlas.main()


def test_of_pfdrl(bench, monkeypatch):
    streets = bench("pfdrl.homes")
    missing, damaged = FileNotFoundError("nowhere"), ValueError("a file is damaged")
    monkeypatch.setattr(streets.energy, "load_homes", raising(missing))
    with pytest.warns(UserWarning, match="tracebase is left out: nowhere"):
        assert streets.every(False, "tracebase", 0) == []
    monkeypatch.setattr(streets.energy, "load_homes", raising(damaged))
    with pytest.raises(ValueError, match="a file is damaged"):
        streets.every(False, "tracebase", 0)


def test_answers_of_before_stay(bench, tmp_path):
    answers = bench("harness.results")
    rows = [
        {"question": "q", "place": place, "x": ["a", "b"], "seed": seed, "value": 1.0}
        for place in ("room A", "room B")
        for seed in (0, 1)
    ]
    path = tmp_path / "found.json"
    asked = lambda json, smoke=False: argparse.Namespace(json=json, smoke=smoke)
    for args in (asked(None), asked(path)):
        assert answers.with_earlier(args, rows) == rows
    answers.keep(path, rows)
    anew = [rows[1] | {"value": 2.0}, rows[0] | {"seed": 2}]
    assert answers.with_earlier(asked(path), anew) == [rows[0], *rows[2:], *anew]
    assert answers.with_earlier(asked(path, smoke=True), anew) == anew


def raising(error):
    """Returns a function that raises ``error`` for any arguments."""

    def raise_it(*given, **settings):
        raise error

    return raise_it


def test_memory_that_was_given_back_is_forgotten(bench):
    work = bench("harness.memory")
    work.forget_held()
    start = work.held_mib()
    if not start:
        pytest.skip("only Linux reports the memory of a process")
    # Allocate from the system itself, since an allocator may reuse memory.
    pages = mmap.mmap(-1, 1 << 28)  # 256 MiB.
    np.frombuffer(pages, np.uint8)[:] = 1
    most = work.held_mib()
    pages.close()
    # The peak survives freed memory; the system counts pages in batches.
    assert work.held_mib() == pytest.approx(most, abs=2) and most > start + 200
    work.forget_held()
    assert work.held_mib() < most - 200


@pytest.fixture
def timing(bench):
    return bench("harness.timing")


def test_copy_bandwidth_keeps_to_one_piece_of_memory(timing, monkeypatch):
    passes, places = [], []

    def in_half_a_second(fn, *args, repeats):
        # Results stay alive, so memory is reused only if it was donated.
        for _ in range(1 + repeats):
            passes.append(jax.block_until_ready(fn(*args)))
            places.append(passes[-1].unsafe_buffer_pointer())
        return timing.Timed(0.5, 0.0, passes[-1])

    monkeypatch.setattr(timing, "timed", in_half_a_second)
    # Read once and written once, in half a second.
    assert timing.copy_bandwidth(1 << 20, repeats=3) == 4 << 20
    assert len(places) == 4 and len(set(places)) == 1
    assert passes[-1].nbytes == 1 << 20 and (passes[-1] == 4).all()
