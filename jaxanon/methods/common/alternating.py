"""Centrally trained systems: components that update in turn on pooled batches."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from jaxanon.core.method import Method, Schedule
from jaxanon.federated.engine.algorithm import State, hyper_arrays


class Component(NamedTuple):
    """Parameter groups that are trained with their own loss and optimizer.

    The optimizer is any Optax transformation without extra arguments. It receives each
    group as a tree, with a state of its own per group, and ``learning_rate`` says how
    its updates are applied:

    - The name of a hyper-parameter: each step subtracts that learning rate times the
      update, so that a sweep can vary it. The optimizer has no learning rate of its
      own; use ``optax.scale_by_adam``, not ``optax.adam``.
    - An ``optax.Schedule``: likewise, with the learning rate at the number of the
      component's earlier steps.
    - ``None``: the updates are added, as by ``optax.apply_updates``. Use this for
      complete optimizers, such as ``optax.lamb(1e-3)``.

    ``optax.flatten`` around an element-wise optimizer keeps the compiled program small
    for networks with many leaves. It changes the results of LAMB, LARS or Adafactor,
    which treat each layer separately.

    ``loss_fn(key, params, hyper, batch, given) -> (loss, (info, aux))``: ``info`` is
    a dict of ``float[]``; ``aux`` is a dict of the groups that the forward pass
    updates, such as running statistics, and may be ``{}``. ``params`` holds all
    groups; those of other components receive no gradient.

    Alternatively, ``gradient_fn(key, trained, hyper, batch) -> (gradients, info)``
    returns the gradients of the component's own groups.
    """

    groups: tuple[str, ...]  # parameter groups to train
    loss_fn: Any = None  # as above; None if gradient_fn is set
    steps: int = 1  # steps per round
    fresh: bool = False  # draw a new batch and new noise after the first step
    # (key, params, hyper, batch) -> ``given``, computed once for all steps of a round
    given_fn: Callable | None = None
    when_fn: Callable | None = None  # (round) -> bool[], whether to train; None: always
    rest_fn: Callable | None = None  # (params) -> bool[], whether to skip the round
    # as above; a name for all groups, or a tuple with a name per group
    learning_rate: str | tuple[str, ...] | optax.Schedule | None = "learning_rate"
    optimizer: optax.GradientTransformation = optax.flatten(optax.scale_by_adam())
    accumulate: bool = False  # sum the gradients over the steps of a round
    gradient_fn: Callable | None = None

    @property
    def learning_rates(self) -> dict[str, str]:
        """Names of the learning-rate hyper-parameters, by group, if they are named."""
        names = self.learning_rate
        if names is None or callable(names):
            return {}
        names = (names,) * len(self.groups) if isinstance(names, str) else names
        return dict(zip(self.groups, names, strict=True))


class BatchSource(NamedTuple):
    """Functions that prepare data and draw batches.

    ``draw_fn(key, data, copy) -> batch``, where ``copy`` (``int32[]``) is the index of
    the model copy that receives the batch, and 0 for a single model.
    """

    prepare_fn: Callable  # (Clients) -> data on the device
    draw_fn: Callable
    rounds_per_epoch_fn: Callable  # (data) -> int
    windows_per_round: int  # summed over copies
    copies: int | None = None  # number of models trained in parallel


def central(
    name: str,
    config,
    spec,
    source: BatchSource,
    *,
    init_fn: Callable,
    components: tuple[Component, ...],
    hyper: dict,
    anonymize_fn: Callable | None = None,
    finish_fn: Callable | None = None,
) -> Method:
    """Builds a method whose components train in turn on pooled windows.

    Each round draws one batch. The components take their steps on it in order, and
    each step uses the current parameters. With ``source.copies``, parameters have a
    leading axis ``copies`` and the copies train in parallel, for example one model per
    public class.

    Args:
      name, config, spec: fields of ``Method``.
      source: batch source.
      init_fn: ``key -> params``, a dict of groups, for one copy.
      components: components, in the order in which they train.
      hyper: hyper-parameter names and defaults, stored as arrays in the state.
      anonymize_fn: ``(key, params, windows) -> windows``, both standardised; None if
        the caller sets ``Method.anonymize``.
      finish_fn: ``(key, state, data) -> groups``, called at the end of a round to
        update groups that are not trained, such as class means.

    Returns:
      ``Method``; its ``info`` comes from the last step of each component.

    Raises:
      ValueError: if ``hyper`` lacks a component's learning rate.

    Example:
      This system learns the mean of its windows with plain SGD at learning rate 1.

      >>> from jaxanon import datasets
      >>> from jaxanon.methods.common import pool
      >>> data = datasets.load("smartwatch")
      >>> source = BatchSource(
      ...     lambda clients: pool.pool(data.spec, clients),
      ...     lambda key, data, copy: data, lambda data: 1, windows_per_round=1)
      >>> def loss_fn(key, params, hyper, batch, given):
      ...     error = params["net"] - jnp.mean(batch.windows)
      ...     return 0.5 * error**2, ({"error": error}, {})
      >>> component = Component(("net",), loss_fn, optimizer=optax.identity())
      >>> method = central(
      ...     "mean", None, data.spec, source,
      ...     init_fn=lambda key: {"net": jnp.ones(())},
      ...     components=(component,), hyper={"learning_rate": 1.0},
      ...     anonymize_fn=lambda key, params, windows: windows)
      >>> prepared = method.prepare(datasets.by_client(data.train))
      >>> state, _ = method.update(
      ...     jax.random.key(1), method.init(jax.random.key(0)), prepared)
      >>> abs(float(state.params["net"])) < 1e-3  # Windows are standardised.
      True
    """
    for component in components:
        for size in component.learning_rates.values():
            if size not in hyper:
                raise ValueError(
                    f"hyper must have {size!r}, got {sorted(hyper)}; the component "
                    f"of {component.groups} uses it as its learning rate."
                )
    components = tuple(map(_with_scheduled_optimizer, components))
    moved = {group: each for each in components for group in each.groups}

    def begin(key):
        params = init_fn(key)
        opt_state = {g: p.optimizer.init(params[g]) for g, p in moved.items()}
        return params, opt_state

    @jax.jit  # Eager initialization takes seconds.
    def start(key):
        if source.copies is None:
            return begin(key)
        return jax.vmap(begin)(jax.random.split(key, source.copies))

    def init(key, **values):
        arrays = hyper_arrays(hyper, values)
        params, opt_state = start(key)
        return State(jnp.zeros((), jnp.int32), params, opt_state, arrays)

    def one_round(key, copy, state, data):
        draw_key, *keys = jax.random.split(key, 1 + len(components))
        draw = lambda key: source.draw_fn(key, data, copy)
        batch = draw(draw_key)
        learned, infos = (state.params, state.opt_state), {}
        for component, component_key in zip(components, keys, strict=True):
            turn = lambda learned, component=component, key=component_key: _turn(
                component, key, learned, state.hyper, batch, draw
            )
            learned, info = _train_if_active(component, state.round, turn, learned)
            infos |= info
        return learned, infos

    def update(key, state, data):
        round_key, finish_key = jax.random.split(jax.random.fold_in(key, state.round))
        if source.copies is None:
            learned, info = one_round(round_key, jnp.int32(0), state, data)
        else:
            axes: tuple = None, 0, 0, None  # Axis of copies.
            state_axes = State(*axes)
            learned, info = jax.vmap(one_round, in_axes=(0, 0, state_axes, None))(
                jax.random.split(round_key, source.copies),
                jnp.arange(source.copies),
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
        prepare=source.prepare_fn,
        init=init,
        update=update,
        schedule=Schedule(
            source.rounds_per_epoch_fn, lambda data: source.windows_per_round, "windows"
        ),
        anonymize=None if anonymize_fn is None else anonymize,
    )


def _with_scheduled_optimizer(component):
    """Moves a component's schedule of learning rates into its optimizer."""
    if not callable(component.learning_rate):
        return component
    scale = optax.scale_by_learning_rate(component.learning_rate)
    return component._replace(
        optimizer=optax.chain(component.optimizer, scale), learning_rate=None
    )


