"""Entry point of the command line: parses one command and runs it."""

import contextlib
import contextvars
import itertools
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Sequence

import tyro

from jaxanon import __version__
from jaxanon.cli import (
    anonymize,
    cards,
    commands,
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
from jaxanon.core import command_line
from jaxanon.core.compilation_cache import keep_compiled_programs

ABOUT = f"""Makes sensor data safe to share (jaxanon {__version__}).

Start with `jaxanon demo`. `jaxanon COMMAND --help` describes a command, and
`jaxanon train METHOD --help` a method and its settings. --version prints the version.
--plugin MODULE imports a module that registers your own methods, learners or data
sets. JAXANON_DEBUG=1 in the environment shows the traceback of an error."""

WITH_METHOD = "train", "sweep", "server", "privacy"  # A name selects the flags.

# Flags of version 0.1 that became commands.
MOVED = {
    "--epsilons": "jaxanon budget-curve DIR --epsilons E ...",
    "--join": "jaxanon personalize DIR --new-client-fraction F",
    "--join-rounds": "jaxanon personalize DIR --num-rounds N",
}

REFUSALS = (ArithmeticError, ImportError, LookupError, OSError, TypeError, ValueError)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
      argv: words after ``jaxanon``; None for the words of the shell.

    Returns:
      The exit status: 0; 2 for invalid input, with one line on stderr that says why;
      130 after an interrupt.

    Raises:
      SystemExit: after ``--help`` (0), and for words that do not parse (2).

    Example:
      >>> main(["--version"])
      jaxanon 0.2.0
      0
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    try:
        return contextvars.copy_context().run(_main, argv)
    finally:
        _drop_unwritten()


def _main(argv):
    command_line.words.set(argv)  # Other processes load the plugins again.
    if argv[:1] == ["--version"]:
        print(f"jaxanon {__version__}")
        return 0
    try:
        if sys.stdout is None:
            raise ValueError("standard output must be open; redirect it to a file.")
        with _warnings_in_a_line():
            keep_compiled_programs()
            call = _parse(_load_plugins(argv))
            call()
            sys.stdout.flush()
    except KeyboardInterrupt:
        print(f"\njaxanon: interrupted. {_continue_with(argv)}", file=sys.stderr)
        return 130
    except REFUSALS as error:
        if os.environ.get("JAXANON_DEBUG"):
            raise
        print(f"jaxanon: error: {_in_a_line(error)}", file=sys.stderr)
        return 2
    return 0


@contextlib.contextmanager
def _warnings_in_a_line():
    """Prints warnings in one line, as errors, without the line of the source."""
    before = warnings.formatwarning
    warnings.formatwarning = lambda message, *_, **__: f"jaxanon: warning: {message}\n"
    try:
        yield
    finally:
        warnings.formatwarning = before


def _drop_unwritten() -> None:
    """Drops output that cannot be written; Python would try again at exit."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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

        sys.path.append("")  # Last, so that it shadows no installed package.
        registry.load_plugins(*modules)
    return words


def _parse(argv) -> Callable[[], None]:
    """Parses the words of a command; the result runs it."""
    name, words = (argv[0], argv[1:]) if argv else ("--help", [])
    _check_moved(name, words)
    prog, table, about = "jaxanon", _commands(name, words), ABOUT
    if name == "datasets" and words[:1] and words[0] in (*datasets.COMMANDS, "--help"):
        prog, table, about = "jaxanon datasets", _dataset_commands(), datasets.ABOUT
        argv = words
    elif name not in table and not name.startswith("-"):
        from jaxanon.kernels.checks import did_you_mean

        raise ValueError(
            f"there is no command {name!r}; see jaxanon --help."
            f"{did_you_mean(name, table)}"
        )
    try:
        return tyro.extras.subcommand_cli_from_dict(
            table,
            prog=prog,
            description=about,
            args=argv or ["--help"],
            sort_subcommands=False,
        )
    except SystemExit as ended:
        if ended.code == 2:  # The parser printed the reason in a box.
            told = shlex.join(["jaxanon", *_deepest(name, words), "--help"])
            print(f"jaxanon: see {told}.", file=sys.stderr)
        raise


def _commands(name, words):
    """Returns the commands; a method's name or a run folder selects the flags."""
    word = words[0] if words and not words[0].startswith("-") else None
    method = lambda command: word if name == command else None
    plain = {
        "demo": demo.demo,
        "methods": cards.methods,
        "learners": cards.learners,
        "datasets": datasets.show,
        "list-inferences": datasets.list_inferences,
    }
    table = {each: commands.deferred(function) for each, function in plain.items()}
    table["train"] = train.deferred(train.command, method("train"))
    table["evaluate"] = commands.deferred(evaluate.evaluate)
    table["budget-curve"] = commands.deferred(evaluate.budget_curve)
    table["personalize"] = commands.deferred(evaluate.personalize)
    table["anonymize"] = anonymize.command(words if name == "anonymize" else ())
    table["sample"] = commands.deferred(sample.sample)
    table["sweep"] = train.deferred(sweep.command, method("sweep"))
    table["server"] = train.deferred(serve.command, method("server"))
    table["client"] = commands.deferred(serve.client)
    table["export"] = commands.deferred(export.export)
    table["dashboard"] = commands.deferred(export.dashboard)
    table["privacy"] = _privacy(method("privacy"))
    if name.startswith("-"):  # The list of all commands has a sentence for each.
        for command in table.values():
            command.__doc__ = (command.__doc__ or "").partition("\n\n")[0]
    return table


def _dataset_commands():
    functions = (
        datasets.show_all,
        datasets.show_file,
        datasets.export,
        datasets.import_recordings,
    )
    pairs = zip(datasets.COMMANDS, functions, strict=True)
    return {name: commands.deferred(function) for name, function in pairs}


def _privacy(word):
    """Returns the command of a learner's settings, or that of numbers and folders."""
    if word is None or not privacy.named(word):
        return commands.deferred(privacy.privacy)
    return commands.deferred(privacy.command(word))


def _check_moved(name, words):
    """Raises an error for a flag of ``evaluate`` that became a command."""
    if name != "evaluate":
        return
    for word in words:
        flag = word.partition("=")[0].replace("_", "-")
        if flag in MOVED:
            raise ValueError(f"evaluate has no {flag}; use `{MOVED[flag]}`.")


def _deepest(name, words):
    """Returns the words of the command whose help describes the given words."""
    if name.startswith("-"):
        return []
    deep = name in WITH_METHOD or (name, *words[:1]) in (
        ("datasets", "export"),
        ("datasets", "import"),
        ("datasets", "show"),
    )
    first = itertools.takewhile(lambda word: not word.startswith("-"), words)
    return [name, *itertools.islice(first, int(deep))]


def _continue_with(argv):
    if argv[:1] not in (["train"], ["server"], ["sweep"]):
        return "The same command starts again."
    words = argv if "--resume" in argv else [*argv, "--resume"]
    return f"Continue with: {shlex.join(['jaxanon', *words])}"


def _in_a_line(error):
    if isinstance(error, PermissionError) and error.filename is not None:
        return (
            f"no permission for {os.fspath(error.filename)!r}; choose another path, or "
            "change its permissions."
        )
    if isinstance(error, OSError) and error.strerror:  # Omits Python's errno.
        if isinstance(error, BrokenPipeError):
            return "the output pipe was closed."
        files = [f for f in (error.filename, error.filename2) if f is not None]
        error = ": ".join([*map(str, files), f"{error.strerror}."])
    # The text of a KeyError is the repr of its message.
    message = error.args[0] if isinstance(error, KeyError) and error.args else error
    return " ".join(str(message).split()) or type(error).__name__
