"""Reference implementation with full matrices per client in plain loops.

A client copies all weights, takes ``jax.grad`` of the loss and updates its copy.
"""

import jax
import jax.numpy as jnp
import numpy as np


def client(loss_fn, params, batch, learning_rate, num_steps):
    """Takes SGD steps; returns ``(params, loss, grads)`` of the last step."""
    own, seen = jax.tree.map(jnp.copy, params), []
    for _ in range(num_steps):
        loss, grads = jax.value_and_grad(loss_fn)(own, batch)
        own = jax.tree.map(lambda p, g: p - learning_rate * g, own, grads)
        seen.append((loss, grads))
    return own, *seen[-1]


def gradient(inputs, cotangents):
    """Returns one client's gradient as a sum of outer products."""
    total = np.zeros((inputs.shape[1], cotangents.shape[1]))
    for row, cotangent in zip(inputs, cotangents, strict=True):
        total = total + np.outer(row, cotangent)
    return total


def weighted_sum(gradients, weights):
    """Returns the weighted sum of the clients' matrices."""
    total = np.zeros_like(gradients[0])
    for matrix, weight in zip(gradients, weights, strict=True):
        total = total + weight * matrix
    return total


def inner_product(left, right):
    """Returns the inner product of two matrices, entry by entry."""
    return sum(a * b for a, b in zip(np.ravel(left), np.ravel(right), strict=True))


def squared_norm(matrix):
    """Returns the sum of squared entries of a matrix."""
    return inner_product(matrix, matrix)
