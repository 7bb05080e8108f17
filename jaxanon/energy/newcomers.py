"""A new home joins: what it is given by the street, and how soon that is enough."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon import federated
from jaxanon.energy.neighbourhood import Neighborhood
from jaxanon.energy.saving import share_of
from jaxanon.energy.system import PFDRLSystem, SystemState
from jaxanon.kernels.checks import whole

LAST_DAYS = 3  # Whose saving, of all of them together, is the one in the end.


class Reached(NamedTuple):
    """Of each home: days that it took, and what it took them to."""

    days: np.ndarray  # int64[homes]; whole days until that day's end, 0: never
    final: np.ndarray  # float64[homes]; share saved in the end


def add_home(
    system: PFDRLSystem,
    key,
    state: SystemState,
    street: Neighborhood,
    newcomers: Neighborhood,
) -> SystemState:
    """What new homes begin with in a street that has learned.

    They take the mean of what the street's devices of a kind have of every layer that
    the method shares, as from one broadcast that everybody hears. All else is fresh:
    layers of their own, memories, optimisers. A device of a kind that the street does
    not have, or any where the method shares nothing, begins with nothing. By ``live``
    they go on from the first minute of ``newcomers``, and exchange with each other as
    it says; the street's state stays as it is. Their levels and scales are those of
    ``newcomers``, found with as many of its minutes as it was made with: of whole days
    that are still to come, they know what on, standby and off are.

    Args:
      system: of ``pfdrl``, the street's.
      key: typed PRNG key, of what is fresh.
      state: the street's.
      street: as it learned.
      newcomers: a street of new homes, whose ``kind`` are those of ``street`` and whose
        first minute is that of their joining, at midnight.

    Returns:
      The newcomers' state, with the street's hyper-parameters.

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
    # Copies, for ``live`` gives the newcomers' buffers away.
    fresh = system.init(key, newcomers, **jax.tree.map(jnp.copy, hyper))
    alike = (newcomers.kind[:, None] == street.kind[None]) & street.present[None]
    heard = jnp.any(alike, axis=1)
    weights = alike / jnp.maximum(jnp.sum(alike, axis=1, keepdims=True), 1)

    def given(shared, own, theirs):
        def one(own, theirs):
            mean = jnp.tensordot(weights, theirs, 1, precision="highest")
            some = (heard & shared).reshape(-1, *[1] * (own.ndim - 1))
            return jnp.where(some, mean.astype(own.dtype), own)

        return jax.tree.map(one, own, theirs)

    forecaster, control = system.shared(state)
    each = lambda shared, own, theirs: {
        name: given(shared[name], own[name], theirs[name]) for name in own
    }
    told = _told(state.fit_mail, state.fits.layers)
    layers = each(forecaster, fresh.fits.layers, told)
    told = _told(state.control_mail, state.control.params)
    params = each(control, fresh.control.params, told)
    target = jax.tree.map(jnp.copy, params)
    return fresh._replace(
        fits=fresh.fits._replace(layers=layers),
        control=fresh.control._replace(params=params, target=target),
        fit_mail=_known(fresh.fit_mail, layers),
        control_mail=_known(fresh.control_mail, params),
    )


def _told(mail, layers):
    """What the street's agents have broadcast: where there is noise, with it."""
    noisy = isinstance(mail, federated.NoisyMessageBuffer)
    return layers | mail.public if noisy else layers


def _known(mail, layers):
    """A mailbox of those who begin with what was broadcast: that is known of them."""
    if not isinstance(mail, federated.NoisyMessageBuffer):
        return mail
    own = {name: layers[name] for name in mail.public}
    return mail._replace(public=jax.tree.map(jnp.copy, own))


def days_to_reach(
    saved_wh,
    standby_wh,
    slots_a_day: int,
    *,
    optimal=None,
    minutes=None,
    share: float = 0.95,
    last: int = LAST_DAYS,
) -> Reached:
    """After how many days homes save such a share of what they save in the end.

    A day counts if it saves so much, and if the best action is chosen such a share as
    often as in the end: who switches all off saves everything. It has to be so on all
    later days too. A day without standby neither reaches the saving nor loses it.

    Args:
      saved_wh, standby_wh: ``float[slots, homes]``, as ``live`` tells them of agents;
        sum over those of a home. What is left of a last day is not looked at.
      slots_a_day: 1440 over ``slot_min``.
      optimal, minutes: likewise; None looks at the saving alone. Where devices are in
        use for less than ``1 - share`` of all minutes, that is nearly the same.
      share: of what is in the end, in (0, 1].
      last: days that are the end, together.

    Returns:
      ``Reached``: the first day from which on it is so; 0 where it never is, and where
      nothing is saved in the end.

    Raises:
      TypeError: for ``optimal`` without ``minutes``, or ``slots_a_day`` or ``last``
        that are no whole numbers.
      ValueError: for other shapes, fewer whole days than ``last``, a share out of
        range.

    Example:
      Two thirds of 0.9 are reached on the third day, for good on the fifth.

      >>> saved = np.array([0.0, 5.0, 6.0, 1.0, 9.0, 9.0])[:, None]
      >>> days_to_reach(saved, np.full((6, 1), 10.0), 1, share=2 / 3, last=2)
      Reached(days=array([5]), final=array([0.9]))
    """
    if (optimal is None) != (minutes is None):
        raise TypeError("optimal and minutes go together: give both, or neither.")
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
    if not 0 < share <= 1:
        raise ValueError(f"share must lie in (0, 1], got {share!r}.")
    days = len(sums["saved_wh"]) // whole("slots_a_day", slots_a_day, least=1)
    if not whole("last", last, least=0) or last > days:
        raise ValueError(
            f"last must lie in [1, {days}], the whole days there are, got {last!r}."
        )
    daily = {
        name: x[: days * slots_a_day].reshape(days, slots_a_day, -1).sum(axis=1)
        for name, x in sums.items()
    }

    def short(part, total):
        """Days that fall short of it, and what it is in the end."""
        final = share_of(part[-last:].sum(axis=0), total[-last:].sum(axis=0))
        # The sums of equal days may differ in their last bits.
        least = share * final * (1 - 1e-9)
        return (share_of(part, total) < least) & (total > 0), final

    saved, standby, *best = daily.values()
    below, final = short(saved, standby)
    if best:
        below |= short(*best)[0]
    stays = ~np.logical_or.accumulate(below[::-1], axis=0)[::-1]
    enough = stays & (standby > 0) & (final > 0)
    return Reached(np.where(enough.any(axis=0), enough.argmax(axis=0) + 1, 0), final)
