"""Settings of PrivateHub, and of its noise, which check themselves."""

import dataclasses
from typing import Any

from jaxanon.core.method import Incompatible
from jaxanon.federated import PoissonSampling
from jaxanon.kernels.bounds import setting
from jaxanon.methods.common.diffusion import DiffusionConfig
from jaxanon.privacy import warn_of_delta, warn_of_epsilon
from jaxanon.privacy.guarantee import DIGEST, SCALES, SEED, Guarantee, multiplier_for

HYPER = ("learning_rate", "classifier_learning_rate", "condition_dropout", "ema_decay")

# The last where there are classes to hide.
AT_RELEASE = ("guidance_scale", "negative_guidance_scale", "hide_threshold")

HYPER += AT_RELEASE

HYPER += ("finetune_learning_rate", "confidence_threshold", "margin", "replay")

TRIPLETS = ("hinge", "paper")

GRADIENTS = ("one_step", "last_steps")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrivateHubConfig(DiffusionConfig):
    """PrivateHub's settings; the paper gives steps, betas, batch and epochs alone.

    Step sizes, rates and weights of guidance are defaults here and arrays in the state,
    which a sweep may vary without compiling anew.
    """

    strength: float = setting(
        0.6,
        at_least=0,
        at_most=1,
        help="share of the steps that a window is noised by before it is rewritten; 1: "
        "all; 0, with classes to hide: windows of others stay as they are",
    )
    classes_to_hide: tuple[str, ...] = setting(
        (), help="public classes to conceal by others"
    )
    hide_threshold: float = setting(
        0.5,
        at_least=0,
        below=1,
        help="a window is made anew where the probabilities of the classes to hide, as "
        "the classifier has them, together are above this: fewer windows are lost by "
        "more of it, and more are overlooked",
    )
    smoothing: bool = setting(
        False,
        help="windows made anew are smoothed, each measured channel until it is no "
        "rougher than training windows of their class; for sensors of what changes "
        "slowly, whose channels of a few values categories name",
    )
    classifier_filters: tuple[int, ...] = setting(
        (64, 64, 64, 64), at_least=1, help="filters of the raw windows' classifiers"
    )
    classifier_features: int = setting(
        256, at_least=1, help="features of a window that fine-tuning compares"
    )
    classifier_learning_rate: float = setting(
        1e-3, above=0, help="step size of Adam, for these classifiers"
    )

    patience: int = setting(
        0,
        at_least=0,
        help="epochs of pre-training that do no better on held-out windows before it "
        "stops, and goes back to the best; 0: it never does; the paper's: 30",
    )
    validation_fraction: float = setting(
        0.1, above=0, below=1, help="share of training windows held out for patience"
    )
    pretraining: int = setting(150, at_least=1, help="epochs before any fine-tuning")
    finetune_learning_rate: float = setting(
        1e-4, above=0, help="step size in fine-tuning"
    )
    confidence_threshold: float = setting(
        0.5, at_least=0, below=1, help="G: least probability"
    )
    margin: float = setting(0.2, at_least=0, help="of the triplet loss")
    triplet: str = setting(
        "hinge",
        choices=TRIPLETS,
        help="hinge: on features of length 1; paper: no hinge, no length, no lower "
        "bound",
    )
    gradient: str = setting(
        "one_step",
        choices=GRADIENTS,
        help="what fine-tuning is graded on: one_step: clean windows as the denoiser "
        "sees them in noised ones, at a random step; last_steps: windows sampled from "
        "noise, of which the last gradient_steps learn",
    )
    gradient_steps: int = setting(2, at_least=1, help="steps that learn (last_steps)")
    replay: float = setting(
        1.0, at_least=0, help="weight of the first loss in fine-tuning; paper: 0"
    )

    epsilon: float = setting(
        0.0,
        at_least=0,
        help="ε of a training window in max_private_epochs; 0: no noise",
    )
    noise_multiplier: float = setting(0.0, at_least=0, help="noise over max_norm")
    delta: float = setting(1e-5, above=0, below=1, help="δ, below 1 / records")
    clip_norm: float = setting(1.0, above=0, help="clip norm of a window's gradient")
    max_examples: int | None = setting(
        None, at_least=1, help="most training windows, in public; noise needs it"
    )
    max_private_epochs: int = setting(
        20, at_least=1, help="epochs that epsilon pays for; training stops after them"
    )

    @property
    def noisy(self) -> bool:
        """Whether it trains behind noise."""
        return self.epsilon > 0 or self.noise_multiplier > 0

    def __post_init__(self):
        super().__post_init__()
        if self.strength == 0 and not self.classes_to_hide:
            raise ValueError(
                f"strength must be > 0 without classes to hide, got {self.strength!r}."
            )
        check_noise(self)
        if self.smoothing and (self.noisy or not self.classes_to_hide):
            raise ValueError(
                "smoothing is of windows made anew, and as smooth as training windows "
                "were, which noise does not tell; name classes to hide, and no noise, "
                "or leave it out."
            )
        learning = self.gradient_steps if self.gradient == "last_steps" else 0
        if learning > self.num_inference_steps:
            raise ValueError(
                "gradient_steps must be <= num_inference_steps, "
                f"{self.num_inference_steps}, got "
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
      ValueError: for settings that do not go together.
    """
    if not config.noisy:
        return
    if config.epsilon and config.noise_multiplier:
        raise Incompatible(
            f"epsilon {config.epsilon:g} buys noise, and noise_multiplier "
            f"{config.noise_multiplier:g} names it; give one of them."
        )
    if config.max_examples is None:
        raise ValueError(
            "max_examples must be given where there is noise: the most training "
            "windows "
            "that there may be, a number that tells of nobody, such as 10000 for some "
            "9000 of them."
        )
    if config.batch_size > config.max_examples:
        raise ValueError(
            f"batch_size must be at most max_examples, {config.max_examples}, got "
            f"{config.batch_size!r}."
        )
    if config.classes_to_hide:
        raise Incompatible(
            "hide and noise do not go together: fine-tuning compares a window with "
            "others, which noise for one window does not cover; leave hide out, or "
            "epsilon and noise_multiplier."
        )
    if config.patience:
        raise Incompatible(
            "patience and noise do not go together: losses of held-out windows, which "
            "have no noise, would choose what is kept; set patience to 0, and "
            "max_private_epochs to what you want."
        )


def check_records(config: Any, windows: int) -> None:
    """Refuses more training windows than noise was counted for.

    Args:
      config: ``PrivateHubConfig`` with noise.
      windows: how many there are.

    Raises:
      ValueError: if they are more than ``max_examples``.
    """
    if windows > config.max_examples:
        raise ValueError(
            f"there are {windows} training windows, and what noise hides was counted "
            f"for {config.max_examples} at most; set records to {windows} or more."
        )


def lots_per_epoch(lots: PoissonSampling) -> int:
    """How many count as an epoch, however many windows there are: that is private.

    Example:
      >>> lots_per_epoch(
      ...     PoissonSampling(sampling_probability=0.1, expected_batch_size=20.0,
      max_examples=200) ... )
      10
    """
    return max(1, round(1 / lots.sampling_probability))


def guarantee_of(config: Any) -> Guarantee | None:
    """The guarantee that a config's noise gives; None without noise.

    Warns of a δ that allows for giving a window away, and of an ε that says little.

    Args:
      config: ``PrivateHubConfig``.

    Example:
      >>> from jaxanon.methods.privatehub.config import PrivateHubConfig
      >>> config = PrivateHubConfig(epsilon=4.0, max_examples=1280,
      max_private_epochs=2)
      >>> found = guarantee_of(config)
      >>> found.rounds, 3.9 < found.epsilon(20) <= 4.0
      (20, True)
    """
    if not config.noisy:
        return None
    warn_of_delta(config.delta, config.max_examples)
    lots = PoissonSampling(
        sampling_probability=config.batch_size / config.max_examples,
        expected_batch_size=float(config.batch_size),
        max_examples=config.max_examples,
    )
    multiplier, rounds = config.noise_multiplier, None
    if config.epsilon:
        warn_of_epsilon(config.epsilon)
        rounds = config.max_private_epochs * lots_per_epoch(lots)
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
        setting="max_private_epochs",
        not_covered=NOT_COVERED,
    )
