"""Settings of PrivateHub, and of its noise, which check themselves."""

import dataclasses
from typing import Any

from jaxanon.core.method import Incompatible
from jaxanon.federated import Lots
from jaxanon.kernels.checks import one_of
from jaxanon.kernels.setting_checks import at_least, finite
from jaxanon.methods.common.diffusion import DiffusionConfig, below_1
from jaxanon.privacy import warn_of_delta, warn_of_epsilon
from jaxanon.privacy.guarantee import DIGEST, SCALES, SEED, Guarantee, multiplier_for

HYPER = ("step_size", "classifier_step_size", "forgetting", "ema")

# The last where there are classes to hide.
AT_RELEASE = ("guidance", "negative_guidance", "suspicion")

HYPER += AT_RELEASE

HYPER += ("fine_step_size", "threshold", "margin", "replay")

TRIPLETS = ("hinge", "paper")

GRADIENTS = ("one_step", "last_steps")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrivateHubConfig(DiffusionConfig):
    """PrivateHub's settings; the paper gives steps, betas, batch and epochs alone.

    Step sizes, rates and weights of guidance are defaults here and arrays in the state,
    which a sweep may vary without compiling anew.

    Raises:
      ValueError: for a setting out of its range.
      TypeError: for a setting that should be a whole number, or any, and is none.
    """

    hide: tuple[str, ...] = ()
    """public classes to conceal: windows of them are made anew, as of other classes"""
    suspicion: float = 0.5
    """a window is made anew where the probabilities of the classes to hide, as the
    classifier has them, together are above this: fewer windows are lost by more of it,
    and more are overlooked"""
    smoothing: bool = False
    """windows made anew are smoothed, each measured channel until it is no rougher than
    training windows of their class; for sensors of what changes slowly, whose channels
    of a few values categories name"""
    classifier_filters: tuple[int, ...] = (64, 64, 64, 64)
    """filters of each convolution of the classifiers of raw windows"""
    classifier_features: int = 256
    """what their first dense layer says of a window; fine-tuning compares it"""
    classifier_step_size: float = 1e-3
    """step size of Adam, for these classifiers"""

    patience: int = 0
    """epochs of pre-training that do no better on held-out windows before it stops, and
    goes back to the best; 0: it never does; the paper's: 30"""
    held_out: float = 0.1
    """share of the training windows held out, where there is patience"""
    pretraining: int = 150
    """epochs before fine-tuning, which there is if there are classes to hide"""
    fine_step_size: float = 1e-4
    """step size of Adam in fine-tuning"""
    threshold: float = 0.5
    """G: what is made counts if the classifier gives its class more than this"""
    margin: float = 0.2
    """of the triplet loss"""
    triplet: str = "hinge"
    """hinge: on features of length 1; paper: no hinge, no length, no lower bound"""
    gradient: str = "one_step"
    """what fine-tuning is graded on: one_step: clean windows as the denoiser sees them
    in noised ones, at a random step; last_steps: windows sampled from noise, of which
    the last gradient_steps learn"""
    gradient_steps: int = 2
    """steps of DDIM that learn, with last_steps"""
    replay: float = 1.0
    """weight of the pre-training's loss in fine-tuning; the paper's: 0"""

    epsilon: float = 0.0
    """ε of a training window, spent in paid_epochs; 0: no noise, unless it is named"""
    noise_multiplier: float = 0.0
    """deviation of the noise over max_norm, in place of what epsilon buys"""
    delta: float = 1e-5
    """δ of the guarantee, below 1 / records"""
    max_norm: float = 1.0
    """clip norm of a window's gradient, of all networks together (with noise)"""
    records: int | None = None
    """training windows that there are at most, a public number; noise needs it"""
    paid_epochs: int = 20
    """epochs that epsilon pays for; training stops after them"""

    @property
    def may_rest(self) -> bool:
        """A strength of 0 leaves windows as they are, but for those to hide."""
        return bool(self.hide)

    @property
    def noisy(self) -> bool:
        """Whether it trains behind noise."""
        return self.epsilon > 0 or self.noise_multiplier > 0

    def __post_init__(self):
        super().__post_init__()
        at_least(1, gradient_steps=self.gradient_steps, pretraining=self.pretraining)
        at_least(
            1,
            classifier_filters=self.classifier_filters,
            classifier_features=self.classifier_features,
        )
        at_least(0, patience=self.patience)
        finite(
            zero=False,
            classifier_step_size=self.classifier_step_size,
            fine_step_size=self.fine_step_size,
            held_out=self.held_out,
        )
        names = "threshold", "margin", "replay", "suspicion"
        finite(zero=True, **{name: getattr(self, name) for name in names})
        below_1(
            threshold=self.threshold,
            held_out=self.held_out,
            suspicion=self.suspicion,
        )
        one_of("triplet", self.triplet, TRIPLETS)
        one_of("gradient", self.gradient, GRADIENTS)
        check_noise(self)
        if self.smoothing and (self.noisy or not self.hide):
            raise ValueError(
                "smoothing is of windows made anew, and as smooth as training windows "
                "were, which noise does not tell; name classes to hide, and no noise, "
                "or leave it out."
            )
        learning = self.gradient_steps if self.gradient == "last_steps" else 0
        if learning > self.sampling_steps:
            raise ValueError(
                f"gradient_steps must be <= sampling_steps, {self.sampling_steps}, got "
                f"{self.gradient_steps!r}."
            )


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
      >>> from jaxanon.methods.privatehub.privatehub.config import PrivateHubConfig
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
