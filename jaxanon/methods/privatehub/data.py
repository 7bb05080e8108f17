"""What PrivateHub trains on: a pool of windows, and statistics of each class's."""

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

CHUNK = 4096  # Windows whose moments are taken at a time.


class Prepared(NamedTuple):
    """Windows on the device, and what is known of their classes."""

    pool: pool.Pool
    moments: jax.Array  # float32[N, 2 d]; mean and deviation of each channel as bits
    # Of each public class; see ``class_statistics``, and ``roughness``.
    statistics: dict[str, jax.Array]
    held_out: Any = None  # Batch, all windows that nothing is learned from


class PrivateHubBatch(NamedTuple):
    """Windows as the diffusion sees them, and all that is known of them."""

    windows: jax.Array  # float32[batch, time, d]
    labels: dict[str, jax.Array]  # int32[batch] of each attribute
    condition: Condition
    # What fine-tuning compares with, where there are classes to hide.
    positives: jax.Array | None = None  # as ``windows``: others of their classes
    negatives: Any = None  # Batch, windows of classes to hide
    real: Any = None  # bool[batch], of a lot: False where there is no window


def batch_source(
    nets: PrivateHubNetworks, lots: PoissonSampling | None = None
) -> BatchSource:
    """Batches drawn uniformly, with replacement, from all clients' windows, or lots.

    Args:
      nets: ``PrivateHubNetworks``.
      lots: ``PoissonSampling``, of which an epoch has as many as their ``max_examples``
        fill, however many windows there are.
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
    """Standardises windows, and takes their moments.

    Windows that are held out, where there is patience, are told what is known of the
    classes of the others.

    Raises:
      ValueError: if windows do not fit the spec or their categories, if they are more
        than noise was counted for, if none are held out that should be, or, where
        there are classes to hide, a class has fewer than two windows.
    """
    spec = nets.spec
    check_values(clients.windows[clients.mask], spec.channels, nets.bits.values)
    if nets.config.noisy:
        check_records(nets.config, int(clients.mask.sum()))
    held = None
    if nets.config.patience:
        clients, held = pool.hold_out(spec, clients, nets.config.validation_fraction)
    found = pool.pool(spec, clients)
    if nets.config.classes_to_hide:
        pool.check_counts(spec, found.counts, 2, pool.FOR_HIDING)
    moments = _moments(nets, found.windows)
    public = np.asarray(found.labels[spec.public])
    statistics = class_statistics(moments, public, nets.sizes[spec.public])
    rough = roughness(found.windows)
    statistics["roughness"] = class_means(rough, public, nets.sizes[spec.public])
    statistics = jax.tree.map(jnp.asarray, statistics)
    prepared = Prepared(found, jnp.asarray(moments), statistics)
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
    """What there is to know of the moments of each class's windows.

    Args:
      moments: ``float[N, 2 d]``, of ``conditions.moments``.
      labels: ``int[N]``.
      classes: how many.

    Returns:
      ``center`` and ``spread``, ``float32[classes, d]``: mean and deviation of windows'
      means; ``mean``, ``float32[classes, 2 d]``, and ``root``, ``float32[classes, 2 d,
      2 d]``, whose product with its transpose is the covariance of all moments. Zeros
      for a class without windows.

    Example:
      >>> found = class_statistics(np.array([[1.0, 0.0], [3.0, 0.0]]), [0, 0], 1)
      >>> found["center"], found["spread"]
      (array([[2.]], dtype=float32), array([[1.]], dtype=float32))
    """
    labels, width = np.asarray(labels), moments.shape[1]
    mean = np.zeros((classes, width))
    root = np.zeros((classes, width, width))
    for label in np.unique(labels):
        own = np.asarray(moments[labels == label], np.float64)
        mean[label] = own.mean(axis=0)
        centred = own - mean[label]
        values, vectors = np.linalg.eigh(centred.T @ centred / len(own))
        root[label] = vectors * np.sqrt(np.maximum(values, 0))
    variance = np.sum(root**2, axis=2)[:, : width // 2]
    found = {
        "center": mean[:, : width // 2],
        "spread": np.sqrt(variance),
        "mean": mean,
        "root": root,
    }
    return {name: array.astype(np.float32) for name, array in found.items()}


def class_means(found, labels, classes: int) -> np.ndarray:
    """``float32[classes, n]``, means over windows; zeros for a class without any.

    Args:
      found: ``float[N, n]``, of each window.
      labels: ``int[N]``.
      classes: how many.

    Example:
      >>> class_means(np.array([[1.0], [3.0], [7.0]]), [0, 0, 2], 3)[:, 0]
      array([2., 0., 7.], dtype=float32)
    """
    told = np.asarray(labels)[:, None] == np.arange(classes)
    sums = told.T.astype(np.float64) @ np.asarray(found, np.float64)
    counts = np.maximum(told.sum(axis=0), 1)
    return (sums / counts[:, None]).astype(np.float32)


def to_batch(
    nets: PrivateHubNetworks, data: Prepared, drawn: pool.Drawn
) -> PrivateHubBatch:
    """A drawn batch with its condition, of which nothing is forgotten yet."""
    labels = {name: drawn.labels[name] for name in nets.sizes}
    moments = data.moments[drawn.index]
    condition = described(nets, data.statistics, labels, moments)
    return PrivateHubBatch(nets.bits.encode(drawn.windows), labels, condition)


def described(nets: PrivateHubNetworks, statistics, labels, moments) -> Condition:
    """All that a denoiser is told of windows; no statistics where there is noise.

    Args:
      nets: ``PrivateHubNetworks``.
      statistics: of ``class_statistics``.
      labels: ``int32[batch]`` of each attribute.
      moments: ``float[batch, 2 d]``, of ``conditions.moments``.
    """
    public = labels[nets.spec.public]
    if nets.config.noisy:  # What is known of a class is of all its windows.
        return nets.nothing(len(public))._replace(classes=labels)
    centre, spread = (statistics[name][public] for name in ("center", "spread"))
    features = conditions.statistics(moments, centre, spread)
    return Condition(labels, features, jnp.ones(len(public), bool))


def lot(
    nets: PrivateHubNetworks, key, data: Prepared, lots: PoissonSampling
) -> PrivateHubBatch:
    """Windows each of which is there with the same probability, whatever others do.

    Args:
      nets: ``PrivateHubNetworks``.
      key: typed PRNG key.
      data: of ``prepare``.
      lots: ``PoissonSampling``.

    Returns:
      ``PrivateHubBatch`` of a lot's capacity, or of all windows if they are fewer, with
      ``real``.
    """
    found = data.pool
    index, real = poisson_sample(key, jnp.ones(len(found.windows), bool), lots)
    labels = {name: each[index] for name, each in found.labels.items()}
    drawn = pool.Drawn(found.windows[index], labels, index)
    return to_batch(nets, data, drawn)._replace(real=real)


def compared(nets: PrivateHubNetworks, key, data: Prepared) -> PrivateHubBatch:
    """A batch with windows of the same classes, and windows of classes to hide."""
    key, own_key, positive_key, class_key = jax.random.split(key, 4)
    size, public = nets.config.batch_size, nets.spec.public
    own = to_batch(nets, data, pool.draw(own_key, data.pool, size))
    others = pool.draw(positive_key, data.pool, size, own.labels[public])
    names = nets.spec.classes[public]
    hidden = jnp.array(
        [names.index(name) for name in nets.config.classes_to_hide], jnp.int32
    )
    classes = jax.random.choice(class_key, hidden, (size,))
    secret = to_batch(nets, data, pool.draw(key, data.pool, size, classes))
    return own._replace(positives=nets.bits.encode(others.windows), negatives=secret)


def drawn_statistics(key, statistics, public):
    """Statistics for windows that there are not: moments from their class's Gaussian.

    Args:
      key: typed PRNG key.
      statistics: of ``class_statistics``.
      public: ``int32[batch]``.

    Returns:
      ``float32[batch, 3 d]``, as ``conditions.statistics`` has them.
    """
    mean, root = statistics["mean"][public], statistics["root"][public]
    noise = jax.random.normal(key, mean.shape)
    moments = mean + jnp.einsum("bij,bj->bi", root, noise)
    half = mean.shape[1] // 2
    moments = moments.at[:, half:].set(jnp.maximum(moments[:, half:], 0))
    centre, spread = (statistics[name][public] for name in ("center", "spread"))
    return conditions.statistics(moments, centre, spread)


# Deviations of the Gaussians that a window is smoothed by, in samples.
WIDTHS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)


def roughness(windows):
    """``float[..., channels]``, how far neighbouring samples are apart, on average.

    Args:
      windows: ``float[..., time, channels]``; of a single sample it is 0.

    Example:
      >>> roughness(jnp.array([[0.0, 5.0], [1.0, 5.0], [-1.0, 5.0]]))
      Array([1.5, 0. ], dtype=float32)
    """
    if windows.shape[-2] < 2:
        return jnp.zeros(windows.shape[:-2] + windows.shape[-1:], windows.dtype)
    return jnp.mean(jnp.abs(jnp.diff(windows, axis=-2)), axis=-2)


def smoothed(windows, most):
    """Each channel of a window by the narrowest Gaussian that makes it smooth enough.

    A denoiser leaves a trace of noise, which differences of neighbouring samples, such
    as a forecaster of slow measurements learns, are the first to show.

    Args:
      windows: ``float[batch, time, channels]``.
      most: ``float[batch, channels]``, ``roughness`` to come down to. A channel that is
        that smooth stays as it is; one that no width of ``WIDTHS`` makes so is smoothed
        by the last.

    Example:
      >>> window = jnp.array([[[0.0], [1.0], [0.0], [1.0]]])
      >>> bool(jnp.all(smoothed(window, jnp.ones((1, 1))) == window))
      True
      >>> bool(roughness(smoothed(window, jnp.zeros((1, 1))))[0, 0] < 0.01)
      True
    """
    made, smooth = windows, roughness(windows) <= most
    place = jnp.arange(windows.shape[-2], dtype=windows.dtype)
    apart = place[:, None] - place[None]
    for width in WIDTHS:
        weights = jnp.exp(-0.5 * (apart / width) ** 2)
        weights = weights / weights.sum(axis=1, keepdims=True)
        found = jnp.einsum("ts,bsc->btc", weights, windows)
        made = jnp.where(smooth[:, None], made, found)
        smooth = smooth | (roughness(found) <= most)
    return made
