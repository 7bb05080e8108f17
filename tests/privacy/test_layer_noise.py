"""One noise multiplier for layers with separate ones: by hand and by counting."""

import math

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import kernels
from jaxanon.privacy import layer_noise_multipliers, noise_multiplier_of_layers

SCORES = (0.9, 0.5, 0.7, 0.3)


@pytest.mark.parametrize(
    ("reading", "joint"), [("A", 1.0), ("B", 1.5617), ("C", 0.4664), ("claimed", 1.0)]
)
def test_readings_of_atlas_by_hand(reading, joint):
    """M = 4, z = 2. B: 2 / √(.81 + .25 + .49 + .09); C: 2 / √(Σ 1 / E²)."""
    told = noise_multiplier_of_layers([2.0] * 4, SCORES, reading=reading)
    assert round(told, 4) == joint
    by_hand = {
        "B": 2 / math.sqrt(sum(e**2 for e in SCORES)),
        "C": 2 / math.sqrt(sum(e**-2 for e in SCORES)),
    }.get(reading, 2 / math.sqrt(4))
    assert told == pytest.approx(by_hand)


@hypothesis.given(
    st.lists(st.tuples(st.floats(0.1, 9), st.floats(0.05, 1)), min_size=1, max_size=9)
)
def test_the_claim_is_never_less_than_what_c_keeps(layers):
    multipliers, scores = zip(*layers, strict=True)
    claimed, kept, signal = (
        noise_multiplier_of_layers(multipliers, scores, reading=reading)
        for reading in ("claimed", "C", "B")
    )
    assert kept <= claimed * (1 + 1e-12) and claimed <= signal * (1 + 1e-12)
    alone = noise_multiplier_of_layers(multipliers[:1])
    assert alone == pytest.approx(multipliers[0]) and claimed <= alone * (1 + 1e-12)


@hypothesis.given(
    st.floats(0.1, 9), st.lists(st.floats(0.1, 5), min_size=1, max_size=8)
)
def test_layers_of_a_joint_multiplier(joint, weights):
    found = layer_noise_multipliers(joint, weights)
    assert noise_multiplier_of_layers(found) == pytest.approx(joint)
    ratios = np.array(found) / np.array(weights)
    np.testing.assert_allclose(ratios, ratios[0])


def test_what_the_kernel_adds_is_as_private_as_it_is_said():
    """Two neighbours' noisy layers, along their difference: a shift of 1 / z*."""
    norms, multipliers = {"a": 2.0, "b": 0.5}, {"a": 1.5, "b": 3.0}
    row = {"a": jnp.array([[2.0, 0.0]]), "b": jnp.array([[0.0, 0.5, 0.0]])}

    def noisy(key, weight):
        total = kernels.clipped_sum(row, norms, weights=jnp.array([weight]))
        return kernels.add_noise_to_sum(key, total, multipliers)

    keys = jax.random.split(jax.random.key(0), (2, 50_000))
    told = []
    for own, weight in zip(keys, (1.0, 0.0), strict=True):
        sent = jax.jit(jax.vmap(noisy, in_axes=(0, None)))(own, weight)
        scaled = jnp.concatenate(
            [sent[name] / (norms[name] * multipliers[name]) for name in norms], axis=1
        )
        told.append(np.asarray(scaled))
    apart = told[0].mean(0) - told[1].mean(0)
    joint = noise_multiplier_of_layers(list(multipliers.values()))
    assert np.linalg.norm(apart) == pytest.approx(1 / joint, rel=0.03)
    np.testing.assert_allclose(np.cov(told[0].T), np.eye(5), atol=0.03)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (([],), "at least 1 entry, got 0"),
        (([1.0, 0.0],), "noise_multiplier must be finite and > 0"),
        (
            ([1.0, 2.0], [0.5]),
            "scores must have 2 entries, one for each noise multiplier, got 1",
        ),
        (([1.0], [0.0]), r"scores must be in \(0, 1\], got 0.0"),
        (([1.0], [1.5]), r"scores must be in \(0, 1\], got 1.5"),
    ],
)
def test_says_what_was_wrong(words, message):
    with pytest.raises(ValueError, match=message):
        noise_multiplier_of_layers(*words)


def test_says_which_readings_there_are():
    with pytest.raises(ValueError, match="reading must be one of"):
        noise_multiplier_of_layers([1.0], reading="D")
    with pytest.raises(ValueError, match="joint must be finite and > 0"):
        layer_noise_multipliers(0.0, [1.0])
