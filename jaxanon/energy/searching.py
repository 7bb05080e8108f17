"""Many lives of one street as one program: seeds and hyper-parameters are an axis."""

import functools

import jax
import jax.numpy as jnp

from jaxanon.energy.agent import measured
from jaxanon.energy.neighbourhood import Street
from jaxanon.energy.system import System


@functools.partial(
    jax.jit,
    static_argnames=("system", "slots_a_day", "days", "held_out", "side_by_side"),
)
def lives(
    system: System,
    seeds,
    hyper: dict,
    street: Street,
    *,
    slots_a_day: int,
    days: int,
    held_out: int,
    side_by_side: bool = False,
):
    """Lets a street learn for some days and tests it on others, once for each member.

    A member is the run that ``energy.training.train`` makes of its seed and
    hyper-parameters, up to rounding; only sums leave the program.

    Args:
      system: of ``pfdrl``; static.
      seeds: ``int[members]``.
      hyper: of ``system.init``, name -> ``float[members]``; they are not checked here.
      street: ``Street``.
      slots_a_day: 1440 over ``slot_min``.
      days, held_out: to learn from, and after those.
      side_by_side: whether by ``vmap``, which takes the memory of all; else in turn.

    Returns:
      Two dicts of ``float32[members, days]`` and ``float32[members, held_out]``, sums
      over all agents of what ``measured`` has: on days to learn from by agents at their
      best before each slot taught them. And ``bool[members]``, whether all networks are
      finite in the end: agents whose values are NaN switch everything off, and save all
      that there is.

    Example:
      >>> from jaxanon import energy
      >>> small = energy.PFDRLConfig(
      ...     forecast=energy.ForecastConfig(kind="lr", lookback=10, ahead=10),
      ...     dqn=energy.DQNConfig(batch_size=4), hidden=(8,), slot_min=10)
      >>> watts = jnp.tile(jnp.array([2.0] * 9 + [80.0]), 6)[None, :, None]
      >>> homes, hyper = energy.street(watts), {"alpha": jnp.array([0.0, 1.0])}
      >>> learned, tested, finite = lives(
      ...     energy.pfdrl(small), jnp.arange(2), hyper, homes,
      ...     slots_a_day=2, days=2, held_out=1)
      >>> learned["saved_wh"].shape, tested["minutes"].tolist(), finite.tolist()
      ((2, 2), [[20.0], [20.0]], [True, True])
    """
    total = lambda info: {name: jnp.sum(x) for name, x in info.items()}

    def one(member):
        seed, hyper = member
        init_key, run_key = jax.random.split(jax.random.key(seed))  # As ``train`` does.

        def slot(state, _):
            state, info = system.update(run_key, state, street)
            return state, total(info)

        def day(state, _):
            state, sums = jax.lax.scan(slot, state, length=slots_a_day)
            return state, total(sums)

        def test(number):
            return total(measured(system.act(state, street, number), street.present))

        def test_day(number):
            return total(jax.lax.map(test, number * slots_a_day + each))

        state = system.init(init_key, street, **hyper)
        state, learned = jax.lax.scan(day, state, length=days)
        each = jnp.arange(slots_a_day)
        tested = jax.lax.map(test_day, days + jnp.arange(held_out))
        return learned, tested, finite(state)

    members = seeds, hyper
    return jax.vmap(one)(members) if side_by_side else jax.lax.map(one, members)


def finite(state) -> jax.Array:
    """Whether all numbers of a street's networks are, ``bool[]``.

    Args:
      state: ``SystemState``.
    """
    networks = jax.tree.leaves((state.fits.layers, state.control.params))
    return jnp.stack([jnp.isfinite(leaf).all() for leaf in networks]).all()
