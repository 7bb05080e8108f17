"""FedBlinder: Blinder's networks by federated averaging, with no meta-learning."""

import dataclasses

import jax

from jaxanon.core.method import Method
from jaxanon.core.registry import register
from jaxanon.kernels.bounds import check, setting
from jaxanon.methods.blinder.averaged import Course, averaged, judging, system_of
from jaxanon.methods.blinder.blinder import FORMS
from jaxanon.methods.common.client_batches import batch_of, in_turn
from jaxanon.methods.common.target_class import ANONYMIZATIONS
from jaxanon.models import blinder as losses
from jaxanon.models.layers import INITIALISATIONS

WEIGHTINGS = ("rows", "clients")

HYPER = ("alpha", "beta", "gamma", "step_size", "adversary_step_size")


@dataclasses.dataclass(frozen=True, kw_only=True)
class FedBlinderConfig:
    """FedBlinder's settings; what the paper does not tell is Blinder's.

    Numbers in them are defaults of hyper-parameters, arrays in the state that a sweep
    may vary without compiling anew; but for ``cohort`` and ``flip``.
    """

    latent: int = setting(25, at_least=1, help="size of the latent representation")
    hidden: tuple[int, ...] = setting(
        (512, 512, 256, 128), at_least=1, help="encoder's widths; the decoder's mirror"
    )
    filters: tuple[int, ...] = setting(
        (), at_least=1, lengths=(0, 2), help="of two convolutions, if any"
    )
    alpha: float = setting(
        0.9, at_least=0, help="weight of the squared error (not used by form=released)"
    )
    beta: float = setting(2.0, at_least=0, help="weight of the KL divergence")
    gamma: float = setting(0.2, at_least=0, help="weight of the discriminators' loss")
    initialisation: str = setting(
        "lecun",
        choices=INITIALISATIONS,
        help="of the dense layers; released: Blinder's program's, slower to learn",
    )
    form: str = setting("paper", choices=FORMS, help="loss of eq. 4, or as released")
    cohort: float = setting(0.4, above=0, at_most=1, help="share of clients in a round")
    weighting: str = setting(
        "rows",
        choices=WEIGHTINGS,
        help="what clients weigh in the mean: rows, their windows; clients, all alike",
    )
    local_rounds: int = setting(
        5, at_least=1, help="times that a client trains on its windows in a round"
    )
    batch: int = setting(16, at_least=1, help="windows of a local step")
    batches: int | None = setting(
        None, at_least=1, help="local steps per round; default: all windows once"
    )
    step_size: float = setting(1e-3, above=0, help="step size of the clients' Adam")
    adversary_step_size: float = setting(
        1e-3, at_least=0, help="step size of the clients' Adam for the discriminators"
    )
    adversary_hidden: tuple[int, ...] = setting(
        (128, 128), at_least=1, help="widths of the discriminators' layers"
    )
    discriminator_steps: int = setting(
        5, at_least=0, help="steps of the discriminators before each of the autoencoder"
    )
    anonymization: str = setting(
        "stochastic",
        choices=ANONYMIZATIONS,
        help="stochastic: a random private class; deterministic: the one after the "
        "predicted; probabilistic: that one or the predicted",
    )
    flip: float = setting(
        0.5, at_least=0, at_most=1, help="probabilistic: how often it is the one after"
    )

    __post_init__ = check


@register("fed_blinder", config=FedBlinderConfig)
def fed_blinder(spec, config) -> Method:
    """Builds FedBlinder for windows of ``spec``.

    In every round, which is an epoch, a cohort of clients is sent the parameters; each
    trains them for five rounds on its own windows, and the mean of what they send back
    is the next model. At every step of a client its discriminators learn to read the
    private classes from fixed latents, several steps, and then encoder and decoder take
    a step against them: Blinder's alternation, on the windows as they are, with no
    resampling and no shadow samples. Classifiers, networks and anonymization are
    Blinder's too.

    Args:
      spec: ``jaxanon.datasets.Spec`` with at least one private attribute.
      **settings: fields of ``FedBlinderConfig``.

    Returns:
      ``Method``.

    Raises:
      ValueError: if a setting is out of range, or nothing is private.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> method = fed_blinder(load("smartwatch").spec, latent=10)
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
    system = system_of(spec, config)

    def course_fn(key, client):
        rows = in_turn(key, client.mask, config.batch)

        def draw_fn(key, step):
            row_key, noise_key, dropout_key = jax.random.split(key, 3)
            index, real = rows(row_key, step)
            batch = batch_of(noise_key, spec, client.own, index, real, config.latent)
            return batch, batch, (batch, dropout_key)

        adversary, autoencoder = losses.phases(
            system.networks,
            system.scale(client.hyper),
            client.hyper["step_size"],
            discriminator_steps=config.discriminator_steps,
            shadows=False,
            released=system.released,
        )
        adversary = adversary._replace(
            learning_rate=client.hyper["adversary_step_size"]
        )
        judge = judging(system, client.hyper)
        return Course(draw_fn, (adversary, autoencoder, judge))

    return averaged("fed_blinder", system, HYPER, course_fn, layout)
