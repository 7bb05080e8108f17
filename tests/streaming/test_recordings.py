"""Files and tables in, safe ones of the same form out."""

import csv
import gzip
import types

import jax
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from jaxanon import datasets
from jaxanon.edge import Signature, Stream
from jaxanon.streaming import anonymize_recordings

COUNT = 120
KEY = jax.random.key(0)


def signal(count=COUNT, seed=0):
    return np.random.default_rng(seed).normal(10, 3, (count, 2)).round(3)


def times(count=COUNT):
    return (7 + np.arange(count) / 10).round(3)


def mirrored(run, samples):
    return 2 * np.array(run.spec.mean) - samples


def write(path, text, encoding="utf-8", zipped=False):
    data = text.encode(encoding)
    path.write_bytes(gzip.compress(data) if zipped else data)
    return path


def german(samples=None, newline="\r\n"):
    """Semicolons, decimal commas, units, and columns that no model knows."""
    samples = signal() if samples is None else samples
    head = "Zeit,time [s],y [mg],mood,x [g]".split(",")
    rows = [head] + [
        [f"n{i}", f"{t:.3f}", f"{1000 * y:.0f}", "so;so" if i % 2 else "good", f"{x}"]
        for i, (t, (x, y)) in enumerate(zip(times(), samples, strict=True))
    ]
    quoted = [
        [f'"{cell}"' if ";" in cell else cell.replace(".", ",") for cell in row]
        for row in rows
    ]
    return "".join(";".join(row) + newline for row in quoted)


@pytest.mark.parametrize(
    ("encoding", "newline", "zipped"),
    [
        ("utf-8", "\n", False),
        ("utf-8-sig", "\r\n", False),
        ("utf-16", "\r\n", False),
        ("utf-8", "\n", True),
    ],
)
def test_a_file_keeps_its_dialect_columns_units_and_times(
    run, tmp_path, encoding, newline, zipped
):
    name = "a.csv.gz" if zipped else "a.csv"
    path = write(tmp_path / name, german(newline=newline), encoding, zipped)
    found = anonymize_recordings(run, path, tmp_path / "safe", key=KEY, carry=["mood"])
    assert found.output == [tmp_path / "safe" / name]
    data = found.output[0].read_bytes()
    text = (gzip.decompress(data) if zipped else data).decode(encoding)
    if encoding == "utf-8-sig":
        assert data.startswith(b"\xef\xbb\xbf")
    lines = text.split(newline)
    assert lines.pop() == "" and len(lines) == COUNT + 1
    assert lines[0] == "time [s];y [mg];mood;x [g]"
    rows = list(csv.reader(lines[1:], delimiter=";"))
    raw = list(csv.reader(german().split("\r\n")[1:-1], delimiter=";"))
    assert [row[0] for row in rows] == [row[1] for row in raw]  # To the digit.
    assert [row[2] for row in rows] == [row[3] for row in raw]
    number = lambda cell: float(cell.replace(",", "."))
    safe = np.array([[number(row[3]), number(row[1]) / 1000] for row in rows])
    np.testing.assert_allclose(safe, mirrored(run, signal()), atol=1e-3)
    (one,) = found.recordings
    assert one.dropped == ("Zeit",) and one.counts["released"] == COUNT


def test_a_safe_recording_can_be_anonymized_again(run, tmp_path):
    path = write(tmp_path / "a.csv", german())
    first = anonymize_recordings(run, path, tmp_path / "1", key=KEY, carry=["mood"])
    again = anonymize_recordings(
        run, first.output, tmp_path / "2", key=KEY, carry=["mood"]
    )
    assert again.output[0].read_text().splitlines()[0] == "time [s];y [mg];mood;x [g]"
    cells = [line.split(";") for line in again.output[0].read_text().splitlines()[1:]]
    x = np.array([float(row[-1].replace(",", ".")) for row in cells])
    np.testing.assert_allclose(x, signal()[:, 0], atol=1e-3)  # Mirrored twice.


