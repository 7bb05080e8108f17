"""Settings of PFDRL and its exchange periods."""

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
    """Sharing modes of the forecaster and the Q-network.

    ``"nothing"``: each agent trains alone. ``"data"``: one model is trained on the data
    of all agents, as in a cloud; each step uses the mean gradient. ``"server"``: a
    server averages all layers over all agents, as in FedAvg. ``"gossip"``: agents
    broadcast all layers and mix them with those of their neighbors. ``"base"``: the
    same for the first ``alpha`` layers only.
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
    """Method of Figure 2.3 and the sizes of its components.

    Raises:
      TypeError: if a setting has the wrong type.
      ValueError: if a setting is out of range, ``dqn.num_envs`` does not divide
        ``slot_min``, or noise is set for a method without broadcasts.

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
        1, at_least=1, help="training steps of a forecaster per slot"
    )
    forecaster_batch_size: int = setting(
        32, at_least=1, help="windows per training step of a forecaster"
    )
    dqn: DQNConfig = setting(
        default_factory=lambda: DQNConfig(num_envs=30),
        help="``DQNConfig``; its environments are consecutive parts of a slot",
    )
    hidden_sizes: tuple[int, ...] = setting(
        HIDDEN, at_least=1, help="widths of the Q-network"
    )
    observed: str = setting(
        "power",
        choices=OBSERVED,
        help="observation of the agent, as in ``environment``",
    )
    slot_min: int = setting(
        60, at_least=1, help="minutes per slot; models train after each slot"
    )
    messages: ChannelConfig = setting(
        default_factory=ChannelConfig,
        help="``ChannelConfig`` of broadcasts without a server",
    )
    noise_multiplier: float = setting(
        0.0,
        at_least=0,
        help='Gaussian noise on broadcasts of "pfdrl", as standard deviation divided '
        "by clip norm; 0 disables noise and clipping. ``broadcast_epsilon`` returns "
        "its epsilon",
    )
    clip_norm: float = setting(
        1.0, above=0, help="clip norm of a model's change since its last broadcast"
    )
    layout: Layout | None = setting(
        None, help="layout of agents, which does not affect results; None: by backend"
    )

    def __post_init__(self):
        check(self)
        if self.noise_multiplier and METHODS[self.method].control != "base":
            raise ValueError(
                f"noise_multiplier must be 0 for {self.method!r}, which has no "
                f"broadcasts, got {self.noise_multiplier!r}; use method 'pfdrl'."
            )
        if self.slot_min % self.dqn.num_envs:
            raise ValueError(
                f"dqn.num_envs must divide slot_min, got {self.dqn.num_envs} and "
                f"{self.slot_min}."
            )


def period(config: PFDRLConfig, hours):
    """Returns the exchange period in whole slots.

    Args:
      config: ``PFDRLConfig``.
      hours: period in hours, ``float[]``, at least one slot; may be traced.

    Returns:
      ``int32[]``.

    Example:
      >>> period(PFDRLConfig(slot_min=30), 12.0)
      Array(24, dtype=int32)
    """
    slots = jnp.round(jnp.asarray(hours) * 60 / config.slot_min)
    return jnp.maximum(slots, 1).astype(jnp.int32)


def max_local_slots(config: PFDRLConfig, state, num_slots: int) -> int:
    """Returns the number of consecutive slots that agents can run one after another.

    Agents do not communicate before the last of these slots, starting from ``state``,
    and the pattern repeats. The networks of one agent then stay in the CPU cache for
    several slots.

    Args:
      config: ``PFDRLConfig``.
      state: ``SystemState``.
      num_slots: total number of slots, a multiple of the result.

    Returns:
      Number of slots; 1 if ``state`` is traced.

    Example:
      >>> import numpy as np
      >>> from jaxanon import energy
      >>> config = PFDRLConfig(
      ...     forecast=energy.ForecastConfig(kind="lr"), hidden_sizes=(8,))
      >>> homes = energy.build_neighborhood(np.ones((2, 60, 1)))
      >>> state = energy.pfdrl(config).init(
      ...     jax.random.key(0), homes, alpha=1, gamma_hours=8.0)
      >>> max_local_slots(config, state, 24), max_local_slots(config, state, 10)
      (4, 2)
    """
    try:
        counts = [num_slots, int(state.slot)]
        for model, name in PERIODS.items():
            sharing = getattr(METHODS[config.method], model)
            if sharing == "data":  # Each step uses all agents' data.
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
    """Raises an error for invalid hyper-parameters; ignores traced values.

    Args:
      config: ``PFDRLConfig``.
      num_layers: number of layers of the Q-network.
      hyper: hyper-parameters passed to ``init``.

    Raises:
      TypeError: for unknown hyper-parameters.
      ValueError: if ``alpha`` or hours are out of range.

    Example:
      >>> check_hyper(PFDRLConfig(), 9, {"alpha": 9, "beta_hours": 1.0})
    """
    names = sorted(HYPER | DQN_HYPER)
    unknown = sorted(set(hyper) - set(names))
    if unknown:
        raise TypeError(f"init takes the hyper-parameters {names}, got {unknown}.")
    uses_alpha = METHODS[config.method].control == "base"
    alpha = known(hyper.get("alpha", HYPER["alpha"] if uses_alpha else 0))
    if alpha is not None and alpha not in range(num_layers + 1):
        raise ValueError(
            f"alpha must be a whole number in [0, {num_layers}], the number of layers, "
            f"got {alpha}{'' if 'alpha' in hyper else ', its default'}; set alpha."
        )
    for name in ("beta_hours", "gamma_hours"):
        hours = known(hyper.get(name, HYPER[name]))
        if hours is not None and not config.slot_min <= hours * 60 < math.inf:
            raise ValueError(
                f"{name} must be at least one slot ({config.slot_min} minutes), got "
                f"{hours} hours; choose a smaller slot_min."
            )
