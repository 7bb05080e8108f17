"""Settings of PrivateHub and its privacy guarantee."""

import dataclasses
from typing import Any

from jaxanon.core.method import Incompatible
from jaxanon.federated import PoissonSampling
from jaxanon.kernels.bounds import setting
from jaxanon.methods.common.diffusion import DiffusionConfig
from jaxanon.privacy import warn_of_delta, warn_of_epsilon
from jaxanon.privacy.guarantee import DIGEST, SCALES, SEED, Guarantee, multiplier_for

HYPER = ("learning_rate", "classifier_learning_rate", "condition_dropout", "ema_decay")

# The last applies only with classes to hide.
AT_RELEASE = ("guidance_scale", "negative_guidance_scale", "hide_threshold")

HYPER += AT_RELEASE

HYPER += ("finetune_learning_rate", "confidence_threshold", "margin", "replay")

TRIPLETS = ("hinge", "paper")

GRADIENTS = ("one_step", "last_steps")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrivateHubConfig(DiffusionConfig):
    """Settings of PrivateHub; the paper gives only steps, betas, batch size and epochs.

    Learning rates, other rates and guidance weights are arrays in the state, so a sweep
    can vary them without recompiling.
    """

    strength: float = setting(
        0.6,
        at_least=0,
        at_most=1,
        help="fraction of the diffusion steps by which a window is noised before "
        "denoising; 1: all steps; 0, with classes_to_hide: keep windows of "
        "other classes unchanged",
    )
    classes_to_hide: tuple[str, ...] = setting(
        (), help="public classes to conceal as other classes"
    )
    hide_threshold: float = setting(
        0.5,
        at_least=0,
        below=1,
        help="a window is regenerated if the predicted probabilities of "
        "classes_to_hide sum to more than this; a higher value regenerates "
        "fewer other windows and misses more hidden ones",
    )
    smoothing: bool = setting(
        False,
        help="smooth each measured channel of a regenerated window until it is at "
        "most as rough as training windows of its class; for slowly changing "
        "sensors, with all channels of few values in categories",
    )
    classifier_filters: tuple[int, ...] = setting(
        (64, 64, 64, 64), at_least=1, help="filters of the raw-data classifiers"
    )
    classifier_features: int = setting(
        256, at_least=1, help="number of features that fine-tuning compares"
    )
    classifier_learning_rate: float = setting(
        1e-3, above=0, help="learning rate of Adam, for the raw-data classifiers"
    )

    patience: int = setting(
        0,
        at_least=0,
        help="epochs of pre-training without a lower loss on held-out windows before "
        "it stops and restores the best weights; 0: never stop; paper: 30",
    )
    validation_fraction: float = setting(
        0.1, above=0, below=1, help="fraction of training windows held out for patience"
    )
    pretraining: int = setting(150, at_least=1, help="epochs before fine-tuning")
    finetune_learning_rate: float = setting(
        1e-4, above=0, help="learning rate in fine-tuning"
    )
    confidence_threshold: float = setting(
        0.5, at_least=0, below=1, help="G: minimum probability of the requested class"
    )
    margin: float = setting(0.2, at_least=0, help="margin of the triplet loss")
    triplet: str = setting(
        "hinge",
        choices=TRIPLETS,
        help="hinge: on features of length 1; paper: no hinge, unnormalised "
        "features, no lower bound",
    )
    gradient: str = setting(
        "one_step",
        choices=GRADIENTS,
        help="windows in the fine-tuning loss. one_step: the denoiser's estimates of "
        "clean windows at a random step; last_steps: windows sampled from "
        "noise, with gradients through the last gradient_steps",
    )
    gradient_steps: int = setting(
        2, at_least=1, help="sampling steps with gradients (last_steps)"
    )
    replay: float = setting(
        1.0, at_least=0, help="weight of the pre-training loss in fine-tuning; paper: 0"
    )

    epsilon: float = setting(
        0.0,
        at_least=0,
        help="ε per training window over max_private_epochs; 0: no noise",
    )
    noise_multiplier: float = setting(
        0.0, at_least=0, help="noise std divided by clip_norm"
    )
    delta: float = setting(1e-5, above=0, below=1, help="δ, below 1 / max_examples")
    clip_norm: float = setting(1.0, above=0, help="clip norm of a window's gradient")
    max_examples: int | None = setting(
        None,
        at_least=1,
        help="public upper bound on the number of training windows; required with "
        "noise",
    )
    max_private_epochs: int = setting(
        20,
        at_least=1,
        help="number of epochs that epsilon covers; training stops after them",
    )

    @property
    def noisy(self) -> bool:
        """Whether training adds noise."""
        return self.epsilon > 0 or self.noise_multiplier > 0

    def __post_init__(self):
        super().__post_init__()
        if self.strength == 0 and not self.classes_to_hide:
            raise ValueError(
                "strength must be > 0 without classes_to_hide, got "
                f"{self.strength!r}; raise it."
            )
        check_noise(self)
        if self.smoothing and (self.noisy or not self.classes_to_hide):
            raise ValueError(
                "smoothing requires classes_to_hide and no noise, because it uses the "
                "roughness of training windows; set classes_to_hide and omit epsilon "
                "and noise_multiplier, or omit smoothing."
            )
        learning = self.gradient_steps if self.gradient == "last_steps" else 0
        if learning > self.num_inference_steps:
            raise ValueError(
                "gradient_steps must be <= num_inference_steps, "
                f"{self.num_inference_steps}, got {self.gradient_steps!r}; lower it."
            )


