"""Gradient inversion: a client's window rebuilt from the gradient that it sent."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from jaxanon import kernels


class Inverted(NamedTuple):
    """What an attacker makes of a gradient."""

    window: jax.Array  # float32[*window_shape]
    label: jax.Array  # float32[*label_shape], probabilities
    distance: jax.Array  # float32[], of its gradient from the one sent, relative


def client_gradient(
    key,
    loss_fn: Callable,
    params,
    windows,
    labels,
    *,
    max_norm: float | None = None,
    noise_multiplier: float = 0.0,
):
    """What a client of federated learning sends: the mean gradient of its windows.

    With ``max_norm`` as DP-SGD has it: each window's gradient is clipped, and Gaussian
    noise added to the sum before it is divided.

    Args:
      key: typed PRNG key of the noise.
      loss_fn: ``(params, window, label) -> float[]``, of one window and its label as
        probabilities.
      params: tree of ``float`` arrays.
      windows: ``float[batch, time, channels]``.
      labels: ``float[batch, classes]``, one-hot.
      max_norm: bound on the L2 norm of a window's gradient, > 0; None clips nothing.
      noise_multiplier: deviation of the noise over ``max_norm``, >= 0.

    Returns:
      A tree like ``params``.

    Raises:
      ValueError: for noise without ``max_norm``, which nothing would bound; and as
        ``kernels.clipped_sum``.

    Example:
      >>> loss_fn = lambda params, window, label: params * jnp.sum(window[0] * label)
      >>> windows, labels = jnp.array([[[3.0]], [[1.0]]]), jnp.ones((2, 1))
      >>> send = lambda **options: client_gradient(
      ...     jax.random.key(0), loss_fn, jnp.ones(()), windows, labels, **options)
      >>> float(send()), float(send(max_norm=2.0))  # 3 and 1; 2 and 1
      (2.0, 1.5)

    References:
      Abadi et al., Deep learning with differential privacy, CCS 2016, algorithm 1.
    """
    if max_norm is None and noise_multiplier:
        raise ValueError(
            f"noise_multiplier {noise_multiplier!r} needs max_norm: without a bound on "
            "the gradients no noise hides them."
        )
    rows = jax.vmap(jax.grad(loss_fn), in_axes=(None, 0, 0))(params, windows, labels)
    if max_norm is None:
        return jax.tree.map(lambda leaf: jnp.mean(leaf, axis=0), rows)
    total = kernels.clipped_sum(rows, max_norm)
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
    """Deep leakage from gradients: looks for a window whose gradient is the one sent.

    A window of noise and a guess at its label are moved by L-BFGS until the gradient of
    the model on them is the one that the client sent: the model is known to every
    client and the server. Of several starts, side by side, the closest counts. It takes
    a network with a second derivative (tanh, sigmoid, softplus; of ReLU little comes
    back), and few windows per gradient.

    Args:
      key: typed PRNG key of the starts.
      loss_fn: ``(params, window, label) -> float[]``; ``window`` of ``window_shape``,
        ``label`` of ``label_shape``, probabilities along the last axis. For the mean
        gradient of a batch both shapes begin with the batch, and the loss is the mean.
      params: those of the model when the client took the gradient.
      gradient: a tree like ``params``, as sent.
      window_shape: such as ``(time, channels)``.
      label_shape: such as ``(classes,)``.
      steps: of L-BFGS, at least 1.
      restarts: number of starts, at least 1.

    Returns:
      ``Inverted``. ``distance`` is ``‖sent − its own‖² / ‖sent‖²``: near 0 where the
      window explains the gradient, near 1 and more where noise does.

    Raises:
      ValueError: if ``steps`` or ``restarts`` is below 1, or ``gradient`` is no tree
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
    own, sent = jax.tree.map(jnp.shape, params), jax.tree.map(jnp.shape, gradient)
    if own != sent:
        raise ValueError(
            f"gradient must be a tree like params, {own}, got {sent}; pass what "
            "jax.grad(loss_fn)(params, ...) has."
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
        own = jax.grad(loss_fn)(params, window, jax.nn.softmax(logits))
        return _squared_norm(jax.tree.map(jnp.subtract, own, gradient)) / norm

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

    found, distances = jax.vmap(start)(jax.random.split(key, restarts))
    closest = jnp.argmin(distances)
    window, logits = jax.tree.map(lambda leaf: leaf[closest], found)
    return Inverted(window, jax.nn.softmax(logits), distances[closest])


def _squared_norm(tree):
    return sum(jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(tree))


def dense_input(gradient, size: int) -> jax.Array | None:
    """What went into a dense layer with biases, from the gradient of one example.

    The gradient of the kernel is what went in times that of the biases, so one follows
    from the other, whatever comes behind the layer: exactly, or by least squares where
    there is noise. Of the mean over several examples it is a mixture of what went in.

    Args:
      gradient: tree in which a dense layer is a dict of ``kernel`` ``float[size, n]``
        and ``bias`` ``float[n]``, as Flax has them; the first such layer counts.
      size: numbers that go into the layer.

    Returns:
      ``float[size]``; zeros if no bias has a gradient; None without such a layer.

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
    """Pearson's correlation of two windows, over all their values.

    Args:
      window: ``float[...]``.
      rebuilt: of the same shape.

    Returns:
      ``float[]`` in [-1, 1]; 0 if either is constant.

    Raises:
      ValueError: if shapes differ.

    Example:
      >>> correlation(jnp.array([1.0, 2.0, 3.0]), jnp.array([3.0, 0.0, 3.0]))
      Array(0., dtype=float32)
    """
    if jnp.shape(window) != jnp.shape(rebuilt):
        raise ValueError(
            f"window and rebuilt must be of one shape, got {jnp.shape(window)} and "
            f"{jnp.shape(rebuilt)}."
        )
    one, other = (_centred(jnp.ravel(x)) for x in (window, rebuilt))
    scale = jnp.linalg.norm(one) * jnp.linalg.norm(other)
    ratio = one @ other / jnp.where(scale > 0, scale, 1.0)
    return jnp.where(scale > 0, jnp.clip(ratio, -1.0, 1.0), 0.0)


def _centred(x):
    """What is off the mean, in a unit in which no square is lost or infinite."""
    _, exponent = jnp.frexp(jnp.max(jnp.abs(x), initial=0))
    x = jnp.ldexp(x, -exponent)  # By a power of two, which keeps all digits.
    return x - jnp.mean(x)
