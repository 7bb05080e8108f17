"""Reference implementation of the clipped gradient sum and the LSTM in plain loops."""

import jax
import jax.numpy as jnp
import numpy as np


def gradients(loss_fn, params, batch):
    """Returns the losses and the gradient trees of single examples."""
    alone = jax.jit(jax.value_and_grad(lambda params, x: loss_fn(params, x)[0]))
    size = len(jax.tree.leaves(batch)[0])
    examples = [jax.tree.map(lambda x, n=n: x[n : n + 1], batch) for n in range(size)]
    losses, trees = zip(*(alone(params, x) for x in examples), strict=True)
    return losses, jax.tree.map(np.asarray, trees)


def clipped_gradient_sum(trees, clip_norms, mask):
    """Clips and sums gradients; returns the sum and the norms.

    ``clip_norms`` is one number for all leaves together, or a tree with one per leaf.
    """
    total, norms = jax.tree.map(np.zeros_like, trees[0]), []
    for gradient, real in zip(trees, mask, strict=True):
        squares = jax.tree.map(lambda leaf: np.sum(leaf**2), gradient)
        if isinstance(clip_norms, float):
            norm = np.sqrt(sum(jax.tree.leaves(squares)))
            scales = jax.tree.map(lambda _, n=norm: _scale(n, clip_norms), gradient)
        else:
            norm = jax.tree.map(np.sqrt, squares)
            scales = jax.tree.map(_scale, norm, clip_norms)
        if real:
            add = lambda total, scale, leaf: total + scale * leaf
            total = jax.tree.map(add, total, scales, gradient)
        norms.append(jax.tree.map(lambda n, real=real: n * real, norm))
    return total, jax.tree.map(lambda *n: np.stack(n), *norms)


def _scale(norm, clip_norm):
    return clip_norm / norm if norm > clip_norm else 1.0


def lstm(x, kernel, recurrent, bias):
    """Computes gates and states step by step, with the arguments of ``api.lstm``."""
    hidden = cell = jnp.zeros((x.shape[0], recurrent.shape[0]), x.dtype)
    outputs = []
    for time in range(x.shape[1]):
        gates = x[:, time] @ kernel + hidden @ recurrent + bias[None]
        inputs, forget, candidate, output = jnp.split(gates, 4, axis=1)
        cell = jax.nn.sigmoid(forget) * cell
        cell = cell + jax.nn.sigmoid(inputs) * jnp.tanh(candidate)
        hidden = jax.nn.sigmoid(output) * jnp.tanh(cell)
        outputs.append(hidden)
    return jnp.stack(outputs, axis=1)
