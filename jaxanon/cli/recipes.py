"""The flag ``--recipe``, which sets the defaults of a method's flags."""

import dataclasses
from collections.abc import Sequence
from typing import Annotated

import tyro

from jaxanon.core import command_line

DEFAULT = "recommended"  # ``registry.RECOMMENDED``, without importing JAX.

Recipe = Annotated[str, tyro.conf.arg(metavar="NAME")]


def chosen(words: Sequence[str] | None = None) -> str:
    """Returns the recipe that the words of a command name.

    The recipe sets the defaults of other flags, so it is read before parsing.

    Args:
      words: words of the command; None for the words of the command line.

    Example:
      >>> chosen(["train", "blinder", "--recipe", "paper"]), chosen(["--recipe=fast"])
      ('paper', 'fast')
      >>> chosen(["train", "blinder"])
      'recommended'
    """
    words = command_line.words.get() or [] if words is None else words
    recipe = DEFAULT
    for word, following in zip(words, [*words[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        if name == "--recipe":
            recipe = value if equals else following
    return recipe


def settings_class(entry) -> type | None:
    """Returns a method's settings class, with the chosen recipe's values as defaults.

    Args:
      entry: the method's entry, from ``registry.entry``.

    Raises:
      ValueError: if the method has no such recipe.
    """
    from jaxanon.core import registry

    settings = registry.recipe_of(entry, chosen()).settings
    if not settings:
        return entry.config
    fields = [
        (each.name, each.type, _with_default(each, settings[each.name]))
        for each in dataclasses.fields(entry.config)
        if each.name in settings
    ]
    return dataclasses.make_dataclass(
        entry.config.__name__, fields, bases=(entry.config,), frozen=True, kw_only=True
    )


def _with_default(field, value):
    return dataclasses.field(default=value, metadata=field.metadata)


def epochs(method: str | None) -> int:
    """Returns the epochs of the chosen recipe, the default of ``--epochs``.

    Raises:
      ValueError: if the method has no such recipe.
    """
    if method is None:  # Help without a method.
        return 20
    from jaxanon.core.registry import default_epochs

    return default_epochs(method, chosen())
