"""Tests of PrivateHub's smoothing: generated windows are as smooth as measured ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toy
from scipy.ndimage import gaussian_filter1d

from jaxanon import datasets, methods
from jaxanon.core.run import Run
from jaxanon.methods.common import diffusion
from jaxanon.methods.privatehub import data as privatehub_data

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("built_plainly")]

DATA = toy.data()
SMALL = {
    "widths": (4,),
    "heads": 1,
    "num_train_timesteps": 20,
    "num_inference_steps": 5,
}
SMALL |= {
    "classifier_filters": (4,),
    "classifier_features": 4,
    "classes_to_hide": ("b",),
}


def gaussian_mean(x, width):
    """Applies SciPy's filter along the first axis, normalised at the ends."""
    filtered = lambda x: gaussian_filter1d(x, width, 0, mode="constant", truncate=40)
    return filtered(x) / filtered(np.ones_like(x))


def test_each_channel_gets_the_narrowest_gaussian_that_does():
    random = np.random.default_rng(0)
    windows = np.cumsum(random.normal(size=(5, 40, 3)), axis=1)
    windows += random.normal(size=windows.shape) * [0.0, 1.0, 4.0]
    most = random.uniform(0.05, 1.2, size=(5, 3))
    most[0] = [9.0, 9.0, 0.0]
    found = jax.jit(privatehub_data.smoothed)(jnp.float32(windows), jnp.float32(most))
    chosen = set()
    for b, c in np.ndindex(5, 3):
        x, limit = windows[b, :, c], most[b, c]
        widths = (0.0, *privatehub_data.WIDTHS)
        tried = [gaussian_mean(x, w) if w else x for w in widths]
        rough = [np.abs(np.diff(each)).mean() for each in tried]
        at = next((i for i, r in enumerate(rough) if r <= limit), len(widths) - 1)
        chosen.add(at)
        np.testing.assert_allclose(found[b, :, c], tried[at], atol=2e-5)
    assert len(chosen) > 4 and {0, len(privatehub_data.WIDTHS)} <= chosen


def test_a_window_of_one_sample_has_nothing_to_smooth():
    one = jnp.ones((2, 1, 3))
    assert not privatehub_data.roughness(one).any()
    assert (privatehub_data.smoothed(one, jnp.zeros((2, 3))) == one).all()


@pytest.fixture(scope="module")
def state():
    """Returns the state of untrained networks with class statistics."""
    method = methods.privatehub(DATA.spec, **SMALL)
    data = method.prepare(datasets.by_client(DATA.train))
    state = method.init(jax.random.key(0))
    return state._replace(params=state.params | {"statistics": data.statistics})


def test_the_roughness_of_classes_is_numpy_s(state):
    labels = np.asarray(DATA.train.labels["activity"])
    windows = (DATA.train.windows - np.array(DATA.spec.mean)) / DATA.spec.std
    steps = np.abs(np.diff(windows, axis=1)).mean(axis=1)
    want = [steps[labels == k].mean(axis=0) for k in range(3)]
    found = state.params["statistics"]["roughness"]
    np.testing.assert_allclose(found, want, rtol=1e-4)


def rewritten(state, windows=DATA.test.windows, hide_threshold=0.37, **settings):
    """Anonymizes windows, some of which the classifier assigns to a hidden class."""
    method = methods.privatehub(DATA.spec, **SMALL | settings)
    run = Run(method, state, DATA.spec, None, [], {})
    run = run.adjusted(hide_threshold=hide_threshold)
    return run.anonymize(jax.random.key(1), windows)


def kept(windows, before=DATA.test.windows):
    """Returns the windows that are unchanged up to rounding."""
    return np.isclose(windows, before, atol=1e-4).all((1, 2))


def test_windows_that_are_not_to_hide_may_stay_as_they_are(state):
    same = kept(rewritten(state, strength=0.0))
    anew = (rewritten(state, strength=0.5) == rewritten(state, strength=1.0)).all(
        (1, 2)
    )
    assert 0.1 < same.mean() < 0.9  # Some are assigned to a hidden class.
    np.testing.assert_array_equal(same, ~anew)
    made = rewritten(state, strength=0.0)[~same]
    np.testing.assert_array_equal(made, rewritten(state, strength=0.5)[~same])


@pytest.mark.parametrize("categories", [(), ("y=4",)])
def test_what_is_made_anew_is_smoothed_and_nothing_else(state, categories):
    windows = DATA.test.windows.copy()
    if categories:
        windows[..., 1] = np.clip(np.round(windows[..., 1]), 0, 3)
        method = methods.privatehub(DATA.spec, **SMALL, categories=categories)
        fresh, old = method.init(jax.random.key(0)), state.params["statistics"]
        known = fresh.params["statistics"] | {"roughness": old["roughness"]}
        state = fresh._replace(params=fresh.params | {"statistics": known})
    hide_threshold = 0.35 if categories else 0.37
    settings = {
        "strength": 0.0,
        "categories": categories,
        "hide_threshold": hide_threshold,
    }
    plain = rewritten(state, windows, **settings)
    smooth = rewritten(state, windows, smoothing=True, **settings)
    same = kept(plain, windows)
    assert 0.1 < same.mean() < 0.9
    np.testing.assert_array_equal(smooth[same], plain[same])
    steps = lambda x: np.abs(np.diff(x, axis=1)).mean(axis=(0, 1))
    before, after = steps(plain[~same]), steps(smooth[~same])
    assert after[0] < 0.8 * before[0]
    # Categorical values have no mean.
    assert after[1] == before[1] if categories else after[1] < 0.8 * before[1]
    most = np.asarray(state.params["statistics"]["roughness"]).max(axis=0)
    assert (steps(smooth[~same]) <= 1.05 * most * DATA.spec.std)[0]


def test_smoothing_is_chosen_anew(state):
    method = methods.privatehub(DATA.spec, **SMALL)
    run = Run(method, state, DATA.spec, None, [], {})
    own = run.adjusted(strength=0.0, smoothing=True, hide_threshold=0.37)
    want = rewritten(state, strength=0.0, smoothing=True)
    found = own.anonymize(jax.random.key(1), DATA.test.windows)
    np.testing.assert_array_equal(found, want)
    assert diffusion.first_step(own.method.config) == 0


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        (
            {"strength": 0.0, "classes_to_hide": ()},
            "strength must be > 0 without classes",
        ),
        (
            {"smoothing": True, "classes_to_hide": ()},
            "smoothing requires classes_to_hide and no noise",
        ),
    ],
)
def test_what_is_refused(settings, match):
    with pytest.raises(ValueError, match=match):
        methods.privatehub(DATA.spec, **SMALL | settings)
