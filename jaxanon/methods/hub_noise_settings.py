"""What PrivateHub's settings of noise refuse, and the guarantee that they buy."""

from typing import Any

from jaxanon.federated import Lots
from jaxanon.federated.guarantee import DIGEST, SCALES, SEED, Guarantee, multiplier_for
from jaxanon.kernels.setting_checks import at_least, finite
from jaxanon.methods.method import Incompatible
from jaxanon.privacy import warn_of_delta, warn_of_epsilon

UNIT = "a training window with its labels"
NOT_COVERED = (
    SEED,
    DIGEST,
    "losses and shares that were clipped, in metrics.jsonl, are of training windows",
    SCALES,
    "a person, who has many windows, and a moment that several windows share",
)


def check_noise(config: Any) -> None:
    """Refuses noise that says too little, and what no noise would cover.

    Args:
      config: ``PrivateHubConfig``.

    Raises:
      ValueError: for a number out of its range, and settings that do not go together.
      TypeError: for a number that should be whole and is not.
    """
    finite(zero=True, epsilon=config.epsilon, noise_multiplier=config.noise_multiplier)
    finite(zero=False, delta=config.delta, max_norm=config.max_norm)
    at_least(1, paid_epochs=config.paid_epochs)
    if config.delta >= 1:
        raise ValueError(f"delta must be below 1, got {config.delta!r}.")
    if config.records is not None:
        at_least(1, records=config.records)
    if not config.noisy:
        return
    if config.epsilon and config.noise_multiplier:
        raise Incompatible(
            f"epsilon {config.epsilon:g} buys noise, and noise_multiplier "
            f"{config.noise_multiplier:g} names it; give one of them."
        )
    if config.records is None:
        raise ValueError(
            "records must be given where there is noise: the most training windows "
            "that there may be, a number that tells of nobody, such as 10000 for some "
            "9000 of them."
        )
    if config.batch > config.records:
        raise ValueError(
            f"batch must be at most records, {config.records}, got {config.batch!r}."
        )
    if config.hide:
        raise Incompatible(
            "hide and noise do not go together: fine-tuning compares a window with "
            "others, which noise for one window does not cover; leave hide out, or "
            "epsilon and noise_multiplier."
        )
    if config.patience:
        raise Incompatible(
            "patience and noise do not go together: losses of held-out windows, which "
            "have no noise, would choose what is kept; set patience to 0, and "
            "paid_epochs to what you want."
        )


def check_records(config: Any, windows: int) -> None:
    """Refuses more training windows than noise was counted for.

    Args:
      config: ``PrivateHubConfig`` with noise.
      windows: how many there are.

    Raises:
      ValueError: if they are more than ``records``.
    """
    if windows > config.records:
        raise ValueError(
            f"there are {windows} training windows, and what noise hides was counted "
            f"for {config.records} at most; set records to {windows} or more."
        )


def lots_per_epoch(lots: Lots) -> int:
    """How many count as an epoch, however many windows there are: that is private.

    Example:
      >>> lots_per_epoch(Lots(sampling_probability=0.1, size=20.0, records=200))
      10
    """
    return max(1, round(1 / lots.sampling_probability))


def guarantee_of(config: Any) -> Guarantee | None:
    """The guarantee that a config's noise gives; None without noise.

    Warns of a δ that allows for giving a window away, and of an ε that says little.

    Args:
      config: ``PrivateHubConfig``.

    Example:
      >>> from jaxanon.methods.privatehub_config import PrivateHubConfig
      >>> config = PrivateHubConfig(epsilon=4.0, records=1280, paid_epochs=2)
      >>> found = guarantee_of(config)
      >>> found.rounds, 3.9 < found.epsilon(20) <= 4.0
      (20, True)
    """
    if not config.noisy:
        return None
    warn_of_delta(config.delta, config.records)
    lots = Lots(
        sampling_probability=config.batch / config.records,
        size=float(config.batch),
        records=config.records,
    )
    multiplier, rounds = config.noise_multiplier, None
    if config.epsilon:
        warn_of_epsilon(config.epsilon)
        rounds = config.paid_epochs * lots_per_epoch(lots)
        multiplier = multiplier_for(config.epsilon, config.delta, lots, rounds)
    return Guarantee(
        lots,
        multiplier,
        1,
        rounds,
        config.delta,
        UNIT,
        released="The trained generator",
        rounds_per_epoch=lots_per_epoch(lots),
        setting="paid_epochs",
        not_covered=NOT_COVERED,
    )
