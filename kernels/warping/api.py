"""Public functions with argument checks."""

import jax
import jax.numpy as jnp

from jaxanon.kernels.checks import as_array, one_of, whole
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
    """Computes the dynamic time warping distance of each pair of series.

    It is the minimum total cost of matching the samples of ``x[p]`` and ``y[p]`` in
    order, from first with first to last with last, each sample at least once. Channels
    are warped together. To warp channels separately, pass each as a separate pair.

    The gradient treats the best path as fixed. It is exact if the best path is unique,
    a subgradient otherwise, and 0 at distance 0. Forward and reverse mode and higher
    orders are supported. Gradients also store the path, one byte per cell of ``lanes``
    pairs.

    Args:
      x: ``float[pairs, time_x, channels]``. Half precision is widened to float32.
      y: ``float[pairs, time_y, channels]`` in the dtype of ``x``.
      x_lengths: ``int[pairs]``, number of real samples at the start of each series.
        None is all. Padding may hold any values. Larger lengths are clipped.
      y_lengths: ``int[pairs]``, lengths of ``y``.
      band: radius of the Sakoe-Chiba band in samples, a Python int >= 0, or None. For
        lengths n and m, sample i may match j if ``-max(n - m, 0) - band <= j - i <=
        max(m - n, 0) + band``. Radius 0 with equal lengths forbids warping. The band
        does not save time.
      local_cost: cost of a match. ``"squared_euclidean"`` over channels takes the
        square root of the total. ``"euclidean"`` and ``"absolute"`` (the sum over
        channels) use the total.
      lanes: pairs computed side by side, which affects only speed and memory. None is
        32 on a CPU (to fit the cache) and 4096 elsewhere.

    Returns:
      ``float32[pairs]`` (float64 for float64), >= 0, in the units of ``x``. It is
      infinite for a series of length 0, and NaN if a real sample is NaN or infinite.

    Raises:
      TypeError: if a dtype is not floating, the dtypes differ, or ``band`` or ``lanes``
        is not a Python int.
      ValueError: if shapes differ, an axis is empty, ``band`` or ``lanes`` is too
        small, or ``local_cost`` is unknown.

    Example:
      >>> x = jnp.array([[[0.0], [3.0], [3.0], [0.0]]])
      >>> y = jnp.array([[[0.0], [0.0], [3.0], [4.0]]])
      >>> dtw(x, y), dtw(x, y, band=0)  # Only the last match costs; then also 0 and 3.
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
    """Returns the best warping path of each pair.

    Ties prefer the step in both series; the choice between the other two steps is
    unspecified. A series of length 0 gives an all-False ``mask``. The path is
    meaningless if a sample is NaN or infinite.

    Args:
      x, y, x_lengths, y_lengths, band, local_cost, lanes: see ``dtw``.

    Returns:
      ``WarpingPath`` with ``[pairs, time_x + time_y - 1]`` entries.

    Raises:
      TypeError: same conditions as ``dtw``.
      ValueError: same conditions as ``dtw``.

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
    x, y = as_array("x", x), as_array("y", y)
    agree = x.ndim == y.ndim == 3 and x.shape[::2] == y.shape[::2]
    if not agree or 0 in x.shape or 0 in y.shape:
        raise ValueError(
            "x and y must be non-empty float[pairs, time, channels] with equal pairs "
            f"and channels, got shapes {x.shape} and {y.shape}; use x[None] for one "
            "pair and x[..., None] for one channel."
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
    lengths = as_array(name, time if lengths is None else lengths)
    if lengths.shape not in ((), (pairs,)) or not jnp.issubdtype(
        lengths.dtype, jnp.integer
    ):
        raise ValueError(
            f"{name} must be int[pairs] with pairs = {pairs}, got "
            f"{lengths.dtype}{list(lengths.shape)}."
        )
    lengths = jnp.broadcast_to(lengths, (pairs,))
    return jnp.clip(lengths, 0, time).astype(jnp.int32)
