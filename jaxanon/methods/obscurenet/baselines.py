"""ObscureNet's baselines: attribute-specific, general and conditional autoencoders."""

import dataclasses

from jaxanon.core.method import Method
from jaxanon.core.registry import register
from jaxanon.kernels.bounds import setting
from jaxanon.methods.common import recipes
from jaxanon.methods.obscurenet.autoencoders import (
    AutoencoderConfig,
    Design,
    autoencoders,
    model_component,
    networks,
    sized,
)
from jaxanon.models.conditional_autoencoder import NUM_VALUES, VARIANTS

MEANS = ("predicted", "last")

# The authors' program for MotionSense has a second layer of 512 and no classification
# layer. Without the second 512 layer, a model has the paper's 0.6 million weights.
ATTRIBUTE_VAE_SIZES = {
    "motion_sense": (10, (512, 256, 128)),
    "mobi_act": (5, (512, 512, 256, 128)),
    "": (10, (512, 512, 256, 128)),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class AttributeVAEConfig(AutoencoderConfig):
    """Settings of the attribute-specific autoencoders, as for MotionSense."""

    alpha: float = setting(
        150.0,
        at_least=0,
        help="weight of the classification loss: 75 times the paper's 2, because the "
        "authors' programs divide the loss by 75 (MobiAct's weight: 75); official: 0",
    )
    beta: float = setting(
        2.0,
        at_least=0,
        help="weight of the KL divergence; paper: 5 for MobiAct; official: 0.1 for "
        "MotionSense, 0.5 for MobiAct",
    )
    variant: str = setting(
        "paper", choices=VARIANTS, help="loss in nats, or of the authors' programs"
    )
    means_of: str = setting(
        "predicted",
        choices=MEANS,
        help="public class whose means shift the latent: the predicted one, or last: "
        "the last one, as in the authors' program for MotionSense (a mistake)",
    )


@register("attribute_vae", config=AttributeVAEConfig, recipes=recipes.ATTRIBUTE_VAE)
def attribute_vae(spec, config) -> Method:
    """Builds attribute-specific autoencoders for windows of ``spec``.

    Each public class has a variational autoencoder, trained jointly with a
    classification layer per private attribute, which separates the private classes in
    the latent. A window is anonymized by shifting a sample of its latent from the mean
    of the predicted private class to the mean of the target class.

    The classification layer makes the latent *more* informative about the private
    class, so only decoded windows may leave a device.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``AttributeVAEConfig``.

    Raises:
      ValueError: if a setting is out of range.

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
        (model_component(nets, groups, weights, config.variant),),
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
    """Settings of the general autoencoder, as in the authors' program for MobiAct."""

    batch_size: int = setting(128, at_least=1, help="windows per round")
    beta: float = setting(
        0.5,
        at_least=0,
        help="weight of the KL divergence; MotionSense: 0.1 with variant=keras",
    )
    variant: str = setting(
        "paper",
        choices=(*VARIANTS, "keras"),
        help="paper: loss in nats per window; official: divided by 75; keras: mean "
        "error + 2 beta KL, as in the program for MotionSense, a KL weight 512 times "
        "larger",
    )


@register("general_vae", config=GeneralVAEConfig, recipes=recipes.GENERAL_VAE)
def general_vae(spec, config) -> Method:
    """Builds the general autoencoder for windows of ``spec``.

    One variational autoencoder is trained on all public classes. A window is anonymized
    by shifting a sample of its latent between class means: from the predicted to the
    target private class, within the predicted public class.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``GeneralVAEConfig``.

    Raises:
      ValueError: if a setting is out of range.

    Example:
      >>> from jaxanon.datasets import load
      >>> general_vae(load("smartwatch").spec).config.hidden_sizes
      (2048, 1024, 512, 256, 128)

    References:
      Hajihassani, Ardakanian, Khazaei, Latent Representation Learning and Manipulation
      for Privacy-Preserving Sensor Data Analytics, SenSys-ML 2020; Hajihassani,
      Ardakanian, Khazaei, Anonymizing Sensor Data on the Edge, 2021: section 4.1 and
      eq. 1 (loss), section 5.3 and Algorithm 1 (shift between means), sections 5.2 and
      6.3.1 (comparison).
    """
    config = sized(config, spec, GENERAL_VAE_SIZES)
    nets = networks(spec, config)
    # Mean error + 2 beta KL is (256 error + 512 beta KL) / 256; Adam ignores the 1/256.
    times = NUM_VALUES if config.variant == "keras" else 1
    variant = "paper" if config.variant == "keras" else config.variant
    weights = lambda hyper: (times * hyper["beta"], 0.0)
    design = Design(
        nets,
        (model_component(nets, ("encoder", "decoder"), weights, variant),),
        {"beta": config.beta},
        by_class=False,
    )
    return autoencoders("general_vae", spec, config, design)


CVAE_SIZES = {"mobi_act": (5, (512, 512, 256, 128)), "": (10, (512, 512, 256, 128))}


@dataclasses.dataclass(frozen=True, kw_only=True)
class CVAEConfig(AutoencoderConfig):
    """Settings of the CVAEs, as in the authors' program for MotionSense."""

    beta: float = setting(
        0.1, at_least=0, help="weight of the KL divergence (official c); MobiAct: 0.5"
    )
    variant: str = setting(
        "paper", choices=VARIANTS, help="loss in nats, or of the authors' programs"
    )


@register("cvae", config=CVAEConfig, recipes=recipes.CVAE)
def cvae(spec, config) -> Method:
    """Builds conditional variational autoencoders for windows of ``spec``.

    This is ObscureNet without discriminators. The decoder of each public class's
    autoencoder is conditioned on the private classes, and only the KL divergence
    removes them from the latent.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``CVAEConfig``.

    Raises:
      ValueError: if a setting is out of range.

    Example:
      >>> from jaxanon.datasets import load
      >>> cvae(load("smartwatch").spec, latent_dim=5).config.latent_dim
      5

    References:
      Baseline of Hajihassani, Ardakanian, Khazaei, ObscureNet, IoTDI 2021 (the authors'
      programs). The loss is minus eq. 1 of their Anonymizing Sensor Data on the Edge,
      2021, section 4.1, with weight ``beta`` for its KL divergence and a decoder
      conditioned on the private classes.
    """
    config = sized(config, spec, CVAE_SIZES)
    nets = networks(spec, config, conditional=True)
    weights = lambda hyper: (hyper["beta"], 0.0)
    component = model_component(nets, ("encoder", "decoder"), weights, config.variant)
    return autoencoders(
        "cvae", spec, config, Design(nets, (component,), {"beta": config.beta})
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class CAEConfig(AutoencoderConfig):
    """Settings of the conditional autoencoders, which have no loss weights."""


@register("cae", config=CAEConfig, recipes=recipes.CAE)
def cae(spec, config) -> Method:
    """Builds conditional autoencoders for windows of ``spec``.

    The decoder of each public class's autoencoder is conditioned on the private
    classes. The latent is deterministic and trained with the squared error only.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``CAEConfig``.

    Raises:
      ValueError: if a setting is out of range.

    Example:
      >>> from jaxanon.datasets import load
      >>> cae(load("smartwatch").spec).config.latent_dim
      10

    References:
      Baseline of Hajihassani, Ardakanian, Khazaei, ObscureNet, IoTDI 2021 (the authors'
      programs). The loss is that of ``cvae`` without the KL divergence.
    """
    config = sized(config, spec, CVAE_SIZES)
    nets = networks(spec, config, conditional=True, random=False)
    weights = lambda hyper: (0.0, 0.0)
    component = model_component(nets, ("encoder", "decoder"), weights, "paper")
    return autoencoders("cae", spec, config, Design(nets, (component,), {}))
