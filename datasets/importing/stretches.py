"""Rows of a table as recordings of one person, on a regular grid."""

import fractions
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from jaxanon.datasets.importing.table import Labels, Table
from jaxanon.datasets.resampling import resample
from jaxanon.recordings import grid, rates, times

CHUNK = 1 << 18  # Rows that are put on the grid at a time.
BLOCK = 1 << 15  # Rows that are checked at a time.
GAP_S, GAP_PERIODS = 0.25, 3.0  # Longest interpolated gap by default: the longer one.
SAME = 0.05  # Relative difference of rates that the grid alone evens out.
SPARSE = 1.5  # Mean rows per number of a channel above which it has its own rate.
MAX_VALUE = float(np.finfo(np.float32).max)


class Recording(NamedTuple):
    """Complete rows of one person in order of arrival, without repeated rows.

    Attributes:
      source: file name for messages.
      person: name of the person.
      seconds: ``float64[rows]``.
      samples: ``float[rows, channels]``, finite.
      codes: ``int[rows]``, one number per combination of labels.
      rate: rate of the rows.
      time_format: format of the times; empty without times.
    """

    source: str
    person: str
    seconds: np.ndarray
    samples: np.ndarray
    codes: np.ndarray
    rate: rates.Rate
    time_format: str


class Piece(NamedTuple):
    """Consecutive grid points.

    Attributes:
      samples: ``float[points, channels]``.
      rows: ``int64[points]``, row of the recording at or before each point.
      mixed: ``bool[points]``, whether a point lies between rows; None if none does.
      starts: points at which a new segment begins, after a gap.
      is_open: whether the next piece continues the last segment.
    """

    samples: np.ndarray
    rows: np.ndarray
    mixed: np.ndarray | None
    starts: np.ndarray
    is_open: bool


def combine(labels: dict[str, Labels], rows: int) -> np.ndarray:
    """Returns one whole number per row for all labels; -1 where one is missing.

    Example:
      >>> each = Labels(np.array([1, -1, 0]), ("a", "b"))
      >>> combine({"x": each, "y": each}, 3)
      array([ 3, -1,  0])
    """
    if len(labels) == 1:
        return next(iter(labels.values())).codes
    codes = np.zeros(rows, np.int64)
    missing = np.zeros(rows, bool)
    for label in labels.values():
        codes *= len(label.names)
        codes += label.codes
        missing |= label.codes < 0
    codes[missing] = -1
    return codes


def split(codes: np.ndarray, labels: dict[str, Labels]) -> dict[str, np.ndarray]:
    """Returns the codes of each label from ``combine``'s."""
    each = {}
    for name, label in reversed(labels.items()):
        codes, each[name] = np.divmod(codes, max(1, len(label.names)))
    return {name: each[name] for name in labels}


def recordings(
    table: Table, rate_hz: float | None, time_format: str | None, tally
) -> Iterator[Recording]:
    """Yields the recordings of each person in a table, with the losses in ``tally``.

    Args:
      table: rows of one file.
      rate_hz: rate of the rows if there are no times; else used to detect their unit.
      time_format: format of the times, or None to detect it.
      tally: ``summary.Tally``.
    """
    count, seconds, format = len(table.samples), None, ""
    if table.times is not None:
        where = f"{table.source}: times"
        parsed = times.parse(
            table.times, time_format or table.time_format, rate_hz, where
        )
        seconds, format = parsed.seconds, parsed.format
    codes = combine(table.labels, count)
    rate = rates.Rate(math.nan if rate_hz is None else rate_hz, "regular", 0.0)
    for person, rows in _people(table, tally):
        part = lambda array, rows=rows: array if rows is None else array[rows]
        samples, code = part(table.samples), part(codes)
        present = _present(samples)
        if seconds is None:
            second = np.arange(len(samples)) / rate.rate_hz
            complete = _complete(present, samples, code, second, table, tally)
        else:
            second = part(seconds)
            if not present.all():
                samples = _fill_sparse(samples, second, table, tally)
                present = _present(samples)
            complete = _complete(present, samples, code, second, table, tally)
            complete = _without_repeats(samples, second, complete, table, tally)
        if complete is not None:
            second, samples, code = second[complete], samples[complete], code[complete]
        whole = Recording(table.source, person, second, samples, code, rate, format)
        if seconds is None:
            yield whole
        else:
            yield from _by_rate(whole, rate_hz)


