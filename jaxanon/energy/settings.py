"""Flat settings of a run on homes, and their conversion to configs."""

import dataclasses

import jax

from jaxanon import federated
from jaxanon.energy.config import METHODS, PFDRLConfig
from jaxanon.energy.forecasting import KINDS, ForecastConfig
from jaxanon.energy.homes import Homes, device_names
from jaxanon.energy.mdp import OBSERVED
from jaxanon.energy.neighborhood import Neighborhood, build_neighborhood
from jaxanon.energy.q_learning import DQNConfig
from jaxanon.energy.saving import DAY, FIXED_CENTS
from jaxanon.federated import ChannelConfig
from jaxanon.kernels.bounds import check, setting
from jaxanon.models.predictors import HIDDEN

# Arrays of the state, which a sweep varies without recompilation.
HYPER = (
    "alpha",
    "beta_hours",
    "gamma_hours",
    "forecaster_learning_rate",
    "learning_rate",
)

HYPER += ("discount", "exploration_epsilon")

MAX_ENVS = 30  # Maximum number of environments per slot; each step uses all.

GRAPHS = ("full", "ring", "k-regular", "random")

_BROADCAST = (
    "drop_probability",
    "delay_probability",
    "graph",
    "degree",
)  # Only of "pfdrl".

_GRAPH_SEED = 1  # Separates the graph from the seed of the homes.


@dataclasses.dataclass(frozen=True, kw_only=True)
class PFDRLSettings:
    """Settings of agents that switch off standby; defaults are the values of chapter 2.

    Raises:
      TypeError: if a setting has the wrong type.
      ValueError: if a setting is out of range, ``slot_min`` does not divide a day, or a
        setting of broadcasts, their graph or their noise would have no effect.

    Example:
      >>> PFDRLSettings(sharing="frl").gamma_hours
      12.0
    """

    homes: int | None = setting(
        None, at_least=1, help="training homes; default: all, or 20 composed ones"
    )
    devices: int | None = setting(
        None,
        at_least=1,
        help="kinds of devices per home; default: all, or 6 of composed homes",
    )
    kinds: str | None = setting(None, help="names of devices, separated by commas")
    days: int = setting(24, at_least=1, help="training days")
    test_days: int = setting(6, at_least=1, help="test days, after the training days")
    joining: int = setting(
        0, at_least=0, help="additional homes that join after training"
    )
    homes_seed: int = setting(
        0, at_least=0, help="seed of composed or simulated homes and of random graphs"
    )
    sharing: str = setting(
        "pfdrl",
        choices=METHODS,
        help="method of Figure 2.3 by which homes share models",
    )
    alpha: int = setting(
        6, at_least=0, help="layers of the Q-network that pfdrl shares"
    )
    beta_hours: float = setting(12.0, above=0, help="hours between shared forecasters")
    gamma_hours: float = setting(12.0, above=0, help="hours between shared Q-networks")
    forecaster: str = setting("lstm", choices=KINDS, help="kind of forecaster")
    graph: str = setting(
        "full",
        choices=GRAPHS,
        help="communication graph of homes: full, ring, k-regular or random; only "
        "devices of one kind communicate, so a device may have no neighbor",
    )
    degree: int = setting(4, at_least=1, help="neighbors per home (graph=k-regular)")
    probability: float = setting(
        0.5, at_least=0, at_most=1, help="edge probability (graph=random)"
    )
    drop_probability: float = setting(
        0.0, at_least=0, at_most=1, help="probability of a lost message"
    )
    delay_probability: float = setting(
        0.0, at_least=0, at_most=1, help="probability of a delayed message"
    )
    max_age: int = setting(
        1,
        at_least=0,
        help="maximum age of a message, in broadcasts, that replaces a lost or delayed "
        "one; 0: none, which requires delay_probability 0",
    )
    noise_multiplier: float = setting(
        0.0, at_least=0, help="noise multiplier of broadcasts of pfdrl; 0: no privacy"
    )
    clip_norm: float = setting(
        1.0, above=0, help="clip norm of changes between noisy broadcasts"
    )
    cents: float = setting(
        FIXED_CENTS, at_least=0, help="cents per kWh at the fixed tariff"
    )
    hidden_sizes: tuple[int, ...] = setting(
        HIDDEN, at_least=1, help="widths of the Q-network"
    )
    observed: str = setting("power", choices=OBSERVED, help="observation of an agent")
    slot_min: int = setting(
        60, at_least=1, help="minutes per slot; models train after each slot"
    )
    forecaster_steps: int = setting(
        1, at_least=1, help="training steps of a forecaster per slot"
    )
    forecaster_batch_size: int = setting(
        32, at_least=1, help="windows per training step of a forecaster"
    )
    lookback: int = setting(
        120, at_least=1, help="minutes of input of a forecaster, averaged over 5"
    )
    forecaster_learning_rate: float = setting(
        1e-2, above=0, help="learning rate of the forecasters"
    )
    learning_rate: float = setting(1e-3, above=0, help="learning rate of the Q-network")
    discount: float = setting(
        0.9, at_least=0, at_most=1, help="discount of future rewards"
    )
    exploration_epsilon: float = setting(
        0.1,
        at_least=0,
        at_most=1,
        help="probability of a random action during training",
    )
    batch_size: int = setting(32, at_least=1, help="transitions per training step")
    capacity: int = setting(
        2000, at_least=1, help="transitions in the replay memory of an agent"
    )
    target_update_interval: int = setting(
        100, at_least=1, help="training steps between updates of the target network"
    )
    double_dqn: bool = setting(False, help="whether to use double Q-learning")

    def __post_init__(self):
        check(self)
        _check_together(self)
        _check_idle(self)
        build_config(self)


