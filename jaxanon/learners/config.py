"""Settings of federated learners."""

import dataclasses

from jaxanon.federated.atlas_gradients import CLIPPINGS, READINGS
from jaxanon.federated.atlas_rounds import GUARANTEES, SCORES, check_public_scores
from jaxanon.kernels.checks import one_of
from jaxanon.kernels.setting_checks import at_least, finite, of_kinds
from jaxanon.models.predictors import KINDS


@dataclasses.dataclass(frozen=True, kw_only=True)
class LearnerConfig:
    """What every learner has. An epoch is a round.

    Raises:
      ValueError: for a setting out of its range.
      TypeError: for a setting that should be a whole number, or any, and is none.
    """

    model: str = "cnn"
    """network: cnn, lstm or mlp; of images resnet32 or vgg16, too"""
    hidden: tuple[int, ...] = (64,)
    """widths of its dense layers before the last (not of resnet32 and vgg16); the Atlas
    chapter's lstm has two"""
    filters: tuple[int, ...] = (16, 32, 32)
    """filters of its convolutions (model=cnn)"""
    lstm_features: tuple[int, ...] = (32,) * 8
    """widths of its layers of LSTM (model=lstm)"""
    embedding: int = 16
    """numbers that stand for an event (of data whose windows hold events)"""
    local_steps: int = 10
    """steps of a client in a round"""
    batch: int = 16
    """windows of a step"""
    step_size: float = 0.05
    """step size of the clients' descent"""
    cohort: float = 1.0
    """share of the clients that take part in a round"""

    def __post_init__(self):
        of_kinds(self)
        one_of("model", self.model, KINDS)
        at_least(1, hidden=self.hidden, filters=self.filters, batch=self.batch)
        at_least(1, lstm_features=self.lstm_features, local_steps=self.local_steps)
        at_least(1, embedding=self.embedding)
        finite(zero=False, step_size=self.step_size, cohort=self.cohort)
        if self.cohort > 1:
            raise ValueError(f"cohort must be in (0, 1], got {self.cohort!r}.")
        used = {"cnn": "filters", "lstm": "lstm_features"}.get(self.model)
        if used and not getattr(self, used):
            raise ValueError(f"{used} must name a layer at least for {self.model}.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class FedProxConfig(LearnerConfig):
    """FedProx's settings."""

    mu: float = 0.1
    """weight of the squared way from the model that was sent"""

    def __post_init__(self):
        super().__post_init__()
        finite(zero=True, mu=self.mu)


@dataclasses.dataclass(frozen=True, kw_only=True)
class OwnLayersConfig(LearnerConfig):
    """Settings of FedPer and FedRep."""

    shared_layers: int = 4
    """so many layers, from the first on, are everybody's; the others stay"""

    def __post_init__(self):
        super().__post_init__()
        at_least(0, shared_layers=self.shared_layers)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DittoConfig(LearnerConfig):
    """Ditto's settings."""

    pull: float = 0.1
    """λ, weight of the squared distance of own models from what is shared"""

    def __post_init__(self):
        super().__post_init__()
        finite(zero=True, pull=self.pull)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScaffoldConfig(LearnerConfig):
    """SCAFFOLD's settings."""

    server_step_size: float = 1.0
    """how much of the mean move the server takes"""

    def __post_init__(self):
        super().__post_init__()
        finite(zero=False, server_step_size=self.server_step_size)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PFedMeConfig(LearnerConfig):
    """pFedMe's settings."""

    pull: float = 15.0
    """λ, how near own models are held to what is shared"""
    own_steps: int = 5
    """steps of the own model at each local step"""
    server_step_size: float = 0.005
    """η, of the copy of what is shared"""
    mix: float = 1.0
    """β, how much of the mean of the copies the server takes"""

    def __post_init__(self):
        super().__post_init__()
        at_least(1, own_steps=self.own_steps)
        finite(zero=True, pull=self.pull)
        finite(zero=False, server_step_size=self.server_step_size, mix=self.mix)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PerFedAvgConfig(LearnerConfig):
    """Per-FedAvg's settings."""

    adaptation_step_size: float = 0.05
    """α, of the step by which a client makes the model its own"""
    second_order: bool = True
    """differentiate through that step"""

    def __post_init__(self):
        super().__post_init__()
        finite(zero=True, adaptation_step_size=self.adaptation_step_size)


@dataclasses.dataclass(frozen=True, kw_only=True)
class BudgetConfig(LearnerConfig):
    """What learners have whose noise is bought from a budget."""

    epsilon: float = 2.0
    """ε that all rounds spend; 0: no noise, no guarantee"""
    delta: float = 1e-5
    """δ of the guarantee"""
    rounds: int = 50
    """rounds that ε pays for; training stops after them"""

    def __post_init__(self):
        super().__post_init__()
        finite(zero=True, epsilon=self.epsilon)
        finite(zero=False, delta=self.delta)
        at_least(1, rounds=self.rounds)
        if self.delta >= 1:
            raise ValueError(f"delta must be below 1, got {self.delta!r}.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrivateConfig(BudgetConfig):
    """Settings of learners whose clients' steps are noisy."""

    epsilon: float = 2.0
    """ε of an example of a client, against whoever sees what it sends; 0: no noise, no
    guarantee"""
    records: int = 512
    """windows that no client has more of, a public number"""
    max_norm: float = 1.0
    """clip norm of an example's gradient, or of a client's update"""

    def __post_init__(self):
        super().__post_init__()
        finite(zero=False, max_norm=self.max_norm)
        at_least(1, records=self.records)
        if self.batch > self.records:
            raise ValueError(
                f"batch must be at most records, {self.records}, got {self.batch!r}."
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class AtlasConfig(PrivateConfig):
    """Atlas's settings; what the chapter does not tell is ours."""

    guarantee: str = "example"
    """whom noise hides: an example of a client, or a client, whatever its data"""
    reading: str = "rescaled"
    """noise: rescaled, by scores and what is claimed holds; A, B, C: as its equations
    can be read, of which C breaks its claim"""
    clipping: str = "even"
    """clip norms of layers: even, or by scores"""
    scores: str = "privatised"
    """privatised: from noisy gradients; released: behind noise of their own; hidden:
    every layer is sent (guarantee=client); public: public_scores, and no masks are
    learned; published: from gradients before the noise, which guarantees nothing"""
    public_scores: dict[str, float] | None = None
    """score in (0, 1] of each layer by name (scores=public), of nobody's data here"""
    send_slots: int = 0
    """slots of a round, in one of which each layer is sent, at random, by itself and
    without a name; 0: all layers of a client in one message"""
    score_share: float = 0.1
    """share of epsilon that released scores would spend alone"""
    score_norm: float = 1.0
    """clip norm of released scores, of all layers together"""
    threshold: float = 0.5
    """τ, score from which on a layer is sent"""
    first_score: float = 0.6
    """score of every layer as training begins"""
    mask_step_size: float = 0.05
    """step size of the masks' descent"""
    most_layers: int | None = None
    """so many layers are sent at most; default: all that reach the threshold"""
    send_every_layer: bool = False
    """send all layers, so that nobody sees which are shared"""
    own_step_size: float = 0.05
    """step size of a client's last fit to its own windows"""
    own_steps: int = 20
    """steps without noise by which a client fits its model, which stays, to itself"""

    def __post_init__(self):
        super().__post_init__()
        one_of("reading", self.reading, READINGS)
        one_of("scores", self.scores, SCORES)
        check_public_scores(self.scores, self.public_scores)
        one_of("guarantee", self.guarantee, GUARANTEES)
        one_of("clipping", self.clipping, CLIPPINGS)
        finite(zero=False, score_norm=self.score_norm, score_share=self.score_share)
        if self.score_share >= 1:
            raise ValueError(f"score_share must be below 1, got {self.score_share!r}.")
        if self.epsilon == 0 and self.scores in ("released", "hidden"):
            raise ValueError(
                f"scores={self.scores!r} are hidden by noise, and with epsilon 0 there "
                "is none; leave scores out."
            )
        finite(zero=True, mask_step_size=self.mask_step_size)
        finite(zero=False, own_step_size=self.own_step_size)
        at_least(0, own_steps=self.own_steps, send_slots=self.send_slots)
        if self.most_layers is not None:
            at_least(1, most_layers=self.most_layers)
        for name in ("threshold", "first_score"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(
                    f"{name} must be in (0, 1), got {getattr(self, name)!r}."
                )
        if self.first_score <= self.threshold:
            raise ValueError(
                f"first_score must be above the threshold {self.threshold}, got "
                f"{self.first_score!r}: no weight would count as training begins."
            )