def _people(table, tally):
    """Yields name and rows (None for all) of each person, in order of names."""
    if table.subject is None:
        yield table.stem, None
        return
    codes, names = table.subject
    unknown = int(np.count_nonzero(codes < 0))
    tally.lose("unknown person", unknown, table.source)
    ends = np.flatnonzero(np.diff(codes)) + 1
    begins = np.concatenate([[0], ends]) if len(codes) else ends
    if len(set(codes[begins].tolist())) == len(begins):  # One run per person.
        for begin, end in zip(begins, [*ends, len(codes)], strict=True):
            if codes[begin] >= 0:
                yield names[codes[begin]], slice(begin, end)
        return
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(names) + 1))
    for code, name in enumerate(names):
        if bounds[code] < bounds[code + 1]:
            yield name, order[bounds[code] : bounds[code + 1]]


def _present(samples):
    """Returns bool[rows]: the sum of absolute numbers is finite in float32."""
    present = np.empty(len(samples), bool)
    with np.errstate(over="ignore", invalid="ignore"):
        for begin in range(0, len(samples), BLOCK):  # Fits in a processor's cache.
            block = samples[begin : begin + BLOCK]
            total = np.abs(block[:, 0])
            for channel in range(1, block.shape[1]):
                total += np.abs(block[:, channel])
            np.less_equal(total, MAX_VALUE, out=present[begin : begin + BLOCK])
    return present


def _complete(present, samples, codes, seconds, table, tally):
    """Returns bool[rows], whether a row is complete, or None if all rows are."""
    if not present.all():  # A sum may overflow where no number does.
        numbers = ~(np.isnan(samples).any(axis=1))
        with np.errstate(invalid="ignore"):
            fits = (np.abs(samples) <= MAX_VALUE).all(axis=1)
        tally.lose("missing number", np.count_nonzero(~numbers), table.source)
        tally.lose("infinite number", np.count_nonzero(numbers & ~fits), table.source)
        present = fits
    if table.times is not None and not (timed := np.isfinite(seconds)).all():
        tally.lose("missing time", np.count_nonzero(present & ~timed), table.source)
        present &= timed
    if len(codes) and codes.min() < 0:
        labelled = codes >= 0
        tally.lose("missing label", np.count_nonzero(present & ~labelled), table.source)
        present &= labelled
    return None if present.all() else present


def _without_repeats(samples, seconds, complete, table, tally):
    """Drops rows that repeat time and numbers of the row before them."""
    again = rates.steps_where(seconds, lambda steps: steps == 0)
    if not len(again):
        return complete
    shared = len(again)
    again = again[(samples[again] == samples[again - 1]).all(axis=1)]
    if complete is None:
        complete = np.ones(len(seconds), bool)
    again = again[complete[again] & complete[again - 1]]
    # Rows of a packet share a time, and may have equal numbers if a sensor rests.
    packets = shared > 0.2 * len(seconds) and (
        len(again) < 0.9 * shared or not np.diff(samples, axis=0).any()
    )
    if packets or not len(again):
        return None if complete.all() else complete
    tally.lose("repeat", len(again), table.source)
    complete[again] = False
    return complete


def _fill_sparse(samples, seconds, table, tally):
    """Interpolates channels that have fewer samples than the others."""
    filled, forward = None, None
    for channel in range(samples.shape[1]):
        missing = np.isnan(samples[:, channel])
        if not missing.any():
            continue
        present = np.flatnonzero(~missing)
        if not 2 <= len(present) <= len(samples) / SPARSE:
            continue
        if forward is None:
            forward = np.fmax.accumulate(np.nan_to_num(seconds, nan=-np.inf))
        steps = np.diff(forward[present])
        own = float(np.median(steps))
        every = float(np.median(np.diff(forward)))  # Step of the rows.
        if not own > SPARSE * every:
            continue
        gaps = np.flatnonzero(missing)
        right = np.searchsorted(present, gaps)
        before = forward[present[np.maximum(right - 1, 0)]]
        after = forward[present[np.minimum(right, len(present) - 1)]]
        known = samples[present, channel]
        values = np.interp(forward[gaps], forward[present], known)
        edge = (right == 0) | (right == len(present))
        distance = np.where(edge, np.abs(forward[gaps] - before), after - before)
        near = distance <= np.where(edge, 1.5, GAP_PERIODS + 0.5) * own
        if filled is None:
            filled = samples.copy()
        filled[gaps[near], channel] = values[near]
        tally.sparse[table.channels[channel]] = float(f"{1 / own:.3g}")
    return samples if filled is None else filled