UNIT = "a training window with its labels"

NOT_COVERED = (
    SEED,
    DIGEST,
    "metrics.jsonl has losses and clipped fractions of training windows, without noise",
    SCALES,
    "a person, who has many windows, and a moment that several windows share",
)


def check_noise(config: Any) -> None:
    """Checks the settings of the noise and settings that the noise does not cover.

    Args:
      config: ``PrivateHubConfig``.

    Raises:
      ValueError: if settings are incompatible.
    """
    if not config.noisy:
        return
    if config.epsilon and config.noise_multiplier:
        raise Incompatible(
            "only one of epsilon and noise_multiplier may be set, got "
            f"{config.epsilon:g} and {config.noise_multiplier:g}; omit one."
        )
    if config.max_examples is None:
        raise ValueError(
            "max_examples must be set with noise, got None; set it to a public upper "
            "bound on the number of training windows, such as 10000 for about 9000."
        )
    if config.batch_size > config.max_examples:
        raise ValueError(
            f"batch_size must be at most max_examples, {config.max_examples}, got "
            f"{config.batch_size!r}."
        )
    if config.classes_to_hide:
        raise Incompatible(
            "classes_to_hide cannot be combined with noise: fine-tuning compares "
            "windows with each other, which noise for single windows does not cover; "
            "omit classes_to_hide, or epsilon and noise_multiplier."
        )
    if config.patience:
        raise Incompatible(
            "patience cannot be combined with noise: held-out losses without noise "
            "would select the weights; set patience to 0 and choose "
            "max_private_epochs."
        )


def check_records(config: Any, windows: int) -> None:
    """Checks that there are at most ``max_examples`` training windows.

    Args:
      config: ``PrivateHubConfig`` with noise.
      windows: number of training windows.

    Raises:
      ValueError: if there are more than ``max_examples``.
    """
    if windows > config.max_examples:
        raise ValueError(
            f"the number of training windows must be at most max_examples, "
            f"{config.max_examples}, got {windows}; set max_examples to {windows} or "
            "more."
        )


def lots_per_epoch(lots: PoissonSampling) -> int:
    """Returns the batches per epoch; independent of the private number of windows.

    Example:
      >>> sampling = PoissonSampling(
      ...     sampling_probability=0.1, expected_batch_size=20.0, max_examples=200
      ... )
      >>> lots_per_epoch(sampling)
      10
    """
    return max(1, round(1 / lots.sampling_probability))


def guarantee_of(config: Any) -> Guarantee | None:
    """Returns the guarantee of a config's noise; None without noise.

    Warns if δ is large enough to release a whole window, and if ε is large.

    Args:
      config: ``PrivateHubConfig``.

    Example:
      >>> from jaxanon.methods.privatehub.config import PrivateHubConfig
      >>> config = PrivateHubConfig(
      ...     epsilon=4.0, max_examples=1280, max_private_epochs=2
      ... )
      >>> guarantee = guarantee_of(config)
      >>> guarantee.rounds, 3.9 < guarantee.epsilon(20) <= 4.0
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
