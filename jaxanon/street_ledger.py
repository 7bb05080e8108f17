"""What noise on broadcasts of a street's homes is worth, beside its checkpoints."""

import functools
import math
import os

from jaxanon import energy, ledger
from jaxanon.energy import settings as of_settings
from jaxanon.energy.budgets import accountant_of
from jaxanon.energy.homes import DAY

DELTA = 1e-5
NOT_COVERED = (
    "what a home's own meter or power company sees",
    "which devices a home has",
    "the seed, from which noise can be drawn again, is in config.json",
    "checkpoints hold networks without noise, optimizers' memory, and replay memories "
    "with loads as they were metered",
    "metrics.jsonl and reports tell of all homes' days",
    "settings that were chosen by looking at results",
)
NEIGHBOURS = (
    "a home that learns from its data or sends nothing but noise (to hide which of two "
    "homes it is, count on half the noise multiplier)"
)


def told(
    settings: energy.PFDRLSettings, devices: int, *, days: int | None = None
) -> dict | None:
    """The guarantee of a home after so many days; None without one.

    Args:
      settings: ``PFDRLSettings``.
      devices: of a home; the ε of each adds up.
      days: done; None is all that there are to learn from.

    Returns:
      What ``jaxanon.report.learned.guaranteed`` puts into words.

    Example:
      >>> told(energy.PFDRLSettings(), 6) is None
      True
      >>> noisy = energy.PFDRLSettings(noise_multiplier=20.0, days=1)
      >>> found = told(noisy, 4)
      >>> found["steps"], round(found["epsilon"], 2)
      (16, 0.73)
    """
    if settings.sharing != "pfdrl" or not settings.noise_multiplier:
        return None
    config = of_settings.config_of(settings)
    days = settings.days if days is None else days
    slots = days * DAY // settings.slot_min
    paces = {"beta_hours": settings.beta_hours, "gamma_hours": settings.gamma_hours}
    epsilon = functools.partial(
        energy.broadcast_epsilon, config, slots, DELTA, alpha=settings.alpha, **paces
    )
    counts = [energy.num_broadcasts(config, slots, settings.beta_hours)]
    if settings.alpha:
        counts.append(energy.num_broadcasts(config, slots, settings.gamma_hours))
    accountant = lambda steps: accountant_of(
        settings.noise_multiplier / math.sqrt(max(steps, 1))
    )
    return {
        "mechanism": "Gaussian noise on what has changed since the last broadcast",
        "released": "What a home broadcasts",
        "neighbours": NEIGHBOURS,
        "noise_multiplier": settings.noise_multiplier,
        "steps": sum(counts) * devices,
        "noisy": "broadcasts",
        "delta": DELTA,
        "epsilon": epsilon(devices=devices),
        "accountant": accountant(sum(counts) * devices),
        "parts": [
            {
                "what": "broadcasts of a device",
                "epsilon": epsilon(),
                "accountant": accountant(sum(counts)),
            }
        ],
        "rounds": {"done": days, "asked": settings.days},  # A round is a day.
        "holds": True,
        "not_covered": list(NOT_COVERED),
    }


def write(
    folder: str | os.PathLike,
    settings: energy.PFDRLSettings,
    devices: int,
    *,
    days: int,
) -> None:
    """Writes ``privacy.json`` beside a checkpoint, where there is a guarantee.

    Args:
      folder: of the run.
      settings, devices, days: of ``told``.
    """
    found = told(settings, devices, days=days)
    if found is not None:
        ledger.keep(folder, found)