def plain(tmp_path, name="a.csv", samples=None, head="time,x,y", when=None):
    samples = signal() if samples is None else samples
    when = [f"{t:.3f}" for t in times(len(samples))] if when is None else when
    rows = [f"{t},{x},{y}" for t, (x, y) in zip(when, samples, strict=True)]
    return write(tmp_path / name, "\n".join([head, *rows]) + "\n")


def cells(path):
    return [line.split(",") for line in path.read_text().splitlines()]


def test_times_are_exact_relative_or_on_a_grid(run, tmp_path):
    stamps = [f"2026-03-02T08:00:{s:09.6f}Z" for s in np.arange(COUNT) / 10 % 60]
    stamps[3] = "2026-03-02T08:00:00.312345Z"
    path = plain(tmp_path, when=stamps)
    exact = anonymize_recordings(run, path, tmp_path / "e", key=KEY)
    assert [row[0] for row in cells(exact.output[0])[1:]] == stamps
    assert "can identify" in exact.warnings[0]
    relative = anonymize_recordings(run, path, tmp_path / "r", key=KEY, time="relative")
    found = [float(row[0]) for row in cells(relative.output[0])[1:]]
    np.testing.assert_allclose(found[:5], [0, 0.1, 0.2, 0.312345, 0.4], atol=1e-9)
    assert not relative.warnings
    grid = anonymize_recordings(run, path, tmp_path / "g", key=KEY, time="grid")
    found = [row[0] for row in cells(grid.output[0])[1:]]
    assert found[3] == "2026-03-02T08:00:00.300000Z" and len(found) == COUNT


def test_the_grid_is_the_stream_of_the_device(run, tmp_path):
    when = times() + np.random.default_rng(1).uniform(-0.01, 0.01, COUNT).round(4)
    path = plain(tmp_path, when=[f"{t:.4f}" for t in when])
    found = anonymize_recordings(run, path, tmp_path / "g", time="grid", hop=5)
    safe = np.array(cells(found.output[0])[1:], float)
    signature = Signature(16, ("x", "y"), ("g", "g"), 10.0)
    window = lambda raw: np.asarray(run.method.anonymize(KEY, None, raw))
    model = types.SimpleNamespace(signature=signature, anonymize=window)
    device = Stream(model, hop=5, deadline_s=60)
    blocks = device.push(when.round(4), signal()) + device.close()
    assert [block.gap for block in blocks] == [""] * len(blocks)
    np.testing.assert_allclose(
        safe[:, 1:], np.concatenate([block.samples for block in blocks]), atol=1e-5
    )
    starts = np.concatenate(
        [block.start + np.arange(len(block.samples)) / 10 for block in blocks]
    )
    np.testing.assert_allclose(safe[:, 0], starts, atol=1e-6)


def test_gaps_are_empty_cells_with_a_reason_on_request(run, tmp_path):
    when = times()
    when[60:] += 5
    when[110:] += 5  # The last ten rows are shorter than a window.
    path = plain(tmp_path, when=[f"{t:.3f}" for t in when])
    found = anonymize_recordings(run, path, tmp_path / "s", key=KEY, gaps="column")
    rows = cells(found.output[0])
    assert rows[0] == ["time", "x", "y", "gap"]
    assert [row[1:] for row in rows[111:]] == [
        ["", "", "the segment is shorter than a window"]
    ] * 10
    assert all(row[1] and not row[3] for row in rows[1:111])
    assert found.recordings[0].gaps == {"the segment is shorter than a window": 10}


def test_nothing_raw_is_in_outputs_or_messages(run, tmp_path):
    samples = signal()
    path = plain(tmp_path, samples=samples)
    text = path.read_text().splitlines()
    text[50] = "12.0,1234.567"
    text[51] = "12.1,oops 987,8.125"
    text.insert(1, "# worn by Ann")
    path.write_text("\n".join(text))
    found = anonymize_recordings(run, path, tmp_path / "s", key=KEY)
    output = found.output[0].read_text()
    assert "Ann" not in output and "oops" not in output and "987" not in output
    raw = {f"{value}" for value in samples.ravel()}
    assert not raw & {cell for row in cells(found.output[0]) for cell in row[1:]}
    assert found.recordings[0].losses == {
        "malformed row": 1,
        "cell that is not a number": 1,
    }
    path.write_text(
        "\n".join(f"{t},{x},{y}" for t, (x, y) in zip(times(), samples, strict=True))
    )
    with pytest.raises(
        ValueError, match="exactly one column 'x', got the columns"
    ) as e:
        anonymize_recordings(run, path, tmp_path / "s", overwrite=True)
    assert not any(value in str(e.value) for value in raw)


