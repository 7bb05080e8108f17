"""An engineer's walk: messy CSV files in, safe ones out, from the shell alone."""

import contextlib
import csv
import datetime
import io

import numpy as np
import pytest

from jaxanon import datasets
from jaxanon.cli import app
from jaxanon.datasets.importing import summary

CHANNELS = ["acc x", "acc y", "acc z"]
PEOPLE = "ann", "bob", "cem", "dua", "eva", "fay"
ROWS, RATE_HZ, LENGTH = 403, 20, 16
START_MS = 1_600_000_000_120
G = 9.80665

pytestmark = pytest.mark.slow


def iso(ms, offset_h):
    zone = datetime.timezone(datetime.timedelta(hours=offset_h))
    return datetime.datetime.fromtimestamp(ms / 1000, zone).isoformat(
        timespec="milliseconds"
    )


# Header of times, their text, unit of the channels and its m/s^2, order, delimiter,
# decimal mark, encoding, line end.
FILES = {
    "ann": ("time", lambda ms: iso(ms, 0), "m/s^2", 1, "taxyzb", ",.", "utf-8", "\n"),
    "bob": (
        *("time", lambda ms: iso(ms, 2), "mg", G / 1000, "zatbxy", ";,"),
        *("utf-8-sig", "\r\n"),
    ),
    "cem": ("time [ms]", str, "g", G, "btzyxa", "\t.", "utf-8", "\n"),
    "dua": (
        *("time (s)", lambda ms: f"{ms / 1000:.3f}", "m/s2", 1, "xtyazb", ";,"),
        *("utf-16", "\r\n"),
    ),
    "eva": (
        *("time", lambda ms: f"{(ms - START_MS) / 1000:.2f}", "g", G, "ayxztb", ",."),
        *("utf-8-sig", "\n"),
    ),
    "fay": (
        *("time", lambda ms: f"{ms}000000", "mg", G / 1000, "taxyzb", ",."),
        *("utf-8", "\r\n"),
    ),
}


