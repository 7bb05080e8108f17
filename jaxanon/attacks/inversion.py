"""Gradient inversion: reconstruction of a client's window from its gradient."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from jaxanon import kernels


class Inverted(NamedTuple):
    """A reconstruction from a gradient."""

    window: jax.Array  # float32[*window_shape]
    label: jax.Array  # float32[*label_shape], probabilities
    distance: jax.Array  # float32[], relative distance from the sent gradient


def client_gradient(
    key,
    loss_fn: Callable,
    params,
    windows,
    labels,
    *,
    clip_norm: float | None = None,
    noise_multiplier: float = 0.0,
):
    """Computes a client's message: the mean gradient of its windows.

    With ``clip_norm``, it is that of DP-SGD: each window's gradient is clipped, and
    Gaussian noise is added to their sum before division.

    Args:
      key: typed PRNG key of the noise.
      loss_fn: ``(params, window, label) -> float[]``, the loss of a window. Labels are
        probabilities.
      params: tree of ``float`` arrays.
      windows: ``float[batch, time, channels]``.
      labels: ``float[batch, classes]``, one-hot.
      clip_norm: bound on the L2 norm of a window's gradient, > 0. None does not clip.
      noise_multiplier: standard deviation of the noise over ``clip_norm``, >= 0.

    Returns:
      A tree like ``params``.

    Raises:
      ValueError: if there is noise without ``clip_norm``; see also
        ``kernels.clipped_sum``.

    Example:
      >>> loss_fn = lambda params, window, label: params * jnp.sum(window[0] * label)
      >>> windows, labels = jnp.array([[[3.0]], [[1.0]]]), jnp.ones((2, 1))
      >>> send = lambda **options: client_gradient(
      ...     jax.random.key(0), loss_fn, jnp.ones(()), windows, labels, **options)
      >>> float(send()), float(send(clip_norm=2.0))  # 3 and 1; 2 and 1
      (2.0, 1.5)

    References:
      Abadi et al., Deep learning with differential privacy, CCS 2016, algorithm 1.
    """
    if clip_norm is None and noise_multiplier:
        raise ValueError(
            f"noise_multiplier {noise_multiplier!r} requires clip_norm, because noise "
            "does not hide unbounded gradients."
        )
    rows = jax.vmap(jax.grad(loss_fn), in_axes=(None, 0, 0))(params, windows, labels)
    if clip_norm is None:
        return jax.tree.map(lambda leaf: jnp.mean(leaf, axis=0), rows)
    total = kernels.clipped_sum(rows, clip_norm)
    noisy = kernels.add_noise_to_sum(key, total, noise_multiplier)
    return jax.tree.map(lambda leaf: leaf / len(windows), noisy)


def invert_gradient(
    key,
    loss_fn: Callable,
    params,
    gradient,
    window_shape: tuple[int, ...],
    label_shape: tuple[int, ...],
    *,
    steps: int = 300,
    restarts: int = 4,
) -> Inverted:
    """Searches for a window whose gradient equals the sent one ("deep leakage").

    L-BFGS changes a random window and label until the model's gradient on them equals
    the client's gradient; the server and all clients know the model. The best of
    several parallel starts is returned. The network must be twice differentiable
    (tanh, sigmoid, softplus); ReLU networks resist. Few windows per gradient work best.

    Args:
      key: typed PRNG key of the starts.
      loss_fn: ``(params, window, label) -> float[]``, where ``window`` has shape
        ``window_shape`` and ``label`` has shape ``label_shape``, with probabilities
        along the last axis. For a batch, both shapes start with the batch size and the
        loss is the mean.
      params: parameters at which the client computed the gradient.
      gradient: sent gradient. Has the structure of ``params``.
      window_shape: such as ``(time, channels)``.
      label_shape: such as ``(classes,)``.
      steps: number of L-BFGS steps, at least 1.
      restarts: number of starts, at least 1.

    Returns:
      ``Inverted``. ``distance`` is ``‖sent − reconstructed‖² / ‖sent‖²``: near 0 if the
      window explains the gradient, near 1 or above if noise dominates.

    Raises:
      ValueError: if ``steps`` or ``restarts`` is below 1, or ``gradient`` is not a tree
        like ``params``.

    Example:
      >>> loss_fn = lambda params, window, label: -jnp.sum(
      ...     label * jax.nn.log_softmax(jnp.tanh(window[:, 0] @ params)))
      >>> params = jax.random.normal(jax.random.key(0), (3, 6))
      >>> window, label = jnp.array([[0.5], [-1.0], [0.25]]), jax.nn.one_hot(0, 6)
      >>> sent = client_gradient(
      ...     jax.random.key(1), loss_fn, params, window[None], label[None])
      >>> found = invert_gradient(
      ...     jax.random.key(2), loss_fn, params, sent, (3, 1), (6,), restarts=2)
      >>> found.window.ravel().round(2)
      Array([ 0.5 , -1.  ,  0.25], dtype=float32)

    References:
      Zhu, Liu, Han, Deep leakage from gradients, NeurIPS 2019, algorithm 1.
    """
    for name, value in (("steps", steps), ("restarts", restarts)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value!r}.")
    wanted, got = jax.tree.map(jnp.shape, params), jax.tree.map(jnp.shape, gradient)
    if wanted != got:
        raise ValueError(
            f"gradient must be a tree like params, {wanted}, got {got}; pass the "
            "result of jax.grad(loss_fn)(params, ...)."
        )
    shapes = (tuple(window_shape), tuple(label_shape))
    return _invert(loss_fn, shapes, steps, restarts, key, params, gradient)


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _invert(loss_fn, shapes, steps, restarts, key, params, gradient):
    norm = _squared_norm(gradient)
    norm = jnp.where(norm > 0, norm, 1.0)
    solver = optax.lbfgs()

    def distance(dummy):
        window, logits = dummy
        mine = jax.grad(loss_fn)(params, window, jax.nn.softmax(logits))
        return _squared_norm(jax.tree.map(jnp.subtract, mine, gradient)) / norm

    def step(carry, _):
        dummy, state, best, least = carry
        value, slope = optax.value_and_grad_from_state(distance)(dummy, state=state)
        closer = value < least
        best = jax.tree.map(lambda new, old: jnp.where(closer, new, old), dummy, best)
        updates, state = solver.update(
            slope, state, dummy, value=value, grad=slope, value_fn=distance
        )
        dummy = optax.apply_updates(dummy, updates)
        return (dummy, state, best, jnp.where(closer, value, least)), None

    def start(key):
        keys = jax.random.split(key)
        dummy: Any = tuple(map(jax.random.normal, keys, shapes))
        carry = dummy, solver.init(dummy), dummy, jnp.float32(jnp.inf)
        (_, _, best, least), _ = jax.lax.scan(step, carry, length=steps)
        return best, least

    dummies, distances = jax.vmap(start)(jax.random.split(key, restarts))
    closest = jnp.argmin(distances)
    window, logits = jax.tree.map(lambda leaf: leaf[closest], dummies)
    return Inverted(window, jax.nn.softmax(logits), distances[closest])


def _squared_norm(tree):
    return sum(jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(tree))


def dense_input(gradient, size: int) -> jax.Array | None:
    """Recovers the input of a dense layer with bias from one example's gradient.

    The kernel's gradient is the outer product of the input and the bias's gradient.
    The input follows exactly, or by least squares under noise, for any later layers.
    A mean gradient yields a mixture of the examples' inputs.

    Args:
      gradient: tree in which a dense layer is a dict of ``kernel``, ``float[size, n]``,
        and ``bias``, ``float[n]``, as in Flax. The first such layer is used.
      size: number of inputs of the layer.

    Returns:
      ``float[size]``. It is zero if the bias's gradient is zero, and None if there is
      no such layer.

    Example:
      >>> x, slope = jnp.array([1.0, -2.0]), jnp.array([0.5, 0.0, 2.0])
      >>> layer = {"kernel": jnp.outer(x, slope), "bias": slope}
      >>> dense_input({"first": layer}, 2)
      Array([ 1., -2.], dtype=float32)

    References:
      Geiping, Bauermeister, Dröge, Moeller, Inverting gradients: how easy is it to
      break privacy in federated learning?, NeurIPS 2020, proposition 3.1.
    """
    is_layer = lambda tree: isinstance(tree, dict) and {"kernel", "bias"} <= set(tree)
    layers = filter(is_layer, jax.tree.leaves(gradient, is_leaf=is_layer))
    for layer in layers:
        kernel, bias = layer["kernel"], layer["bias"]
        if kernel.shape == (size, *bias.shape):
            weight = jnp.sum(bias**2)
            return kernel @ bias / jnp.where(weight > 0, weight, 1.0)
    return None


def correlation(window, rebuilt) -> jax.Array:
    """Computes Pearson's correlation of two windows over all their values.

    Args:
      window: ``float[...]``.
      rebuilt: array of the same shape.

    Returns:
      ``float[]`` in [-1, 1]; 0 if either is constant.

    Raises:
      ValueError: if the shapes differ.

    Example:
      >>> correlation(jnp.array([1.0, 2.0, 3.0]), jnp.array([3.0, 0.0, 3.0]))
      Array(0., dtype=float32)
    """
    if jnp.shape(window) != jnp.shape(rebuilt):
        raise ValueError(
            f"window and rebuilt must have one shape, got {jnp.shape(window)} and "
            f"{jnp.shape(rebuilt)}."
        )
    one, other = (_centred(jnp.ravel(x)) for x in (window, rebuilt))
    scale = jnp.linalg.norm(one) * jnp.linalg.norm(other)
    ratio = one @ other / jnp.where(scale > 0, scale, 1.0)
    return jnp.where(scale > 0, jnp.clip(ratio, -1.0, 1.0), 0.0)


def _centred(x):
    """Subtracts the mean, after scaling so that squares neither overflow nor vanish."""
    _, exponent = jnp.frexp(jnp.max(jnp.abs(x), initial=0))
    x = jnp.ldexp(x, -exponent)  # Powers of two are exact.
    return x - jnp.mean(x)
