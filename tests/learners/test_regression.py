"""Tests of clients that predict a number: closed form, and errors in its unit."""

import dataclasses
import functools
import json

import numpy as np
import pytest

import jaxanon as ja
from jaxanon import datasets, learners, methods
from jaxanon.datasets import Data, Spec, Windows
from jaxanon.datasets import spec as datasets_spec
from jaxanon.datasets.targets import Target, moments
from jaxanon.evaluation import anonymizers, federated
from jaxanon.learners.learner import loss_of, population_of
from jaxanon.training import run_folder, trainer

SHIFT, SCALE = 240.0, 30.0  # Mean and std of the target, in W.
# Full batches, so that descent ends at the least-squares solution.
LINEAR = {"model": "mlp", "hidden_sizes": (), "batch_size": 24, "learning_rate": 0.1}


@pytest.fixture(scope="module")
def data():
    """Returns three clients with 32 windows and a noisy linear target."""
    random = np.random.default_rng(0)
    windows = (3 + 2 * random.normal(size=(96, 2, 2))).astype(np.float32)
    slope = np.array([0.0, 1.0, -1.0, 0.5])
    power = windows.reshape(96, 4) @ slope + 0.5 * random.normal(size=96)
    power = (SHIFT + SCALE * power).astype(np.float32)
    subject = np.repeat(np.arange(3, dtype=np.int32), 32)
    labels = {"power": power, "subject": subject}
    both, test = Windows(windows, labels), np.arange(96) % 32 >= 24
    train = datasets_spec.take(both, ~test)
    mean, std = moments(train.labels["power"])
    target = Target(unit="W", channel="b", samples=2, mean=mean, std=std)
    spec = Spec(
        name="linear",
        preset="file",
        channels=("a", "b"),
        units=("W", "W"),
        rate_hz=1.0,
        time=2,
        public="power",
        private=("subject",),
        classes={"subject": ("x", "y", "z")},
        mean=tuple(train.windows.mean((0, 1)).tolist()),
        std=tuple(train.windows.std((0, 1)).tolist()),
        split="given",
        targets={"power": target},
    )
    return Data(spec, train, datasets_spec.take(both, test))


def least_squares(data):
    """Returns the closed form's predictions of the test windows, in W."""
    rows = lambda side: np.c_[np.ones(len(side.windows)), side.windows.reshape(-1, 4)]
    found = np.linalg.lstsq(rows(data.train), data.train.labels["power"], rcond=None)
    return rows(data.test) @ found[0]


@pytest.fixture(scope="module")
def run(data, tmp_path_factory):
    learner = learners.build("fedavg", data.spec, local_steps=1, **LINEAR)
    out = tmp_path_factory.mktemp("runs") / "linear"
    return trainer.train(learner, data, epochs=250, output_dir=out, progress=False)


@pytest.mark.slow
def test_federated_averaging_reaches_the_closed_form(run, data):
    """Checks that one step of equal clients equals one step on pooled data."""
    told = federated.predictions(run, data)
    assert told.dtype == np.float32
    np.testing.assert_allclose(told, least_squares(data), atol=0.02 * SCALE)


@pytest.mark.slow
def test_so_does_one_model_of_all_windows(data):
    learner = learners.build(
        "centralized", data.spec, local_steps=10, **LINEAR | {"batch_size": 72}
    )
    run = trainer.train(learner, data, epochs=40, progress=False)
    told = federated.predictions(run, data)
    np.testing.assert_allclose(told, least_squares(data), atol=0.02 * SCALE)


