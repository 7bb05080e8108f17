"""Summaries of reports: drawn shapes, missing numbers and differing text."""

import math
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxanon.evaluation import summary

numbers = st.one_of(st.none(), st.integers(-9, 9), st.floats(-9, 9))
TREES = st.recursive(
    st.sampled_from(["number", "text", "flag", "none"]),
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        st.lists(inner, max_size=3),
    ),
    max_leaves=6,
)
LEAVES = {
    "number": numbers,
    "text": st.sampled_from(["mlp", "forest"]),
    "flag": st.booleans(),
    "none": st.none(),
}


def filled(draw, tree):
    if isinstance(tree, dict):
        return {name: filled(draw, one) for name, one in tree.items()}
    if isinstance(tree, list):
        return [filled(draw, one) for one in tree]
    return draw(LEAVES[tree])


def expected(tree, values):
    """Computes the same with the statistics module, leaf by leaf."""
    if isinstance(tree, dict):
        return {k: expected(one, [v[k] for v in values]) for k, one in tree.items()}
    if isinstance(tree, list):
        return [expected(one, [v[i] for v in values]) for i, one in enumerate(tree)]
    known = [value for value in values if value is not None]
    if tree == "number" and known:
        spread = statistics.stdev(known) if len(known) > 1 else None
        return {"mean": statistics.fmean(known), "std": spread}
    return values[0] if values.count(values[0]) == len(values) else values


def near(found, wanted):
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys()
        for name in wanted:
            near(found[name], wanted[name])
    elif isinstance(wanted, list):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            near(one, other)
    elif isinstance(wanted, float):
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-6)
    else:
        assert found == wanted


@settings(max_examples=100, deadline=None)
@given(st.data(), TREES, st.integers(1, 4))
def test_reports_are_put_together_leaf_by_leaf(data, tree, count):
    tree = {"report": tree}
    reports = [filled(data.draw, tree) for _ in range(count)]
    near(summary.aggregate(reports), expected(tree, reports))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-9, 9), max_size=3), st.sampled_from([math.nan, math.inf]))
def test_who_diverged_leaves_no_mean(others, diverged):
    found = summary.aggregate([{"loss": one} for one in [*others, diverged]])
    assert math.isnan(found["loss"]["mean"])
    spread = found["loss"]["std"]
    assert math.isnan(spread) if others else spread is None


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(
        [({"a": 1}, {"b": 1}), ([1], [1, 2]), ({"a": 1}, [1]), ([1], 1), ({}, 1)]
    ),
    st.booleans(),
)
def test_reports_of_other_shapes_are_refused_by_their_place(pair, swapped):
    pair = pair[::-1] if swapped else pair
    with pytest.raises(ValueError, match=r"differ in report\.x, got"):
        summary.aggregate([{"x": one} for one in pair])
