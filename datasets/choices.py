"""The answer to a choice that is not on offer."""


def choose(argument: str, value: str, offered) -> str:
    """Returns ``value``; ValueError naming ``argument`` if it is not ``offered``."""
    if value not in offered:
        raise ValueError(f"{argument} must be one of {list(offered)}, got {value!r}.")
    return value