@pytest.mark.slow
def test_the_report_is_in_the_targets_unit(run, data):
    report = ja.evaluate(run, data)
    told, truth = least_squares(data), data.test.labels["power"]
    rows = report["clients"]
    for subject, row in enumerate(rows):
        own = data.test.labels["subject"] == subject
        error = told[own] - truth[own]
        spread = truth[own] - truth[own].mean()
        r2 = 1 - np.sum(error**2) / np.sum(spread**2)
        assert row["r2"] == pytest.approx(r2, abs=0.02)
        assert row["mae"] == pytest.approx(np.abs(error).mean(), abs=0.02 * SCALE)
        assert row["rmse"] == pytest.approx(np.sqrt((error**2).mean()), rel=0.05)
    for name in ("r2", "mae", "rmse"):
        each = [row[name] for row in rows]
        assert report["mean"][name] == pytest.approx(np.mean(each))
        assert report["std"][name] == pytest.approx(np.std(each))
        assert report["median"][name] == sorted(each)[1]
    lowest = min(rows, key=lambda row: row["r2"])
    assert report["worst"] == lowest["subject"]
    pooled = 1 - np.sum((told - truth) ** 2) / np.sum((truth - truth.mean()) ** 2)
    assert report["pooled"]["r2"] == pytest.approx(pooled, abs=0.02)
    assert report["unit"] == "W" and report["new_clients"] is None
    assert 0.8 < report["mean"]["r2"] < 1 and report["traffic"]["up"] == 4 * 5
    middle = sorted(rows, key=lambda row: row["r2"])[1]["subject"]
    own = data.test.labels["subject"] == "xyz".index(middle)
    assert report["example"]["subject"] == middle
    assert report["example"]["truth"] == truth[own].tolist()


@pytest.mark.slow
def test_what_needs_no_model_is_told_beside_it(run, data):
    report = ja.evaluate(run, data)
    truth, subject = data.test.labels["power"], data.test.labels["subject"]
    own = lambda side, who: side.labels["subject"] == who
    for who in range(3):
        mean = data.train.labels["power"][own(data.train, who)].mean()
        assert federated.baselines_of(data)["mean"][
            own(data.test, who)
        ] == pytest.approx(mean)
    last = data.test.windows[:, :, 1].mean(axis=1)  # Channel b, two samples.
    errors = [np.abs(last - truth)[subject == who].mean() for who in range(3)]
    found = report["baselines"]["persistence"]
    assert found["mean"]["mae"] == pytest.approx(np.mean(errors), rel=1e-5)
    assert found["pooled"]["mae"] == pytest.approx(np.abs(last - truth).mean())
    assert report["baselines"]["mean"]["mean"]["r2"] <= 0  # No client beats its mean.
    target = dataclasses.replace(data.spec.target, channel="")
    spec = dataclasses.replace(data.spec, targets={"power": target})
    assert list(federated.baselines_of(data._replace(spec=spec))) == ["mean"]


def test_classes_are_no_numbers(data):
    target = dict(classes=data.spec.classes | {"act": ("a", "b")}, public="act")
    spec = dataclasses.replace(data.spec, **target)
    with pytest.raises(ValueError, match="must be a number, got 'act' with classes"):
        federated.baselines_of(data._replace(spec=spec))


def test_a_client_that_has_just_joined_has_no_mean_of_its_own(data):
    rest = datasets_spec.take(data.train, data.train.labels["subject"] != 1)
    found = federated.baselines_of(data._replace(train=rest))["mean"]
    joined = data.test.labels["subject"] == 1
    np.testing.assert_allclose(found[joined], data.spec.target.mean)
    told = data.test.labels["power"].astype(np.float64)
    report = federated.regressed(data._replace(train=rest), told)
    assert report["new_clients"] == 1.0
    assert [row["new"] for row in report["clients"]] == [False, True, False]


def test_a_client_whose_target_never_changes_is_defined(data):
    truth = data.test.labels["power"].copy()
    truth[data.test.labels["subject"] == 2] = 100.0
    labels = data.test.labels | {"power": truth}
    flat = data._replace(test=data.test._replace(labels=labels))
    right = federated.regressed(flat, truth)
    assert [row["r2"] for row in right["clients"]] == [1.0, 1.0, 1.0]
    wrong = federated.regressed(flat, truth + 1)
    assert wrong["clients"][2]["r2"] == 0.0 and wrong["clients"][2]["mae"] == 1.0


