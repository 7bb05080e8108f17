"""Epsilon of noisy broadcasts, per device or per home."""

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

MIN_PLD_MULTIPLIER = 0.1  # Below it ε > 90, and an RDP upper bound suffices.


def num_broadcasts(config: PFDRLConfig, num_slots: int, hours: float) -> int:
    """Returns the number of broadcasts of a model within a number of slots.

    Args:
      config: ``PFDRLConfig``.
      num_slots: number of slots, at least 0.
      hours: ``beta_hours`` or ``gamma_hours`` of the run, a Python number.

    Raises:
      ValueError: if ``num_slots`` is negative, or ``hours`` is not finite and > 0.
      TypeError: if ``num_slots`` is not an int, or ``hours`` not a number.

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
    """Returns the epsilon of all broadcasts of one device or home.

    Two neighborhoods are adjacent if they differ in whether the device or home trains
    on its data or sends only noise. To hide which of two homes took part, compute
    epsilon with half the multiplier. Each broadcast is a Gaussian mechanism on all past
    data without sampling. Broadcasts of forecasters, Q-networks and all devices of a
    home compose. Levels and scales never leave a home.

    Args:
      config: ``PFDRLConfig`` of "pfdrl".
      num_slots: number of simulated slots.
      delta: δ in (0, 1).
      alpha, beta_hours, gamma_hours: hyper-parameters of ``init``, Python numbers.
      devices: 1 for epsilon per device, or the number of devices of a home.

    Returns:
      Epsilon; infinity without noise, 0 before the first broadcast.

    Raises:
      ValueError: for a method without broadcasts, or arguments out of range.
      TypeError: if hours are not numbers, or other arguments not ints.

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
            f"config.method must be 'pfdrl', got {config.method!r}, which sends models "
            "to a server without noise."
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
    # k Gaussian mechanisms compose exactly to one.
    multiplier = config.noise_multiplier / math.sqrt(releases * devices)
    each = SampledGaussian(noise_multiplier=multiplier)
    return epsilon_spent([each], delta, accountant=choose_accountant(multiplier))


def choose_accountant(multiplier: float) -> str:
    """Returns the accountant for one Gaussian mechanism.

    Args:
      multiplier: standard deviation divided by sensitivity, > 0.

    Example:
      >>> choose_accountant(1.0), choose_accountant(0.01)
      ('pld', 'rdp')
    """
    return "pld" if multiplier >= MIN_PLD_MULTIPLIER else "rdp"


DELTA = 1e-5

NOT_COVERED = (
    "data visible to a home's meter or power company",
    "which devices a home has",
    "the seed in config.json, which reproduces the noise",
    "checkpoints, which hold networks without noise, optimizer states, and replay "
    "memories with metered loads",
    "metrics.jsonl and reports, which show the days of all homes",
    "settings that were selected by their results",
)

NEIGHBOURS = (
    "a home that trains on its data or sends only noise (to hide which of two homes "
    "took part, compute epsilon with half the noise multiplier)"
)


def describe_guarantee(
    settings: energy_settings.PFDRLSettings, devices: int, *, days: int | None = None
) -> dict | None:
    """Returns the guarantee of a home after some days; None without noise.

    Args:
      settings: ``PFDRLSettings``.
      devices: devices per home; their epsilons compose.
      days: completed days; None means all training days.

    Returns:
      Input of ``jaxanon.report.text.guaranteed``.

    Example:
      >>> from jaxanon import energy
      >>> describe_guarantee(energy.PFDRLSettings(), 6) is None
      True
      >>> noisy = energy.PFDRLSettings(noise_multiplier=20.0, days=1)
      >>> report = describe_guarantee(noisy, 4)
      >>> report["steps"], round(report["epsilon"], 2)
      (16, 0.73)
    """
    if settings.sharing != "pfdrl" or not settings.noise_multiplier:
        return None
    config = energy_settings.build_config(settings)
    days = settings.days if days is None else days
    slots = days * DAY // settings.slot_min
    paces = {"beta_hours": settings.beta_hours, "gamma_hours": settings.gamma_hours}
    epsilon = functools.partial(
        broadcast_epsilon, config, slots, DELTA, alpha=settings.alpha, **paces
    )
    counts = [num_broadcasts(config, slots, settings.beta_hours)]
    if settings.alpha:
        counts.append(num_broadcasts(config, slots, settings.gamma_hours))
    accountant = lambda steps: choose_accountant(
        settings.noise_multiplier / math.sqrt(max(steps, 1))
    )
    return {
        "mechanism": "Gaussian noise on changes since the last broadcast",
        "released": "Everything that a home broadcasts",
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
        "rounds": {"done": days, "asked": settings.days},  # One round is one day.
        "holds": True,
        "not_covered": list(NOT_COVERED),
    }


class BroadcastGuarantee(NamedTuple):
    """Guarantee of noisy broadcasts, as in ``privacy.guarantee.Guarantee``.

    Example:
      >>> from jaxanon import energy
      >>> noisy = energy.PFDRLSettings(noise_multiplier=20.0, days=1)
      >>> BroadcastGuarantee(noisy, devices=4).report(1)["steps"]
      16
    """

    settings: energy_settings.PFDRLSettings
    devices: int  # devices per home; their epsilons compose

    rests_on = "noise_multiplier"
    rounds = None  # The noise is set directly, not derived from a budget.
    rounds_per_epoch = 1
    setting = "days"
    score_multiplier = None
    holds = True
    most_windows = None

    def trained_with(self, state) -> "BroadcastGuarantee":
        """Returns itself, because the noise multiplier is compiled in."""
        del state
        return self

    def epsilon(self, rounds: int) -> float:
        """Returns the epsilon of a home after some days."""
        return self.report(rounds)["epsilon"]

    def report(self, rounds: int, accountant: str = "pld") -> dict:
        """Returns the guarantee of a report after some days."""
        del accountant  # Both are fast without sampling.
        return describe_guarantee(self.settings, self.devices, days=rounds) or {}
