"""Types of options, and the words of ``--grid``."""

import ast
import dataclasses
import decimal
import pathlib
import re
from typing import Annotated

import tyro


def optional(metavar: str):
    """Returns the annotation of an optional flag: one word in help, and no default.

    Example:
      >>> optional("FILE").metavar
      'FILE'
    """
    return tyro.conf.arg(metavar=metavar, help_behavior_hint="")


Name = Annotated[str | None, optional("NAME")]

Names = Annotated[tuple[str, ...] | None, optional("NAME ...")]

Path = Annotated[str | None, optional("PATH")]

Whole = Annotated[int | None, optional("INT")]

Real = Annotated[float | None, optional("FLOAT")]

File = Annotated[pathlib.Path | None, optional("FILE")]

Folder = Annotated[pathlib.Path | None, optional("DIR")]

_AXES = re.compile(r",(?=[A-Za-z_]\w*=)")  # Commas between axes, not between values.

_RANGE = re.compile(r"([^,:()]+):([^,:()]+):([^,:()]+)")

_RANGES = " FIRST:LAST:STEP is a range with both ends."


def parse(words: tuple[str, ...], config_class: type) -> dict[str, list]:
    """Parses ``("gamma=0.1,0.2", "variant=paper,official")`` to a dict of lists.

    Args:
      words: ``NAME=VALUE,VALUE,...`` each, or several of these joined by commas.
        Parentheses enclose a value with commas. ``FIRST:LAST:STEP`` is a range with
        both ends. The final ``_`` of a setting's name may be omitted.
      config_class: settings class of the method; values have the type of the default.

    Raises:
      ValueError: for a malformed word, an unknown setting, or a value of another type.

    Example:
      >>> from jaxanon.methods import config_class
      >>> parse(("gamma=1,.5", "hidden_sizes=(8,),(16,8)"), config_class("blinder"))
      {'gamma': [1.0, 0.5], 'hidden_sizes': [(8,), (16, 8)]}
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
                f"--grid must name settings, got {name!r}; the settings are "
                f"{sorted(defaults)}.{did_you_mean(name, defaults)}"
            )
        if name in grid:
            raise ValueError(
                f"--grid must name each setting once, got {name!r} twice; join values."
            )
        grid[name] = _values(name, text, defaults[name])
    return grid


def _values(name, text, default):
    if isinstance(default, str):
        return text.split(",")
    if isinstance(default, int | float):
        text = _RANGE.sub(lambda match: _range(name, *match.groups()), text)
    try:
        values = ast.literal_eval(f"[{text}]")
    except (SyntaxError, ValueError) as error:
        raise ValueError(
            f"--grid {name}= must have values such as {default!r}, got {text!r}."
            + (_RANGES if isinstance(default, int | float) else "")
        ) from error
    if isinstance(default, float):
        values = [float(v) if isinstance(v, int) else v for v in values]
    wrong = [v for v in values if default is not None and type(v) is not type(default)]
    if wrong:
        raise ValueError(
            f"--grid {name}= must have values such as {default!r}, got {wrong[0]!r}."
        )
    return values


def _range(name, *words):
    """Returns ``"0.1,0.2,0.3"`` for ``"0.1", "0.3", "0.1"``, in exact decimals."""
    first = step = decimal.Decimal(0)
    try:
        first, last, step = map(decimal.Decimal, words)
        count = int((last - first) / step) + 1
    except (decimal.DecimalException, ValueError, OverflowError):
        count = 0
    if count < 1:
        raise ValueError(
            f"--grid {name}= must be FIRST:LAST:STEP with a step from the first toward "
            f"the last, such as 0.1:0.9:0.1, got {':'.join(words)!r}."
        )
    return ",".join(str(first + number * step) for number in range(count))