def _train_if_active(component, round_, turn, learned):
    """Trains a component, or returns zeros as its info if it skips the round."""
    if component.when_fn is None and component.rest_fn is None:
        return turn(learned)
    active = True if component.when_fn is None else component.when_fn(round_)
    if component.rest_fn is not None:
        active &= ~component.rest_fn(learned[0])
    turn = jax.jit(turn, inline=True)  # Trace once for eval_shape and cond.
    _, like = jax.eval_shape(turn, learned)
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), like)
    rest = lambda learned: (learned, zeros)
    return jax.lax.cond(active, turn, rest, learned)


def _turn(component, key, learned, hyper, batch, draw):
    """Runs all steps of a component; returns ``(learned, info)`` of the last step."""
    given_key, loss_key, draw_key = jax.random.split(key, 3)
    given = None
    if component.given_fn is not None:
        given = component.given_fn(given_key, learned[0], hyper, batch)
    zeros = {
        group: jax.tree.map(jnp.zeros_like, learned[0][group])
        for group in component.groups
    }

    def step(carry, index):
        learned, total = carry
        key, now = loss_key, batch
        if component.fresh and component.steps > 1:
            key = jax.random.fold_in(loss_key, index)
            other = draw(jax.random.fold_in(draw_key, index))
            first = lambda old, new: jnp.where(index == 0, old, new)
            now = jax.tree.map(first, batch, other)
        learned, total, info = _step(component, key, learned, total, hyper, now, given)
        return (learned, total), info

    if component.steps == 1:
        (learned, _), info = step((learned, zeros), jnp.int32(0))
        return learned, info
    (learned, _), infos = jax.lax.scan(
        step, (learned, zeros), jnp.arange(component.steps)
    )
    return learned, jax.tree.map(lambda leaf: leaf[-1], infos)


