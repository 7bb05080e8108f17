"""Summary of an import: what was read, what was kept, and every loss by cause."""

import collections
import json
import zipfile
from pathlib import Path

import numpy as np

MEMBER = "import.json"  # Name of the summary in an .npz file.
REST = "rest before "  # Rows after the last window of a stretch.
MAX_NAMES = 8  # Names that a sentence lists.


class Tally:
    """Counts of an import, filled while files are read."""

    def __init__(self):
        self.rows = self.points = self.stretches = self.windows = 0
        self.losses: dict[str, dict] = {}
        self.events: collections.Counter[str] = collections.Counter()
        self.files: list[dict] = []
        self.sparse: dict[str, float] = {}  # Rate in Hz by channel.

    def lose(self, cause: str, rows: int, source: str, line: int | None = None) -> None:
        """Adds rows that were lost for a cause."""
        if not rows:
            return
        loss = self.losses.setdefault(
            cause, {"rows": 0, "files": [], "first": Path(source).name, "line": line}
        )
        loss["rows"] += int(rows)
        if source not in loss["files"][-1:]:
            loss["files"].append(source)


def describe(
    tally: Tally, arrays: dict, labels: list[str], options: dict, absent: dict
) -> dict:
    """Returns the summary as a JSON object.

    Args:
      tally: counts of the import.
      arrays: labels and class names by attribute, as in the ``.npz`` file.
      labels: attributes that may change within a recording.
      options: settings of the import that the summary repeats.
      absent: names without windows by attribute.
    """
    names = {key[:-6]: value for key, value in arrays.items() if key.endswith("_names")}
    classes = {
        name: dict(
            zip(
                map(str, each),
                np.bincount(arrays[name], minlength=len(each)).tolist(),
                strict=True,
            )
        )
        for name, each in names.items()
    }
    people = [str(name) for name in names["subject"]]
    by_person = {
        name: np.bincount(
            arrays["subject"].astype(np.int64) * len(each) + arrays[name],
            minlength=len(each) * len(people),
        )
        .reshape(len(people), len(each))
        .tolist()
        for name, each in names.items()
        if name in labels
    }
    losses = {
        cause: {"rows": loss["rows"], "files": len(loss["files"])}
        | {key: loss[key] for key in ("first", "line") if loss[key] is not None}
        for cause, loss in tally.losses.items()
    }
    return {
        "rows": tally.rows,
        "seconds": tally.points / options["rate_hz"],
        "windows": tally.windows,
        **options,
        "files": tally.files,
        "classes": classes,
        "windows_by_person": {"people": people} | by_person,
        "losses": losses,
        "events": {name: count for name, count in tally.events.items() if count},
        "own_rate_hz": tally.sparse,
        "lost": {name: each for name, each in absent.items() if each},
    }


def listed(names, most: int = MAX_NAMES) -> str:
    """Returns names in one sentence, the first few in full.

    Example:
      >>> listed(["ann", "bob", "cem"], most=2)
      "'ann', 'bob' and 1 more"
    """
    names = [repr(str(name)) for name in names]
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return ", ".join(names)


def lines(summary: dict) -> list[str]:
    """Returns the summary as lines of text: a table, the losses and the files."""
    rate = summary["rate_hz"]
    text = [*_files(summary["files"]), ""]
    text += _tables(summary)
    text += _losses(summary)
    for channel, hz in summary["own_rate_hz"].items():
        text.append(f"{channel} has its own rate of {hz:g} Hz and is interpolated.")
    for name, names in summary["lost"].items():
        text.append(f"No window: {name} {listed(names)}.")
    text += [
        f"{summary['rows']} rows, {summary['seconds']:.6g} s on the grid: "
        f"{summary['windows']} windows of {summary['length']} samples at {rate:g} Hz.",
        f"Channels: {_channels(summary)}.",
    ]
    return text


def loss_line(summary: dict) -> str:
    """Returns the rows that were lost, in one sentence; "" for none.

    The rest of a stretch after its last window is not counted.
    """
    losses = {
        cause: loss["rows"]
        for cause, loss in summary["losses"].items()
        if not cause.startswith(REST)
    }
    if not losses:
        return ""
    return (
        f"{sum(losses.values())} of {summary['rows']} rows are in no window "
        f"({', '.join(f'{rows} {cause}' for cause, rows in losses.items())}); "
        "jaxanon datasets show FILE prints the summary."
    )


