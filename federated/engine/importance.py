"""Layer importance masks: which weights count, and what that says of their layer."""

import jax
import jax.numpy as jnp


@jax.custom_jvp
def binarise(masks, threshold):
    """1 where the sigmoid of a mask reaches the threshold, else 0.

    Its derivative is the sigmoid's, as if it were not rounded: the straight-through
    estimator.

    Args:
      masks: ``float[...]``, real numbers.
      threshold: τ in [0, 1], may be traced; no derivative is taken by it.

    Returns:
      ``float[...]`` of the type of ``masks``.

    Example:
      >>> masks = jnp.array([-1.0, 0.0, 2.0])
      >>> binarise(masks, 0.5), jax.grad(lambda x: binarise(x, 0.5).sum())(masks)[1]
      (Array([0., 1., 1.], dtype=float32), Array(0.25, dtype=float32))

    References:
      Atlas, equations 3.1 to 3.3; Bengio, Léonard and Courville, arXiv 1308.3432; Li et
      al., FedMask, SenSys 2021.
    """
    # Of numbers, for sigmoids of all weights at every step would cost as much as they.
    least = jax.scipy.special.logit(jnp.asarray(threshold, masks.dtype))
    return (masks >= least).astype(masks.dtype)


@binarise.defjvp
def _binarised_jvp(primals, tangents):
    masks, threshold = primals
    gate = jax.nn.sigmoid(masks)
    return binarise(masks, threshold), gate * (1 - gate) * tangents[0]


def apply_masks(params, masks, threshold):
    """The weights that a model has: those whose mask is below the threshold are 0.

    Args:
      params: tree of arrays.
      masks: likewise.
      threshold: see ``binarise``.

    Example:
      >>> apply_masks(jnp.array([3.0, 4.0]), jnp.array([-1.0, 1.0]), 0.5)
      Array([0., 4.], dtype=float32)
    """
    gate = lambda w, e: w * binarise(e, threshold)
    return jax.tree.map(gate, params, masks)


def gradients(gradient, params, masks, threshold):
    """What a gradient of the masked weights is for the weights and for the masks.

    Where the one hides examples behind noise, these do: they look at nothing else that
    is private.

    Args:
      gradient: tree like ``params``, of a loss with respect to ``apply_masks(...)``.
      params, masks, threshold: see ``apply_masks``.

    Returns:
      Two trees like ``params``.

    Example:
      >>> gradients(jnp.array([2.0]), jnp.array([3.0]), jnp.array([0.0]), 0.5)
      (Array([2.], dtype=float32), Array([1.5], dtype=float32))
    """
    weights, back = jax.vjp(lambda w, e: apply_masks(w, e, threshold), params, masks)
    # Behind noise it is of the noise's type.
    return back(jax.tree.map(lambda g, w: g.astype(w.dtype), gradient, weights))


def along_layers(params, masks):
    """Where weights go as all masks of a layer move by one and the same number.

    A gradient of the masked weights, times this and summed over a layer, is the slope
    of the loss by that number: the straight-through estimator of the layer's mask, in
    place of those of its entries.

    Args:
      params, masks: see ``apply_masks``.

    Returns:
      Tree like ``params``: weights times the sigmoid's slope at their masks.

    Example:
      >>> along_layers(jnp.array([3.0, 4.0]), jnp.zeros(2))
      Array([0.75, 1.  ], dtype=float32)
    """

    def slope(weight, mask):
        gate = jax.nn.sigmoid(mask)
        return weight * gate * (1 - gate)

    return jax.tree.map(slope, params, masks)


def scores(masks: dict) -> dict:
    """The importance of each layer, the mean of its masks' sigmoids.

    How a matrix of them becomes one number the paper leaves open.

    Args:
      masks: dict of layers, each a tree of arrays.

    Returns:
      Dict of ``float[]`` in (0, 1).

    Example:
      >>> scores({"a": jnp.zeros(3)})
      {'a': Array(0.5, dtype=float32)}
    """

    def score(layer):
        leaves = jax.tree.leaves(layer)
        total = sum(jnp.sum(jax.nn.sigmoid(leaf)) for leaf in leaves)
        return total / sum(leaf.size for leaf in leaves)

    return {name: score(layer) for name, layer in masks.items()}


def select_layers(found: dict, threshold, most: int | None = None) -> dict:
    """Which layers are global: those whose score reaches the threshold.

    Args:
      found: of ``scores``.
      threshold: τ, may be traced.
      most: so many of them at most, those with the largest scores; ties by name.

    Returns:
      Dict of ``bool[]``.

    Example:
      >>> found = {"a": jnp.float32(0.6), "b": jnp.float32(0.4), "c": jnp.float32(0.9)}
      >>> {name: bool(x) for name, x in select_layers(found, 0.5, most=1).items()}
      {'a': False, 'b': False, 'c': True}
    """
    names = sorted(found)
    values = jnp.stack([jnp.asarray(found[name]) for name in names])
    chosen = values >= threshold
    if most is not None:
        place = jnp.argsort(jnp.argsort(-values, stable=True), stable=True)
        chosen &= place < most
    return {name: chosen[number] for number, name in enumerate(names)}


def per_layer(of_layer: dict, tree: dict) -> dict:
    """One number of each layer, at each of its leaves."""
    return {
        name: jax.tree.map(lambda leaf, x=of_layer[name]: x, layer)
        for name, layer in tree.items()
    }
