"""Clipped gradient sums (ghost clipping) with argument checks."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.kernels.clipping import layer_groups as grouping
from jaxanon.kernels.clipping.bounded import BoundedSum
from jaxanon.kernels.factored.api import leaves_with_full_gradients
from jaxanon.kernels.ghost import clip, examples
from jaxanon.kernels.varying import spread


class ExampleInfo(NamedTuple):
    """Losses and gradient norms per example; they are as private as the examples."""

    losses: jax.Array  # float[B]; 0 where masked
    norms: Any  # tree of clip_norms, float[B] each, before clipping; 0 where masked


def clipped_gradient_sum(loss_fn, params, batch, clip_norms, *, groups=None, mask=None):
    """Sums the clipped per-example gradients, mostly without computing them.

    It needs one forward and one backward pass. A weight's per-example gradient is a
    product of the layer's inputs and output cotangents. Its norm follows from these
    factors, and the clipped sum over all examples is one more product. The loss may be
    any JAX program: products with parameters are found in its trace.

    - **From factors**: parameters used only as one side of matrix products or as
      convolution kernels. This covers ``x @ w``, ``w @ x``, ``einsum`` without a batch
      axis on the parameter, ``jaxanon.kernels.matmul``, ``jaxanon.kernels.lstm`` and
      Flax's ``Dense``, ``DenseGeneral``, ``Conv`` and ``ConvTranspose``. A parameter
      may be used several times, transposed, cast, and inside ``jit``, ``checkpoint``
      and ``scan`` bodies. Factors larger than the gradient are multiplied out (see
      ``is_factored_cheaper``).
    - **Per-example gradients**, ``float[B, ...]``, from the same backward pass: all
      other parameters (see ``leaves_without_factors``). Examples are biases, scales,
      indexed embeddings, grouped convolutions, and layers stacked for a ``scan``. Also
      kernels that are sliced, joined or reshaped before use (Flax's
      ``OptimizedLSTMCell``), and parameters in ``cond``, ``while_loop`` or functions
      with custom gradients.
      The result is the same, but memory use equals that of ``vmap(grad)``.

    Args:
      loss_fn: ``loss_fn(params, batch) -> float[B]``, one loss per example. It is
        traced for a batch of one and mapped over the examples, so layers that mix
        examples, such as batch normalisation, see a single example. Randomness such as
        dropout would be shared: put one key per example into ``batch``.
      params: array or tree of arrays ``float[...]``.
      batch: array or tree of arrays ``[B, ...]``; B may be 0.
      clip_norms: C_m, in the units of one example's gradient. One number > 0 bounds the
        whole gradient. A tree prefix of ``params`` bounds each part (per layer). With
        ``groups`` it is a dict from label to number. Numbers may be traced.
      groups: tree prefix of ``params`` with labels (strings).
      mask: ``bool[B]``, False for padding, which may hold any values. None is all True.

    Returns:
      ``BoundedSum`` and ``ExampleInfo``. The sum has the tree of ``params``, in at
      least float32, and is not divided by B. In ``shard_map`` it covers the shard's
      examples: ``psum`` its ``value`` and ``squared_weights``, but not its bounds.
      Clipping follows ``clip_rows``: an example within its bound counts in full, and a
      larger one is multiplied by C / norm. An example is excluded from a group if its
      gradient is not finite or its squared norm overflows. Norms are computed in at
      least float32. Norms from several rows of factors, which may cancel, are rounded
      up by a relative 1e-6 of the rows to stay upper bounds.

    Raises:
      TypeError: if a leaf of ``params`` is not real floating point, or ``mask`` is not
        bool.
      ValueError: if ``loss_fn`` does not return ``float[B]``, the arrays of ``batch``
        differ in their first axis, ``mask`` has another length, a Python number as
        bound is <= 0, or ``clip_norms`` or ``groups`` does not fit the tree.

    Example:
      >>> loss_fn = lambda w, x: x @ w  # The gradient of each example is x.
      >>> x = jnp.array([[3.0, 4.0], [0.0, 2.0]])
      >>> total, info = clipped_gradient_sum(loss_fn, jnp.ones(2), x, 2.5)
      >>> total.value, info.norms
      (Array([1.5, 4. ], dtype=float32), Array([5., 2.], dtype=float32))

    References:
      Abadi et al., Deep learning with differential privacy, CCS 2016, algorithm 1;
      Goodfellow, arXiv 1510.01799, for norms from factors; Rochette et al.,
      arXiv 1912.06015, for convolutions; Bu et al., arXiv 2210.00038, for the weighted
      product in one backward pass.
    """
    leaves, treedef = jax.tree.flatten(params)
    _check_params(leaves)
    batch, mask = _checked_batch(batch, mask)
    clip_norms = grouping.numbers("clip_norms", clip_norms)
    group_of = grouping.group_of_leaves(params, clip_norms, groups)
    bounds, bounds_tree = jax.tree.flatten(clip_norms)
    # Otherwise examples of all shards would be summed before clipping.
    leaves = spread([jnp.asarray(leaf) for leaf in leaves], batch)
    plan = examples.plan(loss_fn, leaves, treedef, batch)
    losses, gradients = examples.losses_and_gradients(plan, leaves, batch)
    squares = [jnp.zeros(len(mask), jnp.float32)] * len(bounds)
    for group, gradient in zip(group_of, gradients, strict=True):
        squares[group] = squares[group] + clip.squared_norms(gradient)
    weights = [
        clip.weights(square, bound, mask)
        for square, bound in zip(squares, bounds, strict=True)
    ]
    sums = [
        clip.weighted_sum_of(gradient, weights[group], leaf)
        for gradient, group, leaf in zip(gradients, group_of, leaves, strict=True)
    ]
    norms = [jnp.where(mask, jnp.sqrt(square), 0) for square in squares]
    count = jnp.sum(mask, dtype=jnp.float32)
    total = BoundedSum(
        treedef.unflatten(sums), clip_norms, count, None if groups is None else group_of
    )
    info = ExampleInfo(jnp.where(mask, losses, 0), bounds_tree.unflatten(norms))
    return total, info


def leaves_without_factors(loss_fn, params, batch) -> list[str]:
    """Names parameters whose gradients are not stored as factors.

    A loss per example, ``float[B]``, gives the parameters that need per-example
    gradients in ``clipped_gradient_sum``. A mean loss, ``float[]``, gives those with
    ordinary gradients in ``value_and_grad``. It uses shapes only and computes no
    gradients.

    Args:
      loss_fn: ``loss_fn(params, batch) -> float[B]`` or ``float[]``.
      params, batch: see ``clipped_gradient_sum``; leaves may be
        ``jax.ShapeDtypeStruct``.

    Returns:
      Paths in the format of ``jax.tree_util.keystr``, in leaf order.

    Raises:
      ValueError: if ``loss_fn`` returns neither ``float[B]`` nor ``float[]``.

    Example:
      >>> loss_fn = lambda p, x: jnp.sum(x @ p["kernel"] + p["bias"][None], axis=1)
      >>> params = {"kernel": jnp.ones((2, 3)), "bias": jnp.ones(3)}
      >>> leaves_without_factors(loss_fn, params, jnp.ones((4, 2)))
      ["['bias']"]
      >>> mean_loss_fn = lambda p, x: jnp.mean(loss_fn(p, x))
      >>> leaves_without_factors(mean_loss_fn, params, jnp.ones((1, 2)))
      ["['bias']"]
    """
    if getattr(jax.eval_shape(loss_fn, params, batch), "shape", None) == ():
        return leaves_with_full_gradients(loss_fn, params, batch)
    treedef = jax.tree.structure(params)
    found = []

    def trace(leaves, batch):
        found.extend(examples.plan(loss_fn, leaves, treedef, batch).uses)

    jax.eval_shape(trace, jax.tree.leaves(params), batch)
    paths = [path for path, _ in jax.tree_util.tree_leaves_with_path(params)]
    pairs = zip(paths, found, strict=True)
    return [jax.tree_util.keystr(path) for path, uses in pairs if not uses]


def clipped_gradient_bytes(loss_fn, params, batch) -> int:
    """Returns the bytes of per-example gradients held by ``clipped_gradient_sum``.

    It counts factors or, for parameters without factors, gradients. It uses shapes
    only and computes no gradients.

    Args:
      loss_fn, params, batch: see ``leaves_without_factors``.

    Returns:
      A Python int, without the memory of an ordinary backward pass.

    Raises:
      ValueError: if ``loss_fn`` does not return ``float[B]``.

    Example:
      Per example: rows of 2 and 3 numbers instead of 6 weights, and 3 biases.

      >>> loss_fn = lambda p, x: jnp.sum(x @ p["kernel"] + p["bias"][None], axis=1)
      >>> params = {"kernel": jnp.ones((2, 3)), "bias": jnp.ones(3)}
      >>> clipped_gradient_bytes(loss_fn, params, jnp.ones((4, 2))) // 4
      32
    """
    leaves, treedef = jax.tree.flatten(params)

    def gradients(leaves, batch):
        plan = examples.plan(loss_fn, leaves, treedef, batch)
        found = examples.losses_and_gradients(plan, leaves, batch)[1]
        return [gradient.value for gradient in found]

    held = jax.tree.leaves(jax.eval_shape(gradients, leaves, batch))
    return sum(leaf.size * leaf.dtype.itemsize for leaf in held)


def _check_params(leaves):
    for leaf in leaves:
        dtype = jnp.result_type(leaf)
        if not jnp.issubdtype(dtype, jnp.floating):
            raise TypeError(
                f"params must be real floating point, got a leaf of dtype {dtype}; "
                "close over parameters that are not trained."
            )


def _checked_batch(batch, mask):
    batch = jax.tree.map(jnp.asarray, batch)
    shapes = [x.shape for x in jax.tree.leaves(batch)]
    if not shapes or not all(shapes) or len({shape[0] for shape in shapes}) > 1:
        raise ValueError(
            f"batch must have arrays [B, ...] with one B, got shapes {shapes}; stack "
            "the examples along a leading axis."
        )
    size = shapes[0][0]
    mask = jnp.ones(size, bool) if mask is None else jnp.asarray(mask)
    if mask.dtype != bool:
        raise TypeError(
            f"mask must be bool, got dtype {mask.dtype}; scale the loss to weight it."
        )
    if mask.shape != (size,):
        raise ValueError(
            f"mask must be bool[{size}], one per example, got shape {mask.shape}."
        )
    return batch, mask
