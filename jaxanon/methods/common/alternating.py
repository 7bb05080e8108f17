"""Systems trained in one place: players that take turns on batches of a pool."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from jaxanon.core.method import Method, Schedule
from jaxanon.federated.engine.algorithm import State, hyper_arrays


class Component(NamedTuple):
    """A part of a system that learns by a loss of its own.

    ``loss_fn(key, params, hyper, batch, given) -> (loss, (info, kept))``: ``info`` is
    a dict of ``float[]``, ``kept`` a dict of groups that the forward pass renews, such
    as running statistics; ``{}`` where there are none. ``params`` are all groups, with
    those of other players at rest.

    Or there is a ``gradient_fn(key, moving, hyper, batch) -> (gradients, info)``, of
    the groups that it moves alone.
    """

    groups: tuple[str, ...]  # of the parameters, that it moves
    loss_fn: Any = None  # as above; None beside a gradient_fn
    steps: int = 1  # in its turn of a round
    fresh: bool = False  # a new batch, and new noise, for every step but the first
    given_fn: Callable | None = (
        None  # (key, params, hyper, batch) -> what all steps share
    )
    when_fn: Callable | None = None  # (round) -> bool[], whether it plays; None: always
    rest_fn: Callable | None = None  # (params) -> bool[], whether it rests even so
    learning_rate: str | tuple[str, ...] = (
        "learning_rate"  # hyper-parameter; one, or by group
    )
    # Element by element alone: it sees a group's leaves as one vector.
    optimizer: optax.GradientTransformation = optax.scale_by_adam()
    accumulate: bool = False  # each step's gradient is added to those before it
    gradient_fn: Callable | None = None

    @property
    def learning_rates(self) -> dict[str, str]:
        """The hyper-parameter that is each group's step size."""
        names = self.learning_rate
        names = (names,) * len(self.groups) if isinstance(names, str) else names
        return dict(zip(self.groups, names, strict=True))


class BatchSource(NamedTuple):
    """Where a system trains: what it draws, and how much of it.

    ``draw_fn(key, data, copy) -> batch`` where ``copy`` is the number of the copy of
    the system that draws (``int32[]``; 0 where there is one).
    """

    prepare_fn: Callable  # (Clients) -> data on the device, once
    draw_fn: Callable
    rounds_per_epoch_fn: Callable  # (data) -> int
    windows_per_round: int  # all copies together
    copies: int | None = None  # side by side, each with parameters of its own


