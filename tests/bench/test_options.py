"""Options that name what there is not end a benchmark before it begins."""

import sys

import jax
import numpy as np
import pytest


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
    module = bench(script)
    monkeypatch.setattr(sys, "argv", [script, "--smoke", f"--{option}", "nothing"])
    begun = lambda **given: pytest.fail("It began.")
    monkeypatch.setattr(module._timing, "Report", begun)
    with pytest.raises(SystemExit, match=rf"--{option} must be of .*\['nothing'\]"):
        module.main()


def test_cohorts_are_chosen_by_their_size(bench):
    meta = bench("meta")
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
        assert "compilation_cache" not in bench("_timing").about()
        jax.config.update("jax_compilation_cache_dir", str(tmp_path))
        assert bench("_timing").about()["compilation_cache"]
    finally:
        jax.config.update("jax_compilation_cache_dir", kept)


def test_names_that_there_are_are_taken(bench):
    among = bench("_timing").among
    among("only", ["a", "b"], ("a", "b", "c"))
    with pytest.raises(SystemExit, match=r"--only must be of \['a'\], got \['b'\]"):
        among("only", ["a", "b"], ("a",))
