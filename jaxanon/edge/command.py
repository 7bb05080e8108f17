"""The command line of a device: run a model over a stream, show its card or itself."""

import argparse
import contextlib
import os
import pathlib
import signal
import sys
import threading
from collections.abc import Sequence

from jaxanon import __version__

REFUSALS = (ArithmeticError, ImportError, LookupError, OSError, TypeError, ValueError)
NOTHING_LEFT = 3


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
      argv: words after the program's name; None takes them from the shell.

    Returns:
      0; 2 for what was refused, failed or was lost on its way, a line on stderr says
      why; 3 if there were rows and not one sample left; 130 if it was interrupted, by
      Ctrl-C or SIGTERM.

    Raises:
      SystemExit: after ``--help`` (0), and for words that are no option (2).

    Example:
      >>> main(["card", "nowhere.onnx"])
      2
    """
    words = _parser().parse_args(argv)
    try:
        return words.verb(words)
    except KeyboardInterrupt:
        print("\njaxanon-edge: interrupted.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        print("jaxanon-edge: nobody reads what leaves any more.", file=sys.stderr)
        return 2
    except REFUSALS as error:
        if os.environ.get("JAXANON_DEBUG"):
            raise
        told = str(error)
        if isinstance(error, OSError) and error.filename:  # Without Python's number.
            told = f"{error.filename}: {error.strerror}"
        message = " ".join(told.split()) or type(error).__name__
        print(f"jaxanon-edge: error: {message}", file=sys.stderr)
        return 2


def _parser():
    parser = argparse.ArgumentParser(
        prog="jaxanon-edge",
        description="An exported anonymizer on a device, without JAX.",
    )
    parser.add_argument("--version", action="version", version=f"jaxanon {__version__}")
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    run = verbs.add_parser("run", help="anonymize rows of CSV as they come")
    card = verbs.add_parser("card", help="what a model hides, and from whom")
    live = verbs.add_parser(
        "dashboard", help="a local page that draws raw and anonymized"
    )
    for verb, function in (run, _run), (card, _card), (live, _live):
        verb.set_defaults(verb=function)
        verb.add_argument("model", type=pathlib.Path, help="ONNX file")
        verb.add_argument("--digest", help="its SHA-256; default: MODEL.sha256's")
    for verb in run, live:
        _stream_options(verb)
    run.add_argument("--output", required=True, help="file, - or mqtt://HOST/TOPIC")
    run.add_argument(
        "--append", action="store_true", help="go on at the end of a file that is there"
    )
    run.add_argument(
        "--replay",
        action="store_true",
        help="at the pace of the rows' own times, silences of more than 2 s left out",
    )
    live.add_argument("--attackers", type=pathlib.Path, help="ONNX file of attackers")
    live.add_argument("--host", default="127.0.0.1", help="to listen at")
    live.add_argument("--port", type=int, default=8700, help="0 for any that is free")
    live.add_argument(
        "--speed",
        type=float,
        help="seconds of a file per second; default: 1, and a pipe as it comes",
    )
    live.add_argument(
        "--allow-other-hosts",
        action="store_true",
        help="let --host be one that others reach: they see the raw signal",
    )
    return parser


def _stream_options(verb):
    option = verb.add_argument
    option(
        "--input",
        required=True,
        help="rows 'time,<channel> [unit],...' in a file, or - for a pipe",
    )
    option("--rate", type=float, help="of the rows, in Hz; default: the model's")
    option("--hop", type=int, help="samples from a window to the next; default: half")
    option("--deadline", type=float, default=1.0, help="s for one window (1)")
    option("--budget", type=pathlib.Path, help="file with the privacy budget")
    option("--epsilon", type=float, help="of a whole new budget")
    option("--unbounded", action="store_true", help="no account of what is spent")
    option("--reorder", action="store_true", help="put channels in the model's order")


def _settings(words, loaded, rows):
    """Of the stream, as the command line gives them."""
    return {
        "rate_hz": words.rate,
        "hop": words.hop,
        "deadline_s": words.deadline,
        "budget": _budget(words, loaded),
        "channels": rows.channels,
        "units": rows.units,
        "reorder": words.reorder,
    }


def _budget(words, loaded):
    from jaxanon.edge import budget, guard

    if words.budget is None and words.epsilon is not None:
        raise ValueError(
            "--epsilon is all that a stream may spend; name the --budget that keeps it."
        )
    if words.budget is not None and words.unbounded:
        raise ValueError("--unbounded keeps no account; leave it out, or --budget.")
    if words.budget is not None:
        if loaded.epsilon is None:  # And no file is made.
            raise ValueError(guard.NO_CLAIM)
        return budget.Budget(words.budget, words.epsilon, budget.ANY)
    return budget.UNBOUNDED if words.unbounded else None


def _run(words):
    from jaxanon.edge import csv_input, model

    loaded = model.load(words.model, words.digest)
    with (
        contextlib.closing(csv_input.open_rows(words.input)) as rows,
        _ended_politely(),
    ):
        counts, lost, interrupted = _through(words, loaded, rows)
        counts = {"malformed": 0} | counts
        counts["malformed"] = rows.malformed
    names = {"released": "windows released", "late windows": "windows late"}
    told = [f"{n} {names.get(name, name)}" for name, n in counts.items() if n]
    if rows.malformed:
        first = f"line {rows.first_malformed} of {words.input}"
        print(f"jaxanon-edge: the first malformed row is {first}.", file=sys.stderr)
    print(f"jaxanon-edge: {', '.join(told) or 'no rows'}", file=sys.stderr)
    if lost:
        print(f"jaxanon-edge: error: {lost}", file=sys.stderr)
    if interrupted:
        raise KeyboardInterrupt
    if lost:
        return 2
    seen = counts["pushed"] + counts["malformed"]
    return NOTHING_LEFT if seen and not counts["samples"] else 0


@contextlib.contextmanager
def _ended_politely():
    """Within, SIGTERM is as Ctrl-C, so that what is on its way still leaves."""

    def interrupt(*_):
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield  # Others may not say what a signal does.
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _through(words, loaded, rows):
    """Streams rows through a model into an outlet.

    Returns ``(counts, lost, interrupted)``: the stream's counts, what never left, in a
    sentence, and whether somebody stopped it, who still gets what it held.
    """
    from jaxanon.edge.csv_input import paced
    from jaxanon.edge.outlets import open_outlet
    from jaxanon.edge.stream import Stream

    stream = Stream(loaded, **_settings(words, loaded, rows))
    outlet = open_outlet(words.output, stream.signature, append=words.append)
    interrupted = False
    try:
        try:
            if words.replay:
                rows = paced(rows, stream.signature.rate_hz, 1.0, threading.Event())
            for times, samples in rows:
                for block in stream.push(times, samples):
                    outlet.write(block)
        except KeyboardInterrupt:
            interrupted = True
        for block in stream.close():
            outlet.write(block)
    finally:
        outlet.close()
    seen, rate = stream.seen_rate_hz, stream.signature.rate_hz
    if abs(seen / rate - 1) > 0.2:
        print(
            f"jaxanon-edge: warning: rows come at {seen:.4g} Hz, and are taken for "
            f"{rate:g} Hz; say --rate {seen:.4g} if they do.",
            file=sys.stderr,
        )
    return stream.counts, outlet.lost(), interrupted


def _card(words):
    from jaxanon.edge import model

    loaded = model.load(words.model, words.digest)
    print(loaded.card)
    return 0


def _live(words):
    from jaxanon.edge import csv_input, live, model

    loaded = model.load(words.model, words.digest)
    attackers = None
    if words.attackers is not None:
        attackers = model.load_attackers(words.attackers)
    with contextlib.closing(csv_input.open_rows(words.input)) as rows:
        speed = 1.0 if words.speed is None and words.input != "-" else words.speed
        live.serve(
            loaded,
            rows,
            attackers=attackers,
            host=words.host,
            port=words.port,
            speed=speed,
            allow_other_hosts=words.allow_other_hosts,
            ready=lambda url: print(f"Until Ctrl-C the page is at {url}", flush=True),
            **_settings(words, loaded, rows),
        )
    return 0
