"""PFDRL as a ``Method``: the data are homes, and one round is one day."""

import dataclasses
import functools
import math
import os

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.core import registry
from jaxanon.core.method import (
    DevicePlacement,
    Method,
    OwnData,
    Schedule,
    StateByLeaves,
)
from jaxanon.energy import placement, saving
from jaxanon.energy import settings as energy_settings
from jaxanon.energy.guarantee import BroadcastGuarantee
from jaxanon.energy.homes import Homes, HomesSpec, take
from jaxanon.energy.modes import Levels
from jaxanon.energy.neighborhood import Neighborhood
from jaxanon.energy.saving import DAY
from jaxanon.energy.system import SystemState, finite, pfdrl

NAME = "pfdrl"

_finite = jax.jit(finite)


@jax.tree_util.register_pytree_with_keys_class
@dataclasses.dataclass(frozen=True)
class HomesState(StateByLeaves):
    """State of a run, whose round is a day; has the leaves of ``SystemState``."""

    system: SystemState
    slots: int  # of a day

    average = None
    own = None  # The agents' parameters are ``params``.
    server = None

    @property
    def round(self) -> jax.Array:
        """Completed days, ``int32[]``."""
        return self.system.slot // self.slots

    @property
    def params(self):
        """Parameters of all forecasters and Q-networks."""
        return {
            "forecast": self.system.fits.layers,
            "control": self.system.control.params,
        }

    @property
    def hyper(self) -> dict:
        """Hyper-parameters of the system and its agents, ``float[]`` each."""
        of_agents = {name: x[0] for name, x in self.system.control.hyper.items()}
        return self.system.hyper | of_agents

    def tree_flatten_with_keys(self):
        """Returns the leaves of the system with their keys."""
        keys = map(jax.tree_util.GetAttrKey, SystemState._fields)
        return [*zip(keys, self.system, strict=True)], self.slots

    @classmethod
    def tree_unflatten(cls, slots, parts):
        """Rebuilds the state, for ``jax.tree_util``."""
        return cls(SystemState(*parts), slots)


def _pfdrl(spec: HomesSpec, config: energy_settings.PFDRLSettings) -> Method:
    """Builds the method; the last ``joining`` homes of ``spec`` do not train."""
    learning = len(spec.homes) - config.joining
    if learning < 1:
        raise ValueError(
            f"joining must be less than the number of homes, {len(spec.homes)}, got "
            f"{config.joining}."
        )
    devices = len(spec.devices[0])
    system = pfdrl(energy_settings.build_config(config))
    slots = DAY // config.slot_min

    def check(homes):
        days = homes.power.shape[1] // DAY
        wanted = config.days + config.test_days
        if days != wanted:
            raise ValueError(
                f"homes must have {wanted} days, {config.days} for training and "
                f"{config.test_days} for testing, got {days}."
            )
        if config.joining:
            build_new_neighborhood(config, homes)  # Raises errors before training.

    def prepare(homes):
        return energy_settings.neighborhood_from_settings(
            config, take(homes, 0, learning)
        )

    def init(key, **hyper):
        # Not traced, because only concrete values are checked.
        hyper = energy_settings.build_hyper(config) | hyper
        first = jax.jit(functools.partial(system.init, **hyper))
        return HomesState(first(key, _blank(learning * devices)), slots)

    def update(key, state, neighborhood):
        def slot(state, _):
            state, info = system.update(key, state, neighborhood)
            return state, {name: jnp.sum(x) for name, x in info.items()}

        state_of_system, sums = jax.lax.scan(slot, state.system, length=slots)
        total = {name: jnp.sum(x) for name, x in sums.items()}
        losses = _losses(total, config.slot_min, _share)
        return HomesState(state_of_system, slots), losses

    def place(neighborhood, number):
        indices, shards = placement.shard_neighborhood(neighborhood, number or _cores())

        def put(tree):
            if not isinstance(tree, HomesState):
                return tree
            return tree, placement.deal_state(system, tree.system, indices, shards)

        def call(key, state, shards, num):
            whole, states = state
            rows, bad = [], num
            for done in range(num):
                states, infos = placement.simulate_sharded(
                    system, key, states, shards, slots
                )
                rows.append(_day_losses(infos, config.slot_min))
                fine = all(map(math.isfinite, rows[-1].values()))
                if not (fine and all(bool(_finite(each)) for each in states)):
                    bad = min(bad, done)
            info = {name: sum(row[name] for row in rows) / num for name in rows[0]}
            return (whole, states), info, bad

        def collect(state):
            whole, states = state
            system_state = placement.collect_state(whole.system, states, indices)
            return HomesState(system_state, slots)

        return DevicePlacement(call, shards, put, collect)

    noisy = config.sharing == "pfdrl" and config.noise_multiplier
    return Method(
        name=NAME,
        config=config,
        spec=spec,
        prepare=prepare,
        init=init,
        update=update,
        schedule=Schedule(
            rounds_per_epoch=lambda neighborhood: 1,
            work_per_round=lambda neighborhood: len(neighborhood.power) * DAY,
            unit="device minutes",
            round_name="day",
            epochs=config.days,
        ),
        guarantee=BroadcastGuarantee(config, devices) if noisy else None,
        own_data=OwnData(check, arrays_of),
        place=place,
    )


