"""Anonymizing any number of windows with one program."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import checks, datasets
from jaxanon.methods import Method
from jaxanon.run import BATCH, Run

SPEC = datasets.Spec(
    name="toy",
    preset="toy",
    channels=("x", "y"),
    units=("g", "g"),
    rate_hz=10.0,
    time=4,
    public="activity",
    private=("gender",),
    classes={"activity": ("a", "b"), "gender": ("f", "m"), "subject": ("1",)},
    mean=(0.0, 0.0),
    std=(1.0, 1.0),
    split="given",
)


def noisy(key, state, windows):
    return windows + state * jax.random.normal(key, windows.shape)


RUN = Run(
    Method("toy", None, SPEC, None, None, None, noisy, None, None),
    jnp.float32(0.5),
    SPEC,
    None,
    [],
    {},
)


@pytest.mark.parametrize("num", [0, 1, BATCH, BATCH + 3])
def test_any_number_of_windows(num):
    windows = np.ones((num, 4, 2))
    safe = RUN.anonymize(jax.random.key(0), windows)
    assert safe.shape == (num, 4, 2) and safe.dtype == np.float32
    again = RUN.anonymize(jax.random.key(0), windows)
    np.testing.assert_array_equal(safe, again)


def test_a_window_does_not_depend_on_those_after_it_and_batches_differ():
    windows = np.ones((2 * BATCH, 4, 2), np.float32)
    whole = RUN.anonymize(jax.random.key(0), windows)
    part = RUN.anonymize(jax.random.key(0), windows[:7])
    np.testing.assert_array_equal(part, whole[:7])
    assert np.all(whole[:BATCH] != whole[BATCH:])


def test_another_key_gives_another_result():
    windows = np.ones((3, 4, 2), np.float32)
    one, two = (RUN.anonymize(jax.random.key(seed), windows) for seed in (0, 1))
    assert np.all(one != two)


def test_says_what_was_wrong():
    key = jax.random.key(0)
    with pytest.raises(TypeError, match="typed PRNG key such as .* got int"):
        RUN.anonymize(7, np.ones((1, 4, 2)))
    with pytest.raises(
        ValueError, match=r"float\[N, 4, 2\].* x, y\), got shape \(4, 2\)"
    ):
        RUN.anonymize(key, np.ones((4, 2)))
    with pytest.raises(ValueError, match=r"got shape \(1, 4, 3\)"):
        RUN.anonymize(key, np.ones((1, 4, 3)))
    with pytest.raises(TypeError, match="windows must be real numbers, got dtype <U1"):
        RUN.anonymize(key, np.full((1, 4, 2), "a"))
    windows = np.ones((3, 4, 2))
    for bad in (np.nan, np.inf):
        windows[2, 1, 0] = bad
        with pytest.raises(ValueError, match="1 of 3 hold a NaN .* first at index 2"):
            RUN.anonymize(key, windows)


def test_positive_names_the_value():
    with pytest.raises(ValueError, match="rate must be > 0, got nan"):
        checks.positive(rate=float("nan"))
