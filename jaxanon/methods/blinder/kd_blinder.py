"""KD-Blinder: FedBlinder with BalanceFL's handling of missing and rare classes."""

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
    LocalProgram,
    averaged,
    build_system,
    classifier_phase,
)
from jaxanon.methods.blinder.fed_blinder import HYPER, FedBlinderConfig
from jaxanon.methods.common import recipes
from jaxanon.methods.common.client_batches import (
    balanced,
    batch_of,
    class_counts,
    in_turn,
)
from jaxanon.models import blinder as losses
from jaxanon.models.kd_blinder import (
    class_covariance_root,
    inheritance_loss,
    rarity,
    shift_latents,
)

INHERITING = ("temperature", "distillation", "smoothing")

CHUNK = 256  # Windows encoded at a time.


@dataclasses.dataclass(frozen=True, kw_only=True)
class KDBlinderConfig(FedBlinderConfig):
    """KD-Blinder's settings, with the additional defaults of BalanceFL's program.

    ``variant`` applies to the autoencoder's loss only.
    """

    temperature: float = setting(
        2.0, above=0, help="softmax temperature of the distillation"
    )
    distillation: float = setting(
        1.0, at_least=0, help="weight of the distillation in the discriminators' loss"
    )
    smoothing: float = setting(
        0.002,
        at_least=0,
        help="weight of the entropy over the client's private classes",
    )
    restricted: bool = setting(
        True, help="exclude absent classes from the discriminators' loss"
    )
    augmentation: float = setting(
        1.0, at_least=0, help="scale of the noise on latents of rare classes"
    )


@register("kd_blinder", config=KDBlinderConfig, recipes=recipes.KD_BLINDER)
def kd_blinder(spec, config) -> Method:
    """Builds KD-Blinder for windows of ``spec``.

    KD-Blinder changes FedBlinder's local training in two ways. For private classes that
    a client lacks, the discriminators distill the server's discriminators
    (``inheritance_loss``). The autoencoder trains on batches with equally frequent
    public classes, and latents of class c receive noise with probability
    1 - n_c / n_max. The noise has the within-class covariance of the latents under the
    server's parameters.

    A client's private attributes rarely vary; a person has one gender, for example. If
    a client has only one class of an attribute, cross-entropy restricted to present
    classes has no gradient and its discriminator does not train. The paper attributes
    KD-Blinder's leakage to this; ``restricted=False`` avoids it.

    Args:
      spec: ``jaxanon.datasets.Spec`` with at least one private attribute.
      **settings: fields of ``KDBlinderConfig``.

    Raises:
      ValueError: if a setting is out of range, or ``spec`` has no private attribute.

    Example:
      >>> from jaxanon.datasets import load
      >>> method = kd_blinder(load("smartwatch").spec, latent_dim=10)
      >>> method.name, method.config.temperature
      ('kd_blinder', 2.0)

    References:
      Yang and Ardakanian, Blinder, ACM TOSN 2023, section 7, baseline 4; Shuai et al.,
      BalanceFL: Addressing Class Imbalance in Long-tail Federated Learning, IPSN 2022.
    """
    system = build_system(spec, config)

    def program_fn(key, client):
        phases = (
            _discriminators(system, client),
            _autoencoder(system, client),
            classifier_phase(system, client.hyper),
        )
        return LocalProgram(_draws(system, key, client), phases)

    names = (*HYPER, *INHERITING, "augmentation")
    return averaged("kd_blinder", system, names, program_fn)


def _draws(system: BlinderSystem, key, client: Client):
    """Returns a function that draws the phases' plain and class-balanced batches."""
    spec, config, networks, _ = system
    data, mask = client.data, client.mask
    public, num_classes = data.labels[spec.public], spec.num_classes(spec.public)
    as_they_are = in_turn(key, mask, config.batch_size)
    even = balanced(public, mask, num_classes, config.batch_size)
    mean_of = lambda window: networks.encode(client.params, window[None])[0][0]
    means = jax.lax.map(mean_of, data.windows, batch_size=CHUNK)
    root = class_covariance_root(means, public, mask, num_classes)
    rare = rarity(class_counts(public, mask, num_classes))

    def draw_fn(key, step):
        plain_key, even_key, chance_key, spread_key, dropout_key = jax.random.split(
            key, 5
        )

        def draw(key, rows):
            row_key, noise_key = jax.random.split(key)
            index, real = rows(row_key, step)
            return batch_of(noise_key, spec, data, index, real, config.latent_dim)

        batch = draw(even_key, even)
        chosen = jax.random.bernoulli(chance_key, batch.public @ rare)
        spread = jax.random.normal(spread_key, batch.noise.shape) @ root.T
        shift = client.hyper["augmentation"] * jnp.where(chosen[:, None], spread, 0)
        return draw(plain_key, as_they_are), (batch, shift), (batch, dropout_key)

    return draw_fn


def _discriminators(system: BlinderSystem, client: Client) -> Phase:
    """Returns the discriminators' phase, which distills missing private classes."""
    spec, config, networks, _ = system
    present = [
        class_counts(client.data.labels[name], client.mask, spec.num_classes(name)) > 0
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
    """Returns the autoencoder's phase, with noise on latents of rare classes."""
    scale = system.scale(client.hyper)

    def loss_fn(params, drawn):
        batch, shift = drawn
        networks = shift_latents(system.networks, shift)
        graded = losses.vae_loss(networks, scale, official=system.official)
        return graded(params, batch)[0]

    return Phase(losses.VAE_GROUPS, loss_fn, client.hyper["learning_rate"])