def _by_rate(whole: Recording, rate_hz: float | None) -> Iterator[Recording]:
    """Yields the recording, or its parts between pauses if their rates differ."""
    rate = rates.estimate(whole.seconds, rate_hz)
    parts = [(0, len(whole.seconds))]
    if rate.rate_hz > 0:
        pause = max(rates.PAUSE_S, rates.PAUSE_STEPS / rate.rate_hz)
        is_pause = lambda steps: (steps > pause) | (steps < -pause)
        ends = rates.steps_where(whole.seconds, is_pause)
        bounds = np.array([0, *ends, len(whole.seconds)])
        if _rates_differ(whole.seconds, bounds):
            parts = list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))
    if len(parts) == 1:
        yield whole._replace(rate=rate)
        return
    open_from, last = 0, None
    each = [rates.estimate(whole.seconds[slice(*part)], rate_hz) for part in parts]
    for number, (begin, end) in enumerate(parts):
        own = each[number]
        unknown = not own.rate_hz > 0 or end - begin < 16
        if last is not None and (unknown or abs(own.rate_hz / last.rate_hz - 1) < SAME):
            continue
        if last is not None:
            yield _rows(whole, open_from, begin, last)
        if not unknown or last is None:
            open_from, last = begin, rate if unknown else own
    yield _rows(whole, open_from, parts[-1][1], last)


def _rates_differ(seconds, bounds):
    sizes = np.diff(bounds)
    long = sizes >= 64
    if np.count_nonzero(long) < 2:
        return False
    spans = seconds[bounds[1:] - 1] - seconds[bounds[:-1]]
    with np.errstate(divide="ignore", invalid="ignore"):
        density = ((sizes - 1) / spans)[long]
    middle = np.median(density)
    return bool(((density < 0.8 * middle) | (density > 1.25 * middle)).any())


def _rows(whole, begin, end, rate):
    keep = slice(begin, end)
    return whole._replace(
        seconds=whole.seconds[keep],
        samples=whole.samples[keep],
        codes=whole.codes[keep],
        rate=rate,
    )


def gap_s(max_gap_s: float | None, rate_hz: float) -> float:
    """Returns the longest gap in seconds that is interpolated.

    Example:
      >>> gap_s(None, 50.0), gap_s(None, 1.0), gap_s(2.0, 50.0)
      (0.25, 3.0, 2.0)
    """
    if max_gap_s is None:
        return max(GAP_S, GAP_PERIODS / rate_hz)
    return max(max_gap_s, 1.5 / rate_hz)


def pieces(
    recording: Recording, to_hz: float, max_gap_s: float | None, tally
) -> Iterator[tuple[Recording, Piece]]:
    """Puts a recording on a grid at ``to_hz``, a piece at a time.

    Rows go through the same grid as on a device; see ``recordings.grid``. A recording
    whose rate differs by more than 5 % is put on a grid at its own rate and resampled.

    Yields:
      The recording without dropped rows, and the next points.
    """
    rate = recording.rate
    own = rates.nominal(rate.rate_hz)
    same = abs(rate.rate_hz / to_hz - 1) <= SAME
    ratio = fractions.Fraction(1) if same else _ratio(own, to_hz)
    rate_hz = to_hz * float(ratio)
    shared = rate.kind == "packets"
    kept = grid.forward(recording.seconds, recording.samples, rate_hz, shared)
    resets = kept.resets
    tally.lose("repeat", kept.counts["duplicate"], recording.source)
    tally.lose("out of order", kept.counts["late"], recording.source)
    if kept.rows is not None:
        resets = np.cumsum(kept.rows)[resets] - 1
        recording = recording._replace(
            seconds=recording.seconds[kept.rows],
            samples=recording.samples[kept.rows],
            codes=recording.codes[kept.rows],
        )
    if not len(recording.seconds):
        return
    max_gap = gap_s(max_gap_s, own) * rate_hz
    seconds = recording.seconds
    if rate.kind != "regular":
        loose = max(max_gap, rates.PAUSE_S * rate_hz) if shared else max_gap + 1.0
        rough = grid.segments(seconds, rate_hz, loose, resets)
        seconds = _steady(seconds, rate, rough, shared)
    starts = grid.segments(seconds, rate_hz, max_gap, resets)
    tally.events["gaps"] += len(starts) - 1 - len(resets)
    tally.events["clock resets"] += len(resets)
    for piece in _gridded(recording, seconds, starts, rate_hz, same, tally):
        yield recording, piece if same else _resampled(piece, ratio)


