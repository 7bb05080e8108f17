"""Gradients and SGD steps that keep dense layers in factored form."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.kernels.factored import program
from jaxanon.kernels.factored.kernel import (
    FactoredKernel,
    Factors,
    full_gradient,
    multiply_out,
)
from jaxanon.kernels.factored.products import Use, joined
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

    The loss may be any JAX program: products with matrices are found in its trace. This
    covers ``x @ w``, ``w @ x``, ``jnp.einsum`` and the dense layers of Flax Linen, Flax
    NNX and Equinox. A matrix may be used several times, transposed, cast, and inside
    ``jit``, ``checkpoint`` and ``scan`` bodies.

    A matrix gets its ordinary gradient if it is used in another way, such as sliced,
    squared, stacked for a ``scan``, or in ``cond``. The same holds if the factors would
    be larger than the matrix. Parameters with another number of axes always get
    ordinary gradients. ``leaves_without_factors`` names all of them. The result can be
    differentiated again. In ``shard_map`` the gradient is that of the shard's
    arguments.

    Args:
      loss_fn: ``loss_fn(params, *args) -> float[]``, or ``(float[], aux)``. It receives
        an array for every ``FactoredKernel`` of ``params`` and ``args``, and its
        products use the factors. Without a rule, the kernel is multiplied out.
      has_aux: see ``jax.value_and_grad``. ``aux`` must be a tree of arrays.

    Returns:
      A function of the same arguments that returns ``(value, grads)``; ``grads`` has
      the tree of ``params`` with an array or ``Factors`` for each leaf. For ``w @ x``
      the ``inputs`` are the cotangents of the product, so ``inputsᵀ @ cotangents``
      always has the shape of the parameter.

    Raises:
      TypeError: when called, if the loss is not a scalar float.

    Example:
      >>> loss = lambda params, x: jnp.sum(x @ params["kernel"])
      >>> params = {"kernel": jnp.ones((4, 3))}
      >>> value, grads = value_and_grad(loss)(params, jnp.ones((1, 4)))
      >>> float(value), grads["kernel"].inputs.shape, grads["kernel"].cotangents.shape
      (12.0, (1, 4), (1, 3))
    """

    def call(params, *args):
        params = spread(params, args)
        leaves, treedef = jax.tree.flatten(params, is_leaf=is_leaf)
        trace = _traced(loss_fn, (params, *args), len(leaves))
        value, grads = trace.value_and_grad(len(leaves), has_aux)
        return value, treedef.unflatten(grads)

    return call


def apply_factored(fn: Callable, *args):
    """Computes ``fn(*args)`` with each ``FactoredKernel`` of ``args`` as an array.

    Products with it add a thin product, as in ``value_and_grad``. Kernels that are used
    in another way are multiplied out.

    Args:
      fn: function of trees of arrays.
      *args: trees of arrays and ``FactoredKernel``.

    Returns:
      The result of ``fn``, a tree of arrays.

    Raises:
      TypeError: if a kernel is factored and the result has a leaf that JAX cannot
        trace, such as a string.

    Example:
      >>> change = Factors(jnp.array([[1.0, 0.0]]), jnp.array([[0.5, 0.5]]))
      >>> kernel = FactoredKernel(jnp.eye(2), change)
      >>> apply_factored(lambda w, x: x @ w, kernel, jnp.array([[2.0, 1.0]]))
      Array([[1., 0.]], dtype=float32)
    """
    leaves = jax.tree.leaves(args, is_leaf=is_leaf)
    if not any(isinstance(leaf, FactoredKernel) for leaf in leaves):
        return fn(*args)
    return _traced(fn, args, 0).run({}, {})


def leaves_with_full_gradients(loss_fn: Callable, params, *args) -> list[str]:
    """Returns the paths of the leaves whose gradients are arrays."""
    found = []

    def trace(params, args):
        leaves = jax.tree.leaves(params, is_leaf=is_leaf)
        found.extend(_traced(loss_fn, (params, *args), len(leaves)).uses)

    jax.eval_shape(trace, params, args)
    paths = jax.tree_util.tree_leaves_with_path(params, is_leaf=is_leaf)
    pairs = zip(paths, found, strict=False)  # Kernels among the arguments follow.
    return [jax.tree_util.keystr(path) for (path, _), uses in pairs if not uses]


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


