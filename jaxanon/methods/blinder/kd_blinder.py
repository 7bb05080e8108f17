"""KD-Blinder: FedBlinder with what BalanceFL does about missing and rare classes."""

import dataclasses

import jax
import jax.numpy as jnp

from jaxanon.core.method import Method
from jaxanon.core.registry import register
from jaxanon.kernels import Phase
from jaxanon.kernels.bounds import setting
from jaxanon.methods.blinder.averaged import (
    BlinderSystem,
    Client,
    Course,
    averaged,
    judging,
    system_of,
)
from jaxanon.methods.blinder.fed_blinder import HYPER, FedBlinderConfig
from jaxanon.methods.common.client_batches import (
    balanced,
    batch_of,
    class_counts,
    in_turn,
)
from jaxanon.models import blinder as losses
from jaxanon.models.kd_blinder import class_spread, inheritance_loss, rarity, shifted

INHERITING = ("temperature", "distillation", "smoothing")

CHUNK = 256  # Windows that are encoded at a time.


@dataclasses.dataclass(frozen=True, kw_only=True)
class KDBlinderConfig(FedBlinderConfig):
    """KD-Blinder's settings; its own are those of BalanceFL's program.

    ``variant`` is that of the autoencoder; the discriminators' loss has one alone.
    """

    temperature: float = setting(2.0, above=0, help="of the inherited softmax")
    distillation: float = setting(
        1.0, at_least=0, help="weight of that inheritance in the discriminators' loss"
    )
    smoothing: float = setting(
        0.002, at_least=0, help="weight of the entropy of the present private classes"
    )
    restricted: bool = setting(
        True, help="leave absent classes out of the discriminators' loss"
    )
    augmentation: float = setting(
        1.0, at_least=0, help="length of the noise on latents of rare classes"
    )


@register("kd_blinder", config=KDBlinderConfig)
def kd_blinder(spec, config) -> Method:
    """Builds KD-Blinder for windows of ``spec``.

    FedBlinder, where the discriminators inherit what they were sent of private classes
    that a client lacks (``inheritance_loss``), and encoder and decoder train on batches
    in which the client's public classes are equally frequent, with noise on the latents
    of rare ones: of the covariance that latents have within a public class, under the
    parameters that the client was sent, with probability 1 - n_c / n_max.

    A person has one gender: a client's private attributes hardly change. Where a client
    has one class of an attribute alone, cross-entropy over the classes present teaches
    its discriminator nothing, and the one it was sent stays as it is. The paper blames
    this for what KD-Blinder lets through; ``restricted=False`` is the way out.

    Args:
      spec: ``jaxanon.datasets.Spec`` with at least one private attribute.
      **settings: fields of ``KDBlinderConfig``.

    Returns:
      ``Method``.

    Raises:
      ValueError: if a setting is out of range, or nothing is private.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> method = kd_blinder(load("smartwatch").spec, latent_dim=10)
      >>> method.name, method.config.temperature
      ('kd_blinder', 2.0)

    References:
      Yang and Ardakanian, Blinder, ACM TOSN 2023, section 7, baseline 4; Shuai et al.,
      BalanceFL: Addressing Class Imbalance in Long-tail Federated Learning, IPSN 2022.
    """
    system = system_of(spec, config)

    def course_fn(key, client):
        phases = (
            _discriminators(system, client),
            _autoencoder(system, client),
            judging(system, client.hyper),
        )
        return Course(_draws(system, key, client), phases)

    names = (*HYPER, *INHERITING, "augmentation")
    return averaged("kd_blinder", system, names, course_fn)


def _draws(system: BlinderSystem, key, client: Client):
    """What each phase reads: windows as they are, and balanced ones for the others."""
    spec, config, networks, _ = system
    own, mask = client.own, client.mask
    public, num_classes = own.labels[spec.public], spec.num_classes(spec.public)
    as_they_are = in_turn(key, mask, config.batch_size)
    even = balanced(public, mask, num_classes, config.batch_size)
    mean_of = lambda window: networks.encode(client.params, window[None])[0][0]
    means = jax.lax.map(mean_of, own.windows, batch_size=CHUNK)
    root = class_spread(means, public, mask, num_classes)
    rare = rarity(class_counts(public, mask, num_classes))

    def draw_fn(key, step):
        plain_key, even_key, chance_key, spread_key, dropout_key = jax.random.split(
            key, 5
        )

        def draw(key, rows):
            row_key, noise_key = jax.random.split(key)
            index, real = rows(row_key, step)
            return batch_of(noise_key, spec, own, index, real, config.latent_dim)

        batch = draw(even_key, even)
        chosen = jax.random.bernoulli(chance_key, batch.public @ rare)
        spread = jax.random.normal(spread_key, batch.noise.shape) @ root.T
        shift = client.hyper["augmentation"] * jnp.where(chosen[:, None], spread, 0)
        return draw(plain_key, as_they_are), (batch, shift), (batch, dropout_key)

    return draw_fn


def _discriminators(system: BlinderSystem, client: Client) -> Phase:
    """Missing private classes are inherited from the discriminators that were sent."""
    spec, config, networks, _ = system
    present = [
        class_counts(client.own.labels[name], client.mask, spec.num_classes(name)) > 0
        for name in spec.private
    ]
    weights_of = {name: client.hyper[name] for name in INHERITING}

    def inputs_fn(params, batch):
        z, private, weights = losses.without_shadows(networks)(params, batch)
        return z, private, weights, networks.discriminate(client.params, z)

    def loss_fn(params, inputs):
        z, private, weights, taught = inputs
        each = zip(
            networks.discriminate(params, z), taught, private, present, strict=True
        )
        return sum(
            inheritance_loss(
                logits,
                teacher,
                targets,
                weights,
                has,
                restricted=config.restricted,
                **weights_of,
            )
            for logits, teacher, targets, has in each
        )

    learning_rate, steps = (
        client.hyper["discriminator_learning_rate"],
        config.discriminator_steps,
    )
    return Phase(("discriminators",), loss_fn, learning_rate, steps, inputs_fn)


def _autoencoder(system: BlinderSystem, client: Client) -> Phase:
    """Blinder's loss, with the latents of rare public classes spread."""
    scale = system.scale(client.hyper)

    def loss_fn(params, drawn):
        batch, shift = drawn
        networks = shifted(system.networks, shift)
        graded = losses.vae_loss(networks, scale, released=system.released)
        return graded(params, batch)[0]

    return Phase(losses.VAE_GROUPS, loss_fn, client.hyper["learning_rate"])
