"""The command line anonymizes files and pipes, and reports errors in one line."""

import errno
import hashlib
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from jaxanon import edge
from jaxanon.edge import dashboard
from jaxanon.edge.command import main


@pytest.fixture
def model(models, tmp_path):
    """Saves a model that negates windows of 8 samples of two channels."""
    return str(models.one_op(tmp_path / "a.onnx", "Neg"))


@pytest.fixture
def spending(models, tmp_path):
    """Saves the same model with an epsilon of 0.5 per window."""
    told = models.described(epsilon=0.5)
    return str(models.one_op(tmp_path / "e.onnx", "Neg", told))


def rows(count, header="time,acc x [g],acc y [g]"):
    lines = [f"{i / 50},{1000 + i},{2000 + i}" for i in range(count)]
    return "\n".join([header, *lines]) + "\n"


@pytest.fixture
def recording(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text(rows(40))
    return str(path)


def test_a_file_becomes_a_file(model, recording, tmp_path, capsys):
    out = tmp_path / "out.csv"
    words = ["run", model, "--input", recording, "--output", str(out)]
    assert main([*words, "--hop", "8"]) == 0
    said = capsys.readouterr()
    assert said.err == "jaxanon-edge: 40 pushed, 40 samples, 5 windows released\n"
    first, header, *lines = out.read_text().splitlines()
    assert "rate_hz 50.0" in first and header == "time,gap,acc x [g],acc y [g]"
    assert lines[0] == "0.000000,,-1000.0,-2000.0" and len(lines) == 40
    assert lines[-1] == "0.780000,,-1039.0,-2039.0"
    assert main(words) == 2  # The file already exists.
    assert capsys.readouterr().err.startswith("jaxanon-edge: error: ")
    assert main([*words, "--append"]) == 0


def test_a_pipe_becomes_a_pipe(model, tmp_path):
    """Starts the command from a shell; malformed rows count as missing."""
    text = rows(40).replace("1010,", "").replace("\n0.4,", "\nraw,")
    done = subprocess.run(
        [
            *(sys.executable, "-P", "-m", "jaxanon.edge", "run", model),
            *("--input", "-", "--output", "-", "--hop", "8"),
        ],
        input=text,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = [line.split(",") for line in done.stdout.splitlines()[1:]]
    assert [float(row[2]) for row in found] == [-1000.0 - i for i in range(40)]
    assert done.stderr == (
        "jaxanon-edge: the first malformed row is line 12 of -: "
        "it has another number of cells than the header.\n"
        "jaxanon-edge: 2 malformed, 38 pushed, 40 samples, 5 windows released\n"
    )


def test_what_the_disk_did_not_take_is_told(
    model, recording, tmp_path, capsys, monkeypatch
):
    take = os.pwrite

    def full(file, data, at):
        if at + len(data) > 500:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return take(file, data, at)

    monkeypatch.setattr(os, "pwrite", full)
    out = tmp_path / "out.csv"
    words = ["run", model, "--input", recording, "--output", str(out), "--hop", "8"]
    assert main(words) == 2
    lost = 40 - out.read_text().count(",,-1")
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "jaxanon-edge: 40 pushed, 40 samples, 5 windows released"
    assert (
        f"error: {lost} rows are missing in {out} (No space left on device)" in said[1]
    )


@pytest.fixture
def heard():
    """Restores Ctrl-C, which children of a background test run would ignore."""
    # Uses the default handler, as a new program does.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_ends_it_still_gets_what_it_held(model, number):
    words = [sys.executable, "-P", "-m", "jaxanon.edge", "run", model]
    words += ["--input", "-", "--output", "-", "--hop", "8"]
    pipe = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(words, text=True, **pipe) as process:
        # The first five seconds show what the times are like.
        process.stdin.write(rows(260))
        process.stdin.flush()
        read = [process.stdout.readline() for _ in range(1 + 256)]
        process.send_signal(number)
        ended = threading.Timer(60.0, process.kill)
        ended.start()
        left, said = process.stdout.read(), process.stderr.read()
        ended.cancel()
    assert process.returncode == 130
    assert read[-1] and "260 pushed" in said and "interrupted" in said
    assert [float(line.split(",")[2]) for line in left.splitlines()] == [
        -1000.0 - i for i in range(256, 260)
    ]


def test_a_pipe_that_nobody_reads_ends_the_stream(model, recording):
    words = [sys.executable, "-P", "-m", "jaxanon.edge", "run", model]
    words += ["--input", recording, "--output", "-"]
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, **piped) as process:
        process.stdout.close()
        said = process.stderr.read()
    assert process.returncode == 2
    assert said == b"jaxanon-edge: the output pipe was closed.\n"


def test_a_stream_of_which_nothing_is_left_says_so(model, tmp_path, capsys):
    short = tmp_path / "short.csv"
    short.write_text(rows(5))
    out = tmp_path / "out.csv"
    assert main(["run", model, "--input", str(short), "--output", str(out)]) == 3
    assert "5 pushed, 5 missing" in capsys.readouterr().err
    assert "1000" not in out.read_text()
    short.write_text(rows(0))
    other = str(tmp_path / "other.csv")
    assert main(["run", model, "--input", str(short), "--output", other]) == 0
    assert capsys.readouterr().err == "jaxanon-edge: no rows\n"


def test_a_budget_is_kept_from_run_to_run(spending, recording, tmp_path, capsys):
    """The budget covers 7 windows; each run has 5."""
    budget = tmp_path / "budget.json"
    out = tmp_path / "out.csv"
    words = ["run", spending, "--input", recording, "--output", str(out), "--append"]
    words += ["--hop", "8", "--budget", str(budget), "--epsilon", "3.5"]
    assert main(words) == 0
    assert "5 windows released" in capsys.readouterr().err
    assert main(words) == 0
    assert "24 missing, 2 windows released, 3 exhausted" in capsys.readouterr().err
    assert main(words) == 3
    assert edge.Budget(budget, 3.5).left == 0.0


def test_a_model_without_a_claim_makes_no_budget(model, recording, tmp_path, capsys):
    words = ["run", model, "--input", recording, "--output", str(tmp_path / "out.csv")]
    words += ["--budget", str(tmp_path / "budget.json"), "--epsilon", "7"]
    assert main(words) == 2
    assert "for a model without epsilon" in capsys.readouterr().err
    left = {path.name for path in tmp_path.iterdir()}
    assert not left & {"budget.json", ".budget.json.lock", "out.csv"}


def test_a_folder_that_is_not_there_is_named(model, recording, tmp_path, capsys):
    words = ["run", model, "--input", recording, "--output"]
    assert main([*words, str(tmp_path / "nowhere" / "out.csv")]) == 2
    assert "nowhere does not exist; create it for out.csv" in capsys.readouterr().err


REFUSED = [
    ([], "each window of this model spends epsilon 0.5; give budget"),
    (["--epsilon", "2"], "give its file with --budget"),
    (["--budget", "b.json"], "b.json holds no budget; give its size"),
    (
        ["--unbounded", "--budget", "b", "--epsilon", "1"],
        "--budget are mutually exclusive",
    ),
    (["--unbounded", "--hop", "9"], "hop must be an integer in [1, 8]"),
    (["--unbounded", "--rate", "-1"], "rate_hz must be > 0"),
    (["--unbounded", "--digest", "12"], "digest must begin with the 64 hexadecimal"),
    (["--unbounded", "--deadline", "0"], "deadline_s must be > 0"),
]


@pytest.mark.parametrize(("more", "message"), REFUSED)
def test_what_is_refused_is_a_line(
    spending, recording, tmp_path, monkeypatch, capsys, more, message
):
    monkeypatch.chdir(tmp_path)
    words = ["run", spending, "--input", recording, "--output", "out.csv", *more]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.startswith("jaxanon-edge: error: ") and said.count("\n") == 1
    assert message in said
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("header", "more", "message"),
    [
        ("time,acc y [g],acc x [g]", [], ""),
        ("time,acc x [rad/s],acc y [g]", [], "got 'rad/s'; convert it"),
        ("time,acc x,acc y", [], ""),
        ("time,acc x,acc z", [], "exactly one column 'acc y', got the columns"),
        ("when,acc x,acc y", [], "one column with times, such as 'time' or 'timesta"),
        ("when,acc x,acc y", ["--time-column", "when"], ""),
        ("0,1,2", [], "the header must name the columns"),
    ],
)
def test_columns_are_checked(model, tmp_path, capsys, header, more, message):
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text(rows(16, header))
    words = ["run", model, "--input", str(path), "--output", str(out), *more]
    assert main(words) == (2 if message else 0)
    assert message in capsys.readouterr().err
    if header.startswith("time,acc y"):
        assert "0.000000,,-2000.0,-1000.0" in out.read_text()