def sgd_steps(
    loss_fn: Callable,
    params,
    *args,
    learning_rate,
    num_steps: int,
    second_order: bool = True,
    factor: bool = True,
):
    """Takes SGD steps on one loss in a loop, with room for the factors of all steps.

    Args:
      loss_fn: ``loss_fn(params, *args) -> float[]``. See ``value_and_grad``.
      params: tree of arrays and ``FactoredKernel``.
      *args: see ``value_and_grad``.
      learning_rate: ``float[]``.
      num_steps: a Python int >= 0.
      second_order: whether gradients of the steps are differentiable or constants.
      factor: whether to keep changes of dense layers as factors.

    Returns:
      The tree with updated arrays, and with ``Factors`` appended to its kernels. It
      equals ``num_steps`` steps by ``value_and_grad`` and ``sgd_step``. A kernel is
      factored if that is cheaper for the factors of all steps.

    Raises:
      TypeError: if the loss is not a scalar float.

    Example:
      >>> loss = lambda w, x: jnp.sum(x @ w)  # The gradient is x for every column.
      >>> x = jnp.array([[1.0, 0.0, 2.0]])
      >>> moved = sgd_steps(loss, jnp.ones((3, 3)), x, learning_rate=0.5, num_steps=2)
      >>> materialize(moved)
      Array([[ 0.,  0.,  0.],
             [ 1.,  1.,  1.],
             [-1., -1., -1.]], dtype=float32)
    """
    stop = (lambda grads: grads) if second_order else jax.lax.stop_gradient
    if num_steps < 2:
        graded = value_and_grad(loss_fn) if factor else jax.value_and_grad(loss_fn)
        for _ in range(num_steps):
            _, grads = graded(params, *args)
            params = sgd_step(params, stop(grads), learning_rate)
        return params
    params = spread(params, args)
    leaves, treedef = jax.tree.flatten(params, is_leaf=is_leaf)
    trace = _traced(loss_fn, (params, *args), len(leaves), num_steps)
    if not factor:
        trace = trace._replace(uses=[()] * len(trace.uses))
    zeros = zero(trace.leaves)
    held = [_rows_held(leaf) for leaf in leaves]

    def with_room(leaf, uses):
        """Returns an array, or factors with rows of zeros for all steps.

        Steps of one shape compile once; with growing factors each would be different.
        """
        if not uses:
            return jnp.asarray(multiply_out(leaf))
        rows = num_steps * sum(use.num_rows for use in uses if not use.alias.fixed)
        kernel, factors = _parts(leaf)
        empty = lambda width: jnp.broadcast_to(zeros.astype(leaf.dtype), (rows, width))
        room = Factors(*map(empty, kernel.shape))
        return room if factors is None else _appended(factors, room)

    def whole(carry):
        return [
            FactoredKernel(_parts(leaf)[0], own) if isinstance(own, Factors) else own
            for leaf, own in zip(leaves, carry, strict=True)
        ]

    def step(carry, number):
        now = trace._replace(leaves=whole(carry) + trace.leaves[len(leaves) :])
        _, grads = now.value_and_grad(len(leaves))
        grads = stop(grads)

        def moved(own, grad, held):
            if not isinstance(grad, Factors):
                return (own - learning_rate * grad).astype(own.dtype)
            change = Factors(grad.inputs, learning_rate * grad.cotangents)
            place = held + number * len(grad.inputs)
            put = lambda all, new: jax.lax.dynamic_update_slice_in_dim(
                all, new.astype(all.dtype), place, axis=0
            )
            return Factors(*map(put, own, change))

        return [moved(*each) for each in zip(carry, grads, held, strict=True)], None

    pairs = zip(leaves, trace.uses, strict=False)
    start = [with_room(leaf, uses) for leaf, uses in pairs]
    carry, _ = jax.lax.scan(step, start, jnp.arange(num_steps))
    return treedef.unflatten(whole(carry))


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


