"""Training data of PrivateHub: pooled windows and statistics of each class."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.federated import PoissonSampling, poisson_sample
from jaxanon.methods.common import pool
from jaxanon.methods.common.alternating import BatchSource
from jaxanon.methods.privatehub.config import check_records, lots_per_epoch
from jaxanon.methods.privatehub.networks import PrivateHubNetworks
from jaxanon.models import conditions
from jaxanon.models.conditions import Condition, check_values

CHUNK = 4096  # Windows per call when moments are computed.


class Prepared(NamedTuple):
    """Windows on the device and statistics of their classes."""

    pool: pool.Pool
    moments: jax.Array  # float32[N, 2 d]; mean and std of each channel as bits
    # By public class; see ``class_statistics`` and ``roughness``.
    statistics: dict[str, jax.Array]
    held_out: Any = None  # Batch of all held-out windows


class PrivateHubBatch(NamedTuple):
    """Encoded windows with labels and condition."""

    windows: jax.Array  # float32[batch, time, d]
    labels: dict[str, jax.Array]  # int32[batch] of each attribute
    condition: Condition
    # For fine-tuning, with classes to hide.
    positives: jax.Array | None = None  # as ``windows``: others of their classes
    negatives: Any = None  # Batch, windows of classes to hide
    real: Any = None  # bool[batch] of a Poisson-sampled batch: False for padding


def batch_source(
    nets: PrivateHubNetworks, lots: PoissonSampling | None = None
) -> BatchSource:
    """Returns a source of uniform batches with replacement, or Poisson-sampled batches.

    Args:
      nets: ``PrivateHubNetworks``.
      lots: ``PoissonSampling``; an epoch has a fixed number of its batches, whatever
        the number of windows.
    """
    size = nets.config.batch_size

    def draw(key, data, copy):
        del copy
        if lots is not None:
            return lot(nets, key, data, lots)
        if not nets.config.classes_to_hide:
            return to_batch(nets, data, pool.draw(key, data.pool, size))
        return compared(nets, key, data)

    def rounds(data):
        if lots is not None:
            return lots_per_epoch(lots)
        return pool.rounds_per_epoch(data.pool, size)

    return BatchSource(lambda clients: prepare(nets, clients), draw, rounds, size)


def prepare(nets: PrivateHubNetworks, clients) -> Prepared:
    """Standardises windows and computes their moments.

    With ``patience``, held-out windows use the class statistics of the other windows.

    Raises:
      ValueError: if windows do not fit the spec or their categories, there are more
        than ``max_examples``, no window can be held out, or, with classes to hide, a
        class has fewer than two windows.
    """
    spec = nets.spec
    check_values(clients.windows[clients.mask], spec.channels, nets.bits.values)
    if nets.config.noisy:
        check_records(nets.config, int(clients.mask.sum()))
    held = None
    if nets.config.patience:
        clients, held = pool.hold_out(spec, clients, nets.config.validation_fraction)
    pooled = pool.pool(spec, clients)
    if nets.config.classes_to_hide:
        pool.check_counts(spec, pooled.counts, 2, pool.FOR_HIDING)
    moments = _moments(nets, pooled.windows)
    public = np.asarray(pooled.labels[spec.public])
    statistics = class_statistics(moments, public, nets.sizes[spec.public])
    rough = roughness(pooled.windows)
    statistics["roughness"] = class_means(rough, public, nets.sizes[spec.public])
    statistics = jax.tree.map(jnp.asarray, statistics)
    prepared = Prepared(pooled, jnp.asarray(moments), statistics)
    if held is None:
        return prepared
    others = pool.pool(spec, held)
    moments = jnp.asarray(_moments(nets, others.windows))
    drawn = pool.Drawn(others.windows, others.labels, jnp.arange(len(moments)))
    batch = to_batch(nets, prepared._replace(moments=moments), drawn)
    return prepared._replace(held_out=batch)


def _moments(nets, windows):
    take = jax.jit(lambda windows: conditions.moments(nets.bits.encode(windows)))
    parts = [
        take(windows[start : start + CHUNK]) for start in range(0, len(windows), CHUNK)
    ]
    return np.concatenate([np.asarray(part) for part in parts])


def class_statistics(moments, labels, classes: int) -> dict[str, np.ndarray]:
    """Returns statistics of the moments of each class's windows.

    Args:
      moments: ``float[N, 2 d]``, from ``conditions.moments``.
      labels: ``int[N]``.
      classes: number of classes.

    Returns:
      ``center`` and ``spread``, ``float32[classes, d]``: mean and std of the windows'
      means. ``mean``, ``float32[classes, 2 d]``, and ``root``, ``float32[classes, 2 d,
      2 d]``, the mean of all moments and a root of their covariance, ``root @ root.T``.
      Zeros for a class without windows.

    Example:
      >>> result = class_statistics(np.array([[1.0, 0.0], [3.0, 0.0]]), [0, 0], 1)
      >>> result["center"], result["spread"]
      (array([[2.]], dtype=float32), array([[1.]], dtype=float32))
    """
    labels, width = np.asarray(labels), moments.shape[1]
    mean = np.zeros((classes, width))
    root = np.zeros((classes, width, width))
    for label in np.unique(labels):
        rows = np.asarray(moments[labels == label], np.float64)
        mean[label] = rows.mean(axis=0)
        centred = rows - mean[label]
        values, vectors = np.linalg.eigh(centred.T @ centred / len(rows))
        root[label] = vectors * np.sqrt(np.maximum(values, 0))
    variance = np.sum(root**2, axis=2)[:, : width // 2]
    statistics = {
        "center": mean[:, : width // 2],
        "spread": np.sqrt(variance),
        "mean": mean,
        "root": root,
    }
    return {name: array.astype(np.float32) for name, array in statistics.items()}


def class_means(values, labels, classes: int) -> np.ndarray:
    """Returns ``float32[classes, n]``, class means; zeros for a class without windows.

    Args:
      values: ``float[N, n]``, values of each window.
      labels: ``int[N]``.
      classes: number of classes.

    Example:
      >>> class_means(np.array([[1.0], [3.0], [7.0]]), [0, 0, 2], 3)[:, 0]
      array([2., 0., 7.], dtype=float32)
    """
    one_hot = np.asarray(labels)[:, None] == np.arange(classes)
    sums = one_hot.T.astype(np.float64) @ np.asarray(values, np.float64)
    counts = np.maximum(one_hot.sum(axis=0), 1)
    return (sums / counts[:, None]).astype(np.float32)


def to_batch(
    nets: PrivateHubNetworks, data: Prepared, drawn: pool.Drawn
) -> PrivateHubBatch:
    """Returns a drawn batch with its full condition, before condition dropout."""
    labels = {name: drawn.labels[name] for name in nets.sizes}
    moments = data.moments[drawn.index]
    condition = described(nets, data.statistics, labels, moments)
    return PrivateHubBatch(nets.bits.encode(drawn.windows), labels, condition)


def described(nets: PrivateHubNetworks, statistics, labels, moments) -> Condition:
    """Returns the condition of windows; without statistics if there is noise.

    Args:
      nets: ``PrivateHubNetworks``.
      statistics: statistics from ``class_statistics``.
      labels: ``int32[batch]`` of each attribute.
      moments: ``float[batch, 2 d]``, from ``conditions.moments``.
    """
    public = labels[nets.spec.public]
    if nets.config.noisy:  # Class statistics depend on all windows of the class.
        return nets.nothing(len(public))._replace(classes=labels)
    centre, std = (statistics[name][public] for name in ("center", "spread"))
    features = conditions.statistics(moments, centre, std)
    return Condition(labels, features, jnp.ones(len(public), bool))


def lot(
    nets: PrivateHubNetworks, key, data: Prepared, lots: PoissonSampling
) -> PrivateHubBatch:
    """Returns a Poisson-sampled batch, in which each window is present independently.

    Args:
      nets: ``PrivateHubNetworks``.
      key: typed PRNG key.
      data: data from ``prepare``.
      lots: ``PoissonSampling``.

    Returns:
      ``PrivateHubBatch`` with ``real``, of the maximum batch size or of all windows if
      there are fewer.
    """
    pooled = data.pool
    index, real = poisson_sample(key, jnp.ones(len(pooled.windows), bool), lots)
    labels = {name: each[index] for name, each in pooled.labels.items()}
    drawn = pool.Drawn(pooled.windows[index], labels, index)
    return to_batch(nets, data, drawn)._replace(real=real)


def compared(nets: PrivateHubNetworks, key, data: Prepared) -> PrivateHubBatch:
    """Returns a batch with other windows of the same classes and of classes to hide."""
    key, batch_key, positive_key, class_key = jax.random.split(key, 4)
    size, public = nets.config.batch_size, nets.spec.public
    batch = to_batch(nets, data, pool.draw(batch_key, data.pool, size))
    others = pool.draw(positive_key, data.pool, size, batch.labels[public])
    names = nets.spec.classes[public]
    hidden = jnp.array(
        [names.index(name) for name in nets.config.classes_to_hide], jnp.int32
    )
    classes = jax.random.choice(class_key, hidden, (size,))
    negatives = to_batch(nets, data, pool.draw(key, data.pool, size, classes))
    positives = nets.bits.encode(others.windows)
    return batch._replace(positives=positives, negatives=negatives)


def drawn_statistics(key, statistics, public):
    """Draws statistics for synthetic windows from the Gaussian of their class.

    Args:
      key: typed PRNG key.
      statistics: statistics from ``class_statistics``.
      public: ``int32[batch]``.

    Returns:
      ``float32[batch, 3 d]``, as from ``conditions.statistics``.
    """
    mean, root = statistics["mean"][public], statistics["root"][public]
    noise = jax.random.normal(key, mean.shape)
    moments = mean + jnp.einsum("bij,bj->bi", root, noise)
    half = mean.shape[1] // 2
    moments = moments.at[:, half:].set(jnp.maximum(moments[:, half:], 0))
    centre, std = (statistics[name][public] for name in ("center", "spread"))
    return conditions.statistics(moments, centre, std)


# Standard deviations of the smoothing Gaussians, in samples.
WIDTHS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)


def roughness(windows):
    """Returns ``float[..., channels]``, mean absolute differences between samples.

    Args:
      windows: ``float[..., time, channels]``; the result is 0 for a single sample.

    Example:
      >>> roughness(jnp.array([[0.0, 5.0], [1.0, 5.0], [-1.0, 5.0]]))
      Array([1.5, 0. ], dtype=float32)
    """
    if windows.shape[-2] < 2:
        return jnp.zeros(windows.shape[:-2] + windows.shape[-1:], windows.dtype)
    return jnp.mean(jnp.abs(jnp.diff(windows, axis=-2)), axis=-2)


def smoothed(windows, most):
    """Smooths each channel with the narrowest Gaussian that reaches ``most``.

    A denoiser leaves some noise in its output. Differences of adjacent samples, which a
    forecaster of slow measurements uses, are most sensitive to it.

    Args:
      windows: ``float[batch, time, channels]``.
      most: ``float[batch, channels]``, maximum ``roughness``. A channel that is smooth
        enough does not change. A channel that no width in ``WIDTHS`` makes smooth
        enough uses the last width.

    Example:
      >>> window = jnp.array([[[0.0], [1.0], [0.0], [1.0]]])
      >>> bool(jnp.all(smoothed(window, jnp.ones((1, 1))) == window))
      True
      >>> bool(roughness(smoothed(window, jnp.zeros((1, 1))))[0, 0] < 0.01)
      True
    """
    result, smooth = windows, roughness(windows) <= most
    time = jnp.arange(windows.shape[-2], dtype=windows.dtype)
    distance = time[:, None] - time[None]
    for width in WIDTHS:
        weights = jnp.exp(-0.5 * (distance / width) ** 2)
        weights = weights / weights.sum(axis=1, keepdims=True)
        filtered = jnp.einsum("ts,bsc->btc", weights, windows)
        result = jnp.where(smooth[:, None], result, filtered)
        smooth = smooth | (roughness(filtered) <= most)
    return result
