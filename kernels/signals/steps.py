"""Step counting from acceleration."""

import jax
import jax.numpy as jnp

from jaxanon.kernels.precision import widened
from jaxanon.kernels.signals.design import butterworth
from jaxanon.kernels.signals.filters import sosfilt, sosfilt_steady_state
from jaxanon.kernels.signals.recordings import real_samples, with_time

# Constants of Adaptiv, an adaptive jerk and pace buffer.
ORDER, CUTOFF_HZ = 5, 3.667
BUFFER = 20  # Number of recent steps.
JERK_START = 2.5  # m/s^2 from peak to trough.
PACE_START_S = 0.4
MIN_JERK_RATIO = 0.5  # Minimum jerk relative to the mean of recent steps.
SUFFICIENT_JERK = 2 * JERK_START  # Accepted regardless of recent steps.
PACE_RATIOS = (0.5, 2.0)  # Range of pace relative to recent steps, inclusive.


def count_steps_threshold(acceleration, lengths=None, *, threshold=10.5):
    """Counts steps as half the crossings of a fixed threshold.

    It uses the unfiltered magnitude over the channels. Filter a noisy magnitude first,
    for example with ``sosfilt(butterworth(5, 3.667, rate_hz), magnitude)``. A recording
    that starts or ends above the threshold counts half a step there.

    Args:
      acceleration: ``float[..., time, channels]`` in m/s^2 including gravity: three
        axes, or the magnitude as one channel. Multiply units of g by 9.80665.
      lengths: ``int[...]`` in [0, time], number of real samples per recording. None is
        all.
      threshold: threshold in the units of ``acceleration``. Equal magnitudes count as
        above.

    Returns:
      ``float32[...]``, a multiple of 1/2; 0 for fewer than two real samples.

    Raises:
      TypeError: if ``lengths`` are not integers.
      ValueError: if a shape is wrong.

    Example:
      >>> walk = jnp.array([[9.8], [11.0], [9.0], [11.5], [12.0]])
      >>> count_steps_threshold(walk)
      Array(1.5, dtype=float32)

    References:
      Boutet et al., DySAN, AsiaCCS 2021, section 4.3. DySAN's threshold is unpublished;
      the default is that of Adaptiv.
    """
    acceleration = with_time(acceleration, "acceleration")
    real = real_samples(lengths, acceleration)
    above = _magnitude(acceleration, real) >= threshold
    crossed = (above[..., 1:] != above[..., :-1]) & real[..., 1:]
    return jnp.sum(crossed, axis=-1, dtype=jnp.float32) / 2


def count_steps_jerk_pace(acceleration, rate_hz, lengths=None):
    """Counts steps with Adaptiv, comparing jerk and pace with recent steps.

    The magnitude is filtered by a Butterworth lowpass (order 5, 3.667 Hz, forward,
    from the steady state of the first sample). Its local maxima and minima alternate.
    Each maximum with the next minimum is a candidate with

    * jerk: the maximum minus the minimum;
    * pace: the longer of the times since the previous candidate's maximum and minimum.

    A step needs a jerk of at least 0.5 times the mean jerk of the last 20 steps, or at
    least 5. Its pace must be 0.5 to 2 times their mean pace. The buffers
    start with 2.5 m/s^2 and 0.4 s. The pace of the first candidate is 0.4 s. Rejected
    candidates do not enter the buffers, but the next pace is measured from them.

    Args:
      acceleration: see ``count_steps_threshold``; must be in m/s^2.
      rate_hz: samples per second, a Python number > 7.334.
      lengths: see ``count_steps_threshold``.

    Returns:
      ``int32[...]``; 0 for fewer than four real samples. The filter delays the signal
      by about 0.14 s, so a minimum at the very end of a recording is missed.

    Raises:
      TypeError: if ``lengths`` are not integers, or ``rate_hz`` is traced.
      ValueError: if a shape is wrong or ``rate_hz`` is too low for the filter.

    Example:
      >>> seconds = jnp.arange(300) / 50  # Two steps per second for four seconds.
      >>> swing = jnp.where(seconds < 4, 3 * jnp.sin(4 * jnp.pi * seconds), 0)
      >>> count = jax.jit(count_steps_jerk_pace, static_argnums=1)
      >>> count(9.81 + swing[:, None], 50.0)
      Array(8, dtype=int32)

    References:
      Murray, Adaptiv: an adaptive jerk pace buffer step detection algorithm, as
      cited by Boutet et al., DySAN, AsiaCCS 2021, section 4.3.
    """
    acceleration = with_time(acceleration, "acceleration")
    sections = butterworth(ORDER, CUTOFF_HZ, rate_hz)
    real = real_samples(lengths, acceleration)
    if acceleration.shape[-2] < 4:  # A candidate needs at least four samples.
        return jnp.zeros(acceleration.shape[:-2], jnp.int32)
    r = _magnitude(acceleration, real)[..., None]
    smooth, _ = sosfilt(sections, r, sosfilt_steady_state(sections, r[..., 0, :]))
    is_candidate, jerk, pace = _candidates(smooth[..., 0], real)
    return _count_steps(is_candidate, jerk, pace / rate_hz)