_build = registry.register(
    NAME,
    _pfdrl,
    config=energy_settings.PFDRLSettings,
    kind="controller",
    spec=HomesSpec,
    recipes={
        registry.RECOMMENDED: registry.Recipe("The defaults: the paper's numbers."),
        "paper": registry.Recipe("The defaults: the paper's numbers."),
        "fast": registry.Recipe(
            "Fast preview with few training days.", {"days": 4, "test_days": 2}
        ),
    },
)


def pfdrl_method(spec: HomesSpec, **settings) -> Method:
    """Builds PFDRL for homes that train agents to switch off standby.

    One round is one day. On a CPU, kinds of devices, which never communicate with each
    other, are distributed over the cores. A resumed run gives bitwise the same result
    on the same number of cores.

    Args:
      spec: ``HomesSpec``; the last ``joining`` homes do not train.
      **settings: fields of ``PFDRLSettings``.

    Raises:
      ValueError: if a setting is out of range, or no home is left to train.
      TypeError: if a setting is unknown.

    Example:
      >>> from jaxanon import energy
      >>> import jaxanon as ja
      >>> homes = energy.load_homes(
      ...     "simulated", homes=2, devices=1, days=1, test_days=1)
      >>> method = pfdrl_method(
      ...     homes.spec, days=1, test_days=1, forecaster="lr", hidden_sizes=(4,),
      ...     alpha=1, slot_min=720)
      >>> run = ja.train(method, homes, progress=False)
      >>> sorted(run.history[0]["losses"])[:3]
      ['forecast_error_w', 'held_error_w', 'optimal_share']
    """
    return _build(spec, **settings)


def build_new_neighborhood(settings, homes: Homes) -> Neighborhood:
    """Returns the neighborhood of the joining homes, which all exchange broadcasts.

    Args:
      settings: ``PFDRLSettings`` with ``joining`` of at least 1.
      homes: all homes of ``train``.

    Raises:
      ValueError: if ``energy.build_neighborhood`` rejects the homes; the message names
        home and device.

    Example:
      >>> from jaxanon import energy
      >>> homes = energy.load_homes(
      ...     "simulated", homes=3, devices=2, days=1, test_days=1)
      >>> chosen = energy.PFDRLSettings(days=1, test_days=1, joining=1, graph="ring")
      >>> build_new_neighborhood(chosen, homes).power.shape
      (2, 2880)
    """
    count = len(homes.names)
    new = take(homes, count - settings.joining, count)
    # They may be too few for the graph of the settings.
    return energy_settings.neighborhood_from_settings(settings, new, complete=True)


def arrays_of(homes: Homes) -> list[np.ndarray]:
    """Returns the arrays whose fingerprint identifies the homes of a run."""
    return [homes.power.astype(np.float32), homes.kinds.astype(np.int32)]


def _blank(agents):
    """Returns a neighborhood with only the shapes that the initial state needs."""
    zeros = jnp.zeros(agents)
    return Neighborhood(
        power=jnp.zeros((agents, 1)),
        scale=zeros,
        levels=Levels(*[zeros] * len(Levels._fields)),
        present=zeros,
        neighbor_weights=zeros,
        server_weights=zeros,
        kind=zeros,
        agent_id=zeros,
    )


def _cores():
    """Returns the number of shards: a program of small products uses one CPU core."""
    if jax.default_backend() != "cpu":
        return 1
    allowed = getattr(os, "sched_getaffinity", None)  # Missing on some systems.
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def _day_losses(infos, slot_min) -> dict[str, float]:
    """Returns the losses of a day over all devices, before training in each slot."""
    sums = lambda name: (np.asarray(i[name]).sum(dtype=np.float64) for i in infos)
    total = {name: float(sum(sums(name))) for name in infos[0]}
    losses = _losses(total, slot_min, saving.safe_divide)
    return {name: float(loss) for name, loss in losses.items()}


def _share(part, whole):
    return jnp.where(whole > 0, part / jnp.where(whole > 0, whole, 1), 0)


def _losses(total, slot_min, safe_divide):
    share = lambda part, whole: safe_divide(total[part], total[whole])
    return {
        "saved_share": share("saved_wh", "standby_wh"),
        "switched_off_share": share("switched_off", "in_use"),
        "optimal_share": share("optimal", "minutes"),
        "forecast_error_w": share("forecast_error", "minutes"),
        "held_error_w": share("held_error", "minutes"),
        "reward": slot_min * share("reward", "minutes"),
        "standby_kwh": total["standby_wh"] / 1000,
        "saved_kwh": total["saved_wh"] / 1000,
    }
