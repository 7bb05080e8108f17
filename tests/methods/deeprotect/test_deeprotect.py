"""Tests of DEEProtect: training, modes and utility of the features."""

import dataclasses
import math

import jax
import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from jaxanon import datasets, kernels, methods
from jaxanon.core.method import Incompatible
from jaxanon.methods.deeprotect import release as releasing
from jaxanon.methods.deeprotect.config import in_range
from jaxanon.methods.deeprotect.release import apart as neighbours_apart
from jaxanon.models import deeprotect
from jaxanon.training import trainer

SMALL = {
    **{"low": (0.0, 0.0), "high": (20.0, 20.0), "radius": None},
    **{"hidden_sizes": (8, 4), "batch_size": 32},
}
PUBLISHED = {"curve": "sigmoid", "training": "greedy", "inference": "ridge"}


def with_(run, **settings):
    """Returns the run with other release settings."""
    config = dataclasses.asdict(run.method.config) | settings
    method = methods.deeprotect(run.spec, **config)
    return dataclasses.replace(run, method=method)


@pytest.fixture(scope="module")
def trained(data):
    method = methods.deeprotect(
        data.spec, **SMALL, mechanism="none", learning_rate=0.01
    )
    return trainer.train(method, data, epochs=150, progress=False)


def layers_of(run):
    return [run.state.params["layer 1"], run.state.params["layer 2"]]


@pytest.mark.slow
def test_training_leaves_orthonormal_rows_and_features_that_serve(trained, data):
    for layer in layers_of(trained):
        assert float(kernels.orthonormality_residual(layer.kernel)) < 1e-5
    first, last = (trained.history[number]["losses"] for number in (0, -1))
    assert last["reading, all layers"] < 0.3 * first["reading, all layers"]
    key = jax.random.key(1)
    safe = (
        trained.anonymize(key, data.train.windows),
        trained.anonymize(jax.random.key(2), data.test.windows),
    )
    # 4 of 32 values still predict the activity.
    assert forest(data, *safe, "activity") > 0.8


def forest(data, train, test, attribute):
    model = RandomForestClassifier(50, random_state=0)
    model.fit(train.reshape(len(train), -1), data.train.labels[attribute])
    return model.score(test.reshape(len(test), -1), data.test.labels[attribute])


@pytest.mark.slow
def test_less_privacy_is_less_noise_and_windows_stay_in_range(trained, data):
    windows, found = data.test.windows, []
    for epsilon in (0.5, 5.0, 500.0):
        run = with_(trained, mechanism="l2", epsilon=epsilon)
        safe = run.anonymize(jax.random.key(3), windows)
        assert safe.shape == windows.shape and safe.dtype == np.float32
        assert (safe >= -1e-3).all() and (safe <= 20 + 1e-3).all()
        found.append(
            np.abs(safe - trained.anonymize(jax.random.key(3), windows)).mean()
        )
    assert found[0] > found[1] > 10 * found[2] > 0


@pytest.mark.slow
def test_named_neighbours_are_bounded_and_others_are_not(data):
    """Tests the guarantee of mode "named" and its limits."""
    method = methods.deeprotect(data.spec, **SMALL, mode="named", mechanism="none")
    run = trainer.train(method, data, epochs=10, progress=False)
    named = run.state.params["named"]
    apart = neighbours_apart(method.config, named)
    directions = np.asarray(named.directions, np.float64)
    exact = kernels.relaxed_span_sensitivity(directions, 1.0)
    assert float(apart.l2) == pytest.approx(exact.l2, rel=1e-5)
    assert float(apart.l2) < math.sqrt(32) * 0.999  # Less than for any two windows.
    told = releasing.sensitivities(method.config, 2, 32, apart)
    encode = lambda x: deeprotect.encode(layers_of(run), np.float32(x)[None], "linear")[
        0
    ]
    for direction in directions:
        step = direction / np.abs(direction).max() / 2
        moved = encode(0.5 + step) - encode(0.5 - step)
        assert np.linalg.norm(moved) <= float(told["l2"]) * (1 + 1e-5)


@pytest.mark.slow
def test_a_private_class_that_is_not_linear_is_read_from_a_named_release(data):
    """The gender is an amplitude here, so no direction predicts or hides it."""
    settings = SMALL | {"mode": "named", "mechanism": "span", "epsilon": 0.5}
    run = trainer.train(
        methods.deeprotect(data.spec, **settings), data, epochs=60, progress=False
    )
    everything = {"mode": "everything", "mechanism": "privunit", "radius": 0.5}
    read = []
    for one in (run, with_(run, **everything)):
        safe = [
            one.anonymize(jax.random.key(seed), part.windows)
            for seed, part in enumerate(data[1:])
        ]
        read.append(forest(data, *safe, "gender"))
    assert read[0] > 0.75 and read[1] < 0.7


