"""The command line: the verbs of the training API, on the same names."""

import contextlib
import itertools
import os
import re
import shlex
import sys
import traceback
import warnings
from collections.abc import Sequence

import tyro

from jaxanon import __version__
from jaxanon.cli import (
    anonymize,
    arguments,
    datasets,
    demo,
    evaluate,
    export,
    privacy,
    sample,
    serve,
    sweep,
    train,
)

ABOUT = f"""Sensor data made safe to share (jaxanon {__version__}).

Start with `jaxanon demo`. Each verb has a --help of its own; --version prints the
version. --plugin MODULE imports a module that registers methods, learners or data
sets of your own. JAXANON_DEBUG=1 in the environment shows where an error came from."""

CONFIG = (tyro.conf.FlagCreatePairsOff,)  # --resume, without a --no-resume.

WITH_COMMAS = "--private", "--channels", "--labels", "--units", "--attacks"

_NAME = re.compile(r"\w+").fullmatch  # And not a file's.

REFUSALS = (ArithmeticError, ImportError, LookupError, OSError, TypeError, ValueError)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
      argv: words after ``jaxanon``; ``None`` takes them from the shell.

    Returns:
      The exit status: 0, 2 for input that was refused (one line on stderr says why),
      130 if the user interrupted.

    Raises:
      SystemExit: after ``--help`` (0), and for words that are no option (2).

    Example:
      >>> main(["--version"])
      jaxanon 0.2.0
      0
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    arguments.words.set(argv)  # With plugins, which further processes load, too.
    if argv[:1] == ["--version"]:
        print(f"jaxanon {__version__}")
        return 0
    try:
        with _warnings_in_a_line():
            _run(_load_plugins(argv))
    except SystemExit as ended:
        if ended.code == 2 and _by_parser(ended):  # A box said what was wrong.
            print(f"jaxanon: {_how_to_say_it(argv)}", file=sys.stderr)
        raise
    except KeyboardInterrupt:
        print(f"\njaxanon: interrupted. {_how_to_go_on(argv)}", file=sys.stderr)
        return 130
    except REFUSALS as error:
        if os.environ.get("JAXANON_DEBUG"):
            raise
        print(f"jaxanon: error: {_in_a_line(error)}", file=sys.stderr)
        return 2
    return 0


@contextlib.contextmanager
def _warnings_in_a_line():
    """Says what is warned of as errors are said, without the line of the source."""
    before = warnings.formatwarning
    warnings.formatwarning = lambda message, *_, **__: f"jaxanon: warning: {message}\n"
    try:
        yield
    finally:
        warnings.formatwarning = before


def _load_plugins(argv) -> list[str]:
    """Imports entry points and every ``--plugin MODULE``; returns the other words."""
    modules, words, rest = [], [], iter(argv)
    for word in rest:
        name, equals, module = word.partition("=")
        if name != "--plugin":
            words.append(word)
            continue
        module = module if equals else next(rest, "")
        if not module or module.startswith("-"):
            raise ValueError("--plugin must name a module, such as my_package.methods.")
        modules.append(module)
    if modules:
        from jaxanon.core import registry

        sys.path.append("")  # Behind all that is installed, which it cannot shadow.
        registry.load_plugins(*modules)
    return words


def _run(argv):
    verb, words = (argv[0], argv[1:]) if argv else ("--help", [])
    if verb == "datasets":
        verbs = {
            "list": datasets.show_all,
            "export": datasets.export,
            "import": datasets.import_csv,
        }
        tyro.extras.subcommand_cli_from_dict(
            arguments.in_lines(verbs),
            prog="jaxanon datasets",
            description=datasets.ABOUT,
            args=words or ["list"],
            sort_subcommands=False,
            config=CONFIG,
        )
        return
    method = words[0] if words and not words[0].startswith("-") else None
    verbs = {
        "demo": demo.demo,
        "train": train.command(method if verb == "train" else None),
        "evaluate": evaluate.evaluate,
        "anonymize": anonymize.anonymize,
        "sample": sample.sample,
        "sweep": sweep.command(method if verb == "sweep" else None),
        "server": serve.command(method if verb == "server" else None),
        "client": serve.client,
        "export": export.export,
        "dashboard": export.dashboard,
        "datasets": datasets.show_all,
        "list-inferences": datasets.list_inferences,
        "privacy": _privacy(method if verb == "privacy" else None),
    }
    if verb not in verbs and not verb.startswith("-"):
        from jaxanon.kernels.checks import did_you_mean

        raise ValueError(
            f"there is no verb {verb!r}; jaxanon --help lists them."
            f"{did_you_mean(verb, verbs)}"
        )
    tyro.extras.subcommand_cli_from_dict(
        arguments.in_lines(verbs),
        prog="jaxanon",
        description=ABOUT,
        args=argv or ["--help"],
        sort_subcommands=False,
        config=CONFIG,
    )


def _privacy(word):
    """The verb of a learner's settings where a word names one, else that of numbers."""
    if word is None or not privacy.named(word):
        return privacy.privacy
    return privacy.command(word)


def _by_parser(ended):
    """Whether words were refused, not what a command then did."""
    *_, (frame, _) = traceback.walk_tb(ended.__traceback__)
    return frame.f_globals["__name__"].partition(".")[0] == "tyro"


def _how_to_say_it(argv):
    """Whose --help tells more, and that names of one option have commas between."""
    deep = argv[:1] in (["privacy"], ["train"], ["sweep"], ["server"])
    deep |= argv[:1] == ["datasets"] and argv[1:2] in (["export"], ["import"])
    first = itertools.takewhile(lambda word: not word.startswith("-"), argv)
    verbs = [*itertools.islice(first, 1 + deep)]
    told = f"see {shlex.join(['jaxanon', *verbs, '--help'])}."
    names = [""]
    for word in [*argv[len(verbs) :], "--"]:
        if not word.startswith("-"):
            names.append(word)
            continue
        option, *given = names
        if option in WITH_COMMAS and len(given) > 1 and all(map(_NAME, given)):
            told += f" Several names have commas between: {option} {','.join(given)}."
        names = [word]
    return told


def _how_to_go_on(argv):
    if argv[:1] not in (["train"], ["server"], ["sweep"]):
        return "The same command starts again."
    words = argv if "--resume" in argv else [*argv, "--resume"]
    return f"Go on with: {shlex.join(['jaxanon', *words])}"


def _in_a_line(error):
    if isinstance(error, PermissionError) and error.filename is not None:
        return (
            f"there is no permission for {os.fspath(error.filename)!r}; name another "
            "place, or change who may read and write there."
        )
    # The text of a KeyError is the repr of its message.
    message = error.args[0] if isinstance(error, KeyError) and error.args else error
    return " ".join(str(message).split()) or type(error).__name__
