"""New homes: initialization from a neighborhood, and days until they save as much."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon import federated
from jaxanon.energy.neighborhood import Neighborhood
from jaxanon.energy.saving import safe_divide
from jaxanon.energy.system import PFDRLSystem, SystemState
from jaxanon.kernels.checks import whole

LAST_DAYS = 3  # Last days whose joint saving is the final one.


class LearningTime(NamedTuple):
    """Days that each home needs to learn, and its final result."""

    days: np.ndarray  # int64[homes]; whole days; 0: never
    final: np.ndarray  # float64[homes]; final fraction saved


def add_home(
    system: PFDRLSystem,
    key,
    state: SystemState,
    neighborhood: Neighborhood,
    new_homes: Neighborhood,
) -> SystemState:
    """Initializes new homes from a trained neighborhood.

    New agents start with the mean of all shared layers over the neighborhood's devices
    of their kind, as after one broadcast to all. Personal layers, replay memories and
    optimizer states are fresh. An agent is entirely fresh if the neighborhood has no
    device of its kind, or the method shares nothing. ``simulate`` continues from the
    first minute of ``new_homes``, which exchange models only with each other; it does
    not change the state of the neighborhood. Levels and scales of new homes come from
    ``new_homes`` and thus from the minutes that it was built with, including days still
    to come.

    Args:
      system: result of ``pfdrl`` for the neighborhood.
      key: typed PRNG key for the fresh parts.
      state: state of the neighborhood.
      neighborhood: the neighborhood in which ``state`` was trained.
      new_homes: neighborhood of the new homes, with ``kind`` as in ``neighborhood``;
        its first minute is the midnight on which they join.

    Returns:
      The state of the new homes, with the neighborhood's hyper-parameters.

    Example:
      >>> from jaxanon import energy
      >>> config = energy.PFDRLConfig(
      ...     forecast=energy.ForecastConfig(kind="lr", lookback=10, ahead=10),
      ...     dqn=energy.DQNConfig(batch_size=4), hidden_sizes=(8, 8), slot_min=10)
      >>> system = energy.pfdrl(config)
      >>> watts = np.tile([0.0] * 10 + [2.0] * 30 + [80.0] * 20, 4)[None, :, None]
      >>> old, new = (
      ...     energy.build_neighborhood(watts),
      ...     energy.build_neighborhood(1.2 * watts),
      ... )
      >>> state = system.init(jax.random.key(0), old, alpha=2)
      >>> own = add_home(system, jax.random.key(1), state, old, new)
      >>> same = lambda name: jnp.array_equal(
      ...     own.control.params[name]["kernel"], state.control.params[name]["kernel"])
      >>> [bool(same(name)) for name in ("dense_1", "dense_2", "dense_3")]
      [True, True, False]

    References:
      Chapter 2, section 2.3, a new home; Collins et al., ICML 2021, section 5.
    """
    hyper = state.hyper | {name: x[0] for name, x in state.control.hyper.items()}
    # Copies, because ``simulate`` donates the buffers.
    fresh = system.init(key, new_homes, **jax.tree.map(jnp.copy, hyper))
    alike = (new_homes.kind[:, None] == neighborhood.kind[None]) & neighborhood.present[
        None
    ]
    has_kind = jnp.any(alike, axis=1)
    weights = alike / jnp.maximum(jnp.sum(alike, axis=1, keepdims=True), 1)

    def initialize(shared, fresh, trained):
        def one(fresh, trained):
            mean = jnp.tensordot(weights, trained, 1, precision="highest")
            use_mean = (has_kind & shared).reshape(-1, *[1] * (fresh.ndim - 1))
            return jnp.where(use_mean, mean.astype(fresh.dtype), fresh)

        return jax.tree.map(one, fresh, trained)

    forecaster, control = system.shared(state)
    each = lambda shared, fresh, trained: {
        name: initialize(shared[name], fresh[name], trained[name]) for name in fresh
    }
    public = _public(state.fit_mail, state.fits.layers)
    layers = each(forecaster, fresh.fits.layers, public)
    public = _public(state.control_mail, state.control.params)
    params = each(control, fresh.control.params, public)
    target = jax.tree.map(jnp.copy, params)
    return fresh._replace(
        fits=fresh.fits._replace(layers=layers),
        control=fresh.control._replace(params=params, target=target),
        fit_mail=_initial_buffer(fresh.fit_mail, layers),
        control_mail=_initial_buffer(fresh.control_mail, params),
    )


def _public(mail, layers):
    """Returns the broadcast layers; with noise, the noisy ones."""
    noisy = isinstance(mail, federated.NoisyMessageBuffer)
    return layers | mail.public if noisy else layers


def _initial_buffer(mail, layers):
    """Returns a message buffer whose public layers are the initial ones."""
    if not isinstance(mail, federated.NoisyMessageBuffer):
        return mail
    public = {name: layers[name] for name in mail.public}
    return mail._replace(public=jax.tree.map(jnp.copy, public))


def days_to_reach(
    saved_wh,
    standby_wh,
    slots_a_day: int,
    *,
    optimal=None,
    minutes=None,
    fraction: float = 0.95,
    last: int = LAST_DAYS,
) -> LearningTime:
    """Returns the days after which homes save a fraction of their final saving.

    A day counts if it reaches ``fraction`` of the final saving and, if given, of the
    final rate of optimal actions, because switching off everything saves all standby.
    All later days must also reach it. Days without standby are ignored.

    Args:
      saved_wh, standby_wh: ``float[slots, homes]``, results of ``simulate`` for agents,
        summed over the devices of a home. An incomplete last day is ignored.
      slots_a_day: 1440 divided by ``slot_min``.
      optimal, minutes: sums like ``saved_wh``; None uses only the saving, which is
        nearly equivalent if devices are in use for less than ``1 - fraction`` of all
        minutes.
      fraction: fraction of the final result, in (0, 1].
      last: number of last days that define the final result.

    Returns:
      ``LearningTime`` with the first day that counts; 0 if there is none or the final
      saving is 0.

    Raises:
      TypeError: if only one of ``optimal`` and ``minutes`` is given, or ``slots_a_day``
        or ``last`` is not an int.
      ValueError: if shapes differ, ``last`` exceeds the number of whole days, or
        ``fraction`` is out of range.

    Example:
      The saving reaches two thirds of 0.9 on day 3, and permanently on day 5.

      >>> saved = np.array([0.0, 5.0, 6.0, 1.0, 9.0, 9.0])[:, None]
      >>> days_to_reach(saved, np.full((6, 1), 10.0), 1, fraction=2 / 3, last=2)
      LearningTime(days=array([5]), final=array([0.9]))
    """
    if (optimal is None) != (minutes is None):
        raise TypeError(
            "optimal and minutes must be given together; pass both or neither."
        )
    parts = {"saved_wh": saved_wh, "standby_wh": standby_wh}
    if optimal is not None:
        parts |= {"optimal": optimal, "minutes": minutes}
    sums = {name: np.asarray(x, np.float64) for name, x in parts.items()}
    shapes = [x.shape for x in sums.values()]
    if len(shapes[0]) != 2 or len(set(shapes)) > 1:
        raise ValueError(
            f"{' and '.join(sums)} must be float[slots, homes], got shapes "
            f"{' and '.join(map(str, shapes))}."
        )
    if not 0 < fraction <= 1:
        raise ValueError(f"fraction must be in (0, 1], got {fraction!r}.")
    days = len(sums["saved_wh"]) // whole("slots_a_day", slots_a_day, least=1)
    if not whole("last", last, least=0) or last > days:
        raise ValueError(
            f"last must be in [1, {days}], the number of whole days, got {last!r}."
        )
    daily = {
        name: x[: days * slots_a_day].reshape(days, slots_a_day, -1).sum(axis=1)
        for name, x in sums.items()
    }

    def short(part, total):
        """Returns whether days fall short of the final result, and that result."""
        final = safe_divide(part[-last:].sum(axis=0), total[-last:].sum(axis=0))
        # Sums of equal days may differ by rounding.
        threshold = fraction * final * (1 - 1e-9)
        return (safe_divide(part, total) < threshold) & (total > 0), final

    saved, standby, *best = daily.values()
    below, final = short(saved, standby)
    if best:
        below |= short(*best)[0]
    permanent = ~np.logical_or.accumulate(below[::-1], axis=0)[::-1]
    enough = permanent & (standby > 0) & (final > 0)
    return LearningTime(
        np.where(enough.any(axis=0), enough.argmax(axis=0) + 1, 0), final
    )