def test_private_columns_and_measurements_are_not_carried(run, tmp_path):
    text = german().splitlines()
    text = [
        f"{line};{cell}"
        for line, cell in zip(text, ["gender"] + ["f"] * COUNT, strict=True)
    ]
    path = write(tmp_path / "a.csv", "\n".join(text) + "\n")
    with pytest.raises(ValueError, match="private attribute, got 'gender'"):
        anonymize_recordings(run, path, tmp_path / "s", carry=["gender"])
    path.write_text(path.read_text().replace("gender", "code"))
    with pytest.raises(
        ValueError, match="'code', whose values are classes of 'gender'"
    ):
        anonymize_recordings(run, path, tmp_path / "s", carry=["code"])
    path.write_text(
        path.read_text().replace("code", "code;z").replace(";f\n", ";f;0,5\n")
    )
    assert not list(tmp_path.glob("s/*"))
    found = anonymize_recordings(
        run, path, tmp_path / "s", carry=["code"], allow_private=True
    )
    assert found.output[0].read_text().splitlines()[1].endswith(";f")


def test_files_that_are_named_like_people_are_counted(run, tmp_path):
    found = anonymize_recordings(
        run, [plain(tmp_path), plain(tmp_path, "1.csv")], tmp_path / "s", key=KEY
    )
    assert found.warnings[1].startswith(
        "The names of 1 of 2 outputs are classes of 'subject'; rename files and folders"
    )


def test_a_column_of_measurements_is_no_label(run):
    table = {"time": times(), "x": signal()[:, 0], "y": signal()[:, 1]}
    table |= {"z": signal(seed=5)[:, 0]}
    with pytest.raises(ValueError, match="'z', a column of measurements"):
        anonymize_recordings(run, table, carry="z")


def test_folders_keep_their_layout(run, tmp_path):
    (tmp_path / "in" / "deep").mkdir(parents=True)
    plain(tmp_path / "in", "a.csv")
    plain(tmp_path / "in" / "deep", "a.csv")
    (tmp_path / "in" / "notes.pdf").write_text("no recording")
    found = anonymize_recordings(run, tmp_path / "in", tmp_path / "out", key=KEY)
    assert [path.relative_to(tmp_path / "out").as_posix() for path in found.output] == [
        "a.csv",
        "deep/a.csv",
    ]
    with pytest.raises(FileExistsError, match="overwrite"):
        anonymize_recordings(run, tmp_path / "in", tmp_path / "out")
    with pytest.raises(ValueError, match="another folder"):
        anonymize_recordings(run, tmp_path / "in", tmp_path / "in", overwrite=True)