class _Trace(NamedTuple):
    """A traced function, its leaves, and their products."""

    jaxpr: Any  # closed
    treedef: Any  # of the result
    leaves: list  # arrays and FactoredKernel
    uses: list[tuple[Use, ...]]  # products per leaf; empty if it is multiplied out

    def value_and_grad(self, number, has_aux=False):
        """Returns the value and the gradients of the first ``number`` leaves."""
        zeros = zero(self.leaves)
        tapped = [
            [use for use in uses if not use.alias.fixed] for uses in self.uses[:number]
        ]
        taps = {use.path: use.tap(zeros) for uses in tapped for use in uses}
        pairs = list(zip(self.leaves, tapped, strict=False))
        dense = {
            n: multiply_out(leaf) for n, (leaf, uses) in enumerate(pairs) if not uses
        }
        value, (caught, full) = jax.value_and_grad(
            self.run, argnums=(0, 1), has_aux=has_aux
        )(taps, dense)
        grads = [
            _joined(leaf, uses, caught) if uses else full[n]
            for n, (leaf, uses) in enumerate(pairs)
        ]
        return value, grads

    def run(self, taps, dense):
        """Evaluates the function; ``dense`` replaces leaves by number."""
        pending = {
            number: leaf.factors
            for number, (leaf, uses) in enumerate(
                zip(self.leaves, self.uses, strict=True)
            )
            if uses and _parts(leaf)[1] is not None
        }
        known = [
            _parts(leaf)[0] if uses else dense.get(number, multiply_out(leaf))
            for number, (leaf, uses) in enumerate(
                zip(self.leaves, self.uses, strict=True)
            )
        ]
        uses = {use.path: use for mine in self.uses for use in mine}
        uses = {
            path: use
            for path, use in uses.items()
            if path in taps or use.alias.leaf in pending
        }
        out = program.run(
            self.jaxpr.jaxpr, self.jaxpr.consts, known, uses, taps, pending
        )
        return self.treedef.unflatten(out)


def _traced(fn, args, num_moving, num_steps=1) -> _Trace:
    """Traces ``fn`` for the first leaves of ``args`` and every ``FactoredKernel``."""
    nodes, treedef = jax.tree.flatten(args, is_leaf=is_leaf)
    inputs = [
        number
        for number, node in enumerate(nodes)
        if number < num_moving or isinstance(node, FactoredKernel)
    ]
    results = []

    def of_leaves(leaves):
        given = dict(zip(inputs, leaves, strict=True))
        whole = [given.get(number, node) for number, node in enumerate(nodes)]
        out, result = jax.tree.flatten(fn(*treedef.unflatten(whole)))
        results.append(result)
        return out

    leaves = [nodes[number] for number in inputs]
    plain = [_parts(leaf)[0] for leaf in leaves]
    jaxpr = jax.make_jaxpr(of_leaves)(plain)
    found = program.find(jaxpr.jaxpr, plain)
    uses = [
        _kept(found, number, leaf, number < num_moving and num_steps)
        for number, leaf in enumerate(leaves)
    ]
    return _Trace(jaxpr, results[0], leaves, uses)


def _kept(found, number, leaf, num_steps) -> tuple[Use, ...]:
    """Returns the products of a leaf; empty if it is better multiplied out."""
    uses = tuple(use for use in found.uses if use.alias.leaf == number)
    held = _rows_held(leaf)
    others = number in found.others or (held and number in found.fixed)
    if others or not all(use.is_dense for use in uses):
        return ()
    if not num_steps:  # It has no gradient.
        return uses
    rows = sum(use.num_rows for use in uses if not use.alias.fixed)
    pays = rows and is_factored_cheaper(held + num_steps * rows, *leaf.shape)
    return uses if pays else ()


def _rows_held(leaf):
    factors = _parts(leaf)[1]
    return 0 if factors is None else factors.inputs.shape[-2]


def _parts(leaf):
    if isinstance(leaf, FactoredKernel):
        return leaf.kernel, leaf.factors
    return leaf, None


def _joined(leaf, uses, caught) -> Factors:
    """Returns the factors of all products, ``inputsᵀ @ cotangents`` like the leaf."""
    ends = [end.astype(leaf.dtype) for end in joined(uses, caught)]
    return Factors(*(ends if uses[0].view.rows == (0,) else reversed(ends)))


def _stepped(leaf, grad, learning_rate):
    if not isinstance(grad, Factors):
        return multiply_out(leaf) - learning_rate * grad
    kernel, held = _parts(leaf)
    change = Factors(grad.inputs, learning_rate * grad.cotangents)
    return FactoredKernel(kernel, change if held is None else _appended(held, change))


def _appended(held, change):
    join = lambda old, new: jnp.concatenate([old, new], axis=-2)
    return Factors(*map(join, held, change))
