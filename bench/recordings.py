"""Measures the import of recordings in rows per second, beside pandas.

Example: ``python bench recordings --smoke``.

Writes one recording of a time, three channels and a label as CSV and as Parquet, reads
it as a table of the import, and cuts it into windows. The rivals are
``pandas.read_csv`` (its default parser, and pyarrow's) and ``pandas.read_parquet``,
which only parse; they are left out if pandas is missing. Each reader's numbers are
compared with those that were written. Rates are in rows per second of elapsed time and
of processor time, which a busy machine changes less.
"""

import pathlib
import tempfile
import time

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from harness import timing
from jaxanon.datasets import import_recordings
from jaxanon.datasets.importing import reading
from jaxanon.datasets.importing.table import Columns

CHANNELS = ("x", "y", "z")
COLUMNS = Columns(channels=CHANNELS, labels=("act",), time="time")
REPEATS = 3


def main():
    """Measures both formats."""
    args = timing.arguments(__doc__, rows=timing.number(10_000_000, "rows of a file"))
    report = timing.Report(args.json, smoke=args.smoke)
    rows = 50_000 if args.smoke else args.rows
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        samples = write(folder, rows)
        for suffix in ("csv", "parquet"):
            path = folder / f"ann.{suffix}"
            for name, read in readers(path, folder).items():
                measure(report, f"{suffix}, {name}", read, samples)
    report.write()


def write(folder, rows) -> np.ndarray:
    """Writes one recording in both formats; returns ``float64[rows, 3]``."""
    random = np.random.default_rng(0)
    samples = np.round(random.normal(size=(rows, len(CHANNELS))), 5)
    acts = np.array(["sit", "walk"])[np.arange(rows) // 1000 % 2]
    columns = {"time": np.round(np.arange(rows) / 50, 3)}
    columns |= dict(zip(CHANNELS, samples.T, strict=True))
    table = pa.table({**columns, "act": pa.array(acts)})
    plain = pyarrow.csv.WriteOptions(quoting_style="none")
    pyarrow.csv.write_csv(table, folder / "ann.csv", plain)
    pyarrow.parquet.write_table(table, folder / "ann.parquet")
    return samples


def readers(path, folder):
    """Returns functions that return samples, or None for windows, by name."""

    def table():
        (found,) = reading.tables([path], COLUMNS)
        return found.samples

    def windows():
        settings = {"channels": CHANNELS, "labels": ["act"], "time": "time"}
        output = folder / "own.npz"
        import_recordings([path], output, length=128, overwrite=True, **settings)

    found = {"table": table, "windows in a file": windows}
    try:
        import pandas
    except ImportError:
        print("pandas is missing, so it is not measured.", flush=True)
        return found
    numbers = lambda frame: frame[list(CHANNELS)].to_numpy()
    if path.suffix == ".parquet":
        found["pandas"] = lambda: numbers(pandas.read_parquet(path))
    else:
        found["pandas"] = lambda: numbers(pandas.read_csv(path))
        found["pandas with pyarrow"] = lambda: numbers(
            pandas.read_csv(path, engine="pyarrow")
        )
    return found


def measure(report, name, read, samples):
    """Adds the median rates of a reader after one run that checks its numbers."""
    found = read()
    if found is not None:
        np.testing.assert_allclose(found, samples)
    elapsed, processor = [], []
    for _ in range(REPEATS):
        start = time.perf_counter(), time.process_time()
        read()
        elapsed.append(time.perf_counter() - start[0])
        processor.append(time.process_time() - start[1])
    rows = len(samples)
    for kind, seconds in (("elapsed", elapsed), ("processor", processor)):
        rate = rows / float(np.median(seconds)) / 1e6
        unit = f"M rows/s {kind}"
        report.add(name, rate, unit, f"{rows} rows, {len(CHANNELS)} channels")


if __name__ == "__main__":
    main()
