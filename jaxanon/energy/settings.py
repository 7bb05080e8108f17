"""What a person sets of a street: one flat config, and what the parts take of it."""

import dataclasses

import jax

from jaxanon import federated
from jaxanon.energy.config import METHODS, PFDRLConfig
from jaxanon.energy.forecasting import KINDS, ForecastConfig
from jaxanon.energy.homes import Homes, device_names
from jaxanon.energy.mdp import OBSERVED
from jaxanon.energy.neighbourhood import Neighborhood, build_neighborhood
from jaxanon.energy.q_learning import DQNConfig
from jaxanon.energy.saving import DAY, FIXED_CENTS
from jaxanon.federated import ChannelConfig
from jaxanon.kernels.bounds import check, setting
from jaxanon.models.predictors import HIDDEN

# Arrays of the state, which a sweep varies without compiling anything anew.
HYPER = (
    "alpha",
    "beta_hours",
    "gamma_hours",
    "forecaster_learning_rate",
    "learning_rate",
)

HYPER += ("discount", "exploration_epsilon")

STRETCHES = 30  # Of a slot, side by side, at most; a learning step is of all.

GRAPHS = ("full", "ring", "k-regular", "random")

_BROADCAST = (
    "drop_probability",
    "delay_probability",
    "graph",
    "degree",
)  # Of "pfdrl" alone.

_GRAPH_SEED = 1  # Other draws than those of the run's own seed.


@dataclasses.dataclass(frozen=True, kw_only=True)
class PFDRLSettings:
    """Homes that learn to switch standby off; defaults are chapter 2's, where it gives
    a number.

    Raises:
      TypeError: for a setting of another type.
      ValueError: for a name that there is not, a number out of its range or not finite,
        slots that do not make up a day, or a setting of broadcasts, of their graph or
        of their noise that would do nothing.

    Example:
      >>> PFDRLSettings(sharing="frl").gamma_hours
      12.0
    """

    homes: int | None = setting(
        None, at_least=1, help="homes that learn; default: all, or 20 composed ones"
    )
    devices: int | None = setting(
        None, at_least=1, help="kinds of devices in a home; default: all, or 6 of 20"
    )
    kinds: str | None = setting(None, help="names of devices, separated by commas")
    days: int = setting(24, at_least=1, help="to learn from")
    test_days: int = setting(6, at_least=1, help="days after those, to be tested on")
    joining: int = setting(0, at_least=0, help="further homes, which join afterwards")
    homes_seed: int = setting(0, at_least=0, help="seed of made homes and graphs")
    sharing: str = setting(
        "pfdrl", choices=METHODS, help="what homes share, Figure 2.3"
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
        help="which homes hear each other: full, ring, k-regular or random; a device "
        "hears only those of its kind, and so nobody where no home that is heard has "
        "one",
    )
    degree: int = setting(4, at_least=1, help="homes that each hears (graph=k-regular)")
    probability: float = setting(
        0.5, at_least=0, at_most=1, help="that two homes of a random graph connect"
    )
    drop_probability: float = setting(
        0.0, at_least=0, at_most=1, help="probability of a lost message"
    )
    delay_probability: float = setting(
        0.0, at_least=0, at_most=1, help="probability of a late one"
    )
    max_age: int = setting(
        1,
        at_least=0,
        help="where messages are lost or late, broadcasts that a home goes on with the "
        "last one that it got; 0 is none, and then none may be late",
    )
    noise_multiplier: float = setting(
        0.0, at_least=0, help="of the noise on broadcasts of pfdrl; 0: no privacy"
    )
    clip_norm: float = setting(
        1.0, above=0, help="clip norm of a model's change, if noisy"
    )
    cents: float = setting(FIXED_CENTS, at_least=0, help="a kWh at the fixed tariff")
    hidden_sizes: tuple[int, ...] = setting(
        HIDDEN, at_least=1, help="widths of the Q-network"
    )
    observed: str = setting("power", choices=OBSERVED, help="what an agent sees")
    slot_min: int = setting(60, at_least=1, help="minutes after which models learn")
    forecaster_steps: int = setting(
        1, at_least=1, help="steps of a forecaster in a slot"
    )
    forecaster_batch_size: int = setting(32, at_least=1, help="windows of one of them")
    lookback: int = setting(120, at_least=1, help="minutes a forecaster sees, 5 by 5")
    forecaster_learning_rate: float = setting(
        1e-2, above=0, help="step size of the forecasters"
    )
    learning_rate: float = setting(1e-3, above=0, help="of the Q-network")
    discount: float = setting(0.9, at_least=0, at_most=1, help="of what comes later")
    exploration_epsilon: float = setting(
        0.1, at_least=0, at_most=1, help="probability of a random action in learning"
    )
    batch_size: int = setting(32, at_least=1, help="transitions of a step")
    capacity: int = setting(2000, at_least=1, help="transitions in an agent's memory")
    target_update_interval: int = setting(
        100, at_least=1, help="learning steps after which the target network is renewed"
    )
    double_dqn: bool = setting(False, help="double Q-learning")

    def __post_init__(self):
        check(self)
        _check_together(self)
        _check_idle(self)
        config_of(self)


