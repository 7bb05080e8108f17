"""A grid of settings as words of a command line."""

import ast
import dataclasses


def parse(words: tuple[str, ...], config_class: type) -> dict[str, list]:
    """``("gamma=0.1,0.2", "form=paper,released")`` as a dict of lists.

    Args:
      words: ``NAME=VALUE,VALUE,...`` each; a value with commas in it stands in
        parentheses.
      config_class: the method's settings; a value takes the type of the default.

    Raises:
      ValueError: for a word of another form, or a value of another type.

    Example:
      >>> from jaxanon.methods import config_class
      >>> parse(("gamma=1,.5", "hidden=(8,),(16,8)"), config_class("blinder"))
      {'gamma': [1.0, 0.5], 'hidden': [(8,), (16, 8)]}
    """
    defaults = {field.name: field.default for field in dataclasses.fields(config_class)}
    grid = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not (name and equals and text):
            raise ValueError(f"--grid must be NAME=VALUE,VALUE,..., got {word!r}.")
        if name in grid:
            raise ValueError(f"--grid names {name!r} twice; put all values in one.")
        grid[name] = _values(name, text, defaults.get(name))
    return grid


def _values(name, text, default):
    if isinstance(default, str):
        return text.split(",")
    try:
        values = ast.literal_eval(f"[{text}]")
    except (SyntaxError, ValueError) as error:
        raise ValueError(
            f"--grid {name}= takes values such as {default!r}, got {text!r}."
        ) from error
    if isinstance(default, float):
        values = [float(v) if isinstance(v, int) else v for v in values]
    wrong = [v for v in values if default is not None and type(v) is not type(default)]
    if wrong:
        raise ValueError(
            f"--grid {name}= takes values such as {default!r}, got {wrong[0]!r}."
        )
    return values
