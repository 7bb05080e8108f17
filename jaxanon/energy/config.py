"""Settings of PFDRL, and the periods at which agents share."""

import dataclasses
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.energy.forecasting import ForecastConfig
from jaxanon.energy.mdp import OBSERVED
from jaxanon.energy.q_learning import HYPER as DQN_HYPER
from jaxanon.energy.q_learning import DQNConfig
from jaxanon.federated import ChannelConfig, Layout
from jaxanon.kernels.bounds import check, setting
from jaxanon.kernels.checks import known
from jaxanon.models.predictors import HIDDEN

PERIODS = {"forecast": "beta_hours", "control": "gamma_hours"}


class Sharing(NamedTuple):
    """What agents share of each of their two models.

    ``"nothing"``: each learns alone. ``"data"``: one model is trained on everybody's,
    as a cloud does: every step takes the mean of all gradients. ``"server"``: all
    layers are averaged over everybody, as FedAvg does. ``"gossip"``: all layers are
    broadcast, and mixed with what arrives from neighbours; ``"base"``: the first
    ``alpha`` of them.
    """

    forecast: str
    control: str


METHODS = {
    "local": Sharing("nothing", "nothing"),
    "cloud": Sharing("data", "nothing"),
    "fl": Sharing("server", "nothing"),
    "frl": Sharing("server", "server"),
    "pfdrl": Sharing("gossip", "base"),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class PFDRLConfig:
    """A method of Figure 2.3, and the sizes of its parts.

    Raises:
      TypeError: for a setting of another type.
      ValueError: for another method, a number below 1, a slot that environments cannot
        share evenly, a clip norm or noise out of range, or noise where nothing is
        broadcast.

    Example:
      >>> METHODS[PFDRLConfig(method="frl").method]
      Sharing(forecast='server', control='server')

    References:
      Chapter 2, sections 2.2.4 and 2.2.5 and Figure 2.3.
    """

    method: str = setting("pfdrl", choices=METHODS, help="one of ``METHODS``")
    forecast: ForecastConfig = setting(
        default_factory=ForecastConfig, help="``ForecastConfig``"
    )
    forecaster_steps: int = setting(
        1, at_least=1, help="steps of a forecaster in a slot"
    )
    forecaster_batch_size: int = setting(32, at_least=1, help="windows of one")
    dqn: DQNConfig = setting(
        default_factory=lambda: DQNConfig(num_envs=30),
        help="``DQNConfig``; its environments are stretches of a slot, side by side",
    )
    hidden_sizes: tuple[int, ...] = setting(
        HIDDEN, at_least=1, help="widths of the Q-network"
    )
    observed: str = setting("power", choices=OBSERVED, help="of ``environment``")
    slot_min: int = setting(60, at_least=1, help="minutes after which models learn")
    messages: ChannelConfig = setting(
        default_factory=ChannelConfig,
        help="what becomes of broadcasts, without a server",
    )
    noise_multiplier: float = setting(
        0.0,
        at_least=0,
        help='of Gaussian noise on what agents of "pfdrl" broadcast, standard '
        "deviation over clip norm; 0 is none, and nothing is clipped. What it is worth "
        "tells ``broadcast_epsilon``",
    )
    clip_norm: float = setting(
        1.0, above=0, help="clip norm of a model's change since its last broadcast"
    )
    layout: Layout | None = setting(
        None, help="layout of agents, which changes no result; None: by backend"
    )

    def __post_init__(self):
        check(self)
        if self.noise_multiplier and METHODS[self.method].control != "base":
            raise ValueError(
                f"noise_multiplier is for broadcasts, and {self.method!r} has "
                'none; leave it at 0, or take "pfdrl".'
            )
        if self.slot_min % self.dqn.num_envs:
            raise ValueError(
                f"dqn.num_envs must divide slot_min, so that its environments are "
                f"stretches of a slot, got {self.dqn.num_envs} and {self.slot_min}."
            )


def period(config: PFDRLConfig, hours):
    """Hours between broadcasts, in whole slots.

    Args:
      config: ``PFDRLConfig``.
      hours: ``float[]``, of at least a slot; may be traced.

    Returns:
      ``int32[]``.

    Example:
      >>> period(PFDRLConfig(slot_min=30), 12.0)
      Array(24, dtype=int32)
    """
    slots = jnp.round(jnp.asarray(hours) * 60 / config.slot_min)
    return jnp.maximum(slots, 1).astype(jnp.int32)


def silent(config: PFDRLConfig, state, num_slots: int) -> int:
    """Slots in a row that agents can go through one agent after the other.

    Nobody is heard before the last of them has passed, from where a state stands, and
    so on after each so many. An agent's networks then stay in a CPU's cache for more
    than one slot.

    Args:
      config: ``PFDRLConfig``.
      state: ``SystemState``.
      num_slots: of which it is a divisor.

    Returns:
      1 where nothing is known of the state, for it is traced.

    Example:
      >>> import numpy as np
      >>> from jaxanon import energy
      >>> config = PFDRLConfig(
      ...     forecast=energy.ForecastConfig(kind="lr"), hidden_sizes=(8,))
      >>> homes = energy.build_neighborhood(np.ones((2, 60, 1)))
      >>> state = energy.pfdrl(config).init(
      ...     jax.random.key(0), homes, alpha=1, gamma_hours=8.0)
      >>> silent(config, state, 24), silent(config, state, 10)
      (4, 2)
    """
    try:
        counts = [num_slots, int(state.slot)]
        for model, name in PERIODS.items():
            sharing = getattr(METHODS[config.method], model)
            if sharing == "data":  # Every step is of everybody's minutes.
                counts.append(1)
            elif sharing != "nothing":
                counts.append(int(period(config, state.hyper[name])))
    except jax.errors.ConcretizationTypeError:
        return 1
    return math.gcd(*counts)


_PARTS = {"forecast": ForecastConfig, "dqn": DQNConfig, "messages": ChannelConfig}

HYPER = {
    "alpha": 6,
    "beta_hours": 12.0,
    "gamma_hours": 12.0,
    "forecaster_learning_rate": 1e-2,
}


def check_hyper(config: PFDRLConfig, num_layers: int, hyper: dict) -> None:
    """Raises unless a method takes these hyper-parameters; traced ones pass.

    Args:
      config: ``PFDRLConfig``.
      num_layers: of the Q-network.
      hyper: of ``init``.

    Raises:
      TypeError: for one that there is not.
      ValueError: for an ``alpha`` or hours out of range.

    Example:
      >>> check_hyper(PFDRLConfig(), 9, {"alpha": 9, "beta_hours": 1.0})
    """
    names = sorted(HYPER | DQN_HYPER)
    unknown = sorted(set(hyper) - set(names))
    if unknown:
        raise TypeError(f"init takes the hyper-parameters {names}, got {unknown}.")
    heeded = METHODS[config.method].control == "base"
    alpha = known(hyper.get("alpha", HYPER["alpha"] if heeded else 0))
    if alpha is not None and alpha not in range(num_layers + 1):
        raise ValueError(
            f"alpha must be whole and lie in [0, {num_layers}], the network's layers, "
            f"got {alpha}{'' if 'alpha' in hyper else ', its default'}; choose one."
        )
    for name in ("beta_hours", "gamma_hours"):
        hours = known(hyper.get(name, HYPER[name]))
        if hours is not None and not config.slot_min <= hours * 60 < math.inf:
            raise ValueError(
                f"{name} must be at least a slot, {config.slot_min} minutes, got "
                f"{hours} hours; choose a smaller slot_min."
            )
