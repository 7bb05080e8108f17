"""Second-order sections over recordings: forward, and forward then backward."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.kernels.checks import whole
from jaxanon.kernels.precision import widened
from jaxanon.kernels.signals import blocks
from jaxanon.kernels.signals.recordings import as_lengths, with_time


def sosfilt(sections, x, state=None):
    """Filters recordings forward in time.

    Runs in blocks of 64 samples: a block is one product with a matrix made on the
    host, and states pass from block to block by doubling, so there is no loop over
    time, forward or in the gradient. Half precision is widened to float32, and the
    output is rounded once. A NaN or infinity makes NaN of its channel from the start
    of its block on.

    Args:
      sections: ``float[sections, 6]`` on the host, from ``butterworth`` or SciPy's
        ``output="sos"``; stable, ``a0 = 1``.
      x: ``float[..., time, channels]``; time may be 0.
      state: ``float[..., sections, 2, channels]``, what an earlier call returned;
        zeros by default. A recording in two parts gives what it gives in one.

    Returns:
      ``y``, of the shape and dtype of ``x``, and the state after the last sample,
      in float32 or wider. They are ``scipy.signal.sosfilt``'s, whose ``zi`` has the
      axis of sections first.

    Raises:
      TypeError: if ``sections`` is traced.
      ValueError: if a shape is wrong or a section is not stable.

    Example:
      >>> half = [[0.5, 0.5, 0, 1, 0, 0]]  # The mean of a sample and the one before.
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
    if state is None:
        state = jnp.zeros(shape, wide.dtype)
    state = jnp.asarray(state, wide.dtype)
    if state.shape != shape:
        raise ValueError(
            f"state must be float[..., sections, 2, channels] = {shape}, got shape "
            f"{state.shape}; it is what an earlier call returned."
        )
    flat = state.reshape(*x.shape[:-2], 2 * len(sections), channels)
    y, flat = blocks.apply(sections, wide.swapaxes(-1, -2), flat.swapaxes(-1, -2))
    return y.swapaxes(-1, -2).astype(x.dtype), flat.swapaxes(-1, -2).reshape(shape)


def sosfilt_steady_state(sections, first):
    """The state in which a filter is that has seen ``first`` for ever.

    A filter that starts in it does not ring at the start of a recording.

    Args:
      sections: as for ``sosfilt``.
      first: ``float[..., channels]``, most often ``x[..., 0, :]``.

    Returns:
      ``float[..., sections, 2, channels]``, a ``state`` for ``sosfilt``;
      ``scipy.signal.sosfilt_zi`` times ``first``. In float32 or wider, in the units of
      ``first``.

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
    first = widened(jnp.asarray(first))
    if first.ndim < 1:
        raise ValueError(
            f"first must be float[..., channels], got shape {first.shape}; give one "
            "sample of each channel, e.g. x[..., 0, :]."
        )
    steady = jnp.asarray(blocks.steady(sections), first.dtype)[..., None]
    steady = steady.reshape((1,) * (first.ndim - 1) + steady.shape)
    return steady * first[..., None, None, :]


def sosfiltfilt(sections, x, lengths=None, *, padlen=None):
    """Filters recordings forward, then backward: twice the order, and no delay.

    Each end is first extended by ``padlen`` samples, turned about the end point
    (odd extension), and each pass starts in its steady state, as
    ``scipy.signal.sosfiltfilt`` does it. Precision is that of ``sosfilt``.

    Args:
      sections: as for ``sosfilt``.
      x: ``float[..., time, channels]``, time > ``padlen``.
      lengths: ``int[...]`` in [0, time], how many samples of each recording are
        real, the rest is padding, whatever is in it; all of them by default. The
        ends that are extended are the real ones. A real part of ``padlen`` samples
        or fewer is extended by what it has, and from there on by its last value.
      padlen: samples, a Python int >= 0; by default SciPy's, 3 * (order + 1) for
        lowpass and highpass and 3 * (2 order + 1) for bandpass.

    Returns:
      ``float[..., time, channels]``, of the dtype of ``x``; zero in the padding.

    Raises:
      TypeError: if ``sections`` is traced, ``lengths`` are not integers, or ``padlen``
        is no Python int.
      ValueError: as ``sosfilt``, or if ``x`` is too short for ``padlen``.

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
            f"padlen must be < time, got {edge!r} for time = {time}; give longer "
            "recordings or a smaller padlen."
        )
    wide = widened(x)
    if lengths is None:
        extended = _odd_extension(wide, edge)
        y = _back_and_forth(sections, extended)[..., edge : edge + time, :]
        return y.astype(x.dtype)
    # Recordings are moved to the end of a common buffer, their first value before
    # them: a filter in the steady state of that value stays in it until they begin.
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
    for _ in range(2):
        y, _ = sosfilt(sections, x, sosfilt_steady_state(sections, x[..., 0, :]))
        x = jnp.flip(y, -2)
    return x


def _odd_extension(x, edge):
    first, last = x[..., :1, :], x[..., -1:, :]
    before = 2 * first - jnp.flip(x[..., 1 : edge + 1, :], -2)
    after = 2 * last - jnp.flip(x[..., x.shape[-2] - 1 - edge : -1, :], -2)
    return jnp.concatenate([before, x, after], -2)


def _odd_extension_at(x, index, lengths):
    """Values at ``index``, which may lie before the first sample or past the last."""
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
    """Three times the taps, those that are zero in numerator or denominator less."""
    short = min(np.sum(sections[:, 2] == 0), np.sum(sections[:, 5] == 0))
    return int(3 * (2 * len(sections) + 1 - short))


def _checked(sections):
    if isinstance(sections, jax.core.Tracer):
        raise TypeError(
            "sections must be numbers on the host, got a traced array; design the "
            "filter outside jit and close over it."
        )
    sections = np.asarray(sections, np.float64)
    if sections.ndim != 2 or sections.shape[1] != 6 or not len(sections):
        raise ValueError(
            "sections must be float[sections, 6], at least one section, got shape "
            f"{sections.shape}; butterworth(order, cutoff_hz, rate_hz) makes them."
        )
    a0, a1, a2 = sections[:, 3:].T
    if not (np.all(a0 == 1) and np.all(abs(a2) < 1) and np.all(abs(a1) < 1 + a2)):
        raise ValueError(
            "sections must be stable, poles inside the unit circle, with a0 = 1, got "
            f"denominators {sections[:, 3:].tolist()}; divide each section by its a0."
        )
    return sections
