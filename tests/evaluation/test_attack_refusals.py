"""Attacks that a run or its data do not support raise errors early."""

from types import SimpleNamespace

import numpy as np
import pytest

from jaxanon.evaluation.anonymizers import evaluate


@pytest.mark.parametrize(
    ("attack", "message"),
    [
        ("inversion", r"'inversion' needs a run with client_loss\(...\), got 'x'"),
        ("fingerprint", r"'fingerprint' needs a run with choices\(...\), got 'x'"),
    ],
)
def test_an_attack_on_nothing_is_refused(cases, raw_classifiers, attack, message):
    run = cases.Run(lambda key, windows: pytest.fail("too late"))
    run.method = SimpleNamespace(name="x", config={})
    with pytest.raises(ValueError, match=message):
        evaluate(run, cases.data(), raw_classifiers=raw_classifiers, attacks=(attack,))


def relabelled(full, which, changes):
    """Returns the data with other labels of its training or test windows."""
    part = getattr(full, which)
    return full._replace(**{which: part._replace(labels=part.labels | changes)})


@pytest.mark.parametrize(
    ("attack", "which", "changes", "message"),
    [
        ("pairs", "test", {"subject": np.zeros(96, int)}, "at least 2 test.*got 1"),
        ("fingerprint", "test", {"subject": np.zeros(96, int)}, "test sub.*got 1; om"),
        (
            *("released", "test", {"side": np.arange(96) // 95}),
            "side class 1 has one test window, and the attacker needs",
        ),
        (
            *("pairs", "train", {"subject": np.arange(96) // 95}),
            "subject class 1 has one training window",
        ),
    ],
)
def test_what_data_cannot_tell_is_refused_at_the_door(
    cases, raw_classifiers, attack, which, changes, message
):
    own = relabelled(cases.data(), which, changes)
    run = cases.Run(lambda key, windows: pytest.fail("too late"))
    run.choices = lambda key, windows: pytest.fail("too late")
    with pytest.raises(ValueError, match=message):
        evaluate(run, own, raw_classifiers=raw_classifiers, attacks=(attack, "tree"))


def test_a_class_of_one_window_is_refused_at_the_door(cases, raw_classifiers):
    full = cases.data()
    side = np.where(np.arange(96) == 5, 1, 0)
    own = full._replace(
        train=full.train._replace(labels={**full.train.labels, "side": side})
    )
    run = cases.Run(lambda key, windows: pytest.fail("too late"))
    with pytest.raises(ValueError, match="side class 1 has one training window"):
        evaluate(
            run, own, raw_classifiers=raw_classifiers, attacks=("tree",), share=1.0
        )
