"""Local training of one client: masked gradients and SGD steps."""

from typing import Any

import jax
import jax.numpy as jnp
import optax

from jaxanon.kernels.checks import whole


def masked_mean(losses, mask):
    """Averages ``losses`` (``float[n]``) over real rows; 0 without real rows.

    Raises:
      ValueError: unless there is one loss per row. A mean over the batch would include
        padding.
    """
    if jnp.shape(losses) != jnp.shape(mask):
        raise ValueError(
            f"loss_fn must return float[{len(mask)}], one loss per row, got shape "
            f"{jnp.shape(losses)}; do not average over the batch."
        )
    total = jnp.sum(jnp.where(mask, losses, 0))
    return total / jnp.maximum(jnp.sum(mask), 1).astype(losses.dtype)


def gradient(loss_fn, key, params, rows, mask):
    """Returns ``(loss, gradient)`` of the mean loss over the real rows."""
    mean = lambda params: masked_mean(loss_fn(params, rows, key), mask)
    return jax.value_and_grad(mean)(params)


def visiting_order(key, mask, shuffle):
    """Returns ``int32[n]``, real rows first, in random or given order.

    The order of real rows does not depend on the amount or position of padding.
    """
    draws = jax.random.bits(key, mask.shape, jnp.uint32)
    draws = draws[jnp.cumsum(mask) - 1]  # Assigned to real rows in sequence.
    ties = (draws,) if shuffle else ()
    return jnp.lexsort((*ties, ~mask)).astype(jnp.int32)


def visit(order, num_real, size, step):
    """Returns the rows of one step, ``size`` at a time, cycling through real rows.

    Args:
      order: result of ``visiting_order``.
      num_real: ``int32[]``, number of real rows.
      size: batch size, a Python int.
      step: ``int32[]``, from 0.

    Returns:
      Row indices ``int32[size]`` and ``bool[size]``, False for the excess entries if
      there are fewer than ``size`` real rows.

    Example:
      >>> visit(jnp.array([2, 0, 1]), 3, 2, 1)
      (Array([1, 2], dtype=int32), Array([ True,  True], dtype=bool))
    """
    place = step * jnp.minimum(size, num_real) + jnp.arange(size)
    return order[place % jnp.maximum(num_real, 1)], jnp.arange(size) < num_real


