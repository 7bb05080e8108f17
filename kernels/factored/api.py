"""Gradients and SGD steps that keep dense layers in factored form."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxanon.kernels.factored.kernel import (
    Calls,
    FactoredKernel,
    Factors,
    full_gradient,
    multiply_out,
)
from jaxanon.kernels.varying import spread, zero


def is_leaf(node) -> bool:
    """Returns whether a node is a ``FactoredKernel`` or ``Factors``."""
    return isinstance(node, FactoredKernel | Factors)


def is_factored_cheaper(rows: int, d_in: int, d_out: int) -> bool:
    """Returns whether ``rows`` rows of factors are smaller than their product.

    Args:
      rows: rows that a client has trained this layer on, over all its steps.
      d_in: inputs of the layer.
      d_out: outputs of the layer.

    Returns:
      ``rows * (d_in + d_out) < d_in * d_out``, a Python bool.

    Example:
      >>> (
      ...     is_factored_cheaper(1, 768, 512),
      ...     is_factored_cheaper(20, 25, 128),
      ...     is_factored_cheaper(21, 25, 128),
      ... )
      (True, True, False)
    """
    return rows * (d_in + d_out) < d_in * d_out


def value_and_grad(loss_fn: Callable, *, has_aux: bool = False) -> Callable:
    """Returns ``jax.value_and_grad`` with matrix gradients as ``Factors``.

    The loss must apply its matrices with ``jaxanon.kernels.matmul``, as the layers of
    ``jaxanon.models`` do. A matrix gets its ordinary gradient if it is used in another
    way, more than once, or inside a transformation in the loss (``scan``, ``vmap``,
    ``jit``). The same holds if the factors would be larger than the matrix. Other
    parameters always get ordinary gradients. The result can be differentiated again. In
    ``shard_map`` the gradient is that of the shard's arguments.

    Args:
      loss_fn: ``loss_fn(params, *args) -> float[]``, or ``(float[], aux)``; ``params``
        is a tree of arrays and ``FactoredKernel``.
      has_aux: see ``jax.value_and_grad``.

    Returns:
      A function of the same arguments that returns ``(value, grads)``; ``grads`` has
      the tree of ``params`` with an array or ``Factors`` for each leaf.

    Raises:
      TypeError: when called, if the loss is not a scalar float.

    Example:
      >>> from jaxanon.kernels import matmul
      >>> loss = lambda params, x: jnp.sum(matmul(x, params["kernel"]))
      >>> params = {"kernel": jnp.ones((4, 3))}
      >>> value, grads = value_and_grad(loss)(params, jnp.ones((1, 4)))
      >>> float(value), grads["kernel"].inputs.shape, grads["kernel"].cotangents.shape
      (12.0, (1, 4), (1, 3))
    """

    def call(params, *args):
        params = spread(params, args)
        leaves, treedef = jax.tree.flatten(params, is_leaf=is_leaf)
        rows = _rows_seen(loss_fn, leaves, treedef, args)
        leaves = [_settled(leaf, r) for leaf, r in zip(leaves, rows, strict=True)]
        taps = [_tap(leaf, r) for leaf, r in zip(leaves, rows, strict=True)]

        def tapped_loss(taps):
            pairs = zip(leaves, taps, strict=True)
            tree = treedef.unflatten([_with_tap(leaf, tap) for leaf, tap in pairs])
            return loss_fn(tree, *args)

        value, grads = jax.value_and_grad(tapped_loss, has_aux=has_aux)(taps)
        return value, treedef.unflatten(grads)

    return call


def sgd_step(params, grads, learning_rate):
    """Takes an SGD step, ``params - learning_rate * grads``, in factored form.

    Args:
      params: tree of arrays and ``FactoredKernel``.
      grads: gradients from ``value_and_grad``.
      learning_rate: ``float[]``.

    Returns:
      The tree with updated arrays, and with ``Factors`` appended to their kernels.

    Raises:
      ValueError: if the two trees differ.

    Example:
      >>> change = Factors(jnp.array([[1.0, 0.0]]), jnp.array([[2.0, 4.0]]))
      >>> stepped = sgd_step({"kernel": jnp.zeros((2, 2))}, {"kernel": change}, 0.5)
      >>> materialize(stepped)["kernel"]
      Array([[-1., -2.],
             [ 0.,  0.]], dtype=float32)
    """
    step = lambda leaf, grad: _stepped(leaf, grad, learning_rate)
    return jax.tree.map(step, params, grads, is_leaf=is_leaf)


def materialize(params):
    """Returns parameters as plain arrays, with pending changes multiplied out.

    Args:
      params: tree of arrays and ``FactoredKernel``.

    Returns:
      The tree with a ``float[d_in, d_out]`` for each ``FactoredKernel``.

    Example:
      >>> change = Factors(jnp.array([[1.0, 0.0]]), jnp.array([[0.5, 0.25]]))
      >>> materialize({"kernel": FactoredKernel(jnp.eye(2), change)})["kernel"]
      Array([[ 0.5 , -0.25],
             [ 0.  ,  1.  ]], dtype=float32)
    """
    return jax.tree.map(multiply_out, params, is_leaf=is_leaf)


def materialize_gradient(grads):
    """Returns gradients as plain arrays, with ``Factors`` multiplied out.

    Args:
      grads: tree of arrays and ``Factors`` from ``value_and_grad``.

    Returns:
      The tree with ``inputsᵀ @ cotangents`` for each ``Factors``.

    Example:
      >>> thin = Factors(jnp.array([[1.0, 2.0]]), jnp.array([[3.0]]))
      >>> materialize_gradient({"kernel": thin})["kernel"]
      Array([[3.],
             [6.]], dtype=float32)
    """
    plain = lambda leaf: full_gradient(leaf) if isinstance(leaf, Factors) else leaf
    return jax.tree.map(plain, grads, is_leaf=is_leaf)


def _rows_seen(loss_fn, leaves, treedef, args):
    """Returns the rows multiplied by each leaf; 0 if taps are unsuitable."""
    calls = []

    def traced(leaves):
        # Created here because they record the current trace.
        calls.extend(Calls() if _is_matrix(leaf) else None for leaf in leaves)
        watched = [
            leaf if call is None else FactoredKernel(*_parts(leaf), calls=call)
            for leaf, call in zip(leaves, calls, strict=True)
        ]
        return loss_fn(treedef.unflatten(watched), *args)

    jax.eval_shape(traced, leaves)
    return [0 if call is None else call.rows_if_once() for call in calls]


def _is_matrix(leaf):
    return isinstance(leaf, FactoredKernel) or jnp.ndim(leaf) == 2


def _parts(leaf):
    if isinstance(leaf, FactoredKernel):
        return leaf.kernel, leaf.factors
    return leaf, None


def _settled(leaf, rows):
    """Keeps the leaf factored only while that is cheaper."""
    if not _is_matrix(leaf):
        return leaf
    kernel, factors = _parts(leaf)
    held = 0 if factors is None else factors.inputs.shape[-2]
    if rows and is_factored_cheaper(held + rows, *kernel.shape):
        return FactoredKernel(kernel, factors)
    return multiply_out(leaf)


def _tap(leaf, rows):
    if not isinstance(leaf, FactoredKernel):
        return leaf
    d_in, d_out = leaf.shape
    # Varies over a mesh as the leaf does, which was spread over the arguments' axes.
    nothing = zero(leaf.kernel).astype(leaf.dtype)
    zeros = lambda width: jnp.zeros((rows, width), leaf.dtype) + nothing
    return Factors(zeros(d_in), zeros(d_out))


def _with_tap(leaf, tap):
    if not isinstance(leaf, FactoredKernel):
        return tap
    return FactoredKernel(leaf.kernel, leaf.factors, tap)


def _stepped(leaf, grad, learning_rate):
    if not isinstance(grad, Factors):
        return multiply_out(leaf) - learning_rate * grad
    kernel, held = _parts(leaf)
    change = Factors(grad.inputs, learning_rate * grad.cotangents)
    if held is not None:
        join = lambda old, new: jnp.concatenate([old, new], axis=-2)
        change = Factors(*map(join, held, change))
    return FactoredKernel(kernel, change)
