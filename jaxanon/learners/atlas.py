"""The learner Atlas: its settings, its builder and its guarantee."""

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
    "layers and masks that clients keep are in the checkpoint, some without noise",
    "clients' scores in the report are of models after a last fit without noise",
)

LEAST_NOISE = 0.5  # That "pld" is asked of.

OF_PUBLIC = "the scores of public_scores are taken for public"


class AtlasGuarantee(NamedTuple):
    """As ``Guarantee``, of examples or of a client, and of scores released beside them.

    Without lots a client is hidden among all that it could have been: nothing is
    sampled, for the server knows who takes part, and two of its updates may be twice a
    clip norm apart, so that half of each multiplier counts. It is taken to take part in
    every round.
    """

    lots: PoissonSampling | None
    noise_multiplier: float  # z*, of all layers together
    score_multiplier: float | None  # of released scores, all layers' together
    local_steps: int  # noisy ones of a round; of a client one, what it sends
    rounds: int  # that were paid for
    delta: float
    holds: bool = True  # Else what is claimed.
    least_share: float | None = None  # of z*, that a step of reading C had
    public: bool = False  # whether scores were given, and are nobody's secret

    rests_on = "noise_multiplier"

    @property
    def most_windows(self) -> int | None:
        """Windows that no client may have more of, where they were counted on."""
        return None if self.lots is None else self.lots.max_examples

    def trained_with(self, state) -> "AtlasGuarantee":
        """The guarantee of the noise that a state's ``hyper`` has, and its scores."""
        hyper, least = state.hyper, state.own.least
        trained = {"noise_multiplier": float(hyper["noise_multiplier"])}
        if self.score_multiplier is not None:
            trained["score_multiplier"] = float(hyper["score_multiplier"])
        if least is not None:
            trained["least_share"] = float(np.min(least))
        return self._replace(**trained)

    def releases(self, rounds: int) -> dict[str, SampledGaussian]:
        """What leaves in so many rounds, >= 1, by what it is."""
        what = "updates" if self.lots is None else "gradients"
        steps = rounds * self.local_steps
        found = {what: self._release(self.noise_multiplier, steps)}
        if self.score_multiplier is not None:
            found["scores"] = self._release(self.score_multiplier, rounds)
        return found

    def epsilon(self, rounds: int, accountant: str = "pld") -> float:
        """ε of the first so many rounds, by one of ``jaxanon.privacy.ACCOUNTANTS``."""
        if rounds == 0:
            return 0.0
        releases = self.releases(rounds).values()
        return epsilon_spent(releases, self.delta, accountant=accountant)

    def report(self, rounds: int, accountant: str = "pld") -> dict:
        """What a report says of the guarantee after so many rounds.

        ``parts`` are what would be spent by each release alone, if there are two.
        ``true`` is of reading C: the least noise multiplier that a client's steps had,
        by their scores, and what all steps cost with it if the scores were ``known``
        beforehand; None where that is too much to be told.
        """
        whole = self.lots is None
        sums = "every client's clipped update" if whole else "clipped sums over lots"
        return {
            "mechanism": f"Gaussian noise on {sums}",
            "released": "Everything that clients send",
            "neighbours": CLIENT if whole else f"{EXAMPLE} more or less",
            "sampling_probability": _share(self.lots),
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
        # Of less noise the losses' distribution takes minutes, for an ε beyond all use.
        accountant = "pld" if multiplier >= LEAST_NOISE else "rdp"
        try:
            spent = epsilon_spent(releases, self.delta, accountant=accountant)
        except ValueError:  # Rényi's divergences cannot tell of all lots.
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
        found = self.releases(rounds).items()
        multipliers = (self.noise_multiplier, self.score_multiplier)
        return [
            {
                "what": what,
                "noise_multiplier": multiplier,
                "steps": release.steps,
                "epsilon": epsilon_spent([release], self.delta, accountant=accountant),
            }
            for (what, release), multiplier in zip(found, multipliers, strict=True)
        ]


def _share(lots):
    return 1.0 if lots is None else lots.sampling_probability


def of_atlas(config, num_clients: int) -> AtlasGuarantee | None:
    """The guarantee that a config's ε, δ and rounds ask for; None for an ε of 0.

    Args:
      config: ``AtlasConfig``.
      num_clients: of all of them, a public number.

    Example:
      >>> from jaxanon.learners.atlas import AtlasConfig
      >>> config = AtlasConfig(privacy_unit="client", epsilon=4.0, max_rounds=2)
      >>> found = of_atlas(config, 100)
      >>> 3.9 < found.epsilon(2) <= 4.0, round(found.noise_multiplier, 1)
      (True, 3.1)
    """
    hidden, released = config.scores == "hidden", config.scores == "released"
    # Noise that follows no score is the same in all readings.
    holds = config.scores != "published" and (
        hidden or config.noise_interpretation != "C"
    )
    if config.epsilon == 0:
        return None
    warn_of_epsilon(config.epsilon)
    if config.privacy_unit == "client":
        warn_of_delta(config.delta, num_clients)
        z, of_scores = _multipliers(config, config.max_rounds, released)
        of_scores = None if of_scores is None else 2 * of_scores
        counted = (1, config.max_rounds, config.delta)
        given = *counted, holds, _left(config), config.public_scores is not None
        return AtlasGuarantee(None, 2 * z, of_scores, *given)
    lots = lots_of(config)
    asked = sampled_gaussian(lots, 1.0, config.max_rounds * config.local_steps)
    z, of_scores = _multipliers(
        config,
        asked.steps,
        released,
        sampling_probability=lots.sampling_probability,
        max_batch_size=asked.max_batch_size,
        max_examples=asked.max_examples,
    )
    counted = (config.local_steps, config.max_rounds, config.delta)
    given = *counted, holds, _left(config), config.public_scores is not None
    return AtlasGuarantee(lots, z, of_scores, *given)


def _left(config):
    """What noise of reading C leaves of z*, where scores are known beforehand."""
    if config.noise_interpretation != "C" or config.public_scores is None:
        return None
    return float(share_kept(config.public_scores))


def _multipliers(config, steps, released, **each):
    """Of so many sums and, if they are released, of scores once a round."""
    budget, beside, of_scores = (config.epsilon, config.delta), [], None
    if released:
        scores = {"steps": config.max_rounds, **each}
        alone = config.score_fraction * config.epsilon
        of_scores = noise_multiplier_for(alone, config.delta, **scores)
        beside = [SampledGaussian(noise_multiplier=of_scores, **scores)]
    z = noise_multiplier_for(*budget, steps=steps, other_releases=beside, **each)
    return z, of_scores


def atlas(spec, config) -> Method:
    """Atlas; see ``jaxanon.federated.private.atlas``."""
    found = of_atlas(config, spec.num_classes("subject"))
    network = network_of(spec, config)
    algorithm = federated.atlas(
        network.init,
        loss_of(network, spec),
        steps_of(config),
        num_clients=spec.num_classes("subject"),
        lots=None if found is None else found.lots,
        privacy_unit="example" if found is None else config.privacy_unit,
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
        rounds=rounds_of(spec, config, "clients"),
    )
    names = (*STEP, "mask_learning_rate", "threshold", "first_score", "clip_norm")
    names += ("finetune_learning_rate", "score_norm")
    multiplier = 0.0 if found is None else found.noise_multiplier
    made = learner(
        "atlas",
        spec,
        config,
        algorithm,
        network,
        names,
        guarantee=found,
        hyper_values={
            "noise_multiplier": multiplier,
            "score_multiplier": getattr(found, "score_multiplier", None) or 0.0,
        },
    )

    def init(key, **values):
        if found is not None and "score_multiplier" in values:
            raise ValueError(
                "score_multiplier follows from epsilon, delta, max_rounds and "
                "score_fraction, "
                "and what is guaranteed from it; set those."
            )
        return made.init(key, **values)

    return made._replace(init=init)


def _public_scores(config, network):
    """Scores by name, of layers that there are."""
    given = config.public_scores
    if given is not None and set(given) != set(network.layers):
        raise ValueError(
            f"public_scores must be of the layers {list(network.layers)}, one of each, "
            f"got {list(given)}."
        )
    return given


@dataclasses.dataclass(frozen=True, kw_only=True)
class AtlasConfig(PrivateConfig):
    """Atlas's settings; what the chapter does not tell is ours."""

    privacy_unit: str = setting(
        "example",
        choices=GUARANTEES,
        help="whom noise hides: an example of a client, or a client, whatever its data",
    )
    noise_interpretation: str = setting(
        "rescaled",
        choices=READINGS,
        help="noise: rescaled, by scores and what is claimed holds; A, B, C: as its "
        "equations can be read, of which C breaks its claim",
    )
    clipping: str = setting(
        "even", choices=CLIPPINGS, help="clip norms of layers: even, or by scores"
    )
    scores: str = setting(
        "privatised",
        choices=SCORES,
        help="privatised: from noisy gradients; released: behind noise of their own; "
        "hidden: every layer is sent (privacy_unit=client); public: public_scores, no "
        "masks are learned; published: from gradients before the noise, which "
        "guarantees nothing",
    )
    public_scores: dict[str, float] | None = setting(
        None,
        help="score in (0, 1] of each layer by name (scores=public), of nobody's data "
        "here",
    )
    send_slots: int = setting(
        0,
        at_least=0,
        help="slots of a round, in one of which each layer is sent, at random, by "
        "itself and without a name; 0: all layers of a client in one message",
    )
    score_fraction: float = setting(
        0.1, above=0, below=1, help="share of epsilon spent on released scores alone"
    )
    score_norm: float = setting(
        1.0, above=0, help="clip norm of released scores, of all layers together"
    )
    threshold: float = setting(
        0.5, above=0, below=1, help="τ, least score that is sent"
    )
    first_score: float = setting(0.6, above=0, below=1, help="score of layers at first")
    mask_learning_rate: float = setting(0.05, at_least=0, help="step size of the masks")
    max_layers: int | None = setting(
        None, at_least=1, help="most layers that are sent; default: no bound"
    )
    send_every_layer: bool = setting(False, help="send all layers, to hide the choice")
    finetune_learning_rate: float = setting(
        0.05, above=0, help="step size of a client's last fit to its own windows"
    )
    finetune_steps: int = setting(
        20, at_least=0, help="noise-free steps of the own model"
    )

    def __post_init__(self):
        super().__post_init__()
        check_public_scores(self.scores, self.public_scores)
        if self.epsilon == 0 and self.scores in ("released", "hidden"):
            raise ValueError(
                f"scores={self.scores!r} are hidden by noise, and with epsilon 0 there "
                "is none; leave scores out."
            )
        if self.first_score <= self.threshold:
            raise ValueError(
                f"first_score must be above the threshold {self.threshold}, got "
                f"{self.first_score!r}: no weight would count as training begins."
            )