def _magnitude(acceleration, real):
    """Returns the magnitude in at least float32, with 0 in the padding."""
    x = jnp.where(real[..., None], widened(acceleration), 0)
    return jnp.sqrt(jnp.sum(x * x, axis=-1))


def _candidates(r, real):
    """Returns masks of candidates (minima after a maximum), jerks and paces."""
    time = r.shape[-1]
    place = jnp.arange(time, dtype=jnp.int32).reshape((1,) * (r.ndim - 1) + (-1,))
    place = jnp.broadcast_to(place, r.shape)
    slope = jnp.diff(r, axis=-1)
    slope = jnp.where(real[..., 1:], slope, 0)
    # A constant stretch continues the previous direction.
    last_move = _latest(place[..., :-1], slope != 0)
    rises = _at(slope, last_move) > 0
    turns = (slope[..., 1:] != 0) & (last_move[..., :-1] >= 0)
    up, down = turns & (slope[..., 1:] > 0), turns & (slope[..., 1:] < 0)
    is_minimum = _inner(up & ~rises[..., :-1])
    is_maximum = _inner(down & rises[..., :-1])
    maximum = _latest(place, is_maximum)
    earlier = lambda latest: jnp.pad(
        latest[..., :-1], [(0, 0)] * (r.ndim - 1) + [(1, 0)], constant_values=-1
    )
    maximum_before = _at(earlier(maximum), maximum)
    minimum_before = earlier(_latest(place, is_minimum))
    is_candidate = is_minimum & (maximum >= 0)
    pace = jnp.maximum(maximum - maximum_before, place - minimum_before)
    pace = jnp.where(maximum_before >= 0, pace, 0)  # 0 means unknown.
    return is_candidate, _at(r, maximum) - r, pace.astype(r.dtype)


def _inner(turns):
    """Pads turns of samples 1 to time - 2 to all samples."""
    return jnp.pad(turns, [(0, 0)] * (turns.ndim - 1) + [(1, 1)])


def _latest(place, is_here):
    """Returns the last index up to each position where ``is_here``, else -1."""
    return jax.lax.cummax(jnp.where(is_here, place, -1), axis=place.ndim - 1)


def _at(values, index):
    return jnp.take_along_axis(values, jnp.maximum(index, 0), axis=-1)


def _count_steps(is_candidate, jerk, pace_s):
    """Processes candidates in order, for all recordings in parallel."""
    time = is_candidate.shape[-1]
    place = jnp.arange(time, dtype=jnp.int32).reshape((1,) * (jerk.ndim - 1) + (-1,))
    upcoming = jnp.where(is_candidate, place, time)
    upcoming = jax.lax.cummin(upcoming, axis=jerk.ndim - 1, reverse=True)

    def count_candidate(carry):
        at, count, jerks, paces = carry
        look = jnp.minimum(at, time - 1)[..., None]
        here, known = _at(jerk, look), _at(pace_s, look)
        seconds = jnp.where(known > 0, known, PACE_START_S)
        strong = here >= MIN_JERK_RATIO * jnp.mean(jerks, axis=-1, keepdims=True)
        mean_pace = jnp.mean(paces, axis=-1, keepdims=True)
        timely = (seconds >= PACE_RATIOS[0] * mean_pace) & (
            seconds <= PACE_RATIOS[1] * mean_pace
        )
        strong |= here >= SUFFICIENT_JERK
        is_step = strong & timely & (at < time)[..., None]
        push = lambda buffer, new: jnp.where(
            is_step, jnp.concatenate([buffer[..., 1:], new], -1), buffer
        )
        following = jnp.minimum(at + 1, time - 1)[..., None]
        at = jnp.where(at + 1 < time, _at(upcoming, following)[..., 0], time)
        count = count + is_step[..., 0]
        return at, count, push(jerks, here), push(paces, seconds)

    first = upcoming[..., 0]
    # Derived from the data, so that over a mesh it varies as they do.
    count = jnp.minimum(first, 0)
    filled = lambda value: jnp.where(
        (first >= 0)[..., None], jnp.full((*first.shape, BUFFER), value, jerk.dtype), 0
    )
    carry = first, count, filled(JERK_START), filled(PACE_START_S)
    more = lambda carry: jnp.any(carry[0] < time)
    return jax.lax.while_loop(more, count_candidate, carry)[1]