def _check_together(settings):
    """Raises ValueError for settings that contradict each other."""
    layers = len(settings.hidden_sizes) + 1
    if settings.sharing == "pfdrl" and settings.alpha > layers:
        raise ValueError(
            f"alpha must be in [0, {layers}], the number of Q-network layers, got "
            f"{settings.alpha!r}."
        )
    if DAY % settings.slot_min:
        raise ValueError(
            f"slot_min must divide {DAY}, the minutes per day, got "
            f"{settings.slot_min!r}."
        )
    for name in ("beta_hours", "gamma_hours"):
        if getattr(settings, name) * 60 < settings.slot_min:
            raise ValueError(
                f"{name} must be at least one slot ({settings.slot_min} minutes), got "
                f"{getattr(settings, name)!r} hours; choose a smaller slot_min."
            )


def _check_idle(settings):
    """Raises ValueError for settings without effect."""
    default = lambda name: type(settings).__dataclass_fields__[name].default
    changed = lambda name: getattr(settings, name) != default(name)
    if settings.sharing != "pfdrl":
        # Older runs have an age of 0, their default.
        names = [name for name in _BROADCAST if changed(name)]
        names += ["max_age"] if settings.max_age > default("max_age") else []
        for name in names:
            raise ValueError(
                f"{name} must be unset for sharing {settings.sharing!r}, which has no "
                f"broadcasts, got {getattr(settings, name)!r}; use sharing 'pfdrl'."
            )
    for name, graph in (("degree", "k-regular"), ("probability", "random")):
        if changed(name) and settings.graph != graph:
            raise ValueError(
                f"{name} must be unset for graph {settings.graph!r}, got "
                f"{getattr(settings, name)!r}; use graph {graph!r}."
            )
    if changed("clip_norm") and not settings.noise_multiplier:
        raise ValueError(
            f"clip_norm must be unset if noise_multiplier is 0, got "
            f"{settings.clip_norm!r}; set noise_multiplier."
        )


def build_config(settings: PFDRLSettings) -> PFDRLConfig:
    """Returns the static config of the compiled system.

    Args:
      settings: ``PFDRLSettings``.

    Raises:
      ValueError: if ``PFDRLConfig`` or its components reject a setting.

    Example:
      >>> build_config(PFDRLSettings(forecaster="lr")).forecast.kind
      'lr'
    """
    num_envs = max(n for n in range(1, MAX_ENVS + 1) if settings.slot_min % n == 0)
    # A reliable channel needs no earlier messages.
    unreliable = settings.drop_probability or settings.delay_probability
    return PFDRLConfig(
        method=settings.sharing,
        forecast=ForecastConfig(kind=settings.forecaster, lookback=settings.lookback),
        forecaster_steps=settings.forecaster_steps,
        forecaster_batch_size=settings.forecaster_batch_size,
        dqn=DQNConfig(
            capacity=settings.capacity,
            batch_size=settings.batch_size,
            target_update_interval=settings.target_update_interval,
            double_dqn=settings.double_dqn,
            num_envs=num_envs,
        ),
        hidden_sizes=settings.hidden_sizes,
        observed=settings.observed,
        slot_min=settings.slot_min,
        messages=ChannelConfig(
            drop_probability=settings.drop_probability,
            delay_probability=settings.delay_probability,
            max_age=settings.max_age if unreliable else 0,
        ),
        noise_multiplier=settings.noise_multiplier,
        clip_norm=settings.clip_norm,
    )


def build_hyper(settings: PFDRLSettings) -> dict[str, float]:
    """Returns the hyper-parameters for ``init`` of a system.

    Args:
      settings: ``PFDRLSettings``.

    Example:
      >>> build_hyper(PFDRLSettings(alpha=3))["alpha"]
      3
    """
    names = [name for name in HYPER if name != "alpha" or settings.sharing == "pfdrl"]
    return {name: getattr(settings, name) for name in names}


def neighborhood_from_settings(
    settings: PFDRLSettings, homes: Homes, *, complete: bool = False
) -> Neighborhood:
    """Builds the neighborhood of homes, with levels from the training days.

    Args:
      settings: ``PFDRLSettings``.
      homes: ``Homes``, with at least ``days`` days.
      complete: whether all homes communicate, whatever the graph in settings.

    Raises:
      ValueError: if ``build_neighborhood`` rejects the homes; the message names home
        and device. Also if the graph does not exist for this number of homes.

    Example:
      >>> from jaxanon.energy import load_homes
      >>> homes = load_homes("simulated", homes=3, devices=2, days=1, test_days=1)
      >>> neighborhood_from_settings(
      ...     PFDRLSettings(days=1, graph="ring"), homes
      ... ).power.shape
      (6, 2880)
    """
    return build_neighborhood(
        homes.power,
        homes.kinds,
        learn_minutes=settings.days * DAY,
        graph=None if complete else build_graph(settings, len(homes.names)),
        names=(homes.names, device_names(homes)),
    )


def build_graph(settings: PFDRLSettings, num_homes: int):
    """Returns the communication graph, ``bool[homes, homes]``.

    Args:
      settings: ``PFDRLSettings``.
      num_homes: number of homes, at least 1.

    Raises:
      ValueError: if the graph does not exist for this number of homes.

    Example:
      >>> int(build_graph(PFDRLSettings(graph="k-regular", degree=2), 5).sum())
      10
    """
    if settings.graph == "ring":
        return federated.ring_graph(num_homes)
    if settings.graph == "k-regular":
        return federated.k_regular_graph(num_homes, settings.degree)
    if settings.graph == "random":
        key = jax.random.fold_in(jax.random.key(settings.homes_seed), _GRAPH_SEED)
        return federated.random_graph(key, num_homes, settings.probability)
    return federated.complete_graph(num_homes)