def recorded(folder, person):
    """Writes 20 s of rest and walking, with the same faults in each dialect."""
    title, text_of, unit, scale, order, marks, encoding, newline = FILES[person]
    number = PEOPLE.index(person)
    rng = np.random.default_rng(number)
    activity = np.where(np.arange(ROWS) < 205, "rest", "walk").astype(object)
    swing = (activity == "walk") * (2 + number) * np.sin(np.arange(ROWS) * 0.7)
    values = np.stack([swing, swing / 2, np.full(ROWS, 9.5 + number / 5)], 1) / scale
    values += rng.normal(0, 0.1 / scale, values.shape)
    cells = [[f"{x:.4f}" for x in row] for row in values]
    cells[20][0], cells[21][1], cells[230][2] = "", "NaN", "n/a"
    activity[300:320] = ["", "NaN"] * 10
    rows = [*range(60), *range(62, 100), *range(120, ROWS)]  # 0.1 s and 1 s are gone.
    rows.insert(rows.index(250), 250)
    at = rows.index(150)
    rows[at : at + 2] = 151, 150
    delimiter, mark = marks
    names = {"t": title, "a": "activity", "b": "battery"}
    names |= {axis: f"acc {axis} [{unit}]" for axis in "xyz"}
    lines = [delimiter.join(names[each] for each in order)]
    for row in rows:
        time = text_of(START_MS + row * 1000 // RATE_HZ)
        line = {"t": time, "a": activity[row], "b": "90"}
        line |= dict(zip("xyz", cells[row], strict=True))
        if mark == ",":
            line = {k: v if "T" in v else v.replace(".", ",") for k, v in line.items()}
        lines.append(delimiter.join(line[each] for each in order))
    lines.insert(9, "oh")
    text = newline.join(lines) + newline
    (folder / f"{person}.csv").write_bytes(text.encode(encoding))


def lines_of(folder, person):
    """Returns the columns of a file as text, by the csv module."""
    *_, marks, encoding, newline = FILES[person]
    text = (folder / f"{person}.csv").read_bytes().decode(encoding)
    assert text.count("\r") == text.count(newline) * ("\r" in newline)
    head, *rows = csv.reader(io.StringIO(text), delimiter=marks[0])
    rows = [row for row in rows if len(row) == len(head)]
    columns = dict(zip(head, zip(*rows, strict=True), strict=True))
    return {name: column for name, column in columns.items() if name != "battery"}


@pytest.fixture(scope="module")
def walk(tmp_path_factory, train_words):
    """The folder after five commands, and what each of them prints."""
    folder = tmp_path_factory.mktemp("walk")
    raw, safe, run = folder / "raw", folder / "safe", folder / "run"
    raw.mkdir()
    for person in PEOPLE:
        recorded(raw, person)

    def shown(*words):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            assert app.main([str(word) for word in words]) == 0
        return out.getvalue()

    how = ["--channels", *CHANNELS, "--labels", "activity", "--time", "time"]
    how += ["--length", LENGTH, "--output"]
    words = train_words(folder / "ours.npz", run)
    words = ["subject" if word == "gender" else word for word in words]
    carry = ["--output-dir", safe, "--carry", "activity"]
    yield (
        folder,
        {
            "import": shown("datasets", "import", raw, *how, folder / "ours.npz"),
            "train": shown(*words),
            "evaluate": shown("evaluate", run, "--attacks", "forest", "recordings"),
            "anonymize": shown("anonymize", run, "--input", raw, *carry),
            "again": shown(
                *("datasets", "import", *sorted(safe.iterdir()), *how),
                folder / "safe.npz",
            ),
        },
    )


def test_windows_and_losses_are_those_of_the_files(walk):
    folder, shown = walk
    about = summary.read(folder / "ours.npz")
    # Windows of 16 rows, every 8, in rows 0-99, 120-204, 205-299 and 320-402.
    assert about["windows_by_person"]["people"] == [*PEOPLE]
    assert about["windows_by_person"]["activity"] == [[11 + 9, 10 + 9]] * 6
    assert {cause: loss["rows"] for cause, loss in about["losses"].items()} == {
        "malformed row": 6,
        "missing number": 6 * 3,
        "missing label": 6 * 20,
        "repeat": 6,
        "out of order": 6,
        "rest before a gap": 6 * (4 + 7),
        "rest before a label change": 6 * 5,
        "rest before the end": 6 * 3,
    }
    # Missing cells, the short gap and the row that came late.
    events = {"gaps": 6 * 2, "label changes": 6, "interpolated rows": 6 * (3 + 2 + 1)}
    assert about["events"] == events
    formats = {file["person"]: file["times"] for file in about["files"]}
    assert formats == dict(
        zip(PEOPLE, ["iso", "iso", "ms", "s", "s", "ns"], strict=True)
    )
    assert "Channels: acc x, acc y, acc z in m/s^2." in shown["import"]


def test_the_report_quotes_recordings_as_released(walk):
    assert (
        "Balanced accuracy on recordings as released: activity" in walk[1]["evaluate"]
    )


def test_times_and_labels_are_those_of_the_input_to_the_digit(walk):
    folder, shown = walk
    assert "Not read: 6 malformed row" in shown["anonymize"]
    assert "Dropped columns: battery" in shown["anonymize"]
    for person in PEOPLE:
        raw = lines_of(folder / "raw", person)
        safe = lines_of(folder / "safe", person)
        assert list(safe) == list(raw)
        for name in raw:
            if name.startswith("acc"):
                assert not any(map(str.__eq__, safe[name], raw[name]))
            else:
                assert safe[name] == raw[name]


def test_the_output_is_read_alike_by_jaxanon_and_pandas(walk):
    pandas = pytest.importorskip("pandas")
    folder, _ = walk
    tables = {}
    for person in PEOPLE:
        *_, (delimiter, mark), encoding, _ = FILES[person]
        tables[person] = pandas.read_csv(
            folder / "safe" / f"{person}.csv",
            sep=delimiter,
            decimal=mark,
            encoding=encoding,
        )
    how = {"channels": CHANNELS, "labels": ["activity"], "time": "time"}
    with pytest.warns(UserWarning, match="120 missing label, 6 repeat, 6 out of order"):
        datasets.import_recordings(
            [tables], folder / "pandas.npz", length=LENGTH, **how
        )
    raw, safe = summary.read(folder / "ours.npz"), summary.read(folder / "safe.npz")
    assert safe["windows_by_person"] == raw["windows_by_person"]
    with np.load(folder / "safe.npz") as ours, np.load(folder / "pandas.npz") as theirs:
        for name in ("windows", "activity", "subject"):
            np.testing.assert_array_equal(ours[name], theirs[name])


def test_a_forest_of_scikit_learn_runs_on_the_result(walk):
    ensemble = pytest.importorskip("sklearn.ensemble")
    selection = pytest.importorskip("sklearn.model_selection")
    folder, _ = walk
    scores = {}
    for name in ("ours", "safe"):
        with np.load(folder / f"{name}.npz") as file:
            windows, person, activity = (
                file[key] for key in ("windows", "subject", "activity")
            )
        features = windows.reshape(len(windows), -1)
        folds = selection.StratifiedKFold(3).split(features, 2 * person + activity)
        forest = ensemble.RandomForestClassifier(30, random_state=0)
        each = selection.cross_val_score(forest, features, person, cv=list(folds))
        scores[name] = each.mean()
    # The sensors of people differ by an offset; the anonymizer is hardly trained.
    assert scores["ours"] > 0.5 > scores["safe"]
