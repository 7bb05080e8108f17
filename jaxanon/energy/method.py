"""PFDRL as a ``Method``: its data are homes, and a round is a day."""

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
from jaxanon.energy import neighbourhood, placement, saving
from jaxanon.energy import settings as energy_settings
from jaxanon.energy.guarantee import BroadcastGuarantee
from jaxanon.energy.homes import Homes, HomesSpec, take
from jaxanon.energy.modes import Levels
from jaxanon.energy.saving import DAY
from jaxanon.energy.system import SystemState, finite, pfdrl

NAME = "pfdrl"

_finite = jax.jit(finite)


@jax.tree_util.register_pytree_with_keys_class
@dataclasses.dataclass(frozen=True)
class HomesState(StateByLeaves):
    """State of a run: that of the system, whose leaves it has, counted in days."""

    system: SystemState
    slots: int  # of a day

    average = None

    @property
    def round(self) -> jax.Array:
        """Days done, ``int32[]``."""
        return self.system.slot // self.slots

    @property
    def params(self):
        """Layers of all forecasters and Q-networks."""
        return {
            "forecast": self.system.fits.layers,
            "control": self.system.control.params,
        }

    @property
    def hyper(self) -> dict:
        """Hyper-parameters of the system and of its agents, ``float[]`` each."""
        own = {name: x[0] for name, x in self.system.control.hyper.items()}
        return self.system.hyper | own

    def tree_flatten_with_keys(self):
        """The leaves of the system, under the names that they have there."""
        keys = map(jax.tree_util.GetAttrKey, SystemState._fields)
        return [*zip(keys, self.system, strict=True)], self.slots

    @classmethod
    def tree_unflatten(cls, slots, parts):
        """As ``jax.tree_util`` asks for it."""
        return cls(SystemState(*parts), slots)


