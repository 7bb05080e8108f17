"""Updates of dense layers as the matrices that they are: every client has its own.

Nothing here knows of factors. A client copies all weights, takes ``jax.grad`` of the
loss, and moves its copy; clients and entries are visited one after another.
"""

import jax
import jax.numpy as jnp
import numpy as np


def client(loss_fn, params, batch, learning_rate, num_steps):
    """``(params, loss, grads)`` after plain gradient steps; those of the last one."""
    own, seen = jax.tree.map(jnp.copy, params), []
    for _ in range(num_steps):
        loss, grads = jax.value_and_grad(loss_fn)(own, batch)
        own = jax.tree.map(lambda p, g: p - learning_rate * g, own, grads)
        seen.append((loss, grads))
    return own, *seen[-1]


def gradient(inputs, cotangents):
    """The matrix of one client, row by row: the sum of outer products."""
    total = np.zeros((inputs.shape[1], cotangents.shape[1]))
    for row, cotangent in zip(inputs, cotangents, strict=True):
        total = total + np.outer(row, cotangent)
    return total


def weighted_sum(gradients, weights):
    """Of the clients' matrices."""
    total = np.zeros_like(gradients[0])
    for matrix, weight in zip(gradients, weights, strict=True):
        total = total + weight * matrix
    return total


def inner_product(left, right):
    """Of two matrices, entry by entry."""
    return sum(a * b for a, b in zip(np.ravel(left), np.ravel(right), strict=True))


def squared_norm(matrix):
    """Of a matrix, entry by entry."""
    return inner_product(matrix, matrix)