def central(
    name: str,
    config,
    spec,
    room: BatchSource,
    *,
    init_fn: Callable,
    players: tuple[Component, ...],
    hyper: dict,
    anonymize_fn: Callable | None = None,
    finish_fn: Callable | None = None,
) -> Method:
    """A method whose players train in turn on pooled windows.

    A round is one batch: each player in order takes its steps on it, every step from
    the gradient at the parameters of that moment. With ``room.copies`` the parameters
    have a leading axis ``copies`` and all copies train side by side, such as one model
    for each public class.

    Args:
      name, config, spec: as in ``Method``.
      room: what is drawn.
      init_fn: ``key -> params``, a dict of groups, of one copy.
      players: in the order of their turns.
      hyper: names and defaults of the hyper-parameters, arrays in the state.
      anonymize_fn: ``(key, params, windows) -> windows``, both standardised; None for
        whoever puts an ``anonymize`` of its own into the method.
      finish_fn: ``(key, state, data) -> groups`` renewed at the end of a round beside
        what is learned, such as running class means.

    Returns:
      ``Method``; its ``info`` are those of the players' last steps.

    Raises:
      ValueError: if a player's step size is not among ``hyper``.

    Example:
      A system that learns the mean of its windows, by whole steps: ``given`` and
      ``kept`` are not needed, and one step of 1 is enough.

      >>> from jaxanon import datasets
      >>> from jaxanon.methods.common import pool
      >>> data = datasets.load("smartwatch")
      >>> room = BatchSource(
      ...     lambda clients: pool.pool(data.spec, clients),
      ...     lambda key, data, copy: data, lambda data: 1, windows_per_round=1)
      >>> def loss_fn(key, params, hyper, batch, given):
      ...     error = params["net"] - jnp.mean(batch.windows)
      ...     return 0.5 * error**2, ({"error": error}, {})
      >>> player = Component(("net",), loss_fn, optimizer=optax.identity())
      >>> method = central(
      ...     "mean", None, data.spec, room, init_fn=lambda key: {"net": jnp.ones(())},
      ...     players=(player,), hyper={"learning_rate": 1.0},
      ...     anonymize_fn=lambda key, params, windows: windows)
      >>> seen = method.prepare(datasets.by_client(data.train))
      >>> state, _ = method.update(
      ...     jax.random.key(1), method.init(jax.random.key(0)), seen)
      >>> abs(float(state.params["net"])) < 1e-3  # They are standardised.
      True
    """
    for player in players:
        for size in player.learning_rates.values():
            if size not in hyper:
                raise ValueError(
                    f"hyper must have {size!r}, got {sorted(hyper)}; it is the "
                    f"step size of the player of {player.groups}."
                )
    # Of all leaves as one: a network's hundred are as many programs in a program.
    flat = lambda player: player._replace(optimizer=optax.flatten(player.optimizer))
    players = tuple(map(flat, players))
    moved = {group: player for player in players for group in player.groups}

    def begin(key):
        params = init_fn(key)
        opt_state = {g: p.optimizer.init(params[g]) for g, p in moved.items()}
        return params, opt_state

    @jax.jit  # Operation by operation, networks take seconds to set up.
    def start(key):
        if room.copies is None:
            return begin(key)
        return jax.vmap(begin)(jax.random.split(key, room.copies))

    def init(key, **values):
        arrays = hyper_arrays(hyper, values)
        params, opt_state = start(key)
        return State(jnp.zeros((), jnp.int32), params, opt_state, arrays)

    def one_round(key, copy, state, data):
        draw_key, *keys = jax.random.split(key, 1 + len(players))
        draw = lambda key: room.draw_fn(key, data, copy)
        batch = draw(draw_key)
        learned, infos = (state.params, state.opt_state), {}
        for player, player_key in zip(players, keys, strict=True):
            turn = lambda learned, player=player, key=player_key: _turn(
                player, key, learned, state.hyper, batch, draw
            )
            learned, info = _if_it_plays(player, state.round, turn, learned)
            infos |= info
        return learned, infos

    def update(key, state, data):
        round_key, finish_key = jax.random.split(jax.random.fold_in(key, state.round))
        if room.copies is None:
            learned, info = one_round(round_key, jnp.int32(0), state, data)
        else:
            axes: tuple = None, 0, 0, None  # Which leaves have an axis of copies.
            own = State(*axes)
            learned, info = jax.vmap(one_round, in_axes=(0, 0, own, None))(
                jax.random.split(round_key, room.copies),
                jnp.arange(room.copies),
                state,
                data,
            )
            info = jax.tree.map(jnp.mean, info)
        params, opt_state = learned
        state = state._replace(params=params, opt_state=opt_state)
        if finish_fn is not None:
            renewed = finish_fn(finish_key, state, data)
            state = state._replace(params=state.params | renewed)
        return state._replace(round=state.round + 1), info

    def anonymize(key, state, windows):
        mean, std = (jnp.float32(x)[None, None] for x in (spec.mean, spec.std))
        assert anonymize_fn is not None
        rebuilt = anonymize_fn(key, state.params, (windows - mean) / std)
        return (rebuilt * std + mean).astype(jnp.float32)

    return Method(
        name=name,
        config=config,
        spec=spec,
        prepare=room.prepare_fn,
        init=init,
        update=update,
        schedule=Schedule(
            room.rounds_per_epoch_fn, lambda data: room.windows_per_round, "windows"
        ),
        anonymize=None if anonymize_fn is None else anonymize,
    )