def _files(files):
    """Returns one line per rate and format of times."""
    groups = collections.defaultdict(list)
    for file in files:
        groups[file["rate_hz"], file["times"]].append(file["file"])
    text = []
    for (rate, times), names in sorted(groups.items(), key=lambda pair: -len(pair[1])):
        formats = f"times in {times}" if times else "rows without times"
        which = listed(dict.fromkeys(names), 3)
        hz = f"{rate:g} Hz" if rate else "no rate"
        text.append(f"{hz}, {formats}: {which}")
    return text


def _channels(summary):
    """Returns names and units; one unit of all stands at the end."""
    names, units = summary["channels"], summary["units"]
    unit = ""
    if len(set(units)) == 1:
        unit = f" in {units[0]}" if units[0] else " without units"
    elif any(units):
        names = [
            f"{name} [{unit or '-'}]" for name, unit in zip(names, units, strict=True)
        ]
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return f"{', '.join(names[:12])}{more}{unit}"


def _tables(summary):
    """Returns windows by person (rows) and class (columns) of each attribute."""
    by, classes = summary["windows_by_person"], summary["classes"]
    text = []
    for name, counts in by.items():
        if name == "people":
            continue
        header = [f"windows by {name}", *classes[name], "all"]
        rows = [
            [person, *map(str, each), str(sum(each))]
            for person, each in zip(by["people"], counts, strict=True)
        ]
        totals = [*map(str, classes[name].values()), str(summary["windows"])]
        text += [*_aligned([header, *rows, ["all", *totals]]), ""]
    if len(by) == 1:
        rows = [[person, str(count)] for person, count in classes["subject"].items()]
        text += [*_aligned([["person", "windows"], *rows]), ""]
    for name, counts in classes.items():
        if name not in by and name != "subject":
            each = ", ".join(f"{label} {count}" for label, count in counts.items())
            text += [f"{name}: {each}", ""]
    return text


def _losses(summary):
    rows = summary["rows"]
    if not summary["losses"]:
        return ["All rows are in windows.", ""]
    table = [["rows in no window", "rows", "share", "files", "first in"]]
    for cause, loss in summary["losses"].items():
        line = f", line {loss['line']}" if loss.get("line") else ""
        table.append(
            [
                cause,
                str(loss["rows"]),
                f"{100 * loss['rows'] / max(1, rows):.3g} %",
                str(loss["files"]),
                f"{loss['first']}{line}",
            ]
        )
    text = _aligned(table, last_left=True)
    events = summary["events"]
    if events:
        each = ", ".join(f"{name} {count}" for name, count in events.items())
        text += ["", f"Events: {each}."]
    return [*text, ""]


def _aligned(rows, last_left=False):
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    text = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        for at, cell in enumerate(row[1:], 1):
            left = last_left and at == len(row) - 1
            cells.append(cell if left else cell.rjust(widths[at]))
        text.append("  ".join(cells).rstrip())
    return text


def to_json(summary: dict) -> bytes:
    """Returns the content of ``import.json``."""
    return json.dumps(summary, indent=1, ensure_ascii=True).encode()


def read(path) -> dict | None:
    """Reads the summary of an imported file; None if the file holds none.

    Raises:
      FileNotFoundError: if the file does not exist.
      ValueError: if the file is not an ``.npz`` file, or its summary is damaged.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{str(path)!r} does not exist or is not a file.")
    try:
        with zipfile.ZipFile(path) as archive:
            if MEMBER not in archive.namelist():
                return None
            summary = json.loads(archive.read(MEMBER))
        if not isinstance(summary, dict):
            raise ValueError(f"{MEMBER} holds no object")
        return summary
    except (zipfile.BadZipFile, ValueError, EOFError) as error:
        raise ValueError(
            f"{str(path)!r} must be an .npz file of jaxanon datasets import, got a "
            f"damaged or other file ({error})."
        ) from error
