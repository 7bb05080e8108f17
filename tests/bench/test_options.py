"""Options that name what there is not end a benchmark before it begins."""

import sys

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


def test_names_that_there_are_are_taken(bench):
    among = bench("_timing").among
    among("only", ["a", "b"], ("a", "b", "c"))
    with pytest.raises(SystemExit, match=r"--only must be of \['a'\], got \['b'\]"):
        among("only", ["a", "b"], ("a",))
