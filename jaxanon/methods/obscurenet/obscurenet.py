"""ObscureNet: conditional autoencoders whose latent an adversary reads in vain."""

import dataclasses

from jaxanon.core.method import Method
from jaxanon.core.registry import register
from jaxanon.kernels.bounds import setting
from jaxanon.methods.common.alternating import Component
from jaxanon.methods.obscurenet.autoencoders import (
    AutoencoderConfig,
    Design,
    autoencoders,
    model_player,
    networks,
    sized,
)
from jaxanon.models.conditional_autoencoder import VARIANTS, reader_loss

PUBLISHED = {
    "motion_sense": (10, (512, 256, 128)),
    "mobi_act": (5, (512, 512, 256, 128)),
    "": (10, (512, 512, 256, 128)),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ObscureNetConfig(AutoencoderConfig):
    """ObscureNet's settings; those of the released programs unless said otherwise."""

    beta: float = setting(2.0, at_least=0, help="weight of the KL divergence, c")
    gamma: float = setting(
        15.0,
        at_least=0,
        help="weight of the adversary's loss; released: 0.2, times 75 (see "
        "rewriter_loss)",
    )
    variant: str = setting(
        "paper",
        choices=VARIANTS,
        help="loss in nats per window, or as scaled and judged by the released "
        "programs",
    )
    discriminator_steps: int = setting(
        20, at_least=1, help="steps of the adversary per round, on the same latents"
    )
    discriminator_learning_rate: float = setting(
        1e-3, at_least=0, help="step size of its Adam"
    )
    discriminator_hidden_sizes: tuple[int, ...] = setting(
        (128,), at_least=1, help="widths of its hidden layers"
    )
    accumulate: bool = setting(False, help="released: gradients add up over steps")


@register("obscurenet", config=ObscureNetConfig)
def obscurenet(spec, config) -> Method:
    """Builds ObscureNet for windows of ``spec``.

    For each public class there is an autoencoder whose decoder is told the private
    classes and whose encoder is to leave them out: for each private attribute an
    adversary learns, several steps per batch, to read it from the latent, and the
    autoencoder is graded by how badly that goes. A window is anonymized by decoding a
    sample of its latent under a private class that is not the wearer's, or any.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``ObscureNetConfig``.

    Returns:
      ``Method``.

    Raises:
      ValueError: if a setting is out of range.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> method = obscurenet(load("smartwatch").spec, gamma=5.0)
      >>> method.name, method.config.latent_dim
      ('obscurenet', 10)

    References:
      Hajihassani, Ardakanian, Khazaei, ObscureNet: Learning Attribute-invariant Latent
      Representation for Anonymizing Sensor Data, IoTDI 2021 (the released programs);
      Yang and Ardakanian, Blinder, ACM TOSN 2023, section 7, baseline 2, which tells it
      from Blinder; the terms of the loss are those of Blinder's eqs. 2 to 4, section
      4.2, without the public class.
    """
    config = sized(config, spec, PUBLISHED)
    nets = networks(
        spec,
        config,
        told=True,
        classifier_hidden_sizes=config.discriminator_hidden_sizes,
    )

    def latents(key, params, hyper, batch):
        del key, hyper
        return nets.draw(params, batch.windows, batch.noise)

    def adversary_loss(key, params, hyper, batch, given):
        del key, hyper
        loss = reader_loss(nets, params, given, batch.private, variant=config.variant)
        return loss, ({}, {})  # What it comes to is told by the player that follows.

    adversary = Component(
        ("readers",),
        adversary_loss,
        steps=config.discriminator_steps,
        given_fn=latents,
        learning_rate="discriminator_learning_rate",
        accumulate=config.accumulate,
    )
    weights = lambda hyper: (hyper["beta"], -hyper["gamma"])
    model = model_player(nets, ("encoder", "decoder"), weights, config.variant)
    names = ("beta", "gamma", "discriminator_learning_rate")
    design = Design(
        nets,
        (adversary, model),
        {name: getattr(config, name) for name in names},
    )
    return autoencoders("obscurenet", spec, config, design)