def test_rows_at_another_rate_than_they_are_taken_for_are_told(
    models, tmp_path, capsys, recording
):
    told = models.described()
    told["input"]["rate_hz"] = 100.0
    model = str(models.one_op(tmp_path / "b.onnx", told=told))
    words = ["run", model, "--input", recording, "--output"]
    assert main([*words, str(tmp_path / "a")]) == 0
    said = "rows arrive at 50 Hz, the model has 100 Hz; --rate sets another rate."
    assert said in capsys.readouterr().err
    assert main([*words, str(tmp_path / "b"), "--rate", "50"]) == 0
    assert "arrive" not in capsys.readouterr().err
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text()
    assert main([*words, str(tmp_path / "c"), "--rate", "100"]) == 0
    warning = "warning: rows arrive at 50 Hz instead of 100 Hz; set --rate 50 "
    assert warning in capsys.readouterr().err


def test_a_replay_takes_its_time(model, tmp_path):
    path, out = tmp_path / "in.csv", str(tmp_path / "out.csv")
    wild = "inf,1,2\n1e12,1,2\n"  # By the file's clock, without waiting.
    path.write_text(rows(25) + wild)  # 0.48 s
    begin = time.monotonic()
    words = ["run", model, "--input", str(path), "--output", out, "--replay"]
    assert main(words) == 0
    assert 0.48 <= time.monotonic() - begin < 30


