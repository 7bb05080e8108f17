"""Tests of the repository of inferences and of the attributes that label them."""

import pytest

from jaxanon import datasets
from jaxanon.methods.deeprotect import inferences


def test_every_attribute_that_labels_an_inference_is_one_of_a_data_set():
    known = {name for row in datasets.describe() for name in row["attributes"]}
    named = {name for each in inferences.REPOSITORY for name in each.attributes}
    assert named <= known and len(inferences.REPOSITORY) == 11
    assert all(each.sensors and each.tells for each in inferences.REPOSITORY)


@pytest.mark.parametrize(
    ("name", "known", "want"),
    [
        ("activity mode detection", ["subject", "activity"], "activity"),
        ("Activity-Mode-Detection", ["exercise", "side"], "exercise"),
        ("behavior-based authentication", ["activity", "subject"], "subject"),
        ("device placement", ["side"], "side"),
        ("stress", ["stress"], "stress"),  # The name of an attribute takes precedence.
    ],
)
def test_a_name_means_an_attribute(name, known, want):
    assert inferences.attribute(name, known) == want


def test_names_that_mean_nothing():
    with pytest.raises(ValueError, match="neither an attribute .* nor an inference"):
        inferences.attribute("shoe size", ["activity"])
    with pytest.raises(ValueError, match="the data have no labels of 'stress'"):
        inferences.attribute("stress", ["activity"])
    with pytest.raises(ValueError, match="name must be one of .* got 'mood'"):
        inferences.get("mood")
