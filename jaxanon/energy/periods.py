"""After how many slots somebody is heard, and how long nobody is."""

import math

import jax
import jax.numpy as jnp

from jaxanon.energy.pfdrl_config import METHODS, PFDRLConfig

PERIODS = {"forecast": "beta_hours", "control": "gamma_hours"}


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
      ...     forecast=energy.ForecastConfig(kind="lr"), hidden=(8,))
      >>> homes = energy.street(np.ones((2, 60, 1)))
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
