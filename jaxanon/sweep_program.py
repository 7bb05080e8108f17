"""Many runs as one compiled program: seeds and hyper-parameters are an axis."""

import functools
import time

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon import progress, training_loop

LAYOUTS = ("side by side", "one after another")


def choose_layout(layout: str | None) -> str:
    """``layout``, or what is fast here: a CPU's caches hold one member's weights.

    Raises:
      ValueError: for a layout that there is not.
    """
    if layout is None:
        return LAYOUTS[jax.default_backend() == "cpu"]
    if layout not in LAYOUTS:
        raise ValueError(f"layout must be None or one of {LAYOUTS}, got {layout!r}.")
    return layout


def run_members(method, prepared, seeds, hyper, *, epochs, layout, show):
    """Trains the members of one group.

    Args:
      method: ``Method``.
      prepared: of ``method.prepare``; all members read the same.
      seeds: Python ints, one per member.
      hyper: one dict of floats per member, of the same names.
      epochs: as ``train`` takes it.
      layout: one of ``LAYOUTS``.
      show: whether to show progress.

    Returns:
      A list of ``(state, history)`` as ``train`` makes them; arrays are on the host.
    """
    seeds = jnp.asarray(seeds, jnp.int32)
    arrays = {
        name: jnp.asarray([each[name] for each in hyper], jnp.result_type(float))
        for name in hyper[0]
    }
    states = _init(method.init, seeds, arrays)
    per_epoch = method.rounds_per_epoch(prepared)
    work = method.work_per_round(prepared)
    total, done = epochs * per_epoch, 0
    histories: list[list[dict]] = [[] for _ in seeds]
    with progress.rounds(total, 0, show=show, epochs=epochs) as tell:
        while done < total:
            start = time.monotonic()
            num = training_loop.rounds_of_call(done, per_epoch)
            states, infos = _rounds(method.update, layout, seeds, states, prepared, num)
            infos = {name: np.asarray(value) for name, value in infos.items()}
            seconds = time.monotonic() - start
            done += num
            rows = [
                {
                    "round": done,
                    "epoch": done / per_epoch,
                    "losses": {name: float(each[i]) for name, each in infos.items()},
                    "seconds": seconds,
                    progress.rate_of(method): num * work / seconds,
                }
                for i in range(len(seeds))
            ]
            for history, row in zip(histories, rows, strict=True):
                history.append(row)
            tell(_of_all(rows))
    host = jax.tree.map(np.asarray, states)
    pick = lambda index: jax.tree.map(lambda leaf: leaf[index], host)
    return [(pick(index), history) for index, history in enumerate(histories)]


def _of_all(rows):
    """What to show of the members' rows: mean losses, work done together."""
    mean = {
        name: float(np.mean([row["losses"][name] for row in rows]))
        for name in rows[0]["losses"]
    }
    name = next(name for name in rows[0] if name.endswith(progress.RATE))
    rate = sum(row[name] for row in rows)
    return rows[0] | {"losses": mean, name: rate}


@functools.partial(jax.jit, static_argnames="init")
def _init(init, seeds, hyper):
    def of_member(seed, values):
        init_key, _ = jax.random.split(jax.random.key(seed))  # As ``train`` does.
        return init(init_key, **values)

    return jax.vmap(of_member)(seeds, hyper)


@functools.partial(
    jax.jit, static_argnames=("update", "layout"), donate_argnames="states"
)
def _rounds(update, layout, seeds, states, data, num):
    """``num`` rounds of every member, and the mean of each one's info over them."""

    a_round = jax.jit(update, inline=True)  # Traced once for its shape and the loop.

    def of_member(seed, state):
        _, key = jax.random.split(jax.random.key(seed))
        _, like = jax.eval_shape(a_round, key, state, data)
        zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), like)

        def body(_, carry):
            state, total = carry
            state, info = a_round(key, state, data)
            return state, jax.tree.map(jnp.add, total, info)

        state, total = jax.lax.fori_loop(0, num, body, (state, zeros))
        return state, jax.tree.map(lambda leaf: leaf / num, total)

    if layout == "side by side":
        return jax.vmap(of_member)(seeds, states)
    return jax.lax.map(lambda member: of_member(*member), (seeds, states))
