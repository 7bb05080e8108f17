"""The answer to a choice that is not on offer."""

import difflib


def choose(argument: str, value: str, offered) -> str:
    """Returns ``value``; ValueError naming ``argument`` if it is not ``offered``."""
    if value not in offered:
        raise ValueError(
            f"{argument} must be one of {list(offered)}, got {value!r}."
            f"{nearest(value, offered)}"
        )
    return value


def nearest(value, offered) -> str:
    """A question that names the nearest of what is offered, or nothing.

    That of the kernels' checks, which this package imports nothing of.

    Example:
      >>> nearest("Sid", ("side", "subject"))
      " Did you mean 'side'?"
    """
    word = str(value).lower().replace("-", "_")
    near = difflib.get_close_matches(word, map(str, offered), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""
