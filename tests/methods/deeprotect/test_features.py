"""Tests of DEEProtect's feature extractors and of the directions of mode "named"."""

import dataclasses

import jax
import numpy as np
import pytest
from sklearn.decomposition import PCA, DictionaryLearning
from sklearn.linear_model import RidgeClassifier

from jaxanon import kernels, methods
from jaxanon.core.method import Incompatible
from jaxanon.methods.deeprotect.config import FEATURES, in_range
from jaxanon.training import trainer

SMALL = {
    **{"low": (0.0, 0.0), "high": (20.0, 20.0), "radius": None},
    **{"hidden_sizes": (8, 4), "batch_size": 64, "mechanism": "none"},
}


def trained(data, epochs=20, **settings):
    method = methods.deeprotect(data.spec, **SMALL | settings)
    return trainer.train(method, data, epochs=epochs, progress=False)


def unit(data):
    """Returns training windows in the public range, ``float64[N, 32]``."""
    return np.clip(data.train.windows / 20.0, 0, 1).reshape(len(data.train.windows), -1)


def lost(data, run):
    """Returns the squared reconstruction error in the public range."""
    safe = run.anonymize(jax.random.key(0), data.train.windows)
    return np.sum((safe - np.clip(data.train.windows, 0, 20)) ** 2, (1, 2)).mean() / 400


@pytest.fixture(scope="module")
def runs(data):
    names = [name for name in FEATURES if name not in ("autoencoder", "window")]
    return {name: trained(data, features=name) for name in names}


@pytest.mark.slow
def test_every_extractor_rebuilds_from_as_many_features(data, runs):
    x = unit(data)
    best = PCA(4).fit(x)
    least = np.sum((best.inverse_transform(best.transform(x)) - x) ** 2, 1).mean()
    for name, run in runs.items():
        layer = run.state.params["layer 1"]
        assert layer.kernel.shape == (4, 32)
        assert float(kernels.orthonormality_residual(layer.kernel)) < 1e-5
        told = run.history[-1]["losses"]["rebuilding"]
        assert lost(data, run) == pytest.approx(told, rel=0.15)
        assert lost(data, run) >= least * (1 - 1e-5), name
    assert lost(data, runs["pca"]) == pytest.approx(least, rel=0.05)


@pytest.mark.slow
def test_windows_themselves_with_laplace_noise_are_the_baseline(data):
    """Estimates the scale d / ε of values in a range of width 1, each by itself."""
    run = trained(data, epochs=1, features="window")
    np.testing.assert_allclose(
        run.anonymize(jax.random.key(0), data.test.windows),
        np.clip(data.test.windows, 0, 20),
        atol=1e-4,
    )
    config = dataclasses.asdict(run.method.config)
    changed = {"mechanism": "laplace", "epsilon": 32_000.0}
    method = methods.deeprotect(data.spec, **config | changed)
    noisy = dataclasses.replace(run, method=method)
    windows = np.full((2000, 16, 2), 10.0, np.float32)
    noise = (noisy.anonymize(jax.random.key(1), windows) - windows) / 20
    assert np.abs(noise).mean() == pytest.approx(32 / 32_000, rel=0.02)


@pytest.mark.slow
def test_a_dictionary_is_as_good_as_scikit_learn_s(data, runs):
    """Compares the subspace of the atoms, which determines reconstructed windows."""
    x = unit(data) - unit(data).mean(0)
    found = DictionaryLearning(4, alpha=0.05, max_iter=100, random_state=0).fit(x)
    atoms = found.components_
    away = x - x @ np.linalg.pinv(atoms) @ atoms
    run = trained(data, epochs=200, features="dictionary", learning_rate=0.03)
    assert lost(data, runs["dictionary"]) > 1.3 * np.sum(away**2, 1).mean()
    assert lost(data, run) < 1.05 * np.sum(away**2, 1).mean()


