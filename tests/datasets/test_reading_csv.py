"""Tables of CSV files: drawn dialects, damaged rows, encodings and units."""

import csv
import gzip
import io
import zipfile

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from jaxanon.datasets.importing import csv_file, reading
from jaxanon.datasets.importing.table import Columns
from jaxanon.recordings import dialect as dialects

COLUMNS = Columns(channels=("x", "y"), labels=("act",), time="time")


def read(path, columns=COLUMNS):
    """Returns the table of one file."""
    (table,) = reading.tables([path], columns)
    return table


def written(tmp_path, data, name="a.csv"):
    """Writes a file; returns its path."""
    path = tmp_path / name
    text = data.encode(errors="surrogateescape") if isinstance(data, str) else data
    path.write_bytes(text)
    return path


def names_of(labels):
    """Returns the label of each row; None where it is missing."""
    return [labels.names[code] if code >= 0 else None for code in labels.codes]


number = st.floats(-1e6, 1e6).map(lambda x: round(x, 4)) | st.integers(-1000, 1000)
label = st.sampled_from(["sit", "walk fast", "a,b", 'say "hi"', "übung", "x;y", "1.5"])
rows = st.lists(
    st.tuples(number, st.none() | number, label | st.just("")), min_size=1, max_size=8
)
written_in = st.fixed_dictionaries(
    {
        "delimiter": st.sampled_from(",;\t|"),
        "decimal": st.sampled_from(".,"),
        "encoding": st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le"]),
        "newline": st.sampled_from(["\n", "\r\n", "\r"]),
        "quoting": st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
        "preamble": st.sampled_from(["", "Device: GT\n\nStart 13:00:00\n", "# a,b\n"]),
        "comments": st.booleans(),
        "missing": st.sampled_from(["", "NaN", "NA", "null", " "]),
        "blanks": st.booleans(),
    }
)


def text_of(table, dialect):
    """Writes rows of a time, two numbers and a label in a dialect."""
    file = io.StringIO()
    writer = csv.writer(
        file,
        delimiter=dialect["delimiter"],
        quoting=dialect["quoting"],
        lineterminator="\n",
    )
    file.write(dialect["preamble"])
    writer.writerow(["time", "y", "act", "x"])
    for n, (x, y, act) in enumerate(table):
        show = lambda value: (
            dialect["missing"]
            if value is None
            else str(value).replace(".", dialect["decimal"])
        )
        cells = [show(n / 50), show(y), act, show(x)]
        if dialect["blanks"] and dialect["quoting"] == csv.QUOTE_MINIMAL:
            cells = [f"{cell} " if cell else cell for cell in cells]
        writer.writerow(cells)
        if dialect["comments"]:
            file.write("# a remark\n\n")
    return file.getvalue().replace("\n", dialect["newline"])


@settings(max_examples=40, deadline=None)
@given(table=rows, dialect=written_in)
def test_a_drawn_table_in_a_drawn_dialect_is_read_back(
    tmp_path_factory, table, dialect
):
    path = tmp_path_factory.mktemp("drawn") / "a.csv"
    path.write_bytes(text_of(table, dialect).encode(dialect["encoding"]))
    found = read(path)
    np.testing.assert_allclose(found.times.astype(float), np.arange(len(table)) / 50)
    wanted = [[x, np.nan if y is None else y] for x, y, _ in table]
    np.testing.assert_allclose(found.samples, np.array(wanted, float))
    assert names_of(found.labels["act"]) == [act or None for *_, act in table]
    assert not found.losses


@settings(max_examples=40, deadline=None)
@given(table=rows, dialect=written_in, damage=st.data())
def test_the_fast_reader_agrees_with_the_one_by_lines(table, dialect, damage):
    """``_slow`` is the readable twin; a damaged line is drawn into both."""
    text = text_of(table, dialect | {"preamble": "", "encoding": "utf-8"})
    lines = text.split(dialect["newline"])
    bad = damage.draw(
        st.sampled_from(["1", '"', 'a"b', "1,2;3", '"1"2', "\0", "é", ","])
    )
    lines.insert(damage.draw(st.integers(1, len(lines))), bad)
    data = dialect["newline"].join(lines).encode()
    found = dialects.sniff(data)
    names = ("x", "y")
    if not {*names, "act", "time"} <= {*found.names}:
        return  # The damaged line looks like the header of a short file.
    numbers = [found.names.index(name) for name in names]
    text_index, time = found.names.index("act"), found.names.index("time")
    one = csv_file.read(data, found, numbers, [text_index], time)
    two = csv_file._slow(data, found, numbers, [text_index], time, "the file")
    assert (one.malformed, one.first_malformed) == (two.malformed, two.first_malformed)
    for n in numbers:
        values = [
            reading.cells.numbers(each.columns[n], found.decimal) for each in (one, two)
        ]
        np.testing.assert_array_equal(values[0][0], values[1][0])
    labels = [reading.cells.labels(each.columns[text_index]) for each in (one, two)]
    assert names_of(labels[0]) == names_of(labels[1])