def _ratio(own_hz, to_hz):
    """Returns a short fraction near ``own_hz / to_hz``, exact if possible."""
    exact = fractions.Fraction(own_hz / to_hz).limit_denominator(64)
    if abs(float(exact) * to_hz / own_hz - 1) < 1e-6:
        return exact
    return fractions.Fraction(own_hz / to_hz).limit_denominator(
        12 if own_hz > to_hz else 64
    )


def _steady(seconds, rate, starts, shared):
    if not shared:
        return rates.steady(seconds, rate, starts)
    even = np.empty(len(seconds))
    for begin, end in zip(starts, [*starts[1:], len(seconds)], strict=True):
        even[begin:end] = rates.steady(seconds[begin:end], rate)
    return even


def _gridded(recording, seconds, starts, rate_hz, same, tally):
    count = len(seconds)
    ends = np.append(starts[1:], count)
    begin = 0
    while begin < count:
        # Whole segments up to CHUNK rows, or a part of a longer one.
        last = int(np.searchsorted(ends, begin + CHUNK, side="right")) - 1
        segment = int(np.searchsorted(starts, begin, side="right")) - 1
        is_open = last < segment and same
        if last < segment:
            end = begin + CHUNK if same else int(ends[segment])
            inner = np.array([begin])
        else:
            end = int(ends[last])
            inner = np.concatenate([[begin], starts[segment + 1 : last + 1]])
        origin = int(starts[segment])
        where = _positions(seconds[begin:end], rate_hz, inner - begin, seconds[origin])
        samples = recording.samples[begin:end]
        points = grid.interpolate(where, samples, inner - begin)
        values_at, rows, exact = points
        if is_open and (exact is None or exact[-1]) and rows[-1] == end - begin - 1:
            # The next piece begins with this row.
            values_at, rows = values_at[:-1], rows[:-1]
            exact = None if exact is None else exact[:-1]
        at = np.searchsorted(rows, inner - begin)
        if begin > origin:
            at = at[1:]  # The first segment continues.
        missing = np.round(np.diff(where)) - 1  # Rows that would be between two rows.
        missing[inner[1:] - begin - 1] = 0
        tally.events["interpolated rows"] += int(missing.clip(0).sum())
        piece = Piece(
            values_at, rows + begin, None if exact is None else ~exact, at, is_open
        )
        yield piece
        begin = end - 1 if is_open else end


def _positions(seconds, rate_hz, starts, origin):
    """Returns positions on the segments' grids; the first begins at ``origin``."""
    if seconds[0] == origin:
        return grid.positions(seconds, rate_hz, starts)
    where = (seconds - origin) * rate_hz
    base = math.floor(where[0])
    first = int(starts[1]) if len(starts) > 1 else len(seconds)
    nearest = np.round(where[:first])
    tolerance = max(grid.NEAR, 4 * float(np.spacing(np.abs(seconds).max())) * rate_hz)
    near = np.abs(where[:first] - nearest) <= tolerance
    where[:first] = np.where(near, nearest, where[:first]) - base
    if first < len(seconds):
        rest = grid.positions(seconds[first:], rate_hz, starts[1:] - first)
        where[first:] = rest
    return where


def _resampled(piece, ratio):
    """Returns the piece at the rate divided by ``ratio``, segment by segment."""
    rates_hz = float(ratio.numerator), float(ratio.denominator)
    bounds = np.unique(np.concatenate([[0], piece.starts, [len(piece.rows)]]))
    parts, rows, starts = [], [], []
    for begin, end in zip(bounds[:-1].astype(int), bounds[1:].astype(int), strict=True):
        signals = piece.samples[begin:end].T
        signal = np.stack([resample(each, *rates_hz) for each in signals], axis=1)
        starts.append(sum(map(len, parts)))
        parts.append(signal)
        index = (np.arange(len(signal)) * float(ratio)).astype(np.int64)
        rows.append(piece.rows[begin:end][np.minimum(index, end - begin - 1)])
    return Piece(
        np.concatenate(parts), np.concatenate(rows), None, np.array(starts), False
    )
