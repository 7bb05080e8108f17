"""TFDS builder of the five homes."""

import gzip
import io
import zlib
from pathlib import Path

import numpy as np

from jaxanon.datasets import energy
from jaxanon.datasets.builder import RecordingsBuilder
from jaxanon.datasets.households.description import COLUMNS, DATASET, SURVEYS
from jaxanon.datasets.households.location import FILES
from jaxanon.datasets.sources import read_each

STUCK = 10  # Minutes of identical readings that mean a filled gap.


class Builder(RecordingsBuilder):
    """Reads ``<SURVEY>_House<number>_<month>.gzip``."""

    name = "households"
    dataset = DATASET
    num_channels = 1 + len(COLUMNS)

    def recordings(self, source: tuple[Path, ...]):
        """Yields one recording per metered stretch, by home and time."""
        homes: dict[tuple[str, str], dict] = {}
        for match, content in read_each(source, FILES):
            survey, number, month = match.groups()
            months = homes.setdefault((survey, number), {})
            if month in months:
                raise ValueError(
                    f"files must be unique, got {match.string} twice, perhaps "
                    "compressed and uncompressed; remove one."
                )
            months[month] = read_month(match.string, content)
        for (survey, number), months in sorted(homes.items()):
            minutes, rows = (
                np.concatenate(parts)
                for parts in zip(
                    *(months[each] for each in sorted(months)), strict=True
                )
            )
            read = ~is_unread(rows)
            labels = {
                "survey": [*SURVEYS].index(survey),
                "subject": f"{SURVEYS[survey]} {number}",
            }
            for first, part in energy.stretches(minutes[read], rows[read]):
                clock = (first + np.arange(len(part))) % energy.DAY
                yield np.concatenate([clock[:, None], part], axis=1), first, labels


def is_unread(rows: np.ndarray) -> np.ndarray:
    """Marks rows of gaps, which the files fill.

    The files repeat the last reading for 15 minutes or two hours, then contain 0. The
    total power of an inhabited home is never 0.
    """
    return (rows[:, 0] == 0) | energy.repeated(rows, STUCK)


def read_month(name: str, content: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Returns minutes since 1970 and ``float32[minutes, columns]``, 0 if not metered.

    Raises:
      ValueError: if the file is damaged or lacks a column of all homes.
    """
    try:
        text = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(
            f"{name} is truncated or damaged ({error}); download it again."
        ) from error
    header, _, body = text.partition(b"\n")
    titles = header.decode("utf-8-sig", "replace").strip().split(",")
    if missing := [title for title in ("Time", *COLUMNS[:3]) if title not in titles]:
        raise ValueError(
            f"{name} must have the columns {missing}, got {titles}; download it again."
        )
    kinds = [(t, "U19" if t == "Time" else np.float32) for t in titles]
    try:
        table = np.loadtxt(io.BytesIO(body), kinds, delimiter=",", ndmin=1)
        minutes = table["Time"].astype("datetime64[m]").astype(np.int64)
        columns = [
            table[title] if title in titles else np.zeros(len(table), np.float32)
            for title in COLUMNS
        ]
        rows = np.stack(columns, axis=1)
        if not (np.isfinite(rows).all() and (np.diff(minutes) > 0).all()):
            raise ValueError("NaN, infinity, or time does not increase")
    except ValueError as error:
        raise ValueError(
            f"{name} must hold a time and {len(titles) - 1} numbers per row, but is "
            f"truncated or damaged ({error}); download it again."
        ) from error
    return minutes, rows