def _if_it_plays(player, round_, turn, learned):
    """Its turn, or what a turn would have told with nothing learned."""
    if player.when_fn is None and player.rest_fn is None:
        return turn(learned)
    plays = True if player.when_fn is None else player.when_fn(round_)
    if player.rest_fn is not None:
        plays &= ~player.rest_fn(learned[0])
    turn = jax.jit(turn, inline=True)  # Traced once for its shape and its branch.
    _, like = jax.eval_shape(turn, learned)
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), like)
    rest = lambda learned: (learned, zeros)
    return jax.lax.cond(plays, turn, rest, learned)


def _turn(player, key, learned, hyper, batch, draw):
    """All steps of one player; ``(learned, info of the last)``."""
    given_key, loss_key, draw_key = jax.random.split(key, 3)
    given = None
    if player.given_fn is not None:
        given = player.given_fn(given_key, learned[0], hyper, batch)
    zeros = {
        group: jax.tree.map(jnp.zeros_like, learned[0][group])
        for group in player.groups
    }

    def step(carry, index):
        learned, total = carry
        key, now = loss_key, batch
        if player.fresh and player.steps > 1:
            key = jax.random.fold_in(loss_key, index)
            other = draw(jax.random.fold_in(draw_key, index))
            first = lambda old, new: jnp.where(index == 0, old, new)
            now = jax.tree.map(first, batch, other)
        learned, total, info = _step(player, key, learned, total, hyper, now, given)
        return (learned, total), info

    if player.steps == 1:
        (learned, _), info = step((learned, zeros), jnp.int32(0))
        return learned, info
    (learned, _), infos = jax.lax.scan(step, (learned, zeros), jnp.arange(player.steps))
    return learned, jax.tree.map(lambda leaf: leaf[-1], infos)


def _step(player, key, learned, total, hyper, batch, given):
    params, opt_state = map(dict, learned)
    moving = {group: params[group] for group in player.groups}

    def loss_fn(moving):
        resting = jax.lax.stop_gradient(params)
        return player.loss_fn(key, resting | moving, hyper, batch, given)

    if player.gradient_fn is None:
        grads, (info, kept) = jax.grad(loss_fn, has_aux=True)(moving)
    else:
        (grads, info), kept = player.gradient_fn(key, moving, hyper, batch), {}
    if player.accumulate:
        total = grads = jax.tree.map(jnp.add, total, grads)
    for group, own in grads.items():
        size = hyper[player.learning_rates[group]]
        steps, opt_state[group] = player.optimizer.update(
            own, opt_state[group], params[group]
        )
        move = lambda param, step, size=size: param - size * step
        params[group] = jax.tree.map(move, params[group], steps)
    kept = jax.lax.stop_gradient(kept)
    return (params | kept, opt_state), total, info


def by_epoch(make: Callable[[int], Method]) -> Method:
    """A method of a schedule in epochs, made anew for the rounds that data have in one.

    Args:
      make: ``rounds -> Method``, of the rounds of an epoch. Only ``update`` may differ
        from one number to another.

    Returns:
      ``Method``; nothing is computed or compiled twice for it.
    """
    method = make(1)

    def update(key, state, data):
        rounds = method.schedule.rounds_per_epoch(data)
        return make(rounds).update(key, state, data)

    return method._replace(update=update)


def with_phases(method: Method, **fields) -> Method:
    """Returns the method with other fields of its ``Schedule``."""
    return method._replace(schedule=method.schedule._replace(**fields))


def during(rounds: int, first: int, end: int | None = None) -> Callable:
    """``round -> bool[]``, whether it lies in epochs from ``first`` to before ``end``.

    Example:
      >>> during(10, 1, 2)(19), during(10, 1, 2)(20), during(10, 1)(20)
      (True, False, True)
    """
    if end is None:
        return lambda number: number >= first * rounds
    return lambda number: (number >= first * rounds) & (number < end * rounds)