def _pfdrl(spec: HomesSpec, config: energy_settings.PFDRLSettings) -> Method:
    """The method for the homes of ``spec``, of which the last ``joining`` wait."""
    learning = len(spec.homes) - config.joining
    if learning < 1:
        raise ValueError(
            f"joining must leave a home that learns, got {config.joining} of "
            f"{len(spec.homes)} homes."
        )
    devices = len(spec.devices[0])
    system = pfdrl(energy_settings.config_of(config))
    slots = DAY // config.slot_min

    def check(homes):
        days = homes.power.shape[1] // DAY
        wanted = config.days + config.test_days
        if days != wanted:
            raise ValueError(
                f"homes must have {wanted} days, {config.days} to learn from and "
                f"{config.test_days} held out, got {days}."
            )
        if config.joining:
            newcomers(config, homes)  # Refused now, and not after days of learning.

    def prepare(homes):
        return energy_settings.neighborhood_from_settings(
            config, take(homes, 0, learning)
        )

    def init(key, **hyper):
        # Not traced, so that they are checked.
        hyper = energy_settings.hyper_of(config) | hyper
        first = jax.jit(functools.partial(system.init, **hyper))
        return HomesState(first(key, _blank(learning * devices)), slots)

    def update(key, state, street):
        def slot(state, _):
            state, info = system.update(key, state, street)
            return state, {name: jnp.sum(x) for name, x in info.items()}

        state_of_system, sums = jax.lax.scan(slot, state.system, length=slots)
        total = {name: jnp.sum(x) for name, x in sums.items()}
        losses = _losses(total, config.slot_min, _share)
        return HomesState(state_of_system, slots), losses

    def place(street, number):
        places, streets = placement.apart(street, number or _cores())

        def put(tree):
            if not isinstance(tree, HomesState):
                return tree
            return tree, placement.deal_state(system, tree.system, places, streets)

        def call(key, state, streets, num):
            whole, states = state
            rows, bad = [], num
            for done in range(num):
                states, infos = placement.simulate_sharded(
                    system, key, states, streets, slots
                )
                rows.append(_told(infos, config.slot_min))
                fine = all(map(math.isfinite, rows[-1].values()))
                if not (fine and all(bool(_finite(each)) for each in states)):
                    bad = min(bad, done)
            info = {name: sum(row[name] for row in rows) / num for name in rows[0]}
            return (whole, states), info, bad

        def collect(state):
            whole, states = state
            found = placement.collect_state(whole.system, states, places)
            return HomesState(found, slots)

        return DevicePlacement(call, streets, put, collect)

    noisy = config.sharing == "pfdrl" and config.noise_multiplier
    return Method(
        name=NAME,
        config=config,
        spec=spec,
        prepare=prepare,
        init=init,
        update=update,
        schedule=Schedule(
            rounds_per_epoch=lambda street: 1,
            work_per_round=lambda street: len(street.power) * DAY,
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
)


def pfdrl_method(spec: HomesSpec, **settings) -> Method:
    """Builds PFDRL for homes that learn to switch standby off.

    A round is a day. On a CPU kinds of device, which never hear of each other, are
    dealt out to its cores: a run that was resumed ends in the same bits as one that was
    not, on as many cores.

    Args:
      spec: of ``Homes``; the last ``joining`` homes do not learn.
      **settings: fields of ``PFDRLSettings``.

    Raises:
      ValueError: if a setting is out of range, or no home is left that learns.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon import energy
      >>> import jaxanon as ja
      >>> homes = energy.load_homes("simulated", homes=2, devices=1, days=1,
      test_days=1)
      >>> method = pfdrl_method(
      ...     homes.spec, days=1, test_days=1, forecaster="lr", hidden_sizes=(4,),
      alpha=1, ...     slot_min=720)
      >>> run = ja.train(method, homes, progress=False)
      >>> sorted(run.history[0]["losses"])[:3]
      ['forecast_error_w', 'held_error_w', 'optimal_share']
    """
    return _build(spec, **settings)


def newcomers(settings, homes: Homes) -> neighbourhood.Neighborhood:
    """The street of the homes that join, who all hear each other.

    Args:
      settings: ``PFDRLSettings``, whose ``joining`` is at least 1.
      homes: of ``train``.

    Raises:
      ValueError: as ``energy.build_neighborhood``, naming home and device.

    Example:
      >>> from jaxanon import energy
      >>> homes = energy.load_homes("simulated", homes=3, devices=2, days=1,
      test_days=1)
      >>> chosen = energy.PFDRLSettings(days=1, test_days=1, joining=1, graph="ring")
      >>> newcomers(chosen, homes).power.shape
      (2, 2880)
    """
    count = len(homes.names)
    new = take(homes, count - settings.joining, count)
    # There may be too few of them for the street's graph.
    return energy_settings.neighborhood_from_settings(settings, new, everybody=True)


def arrays_of(homes: Homes) -> list[np.ndarray]:
    """All minutes of all devices, by which a run tells whether its homes changed."""
    return [homes.power.astype(np.float32), homes.kinds.astype(np.int32)]


def _blank(agents):
    """As much of a street as the first state takes: it sees no minute of it."""
    zeros = jnp.zeros(agents)
    return neighbourhood.Neighborhood(
        power=jnp.zeros((agents, 1)),
        scale=zeros,
        levels=Levels(*[zeros] * len(Levels._fields)),
        present=zeros,
        neighbours=zeros,
        everybody=zeros,
        kind=zeros,
        number=zeros,
    )


def _cores():
    """Streets to deal kinds of device out to: small products keep one core busy."""
    if jax.default_backend() != "cpu":
        return 1
    allowed = getattr(os, "sched_getaffinity", None)  # Not on every system.
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def _told(infos, slot_min) -> dict[str, float]:
    """A day of all devices, as agents did before each slot taught them."""
    sums = lambda name: (np.asarray(i[name]).sum(dtype=np.float64) for i in infos)
    total = {name: float(sum(sums(name))) for name in infos[0]}
    losses = _losses(total, slot_min, saving.share_of)
    return {name: float(loss) for name, loss in losses.items()}


def _share(part, whole):
    return jnp.where(whole > 0, part / jnp.where(whole > 0, whole, 1), 0)


def _losses(total, slot_min, share_of):
    share = lambda part, whole: share_of(total[part], total[whole])
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
