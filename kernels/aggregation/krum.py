"""Krum: robust aggregation by distance to the nearest updates."""

import jax
import jax.numpy as jnp

from jaxanon.kernels.aggregation import stacks
from jaxanon.kernels.aggregation.means import coordinate_median
from jaxanon.kernels.checks import known, number_like, whole
from jaxanon.kernels.precision import widened
from jaxanon.kernels.row_sums import along


def squared_distances(updates):
    """Returns squared Euclidean distances between all pairs of clients.

    It uses one matrix product per leaf, in at least float32, centred at the clients'
    median, so that an outlier does not reduce the precision of other distances. Pairs
    that are close together and far from the median are computed from differences.
    Clients with non-finite values have infinite distance to all others.

    Args:
      updates: tree of ``float[clients, ...]``.

    Returns:
      ``float[clients, clients]``, >= 0, exactly 0 on the diagonal.

    Raises:
      TypeError: if a leaf does not hold floats.
      ValueError: if the tree is empty, or leaves differ in their number of clients.

    Example:
      >>> squared_distances({"w": jnp.array([[0.0, 0.0], [3.0, 4.0]])})
      Array([[ 0., 25.],
             [25.,  0.]], dtype=float32)
    """
    mask = stacks.present(updates, None)
    usable = mask & _finite(updates)
    clean = jax.tree.map(lambda leaf: jnp.where(along(usable, leaf), leaf, 0), updates)
    centre = coordinate_median(clean, mask=usable)

    def gram(leaf, middle):
        rows = widened(leaf) - widened(middle)[None]
        rows = rows.reshape(len(leaf), -1)
        return jnp.matmul(rows, rows.T, precision=jax.lax.Precision.HIGHEST)

    products = sum(jax.tree.leaves(jax.tree.map(gram, clean, centre)))
    squares = jnp.diagonal(products)
    distances = jnp.maximum(squares[:, None] + squares[None] - 2 * products, 0)
    distances = _recompute_close(clean, distances, squares)
    comparable = usable[:, None] & usable[None] & ~jnp.isnan(distances)
    distances = jnp.where(comparable, distances, jnp.inf)
    return jnp.where(jnp.eye(len(squares), dtype=bool), 0, distances)


CLOSE = 0.01  # Squared distance of a pair over the square of its summed lengths.


def _recompute_close(updates, distances, squares):
    """Recomputes distances from differences where inner products cancel."""
    exact = jax.lax.stop_gradient(updates)
    before = jax.lax.stop_gradient(distances)
    clients = len(squares)
    reach = jnp.square(jnp.sqrt(squares)[:, None] + jnp.sqrt(squares)[None])
    close = before < CLOSE * reach
    upper = jnp.triu(close, 1).ravel()
    order = jnp.argsort(~upper)

    def recompute(number, found):
        one, other = order[number] // clients, order[number] % clients
        apart = sum(
            jnp.sum(jnp.square(widened(leaf[one]) - widened(leaf[other])))
            for leaf in jax.tree.leaves(exact)
        )
        return found.at[one, other].set(apart).at[other, one].set(apart)

    found = jax.lax.fori_loop(0, jnp.sum(upper), recompute, before)
    # A loop of varying length has no gradient; the inner products give it.
    return jnp.where(close, found + (distances - before), distances)


def _finite(updates):
    """Returns ``bool[clients]``, True if all values of a client are finite."""
    finite = lambda leaf: jnp.isfinite(leaf.reshape(len(leaf), -1)).all(axis=1)
    return jnp.stack([finite(leaf) for leaf in jax.tree.leaves(updates)]).all(axis=0)


def krum(updates, num_byzantine, *, num_selected: int = 1, mask=None):
    """Averages the ``num_selected`` updates with the closest neighbours.

    A client's score is the sum of its squared distances to the nearest
    ``n - num_byzantine - 2`` (at least one) of the other ``n - 1`` present clients.
    The lowest scores are selected; ties are broken by position.

    Args:
      updates: tree of ``float[clients, ...]``. Clients with non-finite values are never
        selected.
      num_byzantine: number of clients that may send arbitrary updates, ``int``; may be
        traced. The guarantee needs ``n >= 2 num_byzantine + 3`` present clients. For a
        Python number this is checked against the number of rows.
      num_selected: Python int in [1, clients]. 1 is Krum; more is Multi-Krum.
      mask: ``bool[clients]``, False for absent clients. None means all are present.

    Returns:
      Tree like ``updates`` without the clients axis (zeros if all clients are absent),
      and ``{"selected": bool[clients], "scores": float[clients]}``. Absent clients have
      an infinite score.

    Raises:
      TypeError: if a leaf does not hold floats, or ``num_selected`` or
        ``num_byzantine`` is not an integer.
      ValueError: if leaves differ in their number of clients, or ``num_selected`` or a
        ``num_byzantine`` on the host is out of range.

    Example:
      >>> updates = {"w": jnp.array([1.0, 1.25, 0.75, 1.0, -80.0])}
      >>> chosen, info = jax.jit(krum, static_argnums=1)(updates, 1)
      >>> chosen, int(jnp.argmax(info["scores"]))
      ({'w': Array(1., dtype=float32)}, 4)

    References:
      Blanchard et al., Machine learning with adversaries, NeurIPS 2017.
    """
    mask = stacks.present(updates, mask)
    usable = mask & _finite(updates)
    clients = len(mask)
    if whole("num_selected", num_selected, least=1) > clients:
        raise ValueError(
            f"num_selected must be in [1, {clients}], the number of clients, got "
            f"{num_selected!r}."
        )
    most = (clients - 3) // 2
    on_host = known(num_byzantine)
    if on_host is not None and not 0 <= on_host <= max(most, 0):
        raise ValueError(
            f"num_byzantine must be in [0, {max(most, 0)}] for {clients} clients, got "
            f"{num_byzantine!r}; Krum needs 2 num_byzantine + 3 clients."
        )
    if on_host is not None:
        num_byzantine = whole("num_byzantine", num_byzantine, least=0)
    number_like("num_byzantine", num_byzantine)
    clean = jax.tree.map(lambda leaf: jnp.where(along(usable, leaf), leaf, 0), updates)
    distances = squared_distances(clean)
    both = usable[:, None] & usable[None] & ~jnp.eye(clients, dtype=bool)
    nearest = jnp.sort(jnp.where(both, distances, jnp.inf), axis=1)
    here = jnp.sum(usable)
    counted = jnp.minimum(jnp.maximum(here - num_byzantine - 2, 1), here - 1)
    # Infinite distances count in the sum, so that a distant client does not score 0.
    near = jnp.arange(clients)[None] < counted
    scores = jnp.sum(jnp.where(near, nearest, 0), axis=1)
    scores = jnp.where(usable, scores, jnp.inf)
    rank = jnp.argsort(jnp.argsort(scores))  # Stable: ties are broken by position.
    selected = (rank < num_selected) & usable

    def mean(leaf):
        total = jnp.sum(jnp.where(along(selected, leaf), widened(leaf), 0), axis=0)
        return (total / jnp.maximum(jnp.sum(selected), 1)).astype(leaf.dtype)

    info = {"selected": selected, "scores": scores}
    return jax.tree.map(mean, clean), info