GOOD = "time,x,y,act\n" + "".join(f"{n / 10},{n},{-n},sit\n" for n in range(6))
DAMAGE = {
    "too few cells": ("0.9,1", "malformed row"),
    "too many cells": ("0.9,1,2,sit,3", "malformed row"),
    "text behind a quote": ('0.9,"1"5,2,sit', "malformed row"),
    "a quote without end": ('0.9,"1,2,sit', "malformed row"),
    "a word": ("0.9,SECRET,2,sit", "cell that is not a number"),
    "an underscore": ("0.9,1_0,2,sit", "cell that is not a number"),
    "digits of another script": ("0.9,١,2,sit", "cell that is not a number"),
    "hexadecimal": ("0.9,0x1,2,sit", "cell that is not a number"),
    "bytes that are no text": ("\udca1", "malformed row"),
    "infinity": ("0.9,inf,2,sit", "cell that is not a number"),
    "more than float32": ("0.9,1e39,2,sit", "cell that is not a number"),
    "no time": ("yesterday,1,2,sit", "cell that is not a number"),
}


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("case", DAMAGE)
def test_damaged_rows_are_counted_by_cause_with_their_first_line(
    tmp_path, case, newline
):
    line, cause = DAMAGE[case]
    lines = GOOD.splitlines()
    text = newline.join([*lines[:4], "# remark", line, *lines[4:], line, ""])
    found = read(written(tmp_path, text))
    np.testing.assert_array_equal(found.samples[:, 0], np.arange(6))
    assert found.losses == {cause: 2} and found.first_lines == {cause: 6}


def test_without_times_a_damaged_row_stays_and_separates(tmp_path):
    text = "x,y,act\n1,2,sit\n1,2\n3,4,sit\n5,oh,sit\n6,7,sit\n"
    found = read(written(tmp_path, text), Columns(channels=("x", "y"), labels=("act",)))
    nan = np.nan
    np.testing.assert_array_equal(
        found.samples, [[1, 2], [nan, nan], [3, 4], [5, nan], [6, 7]]
    )
    assert found.first_lines == {"malformed row": 3, "cell that is not a number": 5}
    assert not found.losses  # The importer counts rows with missing cells.


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("time,x,y,act\n1,2\n2,3\n3,4,5,sit\n", "line 2: a row must have 4 cells"),
        (GOOD.replace("x,y", "x,act").replace(",sit", ",1"), "exactly one column 'y'"),
        ("0.0,1.25,2.5,3.5\n0.1,1.25,2.5,3.5\n", r"column 'x', got the columns \[\]"),
        ("", "it must hold a header and rows, got no line"),
        ("time,x,y,act\n" + "1,a,2,sit\n" * 3, "line 2: x must be a number, or empty"),
        ("time,x,y,x,act\n1,2,3,4,sit\n", "exactly one column 'x'"),
    ],
)
def test_files_without_the_columns_are_refused_without_their_rows(tmp_path, text, why):
    with pytest.raises(ValueError, match=rf"a\.csv.*{why}") as caught:
        read(written(tmp_path, text))
    assert "1.25" not in str(caught.value)


def test_labels_in_another_encoding_are_refused_until_it_is_stated(tmp_path):
    data = GOOD.replace("5,-5,sit", "5,-5,stra\u00dfe").encode("latin-1")
    path = written(tmp_path, data)
    with pytest.raises(ValueError, match=r"a\.csv, line 7: the text must be UTF-8"):
        read(path)
    found = read(path, COLUMNS._replace(encoding="latin-1"))
    assert names_of(found.labels["act"])[5] == "stra\u00dfe"
    # Columns that are not read may hold anything.
    read(path, COLUMNS._replace(labels=()))


