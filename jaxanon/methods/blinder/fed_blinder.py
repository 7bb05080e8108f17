"""FedBlinder: Blinder's networks trained by federated averaging."""

import dataclasses

import jax

from jaxanon.core.method import Method
from jaxanon.core.registry import register
from jaxanon.kernels.bounds import check, setting
from jaxanon.methods.blinder.averaged import (
    LocalProgram,
    averaged,
    build_system,
    classifier_phase,
)
from jaxanon.methods.blinder.blinder import VARIANTS
from jaxanon.methods.common import recipes
from jaxanon.methods.common.client_batches import batch_of, in_turn
from jaxanon.methods.common.target_class import ANONYMIZATIONS
from jaxanon.models import blinder as losses
from jaxanon.models.layers import INITIALIZATIONS

WEIGHTINGS = ("rows", "clients")

HYPER = ("alpha", "beta", "gamma", "learning_rate", "discriminator_learning_rate")


@dataclasses.dataclass(frozen=True, kw_only=True)
class FedBlinderConfig:
    """FedBlinder's settings, with Blinder's values where the paper gives none.

    Loss weights and learning rates are hyper-parameters: the state stores them as
    arrays, so sweeps do not recompile.
    """

    latent_dim: int = setting(25, at_least=1, help="size of the latent representation")
    hidden_sizes: tuple[int, ...] = setting(
        (512, 512, 256, 128),
        at_least=1,
        help="encoder layer widths; the decoder mirrors them",
    )
    filters: tuple[int, ...] = setting(
        (), at_least=1, lengths=(0, 2), help="filters of two optional convolutions"
    )
    alpha: float = setting(
        0.9,
        at_least=0,
        help="weight of the squared error; unused with variant=official",
    )
    beta: float = setting(2.0, at_least=0, help="weight of the KL divergence")
    gamma: float = setting(0.2, at_least=0, help="weight of the discriminators' loss")
    initialization: str = setting(
        "lecun",
        choices=INITIALIZATIONS,
        help="initialization of the dense layers; official: as in the authors' "
        "program, slower to train",
    )
    variant: str = setting(
        "paper", choices=VARIANTS, help="loss of eq. 4, or of the authors' program"
    )
    client_fraction: float = setting(
        0.4, above=0, at_most=1, help="fraction of clients per round"
    )
    weighting: str = setting(
        "rows",
        choices=WEIGHTINGS,
        help="weight of a client in the mean: rows: its window count; clients: equal",
    )
    local_rounds: int = setting(
        5, at_least=1, help="local passes over a client's windows per round"
    )
    batch_size: int = setting(16, at_least=1, help="windows per local step")
    batches: int | None = setting(
        None, at_least=1, help="local steps per pass; default: all windows once"
    )
    learning_rate: float = setting(1e-3, above=0, help="client learning rate (Adam)")
    discriminator_learning_rate: float = setting(
        1e-3, at_least=0, help="client learning rate of the discriminators (Adam)"
    )
    discriminator_hidden_sizes: tuple[int, ...] = setting(
        (128, 128), at_least=1, help="hidden layer widths of the discriminators"
    )
    discriminator_steps: int = setting(
        5, at_least=0, help="discriminator steps before each autoencoder step"
    )
    anonymization: str = setting(
        "stochastic",
        choices=ANONYMIZATIONS,
        help="target private class: stochastic: random; deterministic: the class after "
        "the predicted one; probabilistic: that class or the predicted one",
    )
    flip_probability: float = setting(
        0.5, at_least=0, at_most=1, help="probabilistic: probability of the class after"
    )

    __post_init__ = check


@register("fed_blinder", config=FedBlinderConfig, recipes=recipes.FED_BLINDER)
def fed_blinder(spec, config) -> Method:
    """Builds FedBlinder for windows of ``spec``.

    FedBlinder trains Blinder's networks by federated averaging, without meta-learning,
    resampling or shadow samples. In each round, which is also an epoch, a cohort trains
    the current parameters for ``local_rounds`` passes, and the server averages the
    results. In each local step, the discriminators take several steps to infer the
    private classes from fixed latents; then the autoencoder takes one step against
    them. Classifiers and anonymization are the same as Blinder's.

    Args:
      spec: ``jaxanon.datasets.Spec`` with at least one private attribute.
      **settings: fields of ``FedBlinderConfig``.

    Raises:
      ValueError: if a setting is out of range, or ``spec`` has no private attribute.

    Example:
      >>> from jaxanon.datasets import load
      >>> method = fed_blinder(load("smartwatch").spec, latent_dim=10)
      >>> method.name, method.config.local_rounds
      ('fed_blinder', 5)

    References:
      Yang and Ardakanian, Blinder, ACM TOSN 2023, section 7, baseline 3; McMahan et
      al., Communication-efficient learning of deep networks from decentralized data,
      AISTATS 2017.
    """
    return build(spec, config)


def build(spec, config, layout=None) -> Method:
    """Builds FedBlinder with a ``federated.Layout``, which changes no result."""
    system = build_system(spec, config)

    def program_fn(key, client):
        rows = in_turn(key, client.mask, config.batch_size)

        def draw_fn(key, step):
            row_key, noise_key, dropout_key = jax.random.split(key, 3)
            index, real = rows(row_key, step)
            batch = batch_of(
                noise_key, spec, client.data, index, real, config.latent_dim
            )
            return batch, batch, (batch, dropout_key)

        discriminators, autoencoder = losses.phases(
            system.networks,
            system.scale(client.hyper),
            client.hyper["learning_rate"],
            discriminator_steps=config.discriminator_steps,
            shadows=False,
            official=system.official,
        )
        discriminators = discriminators._replace(
            learning_rate=client.hyper["discriminator_learning_rate"]
        )
        classifiers = classifier_phase(system, client.hyper)
        return LocalProgram(draw_fn, (discriminators, autoencoder, classifiers))

    return averaged("fed_blinder", system, HYPER, program_fn, layout)
