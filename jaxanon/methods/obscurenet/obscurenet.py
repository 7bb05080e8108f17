"""ObscureNet: conditional autoencoders with adversarially trained latents."""

import dataclasses

from jaxanon.core.method import Method
from jaxanon.core.registry import register
from jaxanon.kernels.bounds import setting
from jaxanon.methods.common import recipes
from jaxanon.methods.common.alternating import Component
from jaxanon.methods.obscurenet.autoencoders import (
    AutoencoderConfig,
    Design,
    autoencoders,
    model_component,
    networks,
    sized,
)
from jaxanon.models.conditional_autoencoder import VARIANTS, classifier_loss

PUBLISHED = {
    "motion_sense": (10, (512, 256, 128)),
    "mobi_act": (5, (512, 512, 256, 128)),
    "": (10, (512, 512, 256, 128)),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ObscureNetConfig(AutoencoderConfig):
    """ObscureNet's settings, with the values of the authors' programs by default."""

    beta: float = setting(2.0, at_least=0, help="weight of the KL divergence, c")
    gamma: float = setting(
        15.0,
        at_least=0,
        help="weight of the discriminators' loss; official: 0.2 times 75 (see "
        "autoencoder_loss)",
    )
    variant: str = setting(
        "paper",
        choices=VARIANTS,
        help="loss in nats per window, or with the scale and discriminators of the "
        "authors' programs",
    )
    discriminator_steps: int = setting(
        20, at_least=1, help="discriminator steps per round, on the same latents"
    )
    discriminator_learning_rate: float = setting(
        1e-3, at_least=0, help="discriminator learning rate (Adam)"
    )
    discriminator_hidden_sizes: tuple[int, ...] = setting(
        (128,), at_least=1, help="hidden layer widths of the discriminators"
    )
    accumulate: bool = setting(
        False, help="sum discriminator gradients over steps; official: True"
    )


@register("obscurenet", config=ObscureNetConfig, recipes=recipes.OBSCURENET)
def obscurenet(spec, config) -> Method:
    """Builds ObscureNet for windows of ``spec``.

    Each public class has an autoencoder whose decoder is conditioned on the private
    classes. For each private attribute, a discriminator takes several steps per batch
    to infer it from the latent, and the autoencoder maximizes the discriminators' loss.
    A window is anonymized by decoding a sample of its latent under the target private
    class.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``ObscureNetConfig``.

    Raises:
      ValueError: if a setting is out of range.

    Example:
      >>> from jaxanon.datasets import load
      >>> method = obscurenet(load("smartwatch").spec, gamma=5.0)
      >>> method.name, method.config.latent_dim
      ('obscurenet', 10)

    References:
      Hajihassani, Ardakanian, Khazaei, ObscureNet: Learning Attribute-invariant Latent
      Representation for Anonymizing Sensor Data, IoTDI 2021 (the authors' programs);
      Yang and Ardakanian, Blinder, ACM TOSN 2023, section 7, baseline 2. The loss terms
      are those of Blinder's eqs. 2 to 4, section 4.2, without the public class.
    """
    config = sized(config, spec, PUBLISHED)
    nets = networks(
        spec,
        config,
        conditional=True,
        classifier_hidden_sizes=config.discriminator_hidden_sizes,
    )

    def latents(key, params, hyper, batch):
        del key, hyper
        return nets.draw(params, batch.windows, batch.noise)

    def discriminator_loss(key, params, hyper, batch, given):
        del key, hyper
        loss = classifier_loss(
            nets, params, given, batch.private, variant=config.variant
        )
        return loss, ({}, {})  # The model component reports this loss.

    discriminators = Component(
        ("readers",),
        discriminator_loss,
        steps=config.discriminator_steps,
        given_fn=latents,
        learning_rate="discriminator_learning_rate",
        accumulate=config.accumulate,
    )
    weights = lambda hyper: (hyper["beta"], -hyper["gamma"])
    model = model_component(nets, ("encoder", "decoder"), weights, config.variant)
    names = ("beta", "gamma", "discriminator_learning_rate")
    design = Design(
        nets,
        (discriminators, model),
        {name: getattr(config, name) for name in names},
    )
    return autoencoders("obscurenet", spec, config, design)