def test_parquet_and_tables_keep_their_types(run, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    ticks = (1_700_000_000_000 + 100 * np.arange(COUNT)).astype(np.int64)
    x, y = signal().T
    table = pa.table(
        {"timestamp": pa.array(ticks), "x [mg]": 1000 * x, "y": np.float32(y)}
    )
    pq.write_table(table, tmp_path / "a.parquet")
    found = anonymize_recordings(run, tmp_path / "a.parquet", tmp_path / "s", key=KEY)
    safe = pq.read_table(found.output[0])
    assert safe.schema.remove_metadata() == table.schema
    assert safe["timestamp"] == table["timestamp"]
    np.testing.assert_allclose(
        safe["x [mg]"].to_numpy() / 1000, mirrored(run, signal())[:, 0], atol=1e-3
    )
    assert found.recordings[0].time_format == "ms"
    arrow = anonymize_recordings(run, table, key=KEY).output
    np.testing.assert_array_equal(arrow["y"].to_numpy(), safe["y"].to_numpy())
    arrays = anonymize_recordings(run, {"t": times(), "x": x, "y": y}, key=KEY).output
    np.testing.assert_allclose(arrays["x"], mirrored(run, signal())[:, 0], atol=1e-3)


EPOCH_S = 1_770_000_000


@pytest.mark.parametrize(
    ("kind", "per_s"),
    [
        (pa.float64(), 1),
        (pa.int64(), 10**3),
        (pa.int64(), 10**9),
        (pa.uint64(), 10**6),
        (pa.timestamp("ms"), 10**3),
        (pa.timestamp("ns", "Europe/Berlin"), 10**9),
    ],
)
@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_times_on_a_grid_keep_the_type_of_their_column(
    run, tmp_path, kind, per_s, suffix
):
    ticks = EPOCH_S * per_s + np.arange(COUNT) * (per_s // 10 or 0.1)
    rows = dict(zip("xy", signal().T, strict=True))
    rows |= {"time": pa.array(ticks).cast(kind)}
    path = tmp_path / f"a.{suffix}"
    module = pa.parquet.write_table if suffix == "parquet" else pa.feather.write_feather
    module(pa.table(rows), path)
    read = pa.parquet.read_table if suffix == "parquet" else pa.feather.read_table
    found = anonymize_recordings(run, path, tmp_path / "g", key=KEY, time="grid")
    grid = read(found.output[0])
    assert grid.schema.field("time").type == read(path).schema.field("time").type
    found, expected = grid["time"].to_pylist(), read(path)["time"].to_pylist()
    assert found == (
        pytest.approx(expected) if pa.types.is_floating(kind) else expected
    )
    in_memory = anonymize_recordings(run, read(path), key=KEY, time="grid").output
    assert in_memory["time"].equals(grid["time"])


def test_an_empty_recording_keeps_the_types_of_its_columns(run, tmp_path):
    path = tmp_path / "a.parquet"
    pa.parquet.write_table(pa.table(table(times())).slice(0, 0), path)
    found = anonymize_recordings(run, path, tmp_path / "g", key=KEY, time="grid")
    assert pa.parquet.read_schema(found.output[0]).field("time").type == pa.float64()


def test_outputs_appear_together_or_not_at_all(run, tmp_path):
    paths = [plain(tmp_path, "a.csv"), plain(tmp_path, "b.csv", head="time,x,other")]
    for output in (tmp_path / "safe", tmp_path):
        output = output / "out"
        with pytest.raises(ValueError, match="exactly one column 'y'"):
            anonymize_recordings(run, paths, output, key=KEY)
        assert not output.exists()
    output.mkdir()
    (output / "a.csv").write_text("old")
    with pytest.raises(ValueError, match="exactly one column 'y'"):
        anonymize_recordings(run, paths, output, key=KEY, overwrite=True)
    assert [each.name for each in output.iterdir()] == ["a.csv"]
    assert (output / "a.csv").read_text() == "old"


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_come_back_as_data_frames(run, library):
    frames = pytest.importorskip(library)
    x, y = signal().T
    frame = frames.DataFrame({"time": times(), "x": x, "y": y, "mood": ["a"] * COUNT})
    safe = anonymize_recordings(run, frame, key=KEY, carry="mood").output
    assert type(safe) is type(frame) and list(safe.columns) == list(frame.columns)
    np.testing.assert_allclose(safe["x"], mirrored(run, signal())[:, 0], atol=1e-3)


def test_no_window_spans_two_people(run):
    x, y = signal().T
    person = np.repeat(["ann", "bob"], COUNT // 2)
    table = {"time": times(), "x": x, "y": y, "who": person}
    both = anonymize_recordings(run, table, key=KEY, subject="who")
    assert list(both.output) == ["time", "x", "y"]
    # Each has windows of their own: 60 samples in steps of 8, and one at the end.
    assert both.recordings[0].counts["windows"] == 2 * 7
    assert anonymize_recordings(run, table).recordings[0].counts["windows"] == 14


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"time": "rough"}, "time must be one of"),
        ({"hop": 17}, r"hop must be an integer in \[1, 16\]"),
        ({"rate_hz": 0.0}, "rate_hz must be > 0"),
        ({"channels": ["x"]}, "channels must name 2 columns"),
        ({"units": ["g", "g", "g"]}, "units must be one unit or 2"),
        ({"units": ["rad/s"]}, "converts to 'g'"),
        ({"carry": ["x"]}, "other than times and channels"),
        ({"carry": ["nope"]}, "exactly one column 'nope'"),
        ({"output_dir": "safe"}, "None for a table"),
    ],
)
def test_options_that_do_not_fit_are_refused(run, changes, message):
    x, y = signal().T
    with pytest.raises(ValueError, match=message):
        anonymize_recordings(run, {"time": times(), "x": x, "y": y}, **changes)


