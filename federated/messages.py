"""What a server makes sure of before a client's message counts."""

import jax
import numpy as np

FACTOR = 10.0  # How many times the median norm of a round's messages one may have.
LEAST = 3  # Messages that have a median worth the name.


def packed(tree) -> dict[str, np.ndarray]:
    """A tree's arrays by the names of their places, on the host.

    Example:
      >>> packed({"w": np.zeros(2)})
      {"['w']": array([0., 0.])}
    """
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}


def unpacked(arrays: dict[str, np.ndarray], like):
    """The tree that ``packed`` took apart, if it is one like ``like`` and finite.

    Args:
      arrays: of ``packed``, from somebody who need not be trusted.
      like: a tree of arrays or ``jax.ShapeDtypeStruct``.

    Raises:
      ValueError: naming the array that is missing, nobody's, of another shape or type,
        or not finite.

    Example:
      >>> unpacked({"['w']": np.ones(2)}, {"w": np.zeros(2)})
      {'w': array([1., 1.])}
    """
    leaves, treedef = jax.tree_util.tree_flatten_with_path(like)
    wanted = {jax.tree_util.keystr(path): leaf for path, leaf in leaves}
    missing, more = sorted(set(wanted) - set(arrays)), sorted(set(arrays) - set(wanted))
    if missing or more:
        raise ValueError(
            f"its arrays are others: {len(missing)} are missing {missing[:3]}, and "
            f"{len(more)} are nobody's {more[:3]}."
        )
    for name, leaf in wanted.items():
        found = arrays[name]
        if found.shape != leaf.shape or found.dtype != leaf.dtype:
            raise ValueError(
                f"{name} must be {leaf.dtype}{list(leaf.shape)}, got "
                f"{found.dtype}{list(found.shape)}."
            )
        if found.dtype.kind == "f" and not np.isfinite(found).all():
            raise ValueError(f"{name} has numbers that are not finite.")
    return treedef.unflatten([arrays[name] for name in wanted])


def check_weight(weight: float, most: float) -> None:
    """Refuses what a client can't weigh.

    Raises:
      ValueError: unless ``weight`` is from 0 to ``most``, NaN included.

    Example:
      >>> check_weight(3.0, 5.0)
    """
    if not 0 <= weight <= most:
        raise ValueError(
            f"its weight must be from 0 to {most:g}, which the most rows that any "
            f"client may have allow, got {weight:g}."
        )


def norm(tree) -> float:
    """The Euclidean norm of all numbers of a tree together, in float64.

    Example:
      >>> norm({"w": np.array([3.0, 0.0]), "b": np.array(4.0)})
      5.0
    """
    squares = [np.sum(np.square(np.float64(leaf))) for leaf in jax.tree.leaves(tree)]
    return float(np.sqrt(sum(squares)))


def too_far(norms: dict[int, float], max_norm: float | None) -> dict[int, str]:
    """Whose messages are refused for their norms, and why.

    Args:
      norms: of each client's message.
      max_norm: the bound; None is ``FACTOR`` times the median of ``norms``, if there
        are ``LEAST`` of them or more, and the median is above 0.

    Example:
      >>> too_far({0: 1.0, 1: 2.0, 2: 30.0}, None)
      {2: 'its norm must be at most 20, got 30.'}
      >>> too_far({0: 1.0, 1: 30.0}, None)
      {}
    """
    bound = max_norm
    if bound is None:
        if len(norms) < LEAST:
            return {}
        bound = FACTOR * float(np.median([*norms.values()]))
        if bound == 0:
            return {}
    why = lambda found: f"its norm must be at most {bound:g}, got {found:g}."
    return {client: why(found) for client, found in norms.items() if not found <= bound}
