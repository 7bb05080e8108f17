"""The command line of a device, ``jaxanon-edge``."""

import argparse
import contextlib
import os
import pathlib
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Any

from jaxanon import __version__

REFUSALS = (ArithmeticError, ImportError, LookupError, OSError, TypeError, ValueError)
NOTHING_LEFT = 3


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
      argv: words after the program's name. None reads them from the shell.

    Returns:
      The exit status. 0 means success, and 2 an error or lost data, with a line on
      stderr. 3 means that no sample was released although there were rows. 130 means an
      interrupt by Ctrl-C or SIGTERM.

    Raises:
      SystemExit: after ``--help`` (0), or for invalid options (2).

    Example:
      >>> main(["card", "nowhere.onnx"])
      2
    """
    words = _parser().parse_args(argv)
    try:
        return words.command(words)
    except KeyboardInterrupt:
        print("\njaxanon-edge: interrupted.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        print("jaxanon-edge: the output pipe was closed.", file=sys.stderr)
        return 2
    except REFUSALS as error:
        if os.environ.get("JAXANON_DEBUG"):
            raise
        text = str(error)
        if isinstance(error, OSError) and error.filename:  # Omits Python's errno.
            text = f"{error.filename}: {error.strerror}"
        message = " ".join(text.split()) or type(error).__name__
        print(f"jaxanon-edge: error: {message}", file=sys.stderr)
        return 2


def _parser():
    parser = argparse.ArgumentParser(
        prog="jaxanon-edge",
        description="Runs exported anonymizers on a device, without JAX.",
    )
    parser.add_argument("--version", action="version", version=f"jaxanon {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="anonymize CSV rows as they arrive")
    card = commands.add_parser("card", help="print the model card")
    dashboard = commands.add_parser(
        "dashboard", help="serve a local page with raw and anonymized signals"
    )
    for command, function in (run, _run), (card, _card), (dashboard, _dashboard):
        command.set_defaults(command=function)
        command.add_argument(
            "model",
            type=pathlib.Path,
            help="ONNX file, or folder with several of jaxanon export SWEEP",
        )
        command.add_argument(
            "--digest",
            help="SHA-256 of the model, or of a folder's manifest.json; default: from "
            "the file of that name with .sha256",
        )
        _folder_options(command)
    for command in run, dashboard:
        _stream_options(command)
    run.add_argument("--output", required=True, help="file, - or mqtt://HOST/TOPIC")
    run.add_argument("--append", action="store_true", help="continue an existing file")
    run.add_argument(
        "--replay",
        action="store_true",
        help="keep the rows' recorded pace, except gaps of more than 2 s",
    )
    option = dashboard.add_argument
    option("--attackers", type=pathlib.Path, help="ONNX file of attackers")
    option("--host", default="127.0.0.1", help="address to listen at")
    option("--port", type=int, default=8700, help="port to listen at; 0: any free port")
    option(
        "--speed",
        type=float,
        help="recorded seconds per second; default: 1; for a pipe: as rows arrive",
    )
    option(
        "--allow-other-hosts",
        action="store_true",
        help="allow a --host that other machines reach: they see the raw signal",
    )
    return parser


def _folder_options(command):
    option = command.add_argument
    option("--member", type=int, help="number of the model in a folder")
    option(
        "--setting",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="setting that the model of a folder has, such as epsilon=2; repeatable",
    )
    option(
        "--min-utility",
        type=float,
        help="select the most private model of a folder with at least this accuracy of "
        "the public attribute, in [0, 1]",
    )
    option(
        "--wearer",
        action="append",
        default=[],
        metavar="ATTRIBUTE=CLASS",
        help="class of the wearer, for each private attribute of a folder whose models "
        "are chosen by windows (DySan); repeatable",
    )


def _load(words):
    """Returns the model of a file or a folder."""
    from jaxanon.edge import folder, model

    pairs = {"--setting": words.setting, "--wearer": words.wearer}
    for name, texts in pairs.items():
        for text in texts:
            if "=" not in text:
                raise ValueError(f"{name} must be NAME=VALUE, got {text!r}.")
    settings, wearer = (
        dict(text.split("=", 1) for text in texts) for texts in pairs.values()
    )
    if words.model.is_dir():
        return folder.load_folder(
            words.model,
            words.digest,
            member=words.member,
            settings=settings,
            min_utility=words.min_utility,
            wearer=wearer,
        )
    if settings or wearer or words.member is not None or words.min_utility is not None:
        raise ValueError(
            "--member, --setting, --min-utility and --wearer apply to a folder, got "
            f"the file {words.model}; omit them."
        )
    return model.load(words.model, words.digest)


def _stream_options(command):
    option = command.add_argument
    option(
        "--input",
        required=True,
        help="CSV file whose header names a column with times and the model's "
        "channels; other columns are ignored; - for a pipe",
    )
    option("--time-column", help="column with times; default: time or a similar name")
    option(
        "--time-format",
        help="s, ms, us, ns, iso or a format such as '%%d/%%m/%%Y %%H:%%M:%%S.%%f'; "
        "default: detected",
    )
    option(
        "--rate",
        type=float,
        help="rate of the rows in Hz; default: the model's, or for run that of the "
        "first rows if it differs",
    )
    option("--hop", type=int, help="samples between windows; default: half a window")
    option("--deadline", type=float, default=1.0, help="seconds per window (1)")
    option("--budget", type=pathlib.Path, help="file of the privacy budget")
    option("--epsilon", type=float, help="total epsilon of a new budget")
    option("--unbounded", action="store_true", help="do not count the spent epsilon")


def _open(words, loaded):
    """Returns the rows of the model's channels."""
    from jaxanon.edge import csv_input

    return csv_input.open_rows(
        words.input,
        loaded.signature,
        words.time_column,
        words.time_format,
        words.rate,
    )


