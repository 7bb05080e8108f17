"""Sampling rates of recordings, from the times of all their rows."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

BLOCK = 4096  # Consecutive rows that are examined together.
MAX_BLOCKS = 128  # Blocks, spread evenly over a longer recording.
PAUSE_S, PAUSE_STEPS = 1.5, 5  # A longer step is a pause, not a sample or a packet.
FEW = 0.4  # Minimum fraction of samples that arrive.
NICE = 0.003  # Relative difference from a whole rate that counts as that rate.
STEPS = 1 << 15  # Steps between rows that are examined at a time.
PHASE = 128  # Rows over which the phase of rounded times is averaged.


class Rate(NamedTuple):
    """Sampling rate of a recording.

    Attributes:
      rate_hz: samples per second, except in pauses; NaN for fewer than two times.
      kind: "regular"; "rounded" if the times are regular except for their last digit;
        "packets" if rows arrive in packets or several rows share a time.
      resolution_s: last digit of the times in seconds; 0 if it is negligible.
    """

    rate_hz: float
    kind: str
    resolution_s: float


def estimate(seconds: np.ndarray, expected_hz: float | None = None) -> Rate:
    """Estimates the rate of a recording from all its rows.

    Rows over time is the rate of packets and of rounded times, such as 80 Hz in whole
    milliseconds. Steps that are multiples of a shortest step have the rate of that
    step, because samples are missing. Pauses and clocks that were set back are left
    out.

    Args:
      seconds: ``float64[rows]`` in order of arrival, or whole ticks of one unit
        (``int64``); NaN is ignored. Rows that repeat time and values of the row before
        them should be dropped first.
      expected_hz: rate that is believed if either reading of the steps fits it.

    Example:
      >>> estimate(np.round(np.arange(1000) / 80, 3)).rate_hz.__round__(2)
      80.0
      >>> estimate(np.delete(np.arange(1000) / 50, [5, 6, 90])).rate_hz.__round__(2)
      50.0
      >>> estimate(np.arange(1000) // 10 / 5).kind  # Ten rows share each time.
      'packets'
    """
    blocks = _blocks(seconds)
    if blocks is None:
        return Rate(math.nan, "regular", 0.0)
    steps = np.diff(_forward(blocks), axis=1)
    positive = steps[steps > 0]
    if not len(positive):
        return Rate(math.nan, "regular", 0.0)
    pause = max(PAUSE_S, PAUSE_STEPS * float(np.median(positive)))
    inside, positive = steps <= pause, positive[positive <= pause]
    mean = float(steps[inside].mean())  # Rows over time.
    shortest = float(np.quantile(positive, 0.1))
    unit = float(positive[positive <= 1.5 * shortest].mean())
    unit = float(np.median(positive[np.abs(positive / unit - 1) <= 0.5]))
    periods = np.round(positive / unit)
    unit = float(positive.sum() / periods.sum())  # Averages rounding.
    misfit = float(np.sqrt(np.mean((positive / unit - periods) ** 2)))
    filled = (len(positive) + 1) / periods.sum()
    repeats = 1 - len(positive) / inside.sum()
    resolution = _resolution(blocks)
    coarse = resolution > unit / 4 and abs(mean / unit - 1) > 0.05
    if coarse:  # Rounding changes a step by less than a digit, and does not add up.
        near = np.abs(steps[inside] - mean) <= 1.01 * resolution
        coarse = near.mean() >= 0.9
        coarse &= _is_bounded(steps, inside, 1.5 * resolution + 1.1 * mean)
    shared = repeats > 0.2 and mean < 0.8 * unit
    over_time = shared or coarse or misfit > 0.2 or filled < FEW
    if expected_hz is not None and misfit <= 0.2:
        fits = [abs(period * expected_hz - 1) <= 0.05 for period in (unit, mean)]
        over_time = over_time if fits[0] == fits[1] else fits[1]
    if over_time:
        bursts = float(np.quantile(positive, 0.02)) < 0.1 * mean
        packets = shared or filled < FEW or misfit > 0.45 or bursts
        packets = resolution >= mean if coarse else packets
        if packets:
            # Whole packets only: the first and last may be cut, others lost.
            each = steps[inside]
            ends = np.flatnonzero(each > mean)
            if len(ends) > 1:
                spans = np.diff(np.cumsum(each)[ends])
                whole = spans <= 1.5 * np.median(spans)
                mean = float(spans[whole].sum() / np.diff(ends)[whole].sum())
        kind = "packets" if packets else "rounded" if coarse else "regular"
        return Rate(1 / mean, kind, resolution)
    # A period of whole digits is not changed by rounding.
    digits = round(unit / resolution) if resolution else 0
    rounded = resolution > 1e-4 * unit and not (
        digits and abs(digits * resolution / unit - 1) < 1e-6
    )
    return Rate(1 / unit, "rounded" if rounded else "regular", resolution)


def nominal(rate_hz: float) -> float:
    """Returns the rate that a sensor with this measured rate was set to.

    It is a number of up to three digits within 0.02 %, a whole number up to 100 within
    0.3 %, or else the rate with five digits.

    Example:
      >>> nominal(49.93), nominal(51.2001), nominal(204.8003), nominal(1 / 60)
      (50.0, 51.2, 204.8, 0.016667)
    """
    for digits in (1, 2, 3):
        short = float(f"{rate_hz:.{digits}g}")
        if abs(rate_hz / short - 1) <= 2e-4:
            return short
    whole = round(rate_hz)
    if 0 < whole <= 100 and abs(rate_hz / whole - 1) <= NICE:
        return float(whole)
    return float(f"{rate_hz:.5g}")


def of_stream(seen_hz: float, model_hz: float) -> float:
    """Returns the rate of the grid for rows at a measured rate, for a model.

    It is the model's rate unless the rows' rate differs by more than 1 %. A model's
    rate of 1 is unknown.

    Example:
      >>> of_stream(49.8, 50.0), of_stream(100.03, 50.0), of_stream(math.nan, 50.0)
      (50.0, 100.0, 50.0)
    """
    same = model_hz != 1.0 and math.isclose(seen_hz, model_hz, rel_tol=0.01)
    return model_hz if same or not seen_hz > 0 else nominal(seen_hz)


def steady(
    seconds: np.ndarray, rate: Rate, starts: np.ndarray | Sequence[int] = (0,)
) -> np.ndarray:
    """Undoes the rounding of times, and spaces the rows of packets evenly.

    Rounded times become multiples of the nominal period if rounding explains their
    distance from these. Other times are returned unchanged.

    Args:
      seconds: ``float64[rows]`` without NaN that never decrease; only the rows of
        packets repeat a time.
      rate: rate of these rows.
      starts: first rows of the segments between gaps; the first is 0.

    Returns:
      ``float64[rows]``, increasing.

    Example:
      >>> times = np.round(np.arange(1, 1001) / 64, 2)
      >>> even = steady(times, estimate(times))
      >>> bool(np.abs(np.diff(even) - 1 / 64).max() < 1e-6)
      True
    """
    if len(seconds) < 3 or not rate.rate_hz > 0:
        return seconds
    if rate.kind == "packets":
        return _spread(seconds, rate)
    if rate.kind == "rounded":
        return _unrounded(seconds, rate, np.asarray(starts))
    return seconds


def steps_where(seconds: np.ndarray, condition: Callable) -> np.ndarray:
    """Returns the rows whose step from the row before meets a condition.

    Args:
      seconds: ``float64[rows]``.
      condition: function from steps, ``float64[n]``, to ``bool[n]``.

    Example:
      >>> steps_where(np.array([0.0, 0.1, 2.0]), lambda steps: steps > 1)
      array([2])
    """
    rows = [np.zeros(0, np.int64)]
    for begin in range(0, len(seconds) - 1, STEPS):  # Fits in a processor's cache.
        steps = np.diff(seconds[begin : begin + STEPS + 1])
        meets = condition(steps)
        if meets.any():
            rows.append(np.flatnonzero(meets) + (begin + 1))
    return np.concatenate(rows)


def _blocks(seconds):
    """Returns float64[blocks, rows] of consecutive times; None for fewer than two."""
    count = len(seconds)
    if count <= BLOCK * MAX_BLOCKS:
        seconds = _as_floats(seconds)
        there = np.isfinite(seconds)
        seconds = seconds if there.all() else seconds[there]
        return seconds[None] if len(seconds) > 1 else None
    starts = np.linspace(0, count - BLOCK, MAX_BLOCKS).astype(np.int64)
    blocks = _as_floats(seconds[starts[:, None] + np.arange(BLOCK)])
    whole = np.isfinite(blocks).all(axis=1)
    if whole.any():
        return blocks[whole]
    each = [block[np.isfinite(block)] for block in blocks]
    longest = each[int(np.argmax([len(block) for block in each]))]
    return longest[None] if len(longest) > 1 else None


def _as_floats(ticks):
    """Returns float64; whole ticks since 1970 would lose digits, so a first is 0."""
    if ticks.dtype.kind == "i" and ticks.size:
        ticks = ticks - ticks.flat[0]
    return ticks.astype(np.float64, copy=False)


def _forward(blocks):
    """Returns times that never decrease: late rows repeat, clock resets pause."""
    steps = np.diff(blocks, axis=1)
    if not (steps < 0).any():
        return blocks
    resets = np.where(steps < -1.0, -steps, 0.0).cumsum(axis=1)
    continued = blocks + np.pad(resets, ((0, 0), (1, 0)))
    return np.maximum.accumulate(continued, axis=1)


def _resolution(blocks):
    """Returns the coarsest decimal digit that all times are multiples of, or 0."""
    some = blocks[:, :512].ravel()[:8192]
    eps = 4 * float(np.spacing(np.abs(some).max()))
    for digits in range(7):
        scaled = some * 10**digits
        if (np.abs(scaled - np.round(scaled)) <= max(1e-6, eps * 10**digits)).all():
            return 10.0**-digits
    return 0.0


def _is_bounded(steps, inside, bound):
    """Returns whether most pieces of 512 rows deviate from a line by <= ``bound``."""
    width = min(512, steps.shape[1])
    count = steps.shape[1] // width
    pieces = steps[:, : count * width].reshape(-1, width)
    pieces = pieces[inside[:, : count * width].reshape(-1, width).all(axis=1)]
    if not len(pieces):
        return False
    deviations = np.cumsum(pieces - pieces.mean(axis=1, keepdims=True), axis=1)
    ranges = deviations.max(axis=1) - deviations.min(axis=1)
    return bool(np.mean(ranges <= bound) >= 0.8)


def _unrounded(seconds, rate, starts):
    error = rate.resolution_s * rate.rate_hz / 2
    if error < 1e-6 or error >= 0.5:
        return seconds
    positions = (seconds - seconds[0]) * rate.rate_hz
    whole = np.round(positions)
    if np.abs(positions - whole).max() > 1e-6:
        phase = _phases(positions, starts)
        whole = np.round(positions - phase)
        lasting = np.diff(whole) > 0
        lasting[starts[1:] - 1] = True
        distance = np.abs(positions - phase - whole)
        explained = np.mean(distance <= 1.5 * error + 0.05) >= 0.99
        if not lasting.all() or not explained:
            return seconds
    return seconds[0] + whole / nominal(rate.rate_hz)


def _phases(positions, starts):
    """Returns the mean phase of each piece of ``PHASE`` rows, continued, by row."""
    begins = np.union1d(starts, np.arange(0, len(positions), PHASE))
    angles = (2 * np.pi * (positions - np.floor(positions))).astype(np.float32)
    parts = (np.add.reduceat(fn(angles), begins) for fn in (np.sin, np.cos))
    phases = np.unwrap(np.arctan2(*parts)) / (2 * np.pi)
    sizes = np.diff(begins, append=len(positions))
    # The phase of a short piece is noisy; that of its neighbour holds as well.
    own = (sizes >= PHASE // 2) | np.isin(begins, starts)
    which = np.maximum.accumulate(np.where(own, np.arange(len(begins)), 0))
    return np.repeat(phases[which], sizes)


def _spread(seconds, rate):
    steps, hz = np.diff(seconds), nominal(rate.rate_hz)
    positive = steps[steps > 0]
    if not len(positive):
        return seconds
    pause = max(PAUSE_S, PAUSE_STEPS * float(np.median(positive)))
    ends = np.flatnonzero(steps > pause) + 1
    even = np.empty(len(seconds))
    for begin, end in zip([0, *ends], [*ends, len(seconds)], strict=True):
        piece = seconds[begin:end]
        index = np.arange(end - begin) + _lost_before(piece, rate)
        late = piece - index / rate.rate_hz
        largest = float(np.diff(piece).max(initial=0.0))
        if late.max() - late.min() <= 2 * largest:
            even[begin:end] = index / hz + late.min()
            continue
        # The rate drifts: even over ten seconds at a time.
        size = max(2, round(10 * rate.rate_hz))
        starts = np.arange(max(1, len(piece) // size)) * size
        counts = np.diff(starts, append=len(piece))
        means = np.add.reduceat(piece, starts) / counts
        centers = np.add.reduceat(index, starts) / counts
        beyond = np.minimum(index - centers[0], 0) + np.maximum(index - centers[-1], 0)
        even[begin:end] = np.interp(index, centers, means) + beyond / rate.rate_hz
    return even


def _lost_before(seconds, rate):
    """Returns the rows in lost packets before each row."""
    steps = np.diff(seconds)
    begins = np.append(0, np.flatnonzero(steps > 1 / rate.rate_hz) + 1)
    lost = np.zeros(len(seconds), np.int64)
    if len(begins) < 4:
        return lost
    spans = np.diff(seconds[begins])
    usual = float(np.median(spans))
    # A delay of up to 0.7 packets is not a loss.
    packets = np.maximum(np.floor(spans / usual + 0.3) - 1, 0).astype(np.int64)
    lost[begins[1:]] = packets * round(usual * rate.rate_hz)
    return np.cumsum(lost)
