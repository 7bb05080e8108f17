"""Readers of files whose layout is more than a header and rows."""

import datetime
import importlib
import io
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxanon.datasets.importing import frames
from jaxanon.datasets.importing.files import File
from jaxanon.datasets.importing.frames import Frame
from jaxanon.recordings import dialect as dialects

PAMAP2_PLACES = ("hand", "chest", "ankle")
PAMAP2_COLUMNS = (
    *("timestamp", "activity", "heart rate"),
    *(
        f"{place} {name}"
        for place in PAMAP2_PLACES
        for name in (
            "temperature",
            *(
                f"{kind} {axis}"
                for kind in ("acc16", "acc6", "gyro", "mag")
                for axis in "xyz"
            ),
            *(f"orientation {n}" for n in range(4)),
        )
    ),
)
PAMAP2_ACTIVITIES = {
    "0": "",  # Between activities; its authors ask to discard these rows.
    **{"1": "lying", "2": "sitting", "3": "standing", "4": "walking", "5": "running"},
    **{
        "6": "cycling",
        "7": "nordic walking",
        "9": "watching TV",
        "10": "computer work",
    },
    **{"11": "car driving", "12": "ascending stairs", "13": "descending stairs"},
    **{"16": "vacuum cleaning", "17": "ironing", "18": "folding laundry"},
    **{"19": "house cleaning", "20": "playing soccer", "24": "rope jumping"},
}
WISDM_COLUMNS = ("user", "activity", "timestamp", "x", "y", "z")
EMPATICA_UNITS = {"ACC": "g", "BVP": "", "EDA": "µS", "HR": "1/min", "TEMP": "°C"}
HEART_RATE = "HKQuantityTypeIdentifierHeartRate"


def _with_column(frame: Frame, name: str, unit: str, values: Callable[[int], object]):
    """Returns a frame with one more column, made from the number of rows."""
    at = len(frame.header)

    def fetch(numbers, texts, time):
        asked = [n for n in (*numbers, *texts, time) if n is not None]
        own = at in asked
        others = [n for n in (*numbers, *texts) if n != at]
        # Without a time column, damaged rows stay, and the rows keep their times.
        found = frame.fetch(
            [n for n in numbers if n != at] or ([] if others else [0]),
            [n for n in texts if n != at],
            None if time == at else time,
        )
        if own:
            count = len(next(iter(found.columns.values())))
            found = found._replace(columns={**found.columns, at: values(count)})
        return found

    return frame.with_fetch(
        fetch,
        header=(*frame.header, name),
        names=(*frame.names, name),
        units=(*frame.units, unit),
    )


def actigraph(file: File, encoding: str | None = None) -> Frame:
    """Reads raw CSV of ActiGraph; its first lines state start, rate and date format."""
    data = file.read()
    frame = frames.of_file(file, encoding, data=data)
    head = data[: dialects.HEAD_BYTES]
    found, mark = dialects.encoding_of(head)
    text = head[len(mark) :].decode(encoding or found, errors="replace")[:4000]
    written = re.search(r"date format (\S+)", text, re.IGNORECASE)
    order = written[1] if written else "M/d/yyyy"
    day_format = re.sub(
        r"M+|d+|y+", lambda m: {"M": "%m", "d": "%d", "y": "%Y"}[m[0][0]], order
    )
    time = next((n for n in frame.names if n.lower() == "timestamp"), None)
    if time is not None:
        at = frame.names.index(time)
        names = (*frame.names[:at], "Timestamp", *frame.names[at + 1 :])
        return frame._replace(names=names, time_format=f"{day_format} %H:%M:%S.%f")
    rate = re.search(r" at (\d+(?:\.\d+)?) ?Hz", text)
    clock = re.search(r"Start Time[ ,;]+(\d+:\d\d:\d\d(?:[.,]\d+)?)", text)
    day = re.search(r"Start Date[ ,;]+(\S+?)[,;]*\s", text)
    if not (rate and clock and day and float(rate[1]) > 0):
        raise ValueError(
            f"{file.where}: a raw file of ActiGraph without timestamps must begin with "
            "its lines of metadata (rate, Start Time, Start Date), got others; export "
            "it again with them, or with timestamps."
        )
    try:
        start = datetime.datetime.strptime(day[1], day_format)
        hours, minutes, seconds = clock[1].replace(",", ".").split(":")
        start += datetime.timedelta(
            hours=int(hours), minutes=int(minutes), seconds=float(seconds)
        )
    except (ValueError, OverflowError):
        raise ValueError(
            f"{file.where}: Start Date and Start Time must have the format {order} and "
            "HH:mm:ss, got others."
        ) from None
    step_ns = 1e9 / float(rate[1])
    times = lambda count: (
        np.datetime64(start, "ns")
        + np.round(np.arange(count) * step_ns).astype("m8[ns]")
    )
    return _with_column(frame, "Timestamp", "", times)._replace(time_format="iso")


