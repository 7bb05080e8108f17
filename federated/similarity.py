"""How much clients' models differ, and which clusters that makes."""

import jax
import jax.numpy as jnp

from jaxanon.kernels.checks import whole


def divergences(outputs, temperature, *, numbers: bool = False):
    """Kullback-Leibler divergences of what clients' models say of the same rows.

    One product of two matrices: no pair of clients is looked at by itself.

    Args:
      outputs: ``float[clients, q, classes]``, logits for q rows; or numbers.
      temperature: T > 0 that logits are divided by, may be traced.
      numbers: outputs are means of Gaussians whose deviation is T, not logits.

    Returns:
      ``float[clients, clients]``, in nats, the mean over rows of KL(i, j); its diagonal
      is 0 up to rounding.

    Example:
      >>> logits = jnp.log(jnp.array([[[0.5, 0.5]], [[0.25, 0.75]]]))
      >>> found = divergences(logits, 1.0)  # ln 2 / √3 and ln 3 3/4 - ln 2.
      >>> round(float(found[0, 1]), 4), round(float(found[1, 0]), 4)
      (0.1438, 0.1308)

    References:
      Ouyang et al., ClusterFL, MobiSys 2021, which softens outputs by T = 6.
    """
    num, rows = outputs.shape[:2]
    high = jax.lax.Precision.HIGHEST
    if numbers:
        flat = (outputs / temperature).reshape(num, -1)
        squares = jnp.sum(flat**2, axis=1)
        inner = jnp.matmul(flat, flat.T, precision=high)
        apart = squares[:, None] + squares[None, :] - 2 * inner
        return jnp.maximum(apart, 0) / (2 * rows)
    log = jax.nn.log_softmax(outputs / temperature, axis=-1).reshape(num, -1)
    share = jnp.exp(log)
    own = jnp.sum(share * log, axis=1)[:, None]
    return (own - jnp.matmul(share, log.T, precision=high)) / rows


def memberships(found, seen, num_clusters: int):
    """How much each client belongs to each cluster: principal components, clipped.

    The rows of ``found`` are centred; their components along the first principal axes,
    each so turned that the largest is positive, are clipped at 0, and columns scaled to
    length 1. Of two groups one is on the positive side of the first axis; the other
    belongs to no cluster, unless another axis tells it.

    Args:
      found: ``float[clients, clients]``, of ``divergences``.
      seen: ``bool[clients]``; others belong nowhere and count for nothing.
      num_clusters: columns, a Python int from 1 to the number of clients.

    Returns:
      ``float[clients, num_clusters]``, not negative; columns of length 1, or 0 where
      clients differ along fewer axes.

    Raises:
      ValueError: for a number of clusters out of its range.

    Example:
      >>> apart = jnp.array([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
      >>> memberships(apart, jnp.ones(3, bool), 2).round(3)
      Array([[0., 0.],
             [0., 0.],
             [1., 0.]], dtype=float32)

    References:
      Ouyang et al., ClusterFL, MobiSys 2021.
    """
    num = whole("num_clusters", num_clusters, least=1)
    if num > len(found):
        raise ValueError(
            f"num_clusters must be at most the {len(found)} clients there are, got "
            f"{num_clusters!r}."
        )
    both = seen[:, None] & seen[None, :]
    rows = jnp.where(both, found, 0)
    mean = jnp.sum(rows, axis=0) / jnp.maximum(jnp.sum(seen), 1)
    centred = jnp.where(both, rows - mean[None, :], 0)
    vectors, lengths, _ = jnp.linalg.svd(centred)
    vectors = vectors[:, :num]
    size = jnp.abs(vectors)
    # Of entries as large as each other but for rounding, the first one decides.
    large = size >= 0.999 * jnp.max(size, axis=0)[None, :]
    turn = jnp.sign(jnp.take_along_axis(vectors, jnp.argmax(large, axis=0)[None], 0))
    kept = jnp.maximum(turn * vectors, 0)
    norms = jnp.sqrt(jnp.sum(kept**2, axis=0))
    rounding = 30 * jnp.finfo(lengths.dtype).eps * jnp.maximum(lengths[0], 1)
    real = lengths[:num] > rounding
    scaled = kept / jnp.where(norms > 0, norms, 1)[None, :]
    return jnp.where(real[None, :] & seen[:, None], scaled, 0)
