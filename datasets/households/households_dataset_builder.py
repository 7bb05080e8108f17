"""The TFDS builder of the five homes."""

import gzip
import io
import zlib
from pathlib import Path

import numpy as np
from etils import epath

from jaxanon.datasets import energy
from jaxanon.datasets.builder import RecordingsBuilder
from jaxanon.datasets.households.description import COLUMNS, DATASET, SURVEYS
from jaxanon.datasets.households.location import FILES
from jaxanon.datasets.sources import read_each

STUCK = 10  # Minutes of the very same readings: a gap that was filled.


class Builder(RecordingsBuilder):
    """Reads ``<SURVEY>_House<number>_<month>.gzip``."""

    name = "households"
    pkg_dir_path = epath.Path(__file__).parent
    code_path = epath.Path(__file__)
    dataset = DATASET
    num_channels = 1 + len(COLUMNS)

    def recordings(self, source: tuple[Path, ...]):
        """One for each stretch that was metered, by home and time."""
        homes: dict[tuple[str, str], dict] = {}
        for match, content in read_each(source, FILES):
            survey, number, month = match.groups()
            months = homes.setdefault((survey, number), {})
            if month in months:
                raise ValueError(
                    f"{match.string} is there twice, perhaps compressed and not; "
                    "leave one of them."
                )
            months[month] = read_month(match.string, content)
        for (survey, number), months in sorted(homes.items()):
            minutes, rows = (
                np.concatenate(parts)
                for parts in zip(
                    *(months[each] for each in sorted(months)), strict=True
                )
            )
            read = ~unread(rows)
            labels = {
                "survey": [*SURVEYS].index(survey),
                "subject": f"{SURVEYS[survey]} {number}",
            }
            for first, part in energy.stretches(minutes[read], rows[read]):
                clock = (first + np.arange(len(part))) % energy.DAY
                yield np.concatenate([clock[:, None], part], axis=1), first, labels


def unread(rows: np.ndarray) -> np.ndarray:
    """Rows in which the meter was not read: the files fill its gaps.

    First the last reading is repeated, for a quarter of an hour or two hours, then
    everything is 0; a home that is lived in never takes 0.
    """
    return (rows[:, 0] == 0) | energy.repeated(rows, STUCK)


def read_month(name: str, content: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Minutes since 1970 and ``float32[minutes, columns]``; 0 of what is not metered.

    Raises:
      ValueError: naming the file, if it is damaged or lacks what every home has.
    """
    try:
        text = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(
            f"{name} is truncated or damaged ({error}); get it anew."
        ) from error
    header, _, body = text.partition(b"\n")
    titles = header.decode("utf-8-sig", "replace").strip().split(",")
    if missing := [title for title in ("Time", *COLUMNS[:3]) if title not in titles]:
        raise ValueError(
            f"{name} lacks the columns {missing}, it has {titles}; get it anew."
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
            raise ValueError("there is NaN or infinity, or time goes back")
    except ValueError as error:
        raise ValueError(
            f"{name} does not hold a time and {len(titles) - 1} numbers in each row "
            f"({error}); it is truncated or damaged, get it anew."
        ) from error
    return minutes, rows