def _settings(words, loaded):
    """Returns the stream's settings from the options."""
    return {
        "rate_hz": words.rate,
        "hop": words.hop,
        "deadline_s": words.deadline,
        "budget": _budget(words, loaded),
    }


def _budget(words, loaded):
    from jaxanon.edge import budget, guard

    if words.budget is None and words.epsilon is not None:
        raise ValueError(
            "--epsilon is the total of a budget; give its file with --budget."
        )
    if words.budget is not None and words.unbounded:
        raise ValueError("--unbounded and --budget are mutually exclusive.")
    if words.budget is not None:
        if loaded.epsilon is None:  # Before a file is created.
            raise ValueError(guard.NO_CLAIM)
        return budget.Budget(words.budget, words.epsilon, budget.ANY)
    return budget.UNBOUNDED if words.unbounded else None


def _run(words):
    loaded = _load(words)
    with (
        contextlib.closing(_open(words, loaded)) as rows,
        _sigterm_interrupts(),
    ):
        counts, lost, interrupted = _stream_rows(words, loaded, rows)
        counts = {"malformed": 0} | counts
        counts["malformed"] = rows.malformed
    names = {"released": "windows released", "late windows": "windows late"}
    outcomes = [f"{n} {names.get(name, name)}" for name, n in counts.items() if n]
    if rows.malformed:
        first = f"line {rows.first_malformed} of {words.input}"
        print(
            f"jaxanon-edge: the first malformed row is {first}: {rows.first_cause}.",
            file=sys.stderr,
        )
    print(f"jaxanon-edge: {', '.join(outcomes) or 'no rows'}", file=sys.stderr)
    if lost:
        print(f"jaxanon-edge: error: {lost}", file=sys.stderr)
    if interrupted:
        raise KeyboardInterrupt
    if lost:
        return 2
    seen = counts["pushed"] + counts["malformed"]
    return NOTHING_LEFT if seen and not counts["samples"] else 0


