"""How options look, and what ``--help`` says of them."""

import ast
import contextvars
import dataclasses
import decimal
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


words: contextvars.ContextVar[list[str]] = contextvars.ContextVar("words")

_AXES = re.compile(r",(?=[A-Za-z_]\w*=)")  # Commas between axes, not between values.

_RANGE = re.compile(r"([^,:()]+):([^,:()]+):([^,:()]+)")

_RANGES = " FIRST:LAST:STEP are all numbers from the first to the last."


def parse(words: tuple[str, ...], config_class: type) -> dict[str, list]:
    """``("gamma=0.1,0.2", "form=paper,released")`` as a dict of lists.

    Args:
      words: ``NAME=VALUE,VALUE,...`` each, or several of them with commas between; a
        value with commas in it stands in parentheses. ``FIRST:LAST:STEP`` are all
        numbers from the first to the last. A setting that ends in ``_``, for Python
        has a use for its name, may be named without.
      config_class: the method's settings; a value takes the type of the default.

    Raises:
      ValueError: for a word of another form, a name that is no setting, or a value of
        another type.

    Example:
      >>> from jaxanon.methods import config_class
      >>> parse(("gamma=1,.5", "hidden=(8,),(16,8)"), config_class("blinder"))
      {'gamma': [1.0, 0.5], 'hidden': [(8,), (16, 8)]}
      >>> parse(("alpha=0.1:0.3:0.1,lambda=0.5",), config_class("dysan"))
      {'alpha': [0.1, 0.2, 0.3], 'lambda_': [0.5]}
    """
    defaults = {field.name: field.default for field in dataclasses.fields(config_class)}
    grid = {}
    for axis in [one for word in words for one in _AXES.split(word)]:
        name, equals, text = axis.partition("=")
        if not (name and equals and text):
            raise ValueError(f"--grid must be NAME=VALUE,VALUE,..., got {axis!r}.")
        if name not in defaults and f"{name}_" in defaults:
            name = f"{name}_"
        if name not in defaults:
            from jaxanon.kernels.checks import did_you_mean

            raise ValueError(
                f"--grid names {name!r}, which is no setting; settings are "
                f"{sorted(defaults)}.{did_you_mean(name, defaults)}"
            )
        if name in grid:
            raise ValueError(f"--grid names {name!r} twice; put all values in one.")
        grid[name] = _values(name, text, defaults[name])
    return grid


def _values(name, text, default):
    if isinstance(default, str):
        return text.split(",")
    if isinstance(default, int | float):
        text = _RANGE.sub(lambda found: _range(name, *found.groups()), text)
    try:
        values = ast.literal_eval(f"[{text}]")
    except (SyntaxError, ValueError) as error:
        raise ValueError(
            f"--grid {name}= takes values such as {default!r}, got {text!r}."
            + (_RANGES if isinstance(default, int | float) else "")
        ) from error
    if isinstance(default, float):
        values = [float(v) if isinstance(v, int) else v for v in values]
    wrong = [v for v in values if default is not None and type(v) is not type(default)]
    if wrong:
        raise ValueError(
            f"--grid {name}= takes values such as {default!r}, got {wrong[0]!r}."
        )
    return values


def _range(name, *words):
    """``"0.1", "0.3", "0.1"`` as ``"0.1,0.2,0.3"``, exact in decimals."""
    first = step = decimal.Decimal(0)
    try:
        first, last, step = map(decimal.Decimal, words)
        count = int((last - first) / step) + 1
    except (decimal.DecimalException, ValueError, OverflowError):
        count = 0
    if count < 1:
        raise ValueError(
            f"--grid {name}= takes FIRST:LAST:STEP, from the first to the last by a "
            f"step that is not 0, such as 0.1:0.9:0.1, got {':'.join(words)!r}."
        )
    return ",".join(str(first + number * step) for number in range(count))
