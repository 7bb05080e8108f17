"""Atlas: settings, builder and guarantee."""

import dataclasses
from typing import NamedTuple

import numpy as np

from jaxanon import federated
from jaxanon.core.method import Method
from jaxanon.federated import PoissonSampling, sampled_gaussian
from jaxanon.federated.private.atlas_noise import CLIPPINGS, READINGS, share_kept
from jaxanon.federated.private.atlas_rounds import (
    GUARANTEES,
    SCORES,
    check_public_scores,
)
from jaxanon.kernels.bounds import setting
from jaxanon.learners.learner import (
    STEP,
    learner,
    loss_of,
    network_of,
    rounds_of,
    steps_of,
)
from jaxanon.learners.private import PrivateConfig
from jaxanon.privacy import (
    SampledGaussian,
    epsilon_spent,
    noise_multiplier_for,
    warn_of_delta,
    warn_of_epsilon,
)
from jaxanon.privacy.guarantee import EXAMPLE, NOT_COVERED, lots_of

CLIENT = "any other data of a client in place of its own"

OF_ATLAS = (
    "personal layers and masks in the checkpoint, some of which have no noise",
    "clients' scores in the report, of models after local fine-tuning without noise",
)

LEAST_NOISE = 0.5  # Minimum noise multiplier for the accountant "pld".

OF_PUBLIC = "public_scores, which must not depend on private data"


class AtlasGuarantee(NamedTuple):
    """Guarantee of Atlas for an example or a client, including released scores.

    Without ``lots``, the guarantee hides a client among all possible data of that
    client. It has no amplification by sampling, because the server knows the
    participants, and assumes that the client participates in every round. Two updates
    may differ by twice the clip norm, so only half of each multiplier counts.
    """

    lots: PoissonSampling | None
    noise_multiplier: float  # z*, for all layers together
    score_multiplier: float | None  # for released scores of all layers together
    local_steps: int  # noisy steps per round; 1 for the guarantee of a client
    rounds: int  # rounds that the budget covers
    delta: float
    holds: bool = True  # if False, the guarantee is only a claim
    least_share: float | None = None  # minimum fraction of z* in a step of reading C
    public: bool = False  # whether scores are public settings

    rests_on = "noise_multiplier"
    rounds_per_epoch = 1
    setting = "max_rounds"

    @property
    def most_windows(self) -> int | None:
        """Maximum number of windows per client; None if not needed."""
        return None if self.lots is None else self.lots.max_examples

    def trained_with(self, state) -> "AtlasGuarantee":
        """Returns the guarantee of the noise and scores in a trained state."""
        hyper, least = state.hyper, state.own.least
        trained = {"noise_multiplier": float(hyper["noise_multiplier"])}
        if self.score_multiplier is not None:
            trained["score_multiplier"] = float(hyper["score_multiplier"])
        if least is not None:
            trained["least_share"] = float(np.min(least))
        return self._replace(**trained)

    def releases(self, rounds: int) -> dict[str, SampledGaussian]:
        """Returns the mechanisms of ``rounds`` >= 1 rounds, by kind of release."""
        kind = "updates" if self.lots is None else "gradients"
        steps = rounds * self.local_steps
        releases = {kind: self._release(self.noise_multiplier, steps)}
        if self.score_multiplier is not None:
            releases["scores"] = self._release(self.score_multiplier, rounds)
        return releases

    def epsilon(self, rounds: int, accountant: str = "pld") -> float:
        """Returns ε of the first ``rounds`` rounds.

        ``accountant`` is one of ``jaxanon.privacy.ACCOUNTANTS``.
        """
        if rounds == 0:
            return 0.0
        releases = self.releases(rounds).values()
        return epsilon_spent(releases, self.delta, accountant=accountant)

    def report(self, rounds: int, accountant: str = "pld") -> dict:
        """Returns the report of the guarantee after ``rounds`` rounds.

        ``parts`` has the ε of each release alone, if there are two. ``true`` applies to
        reading C. It has the minimum noise multiplier of a client's steps, given their
        scores, and the ε of all steps with it if the scores were ``known`` beforehand.
        That ε is None if it is too large to compute.
        """
        whole = self.lots is None
        sums = "each client's clipped update" if whole else "clipped sums over batches"
        return {
            "mechanism": f"Gaussian noise on {sums}",
            "released": "Everything that clients send",
            "neighbours": CLIENT if whole else f"{EXAMPLE} more or less",
            "sampling_probability": _sampling_probability(self.lots),
            "noise_multiplier": self.noise_multiplier,
            "steps": rounds * self.local_steps,
            "noisy": "updates" if whole else "steps",
            "delta": self.delta,
            "epsilon": self.epsilon(rounds, accountant),
            "accountant": accountant,
            "holds": self.holds,
            "parts": self._parts(rounds, accountant),
            "true": self._true(rounds),
            "not_covered": [*NOT_COVERED, *OF_ATLAS, *[OF_PUBLIC] * self.public],
        }

    def _release(self, multiplier, steps):
        if self.lots is not None:
            return sampled_gaussian(self.lots, multiplier, steps)
        return SampledGaussian(noise_multiplier=multiplier / 2, steps=steps)

    def _true(self, rounds):
        if self.holds or self.least_share is None or rounds == 0:
            return None
        multiplier = self.least_share * self.noise_multiplier
        releases = self._replace(noise_multiplier=multiplier).releases(rounds).values()
        # With less noise, "pld" takes minutes and ε is too large to be useful.
        accountant = "pld" if multiplier >= LEAST_NOISE else "rdp"
        try:
            spent = epsilon_spent(releases, self.delta, accountant=accountant)
        except ValueError:  # "rdp" does not support every sampling.
            spent = None
        return {
            "noise_multiplier": multiplier,
            "epsilon": spent,
            "accountant": accountant,
            "known": self.public,
        }

    def _parts(self, rounds, accountant):
        if rounds == 0 or self.score_multiplier is None:
            return []
        releases = self.releases(rounds).items()
        multipliers = (self.noise_multiplier, self.score_multiplier)
        return [
            {
                "what": what,
                "noise_multiplier": multiplier,
                "steps": release.steps,
                "epsilon": epsilon_spent([release], self.delta, accountant=accountant),
            }
            for (what, release), multiplier in zip(releases, multipliers, strict=True)
        ]


