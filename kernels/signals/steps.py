"""Steps of a walker, counted from the acceleration."""

import jax
import jax.numpy as jnp

from jaxanon.kernels.precision import widened
from jaxanon.kernels.signals.design import butterworth
from jaxanon.kernels.signals.filters import sosfilt, sosfilt_steady_state
from jaxanon.kernels.signals.recordings import real_samples, with_time

# The constants of Adaptiv, an adaptive jerk and pace buffer.
ORDER, CUTOFF_HZ = 5, 3.667
BUFFER = 20  # Steps remembered.
JERK_START = 2.5  # m/s^2 from peak to trough.
PACE_START_S = 0.4
JERK_SHARE = 0.5  # Of the remembered jerk, at least.
JERK_SURE = 2 * JERK_START  # Enough whatever is remembered.
PACE_SHARES = (0.5, 2.0)  # Of the remembered pace, both included.


def count_steps_threshold(acceleration, lengths=None, *, threshold=10.5):
    """Counts steps by a fixed threshold: half its crossings, up and down.

    The magnitude over the channels is compared as it is; where it is noisy, filter
    it first, e.g. by ``sosfilt(butterworth(5, 3.667, rate_hz), magnitude)``. A
    recording that begins or ends above the threshold has half a step there.

    Args:
      acceleration: ``float[..., time, channels]``, gravity included: three axes, or
        the magnitude as one channel. In m/s^2; multiply units of g by 9.80665.
      lengths: ``int[...]`` in [0, time], how many samples of each recording are
        real, the rest is padding; all of them by default.
      threshold: in the units of ``acceleration``; a magnitude equal to it is above.

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
      Boutet et al., DySAN, AsiaCCS 2021, section 4.3; the threshold is Adaptiv's,
      DySAN's own is not published.
    """
    acceleration = with_time(acceleration, "acceleration")
    real = real_samples(lengths, acceleration)
    above = _magnitude(acceleration, real) >= threshold
    crossed = (above[..., 1:] != above[..., :-1]) & real[..., 1:]
    return jnp.sum(crossed, axis=-1, dtype=jnp.float32) / 2


def count_steps_jerk_pace(acceleration, rate_hz, lengths=None):
    """Counts steps as Adaptiv does, by jerk and pace against those of late.

    The magnitude passes a Butterworth lowpass filter (order 5, 3.667 Hz, forward,
    in its steady state at the first sample). Its local maxima and minima alternate;
    each maximum and the minimum after it are one candidate, with

    * jerk: maximum less minimum, as a plain difference;
    * pace: the longer of the times since the last candidate's maximum and minimum.

    A candidate is a step if its jerk is at least 0.5 times the mean jerk of the last
    20 steps, or at least 5, and if its pace is 0.5 to 2 times their mean pace. The 20
    are filled with 2.5 and 0.4 s at first. The first candidate has no pace of its own
    and is given 0.4 s. What is no step is not remembered among the 20, though the
    next pace is measured from it.

    Args:
      acceleration: as for ``count_steps_threshold``; the constants are in m/s^2.
      rate_hz: samples per second, a Python number > 7.334.
      lengths: as for ``count_steps_threshold``.

    Returns:
      ``int32[...]``; 0 for fewer than four real samples. The filter delays by about
      0.14 s, so a minimum in the last instants of a recording is not seen.

    Raises:
      TypeError: if ``lengths`` are not integers, or ``rate_hz`` is traced.
      ValueError: if a shape is wrong or ``rate_hz`` is too low for the filter.

    Example:
      >>> seconds = jnp.arange(300) / 50  # Two steps a second for four seconds.
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
    if acceleration.shape[-2] < 4:  # A rise, a fall and a rise take four samples.
        return jnp.zeros(acceleration.shape[:-2], jnp.int32)
    r = _magnitude(acceleration, real)[..., None]
    smooth, _ = sosfilt(sections, r, sosfilt_steady_state(sections, r[..., 0, :]))
    is_candidate, jerk, pace = _candidates(smooth[..., 0], real)
    return _judge(is_candidate, jerk, pace / rate_hz)


def _magnitude(acceleration, real):
    """In float32 or wider; padding is 0, whatever it held."""
    x = jnp.where(real[..., None], widened(acceleration), 0)
    return jnp.sqrt(jnp.sum(x * x, axis=-1))


def _candidates(r, real):
    """At each minimum that follows a maximum: True, its jerk, its pace in samples."""
    time = r.shape[-1]
    place = jnp.arange(time, dtype=jnp.int32).reshape((1,) * (r.ndim - 1) + (-1,))
    place = jnp.broadcast_to(place, r.shape)
    slope = jnp.diff(r, axis=-1)
    slope = jnp.where(real[..., 1:], slope, 0)
    # A level stretch goes on in the direction that led to it.
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
    pace = jnp.where(maximum_before >= 0, pace, 0)  # 0 stands for not known.
    return is_candidate, _at(r, maximum) - r, pace.astype(r.dtype)


def _inner(turns):
    """Turns of samples 1 to time - 2 as those of all samples."""
    return jnp.pad(turns, [(0, 0)] * (turns.ndim - 1) + [(1, 1)])


def _latest(place, is_here):
    """The last place up to each where ``is_here``; -1 if there is none."""
    return jax.lax.cummax(jnp.where(is_here, place, -1), axis=place.ndim - 1)


def _at(values, index):
    return jnp.take_along_axis(values, jnp.maximum(index, 0), axis=-1)


def _judge(is_candidate, jerk, pace_s):
    """Takes the candidates of each recording in turn, all recordings at once."""
    time = is_candidate.shape[-1]
    place = jnp.arange(time, dtype=jnp.int32).reshape((1,) * (jerk.ndim - 1) + (-1,))
    upcoming = jnp.where(is_candidate, place, time)
    upcoming = jax.lax.cummin(upcoming, axis=jerk.ndim - 1, reverse=True)

    def judge(carry):
        at, count, jerks, paces = carry
        look = jnp.minimum(at, time - 1)[..., None]
        here, known = _at(jerk, look), _at(pace_s, look)
        seconds = jnp.where(known > 0, known, PACE_START_S)
        strong = here >= JERK_SHARE * jnp.mean(jerks, axis=-1, keepdims=True)
        usual = jnp.mean(paces, axis=-1, keepdims=True)
        timely = (seconds >= PACE_SHARES[0] * usual) & (
            seconds <= PACE_SHARES[1] * usual
        )
        is_step = (strong | (here >= JERK_SURE)) & timely & (at < time)[..., None]
        push = lambda buffer, new: jnp.where(
            is_step, jnp.concatenate([buffer[..., 1:], new], -1), buffer
        )
        following = jnp.minimum(at + 1, time - 1)[..., None]
        at = jnp.where(at + 1 < time, _at(upcoming, following)[..., 0], time)
        count = count + is_step[..., 0]
        return at, count, push(jerks, here), push(paces, seconds)

    first = upcoming[..., 0]
    # Made of the data and not of constants, so that a mesh axis they vary over stays.
    count = jnp.minimum(first, 0)
    filled = lambda value: jnp.where(
        (first >= 0)[..., None], jnp.full((*first.shape, BUFFER), value, jerk.dtype), 0
    )
    carry = first, count, filled(JERK_START), filled(PACE_START_S)
    more = lambda carry: jnp.any(carry[0] < time)
    return jax.lax.while_loop(more, judge, carry)[1]
