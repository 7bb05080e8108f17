"""Public functions with argument checks."""

import jax
import jax.numpy as jnp

from jaxanon.kernels.checks import (
    as_array,
    fits,
    floating,
    is_instance,
    numeric,
    positive,
    typed_key,
    whole,
)
from jaxanon.kernels.resample import draws, tables
from jaxanon.kernels.resample.tables import BalanceTable, Rows


def same_class_neighbors(x, labels, mask, k_neighbors, *, block=256):
    """Finds the nearest rows of the same class for each row.

    It uses Euclidean distance and excludes the row itself and padding. Distances are
    computed for ``block`` rows at a time, so memory is ``block * n`` instead of
    ``n * n``. Map over clients with ``jax.lax.map``, or with ``vmap`` if memory allows.

    Args:
      x: ``float[n, ...]``. Trailing axes are flattened, and half precision is widened
        to float32. A row with NaN, infinity or an overflowing square is treated as the
        most distant of its class and does not affect other rows.
      labels: ``int[n]``.
      mask: ``bool[n]``, False where a row is padding.
      k_neighbors: k, a Python int >= 1.
      block: rows per step, a Python int >= 1.

    Returns:
      ``int32[n, k]``, nearest first, and ``int32[n]``, the number of real neighbours.
      The number is below k in classes of at most k rows, and 0 for padding. The other
      entries are the row's own index.

    Raises:
      TypeError: if ``x`` does not hold floats, ``labels`` are not integers, or a number
        is not a Python int.
      ValueError: if shapes differ, the input is empty, or a number is too small.

    Example:
      >>> x = jnp.array([[0.0], [1.0], [3.0], [1.5]])
      >>> labels, mask = jnp.array([0, 0, 0, 1]), jnp.ones(4, bool)
      >>> same_class_neighbors(x, labels, mask, 2)
      (Array([[1, 2],
             [0, 2],
             [1, 0],
             [3, 3]], dtype=int32), Array([2, 2, 2, 0], dtype=int32))

    References:
      Chawla et al., SMOTE: synthetic minority over-sampling technique, JAIR 2002.
    """
    x, labels, mask = _rows(x, labels, mask)
    floating(x=x)
    k_neighbors = whole("k_neighbors", k_neighbors, least=1)
    block = whole("block", block, least=1)
    return tables.nearest(x, labels, mask, k_neighbors, block)


def balance_table(x, labels, mask, num_classes, k_neighbors) -> BalanceTable:
    """Prepares one client's rows for resampling, once per client.

    Args:
      x, labels, mask, k_neighbors: see ``same_class_neighbors``. Rows with a label
        outside ``[0, num_classes)`` are never drawn.
      num_classes: Python int >= 1.

    Returns:
      ``BalanceTable`` of the client's rows.

    Raises:
      TypeError: same conditions as ``same_class_neighbors``.
      ValueError: same conditions as ``same_class_neighbors``.

    Example:
      >>> x, labels = jnp.array([[0.0], [5.0], [1.0]]), jnp.array([0, 1, 0])
      >>> table = balance_table(x, labels, jnp.ones(3, bool), 2, 1)
      >>> table.order, table.counts
      (Array([0, 2, 1], dtype=int32), Array([2, 1], dtype=int32))
    """
    x, labels, mask = _rows(x, labels, mask)
    num_classes = whole("num_classes", num_classes, least=1)
    found = same_class_neighbors(x, labels, mask, k_neighbors)
    mask = mask & (labels >= 0) & (labels < num_classes)
    return BalanceTable(*tables.by_class(labels, mask, num_classes), *found)


def smote(key, x, table, num) -> Rows:
    """Creates ``num`` new rows of every class with SMOTE, ``x + u (x_nn - x)``.

    The row is uniform within its class, ``x_nn`` is uniform among the row's real
    neighbours, and ``u`` is uniform in [0, 1), one number per new row. A class with one
    row repeats that row. An empty class gives zeros with ``mask`` False.

    Args:
      key: typed PRNG key.
      x: ``float[n, ...]``.
      table: result of ``balance_table`` for ``x``.
      num: new rows per class, a Python int >= 1.

    Returns:
      ``Rows`` with ``classes * num`` rows, class by class, in the dtype of ``x``.

    Raises:
      TypeError: for a legacy key, rows that are not floats, or a ``num`` that is not a
        Python int.
      ValueError: if ``num`` is below 1.

    Example:
      >>> x, labels = jnp.array([[4.0], [4.0], [7.0]]), jnp.array([0, 0, 1])
      >>> table = balance_table(x, labels, jnp.ones(3, bool), 2, 1)
      >>> smote(jax.random.key(0), x, table, 1).x.ravel()
      Array([4., 7.], dtype=float32)

    References:
      Chawla et al., JAIR 2002, in the form of imbalanced-learn.
    """
    typed_key(key)
    x = as_array("x", x)
    floating(x=x)
    num = whole("num", num, least=1)
    _check_table(x, table)
    picks = draws.every_class(key, table, num)
    return Rows(draws.make(x, picks), picks.labels, picks.mask)