def _sampling_probability(lots):
    return 1.0 if lots is None else lots.sampling_probability


def of_atlas(config, num_clients: int) -> AtlasGuarantee | None:
    """Returns the guarantee for a config's ε, δ and rounds; None if ε is 0.

    Args:
      config: ``AtlasConfig``.
      num_clients: public total number of clients.

    Example:
      >>> from jaxanon.learners.atlas import AtlasConfig
      >>> config = AtlasConfig(privacy_unit="client", epsilon=4.0, max_rounds=2)
      >>> guarantee = of_atlas(config, 100)
      >>> 3.9 < guarantee.epsilon(2) <= 4.0, round(guarantee.noise_multiplier, 1)
      (True, 3.1)
    """
    hidden, released = config.scores == "hidden", config.scores == "released"
    # All readings agree if the noise does not depend on scores.
    holds = config.scores != "published" and (
        hidden or config.noise_interpretation != "C"
    )
    if config.epsilon == 0:
        return None
    warn_of_epsilon(config.epsilon)
    if config.privacy_unit == "client":
        warn_of_delta(config.delta, num_clients)
        z, score_z = _multipliers(config, config.max_rounds, released)
        score_z = None if score_z is None else 2 * score_z
        counts = (1, config.max_rounds, config.delta)
        rest = *counts, holds, _least_share(config), config.public_scores is not None
        return AtlasGuarantee(None, 2 * z, score_z, *rest)
    lots = lots_of(config)
    mechanism = sampled_gaussian(lots, 1.0, config.max_rounds * config.local_steps)
    z, score_z = _multipliers(
        config,
        mechanism.steps,
        released,
        sampling_probability=lots.sampling_probability,
        max_batch_size=mechanism.max_batch_size,
        max_examples=mechanism.max_examples,
    )
    counts = (config.local_steps, config.max_rounds, config.delta)
    rest = *counts, holds, _least_share(config), config.public_scores is not None
    return AtlasGuarantee(lots, z, score_z, *rest)


def _least_share(config):
    """Returns the fraction of z* that reading C adds, given public scores."""
    if config.noise_interpretation != "C" or config.public_scores is None:
        return None
    return float(share_kept(config.public_scores))


def _multipliers(config, steps, released, **each):
    """Returns the noise multipliers of ``steps`` sums and of released scores."""
    budget, others, score_z = (config.epsilon, config.delta), [], None
    if released:
        scores = {"steps": config.max_rounds, **each}
        score_epsilon = config.score_fraction * config.epsilon
        score_z = noise_multiplier_for(score_epsilon, config.delta, **scores)
        others = [SampledGaussian(noise_multiplier=score_z, **scores)]
    z = noise_multiplier_for(*budget, steps=steps, other_releases=others, **each)
    return z, score_z


