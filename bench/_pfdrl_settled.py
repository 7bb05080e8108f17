"""From which day on a method does as well as it does in the end."""

ENOUGH = 0.95  # Of the last saving, and of the last minutes with the best action.
MORE_OFF = 0.01  # Of in-use minutes, that may be switched off beyond the last share.


def settled(curve, careful=False, last=None):
    """The first day from whose end on a share of the last saving is held; 0 if never.

    Saving alone is had by switching everything off. ``careful`` asks as much of the
    minutes with the best action, and that minutes in which something in use is
    switched off are at most a hundredth more than in the end.

    Args:
      curve: marks, ``{"day", "saved"}`` and, for ``careful``, ``"optimal"`` and
        ``"switched_off"``, by day; shares. ``saved`` is None of a day without standby.
      careful: whether these count too.
      last: what is had in the end, as a mark; None is the last mark.

    Example:
      >>> mark = lambda d, s, off: {
      ...     "day": d, "saved": s, "switched_off": off, "optimal": 1 - off}
      >>> curve = [mark(1, 0.99, 0.4), mark(2, 0.5, 0.0), mark(4, 0.97, 0.0)]
      >>> settled(curve[::2]), settled(curve[::2], careful=True), settled(curve)
      (1, 4, 4)
    """
    last = last or curve[-1]
    low = [i for i, mark in enumerate(curve) if not _enough(mark, last, careful)]
    after = low[-1] + 1 if low else 0
    return curve[after]["day"] if after < len(curve) else 0


def _enough(mark, last, careful):
    reached = lambda name: mark[name] >= ENOUGH * last[name]
    if mark["saved"] is not None and not reached("saved"):
        return False
    if not careful:
        return True
    return reached("optimal") and mark["switched_off"] <= (
        last["switched_off"] + MORE_OFF
    )
