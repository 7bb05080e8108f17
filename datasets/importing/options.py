"""Settings of an import, and their checks."""

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jaxanon.datasets.custom_arrays import distinct
from jaxanon.datasets.importing import frames, presets
from jaxanon.datasets.importing.people import check_attributes
from jaxanon.datasets.importing.table import Columns
from jaxanon.recordings import dialect as dialects


class Options(NamedTuple):
    """Settings of cutting tables into windows; see ``import_recordings``."""

    length: int = 128
    stride: int = 64
    rate_hz: float | None = None
    row_rate_hz: float | None = None  # Rate of rows without times.
    time_format: str | None = None
    max_gap_s: float | None = None
    resample: bool = True
    bins: Mapping[str, tuple[float, ...]] = {}
    allow_lost: bool = False


def check(
    paths,
    output: Path | None,
    *,
    channels,
    labels,
    time,
    subject,
    units,
    length,
    stride,
    rate_hz,
    bins,
    max_gap_s,
    preset,
    encoding,
    **others,
) -> tuple[Columns, Options]:
    """Returns the columns and options of ``import_recordings``, or raises."""
    lists = {"paths": paths, "channels": channels, "labels": labels, "units": units}
    for name, value in lists.items():
        if isinstance(value, (str, os.PathLike)):
            raise TypeError(f"{name} must be a list, got {value!r}; use [{value!r}].")
    _check_paths(output, paths)
    row_rate_hz = rate_hz
    if preset is not None:
        row_rate_hz = presets.find(preset).rate_hz or rate_hz
    elif not channels:
        raise ValueError(
            "channels (--channels) must name at least one column with measurements, "
            f"got none{_columns(paths, encoding)}."
        )
    distinct("channels and labels", (*channels, *labels))
    check_attributes(labels, "labels")
    if len(units) not in (0, 1, len(channels)):
        raise ValueError(
            f"units must be one for all channels or one for each of {list(channels)}, "
            f"got {list(units)}."
        )
    stride = max(1, length // 2) if stride is None else stride
    for name, value in {"length": length, "stride": stride}.items():
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise TypeError(f"{name} must be a whole number of samples, got {value!r}.")
        if value < 1:
            raise ValueError(f"{name} must be at least 1 sample, got {value}.")
    if rate_hz is None and time is None and preset is None:
        raise ValueError(
            "rate_hz (--rate-hz, rows per second) or time (--time, column with times) "
            f"must be given, got neither{_columns(paths, encoding)}."
        )
    for name, value in {"rate_hz": rate_hz, "max_gap_s": max_gap_s}.items():
        if value is not None and not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} must be > 0 and finite, got {value!r}.")
    columns = Columns(
        channels=tuple(channels),
        labels=tuple(labels),
        time=time,
        subject=subject,
        units=tuple(units),
        format=preset,
        encoding=encoding,
    )
    bins = {name: tuple(map(float, each)) for name, each in (bins or {}).items()}
    options = Options(
        length=int(length),
        stride=int(stride),
        rate_hz=None if rate_hz is None else float(rate_hz),
        row_rate_hz=None if row_rate_hz is None else float(row_rate_hz),
        max_gap_s=max_gap_s,
        bins=bins,
        **others,
    )
    return columns, options


def _columns(paths, encoding):
    """Returns the names of the first file's columns for a message, or ""."""
    if not isinstance(paths[0], (str, os.PathLike)):
        return ""
    names = frames.columns_of(paths[0], encoding).values()
    names = [each for each in names if each and not dialects.is_number(each)]
    more = [f"and {len(names) - 30} more"] if len(names) > 30 else []
    where = f"{Path(paths[0]).name!r} has the columns"
    return f"; {where} {names[:30] + more}" if names else ""


def _check_paths(output, paths):
    if output is not None and output.suffix != ".npz":
        raise ValueError(f"output must end in .npz, got {str(output)!r}.")
    if not len(paths):
        raise ValueError("paths must have at least one CSV file, got none.")
    files = [
        Path(path).resolve() for path in paths if isinstance(path, (str, os.PathLike))
    ]
    if len(set(files)) < len(files):
        raise ValueError(f"paths must be distinct, got {[str(p) for p in paths]}.")
