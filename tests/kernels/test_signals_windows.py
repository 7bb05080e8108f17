"""Windows against loops and the version on the host."""

import functools

import chex
import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies

from jaxanon.datasets import windows as host
from jaxanon.datasets.recordings import Recording
from jaxanon.kernels import signals
from jaxanon.kernels.signals import cases, reference


def _jit_cut(length, stride):
    return jax.jit(functools.partial(signals.cut_windows, length=length, stride=stride))


@pytest.mark.parametrize("name", ["ragged", "apart", "gaps"])
def test_windows_are_those_of_the_datasets_and_of_the_loops(name):
    case = cases.CASES[name]
    x, lengths = cases.recordings(case, 0, np.float32)
    out, mask = _jit_cut(case.length, case.stride)(x, lengths)
    assert out.dtype == x.dtype and np.isfinite(out).all()
    assert out.shape[1] == (case.time - case.length) // case.stride + 1
    for row, found, real, size in zip(x, out, mask, lengths, strict=True):
        expected = host.cut(row[:size], case.length, case.stride)
        num = len(expected)
        np.testing.assert_array_equal(found[:num], expected)
        assert real[:num].all() and not real[num:].any() and not found[num:].any()
        loops = reference.cut_windows(row, size, case.length, case.stride)
        np.testing.assert_array_equal(expected, loops or expected)
        assert num == len(loops)
    recordings = [Recording(r[:n], 0, {}) for r, n in zip(x, lengths, strict=True)]
    each = host.cut_each(recordings, case.length, case.stride)
    np.testing.assert_array_equal(np.asarray(out)[np.asarray(mask)], each.windows)


def test_a_stream_is_cut_as_the_datasets_cut_it():
    # Concatenated; a window is dropped if its first and last row differ in owner.
    x, lengths = cases.recordings(cases.CASES["gaps"], 0, np.float32)
    recordings = [
        Recording(row[:size], 0, {"subject": i})
        for i, (row, size) in enumerate(zip(x, lengths, strict=True))
    ]
    expected = host.cut_stream(recordings, 8, 3)
    rows = np.concatenate([r.rows for r in recordings])
    owner = np.repeat(np.arange(3.0), lengths)[:, None]
    cut = lambda rows: _jit_cut(8, 3)(rows, len(rows)).windows
    owners = cut(owner.astype(np.float32))[..., 0]
    keep = owners[:, 0] == owners[:, -1]
    keep = keep & (np.arange(len(keep)) < round((len(rows) - 8) / 3))
    np.testing.assert_array_equal(cut(rows)[keep], expected.windows)
    np.testing.assert_array_equal(owners[keep, 0], expected.labels["subject"])


@hypothesis.settings(max_examples=8, deadline=None)
@hypothesis.given(
    strategies.integers(0, 24), strategies.integers(1, 9), strategies.integers(1, 11)
)
def test_any_length_and_stride(time, length, stride):
    x = np.arange(2.0 * time).reshape(time, 2).astype(np.float32)
    out = signals.cut_windows(x, None, length, stride)
    np.testing.assert_array_equal(out.windows, host.cut(x, length, stride))
    assert out.mask.all() and out.mask.shape == out.windows.shape[:1]


def test_windows_of_every_type_under_vmap_grad_and_a_mesh(traced_once, over_a_mesh):
    case = cases.CASES["ragged"]
    x, lengths = cases.recordings(case, 0, np.float32)
    cut = functools.partial(signals.cut_windows, length=case.length, stride=case.stride)
    run = jax.jit(jax.vmap(traced_once(cut)))
    run(x + 1, lengths)
    expected = run(x, lengths)
    chex.assert_trees_all_equal(over_a_mesh(cut)(x, lengths), expected)
    half = jax.jit(cut)(x.astype(jnp.bfloat16), lengths)
    assert half.windows.dtype == jnp.bfloat16
    np.testing.assert_array_equal(half.windows, expected.windows.astype(jnp.bfloat16))
    # Each sample's gradient is the number of real windows that contain it.
    grads = jax.jit(jax.grad(lambda x: jnp.sum(cut(x, lengths).windows)))(x)
    starts = np.arange(0, case.time - case.length + 1, case.stride)
    for row, size in zip(grads, lengths, strict=True):
        count = np.zeros(case.time)
        for start in starts[starts + case.length <= size]:
            count[start : start + case.length] += 1
        np.testing.assert_array_equal(row, count[:, None] * np.ones((1, case.channels)))


def test_says_what_was_wrong():
    x = jnp.ones((4, 9, 2))
    with pytest.raises(ValueError, match=r"recordings must be float\[\.\.\., time, ch"):
        signals.cut_windows(x[0, 0], None, 2, 1)
    with pytest.raises(ValueError, match="length must be >= 1, got 0"):
        signals.cut_windows(x, None, 0, 1)
    with pytest.raises(TypeError, match="stride must be a Python int, got 2.0"):
        signals.cut_windows(x, None, 2, 2.0)
    with pytest.raises(ValueError, match=r"lengths must have .* shape \(4,\), got \(3"):
        signals.cut_windows(x, jnp.ones(3, int), 2, 1)
    with pytest.raises(TypeError, match="lengths must be integers, got bool"):
        signals.cut_windows(x, jnp.ones(4, bool), 2, 1)