def axivity(file: File, encoding: str | None = None) -> Frame:
    """Reads CSV of Axivity, with or without header; drops names of time zones."""
    data = file.read()
    first = data[:200].lstrip(b"\xef\xbb\xbf").splitlines()[:1]
    names = None
    if first and re.match(rb"\d{4}-\d\d-\d\d", first[0]):
        width = first[0].count(b",") + 1
        known = ("time", "x", "y", "z", "Gyro-X", "Gyro-Y", "Gyro-Z")
        names = (*known[:width], *(f"column {n}" for n in range(8, width + 1)))
    frame = frames.of_file(file, encoding, names, data)

    def fetch(numbers, texts, time):
        import pyarrow as pa

        found = frame.fetch(numbers, texts, time)
        compute: Any = importlib.import_module("pyarrow.compute")
        if time is not None and pa.types.is_string(found.columns[time].type):
            plain = compute.replace_substring_regex(found.columns[time], r" *\[.*", "")
            found = found._replace(columns={**found.columns, time: plain})
        return found

    return frame.with_fetch(fetch)


def empatica(file: File, encoding: str | None = None) -> Frame:
    """Reads a file of Empatica E4: start, rate, then rows."""
    kind = file.stem.upper()
    names = tuple("xyz") if kind == "ACC" else (kind,)
    data = file.read()
    lines = data[:1000].decode(encoding or "utf-8", errors="replace").splitlines()[:2]
    try:
        start, rate = (float(line.split(",")[0]) for line in lines)
    except ValueError:
        start = rate = np.nan
    if not (np.isfinite(start) and 0 < rate < 1e6):
        raise ValueError(
            f"{file.where}: the first two lines must be the start (seconds since 1970) "
            "and the rate (Hz), as in files of Empatica E4."
        )
    rows = re.split(rb"\r\n|\n|\r", data, maxsplit=2)[2]
    if len(names) == 1:  # One cell; a second column makes the delimiter certain.
        rows = re.sub(rb"(?m)(?<=[^\r\n])(?=\r?$)", b",", rows)
        frame = frames.of_file(file, encoding, (*names, ""), rows)
    else:
        frame = frames.of_file(file, encoding, names, rows)
    unit = EMPATICA_UNITS.get(kind, "")
    frame = frame._replace(units=tuple(unit if name else "" for name in frame.names))
    if kind == "ACC":
        frame = _scaled(frame, 1 / 64)
    return _with_column(
        frame, "time", "s", lambda count: start + np.arange(count) / rate
    )


def _scaled(frame, scale):
    """Returns a frame whose numbers are multiplied; they stand as g / 64, say."""

    def fetch(numbers, texts, time):
        import pyarrow as pa

        found = frame.fetch(numbers, texts, time)
        columns = dict(found.columns)
        for n in numbers:
            if pa.types.is_floating(columns[n].type):
                columns[n] = columns[n].to_numpy() * scale
        return found._replace(columns=columns)

    return frame.with_fetch(fetch)


def pamap2(file: File, encoding: str | None = None) -> Frame:
    """Reads a .dat file of PAMAP2: 54 columns without header, separated by blanks."""
    return frames.of_file(file, encoding, PAMAP2_COLUMNS)


def wisdm_raw(file: File, encoding: str | None = None) -> Frame:
    """Reads raw text of WISDM; rows end in semicolons, and some lack a line end."""
    data = re.sub(rb",?[ \t]*;[ \t]*", b"\n", file.read())
    data = re.sub(rb",(?=[\r\n])", b"", data)
    return frames.of_file(file, encoding, WISDM_COLUMNS, data)


def apple_health(file: File, encoding: str | None = None) -> Frame:
    """Reads heart rates from an export of Apple Health; labels are its workouts."""
    rates, workouts = [], []
    source = io.BytesIO(file.read()) if file.path is None else str(file.path)
    try:
        root = None
        for event, element in ElementTree.iterparse(source, ("start", "end")):
            root = element if root is None else root
            if event == "start":
                continue
            get = element.get
            if element.tag == "Record" and get("type") == HEART_RATE:
                rates.append((_apple_time(get("startDate")), float(get("value") or "")))
            elif element.tag == "Workout":
                kind = (get("workoutActivityType") or "").removeprefix(
                    "HKWorkoutActivityType"
                )
                begin, end = _apple_time(get("startDate")), _apple_time(get("endDate"))
                workouts.append((begin, end, kind))
            if element.tag in ("Record", "Workout", "Correlation"):
                root.clear()  # Else the tree of a large export fills the memory.
    # The parser also raises UnicodeError and LookupError for damaged text.
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise ValueError(
            f"{file.where}: the file must be an export of Apple Health, got damaged "
            f"XML ({type(error).__name__})."
        ) from None
    if not rates:
        raise ValueError(
            f"{file.where}: the export must hold heart rates ({HEART_RATE}), got none."
        )
    rates = sorted(set(rates))  # Exports may repeat records.
    times, values = np.array(rates, np.float64).T
    labels = np.full(len(times), "", object)
    for begin, end, kind in workouts:
        labels[(times >= begin) & (times <= end)] = kind
    columns = {"time": times, "heart rate": values, "workout": labels}
    getters = {name: lambda name=name: columns[name] for name in columns}
    return frames.of_columns(file.where, getters, ["s", "1/min", ""])


def _apple_time(text):
    """Returns seconds since 1970 of "2020-01-31 08:00:00 +0100"."""
    return datetime.datetime.strptime(text or "", "%Y-%m-%d %H:%M:%S %z").timestamp()