@contextlib.contextmanager
def _sigterm_interrupts():
    """Handles SIGTERM as Ctrl-C inside the context, so that the rest is released."""

    def interrupt(*_):
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield  # Only the main thread can handle signals.
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _stream_rows(words, loaded, rows):
    """Streams rows through a model into an outlet.

    Returns ``(counts, lost, interrupted)``: the stream's counts, a sentence about lost
    data or "", and whether it was interrupted. The rest is released in that case, too.
    """
    from jaxanon.edge.csv_input import converted, paced
    from jaxanon.recordings.steady import Steady

    wanted = loaded.signature
    steady = Steady(len(wanted.channels), wanted.rate_hz, words.rate)
    safe = _Output(words, loaded, rows)
    interrupted = False
    try:
        try:
            pieces = converted(rows, wanted)
            if words.replay:
                rate = words.rate or wanted.rate_hz
                pieces = paced(pieces, rate, 1.0, threading.Event())
            for times, samples in pieces:
                safe.push(*steady.push(times, samples), steady.seen_hz)
        except KeyboardInterrupt:
            interrupted = True
        safe.push(*steady.close(), steady.seen_hz, last=True)
    finally:
        lost = safe.close()
    stream = safe.stream
    rate = stream.signature.rate_hz
    if words.rate is None and rate != wanted.rate_hz:
        print(
            f"jaxanon-edge: rows arrive at {rate:g} Hz, the model has "
            f"{wanted.rate_hz:g} Hz; --rate sets another rate.",
            file=sys.stderr,
        )
    seen = stream.seen_rate_hz
    if abs(seen / rate - 1) > 0.2:
        print(
            f"jaxanon-edge: warning: rows arrive at {seen:.4g} Hz instead of "
            f"{rate:g} Hz; set --rate {seen:.4g} if that is their rate.",
            file=sys.stderr,
        )
    return stream.counts, lost, interrupted


class _Output:
    """The stream and its outlet, which open when the rate of the rows is known."""

    def __init__(self, words, loaded, rows):
        self._words, self._loaded, self._rows = words, loaded, rows
        self.stream: Any = None
        self._outlet: Any = None

    def push(self, times, samples, seen_hz, last=False):
        """Anonymizes rows and writes the blocks that are final."""
        if not len(times) and not last:
            return
        stream = self.stream = self.stream or self._open(seen_hz)
        self._write(stream.push(times, samples))
        if last:
            self._write(stream.close())

    def _open(self, seen_hz):
        """Opens the outlet; returns the stream."""
        from jaxanon.edge.outlets import open_outlet
        from jaxanon.edge.stream import Stream
        from jaxanon.recordings import rates

        words, settings = self._words, _settings(self._words, self._loaded)
        if words.rate is None:
            model_hz = self._loaded.signature.rate_hz
            settings["rate_hz"] = rates.of_stream(seen_hz, model_hz)
        stream = Stream(self._loaded, **settings)
        self._outlet = open_outlet(words.output, stream.signature, append=words.append)
        return stream

    def _write(self, blocks):
        origin = float(self._rows.origin)
        for block in blocks:
            start, end = block.start + origin, block.end + origin
            self._outlet.write(block._replace(start=start, end=end))

    def close(self):
        """Closes the outlet; returns a sentence about lost data or ""."""
        if self._outlet is None:
            return ""
        self._outlet.close()
        return self._outlet.lost()


def _card(words):
    print(_load(words).card)
    return 0


def _since_1970(rows, pieces):
    """Yields pieces with their times on the clock of the rows."""
    for times, samples in pieces:
        yield times + float(rows.origin), samples


def _dashboard(words):
    from jaxanon.edge import csv_input, dashboard, model

    loaded = _load(words)
    attackers = None
    if words.attackers is not None:
        attackers = model.load_attackers(words.attackers)
    with contextlib.closing(_open(words, loaded)) as rows:
        speed = 1.0 if words.speed is None and words.input != "-" else words.speed
        dashboard.serve(
            loaded,
            _since_1970(rows, csv_input.converted(rows, loaded.signature)),
            attackers=attackers,
            host=words.host,
            port=words.port,
            speed=speed,
            allow_other_hosts=words.allow_other_hosts,
            ready=lambda url: print(f"Dashboard (until Ctrl-C): {url}", flush=True),
            **_settings(words, loaded),
        )
    return 0