def atlas(spec, config) -> Method:
    """Builds Atlas; see ``jaxanon.federated.private.atlas``."""
    guarantee = of_atlas(config, spec.num_classes("subject"))
    network = network_of(spec, config)
    algorithm = federated.atlas(
        network.init,
        loss_of(network, spec),
        steps=steps_of(config),
        num_clients=spec.num_classes("subject"),
        lots=None if guarantee is None else guarantee.lots,
        privacy_unit="example" if guarantee is None else config.privacy_unit,
        noise_interpretation=config.noise_interpretation,
        clipping=config.clipping,
        scores=config.scores,
        public_scores=_public_scores(config, network),
        send_every_layer=config.send_every_layer,
        max_layers=config.max_layers,
        send_slots=config.send_slots or None,
        finetune_steps=steps_of(config, config.finetune_steps)
        if config.finetune_steps
        else None,
        **rounds_of(spec, config, "clients"),
    )
    names = (*STEP, "mask_learning_rate", "threshold", "first_score", "clip_norm")
    names += ("finetune_learning_rate", "score_norm")
    noise = {"noise_multiplier": 0.0, "score_multiplier": 0.0}
    if guarantee is not None:
        noise["noise_multiplier"] = guarantee.noise_multiplier
        noise["score_multiplier"] = guarantee.score_multiplier or 0.0
    method = learner(
        "atlas",
        spec,
        config,
        algorithm,
        network,
        names,
        guarantee=guarantee,
        hyper_values=noise,
    )

    def init(key, **values):
        if guarantee is not None and "score_multiplier" in values:
            raise ValueError(
                "score_multiplier follows from epsilon, delta, max_rounds and "
                "score_fraction and cannot be a hyper-parameter; set those instead."
            )
        return method.init(key, **values)

    return method._replace(init=init)


def _public_scores(config, network):
    """Returns the public scores by layer; checks that every layer has one."""
    scores = config.public_scores
    if scores is not None and set(scores) != set(network.layers):
        raise ValueError(
            "public_scores must have one score for each of the layers "
            f"{list(network.layers)}, got {list(scores)}."
        )
    return scores


@dataclasses.dataclass(frozen=True, kw_only=True)
class AtlasConfig(PrivateConfig):
    """Settings of Atlas; jaxanon's own where the chapter gives none."""

    privacy_unit: str = setting(
        "example",
        choices=GUARANTEES,
        help="example: the noise hides one example of a client; client: it hides all "
        "data of a client",
    )
    noise_interpretation: str = setting(
        "rescaled",
        choices=READINGS,
        help="rescaled: noise per layer by scores, scaled so that the claimed ε "
        "holds; A, B, C: three readings of the published equations, of which C "
        "violates its claim",
    )
    clipping: str = setting(
        "even",
        choices=CLIPPINGS,
        help="clip norms of layers: even, or proportional to scores",
    )
    scores: str = setting(
        "privatised",
        choices=SCORES,
        help="privatised: from noisy gradients; released: with separate noise; "
        "hidden: send every layer (privacy_unit=client); public: use "
        "public_scores and learn no masks; published: from gradients before "
        "noise, without a guarantee",
    )
    public_scores: dict[str, float] | None = setting(
        None,
        help="score in (0, 1] of each layer by name (scores=public), independent of "
        "private data",
    )
    send_slots: int = setting(
        0,
        at_least=0,
        help="time slots per round; each layer is sent anonymously in a random slot; "
        "0: one message with all layers of a client",
    )
    score_fraction: float = setting(
        0.1, above=0, below=1, help="fraction of epsilon spent on released scores"
    )
    score_norm: float = setting(
        1.0, above=0, help="clip norm of released scores, for all layers together"
    )
    threshold: float = setting(
        0.5, above=0, below=1, help="τ, minimum score of a layer that is sent"
    )
    first_score: float = setting(0.6, above=0, below=1, help="initial score of layers")
    mask_learning_rate: float = setting(
        0.05, at_least=0, help="learning rate of the masks"
    )
    max_layers: int | None = setting(
        None, at_least=1, help="maximum number of layers to send; default: no limit"
    )
    send_every_layer: bool = setting(
        False, help="send all layers, to hide the selection"
    )
    finetune_learning_rate: float = setting(
        0.05, above=0, help="learning rate of a client's local fine-tuning"
    )
    finetune_steps: int = setting(
        20, at_least=0, help="steps of local fine-tuning, without noise and never sent"
    )

    def __post_init__(self):
        super().__post_init__()
        check_public_scores(self.scores, self.public_scores)
        if self.epsilon == 0 and self.scores in ("released", "hidden"):
            raise ValueError(
                f"epsilon must be > 0 for scores={self.scores!r}, which need noise, "
                "got 0.0; omit scores, or raise epsilon."
            )
        if self.first_score <= self.threshold:
            raise ValueError(
                f"first_score must be above the threshold {self.threshold}, got "
                f"{self.first_score!r}; raise it, so that initial weights are used."
            )
