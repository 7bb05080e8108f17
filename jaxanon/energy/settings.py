"""What a person sets of a street: one flat config, and what the parts take of it."""

import dataclasses

import jax

from jaxanon import federated
from jaxanon.energy import setting_checks
from jaxanon.energy.config import PFDRLConfig
from jaxanon.energy.forecasting import ForecastConfig
from jaxanon.energy.homes import Homes, device_names
from jaxanon.energy.neighbourhood import Street, street
from jaxanon.energy.q_learning import DQNConfig
from jaxanon.energy.saving import DAY, FIXED_CENTS
from jaxanon.federated import Messages
from jaxanon.kernels.setting_checks import of_kinds
from jaxanon.models.predictors import HIDDEN

# Arrays of the state, which a sweep varies without compiling anything anew.
HYPER = ("alpha", "beta_hours", "gamma_hours", "fit_rate", "learning_rate")

HYPER += ("discount", "epsilon")

STRETCHES = 30  # Of a slot, side by side, at most; a learning step is of all.

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

    homes: int | None = None
    """how many learn; default: 20 where homes are composed or made up, else all"""
    devices: int | None = None
    """kinds of devices in a home; default: 6 where homes are composed, else all"""
    kinds: str | None = None
    """names of the devices to choose from, with commas between"""
    days: int = 24
    """to learn from"""
    held_out: int = 6
    """days after those, to be tested on"""
    joining: int = 0
    """further homes, which join the others when they have learned"""
    homes_seed: int = 0
    """draws the homes that are composed or made up, and a random graph"""
    sharing: str = "pfdrl"
    """what homes share, as Figure 2.3 names it: pfdrl, frl, fl, cloud or local"""
    alpha: int = 6
    """layers of the Q-network that are shared, from the first on, by pfdrl alone"""
    beta_hours: float = 12.0
    """hours after which forecasters are shared"""
    gamma_hours: float = 12.0
    """hours after which Q-networks are shared"""
    forecaster: str = "lstm"
    """lr, svm, bp or lstm"""
    graph: str = "full"
    """which homes hear each other: full, ring, k-regular or random; a device hears only
    those of its kind, and so nobody where no home that is heard has one"""
    degree: int = 4
    """homes that each hears, of a k-regular graph, whether or not they have the kind"""
    probability: float = 0.5
    """that two homes hear each other, of a random graph"""
    lost: float = 0.0
    """probability that a message never arrives"""
    late: float = 0.0
    """probability that it arrives with the next, a broadcast old"""
    max_age: int = 1
    """where messages are lost or late, broadcasts that a home goes on with the last one
    that it got; 0 is none, and then none may be late"""
    noise_multiplier: float = 0.0
    """of noise on what pfdrl broadcasts; 0 is none, and broadcasts tell of homes"""
    clip_norm: float = 1.0
    """of what a model has changed since its last broadcast, where there is noise"""
    cents: float = FIXED_CENTS
    """a kWh at the fixed tariff"""
    hidden: tuple[int, ...] = HIDDEN
    """widths of the Q-network"""
    observed: str = "power"
    """what an agent sees of forecast and load: power, or their modes"""
    slot_min: int = 60
    """minutes after which models learn"""
    fit_steps: int = 1
    """learning steps of a forecaster in a slot"""
    fit_batch: int = 32
    """windows of one of them"""
    lookback: int = 120
    """minutes that a forecaster sees; a multiple of 5"""
    fit_rate: float = 1e-2
    """length of a forecaster's learning steps"""
    learning_rate: float = 1e-3
    """of the Q-network"""
    discount: float = 0.9
    """of what comes later"""
    epsilon: float = 0.1
    """probability of an action at random, while learning"""
    batch_size: int = 32
    """transitions of a learning step of the Q-network"""
    capacity: int = 2000
    """transitions that an agent remembers"""
    target_every: int = 100
    """learning steps after which the target network is renewed"""
    double: bool = False
    """double Q-learning"""

    def __post_init__(self):
        of_kinds(self)
        setting_checks.ranges(self)
        setting_checks.idle(self)
        config_of(self)


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
    unsure = settings.lost or settings.late
    return PFDRLConfig(
        method=settings.sharing,
        forecast=ForecastConfig(kind=settings.forecaster, lookback=settings.lookback),
        fit_steps=settings.fit_steps,
        fit_batch=settings.fit_batch,
        dqn=DQNConfig(
            capacity=settings.capacity,
            batch_size=settings.batch_size,
            target_every=settings.target_every,
            double=settings.double,
            num_envs=stretches,
        ),
        hidden=settings.hidden,
        observed=settings.observed,
        slot_min=settings.slot_min,
        messages=Messages(
            lost=settings.lost,
            late=settings.late,
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


def street_of(
    settings: PFDRLSettings, homes: Homes, *, everybody: bool = False
) -> Street:
    """The street of homes: all their minutes, levels of the days to learn from.

    Args:
      settings: ``PFDRLSettings``.
      homes: ``Homes``, of ``days`` to learn from and more.
      everybody: whether all hear each other, whatever the settings' graph.

    Raises:
      ValueError: as ``street``, naming home and device; if there is no such graph.

    Example:
      >>> from jaxanon.energy import load_homes
      >>> homes = load_homes("simulated", homes=3, devices=2, days=1, held_out=1)
      >>> street_of(PFDRLSettings(days=1, graph="ring"), homes).power.shape
      (6, 2880)
    """
    return street(
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
        return federated.ring(num_homes)
    if settings.graph == "k-regular":
        return federated.k_regular(num_homes, settings.degree)
    if settings.graph == "random":
        key = jax.random.fold_in(jax.random.key(settings.homes_seed), _GRAPH_SEED)
        return federated.random_graph(key, num_homes, settings.probability)
    return federated.complete(num_homes)