def under_sample(key, labels, mask, num_classes, samples_per_class):
    """Selects ``samples_per_class`` random rows of every class without replacement.

    Args:
      key: typed PRNG key.
      labels: ``int[n]``. Rows with a label outside ``[0, num_classes)`` are excluded.
      mask: ``bool[n]``, False where a row is padding.
      num_classes: Python int >= 1.
      samples_per_class: rows to select per class, a Python int >= 1.

    Returns:
      ``int32[num_classes * samples_per_class]`` indices, class by class, and a
      ``bool`` array of the same shape, False where the class has too few rows (the
      index is then arbitrary).

    Raises:
      TypeError: for a legacy key, labels that are not integers, or a number that is not
        a Python int.
      ValueError: if shapes differ, the input is empty, or a number is below 1.

    Example:
      >>> labels = jnp.array([1, 0, 0])
      >>> _, real = under_sample(jax.random.key(0), labels, jnp.ones(3, bool), 2, 2)
      >>> real
      Array([ True,  True,  True, False], dtype=bool)
    """
    typed_key(key)
    labels, _, mask = _rows(labels, labels, mask)
    num_classes = whole("num_classes", num_classes, least=1)
    samples_per_class = whole("samples_per_class", samples_per_class, least=1)
    mask = mask & (labels >= 0) & (labels < num_classes)
    shuffle = jax.random.bits(key, labels.shape, jnp.uint32)
    order, starts, counts = tables.by_class(labels, mask, num_classes, shuffle)
    place = starts[:, None] + jnp.arange(samples_per_class)[None]
    real = jnp.arange(samples_per_class)[None] < counts[:, None]
    rows = order[jnp.minimum(place, len(labels) - 1)]
    return rows.ravel(), real.ravel()


def balance(key, windows, labels, mask, num_classes, samples_per_class, k_neighbors=5):
    """Rebalances rows as Blinder: each present class gets ``samples_per_class`` rows.

    Larger classes are under-sampled. Smaller classes keep all their rows, and SMOTE
    adds the rest.

    Args:
      key: typed PRNG key.
      windows: ``float[n, ...]``.
      labels: ``int[n]`` in ``[0, num_classes)``.
      mask: ``bool[n]``, False where a row is padding.
      num_classes: Python int >= 1.
      samples_per_class: T, a Python int >= 1 (600 for MotionSense, 4000 for MobiAct).
      k_neighbors: k of SMOTE.

    Returns:
      ``Rows`` with ``num_classes * samples_per_class`` rows, class by class. An empty
      class gives zeros with ``mask`` False.

    Raises:
      TypeError: for a legacy key, windows that are not floats, labels that are not
        integers, or a number that is not a Python int.
      ValueError: if shapes differ, the input is empty, or a number is below 1.

    Example:
      >>> x, labels = jnp.array([[4.0], [4.0], [7.0]]), jnp.array([0, 0, 1])
      >>> rows = balance(jax.random.key(0), x, labels, jnp.ones(3, bool), 2, 2)
      >>> rows.x.ravel(), rows.labels
      (Array([4., 4., 7., 7.], dtype=float32), Array([0, 0, 1, 1], dtype=int32))

    References:
      Yang et al., Blinder, section 6.
    """
    typed_key(key)
    windows, labels, mask = _rows(windows, labels, mask)
    floating(windows=windows)
    samples_per_class = whole("samples_per_class", samples_per_class, least=1)
    table = balance_table(windows, labels, mask, num_classes, k_neighbors)
    keep_key, make_key = jax.random.split(key)
    rows, real = under_sample(keep_key, labels, mask, num_classes, samples_per_class)
    picks = draws.every_class(make_key, table, samples_per_class)
    picks = picks._replace(
        row=jnp.where(real, rows, picks.row), u=jnp.where(real, 0, picks.u)
    )
    return Rows(draws.make(windows, picks), picks.labels, picks.mask)


