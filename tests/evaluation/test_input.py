"""Evaluations reject invalid input with a reason."""

import dataclasses

import numpy as np
import pytest

from jaxanon.evaluation.anonymizers import (
    evaluate,
    evaluate_each,
    evaluate_many,
    train_raw_classifiers,
)


def refuses(cases, message, own, anonymize=None, **options):
    run = cases.Run(anonymize or (lambda key, windows: pytest.fail("too late")))
    with pytest.raises(ValueError, match=message):
        evaluate(run, own, **{**cases.QUICK, **options})


def changed(full, part, windows=None, labels=None):
    """Returns the data with windows or some labels of one part replaced."""
    own = getattr(full, part)
    windows = own.windows if windows is None else windows
    labels = {**own.labels, **(labels or {})}
    return full._replace(**{part: type(own)(windows, labels)})


@pytest.mark.parametrize(
    ("part", "shape", "message"),
    [
        ("train", (96, 16), r"data.train.windows .* float\[N, 16, 3\] .*\(96, 16\)"),
        ("test", (96, 16, 2), r"data.test.windows must be .*\(96, 16, 2\)"),
        ("test", (96, 15, 3), r"data.test.windows must be .*\(96, 15, 3\)"),
        ("test", (0, 16, 3), r"data.test.windows must hold at least one .* got none"),
        ("train", (0, 16, 3), r"data.train.windows must hold at least one .* got none"),
        ("test", (9, 16, 3), r"must hold at least 10 windows for mutual .*, got 9"),
    ],
)  # fmt: skip
def test_windows_of_a_wrong_shape(cases, part, shape, message):
    refuses(cases, message, changed(cases.data(), part, windows=np.zeros(shape)))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_windows_that_are_not_numbers(cases, value):
    full = cases.data()
    windows = full.train.windows.copy()
    windows[7, 3, 1] = value
    message = r"data.train.windows must be finite, .* in 1 of 96 .* window 7; remove"
    refuses(cases, message, changed(full, "train", windows=windows))


@pytest.mark.parametrize(
    ("part", "attribute", "labels", "message"),
    [
        ("train", "side", np.full(96, 2), r"'side'\] must be in \[0, 2\), got 2"),
        ("test", "activity", np.full(96, -1), r"'activity'\] must be in \[0, 2\)"),
        ("test", "subject", np.full(96, 3), r"'subject'\] must be in \[0, 3\), got 3"),
        ("test", "side", np.zeros(5, int), r"must be int\[96\], one per window.*\[5\]"),
        ("test", "side", np.zeros(96), r"must be int\[96\].*float64\[96\]"),
    ],
)
def test_labels_out_of_range(cases, part, attribute, labels, message):
    refuses(cases, message, changed(cases.data(), part, labels={attribute: labels}))


def test_labels_that_are_missing(cases):
    full = cases.data()
    labels = {k: v for k, v in full.test.labels.items() if k != "side"}
    own = full._replace(test=full.test._replace(labels=labels))
    refuses(cases, r"include attribute 'side'.*got \['activity', 'subject'\]", own)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attacks": ("oracle",)}, r"'tree'\] and .*'recordings'\], got 'oracle'"),
        ({"attacks": ()}, r"attacks must be a tuple with at least one of"),
        ({"attacks": "mlp"}, r"attacks must be a tuple .* got 'mlp'"),
    ],
)
def test_attackers_that_there_are_not(cases, options, message):
    refuses(cases, message, cases.data(), **options)


@pytest.mark.parametrize(
    ("share", "message"),
    [
        (0.01, r"share 0.01 of the 48 training windows of side class 0 is 0"),
        (1.5, r"share must be in \(0, 1\], got 1.5"),
    ],
)
def test_shares_that_do_not_do(cases, share, message):
    refuses(cases, message, cases.data(), cases.identity, share=share)


def test_output_that_does_not_do(cases):
    cut = lambda key, windows: windows[:, :4]
    message = r"keep the shape .*\(96, 16, 3\), got \(96, 4, 3\)"
    refuses(cases, message, cases.data(), cut)
    lost = lambda key, windows: windows * np.nan
    refuses(cases, "run.anonymize's output must be finite", cases.data(), lost)


def test_classifiers_of_other_data(cases, raw_classifiers):
    less = raw_classifiers._replace(infer={"side": raw_classifiers.infer["side"]})
    message = r"raw_classifiers must include \['activity', 'subject'\]; create them "
    refuses(cases, message, cases.data(), raw_classifiers=less)


def test_many_refuses_nothing_and_one_folder(cases):
    with pytest.raises(ValueError, match="runs must hold at least one run"):
        evaluate_many([], cases.data())
    with pytest.raises(ValueError, match="runs must hold at least one run"):
        evaluate_each([], cases.data(), [])
    with pytest.raises(ValueError, match=r"one seed for each of 1 runs, got \[0, 1\]"):
        evaluate_each([cases.Run(cases.identity)], cases.data(), [0, 1])
    with pytest.raises(ValueError, match="output_dir must be None"):
        evaluate_many([cases.Run(cases.identity)], cases.data(), output_dir="somewhere")


def test_a_folder_s_name_is_no_run(cases):
    with pytest.raises(TypeError, match="got str; open a run folder with ja.open_run"):
        evaluate("runs/a", cases.data())


def test_another_split_of_what_the_run_was_trained_on(cases):
    full = cases.data()
    run = cases.Run(lambda key, windows: pytest.fail("too late"))
    run.spec = dataclasses.replace(full.spec, mean=(1.0, 2.0, 3.5))
    with pytest.raises(
        ValueError, match="data must be the split .* toy split by .* into other"
    ):
        evaluate(run, full, **cases.QUICK)
    # The run was not trained on this data set.
    run.spec = dataclasses.replace(run.spec, name="other")
    with pytest.raises(pytest.fail.Exception, match="too late"):
        evaluate(run, full, **cases.QUICK)


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_seeds_that_would_be_another_s(cases, seed):
    refuses(
        cases, "seed must be between 0 and 4294967295, got", cases.data(), seed=seed
    )
    with pytest.raises(ValueError, match="seed must be between 0 and"):
        train_raw_classifiers(cases.data(), seed=seed)


def test_files_of_one_name_may_be_of_different_people(cases):
    """The caller is responsible for a given split."""
    full = cases.data()
    run = cases.Run(lambda key, windows: pytest.fail("too late"))
    spec = dataclasses.replace(full.spec, split="given")
    run.spec = dataclasses.replace(spec, mean=(9.0, 2.0, 3.0))
    with pytest.raises(pytest.fail.Exception, match="too late"):
        evaluate(run, full._replace(spec=spec), **cases.QUICK)
