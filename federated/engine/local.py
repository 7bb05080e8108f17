"""One client's work: a masked gradient, or some steps of gradient descent."""

import jax
import jax.numpy as jnp

from jaxanon.kernels.checks import whole


def masked_mean(losses, mask):
    """Mean of ``losses`` (``float[n]``) over real rows; 0 where there are none.

    Raises:
      ValueError: unless there is one loss for each row. A mean over all of them would
        have padding in it.
    """
    if jnp.shape(losses) != jnp.shape(mask):
        raise ValueError(
            f"loss_fn must return float[{len(mask)}], one loss for each row, got shape "
            f"{jnp.shape(losses)}; leave out the mean over them."
        )
    total = jnp.sum(jnp.where(mask, losses, 0))
    return total / jnp.maximum(jnp.sum(mask), 1).astype(losses.dtype)


def gradient(loss_fn, key, params, rows, mask):
    """``(loss, gradient)`` of the mean loss over the real rows."""
    mean = lambda params: masked_mean(loss_fn(params, rows, key), mask)
    return jax.value_and_grad(mean)(params)


def visiting_order(key, mask, shuffle):
    """``int32[n]``: real rows first, in random or given order.

    What order real rows have does not depend on how much padding there is, nor where.
    """
    draws = jax.random.bits(key, mask.shape, jnp.uint32)
    draws = draws[jnp.cumsum(mask) - 1]  # One after another to the real rows.
    ties = (draws,) if shuffle else ()
    return jnp.lexsort((*ties, ~mask)).astype(jnp.int32)


def visit(order, num_real, size, step):
    """The rows of one step: ``size`` at a time, again from the start when they run out.

    Args:
      order: of ``visiting_order``.
      num_real: ``int32[]``, how many rows are real.
      size: of a batch, a Python int.
      step: ``int32[]``, from 0.

    Returns:
      ``int32[size]``, which rows, and ``bool[size]``, False beyond the real ones where
      there are fewer than ``size``.

    Example:
      >>> visit(jnp.array([2, 0, 1]), 3, 2, 1)
      (Array([1, 2], dtype=int32), Array([ True,  True], dtype=bool))
    """
    place = step * jnp.minimum(size, num_real) + jnp.arange(size)
    return order[place % jnp.maximum(num_real, 1)], jnp.arange(size) < num_real


def batches(key, rows, mask, batch_size=None, shuffle=True):
    """``step -> (batch, mask)``, a client's rows a batch at a time, as ``visit`` says.

    Args:
      key: typed PRNG key, of the order.
      rows: tree of arrays ``[n, ...]``.
      mask: ``bool[n]``.
      batch_size: a Python int >= 1, cut to n, or ``None`` for all rows at each step.
      shuffle: a random order, or the given one.

    Example:
      >>> batch_of = batches(
      ...     jax.random.key(0), jnp.arange(3.0), jnp.ones(3, bool), 2, shuffle=False)
      >>> batch_of(1)[0]
      Array([2., 0.], dtype=float32)
    """
    if batch_size is None:
        return lambda step: (rows, mask)
    size = min(batch_size, len(mask))
    rows = jax.tree.map(jnp.asarray, rows)  # NumPy's take no traced index.
    num_real = jnp.sum(mask)
    order = visiting_order(key, mask, shuffle)

    def batch_of(step):
        index, real = visit(order, num_real, size, step)
        return jax.tree.map(lambda leaf: leaf[index], rows), real

    return batch_of


def local_sgd(
    loss_fn,
    key,
    params,
    rows,
    mask,
    *,
    learning_rate,
    num_steps,
    batch_size,
    shuffle=True,
    unroll=1,
    direction_fn=None,
):
    """Takes ``num_steps`` steps of gradient descent on one client's rows.

    The rows are visited in random order (or as they stand), ``batch_size`` at a time,
    and again from the start when they run out; a client with fewer rows than a batch
    takes all of them at each step. Padding is never visited.

    Args:
      loss_fn: ``(params, batch, key) -> float[B]``, one loss per row. It must be finite
        for a row of zeros.
      key: typed PRNG key.
      params: tree of arrays.
      rows: tree of arrays ``[n, ...]``.
      mask: ``bool[n]``.
      learning_rate: ``float[]``, may be traced.
      num_steps: a Python int >= 1.
      batch_size: a Python int >= 1, or ``None`` for all rows at each step.
      shuffle: a fresh random order, or the given one.
      unroll: steps written out one after the other; changes no result.
      direction_fn: ``(params, gradient) -> tree``, what is gone down along in place of
        the gradient, such as one with a penalty's gradient added.

    Returns:
      The trained params, and ``float[num_steps]``, the loss before each step. Without
      a real row nothing is learned and the losses are 0.

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
    num_steps = whole("num_steps", num_steps, least=1)
    if batch_size is not None:
        batch_size = whole("batch_size", batch_size, least=1)
    order_key, loss_key = jax.random.split(key)
    batch_of = batches(order_key, rows, mask, batch_size, shuffle)

    def descend_once(params, step):
        batch, real = batch_of(step)
        loss, grads = gradient(
            loss_fn, jax.random.fold_in(loss_key, step), params, batch, real
        )
        if direction_fn is not None:
            grads = direction_fn(params, grads)
        return scaled_step(params, learning_rate, grads), loss

    steps = jnp.arange(num_steps)
    return jax.lax.scan(descend_once, params, steps, unroll=min(unroll, num_steps))


def scaled_step(numbers, learning_rate, direction):
    """``numbers - learning_rate * direction``, in the type of the numbers.

    Example:
      >>> scaled_step({"w": jnp.array(3.0)}, 0.5, {"w": jnp.array(2.0)})
      {'w': Array(2., dtype=float32)}
    """
    down = lambda p, d: p - (learning_rate * d).astype(p.dtype)
    return jax.tree.map(down, numbers, direction)
