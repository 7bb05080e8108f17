"""Losses that leap and come back: training that ends well, and worse than it need."""

import warnings
from collections.abc import Iterable, Mapping

LEAP = 1000.0  # Times all that a loss was before.


def remedy(hyper: Iterable[str]) -> str:
    """What to do where steps were too long, given the names of hyper-parameters.

    Example:
      >>> remedy(["alpha", "inner_step_size", "server_step_size"])
      'lower inner_step_size or server_step_size'
      >>> remedy([])
      'look at its windows'
    """
    lengths = [name for name in hyper if name.endswith("step_size")]
    return f"lower {' or '.join(lengths)}" if lengths else "look at its windows"


def furthest(history: Iterable[Mapping]) -> tuple[str, int, float] | None:
    """The loss that leapt furthest, the round and the value; None where none leapt.

    A loss leaps where it is ``LEAP`` times as large, sign aside, as it was in any call
    before, and as 1: losses near zero may grow, and what is zero has yet to begin.

    Args:
      history: rows of ``progress.row``, of finite losses.

    Example:
      >>> rows = [{"round": r, "losses": {"loss": x}} for r, x in ((1, 3), (2, 9e9))]
      >>> furthest(rows)
      ('loss', 2, 9000000000.0)
      >>> furthest(rows[:1]) is None
      True
    """
    most: dict[str, float] = {}
    found, times = None, LEAP
    for row in history:
        for name, value in row["losses"].items():
            before = most.get(name, 0.0)
            if before and abs(value) >= times * max(before, 1.0):
                found, times = (name, row["round"], value), abs(value) / max(before, 1)
            most[name] = max(before, abs(value))
    return found


def warn(history: Iterable[Mapping], hyper: Iterable[str], *, stacklevel: int) -> None:
    """Warns of the loss that leapt furthest, if one did, and names the remedy."""
    leapt = furthest(history)
    if leapt is None:
        return
    name, after, value = leapt
    warnings.warn(
        f"the loss {name!r} leapt to {value:.1e} in the call that ended with round "
        f"{after}. Training went on, and may have ended worse than it need; "
        f"{remedy(hyper)}.",
        UserWarning,
        stacklevel=stacklevel + 1,
    )