def test_values_in_another_unit_are_refused(run):
    x, y = 1000 * signal().T
    with pytest.raises(ValueError, match="times as large; state their units"):
        anonymize_recordings(run, {"time": times(), "x": x, "y": y})
    found = anonymize_recordings(run, {"time": times(), "x": x, "y": y}, units="mg")
    np.testing.assert_allclose(
        found.output["x"] / 1000, mirrored(run, signal())[:, 0], atol=1e-3
    )


def test_a_column_that_holds_no_times_is_not_quoted(run):
    x, y = signal().T
    table = {"time": ["raw 1234.5"] * COUNT, "x": x, "y": y}
    with pytest.raises(ValueError, match="got other text; give its format") as raised:
        anonymize_recordings(run, table)
    assert "1234" not in str(raised.value)


def test_a_safe_recording_is_imported_like_any_other(run, tmp_path):
    path = write(tmp_path / "ann.csv", german())
    options = {"key": KEY, "carry": ["mood"], "gaps": "column"}
    safe = anonymize_recordings(run, path, tmp_path / "safe", **options).output
    found = datasets.import_recordings(
        safe,
        tmp_path / "safe.npz",
        channels=["x", "y"],
        time="time",
        units=["g"],
        length=8,
    )
    with np.load(found) as file:
        windows = file["windows"]
    np.testing.assert_allclose(windows[0], mirrored(run, signal())[:8], atol=1e-3)


def table(when, **columns):
    x, y = signal(len(when)).T
    return {"time": when, "x": x, "y": y} | columns


def test_a_grid_carries_the_labels_of_each_person_and_pass_of_the_clock(run):
    when = np.concatenate([times(), times()])
    mood = np.repeat(["sad", "glad"], COUNT)
    both = table(when, mood=mood, who=mood)
    for subject in ("who", None):
        found = anonymize_recordings(
            run, both, key=KEY, time="grid", carry=["mood"], subject=subject
        )
        carried = found.output["mood"].tolist()
        assert carried[:COUNT] == ["sad"] * COUNT
        assert carried[-COUNT:] == ["glad"] * COUNT


def test_a_row_whose_quote_does_not_end_is_counted_and_not_carried(run, tmp_path):
    rows = [f"{t},{x},{y},ok" for t, (x, y) in zip(times(), signal(), strict=True)]
    rows[50] = rows[50].replace("ok", '"ok')
    path = write(tmp_path / "a.csv", "\n".join(["time,x,y,mood", *rows]) + "\n")
    found = anonymize_recordings(run, path, tmp_path / "safe", key=KEY, carry=["mood"])
    (summary,) = found.recordings
    assert summary.counts["rows"] == COUNT - 1
    assert summary.losses == {"malformed row": 1} and summary.first_malformed == 52
    assert '"' not in (text := found.output[0].read_text())
    assert text.count("\n") == COUNT


def test_missing_times_stay_missing_when_times_are_whole_numbers(run):
    when = (np.arange(COUNT) * 100_000).astype(object)
    when[5] = None
    found = anonymize_recordings(
        run, table(when), key=KEY, time="relative", time_format="us"
    )
    assert np.flatnonzero(np.isnan(found.output["time"])).tolist() == [5]