@pytest.mark.slow
def test_named_directions_are_those_of_a_ridge_classifier(data):
    slope = np.linspace(0, 1, 16)[None, :, None]  # A trend distinguishes the genders.
    trend = [
        part._replace(
            windows=part.windows + slope * part.labels["gender"][:, None, None]
        )
        for part in data[1:]
    ]
    data = data._replace(train=trend[0], test=trend[1])
    run = trained(data, epochs=60, features="pca", beta=0.01)
    directions = np.asarray(run.state.params["named"].directions)
    assert directions.shape == (1, 32)
    x, label = unit(data), data.train.labels["gender"]
    scaled = (x - x.mean(0)) / x.std(0)
    model = RidgeClassifier(alpha=0.01 * len(x)).fit(scaled, label)
    want = model.coef_[0] / x.std(0)
    cosine = directions[0] @ want
    cosine /= np.linalg.norm(directions) * np.linalg.norm(want)
    assert cosine > 0.97


@pytest.mark.slow
@pytest.mark.parametrize(("radius", "epsilon"), [(None, 300.0), (0.01, 25.0)])
def test_noise_in_the_span_leaves_everything_else_as_it_was(data, radius, epsilon):
    run = trained(data, features="pca", mode="named")
    config = dataclasses.asdict(run.method.config)
    changed = {"mechanism": "span", "epsilon": epsilon, "radius": radius}
    method = methods.deeprotect(data.spec, **config | changed)
    noisy = dataclasses.replace(run, method=method)
    windows = np.full((500, 16, 2), 10.0, np.float32)
    windows[:, :5] += 2.0
    params, keys = run.state.params, (jax.random.key(1), jax.random.key(2))
    kernel = np.asarray(params["layer 1"].kernel)
    exact, sent = run.anonymize(keys[0], windows), noisy.anonymize(keys[1], windows)
    moved = (sent - exact).reshape(500, -1) / 20 @ kernel.T
    along = kernel @ np.asarray(params["named"].directions[0])
    along /= np.linalg.norm(along)
    across = moved - (moved @ along)[:, None] * along
    assert np.abs(across).max() < 1e-3 * np.abs(moved @ along).max()
    if radius is not None:  # Only there is it close to the mean window.
        usual = np.tile(data.spec.mean, 16).astype(np.float32)
        away = lambda x: (x.reshape(500, -1) - usual) / 20 @ kernel.T @ along
        assert np.abs(away(exact)).min() > 1.5 * radius
        assert np.abs(away(sent)).max() < 1.05 * radius
        return
    # Laplace noise of one value, with scale L2 / ε.
    scale = float(params["named"].apart.l2) / epsilon
    assert np.median(np.abs(moved @ along)) == pytest.approx(np.log(2) * scale, rel=0.2)


@pytest.mark.slow
def test_fine_tuning_goes_on_where_layers_ended(data):
    settings = {
        "features": "autoencoder",
        "epochs_per_layer": 40,
        "learning_rate": 0.01,
    }
    greedy = trained(data, epochs=80, training="greedy", **settings)
    tuned = trained(data, epochs=160, training="fine-tuned", **settings)
    assert lost(data, tuned) < 0.98 * lost(data, greedy)
    assert "rebuilding, all layers" in tuned.history[-1]["losses"]


@pytest.mark.slow
def test_named_without_training_releases_nothing(data):
    method = methods.deeprotect(data.spec, **SMALL | {"mode": "named"})
    run = trained(data, features="pca")
    blank = dataclasses.replace(
        run, method=method, state=method.init(jax.random.key(0))
    )
    with pytest.raises(FloatingPointError, match="that are not finite"):
        blank.anonymize(jax.random.key(1), data.test.windows[:3])


def test_says_what_does_not_fit():
    from jaxanon.methods import DEEProtectConfig

    for settings, message in [
        ({"mechanism": "span"}, "requires mode='named', got 'everything'"),
        (
            {"mechanism": "span", "mode": "named", "curve": "sigmoid"},
            "requires curve='linear', got 'sigmoid'",
        ),
        (
            {"features": "dct", "curve": "sigmoid"},
            "must be 'linear' for features 'dct'",
        ),
    ]:
        with pytest.raises(Incompatible, match=message):
            DEEProtectConfig(**settings)


def test_windows_are_in_range(data):
    """Checks that ``unit`` above equals the method's input."""
    standard = (data.train.windows - np.float32(data.spec.mean)) / np.float32(
        data.spec.std
    )
    config = methods.DEEProtectConfig(**SMALL)
    seen = in_range(data.spec, config, standard)
    np.testing.assert_allclose(seen, unit(data), atol=1e-5)
