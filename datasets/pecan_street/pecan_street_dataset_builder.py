"""TFDS builder of Pecan Street."""

import csv
import io
import re
from pathlib import Path

import numpy as np

from jaxanon.datasets import energy, sources
from jaxanon.datasets.builder import RecordingsBuilder
from jaxanon.datasets.extras import need
from jaxanon.datasets.pecan_street.clocks import minute_of_day, universal
from jaxanon.datasets.pecan_street.description import CIRCUITS, DATASET, REGIONS
from jaxanon.datasets.pecan_street.location import PEOPLE, REMEDY, SIGNALS

KEYS = ("dataid", "localminute")
USES = ("use", "grid")
SOLAR = ("solar", "solar2")
BLOCK = 1 << 24  # Bytes.


class Builder(RecordingsBuilder):
    """Reads ``1minute_data_<region>.csv`` and, if present, ``metadata.csv``."""

    name = "pecan_street"
    dataset = DATASET
    num_channels = 2 + len(CIRCUITS)

    def recordings(self, source: tuple[Path, ...]):
        """Yields one recording per metered stretch, by region, home and time."""
        states = {}
        for _, content in sources.read_each(source, PEOPLE):
            states |= read_states(content)
        homes = read_homes(source, states)
        for region, home in sorted(homes, key=lambda k: ([*REGIONS].index(k[0]), k[1])):
            minutes, rows = (
                np.concatenate(p) for p in zip(*homes[region, home], strict=True)
            )
            minutes, order = np.unique(minutes, return_index=True)
            labels = {"region": [*REGIONS].index(region), "subject": str(home)}
            for first, part in energy.stretches(minutes, rows[order]):
                utc = first + np.arange(len(part))
                clock = minute_of_day(utc, REGIONS[region][0])
                yield np.concatenate([clock[:, None], part], axis=1), first, labels


def read_states(content: bytes) -> dict[int, str]:
    """Returns the region of each home in metadata.csv."""
    regions = {}
    by_state = {state: region for region, (_, _, state) in REGIONS.items()}
    for row in csv.DictReader(io.StringIO(content.decode("utf-8-sig"))):
        home, state = ((row.get(title) or "").strip() for title in ("dataid", "state"))
        if home.isdigit() and state in by_state:  # One line describes the columns.
            regions[int(home)] = by_state[state]
    return regions


def read_homes(source: tuple[Path, ...], states: dict[int, str]) -> dict:
    """Returns (region, home) -> parts of minutes (UTC) and ``float32[n, columns]``, kW.

    Raises:
      ValueError: if a file is damaged, lacks a column, or has an unknown region.
    """
    homes: dict[tuple[str, int], list] = {}
    for path in source:
        for entry in sources.listing([path], SIGNALS):
            file_region = region_of(re.search(SIGNALS, entry[0]))
            with sources.open_file(path, entry[0]) as file:
                for home, minutes, rows in read_blocks(entry[0], file):
                    region = states.get(home, file_region)
                    if region is None:
                        raise ValueError(
                            f"{entry[0]} must be named after a region, or "
                            f"metadata.csv must list home {home}; {REMEDY}"
                        )
                    homes.setdefault((region, home), []).append((minutes, rows))
    return homes


def region_of(match) -> str | None:
    """Returns the region in a file name, or None."""
    for region, (_, names, _) in REGIONS.items():
        if match[1] and match[1].lower() in names:
            return region
    return None


def read_blocks(name: str, file):
    """Yields ``(home, minutes, rows)`` of each block and home.

    The total power is ``use``, or ``grid`` plus solar power if that is missing. Minutes
    without it are dropped. A missing circuit counts as 0.
    """
    arrow = need("pyarrow", "energy", "pecan_street")
    reader = need("pyarrow.csv", "energy", "pecan_street")
    titles = next(csv.reader([file.readline().decode("utf-8-sig", "replace")]), [])
    missing = [title for title in KEYS if title not in titles]
    if not {*USES} & {*titles}:
        missing.append(" or ".join(USES))
    if missing:
        raise ValueError(f"{name} must have the columns {missing}; {REMEDY}")
    numbers = [title for title in (*USES, *SOLAR, *CIRCUITS) if title in titles]
    kinds = {"dataid": arrow.int64(), "localminute": arrow.string()}
    kinds |= dict.fromkeys(numbers, arrow.float32())
    options = {
        "read_options": reader.ReadOptions(column_names=titles, block_size=BLOCK),
        "convert_options": reader.ConvertOptions(
            column_types=kinds, include_columns=[*kinds]
        ),
    }
    try:
        with reader.open_csv(file, **options) as blocks:
            for block in blocks:
                yield from _by_home(block)
    except (ValueError, EOFError, OSError) as error:
        raise ValueError(
            f"{name} is truncated or damaged ({error}); download it again."
        ) from error


def _by_home(block):
    columns = {
        name: block[name].to_numpy(zero_copy_only=False) for name in block.schema.names
    }
    minutes = universal(columns["localminute"].astype(str))
    use = columns.get("use")
    if use is None:
        suns = [columns[name] for name in SOLAR if name in columns]
        use = columns["grid"] + sum(map(np.nan_to_num, suns))
    zeros = np.zeros(len(use), np.float32)
    circuits = [np.nan_to_num(columns.get(name, zeros)) for name in CIRCUITS]
    rows = np.stack([use, *circuits], axis=1).astype(np.float32)
    homes = columns["dataid"]
    for home in np.unique(homes):
        mask = (homes == home) & np.isfinite(use)
        if mask.any():
            yield int(home), minutes[mask], rows[mask]