def draw_from_table(key, x, table, samples_per_class, num, *, client=None) -> Rows:
    """Draws ``num`` rows from the distribution of ``balance`` without computing it.

    Present classes are equally likely. Within a class of n_c rows, a draw is a real row
    with probability min(1, n_c / samples_per_class), else a SMOTE row. Draws are with
    replacement. The cost is a few numbers and two gathered rows per draw, independent
    of n.

    Args:
      key: typed PRNG key.
      x: ``float[n, ...]``, or ``float[clients, n, ...]`` with ``client``.
      table: result of ``balance_table`` for ``x``, stacked over clients with
        ``client``.
      samples_per_class: T, a number > 0; may be traced.
      num: number of draws, a Python int >= 1.
      client: ``int32[]``, index into the stack of clients. Under ``vmap`` over this
        index only the drawn rows are gathered.

    Returns:
      ``Rows`` with ``num`` rows; ``mask`` is False if the client has no rows.

    Raises:
      TypeError: for a legacy key, rows that are not floats, or a ``num`` that is not a
        Python int.
      ValueError: if ``num`` is below 1, or a ``samples_per_class`` on the host is not
        > 0.

    Example:
      >>> x, labels = jnp.array([[4.0], [4.0]]), jnp.array([1, 1])
      >>> table = balance_table(x, labels, jnp.ones(2, bool), 2, 1)
      >>> rows = draw_from_table(jax.random.key(0), x, table, 9, 3)
      >>> rows.x.ravel(), rows.labels
      (Array([4., 4., 4.], dtype=float32), Array([1, 1, 1], dtype=int32))
    """
    typed_key(key)
    x = as_array("x", x)
    floating(x=x)
    positive(samples_per_class=samples_per_class)
    num = whole("num", num, least=1)
    _check_table(x, table, () if client is None else x.shape[:1])
    picks = draws.from_balanced(key, table, samples_per_class, num, client)
    return Rows(draws.make(x, picks, client), picks.labels, picks.mask)


def draw_balanced(
    key,
    x,
    labels,
    mask,
    neighbors,
    num_real_neighbors,
    num_classes,
    samples_per_class,
    num,
) -> Rows:
    """Draws as ``draw_from_table``, given neighbours instead of a table.

    It sorts the labels at each call; precompute the table if speed matters.

    Args:
      key: typed PRNG key.
      x, labels, mask: see ``same_class_neighbors``.
      neighbors, num_real_neighbors: results of ``same_class_neighbors``.
      num_classes: Python int >= 1.
      samples_per_class, num: see ``draw_from_table``.

    Returns:
      ``Rows`` with ``num`` rows, as ``draw_from_table``.

    Raises:
      TypeError: under the conditions of ``draw_from_table``, or if ``labels`` are not
        integers.
      ValueError: under the conditions of ``draw_from_table``, or if shapes differ, the
        input is empty, or ``num_classes`` is below 1.

    Example:
      >>> x, labels, mask = jnp.ones((2, 1)), jnp.array([0, 0]), jnp.ones(2, bool)
      >>> found = same_class_neighbors(x, labels, mask, 1)
      >>> draw_balanced(jax.random.key(0), x, labels, mask, *found, 1, 9, 2).x.ravel()
      Array([1., 1.], dtype=float32)
    """
    x, labels, mask = _rows(x, labels, mask)
    num_classes = whole("num_classes", num_classes, least=1)
    mask = mask & (labels >= 0) & (labels < num_classes)
    order = tables.by_class(labels, mask, num_classes)
    neighbors = as_array("neighbors", neighbors)
    num_real_neighbors = as_array("num_real_neighbors", num_real_neighbors)
    table = BalanceTable(*order, neighbors, num_real_neighbors)
    return draw_from_table(key, x, table, samples_per_class, num)


def _check_table(x, table, clients=()):
    """Raises unless ``table`` is a ``BalanceTable`` of the rows ``x``."""
    is_instance(BalanceTable, table=table)
    n = x.shape[len(clients)] if x.ndim > len(clients) else 0
    ends = {"order": (n,), "neighbors": (n, None), "num_neighbors": (n,)}
    for name, field in table._asdict().items():
        numeric(**{f"table.{name}": field})
        wanted = (*clients, *ends.get(name, (None,)))
        shape = jnp.shape(field)
        fits_ = len(shape) == len(wanted) and all(
            want in (None, got) for got, want in zip(shape, wanted, strict=True)
        )
        if not fits_ or not jnp.issubdtype(jnp.result_type(field), jnp.integer):
            raise ValueError(
                f"table.{name} must be integers with axes {wanted} for x of shape "
                f"{x.shape}, got shape {shape} of {jnp.result_type(field)}; make the "
                "table from the same rows with balance_table."
            )


def _rows(x, labels, mask):
    fits("x", x)
    fits("labels", labels)
    numeric(mask=mask)
    x, labels, mask = jnp.asarray(x), jnp.asarray(labels), jnp.asarray(mask, bool)
    if not jnp.issubdtype(labels.dtype, jnp.integer):
        raise TypeError(f"labels must be integers, got {labels.dtype}.")
    if not (x.shape[:1] == labels.shape == mask.shape) or not len(labels):
        raise ValueError(
            "x, labels and mask must have the same length >= 1, got shapes "
            f"{x.shape}, {labels.shape} and {mask.shape}; pad with mask=False."
        )
    return x, labels, mask
