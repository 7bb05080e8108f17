"""Checks of an argument against a list of choices."""

import difflib


def choose(argument: str, value: str, choices) -> str:
    """Returns ``value``, or raises ValueError if it is not in ``choices``."""
    if value not in choices:
        raise ValueError(
            f"{argument} must be one of {list(choices)}, got {value!r}."
            f"{nearest(value, choices)}"
        )
    return value


def nearest(value, choices) -> str:
    """Returns a question that names the closest choice, or an empty string.

    Repeats ``did_you_mean`` of ``kernels.checks``, which this package must not import.

    Example:
      >>> nearest("Sid", ("side", "subject"))
      " Did you mean 'side'?"
    """
    word = str(value).lower().replace("-", "_")
    matches = difflib.get_close_matches(word, map(str, choices), n=1)
    return f" Did you mean {matches[0]!r}?" if matches else ""