def test_targets_and_losses_are_standardised(data):
    found = population_of(data.spec, datasets.by_client(data.train))
    y = np.asarray(found.rows["y"])
    assert abs(y[found.mask].mean()) < 1e-5 and abs(y[found.mask].std() - 1) < 1e-5
    power = data.train.labels["power"]
    np.testing.assert_allclose(
        y[1], (power[24:48] - power.mean()) / power.std(), atol=1e-4
    )
    some = datasets_spec.take(data.train, np.arange(72) != 30)
    found = population_of(data.spec, datasets.by_client(some))
    assert not found.mask[1, 23] and found.rows["y"][1, 23] == 0.0
    network = learners.build("fedavg", data.spec, **LINEAR).predict.network
    layers = {"dense_1": {"kernel": np.zeros((4, 1)), "bias": np.full(1, 0.5)}}
    batch = {"x": np.zeros((2, 2, 2)), "y": np.array([0.0, 2.0])}
    # (0.5 - 0)² and (0.5 - 2)².
    np.testing.assert_allclose(
        loss_of(network, data.spec)(layers, batch, None), [0.25, 2.25]
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["atlas", "ditto", "fedrep"])
def test_others_predict_numbers_too(name, data):
    own = {
        "atlas": {"max_examples": 32, "max_rounds": 2},
        "fedrep": {"shared_layers": 1},
    }
    small = {"model": "mlp", "hidden_sizes": (3,), "local_steps": 1, "batch_size": 4}
    learner = learners.build(name, data.spec, **small, **own.get(name, {}))
    run = trainer.train(learner, data, epochs=2, progress=False)
    assert np.isfinite(ja.evaluate(run, data)["mean"]["rmse"])


@pytest.mark.slow
def test_a_run_is_found_again_and_draws_its_page(run, data):
    found = run_folder.open_run(run.folder)
    assert found.spec == data.spec
    report = ja.evaluate(found, data)
    assert json.loads((run.folder / "report.json").read_text()) == report
    assert (run.folder / "clients.svg").read_bytes().startswith(b"<?xml")
    page = (run.folder / "report.html").read_text()
    assert "fedavg on linear: predict power" in page and "<th" in page
    assert "(persistence): R²" in page and "The MAE is" in page


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda y: y.astype(np.int32), r"labels\['power'\] must be float\[72\], one"),
        (lambda y: y[:9], r"must be float\[72\], one per window, got float32\[9\]"),
        (lambda y: y + np.where(np.arange(72) == 3, np.nan, 0), "infinity in 1 of 72"),
    ],
)
def test_training_refuses_targets_that_are_none(change, message, data):
    labels = data.train.labels | {"power": change(data.train.labels["power"])}
    spoilt = data._replace(train=data.train._replace(labels=labels))
    learner = learners.build("fedavg", data.spec, **LINEAR)
    with pytest.raises(ValueError, match=message):
        trainer.train(learner, spoilt, epochs=1, progress=False)


@pytest.mark.parametrize("name", methods.NAMES)
def test_anonymizers_refuse_a_number_and_name_the_remedy(name, data):
    message = "target 'power' of 'linear'.*predict a target by a lear"
    needed = {"classes_to_hide": ("a",)} if name == "occupancy_gan" else {}
    builders = getattr(methods, name), functools.partial(methods.build, name)
    for build in builders:
        with pytest.raises(ValueError, match=message):
            build(data.spec, **needed)


def test_so_do_attackers_and_sweeps(run, data):
    with pytest.raises(
        ValueError, match="must have classes, .* got the target 'power'"
    ):
        ja.sweep("blinder", data, progress=False)
    fewer = data._replace(test=data.train)
    with pytest.raises(
        ValueError, match="must have classes, .* got the target 'power'"
    ):
        anonymizers.train_raw_classifiers(fewer)
    with pytest.raises(TypeError, match="fedavg cannot anonymize windows"):
        run.anonymize(None, data.test.windows)
