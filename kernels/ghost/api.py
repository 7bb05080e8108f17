"""The clipped gradient sum: what it takes, what it promises, what it refuses."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.kernels.clipping import groups as grouping
from jaxanon.kernels.clipping.bounded import BoundedSum
from jaxanon.kernels.ghost import clip, examples
from jaxanon.kernels.varying import spread


class ExampleInfo(NamedTuple):
    """What was seen of each example: as private as the examples themselves."""

    losses: jax.Array  # float[B]; 0 where masked
    norms: Any  # tree of clip_norms, float[B] each: before clipping; 0 where masked


def clipped_gradient_sum(loss_fn, params, batch, clip_norms, *, groups=None, mask=None):
    """Sums the clipped gradients of all examples, most of which are never made.

    One pass forward and one back. A weight's gradient for one example is a product of
    what went into the layer and what came back out of it; its norm follows from these
    two, and the clipped sum over all examples is one more product, in the place of the
    ordinary gradient's. The loss may be any JAX program: it is traced, and the products
    with parameters are found in the trace.

    - **From factors**: a parameter that is only ever one side of a matrix product or
      the kernel of a convolution (``x @ w``, ``w @ x``, ``einsum`` without a batch axis
      on the parameter, ``jaxanon.kernels.matmul``, ``jaxanon.kernels.lstm``, Flax's
      ``Dense``, ``DenseGeneral``, ``Conv``, ``ConvTranspose``), however often, inside
      ``jit``, ``checkpoint`` and the body of a ``scan`` too, transposed or in another
      precision. Where one example meets the weight in so many rows that the factors
      are larger than its gradient (``pays``), they are multiplied out.
    - **Per-example gradients**, ``float[B, ...]``, from the same pass back: all other
      parameters (``leaves_without_factors`` names them). So biases, scales, embeddings
      that are indexed, kernels of grouped convolutions, kernels that are sliced, joined
      or reshaped before use (Flax's ``OptimizedLSTMCell``), stacked layers that a
      ``scan`` runs over, parameters in ``cond``, ``while_loop`` or a function with a
      gradient of its own. The result is the same; the memory is that of ``vmap(grad)``
      for these parameters.

    Args:
      loss_fn: ``loss_fn(params, batch) -> float[B]``, one loss for each example. It is
        traced for a batch of one and mapped over the examples, so none can see another;
        a layer that mixes examples, as batch normalisation does, sees one alone. What
        is random in it, such as dropout, would be the same for all: put a key for each
        example into ``batch``.
      params: array or tree of arrays ``float[...]``.
      batch: array or tree of arrays ``[B, ...]``; B may be 0.
      clip_norms: C_m, in the units of the gradient of one example's loss. One number
        > 0 bounds the whole gradient, a tree of numbers that is a prefix of ``params``
        what is beneath each of them (per layer); with ``groups``, a dict from label to
        number. The numbers may be traced.
      groups: tree of labels (strings) that is a prefix of ``params``.
      mask: ``bool[B]``, False where an example is padding: it adds nothing, whatever it
        holds. None is all True.

    Returns:
      ``BoundedSum`` and ``ExampleInfo``. The sum has the tree of ``params``, in float32
      for half precision; not divided by B, and in ``shard_map`` of the shard's own
      examples (``psum`` its ``value`` and ``squared_weights``, not its bounds). An
      example within its bound counts in full, a larger one is multiplied by C / norm,
      one that is not finite, or whose squared norm overflows, is left out (of that
      group), as in ``clip_rows``. Norms are taken in float32, in float64 for float64.
      From factors of several rows, which may cancel in the sum, they are rounded up by
      what that can hide, some 1e-6 of the rows before they cancel.

    Raises:
      TypeError: if a leaf of ``params`` is not real floating point, or ``mask`` not
        bool.
      ValueError: if ``loss_fn`` does not return ``float[B]``, the arrays of ``batch``
        have no common first axis, ``mask`` has another length, a bound is a Python
        number <= 0, or ``clip_norms`` or ``groups`` does not fit the tree.

    Example:
      >>> loss_fn = lambda w, x: x @ w  # The gradient of each example is x.
      >>> x = jnp.array([[3.0, 4.0], [0.0, 2.0]])
      >>> total, info = clipped_gradient_sum(loss_fn, jnp.ones(2), x, 2.5)
      >>> total.value, info.norms
      (Array([1.5, 4. ], dtype=float32), Array([5., 2.], dtype=float32))

    References:
      Abadi et al., Deep learning with differential privacy, CCS 2016, algorithm 1;
      Goodfellow, arXiv 1510.01799, for norms from factors; Rochette et al.,
      arXiv 1912.06015, for convolutions; Bu et al., arXiv 2210.00038, for the product
      with weights in one pass back.
    """
    leaves, treedef = jax.tree.flatten(params)
    _check_params(leaves)
    batch, mask = _checked_batch(batch, mask)
    clip_norms = grouping.numbers("clip_norms", clip_norms)
    group_of = grouping.group_of_leaves(params, clip_norms, groups)
    bounds, bounds_tree = jax.tree.flatten(clip_norms)
    # Else examples of all shards would be added before they are clipped.
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
    """Names the parameters whose gradients ``clipped_gradient_sum`` makes one by one.

    From shapes alone; nothing is computed.

    Args:
      loss_fn, params, batch: as in ``clipped_gradient_sum``; leaves may be
        ``jax.ShapeDtypeStruct``.

    Returns:
      Paths as ``jax.tree_util.keystr`` writes them, in the order of the leaves.

    Raises:
      ValueError: if ``loss_fn`` does not return ``float[B]``.

    Example:
      >>> loss_fn = lambda p, x: jnp.sum(x @ p["kernel"] + p["bias"][None], axis=1)
      >>> params = {"kernel": jnp.ones((2, 3)), "bias": jnp.ones(3)}
      >>> leaves_without_factors(loss_fn, params, jnp.ones((4, 2)))
      ["['bias']"]
    """
    treedef = jax.tree.structure(params)
    found = []

    def trace(leaves, batch):
        found.extend(examples.plan(loss_fn, leaves, treedef, batch).uses)

    jax.eval_shape(trace, jax.tree.leaves(params), batch)
    paths = [path for path, _ in jax.tree_util.tree_leaves_with_path(params)]
    pairs = zip(paths, found, strict=True)
    return [jax.tree_util.keystr(path) for path, uses in pairs if not uses]


def clipped_gradient_bytes(loss_fn, params, batch) -> int:
    """Bytes of what ``clipped_gradient_sum`` holds of all examples' gradients at once.

    Factors where it keeps those, gradients where it makes them. From shapes alone;
    nothing is computed.

    Args:
      loss_fn, params, batch: as ``leaves_without_factors`` takes them.

    Returns:
      A Python int; what a pass back through the loss holds anyway is not in it.

    Raises:
      ValueError: if ``loss_fn`` does not return ``float[B]``.

    Example:
      Four examples: a row of 2 and one of 3 in place of 6 weights, and 3 biases.

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
                "close over what is not trained."
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
            f"mask must be bool, got dtype {mask.dtype}; scale the loss for weights."
        )
    if mask.shape != (size,):
        raise ValueError(
            f"mask must have one bool for each of {size} examples, got shape "
            f"{mask.shape}."
        )
    return batch, mask