def _check_together(settings):
    """Raises ValueError for numbers that do not fit each other."""
    layers = len(settings.hidden_sizes) + 1
    if settings.sharing == "pfdrl" and settings.alpha > layers:
        raise ValueError(
            f"alpha must lie in [0, {layers}], the Q-network's layers, got "
            f"{settings.alpha!r}."
        )
    if DAY % settings.slot_min:
        raise ValueError(
            f"slot_min must divide {DAY}, the minutes of a day, got "
            f"{settings.slot_min!r}."
        )
    for name in ("beta_hours", "gamma_hours"):
        if getattr(settings, name) * 60 < settings.slot_min:
            raise ValueError(
                f"{name} must be at least a slot, {settings.slot_min} minutes, got "
                f"{getattr(settings, name)!r} hours; choose a smaller slot_min."
            )


def _check_idle(settings):
    """Raises ValueError for a setting that the others leave nothing to do."""
    default = lambda name: type(settings).__dataclass_fields__[name].default
    changed = lambda name: getattr(settings, name) != default(name)
    if settings.sharing != "pfdrl":
        # An age of 0 is that of runs before there was another default.
        names = [name for name in _BROADCAST if changed(name)]
        names += ["max_age"] if settings.max_age > default("max_age") else []
        for name in names:
            raise ValueError(
                f"{name} is of broadcasts, and {settings.sharing!r} has none: got "
                f"{getattr(settings, name)!r}; leave it out, or share by 'pfdrl'."
            )
    for name, graph in (("degree", "k-regular"), ("probability", "random")):
        if changed(name) and settings.graph != graph:
            raise ValueError(
                f"{name} is of graph {graph!r}, and it is {settings.graph!r}: got "
                f"{getattr(settings, name)!r}; leave it out, or choose that graph."
            )
    if changed("clip_norm") and not settings.noise_multiplier:
        raise ValueError(
            f"clip_norm is of broadcasts with noise, and noise_multiplier is 0: got "
            f"{settings.clip_norm!r}; leave it out, or set noise_multiplier."
        )


def config_of(settings: PFDRLSettings) -> PFDRLConfig:
    """What of it is compiled.

    Args:
      settings: ``PFDRLSettings``.

    Raises:
      ValueError: as ``PFDRLConfig`` and its parts.

    Example:
      >>> config_of(PFDRLSettings(forecaster="lr")).forecast.kind
      'lr'
    """
    stretches = max(n for n in range(1, STRETCHES + 1) if settings.slot_min % n == 0)
    # Where all arrive at once nobody needs an earlier one.
    unsure = settings.drop_probability or settings.delay_probability
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
            num_envs=stretches,
        ),
        hidden_sizes=settings.hidden_sizes,
        observed=settings.observed,
        slot_min=settings.slot_min,
        messages=ChannelConfig(
            drop_probability=settings.drop_probability,
            delay_probability=settings.delay_probability,
            max_age=settings.max_age if unsure else 0,
        ),
        noise_multiplier=settings.noise_multiplier,
        clip_norm=settings.clip_norm,
    )


def hyper_of(settings: PFDRLSettings) -> dict[str, float]:
    """What ``init`` of a system takes.

    Args:
      settings: ``PFDRLSettings``.

    Example:
      >>> hyper_of(PFDRLSettings(alpha=3))["alpha"]
      3
    """
    names = [name for name in HYPER if name != "alpha" or settings.sharing == "pfdrl"]
    return {name: getattr(settings, name) for name in names}


def neighborhood_from_settings(
    settings: PFDRLSettings, homes: Homes, *, everybody: bool = False
) -> Neighborhood:
    """The street of homes: all their minutes, levels of the days to learn from.

    Args:
      settings: ``PFDRLSettings``.
      homes: ``Homes``, of ``days`` to learn from and more.
      everybody: whether all hear each other, whatever the settings' graph.

    Raises:
      ValueError: as ``build_neighborhood``, naming home and device; if there is no such
        graph.

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
        graph=None if everybody else graph_of(settings, len(homes.names)),
        names=(homes.names, device_names(homes)),
    )


def graph_of(settings: PFDRLSettings, num_homes: int):
    """Who hears whom, ``bool[homes, homes]``.

    Args:
      settings: ``PFDRLSettings``.
      num_homes: at least 1.

    Raises:
      ValueError: if there is no such graph of so many homes.

    Example:
      >>> int(graph_of(PFDRLSettings(graph="k-regular", degree=2), 5).sum())
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
