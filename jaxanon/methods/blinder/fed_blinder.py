"""FedBlinder: Blinder's networks by federated averaging, with no meta-learning."""

import dataclasses

import jax

from jaxanon.core.method import Method
from jaxanon.kernels.checks import one_of
from jaxanon.kernels.setting_checks import at_least, configured, finite, of_kinds
from jaxanon.methods.blinder.averaged import Course, averaged, judging, system_of
from jaxanon.methods.blinder.blinder import FORMS
from jaxanon.methods.common.client_batches import batch_of, in_turn
from jaxanon.methods.common.target_class import ANONYMIZATIONS, check_flip
from jaxanon.models import blinder as losses
from jaxanon.models.layers import INITIALISATIONS

WEIGHTINGS = ("rows", "clients")

HYPER = ("alpha", "beta", "gamma", "step_size", "adversary_step_size")


@dataclasses.dataclass(frozen=True, kw_only=True)
class FedBlinderConfig:
    """FedBlinder's settings; what the paper does not tell is Blinder's.

    Numbers in them are defaults of hyper-parameters, arrays in the state that a sweep
    may vary without compiling anew; but for ``cohort`` and ``flip``.

    Raises:
      ValueError: for a setting out of its range.
      TypeError: for a setting that should be a whole number, or any, and is none.
    """

    latent: int = 25
    """size of the latent representation"""
    hidden: tuple[int, ...] = (512, 512, 256, 128)
    """widths of the encoder's dense layers; the decoder mirrors them"""
    filters: tuple[int, ...] = ()
    """filters of two convolutions before them, e.g. 16 32; none: all dense"""
    alpha: float = 0.9
    """weight of the squared error (not used by form=released)"""
    beta: float = 2.0
    """weight of the KL divergence"""
    gamma: float = 0.2
    """weight of the discriminators' loss"""
    initialisation: str = "lecun"
    """of the dense layers; released: Blinder's program's, slower to learn"""
    form: str = "paper"
    """loss as in the paper's eq. 4, or as scaled by Blinder's released program"""
    cohort: float = 0.4
    """share of the clients that train in a round"""
    weighting: str = "rows"
    """what clients weigh in the mean: rows, their windows; clients, all alike"""
    local_rounds: int = 5
    """times that a client trains on its windows in a round"""
    batch: int = 16
    """windows of a local step"""
    batches: int | None = None
    """local steps in each of those times; default: as many as hold all its windows"""
    step_size: float = 1e-3
    """step size of the clients' Adam"""
    adversary_step_size: float = 1e-3
    """step size of the clients' Adam for the discriminators"""
    adversary_hidden: tuple[int, ...] = (128, 128)
    """widths of the discriminators' layers"""
    discriminator_steps: int = 5
    """steps of the discriminators before each of the autoencoder"""
    anonymization: str = "stochastic"
    """stochastic: a random private class; deterministic: the one after the predicted;
    probabilistic: that one or the predicted"""
    flip: float = 0.5
    """probabilistic: how often it is the one after"""

    def __post_init__(self):
        of_kinds(self)
        at_least(1, latent=self.latent, hidden=self.hidden, filters=self.filters)
        at_least(1, local_rounds=self.local_rounds, batch=self.batch)
        at_least(1, adversary_hidden=self.adversary_hidden)
        at_least(0, discriminator_steps=self.discriminator_steps)
        if self.batches is not None:
            at_least(1, batches=self.batches)
        if len(self.filters) not in (0, 2):
            raise ValueError(f"filters must be none or two, got {self.filters!r}.")
        finite(zero=False, step_size=self.step_size)
        finite(zero=True, adversary_step_size=self.adversary_step_size)
        finite(zero=True, alpha=self.alpha, beta=self.beta, gamma=self.gamma)
        finite(zero=False, cohort=self.cohort)
        if self.cohort > 1:
            raise ValueError(f"cohort must be in (0, 1], got {self.cohort!r}.")
        one_of("form", self.form, FORMS)
        one_of("weighting", self.weighting, WEIGHTINGS)
        one_of("initialisation", self.initialisation, INITIALISATIONS)
        one_of("anonymization", self.anonymization, ANONYMIZATIONS)
        check_flip(self.flip)


def fed_blinder(spec, *, layout=None, **settings) -> Method:
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
      layout: ``jaxanon.federated.Layout`` of a cohort; changes no result.
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
    config = configured(FedBlinderConfig, settings)
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
        adversary = adversary._replace(step_size=client.hyper["adversary_step_size"])
        judge = judging(system, client.hyper)
        return Course(draw_fn, (adversary, autoencoder, judge))

    return averaged("fed_blinder", system, HYPER, course_fn, layout)