def most_steps(num_epochs, batch_size, num_rows):
    """Returns the maximum steps of a client with at most ``num_rows`` rows."""
    size = num_rows if batch_size is None else min(batch_size, num_rows)
    return max(num_epochs, -(-num_epochs * num_rows // max(size, 1)))


def count_steps(num_epochs, batch_size, mask):
    """Returns ``int32[]``, the steps of a client in this number of passes."""
    num_real = jnp.sum(mask).astype(jnp.int32)
    size = num_real if batch_size is None else jnp.minimum(batch_size, num_real)
    return -(-num_epochs * num_real // jnp.maximum(size, 1))


def optimizer_of(client_optimizer, hyper) -> optax.GradientTransformation:
    """Returns the Optax transformation of a client's steps.

    Args:
      client_optimizer: see ``RoundConfig``.
      hyper: hyper-parameters, with ``learning_rate`` unless the optimizer has its own.

    Example:
      >>> sgd = optimizer_of(None, {"learning_rate": 0.5})
      >>> sgd.update(jnp.array(2.0), sgd.init(None), jnp.array(3.0))[0]
      Array(-1., dtype=float32)
    """
    if client_optimizer is None:
        rate = hyper["learning_rate"]
        down = lambda g, w: -(rate * g).astype(w.dtype)
        return optax.GradientTransformation(
            lambda params: optax.EmptyState(),
            lambda updates, state, params=None: (
                jax.tree.map(down, updates, params),
                state,
            ),
        )
    if callable(client_optimizer):
        return client_optimizer(hyper["learning_rate"])
    return client_optimizer


def batches(key, rows, mask, batch_size=None, shuffle=True, num_epochs=None):
    """Returns ``step -> (batch, mask)``, which visits a client's rows in batches.

    Args:
      key: typed PRNG key for the order.
      rows: tree of arrays ``[n, ...]``.
      mask: ``bool[n]``.
      batch_size: Python int >= 1, clipped to n. None uses all rows at each step.
      shuffle: whether to visit rows in random order.
      num_epochs: number of passes after which no row is visited; None is unlimited.

    Example:
      >>> batch_of = batches(
      ...     jax.random.key(0), jnp.arange(3.0), jnp.ones(3, bool), 2, shuffle=False)
      >>> batch_of(1)[0]
      Array([2., 0.], dtype=float32)
    """
    if batch_size is None:
        return lambda step: (rows, mask)
    size = min(batch_size, len(mask))
    rows = jax.tree.map(jnp.asarray, rows)  # NumPy arrays do not accept traced indices.
    num_real = jnp.sum(mask)
    order = visiting_order(key, mask, shuffle)

    def batch_of(step):
        index, real = visit(order, num_real, size, step)
        if num_epochs is not None:
            place = step * jnp.minimum(size, num_real) + jnp.arange(size)
            real &= place < num_epochs * num_real
        return jax.tree.map(lambda leaf: leaf[index], rows), real

    return batch_of


def local_sgd(
    loss_fn,
    key,
    params,
    rows,
    mask,
    *,
    learning_rate=None,
    num_steps=None,
    num_epochs=None,
    batch_size,
    shuffle=True,
    unroll=1,
    direction_fn=None,
    optimizer=None,
    return_state=False,
) -> tuple[Any, ...]:
    """Takes ``num_steps`` optimizer steps on one client's rows.

    Rows are visited in random or given order, ``batch_size`` at a time, cyclically. A
    client with fewer rows than a batch uses all of them at each step. Padding is never
    visited.

    Args:
      loss_fn: ``(params, batch, key) -> float[B]``, one loss per row. It must be finite
        for a row of zeros.
      key: typed PRNG key.
      params: tree of arrays.
      rows: tree of arrays ``[n, ...]``.
      mask: ``bool[n]``.
      learning_rate: ``float[]`` of SGD, may be traced; not used with ``optimizer``.
      num_steps: Python int >= 1; None with ``num_epochs``.
      num_epochs: passes over the rows instead of ``num_steps``, a Python int >= 1.
      batch_size: Python int >= 1. None uses all rows at each step.
      shuffle: whether to visit rows in random order.
      unroll: number of unrolled steps; affects only speed.
      direction_fn: ``(params, gradient) -> tree``, which replaces the gradient, for
        example to add a penalty's gradient.
      optimizer: Optax transformation; None is SGD.
      return_state: whether to return the last state of the optimizer as well.

    Returns:
      The trained params, and the loss before each step, ``float[num_steps]``. Without
      real rows the params are unchanged and the losses are 0. With ``num_epochs``, the
      losses after a client's last step hold the mean of its losses.

    Raises:
      TypeError: for ``num_steps`` or ``batch_size`` that is not an integer.
      ValueError: if one is below 1, or ``loss_fn`` does not return one loss per row.

    Example:
      >>> loss_fn = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> x, real = jnp.array([4.0, 8.0, 0.0]), jnp.array([True, True, False])
      >>> w, losses = local_sgd(
      ...     loss_fn, jax.random.key(0), jnp.zeros(()), x, real,
      ...     learning_rate=0.5, num_steps=1, batch_size=None)
      >>> w, losses
      (Array(3., dtype=float32), Array([20.], dtype=float32))
    """
    if batch_size is not None:
        batch_size = whole("batch_size", batch_size, least=1)
    if num_epochs is None:
        most = whole("num_steps", num_steps, least=1)
        count = jnp.where(jnp.any(mask), most, 0)
    else:
        num_epochs = whole("num_epochs", num_epochs, least=1)
        most = most_steps(num_epochs, batch_size, len(mask))
        count = count_steps(num_epochs, batch_size, mask)
    may_stop = num_epochs is not None or optimizer is not None
    optimizer = optimizer or optimizer_of(None, {"learning_rate": learning_rate})
    order_key, loss_key = jax.random.split(key)
    batch_of = batches(order_key, rows, mask, batch_size, shuffle, num_epochs)

    def local_step(carry, step):
        params, opt_state = carry
        batch, real = batch_of(step)
        loss, grads = gradient(
            loss_fn, jax.random.fold_in(loss_key, step), params, batch, real
        )
        if direction_fn is not None:
            grads = direction_fn(params, grads)
        updates, opt_state = optimizer.update(grads, opt_state, params)
        after = optax.apply_updates(params, updates), opt_state
        if may_stop:
            keep = lambda new, old: jnp.where(step < count, new, old)
            after = jax.tree.map(keep, after, carry)
        return after, loss

    start = params, optimizer.init(params)
    steps = jnp.arange(most)
    (params, opt_state), losses = jax.lax.scan(
        local_step, start, steps, unroll=min(unroll, most)
    )
    if num_epochs is not None:
        taken = steps < count
        losses = jnp.where(taken, losses, masked_mean(losses, taken))
    return (params, losses, opt_state) if return_state else (params, losses)


def scaled_step(numbers, learning_rate, direction):
    """Returns ``numbers - learning_rate * direction`` in the dtype of ``numbers``.

    Example:
      >>> scaled_step({"w": jnp.array(3.0)}, 0.5, {"w": jnp.array(2.0)})
      {'w': Array(2., dtype=float32)}
    """
    down = lambda p, d: p - (learning_rate * d).astype(p.dtype)
    return jax.tree.map(down, numbers, direction)
