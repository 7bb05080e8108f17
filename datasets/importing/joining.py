"""Sensors of different rates on one set of times."""

import collections
from collections.abc import Sequence

import numpy as np

from jaxanon.datasets.importing.table import Labels, Table
from jaxanon.recordings import times

OUTSIDE = "row outside the times of another sensor"  # Cause of losses.
MAX_STEPS = 3  # Longest interpolated gap, in a sensor's own median steps.


def join(
    tables: Sequence[Table], source: str, stem: str, where: Sequence[str]
) -> Table:
    """Joins sensors that were recorded together, one table per sensor.

    The result has the rows of the fastest sensor, within the times that all sensors
    cover. Other sensors are interpolated linearly between their samples; a gap longer
    than three of a sensor's own steps is missing. A label holds from its row to the
    next. Tables without channels hold only labels.

    Args:
      tables: tables with times.
      source: name of the recording for messages.
      stem: name of the recording.
      where: name of each sensor.

    Raises:
      ValueError: if times cannot be parsed, or the sensors have no time in common.
    """
    parsed = [times.parse(t.times, t.time_format, where=t.source) for t in tables]
    origin = parsed[0].origin
    seconds = [each.seconds + (each.origin - origin) for each in parsed]
    orders = [_increasing(each) for each in seconds]
    sensors = [n for n, table in enumerate(tables) if table.channels]
    for n in sensors:
        if len(orders[n]) < 2:
            raise ValueError(
                f"{tables[n].source}: a sensor must have at least 2 rows with a time, "
                f"got {len(orders[n])}."
            )
    steps = {n: np.median(np.diff(seconds[n][orders[n]])) for n in sensors}
    base = min(sensors, key=lambda n: steps[n])
    start = max(seconds[n][orders[n][0]] - steps[n] for n in sensors)
    stop = min(seconds[n][orders[n][-1]] + steps[n] for n in sensors)
    at = seconds[base]
    inside = ~((at < start) | (at > stop))  # A missing time is the importer's matter.
    if not (inside & np.isfinite(at)).any():
        raise ValueError(
            f"{source}: sensors must be recorded at the same time, got no common "
            f"time of {[where[n] for n in sensors]}; import them separately."
        )
    at = at[inside]
    parts, sparse, labels, losses, first_lines = [], {}, {}, collections.Counter(), {}
    for n, table in enumerate(tables):
        order = orders[n]
        if n == base:
            parts.append(table.samples[inside])
            labels |= {
                k: v._replace(codes=v.codes[inside]) for k, v in table.labels.items()
            }
        else:
            own = seconds[n][order]
            parts.append(np.empty((len(at), len(table.channels))))
            for channel in range(len(table.channels)):
                values = table.samples[order, channel]
                parts[-1][:, channel] = interpolate(at, own, values, steps[n])
            labels |= {k: _held(v, own, order, at) for k, v in table.labels.items()}
            if table.channels and not np.isclose(steps[n], steps[base], rtol=0.05):
                own_hz = float(f"{1 / steps[n]:.3g}")
                sparse |= dict.fromkeys(table.channels, own_hz)
        for cause, count in table.losses.items():
            losses[f"{cause} of {where[n]}"] += count
            first_lines[f"{cause} of {where[n]}"] = table.first_lines.get(cause)
    if not inside.all():
        losses[OUTSIDE] = int(np.count_nonzero(~inside))
    return Table(
        source=source,
        samples=np.concatenate(parts, axis=1),
        channels=tuple(name for table in tables for name in table.channels),
        units=tuple(unit for table in tables for unit in table.units),
        times=np.asarray(tables[base].times)[inside],
        labels=labels,
        subject=None,
        stem=stem,
        losses=losses,
        first_lines=first_lines,
        time_format=tables[base].time_format,
        sparse=sparse,
    )


def _increasing(seconds):
    """Returns the rows with a time, in order of time and without repeats."""
    rows = np.flatnonzero(np.isfinite(seconds))
    if len(rows) and not (np.diff(seconds[rows]) > 0).all():
        _, first = np.unique(seconds[rows], return_index=True)
        rows = rows[first]
    return rows


def interpolate(at, own, values, step) -> np.ndarray:
    """Interpolates a sensor at other times; NaN in gaps and outside its times.

    Args:
      at: float64[rows], times.
      own: float64[n], increasing times of the sensor.
      values: float64[n]; missing values are skipped.
      step: the sensor's median step.

    Example:
      >>> interpolate(np.arange(5.0), np.array([0.0, 2.0]), np.array([0.0, 4.0]), 2.0)
      array([0., 2., 4., 4., 4.])
    """
    present = np.isfinite(values)
    own, values = own[present], values[present]
    if not len(own):
        return np.full(len(at), np.nan)
    found = np.interp(at, own, values)
    after = np.searchsorted(own, at).clip(0, len(own) - 1)
    before = np.maximum(np.searchsorted(own, at, side="right") - 1, 0)
    inside = (at >= own[0]) & (at <= own[-1])
    gap = np.where(inside, own[after] - own[before], 0.0)
    # Hold the first and the last value for one step.
    far = np.where(inside, gap > MAX_STEPS * step * 1.001, False)
    far |= (at < own[0] - step * 1.001) | (at > own[-1] + step * 1.001)
    return np.where(far | ~np.isfinite(at), np.nan, found)


def _held(labels, own, order, at):
    """Returns labels at other times: each holds until the next."""
    if not len(order):
        return Labels(np.full(len(at), -1, np.int32), labels.names)
    rows = np.searchsorted(own, np.nan_to_num(at, nan=-np.inf), side="right") - 1
    codes = np.where(rows < 0, -1, labels.codes[order][rows])
    return Labels(codes.astype(np.int32), labels.names)
