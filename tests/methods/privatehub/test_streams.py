"""Tests of streams of overlapping windows: weights by hand, and one-window streams."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toy
from plain_denoiser import plain_denoiser

from jaxanon import methods
from jaxanon.methods.common import diffusion, generator
from jaxanon.methods.privatehub import networks, sampling

pytestmark = pytest.mark.slow

SPEC = toy.data().spec
with plain_denoiser():
    METHOD = methods.privatehub(SPEC, num_train_timesteps=4, num_inference_steps=2)
    NETS = networks.networks(SPEC, METHOD.config)


def test_where_windows_overlap_they_are_averaged():
    """Windows at 0, 2 and 3 of 7 samples output 10, 20, 30; weights 1, 2, 2, 1."""
    said = jnp.array([10.0, 20.0, 30.0])
    of_window = lambda x, t: jnp.broadcast_to(jnp.tile(said, 2)[:, None, None], x.shape)
    of_stream = sampling.overlapping(of_window, 7, 4, [0, 2, 3])
    got = of_stream(jnp.zeros((2, 7, 1)), 5)
    third = (2 * 10 + 1 * 20) / 3
    fourth = (1 * 10 + 2 * 20 + 1 * 30) / 4
    fifth, sixth = (2 * 20 + 2 * 30) / 4, (1 * 20 + 2 * 30) / 3
    want = [10, 10, third, fourth, fifth, sixth, 30]
    np.testing.assert_allclose(got[..., 0], [want, want], rtol=1e-6)


def test_windows_are_cut_where_they_lie():
    """Checks the windows that the denoiser receives."""
    x = jax.random.normal(jax.random.key(0), (3, 11, 2))
    cut = sampling.starts(11, 4, 3)
    windows = []

    def of_window(rows, t):
        windows.append(rows)
        return rows * t

    got = sampling.overlapping(of_window, 11, 4, cut)(x, 3)
    np.testing.assert_allclose(got, 3 * x, rtol=1e-5)
    want = np.stack([x[:, first : first + 4] for first in cut], axis=1)
    np.testing.assert_array_equal(windows[0], want.reshape(12, 4, 2))


def _state():
    state = jax.jit(METHOD.init)(jax.random.key(0))
    moved = jax.tree.map(lambda leaf: leaf + 0.1, state.params)
    return state._replace(params=moved)


def test_a_stream_as_long_as_a_window_is_one():
    classes, state = {"activity": np.array([0, 2])}, _state()
    full = generator.every(NETS, classes)
    run = lambda *given, avoid: sampling.stream(NETS, *given, 16, avoid=avoid)
    for avoid in (None, {"gender": np.array([1, 0])}):
        one = jax.jit(METHOD.generate.sample)(
            jax.random.key(1), state, classes, avoid=avoid
        )
        other = jax.jit(run)(jax.random.key(1), state, full, avoid=avoid)
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


def test_a_long_stream_is_made_in_parts_and_is_the_same(monkeypatch):
    state, full = _state(), generator.every(NETS, {"activity": np.array([0, 2])})
    avoid, seen = {"gender": np.array([1, 0])}, []
    guided = diffusion.guided

    def watched(*given):
        denoise_fn = guided(*given)
        return lambda x, t: seen.append(len(x)) or denoise_fn(x, t)

    monkeypatch.setattr(diffusion, "guided", watched)
    run = lambda *given: sampling.stream(NETS, *given, 60, avoid=avoid)
    whole = jax.jit(run)(jax.random.key(1), state, full)
    assert set(seen) == {14}
    seen.clear()
    monkeypatch.setattr(sampling, "PART", 4)  # The last part of 14 windows has 2.
    again = lambda *given: run(*given)
    parts = jax.jit(again)(jax.random.key(1), state, full)
    assert set(seen) == {4}
    np.testing.assert_allclose(parts, whole, rtol=1e-4, atol=1e-4)


def test_streams_that_cannot_be():
    full = generator.every(NETS, {"activity": [0]})
    given = jax.random.key(1), None, full
    with pytest.raises(ValueError, match="at least 16, the length of a window, got 15"):
        sampling.stream(NETS, *given, 15)
    with pytest.raises(ValueError, match="stride must be <= 16, .* got 17"):
        sampling.stream(NETS, *given, 40, stride=17)
    with pytest.raises(ValueError, match="stride must be >= 1, got 0"):
        sampling.stream(NETS, *given, 40, stride=0)
