"""Public functions: what they take, what they promise, what they refuse."""

import jax
import jax.numpy as jnp

from jaxanon.kernels.checks import one_of, whole
from jaxanon.kernels.warping import costs
from jaxanon.kernels.warping.distance import Options, WarpingPath, distance, path_of


def dtw(
    x,
    y,
    *,
    x_lengths=None,
    y_lengths=None,
    band=None,
    local_cost="squared_euclidean",
    lanes=None,
):
    """Dynamic time warping distance of each pair of multivariate series.

    The least total cost of matching all samples of ``x[p]`` with all of ``y[p]`` in
    order, each with at least one; first with first, last with last. Channels are warped
    together; to warp each on its own, make it a pair of its own.

    The gradient is that of the cost along the best path, with the path held fixed: the
    true one wherever the best path is unique, and a subgradient of the cost elsewhere;
    0 at distance 0. Both modes and higher orders work. Where it is taken, memory and
    time grow by the path: one byte for each cell of ``lanes`` pairs.

    Args:
      x: ``float[pairs, time_x, channels]``. Half precision is widened to float32.
      y: ``float[pairs, time_y, channels]``, of the dtype of ``x``.
      x_lengths: ``int[pairs]``, how many samples of each series are real, the first
        ones; None is all. What padding holds changes nothing, NaN included. Lengths
        beyond the axis mean all of it.
      y_lengths: likewise.
      band: radius of the Sakoe-Chiba band in samples, a Python int >= 0, or None. Of
        lengths n and m, sample i may match j where ``-max(n - m, 0) - band <= j - i <=
        max(m - n, 0) + band``; with equal lengths 0 is no warping. It limits paths,
        and saves no time.
      local_cost: what a match costs. ``"squared_euclidean"`` over channels, with the
        square root of the total as the distance; ``"euclidean"`` or ``"absolute"``
        (the sum over channels), with the total itself.
      lanes: pairs worked on side by side, which changes speed and memory and not the
        result. None is 32 on a CPU, where they have to fit the cache, else 4096.

    Returns:
      ``float32[pairs]``, ``float64`` for float64 input, >= 0, in the units of ``x``.
      Infinite for a pair with a series of length 0, NaN for one with a NaN or an
      infinity among its real samples.

    Raises:
      TypeError: if a dtype is not floating, the two differ, or ``band`` or ``lanes`` is
        no Python int.
      ValueError: if shapes disagree or an axis is empty, ``band`` or ``lanes`` is below
        its bound, or ``local_cost`` is unknown.

    Example:
      >>> x = jnp.array([[[0.0], [3.0], [3.0], [0.0]]])
      >>> y = jnp.array([[[0.0], [0.0], [3.0], [4.0]]])
      >>> dtw(x, y), dtw(x, y, band=0)  # 4 against 0 alone; 3 more against 0.
      (Array([4.], dtype=float32), Array([5.], dtype=float32))

    References:
      Sakoe and Chiba, Dynamic programming algorithm optimization for spoken word
      recognition, IEEE TASSP 1978.
    """
    arguments = _checked(x, y, x_lengths, y_lengths, band, local_cost, lanes)
    return distance(*arguments)


def dtw_path(
    x,
    y,
    *,
    x_lengths=None,
    y_lengths=None,
    band=None,
    local_cost="squared_euclidean",
    lanes=None,
) -> WarpingPath:
    """The best path that ``dtw`` measures.

    Of equally good steps, the one in both series is taken; between the other two the
    choice is not promised. A pair with a series of length 0 has no path: ``mask`` is
    False throughout. That of a pair with a NaN or an infinity has no meaning.

    Args:
      x, y, x_lengths, y_lengths, band, local_cost, lanes: as in ``dtw``.

    Returns:
      ``WarpingPath`` with ``[pairs, time_x + time_y - 1]`` entries.

    Raises:
      TypeError: as ``dtw``.
      ValueError: as ``dtw``.

    Example:
      >>> x = jnp.array([[[0.0], [5.0]]])
      >>> y = jnp.array([[[0.0], [1.0], [5.0]]])
      >>> path = dtw_path(x, y)
      >>> path.x_index, path.y_index
      (Array([[0, 0, 1, 0]], dtype=int32), Array([[0, 1, 2, 0]], dtype=int32))
      >>> path.mask
      Array([[ True,  True,  True, False]], dtype=bool)
    """
    arguments = _checked(x, y, x_lengths, y_lengths, band, local_cost, lanes)
    return path_of(*arguments)


def _checked(x, y, x_lengths, y_lengths, band, local_cost, lanes):
    x, y = jnp.asarray(x), jnp.asarray(y)
    agree = x.ndim == y.ndim == 3 and x.shape[::2] == y.shape[::2]
    if not agree or 0 in x.shape or 0 in y.shape:
        raise ValueError(
            "x and y must be float[pairs, time, channels], with equal pairs and "
            f"channels and no empty axis, got shapes {x.shape} and {y.shape}; for one "
            "pair write x[None], for one channel x[..., None]."
        )
    if x.dtype != y.dtype or not jnp.issubdtype(x.dtype, jnp.floating):
        raise TypeError(
            f"x and y must be floats of one dtype, got {x.dtype} and {y.dtype}; "
            "convert them with astype."
        )
    one_of("local_cost", local_cost, costs.NAMES)
    if band is not None:
        band = whole("band", band, least=0)
    if lanes is None:
        lanes = 32 if jax.default_backend() == "cpu" else 4096
    lanes = whole("lanes", lanes, least=1)
    ragged = x_lengths is not None or y_lengths is not None
    n = _lengths("x_lengths", x_lengths, x)
    m = _lengths("y_lengths", y_lengths, y)
    return x, y, n, m, Options(band, local_cost, lanes, ragged)


def _lengths(name, lengths, x):
    pairs, time = x.shape[:2]
    lengths = jnp.asarray(time if lengths is None else lengths)
    if lengths.shape not in ((), (pairs,)) or not jnp.issubdtype(
        lengths.dtype, jnp.integer
    ):
        raise ValueError(
            f"{name} must be int[pairs] with pairs = {pairs}, got "
            f"{lengths.dtype}{list(lengths.shape)}."
        )
    lengths = jnp.broadcast_to(lengths, (pairs,))
    return jnp.clip(lengths, 0, time).astype(jnp.int32)