def _step(component, key, learned, total, hyper, batch, given):
    params, opt_state = map(dict, learned)
    trained = {group: params[group] for group in component.groups}

    def loss_fn(trained):
        frozen = jax.lax.stop_gradient(params)
        return component.loss_fn(key, frozen | trained, hyper, batch, given)

    if component.gradient_fn is None:
        grads, (info, aux) = jax.grad(loss_fn, has_aux=True)(trained)
    else:
        (grads, info), aux = component.gradient_fn(key, trained, hyper, batch), {}
    if component.accumulate:
        total = grads = jax.tree.map(jnp.add, total, grads)
    for group, own in grads.items():
        steps, opt_state[group] = component.optimizer.update(
            own, opt_state[group], params[group]
        )
        if component.learning_rate is None:
            params[group] = optax.apply_updates(params[group], steps)
        else:
            size = hyper[component.learning_rates[group]]
            move = lambda param, step, size=size: param - size * step
            params[group] = jax.tree.map(move, params[group], steps)
    aux = jax.lax.stop_gradient(aux)
    return (params | aux, opt_state), total, info


def by_epoch(make: Callable[[int], Method]) -> Method:
    """Builds a method whose update depends on the number of rounds per epoch.

    Args:
      make: ``rounds_per_epoch -> Method``. Only ``update`` may depend on the number.

    Returns:
      ``Method``; the rebuilding adds no computation or compilation.
    """
    method = make(1)

    def update(key, state, data):
        rounds = method.schedule.rounds_per_epoch(data)
        return make(rounds).update(key, state, data)

    return method._replace(update=update)


def with_phases(method: Method, **fields) -> Method:
    """Returns the method with the given fields of its ``Schedule`` replaced."""
    return method._replace(schedule=method.schedule._replace(**fields))


def during(rounds: int, first: int, end: int | None = None) -> Callable:
    """Returns ``round -> bool[]``, true in the epochs of ``[first, end)``.

    Example:
      >>> during(10, 1, 2)(19), during(10, 1, 2)(20), during(10, 1)(20)
      (True, False, True)
    """
    if end is None:
        return lambda number: number >= first * rounds
    return lambda number: (number >= first * rounds) & (number < end * rounds)
