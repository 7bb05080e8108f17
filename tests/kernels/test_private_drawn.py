"""Per-example gradients, private vectors and answers, against hand arithmetic."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxanon import kernels

pytestmark = pytest.mark.slow

few = settings(max_examples=8, deadline=None)
seeds = st.integers(0, 2**16)


def errors(params, batch):
    """Returns half the squared error per example of a linear model of two outputs."""
    off = kernels.matmul(batch["x"], params["w"]) + params["b"][None] - batch["y"]
    return jnp.sum(off**2, axis=1) / 2


def linear(seed, number, d_in, d_out):
    rng = np.random.default_rng(seed)
    draw = lambda *shape: rng.normal(size=shape).astype(np.float32)
    params = {"w": draw(d_in, d_out), "b": draw(d_out)}
    return params, {"x": draw(number, d_in), "y": draw(number, d_out)}


@few
@given(
    seed=seeds,
    number=st.sampled_from((0, 5)),
    share=st.sampled_from((None, 0.0, 0.5)),
    parts=st.booleans(),
    c=st.tuples(*[st.floats(0.25, 8, width=32)] * 2),
)
def test_gradients_are_clipped_as_those_made_one_by_one(seed, number, share, parts, c):
    params, batch = linear(seed, number, 3, 2)
    mask = None
    if share is not None:
        mask = np.random.default_rng(seed).random(number) < share
        batch["x"] = np.where(mask[:, None], batch["x"], np.float32(np.nan))
    clip_norms = {"w": c[0], "b": c[1]} if parts else c[0]
    total, info = kernels.clipped_gradient_sum(
        errors, params, batch, clip_norms, mask=mask
    )
    expected = {"w": np.zeros((3, 2)), "b": np.zeros(2)}
    for i in np.flatnonzero(np.ones(number) if mask is None else mask):
        x, y = batch["x"][i].astype(np.float64), batch["y"][i]
        off = x @ params["w"] + params["b"] - y
        own = {"w": np.outer(x, off), "b": off}
        norms = {name: np.linalg.norm(one) for name, one in own.items()}
        if not parts:
            np.testing.assert_allclose(info.norms[i], math.hypot(*norms.values()), 1e-5)
            norms = dict.fromkeys(norms, math.hypot(*norms.values()))
        bound = clip_norms if parts else dict.fromkeys(norms, c[0])
        for name, one in own.items():
            expected[name] += one * min(1, bound[name] / norms[name])
    for name, one in expected.items():
        np.testing.assert_allclose(total.value[name], one, rtol=1e-4, atol=1e-5)


@settings(max_examples=15, deadline=None)
@given(
    number=st.integers(1, 9),
    d_in=st.integers(1, 6),
    d_out=st.integers(1, 6),
)
def test_what_is_held_is_the_smaller_of_factors_and_gradients(number, d_in, d_out):
    params, batch = linear(0, number, d_in, d_out)
    assert kernels.is_factored_cheaper(1, d_in, d_out) == (d_in + d_out < d_in * d_out)
    # A bias is not a factor of a product: its per-example gradients are materialized.
    assert "['b']" in kernels.leaves_without_factors(errors, params, batch)
    held = kernels.clipped_gradient_bytes(errors, params, batch)
    assert held == 4 * number * (min(d_in + d_out, d_in * d_out) + d_out)


vectors = st.sampled_from((1, 4))


@few
@given(
    seed=seeds,
    size=vectors,
    norm=st.sampled_from(("l2", "linf")),
    epsilon=st.floats(0.125, 8, width=32),
)
def test_noise_of_a_norm_is_as_much_less_as_epsilon_is_more(seed, size, norm, epsilon):
    value = np.random.default_rng(seed).uniform(-2, 2, size).astype(np.float32)
    bounded = kernels.clip_to_range(value, -1.0, 1.0)
    release = lambda eps: np.asarray(
        kernels.norm_mechanism(jax.random.key(seed), bounded, eps, norm=norm)
    )
    inside = np.clip(value, -1, 1)
    np.testing.assert_array_equal(release(np.inf), inside)
    noise = release(1.0) - inside
    assert np.all(noise != 0)
    near = {"rtol": 1e-3, "atol": 1e-5}
    np.testing.assert_allclose(release(epsilon) - inside, noise / epsilon, **near)


@few
@given(
    seed=seeds,
    size=vectors,
    scale=st.sampled_from((0.25, 4.0)),
    epsilon=st.sampled_from((0.5, 6.0)),
)
def test_privunit_sends_one_length_in_any_unit(seed, size, scale, epsilon):
    x = np.random.default_rng(seed).normal(size=size).astype(np.float32)
    send = lambda x, radius: np.asarray(
        kernels.priv_unit(jax.random.key(seed), x, radius, epsilon)
    )
    sent = send(x, 1.0)
    np.testing.assert_allclose(send(scale * x, scale), scale * sent, rtol=1e-4)
    # Beyond the radius only the direction matters, and NaN is 0.
    far = x / np.linalg.norm(x)
    np.testing.assert_allclose(send(9 * far, 1.0), send(far, 1.0), rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(send(np.full_like(x, np.nan), 1.0), send(0 * x, 1.0))
    # With the added number, v / E<v, u> is as long as 1 / E<v, u>.
    most = 1 / kernels.priv_unit_cap(max(size + 1, 3), epsilon).mean
    if size > 1:
        assert np.linalg.norm(sent) <= most * (1 + 1e-4)


@settings(max_examples=25, deadline=None)
@given(size=st.integers(3, 200), epsilon=st.floats(0.01, 30))
def test_a_cap_s_odds_are_epsilon_s(size, epsilon):
    cap = kernels.priv_unit_cap(size, epsilon)
    inside = math.log(cap.probability / cap.fraction)
    outside = math.log((1 - cap.probability) / (1 - cap.fraction))
    assert inside - outside == pytest.approx(epsilon, rel=1e-6, abs=1e-8)
    assert 0 < cap.mean <= 1


@few
@given(
    seed=seeds,
    num_classes=st.sampled_from((2, 4)),
    epsilon=st.floats(0.25, 9, width=32),
    share=st.sampled_from((None, 0.0, 0.5)),
    odd=st.sampled_from((None, -1, 9)),
)
def test_frequencies_undo_what_chance_answered(seed, num_classes, epsilon, share, odd):
    rng = np.random.default_rng(seed)
    responses = rng.integers(0, num_classes, 20)
    mask = None if share is None else rng.random(20) < share
    real = np.ones(20, bool) if mask is None else mask
    if odd is not None:
        responses[3] = odd
    found = kernels.randomized_response_frequencies(
        responses, num_classes, epsilon, mask
    )
    if odd is not None and real[3]:
        assert np.isnan(found).all()
        return
    if not real.any():
        np.testing.assert_allclose(found, 1 / num_classes)
        return
    truth = math.exp(epsilon) / (math.exp(epsilon) + num_classes - 1)
    other = (1 - truth) / (num_classes - 1)
    told = np.bincount(responses[real], minlength=num_classes) / real.sum()
    np.testing.assert_allclose(
        found, (told - other) / (truth - other), rtol=1e-3, atol=1e-5
    )
    assert float(np.sum(found)) == pytest.approx(1, abs=1e-4)


@few
@given(seed=seeds, number=st.sampled_from((1, 6)), width=st.sampled_from((1, 3)))
def test_club_is_the_mean_over_all_pairs(seed, number, width):
    rng = np.random.default_rng(seed)
    y, mean, log_variance = rng.normal(size=(3, number, width))

    def told(i, j):
        """Returns the log density of y_j given row i, up to a term without y."""
        return -np.sum((y[j] - mean[i]) ** 2 / np.exp(log_variance[i])) / 2

    own = np.mean([told(i, i) for i in range(number)])
    pairs = np.mean([told(i, j) for i in range(number) for j in range(number)])
    found = kernels.club_bound(*(np.float32(one) for one in (y, mean, log_variance)))
    np.testing.assert_allclose(found, own - pairs, rtol=1e-3, atol=1e-4)


@settings(max_examples=20, deadline=None)
@given(
    epsilon=st.sampled_from((0.0, -1.0, math.nan)),
    what=st.sampled_from(("norm", "unit", "cap", "frequencies")),
)
def test_an_epsilon_that_is_none_is_refused(epsilon, what):
    key, x = jax.random.key(0), jnp.ones(3)
    bounded = kernels.clip_to_range(x, 0.0, 1.0)
    answers = np.zeros(3, int)
    calls = {
        "norm": lambda: kernels.norm_mechanism(key, bounded, epsilon, norm="l2"),
        "unit": lambda: kernels.priv_unit(key, x, 1.0, epsilon),
        "cap": lambda: kernels.priv_unit_cap(4, epsilon),
        "frequencies": lambda: kernels.randomized_response_frequencies(
            answers, 2, epsilon
        ),
    }
    with pytest.raises(ValueError, match="epsilon"):
        calls[what]()
