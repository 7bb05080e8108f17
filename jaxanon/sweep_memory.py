"""How many members of a sweep fit into the memory at once."""

from collections.abc import Callable

from jaxanon.federated.layout import num_bytes
from jaxanon.federated.memory import even

SHARE = 0.8  # Of the free memory; the rest is for what comes and goes beside.


def needed(compiled, there) -> int:
    """Bytes that a compiled program takes, beside arguments that lie there anyway.

    Args:
      compiled: of ``jax.jit(...).lower(...).compile()``.
      there: tree of those arguments; arrays, or their shapes.

    Returns:
      0 where the backend does not say.
    """
    told = compiled.memory_analysis()
    if told is None:
        return 0
    whole = told.argument_size_in_bytes + told.temp_size_in_bytes
    whole += told.output_size_in_bytes - told.alias_size_in_bytes
    return max(0, whole - num_bytes(there))


def fitting(need: Callable[[int], int], count: int, budget: int | None) -> int:
    """How many of ``count`` members to take at once.

    Args:
      need: bytes of a program of so many members, which it compiles to find out.
      count: how many there are, at least 1.
      budget: bytes; None is no bound.

    Returns:
      All of them if they fit, else the largest even chunk found that does; 1 where
      not even that fits, for there is no smaller one to try.

    Example:
      >>> fitting(lambda size: 10 * size, 120, 505)
      40
    """
    size = count
    while size > 1 and budget is not None:
        bytes_ = need(size)
        if bytes_ <= budget:
            break
        size = even(count, min(size - 1, int(size * max(budget, 0) / bytes_)))
    return size
