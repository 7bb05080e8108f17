"""Forward and forward-backward filters with second-order sections."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.kernels.checks import as_array, numeric, whole
from jaxanon.kernels.precision import widened
from jaxanon.kernels.signals import blocks
from jaxanon.kernels.signals.recordings import as_lengths, with_time


def sosfilt(sections, x, state=None):
    """Filters recordings forward in time.

    It processes blocks of 64 samples: each block is one product with a precomputed
    matrix, and states propagate between blocks by doubling. There is no loop over time,
    neither forward nor in the gradient. Half precision is widened to float32, and the
    output is rounded once. The block matrices are computed in float64, in coordinates
    that do not amplify rounding errors, and act on deviations from the first sample:
    low cutoffs and large offsets cost no digits. A NaN or infinity makes its channel
    NaN from the start of its block on.

    Args:
      sections: stable ``float[sections, 6]`` on the host with ``a0 = 1``, from
        ``butterworth`` or SciPy's ``output="sos"``.
      x: ``float[..., time, channels]``; time may be 0.
      state: ``float[..., sections, 2, channels]`` from an earlier call. None is zeros.
        Filtering a recording in parts gives the same result as in one call.

    Returns:
      ``y`` in the shape and dtype of ``x``, and the state after the last sample in at
      least float32. They equal those of ``scipy.signal.sosfilt``, whose ``zi`` has the
      sections axis first. A float32 state is rounded, and the next call
      amplifies that rounding error by up to about ``rate_hz / cutoff_hz``.

    Raises:
      TypeError: if ``sections`` is traced.
      ValueError: if a shape is wrong or a section is not stable.

    Example:
      >>> half = [[0.5, 0.5, 0, 1, 0, 0]]  # Moving average of two samples.
      >>> y, state = sosfilt(half, jnp.array([[2.0], [4.0], [4.0]]))
      >>> y.ravel(), state.ravel()
      (Array([1., 3., 4.], dtype=float32), Array([2., 0.], dtype=float32))

    References:
      Oppenheim and Schafer, Discrete-Time Signal Processing, section 6.3.4
      (transposed direct form II).
    """
    sections = _checked(sections)
    x = with_time(x, "x")
    wide = widened(x)
    channels = x.shape[-1]
    shape = (*x.shape[:-2], len(sections), 2, channels)
    state = None if state is None else jnp.asarray(state, wide.dtype)
    if state is not None and state.shape != shape:
        raise ValueError(
            f"state must be float[..., sections, 2, channels] = {shape}, got shape "
            f"{state.shape}; pass the state from an earlier call."
        )
    if not x.shape[-2]:
        return x, jnp.zeros(shape, wide.dtype) if state is None else state
    if state is not None:
        state = state.reshape(*x.shape[:-2], 2 * len(sections), channels)
        state = state.swapaxes(-1, -2)
    y, flat = blocks.apply(sections, wide.swapaxes(-1, -2), state)
    return y.swapaxes(-1, -2).astype(x.dtype), flat.swapaxes(-1, -2).reshape(shape)


def sosfilt_steady_state(sections, first):
    """Returns the filter state after a constant input ``first`` of infinite length.

    Starting from this state avoids a transient at the start of a recording.

    Args:
      sections: see ``sosfilt``.
      first: ``float[..., channels]``, usually ``x[..., 0, :]``.

    Returns:
      ``float[..., sections, 2, channels]``, a ``state`` for ``sosfilt`` in at least
      float32. It equals ``scipy.signal.sosfilt_zi`` times ``first``.

    Raises:
      TypeError: if ``sections`` is traced.
      ValueError: if a shape is wrong or a section is not stable.

    Example:
      >>> half, x = [[0.5, 0.5, 0, 1, 0, 0]], jnp.array([[8.0], [8.0], [4.0]])
      >>> y, _ = sosfilt(half, x, sosfilt_steady_state(half, x[0]))
      >>> y.ravel()
      Array([8., 8., 6.], dtype=float32)
    """
    sections = _checked(sections)
    first = widened(as_array("first", first))
    if first.ndim < 1:
        raise ValueError(
            f"first must be float[..., channels], got shape {first.shape}; pass one "
            "sample per channel, such as x[..., 0, :]."
        )
    steady = jnp.asarray(blocks.steady(sections), first.dtype)[..., None]
    steady = steady.reshape((1,) * (first.ndim - 1) + steady.shape)
    return steady * first[..., None, None, :]


def sosfiltfilt(sections, x, lengths=None, *, padlen=None):
    """Filters recordings forward and backward, with twice the order and zero delay.

    Each end is first extended by ``padlen`` samples, mirrored about the end point (odd
    extension). Each pass starts in its steady state, as in
    ``scipy.signal.sosfiltfilt``. Precision is as in ``sosfilt``.

    Args:
      sections: see ``sosfilt``.
      x: ``float[..., time, channels]`` with time > ``padlen``.
      lengths: ``int[...]`` in [0, time], number of real samples per recording. None is
        all. Padding may hold any values, and the extension starts at the real ends.
        If a recording has at most ``padlen`` samples, its last extension value is
        repeated.
      padlen: samples to extend, a Python int >= 0. None uses SciPy's default, 3 *
        (order + 1) for lowpass and highpass and 3 * (2 order + 1) for bandpass.

    Returns:
      ``float[..., time, channels]`` in the dtype of ``x``; zero in the padding.

    Raises:
      TypeError: if ``sections`` is traced, ``lengths`` are not integers, or ``padlen``
        is not a Python int.
      ValueError: under the conditions of ``sosfilt``, or if ``x`` is too short for
        ``padlen``.

    Example:
      >>> x = jnp.array([[0.0], [0.0], [4.0], [0.0], [0.0]])
      >>> sosfiltfilt([[0.5, 0.5, 0, 1, 0, 0]], x, padlen=2).ravel()
      Array([0., 1., 2., 1., 0.], dtype=float32)

    References:
      Gustafsson, Determining the initial states in forward-backward filtering,
      IEEE Transactions on Signal Processing 1996.
    """
    sections = _checked(sections)
    x = with_time(x, "x")
    edge = _default_padlen(sections) if padlen is None else padlen
    edge, time = whole("padlen", edge, least=0), x.shape[-2]
    if edge >= time:
        raise ValueError(
            f"padlen must be < time, got {edge!r} for time = {time}; use longer "
            "recordings or a smaller padlen."
        )
    wide = widened(x)
    if lengths is None:
        extended = _odd_extension(wide, edge)
        y = _back_and_forth(sections, extended)[..., edge : edge + time, :]
        return y.astype(x.dtype)
    # Recordings are moved to the end of a common buffer and preceded by their first
    # value: the filter stays in that value's steady state until they begin.
    lengths = as_lengths(lengths, x)[..., None]
    place = jnp.arange(time + 2 * edge).reshape((1,) * (x.ndim - 2) + (-1,))
    index = jnp.maximum(place - (time + edge) + lengths, -edge)
    extended = _odd_extension_at(wide, index, lengths)
    y = _back_and_forth(sections, extended)
    place = jnp.arange(time).reshape((1,) * (x.ndim - 2) + (-1,))
    back = place + (time + edge) - lengths
    y = _take(y, jnp.minimum(back, y.shape[-2] - 1))
    return jnp.where((place < lengths)[..., None], y, 0).astype(x.dtype)


def _back_and_forth(sections, x):
    x = x.swapaxes(-1, -2)
    for _ in range(2):
        x = jnp.flip(blocks.apply_from_steady(sections, x), -1)
    return x.swapaxes(-1, -2)


def _odd_extension(x, edge):
    first, last = x[..., :1, :], x[..., -1:, :]
    before = 2 * first - jnp.flip(x[..., 1 : edge + 1, :], -2)
    after = 2 * last - jnp.flip(x[..., x.shape[-2] - 1 - edge : -1, :], -2)
    return jnp.concatenate([before, x, after], -2)


def _odd_extension_at(x, index, lengths):
    """Returns values at ``index``, which may be outside the real samples."""
    last = jnp.maximum(lengths - 1, 0)
    pivot = jnp.clip(index, 0, last)
    turned = jnp.clip(2 * pivot - index, 0, last)
    inner = _take(x, turned)
    outside = (index != pivot)[..., None]
    extended = jnp.where(outside, 2 * _take(x, pivot) - inner, inner)
    return jnp.where((lengths > 0)[..., None], extended, 0)


def _take(x, index):
    return jnp.take_along_axis(x, index[..., None], axis=-2)


def _default_padlen(sections):
    """Returns SciPy's default: three times the number of non-zero taps."""
    short = min(np.sum(sections[:, 2] == 0), np.sum(sections[:, 5] == 0))
    return int(3 * (2 * len(sections) + 1 - short))


def _checked(sections):
    if isinstance(sections, jax.core.Tracer):
        raise TypeError(
            "sections must be on the host, got a traced array; design the filter "
            "outside jit and close over it."
        )
    numeric(sections=sections)
    sections = np.asarray(sections, np.float64)
    if sections.ndim != 2 or sections.shape[1] != 6 or not len(sections):
        raise ValueError(
            "sections must be float[sections, 6] with sections >= 1, got shape "
            f"{sections.shape}; use butterworth(order, cutoff_hz, rate_hz)."
        )
    a0, a1, a2 = sections[:, 3:].T
    if not (np.all(a0 == 1) and np.all(abs(a2) < 1) and np.all(abs(a1) < 1 + a2)):
        raise ValueError(
            "sections must be stable (poles inside the unit circle) with a0 = 1, got "
            f"denominators {sections[:, 3:].tolist()}; divide each section by its a0."
        )
    return sections
