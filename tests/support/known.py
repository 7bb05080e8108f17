"""A method with known rounds, for tests of sweeps."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.core.method import Method, Schedule


class State(NamedTuple):
    """State of the method: ``params`` move towards ``goal`` by ``rate``, plus noise."""

    round: jax.Array
    params: jax.Array
    hyper: dict
    average: None = None

    own = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    width: int = 2
    rate: float = 0.5
    goal: float = 1.0


TRACES = []


def build(spec, **settings):
    """Builds a method with known rounds: params += rate (goal - params) + noise.

    The output of ``prepare``, which is 0, shifts the goal.
    """
    config = Config(**settings)

    def init(key, **hyper):
        values = {"rate": config.rate, "goal": config.goal} | hyper
        values = {name: jnp.asarray(value, float) for name, value in values.items()}
        return State(jnp.int32(0), jax.random.normal(key, (config.width,)), values)

    def update(key, state, data):
        TRACES.append(config.width)
        noise = 1e-3 * jax.random.normal(jax.random.fold_in(key, state.round))
        goal = state.hyper["goal"] + data
        step = state.hyper["rate"] * (goal - state.params)
        weight = state.params + step + noise
        loss = jnp.mean((weight - goal) ** 2)
        return State(state.round + 1, weight, state.hyper), {"loss": loss}

    return Method(
        name="toy",
        config=config,
        spec=spec,
        prepare=lambda clients: jnp.zeros(()),
        init=init,
        update=update,
        schedule=Schedule(lambda data: 3, lambda data: 2),
        anonymize=lambda key, state, windows: windows,
    )
