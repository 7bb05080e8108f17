"""Ranges in a grid of the command line, several axes in a word, names Python keeps."""

import pytest

from jaxanon.cli import arguments
from jaxanon.methods.dysan.sanitizers import DySanConfig


def test_a_range_has_both_ends_and_exact_decimals():
    tenths = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]  # 0.1 + 0.2 is not 0.3.
    assert arguments.parse(("alpha=0.1:0.9:0.1",), DySanConfig) == {"alpha": tenths}
    # The last that does not go beyond the end; downwards; beside single values.
    words = ("inner_steps=1:10:4", "alpha=0.5:0.3:-0.1,0,1:1:1")
    assert arguments.parse(words, DySanConfig) == {
        "inner_steps": [1, 5, 9],
        "alpha": [0.5, 0.4, 0.3, 0.0, 1.0],
    }


def test_axes_may_share_a_word():
    words = ("alpha=0.1,0.2,lambda=0.3,goal=chance,published,filters=(1,2),(3,4)",)
    assert arguments.parse(words, DySanConfig) == {
        "alpha": [0.1, 0.2],
        "lambda_": [0.3],
        "goal": ["chance", "published"],
        "filters": [(1, 2), (3, 4)],
    }
    assert arguments.parse(("lambda_=0.5",), DySanConfig) == {"lambda_": [0.5]}


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("alpha=1:0:0.1", "got '1:0:0.1'"),
        ("alpha=0:1:0", "with a step from the first toward"),
        ("alpha=a:b:c", "got 'a:b:c'"),
        ("alpha=nan:1:1", "got 'nan:1:1'"),
        ("alpha=0:inf:1", "got '0:inf:1'"),
        ("alpha=0:1", "must have values such as 0.6, got '0:1'. FIRST:LAST:STEP is"),
        ("inner_steps=1:2:0.5", "must have values such as 1, got 1.0"),
        ("alfa=0:8:1", "must name settings, got 'alfa'; the settings are ['alpha', "),
        ("alfa=0:8:1", "Did you mean 'alpha'?"),
        ("lambda=0.1,lambda_=0.2", "each setting once, got 'lambda_' twice"),
    ],
)
def test_what_is_no_range(word, message):
    with pytest.raises(ValueError) as stopped:
        arguments.parse((word,), DySanConfig)
    assert message in str(stopped.value)
