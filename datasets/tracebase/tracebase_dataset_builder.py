"""TFDS builder of Tracebase."""

import io
from pathlib import Path

import numpy as np

from jaxanon.datasets import energy
from jaxanon.datasets.builder import RecordingsBuilder
from jaxanon.datasets.extras import need
from jaxanon.datasets.sources import read_each
from jaxanon.datasets.tracebase.description import DATASET
from jaxanon.datasets.tracebase.location import FILES

COLUMNS = ("time", "power_w", "set", "type", "device")
COMPLETE = "complete"  # The set with traces of whole days.
MISSING = 5  # Maximum missing minutes of a day.


class Builder(RecordingsBuilder):
    """Reads ``tracebase_1min.parquet``."""

    name = "tracebase"
    dataset = DATASET
    num_channels = 1

    def recordings(self, source: tuple[Path, ...]):
        """Yields one recording per device and day, by type, device and date."""
        (content,) = (content for _, content in read_each(source, FILES))
        traces = read_traces(content)
        for name in sorted(traces):
            minutes, power = traces[name]
            for day in np.unique(minutes // energy.DAY):
                mask = minutes // energy.DAY == day
                if mask.sum() >= energy.DAY - MISSING:
                    within = minutes[mask] % energy.DAY
                    rows = whole_day(within, power[mask])[:, None]
                    yield rows, int(day) * energy.DAY, {"subject": name}


def whole_day(minutes: np.ndarray, power: np.ndarray) -> np.ndarray:
    """Returns a value for each minute of a day: the last reading, or the first one.

    Example:
      >>> whole_day(np.array([1, 3]), np.array([5.0, 7.0]))[[0, 1, 2, 3, 1439]]
      array([5., 5., 5., 7., 7.])
    """
    last = np.searchsorted(minutes, np.arange(energy.DAY), side="right") - 1
    return power[np.maximum(last, 0)]


def read_traces(content: bytes) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Returns minutes since 1970 and power (``float32``, W) by "type/device".

    Raises:
      ValueError: if the file is damaged or lacks a column.
      ImportError: if pyarrow is not installed.
    """
    parquet = need("pyarrow.parquet", "energy", "tracebase")
    try:
        file = parquet.ParquetFile(io.BytesIO(content))
        titles = file.schema_arrow.names
        if missing := [name for name in COLUMNS if name not in titles]:
            raise ValueError(f"it must have the columns {missing}")
        table = file.read(columns=list(COLUMNS))
    except (OSError, ValueError) as error:
        raise ValueError(
            f"tracebase_1min.parquet is damaged ({error}); create it again."
        ) from error
    codes, names = zip(*(_encode(table[name]) for name in COLUMNS[2:]), strict=True)
    mask = np.isin(codes[0], [i for i, name in enumerate(names[0]) if name == COMPLETE])
    minutes = table["time"].to_numpy().astype("datetime64[m]").astype(np.int64)[mask]
    power = table["power_w"].to_numpy().astype(np.float32)[mask]
    device_ids = (codes[1] * len(names[2]) + codes[2])[mask]
    order = np.lexsort((minutes, device_ids))
    unique_ids, starts = np.unique(device_ids[order], return_index=True)
    parts = zip(
        np.split(minutes[order], starts[1:]),
        np.split(power[order], starts[1:]),
        strict=True,
    )
    kind, device = np.divmod(unique_ids, len(names[2]))
    pairs = zip(kind.tolist(), device.tolist(), strict=True)
    titles = [f"{names[1][a]}/{names[2][b]}" for a, b in pairs]
    return dict(zip(titles, parts, strict=True))


def _encode(column):
    """Returns indices of a column's strings, and the distinct strings."""
    column = column.combine_chunks()
    if not hasattr(column, "dictionary"):
        column = column.dictionary_encode()
    return column.indices.to_numpy().astype(np.int64), column.dictionary.to_pylist()
