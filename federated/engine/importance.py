"""Weight masks and layer importance scores."""

import jax
import jax.numpy as jnp


@jax.custom_jvp
def binarise(masks, threshold):
    """Returns 1 where the sigmoid of a mask reaches the threshold, else 0.

    The derivative is that of the sigmoid (straight-through estimator).

    Args:
      masks: ``float[...]``, unbounded.
      threshold: τ in [0, 1], may be traced; its derivative is 0.

    Returns:
      ``float[...]`` in the dtype of ``masks``.

    Example:
      >>> masks = jnp.array([-1.0, 0.0, 2.0])
      >>> binarise(masks, 0.5), jax.grad(lambda x: binarise(x, 0.5).sum())(masks)[1]
      (Array([0., 1., 1.], dtype=float32), Array(0.25, dtype=float32))

    References:
      Atlas, equations 3.1 to 3.3; Bengio, Léonard and Courville, arXiv 1308.3432; Li et
      al., FedMask, SenSys 2021.
    """
    # Compares logits, because sigmoids of all weights at every step are expensive.
    least = jax.scipy.special.logit(jnp.asarray(threshold, masks.dtype))
    return (masks >= least).astype(masks.dtype)


@binarise.defjvp
def _binarised_jvp(primals, tangents):
    masks, threshold = primals
    gate = jax.nn.sigmoid(masks)
    return binarise(masks, threshold), gate * (1 - gate) * tangents[0]


def apply_masks(params, masks, threshold):
    """Sets weights to 0 where the mask is below the threshold.

    Args:
      params: tree of arrays.
      masks: tree like ``params``.
      threshold: see ``binarise``.

    Example:
      >>> apply_masks(jnp.array([3.0, 4.0]), jnp.array([-1.0, 1.0]), 0.5)
      Array([0., 4.], dtype=float32)
    """
    gate = lambda w, e: w * binarise(e, threshold)
    return jax.tree.map(gate, params, masks)


def gradients(gradient, params, masks, threshold):
    """Converts a gradient of the masked weights to gradients of weights and masks.

    This is post-processing: if the given gradient is private, so are the results.

    Args:
      gradient: tree like ``params``, gradient with respect to ``apply_masks(...)``.
      params, masks, threshold: see ``apply_masks``.

    Returns:
      Two trees like ``params``.

    Example:
      >>> gradients(jnp.array([2.0]), jnp.array([3.0]), jnp.array([0.0]), 0.5)
      (Array([2.], dtype=float32), Array([1.5], dtype=float32))
    """
    weights, back = jax.vjp(lambda w, e: apply_masks(w, e, threshold), params, masks)
    # Noise may have changed the dtype.
    return back(jax.tree.map(lambda g, w: g.astype(w.dtype), gradient, weights))


def along_layers(params, masks):
    """Returns the change of weights if all masks of a layer move by the same amount.

    Its product with a gradient of the masked weights, summed over a layer, is the
    derivative of the loss by that amount. This is the straight-through estimator for a
    mask shared by the layer.

    Args:
      params, masks: see ``apply_masks``.

    Returns:
      Tree like ``params``, weights times the derivative of the sigmoid at their masks.

    Example:
      >>> along_layers(jnp.array([3.0, 4.0]), jnp.zeros(2))
      Array([0.75, 1.  ], dtype=float32)
    """

    def slope(weight, mask):
        gate = jax.nn.sigmoid(mask)
        return weight * gate * (1 - gate)

    return jax.tree.map(slope, params, masks)


def scores(masks: dict) -> dict:
    """Returns the importance of each layer, the mean sigmoid of its masks.

    The paper does not specify how a matrix of masks is reduced to one number.

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


def select_layers(found: dict, threshold, max_layers: int | None = None) -> dict:
    """Selects the global layers, whose score reaches the threshold.

    Args:
      found: result of ``scores``.
      threshold: τ, may be traced.
      max_layers: maximum number of layers. The largest scores are selected; ties are
        broken by name.

    Returns:
      Dict of ``bool[]``.

    Example:
      >>> found = {"a": jnp.float32(0.6), "b": jnp.float32(0.4), "c": jnp.float32(0.9)}
      >>> chosen = select_layers(found, 0.5, max_layers=1)
      >>> {name: bool(x) for name, x in chosen.items()}
      {'a': False, 'b': False, 'c': True}
    """
    names = sorted(found)
    values = jnp.stack([jnp.asarray(found[name]) for name in names])
    chosen = values >= threshold
    if max_layers is not None:
        rank = jnp.argsort(jnp.argsort(-values, stable=True), stable=True)
        chosen &= rank < max_layers
    return {name: chosen[number] for number, name in enumerate(names)}


def per_layer(of_layer: dict, tree: dict) -> dict:
    """Broadcasts one number per layer to the layer's leaves."""
    return {
        name: jax.tree.map(lambda leaf, x=of_layer[name]: x, layer)
        for name, layer in tree.items()
    }
