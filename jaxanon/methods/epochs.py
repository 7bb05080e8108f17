"""Methods whose players take turns by the epoch, which only the data tell."""

from collections.abc import Callable

from jaxanon.methods.method import Method


def by_epoch(make: Callable[[int], Method]) -> Method:
    """A method of a schedule in epochs, made anew for the rounds that data have in one.

    Args:
      make: ``rounds -> Method``, of the rounds of an epoch. Only ``update`` may differ
        from one number to another.

    Returns:
      ``Method``; nothing is computed or compiled twice for it.
    """
    method = make(1)

    def update(key, state, data):
        return make(method.rounds_per_epoch(data)).update(key, state, data)

    return method._replace(update=update)


def during(rounds: int, first: int, end: int | None = None) -> Callable:
    """``round -> bool[]``, whether it lies in epochs from ``first`` to before ``end``.

    Example:
      >>> during(10, 1, 2)(19), during(10, 1, 2)(20), during(10, 1)(20)
      (True, False, True)
    """
    if end is None:
        return lambda number: number >= first * rounds
    return lambda number: (number >= first * rounds) & (number < end * rounds)
