"""How options look, and what ``--help`` says of them."""

import functools
import pathlib
import re
import types
from collections.abc import Callable, Mapping
from typing import Annotated

import tyro


def optional(metavar: str):
    """An option that may be left out: shown by one word, and without a default.

    Example:
      >>> optional("FILE").metavar
      'FILE'
    """
    return tyro.conf.arg(metavar=metavar, help_behavior_hint="")


Name = Annotated[str | None, optional("NAME")]
Names = Annotated[str | None, optional("A,B,...")]
Path = Annotated[str | None, optional("PATH")]
Whole = Annotated[int | None, optional("INT")]
Real = Annotated[float | None, optional("FLOAT")]
File = Annotated[pathlib.Path | None, optional("FILE")]
Folder = Annotated[pathlib.Path | None, optional("DIR")]


def in_lines(commands: Mapping[str, Callable]) -> dict[str, Callable]:
    """Commands whose docstrings tell each of their arguments in a line.

    The parser of the command line keeps a break before an indented line, at which the
    source's width ends, and a terminal breaks what is left once more.

    Args:
      commands: functions by verb, which stay as they are.

    Example:
      >>> def greet(name: str):
      ...     '''Greets.
      ...
      ...     Args:
      ...       name: of whoever is greeted, which may well be
      ...         long
      ...     '''
      >>> import inspect
      >>> print(inspect.getdoc(in_lines({"greet": greet})["greet"]))
      Greets.
      <BLANKLINE>
      Args:
        name: of whoever is greeted, which may well be long
    """
    return {verb: _in_lines(command) for verb, command in commands.items()}


def _in_lines(command):
    # A wrapper would be seen through, down to the docstring below it.
    made = types.FunctionType(
        command.__code__,
        command.__globals__,
        command.__name__,
        command.__defaults__,
        command.__closure__,
    )
    functools.update_wrapper(made, command)
    vars(made).pop("__wrapped__")
    made.__kwdefaults__ = command.__kwdefaults__
    about, args, arguments = (command.__doc__ or "").partition("Args:\n")
    column = len(arguments) - len(arguments.lstrip(" "))
    # Deeper lines go on with what an argument's line began.
    made.__doc__ = about + args + re.sub(rf"\n {{{column + 1},}}(?=\S)", " ", arguments)
    return made