def test_a_recording_without_a_value_gives_an_empty_grid(run):
    empty = table(times()) | {"x": np.full(COUNT, np.nan)}
    found = anonymize_recordings(run, empty, key=KEY, time="grid")
    assert {name: len(column) for name, column in found.output.items()} == {
        "time": 0,
        "x": 0,
        "y": 0,
    }


def test_the_index_of_a_frame_is_not_released(run):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(table(times()), index=["ann"] * COUNT)
    found = anonymize_recordings(run, frame, key=KEY)
    assert found.output.index.tolist() == list(range(COUNT))


def test_columns_are_checked_where_their_values_begin(run):
    classes = run.spec.classes[run.spec.private[0]]
    count = (1 << 18) + 20  # More than the rows that are read at a time.
    alias = np.full(count, "", object)
    alias[-10:] = classes[0]
    when = np.arange(count) / 10
    with pytest.raises(ValueError, match="must not name a private attribute"):
        anonymize_recordings(run, table(when, alias=alias), key=KEY, carry=["alias"])


def test_columns_are_checked_in_every_batch(run):
    classes = run.spec.classes[run.spec.private[0]]
    count = (1 << 18) + 20
    alias = np.full(count, "unknown", object)
    alias[-10:] = classes[0]
    when = np.arange(count) / 10
    with pytest.raises(ValueError, match="must not name a private attribute"):
        anonymize_recordings(run, table(when, alias=alias), key=KEY, carry=["alias"])


def test_text_among_times_does_not_leave(run, tmp_path):
    when = [f"{t:.1f}" for t in times()]
    when[40] = "Ann called"
    found = anonymize_recordings(run, plain(tmp_path, when=when), tmp_path / "s")
    rows = cells(found.output[0])[1:]
    assert rows[40][0] == "" and [row[0] for row in rows[:40]] == when[:40]


def test_relative_times_wait_for_the_first_known_time(run, tmp_path):
    schema = pa.schema(
        [("time", pa.float64()), ("x", pa.float64()), ("y", pa.float64())]
    )
    values = signal()
    with pa.ipc.new_file(str(tmp_path / "a.feather"), schema) as file:
        for when in ([None] * COUNT, (1.7e9 + 0.4 + times()).tolist()):
            columns = [pa.array(when, pa.float64()), *map(pa.array, values.T)]
            file.write_batch(pa.record_batch(columns, schema=schema))
    path = tmp_path / "a.feather"
    found = anonymize_recordings(run, path, tmp_path / "s", time="relative")
    stamps = pa.feather.read_table(found.output[0])["time"].to_numpy()
    np.testing.assert_allclose(stamps[COUNT:], times() - times()[0], atol=1e-6)


def test_a_truncated_gzip_file_is_refused_by_name(run, tmp_path):
    path = plain(tmp_path, samples=signal(40_000))
    whole = gzip.compress(path.read_bytes())
    cut = tmp_path / "b.csv.gz"
    cut.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="b.csv.gz' cannot be read"):
        anonymize_recordings(run, cut, tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_a_carried_column_gap_conflicts_with_that_of_gaps(run):
    content = table(times(), gap=["no"] * COUNT)
    with pytest.raises(ValueError, match="carry must not name 'gap'"):
        anonymize_recordings(run, content, carry="gap", gaps="column")


def test_messages_on_times_quote_no_text(run, tmp_path):
    rows = [f"{x},{y},Ann's secret" for x, y in signal()]
    path = write(tmp_path / "a.csv", "\n".join(["x,y,note", *rows]) + "\n")
    with pytest.raises(ValueError, match="got other text") as caught:
        anonymize_recordings(run, path, tmp_path / "safe", time_column="note")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("source", [3, [3], np.zeros((4, 2))])
def test_other_sources_are_rejected_by_type(run, tmp_path, source):
    with pytest.raises(TypeError, match="source must be paths"):
        anonymize_recordings(run, source, tmp_path / "safe")