def test_a_card_is_printed(model, capsys):
    assert main(["card", model]) == 0
    assert capsys.readouterr().out == "# A card\n"
    digest = hashlib.sha256(b"").hexdigest()
    assert main(["card", model, "--digest", digest]) == 2
    assert "modified or replaced" in capsys.readouterr().err


def test_interruptions_and_bugs(model, recording, tmp_path, monkeypatch, capsys):
    words = ["run", model, "--input", recording, "--output", str(tmp_path / "o")]

    def interrupt(self, times, samples):
        raise KeyboardInterrupt

    monkeypatch.setattr(edge.Stream, "push", interrupt)
    assert main(words) == 130
    assert "interrupted" in capsys.readouterr().err
    monkeypatch.setenv("JAXANON_DEBUG", "1")
    with pytest.raises(FileNotFoundError):
        main(["card", "nowhere.onnx"])
    with pytest.raises(SystemExit):
        main(["run", model])


def test_the_dashboard_gets_what_the_words_say(
    models, model, recording, monkeypatch, capsys
):
    seen = {}

    def serve(model, rows, **settings):
        seen.update(settings, rows=np.concatenate([times for times, _ in rows]))

    monkeypatch.setattr(dashboard, "serve", serve)
    words = ["dashboard", model, "--input", recording, "--port", "0", "--hop", "4"]
    assert main(words) == 0
    assert seen["port"] == 0 and seen["hop"] == 4 and seen["speed"] == 1.0
    assert seen["host"] == "127.0.0.1" and not seen["allow_other_hosts"]
    assert len(seen["rows"]) == 40
    seen["ready"]("http://127.0.0.1:1/word/")
    assert capsys.readouterr().out == (
        "Dashboard (until Ctrl-C): http://127.0.0.1:1/word/\n"
    )
    assert main([*words, "--speed", "5", "--allow-other-hosts"]) == 0
    assert seen["speed"] == 5.0 and seen["allow_other_hosts"]


def test_files_as_they_are_need_no_other_tool(model, tmp_path, capsys):
    """Decimal commas, another unit, ISO times, further columns and UTF-16."""
    lines = [
        f"2026-03-02T08:00:00.{20 * i:03d}Z;walk;{2000 + i},5;{1000 * (1000 + i)}"
        for i in range(40)
    ]
    header = "Timestamp;activity;acc y [g];acc x [mg]"
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_bytes("\r\n".join([header, *lines, "oh"]).encode("utf-16"))
    words = ["run", model, "--input", str(path), "--output", str(out), "--hop", "8"]
    assert main(words) == 0
    said = capsys.readouterr().err
    assert "line 42 of" in said and "another number of cells" in said
    assert "40 samples" in said and "oh" not in said
    found = [line.split(",") for line in out.read_text().splitlines()[-40:]]
    assert found[1] == ["1772438400.020000", "", "-1001.0", "-2001.5"]


@pytest.mark.parametrize(
    ("row", "cause"),
    [
        ("0.5,secret,2", "column 'acc x' is not a number"),
        ("later,1,2", "its time cannot be read"),
        (",1,2", "its time is missing"),
        ('0.5,"1,2', "a quote does not end"),
    ],
)
def test_the_cause_of_a_malformed_row_is_named(model, tmp_path, capsys, row, cause):
    path = tmp_path / "in.csv"
    path.write_text(rows(16) + row + "\n")
    words = ["run", model, "--input", str(path), "--output", str(tmp_path / "o.csv")]
    assert main(words) == 0
    said = capsys.readouterr().err
    assert f"the first malformed row is line 18 of {path}: {cause}." in said
    assert "secret" not in said and "later" not in said
