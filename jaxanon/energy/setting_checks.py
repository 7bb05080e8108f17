"""What settings of a street are refused for: ranges, and doing nothing."""

import math

from jaxanon.energy.config import METHODS
from jaxanon.energy.forecasting import KINDS
from jaxanon.energy.saving import DAY
from jaxanon.kernels.checks import known, one_of
from jaxanon.kernels.setting_checks import at_least

GRAPHS = ("full", "ring", "k-regular", "random")

_COUNTS = {  # The least of each.
    1: (
        *("homes", "devices", "days", "held_out", "degree", "slot_min", "fit_steps"),
        *("fit_batch", "lookback", "batch_size", "capacity", "target_every"),
    ),
    0: ("joining", "homes_seed", "alpha", "max_age"),
}

_POSITIVE = ("beta_hours", "gamma_hours", "clip_norm", "fit_rate", "learning_rate")

_NOT_NEGATIVE = ("noise_multiplier", "cents")

_SHARES = ("probability", "lost", "late", "discount", "epsilon")

_BROADCAST = ("lost", "late", "graph", "degree")  # Of "pfdrl" alone.


def ranges(settings) -> None:
    """Raises for a name that there is not, and for a number out of its range.

    Args:
      settings: ``PFDRLSettings``.

    Raises:
      TypeError: for a count that is no whole number.
      ValueError: for all else.

    Example:
      >>> from jaxanon.energy import PFDRLSettings
      >>> ranges(PFDRLSettings())
    """
    one_of("sharing", settings.sharing, tuple(METHODS))
    one_of("forecaster", settings.forecaster, KINDS)
    one_of("graph", settings.graph, GRAPHS)
    for least, names in _COUNTS.items():
        for name in names:
            value = getattr(settings, name)
            if value is not None:
                at_least(least, **{name: value})
    at_least(1, hidden=settings.hidden)
    for names, fits, words in (
        (_POSITIVE, lambda x: x > 0, "a finite number > 0"),
        (_NOT_NEGATIVE, lambda x: x >= 0, "a finite number >= 0"),
        (_SHARES, lambda x: 0 <= x <= 1, "in [0, 1]"),
    ):
        for name in names:
            value = known(getattr(settings, name))
            if value is None or not (math.isfinite(value) and fits(value)):
                raise ValueError(
                    f"{name} must be {words}, got {getattr(settings, name)!r}."
                )
    layers = len(settings.hidden) + 1
    if settings.sharing == "pfdrl" and settings.alpha > layers:
        raise ValueError(
            f"alpha must lie in [0, {layers}], the Q-network's layers, got "
            f"{settings.alpha!r}."
        )
    if DAY % settings.slot_min:
        raise ValueError(
            f"slot_min must divide {DAY}, the minutes of a day, got "
            f"{settings.slot_min!r}."
        )
    for name in ("beta_hours", "gamma_hours"):
        if getattr(settings, name) * 60 < settings.slot_min:
            raise ValueError(
                f"{name} must be at least a slot, {settings.slot_min} minutes, got "
                f"{getattr(settings, name)!r} hours; choose a smaller slot_min."
            )


def idle(settings) -> None:
    """Raises ValueError for a setting that the others leave nothing to do.

    Args:
      settings: ``PFDRLSettings``.

    Example:
      >>> from jaxanon.energy import PFDRLSettings
      >>> idle(PFDRLSettings(graph="k-regular", degree=2))
    """
    default = lambda name: type(settings).__dataclass_fields__[name].default
    changed = lambda name: getattr(settings, name) != default(name)
    if settings.sharing != "pfdrl":
        # An age of 0 is that of runs before there was another default.
        names = [name for name in _BROADCAST if changed(name)]
        names += ["max_age"] if settings.max_age > default("max_age") else []
        for name in names:
            raise ValueError(
                f"{name} is of broadcasts, and {settings.sharing!r} has none: got "
                f"{getattr(settings, name)!r}; leave it out, or share by 'pfdrl'."
            )
    for name, graph in (("degree", "k-regular"), ("probability", "random")):
        if changed(name) and settings.graph != graph:
            raise ValueError(
                f"{name} is of graph {graph!r}, and it is {settings.graph!r}: got "
                f"{getattr(settings, name)!r}; leave it out, or choose that graph."
            )
    if changed("clip_norm") and not settings.noise_multiplier:
        raise ValueError(
            f"clip_norm is of broadcasts with noise, and noise_multiplier is 0: got "
            f"{settings.clip_norm!r}; leave it out, or set noise_multiplier."
        )
