"""Blinder's settings."""

import dataclasses

import optax

from jaxanon.kernels.checks import one_of
from jaxanon.kernels.setting_checks import at_least, finite, of_kinds
from jaxanon.methods.shown import ANONYMIZATIONS, check_flip
from jaxanon.models.layers import INITIALISATIONS

FORMS = ("paper", "released")
SERVER_OPTIMIZERS = {"adam": optax.adam, "sgd": optax.sgd}


@dataclasses.dataclass(frozen=True, kw_only=True)
class BlinderConfig:
    """Blinder's static settings; the paper's unless said otherwise.

    Hyper-parameters that a sweep may vary without compiling anew (``alpha``,
    ``beta``, ``gamma``, ``inner_step_size``, ``server_step_size``,
    ``adversary_step_size``, ``utility``, ``critic``) are defaults here and arrays in
    the state.

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
    """of the dense layers; released: the published program's, slower to learn"""
    form: str = "paper"
    """loss as in the paper's eq. 4, or as scaled by the released program"""
    support: int = 1
    """windows that a client adapts on, per round"""
    query: int = 15
    """windows that a client is graded on, per round"""
    fresh_batches: bool = True
    """draw windows anew for each round; no, as released: the same in each epoch"""
    inner_step_size: float = 1e-4
    """step size of a client's adaptation"""
    server_optimizer: str = "adam"
    """of the server; sgd: plain steps, as in the paper's Algorithm 1"""
    server_step_size: float = 1e-3
    """step size of the server"""
    adversary_step_size: float = 1e-3
    """step size of the server for the discriminators"""
    adversary_hidden: tuple[int, ...] = (128, 128)
    """widths of the discriminators' layers"""
    adversary_rounds: int = 0
    """rounds that discriminators and critics train on alone after each round"""
    discriminator_steps: int = 5
    """inner steps of the discriminators"""
    local_steps: int = 1
    """times that the inner loop is run"""
    averaging: float = 0.0
    """anonymize by a running mean of the parameters, of which a round leaves so much"""
    second_order: bool = True
    """differentiate through the inner steps; no is first-order MAML"""
    shadows: bool = True
    """train discriminators on shadow samples too"""
    cohort: float = 0.4
    """share of the clients in a cohort, which stays for an epoch"""
    per_class: int = 600
    """windows per class and client that SMOTE fills up to"""
    neighbours: int = 5
    """neighbours of SMOTE"""
    extra: int = 32
    """more windows per client and round for the public attribute's classifier"""
    guided: bool = False
    """also grade the windows that leave: beyond the paper, see models.guided"""
    utility: float = 20.0
    """guided: weight of the public attribute in the windows that leave"""
    critic: float = 20.0
    """guided: weight of a critic that looks for the private one in them"""
    anonymization: str = "stochastic"
    """stochastic: a random private class; deterministic: the one after the predicted;
    probabilistic: that one or the predicted"""
    flip: float = 0.5
    """probabilistic: how often it is the one after"""

    def __post_init__(self):
        of_kinds(self)
        at_least(1, latent=self.latent, hidden=self.hidden, filters=self.filters)
        at_least(
            1, adversary_hidden=self.adversary_hidden, local_steps=self.local_steps
        )
        at_least(1, support=self.support, query=self.query)
        at_least(1, per_class=self.per_class, neighbours=self.neighbours)
        at_least(0, adversary_rounds=self.adversary_rounds, extra=self.extra)
        at_least(0, discriminator_steps=self.discriminator_steps)
        if len(self.filters) not in (0, 2):
            raise ValueError(f"filters must be none or two, got {self.filters!r}.")
        names = "inner_step_size", "server_step_size", "cohort"
        finite(zero=False, **{name: getattr(self, name) for name in names})
        names = "alpha", "beta", "gamma", "utility", "critic", "adversary_step_size"
        finite(zero=True, **{name: getattr(self, name) for name in names})
        if not 0 <= self.averaging < 1:
            raise ValueError(f"averaging must be in [0, 1), got {self.averaging!r}.")
        if self.cohort > 1:
            raise ValueError(f"cohort must be in (0, 1], got {self.cohort!r}.")
        one_of("form", self.form, FORMS)
        one_of("server_optimizer", self.server_optimizer, SERVER_OPTIMIZERS)
        one_of("anonymization", self.anonymization, ANONYMIZATIONS)
        check_flip(self.flip)
        one_of("initialisation", self.initialisation, INITIALISATIONS)
