"""ObscureNet's baselines: attribute-specific, general and conditional autoencoders."""

import dataclasses

from jaxanon.core.method import Method
from jaxanon.core.registry import register
from jaxanon.kernels.bounds import setting
from jaxanon.methods.obscurenet.autoencoders import (
    AutoencoderConfig,
    Design,
    autoencoders,
    model_player,
    networks,
    sized,
)
from jaxanon.models.conditional_autoencoder import VALUES, VARIANTS

MEANS = ("predicted", "last")

# The released program for MotionSense has a second layer of 512, and no classification
# layer; with 0.6 million weights a model is as large as the paper says without it.
ATTRIBUTE_VAE_SIZES = {
    "motion_sense": (10, (512, 256, 128)),
    "mobi_act": (5, (512, 512, 256, 128)),
    "": (10, (512, 512, 256, 128)),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class AttributeVAEConfig(AutoencoderConfig):
    """Settings of the attribute-specific autoencoders; the paper's for MotionSense."""

    alpha: float = setting(
        150.0,
        at_least=0,
        help="weight of the classification layer's loss: the paper's 2, for a loss 75 "
        "times smaller as the released programs have it (MobiAct's weight: 75); "
        "released: 0",
    )
    beta: float = setting(
        2.0,
        at_least=0,
        help="weight of the KL divergence; paper: MobiAct 5; released: MotionSense "
        "0.1, MobiAct 0.5",
    )
    variant: str = setting(
        "paper", choices=VARIANTS, help="loss in nats, or as released"
    )
    means_of: str = setting(
        "predicted",
        choices=MEANS,
        help="whose class means a latent moves between: its predicted public class's; "
        "last, by a slip of the released program for MotionSense: the last one's, "
        "whatever it is",
    )


@register("attribute_vae", config=AttributeVAEConfig)
def attribute_vae(spec, config) -> Method:
    """Builds attribute-specific autoencoders for windows of ``spec``.

    For each public class there is a variational autoencoder, with a classification
    layer for each private attribute that is learned together with it, so that private
    classes lie apart in the latent. A window is anonymized by moving a sample of its
    latent from the mean of its predicted private class to the mean of another, or any.

    The classification layer makes the latent say *more* of the private class: only the
    windows that are decoded from it may leave a device.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``AttributeVAEConfig``.

    Returns:
      ``Method``.

    Raises:
      ValueError: if a setting is out of range.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> method = attribute_vae(load("smartwatch").spec, alpha=1.0)
      >>> method.name, method.config.hidden_sizes
      ('attribute_vae', (512, 512, 256, 128))

    References:
      Hajihassani, Ardakanian, Khazaei, Anonymizing Sensor Data on the Edge: A
      Representation Learning and Transformation Approach, 2021, eq. 2, sections 5.1
      to 5.3 and Algorithm 1.
    """
    config = sized(config, spec, ATTRIBUTE_VAE_SIZES)
    nets = networks(spec, config, classifier_hidden_sizes=())
    weights = lambda hyper: (hyper["beta"], hyper["alpha"])
    groups = ("encoder", "decoder", "readers")
    design = Design(
        nets,
        (model_player(nets, groups, weights, config.variant),),
        {"alpha": config.alpha, "beta": config.beta},
        last_means=config.means_of == "last",
    )
    return autoencoders("attribute_vae", spec, config, design)


GENERAL_VAE_SIZES = {
    "motion_sense": (10, (4096, 2048, 1024, 512, 256, 128)),
    "mobi_act": (5, (2048, 1024, 512, 256, 128)),
    "": (10, (2048, 1024, 512, 256, 128)),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class GeneralVAEConfig(AutoencoderConfig):
    """Settings of the general autoencoder; the released program's for MobiAct."""

    batch_size: int = setting(128, at_least=1, help="windows per round")
    beta: float = setting(
        0.5, at_least=0, help="weight of the KL divergence; MotionSense: 0.1, keras"
    )
    variant: str = setting(
        "paper",
        choices=(*VARIANTS, "keras"),
        help="loss in nats per window; released: over 75; keras: mean error + 2 beta "
        "KL, the program for MotionSense, whose KL weighs 512 times as much",
    )


@register("general_vae", config=GeneralVAEConfig)
def general_vae(spec, config) -> Method:
    """Builds the general autoencoder for windows of ``spec``.

    One variational autoencoder learns the windows of all public classes. A window is
    anonymized by moving a sample of its latent from the mean of its predicted public
    and private class to the mean of the same public and another private class, or any.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``GeneralVAEConfig``.

    Returns:
      ``Method``.

    Raises:
      ValueError: if a setting is out of range.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> general_vae(load("smartwatch").spec).config.hidden_sizes
      (2048, 1024, 512, 256, 128)

    References:
      Hajihassani, Ardakanian, Khazaei, Latent Representation Learning and Manipulation
      for Privacy-Preserving Sensor Data Analytics, SenSys-ML 2020: [14] of their
      Anonymizing Sensor Data on the Edge, 2021, whose section 4.1 and eq. 1 give the
      loss, section 5.3 and Algorithm 1 the move between means, and sections 5.2 and
      6.3.1 compare the two.
    """
    config = sized(config, spec, GENERAL_VAE_SIZES)
    nets = networks(spec, config)
    # Mean error + 2 beta KL is 256 error + 512 beta KL, over 256, which Adam ignores.
    times = VALUES if config.variant == "keras" else 1
    variant = "paper" if config.variant == "keras" else config.variant
    weights = lambda hyper: (times * hyper["beta"], 0.0)
    design = Design(
        nets,
        (model_player(nets, ("encoder", "decoder"), weights, variant),),
        {"beta": config.beta},
        by_class=False,
    )
    return autoencoders("general_vae", spec, config, design)


CVAE_SIZES = {"mobi_act": (5, (512, 512, 256, 128)), "": (10, (512, 512, 256, 128))}


@dataclasses.dataclass(frozen=True, kw_only=True)
class CVAEConfig(AutoencoderConfig):
    """Settings of the conditional autoencoders; the released ones for MotionSense."""

    beta: float = setting(
        0.1, at_least=0, help="weight of the KL divergence, released c; MobiAct: 0.5"
    )
    variant: str = setting(
        "paper", choices=VARIANTS, help="loss in nats, or as released"
    )


@register("cvae", config=CVAEConfig)
def cvae(spec, config) -> Method:
    """Builds conditional variational autoencoders for windows of ``spec``.

    ObscureNet without an adversary: the decoder of each public class's autoencoder is
    told the private classes, and nothing but the KL divergence keeps them out of the
    latent.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``CVAEConfig``.

    Returns:
      ``Method``.

    Raises:
      ValueError: if a setting is out of range.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> cvae(load("smartwatch").spec, latent_dim=5).config.latent_dim
      5

    References:
      A baseline of Hajihassani, Ardakanian, Khazaei, ObscureNet, IoTDI 2021 (the
      released programs). The loss is minus eq. 1 of their Anonymizing Sensor Data on
      the Edge, 2021, section 4.1, with ``beta`` before its KL divergence as there, and
      a decoder that is told the private classes.
    """
    config = sized(config, spec, CVAE_SIZES)
    nets = networks(spec, config, told=True)
    weights = lambda hyper: (hyper["beta"], 0.0)
    player = model_player(nets, ("encoder", "decoder"), weights, config.variant)
    return autoencoders(
        "cvae", spec, config, Design(nets, (player,), {"beta": config.beta})
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class CAEConfig(AutoencoderConfig):
    """Settings of the conditional autoencoders, which have no weights to choose."""


@register("cae", config=CAEConfig)
def cae(spec, config) -> Method:
    """Builds conditional autoencoders for windows of ``spec``.

    The decoder of each public class's autoencoder is told the private classes; the
    latent is a code that only the squared error shapes.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``CAEConfig``.

    Returns:
      ``Method``.

    Raises:
      ValueError: if a setting is out of range.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> cae(load("smartwatch").spec).config.latent_dim
      10

    References:
      A baseline of Hajihassani, Ardakanian, Khazaei, ObscureNet, IoTDI 2021 (the
      released programs). The loss is what ``cvae``'s is without the KL divergence.
    """
    config = sized(config, spec, CVAE_SIZES)
    nets = networks(spec, config, told=True, random=False)
    weights = lambda hyper: (0.0, 0.0)
    player = model_player(nets, ("encoder", "decoder"), weights, "paper")
    return autoencoders("cae", spec, config, Design(nets, (player,), {}))