def test_compressed_files_and_archives(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(GOOD.encode()))
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.writestr("in/ann.csv", GOOD)
        archive.writestr("in/bob.csv.gz", gzip.compress(GOOD.encode()))
        archive.writestr("__MACOSX/in/._ann.csv", b"\0\1")
        archive.writestr("in/picture.png", b"\x89PNG")
    paths = [tmp_path / "a.csv.gz", tmp_path / "b.zip"]
    found = list(reading.tables(paths, COLUMNS))
    assert [table.stem for table in found] == ["a", "ann", "bob"]
    assert found[1].source == f"{tmp_path}/b.zip/in/ann.csv"
    for table in found:
        np.testing.assert_array_equal(table.samples[:, 1], -np.arange(6.0))


def test_a_folder_holds_one_recording_per_file(tmp_path):
    for name in ("ann", "bob", "people"):
        written(tmp_path, GOOD, f"{name}.csv")
    (tmp_path / "notes.md").write_text("# notes")
    skip = [tmp_path / "people.csv"]
    found = list(reading.tables([tmp_path], COLUMNS, skip))
    assert [table.stem for table in found] == ["ann", "bob"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="empty': it must hold recordings"):
        list(reading.tables([tmp_path / "empty"], COLUMNS))
    with pytest.raises(FileNotFoundError, match=r"c\.csv' does not exist"):
        list(reading.tables([tmp_path / "c.csv"], COLUMNS))


def test_times_keep_the_form_of_the_file(tmp_path):
    forms = {
        "1770000000020": 1770000000020,
        "1770000000123456789": 1770000000123456789,  # float64 would lose 189 ns.
        "2026-03-02T08:00:00.020Z": np.datetime64("2026-03-02T08:00:00.020"),
        "2026-03-02T09:00:00.020+01:00": np.datetime64("2026-03-02T08:00:00.020"),
        "02/03/2026 08:00:00.020": "02/03/2026 08:00:00.020",
        "0.02": 0.02,
    }
    for cell, wanted in forms.items():
        text = f"time,x,y,act\n{cell},1,2,sit\n{cell},1,2,sit\n"
        found = read(written(tmp_path, text))
        assert found.times[1] == wanted, cell
    text = "time [ms],x,y,act\n0,1,2,sit\n20,1,2,sit\n"
    assert read(written(tmp_path, text)).time_format == "ms"


def test_units_of_headers_are_converted(tmp_path):
    data = "time,x [mg],y (deg/s),act\n0,250,180,sit\n1,-500,90,sit\n"
    path = written(tmp_path, data)
    found = read(path)
    assert found.units == ("g", "deg/s")
    np.testing.assert_array_equal(found.samples, [[0.25, 180], [-0.5, 90]])
    found = read(path, COLUMNS._replace(units=("m/s2", "rad/s")))
    assert found.units == ("m/s^2", "rad/s")
    np.testing.assert_allclose(found.samples[0], [0.25 * 9.80665, np.pi])
    with pytest.raises(ValueError, match=r"a\.csv: y: unit must measure acceleration"):
        read(path, COLUMNS._replace(units=("g",)))


def test_units_are_those_of_the_first_file(tmp_path):
    one = written(tmp_path, "time,x [m/s2],y,act\n0,9.80665,1,sit\n", "one.csv")
    two = written(tmp_path, "time,x [G],y,act\n0,2,1,sit\n", "two.csv")
    found = list(reading.tables([one, two], COLUMNS))
    assert [table.units for table in found] == [("m/s^2", "")] * 2
    np.testing.assert_allclose(found[1].samples[0, 0], 2 * 9.80665)
    (found, _) = reading.tables([two, one], COLUMNS)
    assert found.units == ("g", "")
    three = written(tmp_path, "time,x,y,act\n0,2,1,sit\n", "three.csv")
    with pytest.raises(
        ValueError, match=r"three\.csv: x must have a unit in all files"
    ):
        list(reading.tables([one, three], COLUMNS))
    found = list(reading.tables([one, three], COLUMNS._replace(units=("m/s^2", "V"))))
    np.testing.assert_allclose(found[1].samples[0, 0], 2)
