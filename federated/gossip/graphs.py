"""Communication graphs and mixing weights for gossip."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.kernels.checks import typed_key, whole

TOLERANCE = 1e-5  # For the sums of rows and columns in float32.


def complete_graph(num_agents: int):
    """Returns the graph that connects all agents.

    Args:
      num_agents: Python int >= 1.

    Returns:
      ``bool[agents, agents]``, symmetric with a False diagonal.

    Raises:
      ValueError: for fewer than one agent.

    Example:
      >>> complete_graph(2)
      Array([[False,  True],
             [ True, False]], dtype=bool)
    """
    return ~jnp.eye(whole("num_agents", num_agents, least=1), dtype=bool)


def ring_graph(num_agents: int):
    """Returns the ring that connects each agent to the previous and the next agent.

    Example:
      >>> ring_graph(4)[0]
      Array([False,  True, False,  True], dtype=bool)
    """
    whole("num_agents", num_agents, least=1)
    return k_regular_graph(num_agents, min(2, num_agents - 1))


def k_regular_graph(num_agents: int, degree: int):
    """Returns the graph that connects each agent to its ``degree`` nearest on a circle.

    An odd degree also connects opposite agents, so that the graph is symmetric.

    Args:
      num_agents: Python int >= 1.
      degree: from 0 to ``num_agents - 1``; must be even if ``num_agents`` is odd.

    Returns:
      ``bool[agents, agents]``, symmetric.

    Raises:
      ValueError: if the graph does not exist.

    Example:
      >>> k_regular_graph(6, 3)[0]
      Array([False,  True, False,  True, False,  True], dtype=bool)
    """
    count = whole("num_agents", num_agents, least=1)
    degree = whole("degree", degree, least=0)
    if degree >= count or (degree % 2 and count % 2):
        raise ValueError(
            f"degree must be below num_agents, {count}, and even if that is odd, got "
            f"{degree}."
        )
    place = np.arange(count)
    around = (place[:, None] - place[None]) % count
    apart = np.minimum(around, count - around)
    near = (apart > 0) & (apart <= degree // 2)
    return jnp.asarray(near | (apart * 2 == count) & bool(degree % 2))


def random_graph(key, num_agents: int, probability):
    """Samples a random graph (Erdős and Rényi).

    The graph may be disconnected; isolated agents train alone.

    Args:
      key: typed PRNG key.
      num_agents: Python int >= 1.
      probability: probability of each edge, from 0 to 1; may be traced.

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
    """Returns Metropolis mixing weights of a graph: symmetric and doubly stochastic.

    A neighbour has weight ``1 / (1 + d)``, where d is the larger degree of the two
    agents. The remainder is the agent's own weight. A complete graph, or complete
    components, gives the mean; a ring gives weights of one third.

    Args:
      graph: ``bool[agents, agents]``, symmetric; the diagonal is ignored.

    Returns:
      ``float32[agents, agents]``; row i holds the weights of agent i.

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
    """Raises ValueError unless a matrix is square, >= 0 and doubly stochastic.

    Such a matrix preserves the mean over agents and never increases differences.

    Args:
      mixing: ``float[agents, agents]`` on the host, not traced.

    Raises:
      ValueError: with the row or column that does not sum to 1.

    Example:
      >>> check_mixing(np.array([[0.75, 0.25], [0.25, 0.75]]))
    """
    _square("mixing", mixing)
    values = np.asarray(mixing, np.float64)
    if not (values >= 0).all():
        raise ValueError(
            f"mixing must be >= 0, got {values.min()}; use metropolis_weights(graph)."
        )
    for axis, word in ((1, "row"), (0, "column")):
        sums = values.sum(axis=axis)
        worst = int(np.argmax(np.abs(sums - 1)))
        if abs(sums[worst] - 1) > TOLERANCE:
            raise ValueError(
                f"every {word} of mixing must sum to 1, got {sums[worst]} in {word} "
                f"{worst}; use metropolis_weights(graph)."
            )


def convergence_rate(mixing) -> float:
    """Returns the factor by which differences between agents shrink per round.

    It is the second largest absolute eigenvalue of a symmetric mixing matrix: 0 if one
    round gives consensus (or for a single agent), and 1 if the graph is disconnected.

    Args:
      mixing: ``float[agents, agents]``, symmetric, on the host.

    Raises:
      ValueError: if it is not a mixing matrix or not symmetric.

    Example:
      >>> round(convergence_rate(metropolis_weights(ring_graph(4))), 3)
      0.333
    """
    check_mixing(mixing)
    values = np.asarray(mixing, np.float64)
    if np.abs(values - values.T).max() > TOLERANCE:
        raise ValueError("mixing must be symmetric; use metropolis_weights(graph).")
    largest_last = np.sort(np.abs(np.linalg.eigvalsh(values)))
    return float(largest_last[-2]) if len(values) > 1 else 0.0


def _square(name, matrix):
    shape = np.shape(matrix)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"{name} must be [agents, agents], got shape {shape}.")