def test_each_layer_learns_in_its_turn(data, given_to_central, active_groups):
    settings = SMALL | {"training": "greedy", "epochs_per_layer": 2}
    components = given_to_central("deeprotect", **settings)["components"]
    first, second = ("layer 1", "useful 1"), ("layer 2", "useful 2")
    assert active_groups(components, 5) == [[first]] * 2 + [[second]] * 3
    tuned = given_to_central("deeprotect", **settings | {"training": "fine-tuned"})
    both = ("layer 1", "layer 2", "useful 1")
    turns = [[first]] * 2 + [[second]] * 2 + [[both]]
    assert active_groups(tuned["components"], 5) == turns
    (alone,) = given_to_central("deeprotect", **SMALL)["components"]
    assert alone.groups == ("layer 1", "layer 2", "useful 1")
    assert alone.when_fn is None


def test_the_loss_by_hand(data, given_to_central):
    settings = (
        SMALL
        | PUBLISHED
        | {"mechanism": "laplace"}
        | {"delta": 0.5, "extra_public": ("subject",)}
    )
    own = methods.deeprotect(data.spec, **settings).config
    given = given_to_central("deeprotect", **settings)
    params = given["init_fn"](jax.random.key(0))
    batch = given["room"].draw_fn(
        jax.random.key(1),
        given["room"].prepare_fn(datasets.by_client(data.train)),
        None,
    )
    hyper = {**given["hyper"], "mu": 0.7, "beta": 0.2, "weight_decay": 0.3, "rho": 0.2}
    found, (info, kept) = given["components"][1].loss_fn(
        jax.random.key(2), params, hyper, batch, None
    )
    unit = in_range(data.spec, own, batch.windows)
    layer, readers = params["layer 2"], params["useful 2"]
    seen = deeprotect.encode([params["layer 1"]], unit)
    features = deeprotect.encode([layer], seen)
    rebuilt = deeprotect.decode([layer], features)
    error = np.mean(np.sum((rebuilt - seen) ** 2, 1))
    read = sum(
        deeprotect.loss(readers[name], "ridge", rebuilt, batch.labels[name])
        for name in ("activity", "subject")
    )
    size = sum(np.sum(readers[name]["kernel"] ** 2) for name in readers)
    want = error + 0.7 * (read + 0.2 * size) + 0.3 * np.sum(layer.kernel**2)
    want += 0.5 * deeprotect.sparsity(features, 0.2)
    np.testing.assert_allclose(found, want, rtol=1e-5)
    assert kept == {} and info["rebuilding, layer 2"] == pytest.approx(error)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        (
            {"hidden_sizes": (8, 9)},
            ValueError,
            "hidden_sizes must not increase, got 9 features for 8",
        ),
        (
            {"hidden_sizes": (33,)},
            ValueError,
            "hidden_sizes must not increase, got 33 features for 32",
        ),
        (
            {"extra_public": ("age",)},
            ValueError,
            r"extra_public must be among \['subject'\], got 'age'",
        ),
        ({"extra_public": ("gender",)}, ValueError, "extra_public must be among"),
        ({"low": None}, ValueError, "low and high must both be given"),
        (
            {"low": (0.0,)},
            ValueError,
            "low must have one value for each of the 2 channels",
        ),
        (
            {"low": (0.0, 30.0)},
            ValueError,
            "low must be below high .* got 30.0 and 20.0",
        ),
        (
            {"mode": "named", "mechanism": "grid"},
            Incompatible,
            "mechanism 'grid' needs the sensitivity",
        ),
        (
            {"sensitivity": "published", "radius": 0.5},
            Incompatible,
            "radius must be None for sensitivity 'published'",
        ),
        (
            {"mode": "named", "mechanism": "privunit"},
            Incompatible,
            "'privunit' needs a radius in mode 'named'",
        ),
        (
            {"mechanism": "privunit", "radius": 0.5, "epsilon": 60.0},
            ValueError,
            "epsilon must give the cap .* got 60",
        ),
        (
            {"sensitivity": "published", "mechanism": "l2"},
            Incompatible,
            "sensitivity 'published' applies only to Laplace noise",
        ),
    ],
)
def test_says_what_was_wrong(data, settings, error, message):
    with pytest.raises(error, match=message):
        methods.deeprotect(data.spec, **SMALL | {"mechanism": "laplace"} | settings)


def test_a_unit_without_a_public_range(data):
    odd = dataclasses.replace(data.spec, units=("g", "hPa"))
    with pytest.raises(ValueError, match="the unit 'hPa' has no default public range"):
        methods.deeprotect(odd)
    assert methods.deeprotect(data.spec).config.high == (2.0, 2.0)
