"""Who hears whom where there is no server, and how much each message weighs."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.kernels.checks import typed_key, whole

TOLERANCE = 1e-5  # Of the sums of rows and columns, in float32.


def complete_graph(num_agents: int):
    """Everybody hears everybody, as where all broadcast to all.

    Args:
      num_agents: a Python int >= 1.

    Returns:
      ``bool[agents, agents]``: symmetric, nobody beside oneself.

    Raises:
      ValueError: for fewer than one agent.

    Example:
      >>> complete_graph(2)
      Array([[False,  True],
             [ True, False]], dtype=bool)
    """
    return ~jnp.eye(whole("num_agents", num_agents, least=1), dtype=bool)


def ring_graph(num_agents: int):
    """Everybody hears the one before and the one after; as ``complete_graph``
    otherwise.

    Example:
      >>> ring_graph(4)[0]
      Array([False,  True, False,  True], dtype=bool)
    """
    whole("num_agents", num_agents, least=1)
    return k_regular_graph(num_agents, min(2, num_agents - 1))


def k_regular_graph(num_agents: int, degree: int):
    """Everybody hears ``degree`` others, the nearest on a circle.

    An odd degree takes the one opposite as well, so that the graph is symmetric.

    Args:
      num_agents: a Python int >= 1.
      degree: from 0 to ``num_agents - 1``; even where ``num_agents`` is odd.

    Returns:
      ``bool[agents, agents]``, symmetric.

    Raises:
      ValueError: if there is no such graph.

    Example:
      >>> k_regular_graph(6, 3)[0]
      Array([False,  True, False,  True, False,  True], dtype=bool)
    """
    count = whole("num_agents", num_agents, least=1)
    degree = whole("degree", degree, least=0)
    if degree >= count or (degree % 2 and count % 2):
        raise ValueError(
            f"degree must be below num_agents, and even where that is odd, got degree "
            f"{degree} of {count} agents; no graph has that."
        )
    place = np.arange(count)
    around = (place[:, None] - place[None]) % count
    apart = np.minimum(around, count - around)
    near = (apart > 0) & (apart <= degree // 2)
    return jnp.asarray(near | (apart * 2 == count) & bool(degree % 2))


def random_graph(key, num_agents: int, probability):
    """Every two hear each other by the toss of a coin (Erdős and Rényi).

    It may fall apart: whoever hears nobody learns alone.

    Args:
      key: typed PRNG key.
      num_agents: a Python int >= 1.
      probability: of each pair, from 0 to 1; may be traced.

    Returns:
      ``bool[agents, agents]``, symmetric.

    Raises:
      TypeError: for a key that is not typed.
      ValueError: for fewer than one agent.

    Example:
      >>> random_graph(jax.random.key(0), 2, 1.0)
      Array([[False,  True],
             [ True, False]], dtype=bool)
    """
    typed_key(key)
    count = whole("num_agents", num_agents, least=1)
    above = jnp.triu(jax.random.bernoulli(key, probability, (count, count)), 1)
    return above | above.T


def metropolis_weights(graph):
    """Mixing weights of a graph: symmetric, rows and columns sum to 1.

    A neighbour weighs ``1 / (1 + d)``, d the larger of both's numbers of neighbours,
    oneself what is left. Of a complete graph, or of separate complete parts, that is
    the mean; of a ring a third each.

    Args:
      graph: ``bool[agents, agents]``, symmetric; the diagonal is not looked at.

    Returns:
      ``float32[agents, agents]``, row i what agent i makes of all.

    Raises:
      ValueError: if ``graph`` is not square.

    Example:
      >>> metropolis_weights(jnp.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]], bool))
      Array([[0.5, 0.5, 0. ],
             [0.5, 0.5, 0. ],
             [0. , 0. , 1. ]], dtype=float32)

    References:
      Xiao, Boyd and Lall, A scheme for robust distributed sensor fusion based on
      average consensus, IPSN 2005.
    """
    _square("graph", graph)
    others = jnp.asarray(graph, bool) & ~jnp.eye(len(graph), dtype=bool)
    degree = jnp.sum(others, axis=1)
    larger = jnp.maximum(degree[:, None], degree[None])
    weights = jnp.where(others, 1 / (1 + larger.astype(jnp.float32)), 0)
    return weights + jnp.diag(1 - jnp.sum(weights, axis=1))


def check_mixing(mixing) -> None:
    """Raises ValueError unless a matrix is square, not negative, doubly stochastic.

    Then agents' mean stays what it is, and their differences never grow.

    Args:
      mixing: ``float[agents, agents]``, known on the host: not traced.

    Raises:
      ValueError: naming the row or column that does not sum to 1.

    Example:
      >>> check_mixing(np.array([[0.75, 0.25], [0.25, 0.75]]))
    """
    _square("mixing", mixing)
    values = np.asarray(mixing, np.float64)
    if not (values >= 0).all():
        raise ValueError(
            f"mixing must not be negative, got {values.min()}; metropolis(graph) makes "
            "weights of any graph."
        )
    for axis, word in ((1, "row"), (0, "column")):
        sums = values.sum(axis=axis)
        worst = int(np.argmax(np.abs(sums - 1)))
        if abs(sums[worst] - 1) > TOLERANCE:
            raise ValueError(
                f"every {word} of mixing must sum to 1, got {sums[worst]} in {word} "
                f"{worst}; metropolis(graph) makes weights of any graph."
            )


def convergence_rate(mixing) -> float:
    """By what factor agents' differences shrink in a round at least.

    The second largest absolute eigenvalue of a symmetric mixing matrix: 0 where one
    round makes all alike, or there is one agent alone, 1 where some never hear of
    others.

    Args:
      mixing: ``float[agents, agents]``, symmetric, known on the host.

    Raises:
      ValueError: if it is no mixing matrix, or not symmetric.

    Example:
      >>> round(convergence_rate(metropolis_weights(ring_graph(4))), 3)
      0.333
    """
    check_mixing(mixing)
    values = np.asarray(mixing, np.float64)
    if np.abs(values - values.T).max() > TOLERANCE:
        raise ValueError("mixing must be symmetric; metropolis(graph) is.")
    largest_last = np.sort(np.abs(np.linalg.eigvalsh(values)))
    return float(largest_last[-2]) if len(values) > 1 else 0.0


def _square(name, matrix):
    shape = np.shape(matrix)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"{name} must be [agents, agents], got shape {shape}.")
