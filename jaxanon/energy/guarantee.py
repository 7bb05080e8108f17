"""What noise on broadcasts is worth: ε of a device, or of a home with all its own."""

import functools
import math
from typing import NamedTuple

from jaxanon.energy import settings as energy_settings
from jaxanon.energy.config import PFDRLConfig, period
from jaxanon.energy.saving import DAY
from jaxanon.kernels.bounds import finite
from jaxanon.kernels.checks import whole
from jaxanon.privacy import SampledGaussian, epsilon_spent
from jaxanon.privacy.accounting import check_delta

LEAST_MULTIPLIER = 0.1  # Below it ε is beyond 90: an upper bound says enough.


def num_broadcasts(config: PFDRLConfig, num_slots: int, hours: float) -> int:
    """How many broadcasts of a model fall into so many slots.

    Args:
      config: ``PFDRLConfig``.
      num_slots: at least 0.
      hours: ``beta_hours`` or ``gamma_hours`` of the run, a Python number.

    Raises:
      ValueError: for a negative number of slots, or hours that are not finite and > 0.
      TypeError: for slots that are no whole number, or hours that are none.

    Example:
      >>> num_broadcasts(PFDRLConfig(), 30 * 24, 12.0)
      60
    """
    num_slots = whole("num_slots", num_slots, least=0)
    finite(zero=False, hours=hours)
    return num_slots // int(period(config, float(hours)))


def broadcast_epsilon(
    config: PFDRLConfig,
    num_slots: int,
    delta: float,
    *,
    alpha: int = 6,
    beta_hours: float = 12.0,
    gamma_hours: float = 12.0,
    devices: int = 1,
) -> float:
    """The ε of all that was broadcast of one device, or of one home.

    Neighbours are streets of which one has the device, or the home, learn from its
    data or send nothing but noise; to hide which of two it is, count on half the
    multiplier. Every broadcast is a Gaussian mechanism of all its
    past data, without sampling: forecasters' and Q-networks' add up, and so do those
    of a home's devices. Levels and scales never leave a home.

    Args:
      config: ``PFDRLConfig`` of "pfdrl".
      num_slots: that were lived.
      delta: δ in (0, 1).
      alpha, beta_hours, gamma_hours: of ``init``, Python numbers.
      devices: 1 for the ε of a device, or as many as a home has.

    Returns:
      ε; infinity without noise, 0 before the first broadcast.

    Raises:
      ValueError: for a method that broadcasts nothing, numbers out of range.
      TypeError: for hours that are no number, others that are not whole.

    Example:
      >>> noisy = PFDRLConfig(noise_multiplier=20.0)
      >>> one = broadcast_epsilon(noisy, 24, 1e-5)
      >>> home = broadcast_epsilon(noisy, 24, 1e-5, devices=4)
      >>> round(one, 2), round(home, 2)
      (0.34, 0.73)

    References:
      Dong, Roth and Su, Gaussian differential privacy, 2022: k Gaussian mechanisms of
      multiplier z are one of z / √k.
    """
    if config.method != "pfdrl":
        raise ValueError(
            f"nothing is broadcast by {config.method!r}, whose server sees every "
            'model as it is; ask about "pfdrl".'
        )
    whole("devices", devices, least=1)
    delta = check_delta(delta)
    releases = num_broadcasts(config, num_slots, beta_hours)
    if whole("alpha", alpha, least=0):
        releases += num_broadcasts(config, num_slots, gamma_hours)
    if not releases:
        return 0.0
    if not config.noise_multiplier:
        return math.inf
    # So many Gaussian mechanisms are one, exactly.
    multiplier = config.noise_multiplier / math.sqrt(releases * devices)
    each = SampledGaussian(noise_multiplier=multiplier)
    return epsilon_spent([each], delta, accountant=accountant_of(multiplier))


def accountant_of(multiplier: float) -> str:
    """Who reckons the ε of one Gaussian mechanism of this multiplier.

    Args:
      multiplier: standard deviation over sensitivity, > 0.

    Example:
      >>> accountant_of(1.0), accountant_of(0.01)
      ('pld', 'rdp')
    """
    return "pld" if multiplier >= LEAST_MULTIPLIER else "rdp"


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
    settings: energy_settings.PFDRLSettings, devices: int, *, days: int | None = None
) -> dict | None:
    """The guarantee of a home after so many days; None without one.

    Args:
      settings: ``PFDRLSettings``.
      devices: of a home; the ε of each adds up.
      days: done; None is all that there are to learn from.

    Returns:
      What ``jaxanon.report.text.guaranteed`` puts into words.

    Example:
      >>> from jaxanon import energy
      >>> told(energy.PFDRLSettings(), 6) is None
      True
      >>> noisy = energy.PFDRLSettings(noise_multiplier=20.0, days=1)
      >>> found = told(noisy, 4)
      >>> found["steps"], round(found["epsilon"], 2)
      (16, 0.73)
    """
    if settings.sharing != "pfdrl" or not settings.noise_multiplier:
        return None
    config = energy_settings.config_of(settings)
    days = settings.days if days is None else days
    slots = days * DAY // settings.slot_min
    paces = {"beta_hours": settings.beta_hours, "gamma_hours": settings.gamma_hours}
    epsilon = functools.partial(
        broadcast_epsilon, config, slots, DELTA, alpha=settings.alpha, **paces
    )
    counts = [num_broadcasts(config, slots, settings.beta_hours)]
    if settings.alpha:
        counts.append(num_broadcasts(config, slots, settings.gamma_hours))
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


class BroadcastGuarantee(NamedTuple):
    """Noise on what homes broadcast, as ``privacy.guarantee.Guarantee``.

    Example:
      >>> from jaxanon import energy
      >>> noisy = energy.PFDRLSettings(noise_multiplier=20.0, days=1)
      >>> BroadcastGuarantee(noisy, devices=4).report(1)["steps"]
      16
    """

    settings: energy_settings.PFDRLSettings
    devices: int  # of a home; the ε of each adds up

    rests_on = "noise_multiplier"
    rounds = None  # Noise is named, not bought.
    holds = True
    most_windows = None

    def trained_with(self, state) -> "BroadcastGuarantee":
        """The same: noise is compiled into the method."""
        del state
        return self

    def epsilon(self, rounds: int) -> float:
        """ε of a home after so many days."""
        return self.report(rounds)["epsilon"]

    def report(self, rounds: int, accountant: str = "pld") -> dict:
        """What a report says of the guarantee after so many days."""
        del accountant  # Of Gaussian mechanisms without sampling both are quick.
        return told(self.settings, self.devices, days=rounds) or {}
