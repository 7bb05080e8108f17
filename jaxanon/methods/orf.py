"""ORF: normalises and removes features that leak private attributes."""

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.core.method import Method
from jaxanon.core.registry import register
from jaxanon.datasets.spec import attributes
from jaxanon.kernels.bounds import check, setting
from jaxanon.methods.common import pool, recipes
from jaxanon.methods.common.alternating import BatchSource, central


@dataclasses.dataclass(frozen=True, kw_only=True)
class ORFConfig:
    """ORF's settings; the paper gives no values."""

    fraction: float = setting(
        0.5, at_least=0, at_most=1, help="fraction of frequencies to normalise"
    )
    batch_size: int = setting(1024, at_least=1, help="windows per round of statistics")

    __post_init__ = check


@register("orf", config=ORFConfig, recipes=recipes.ORF)
def orf(spec, config) -> Method:
    """Builds ORF, a signal-processing baseline, for windows of ``spec``.

    According to DySan's description, ORF selects the features that leak most about the
    private attribute. It normalises those in the frequency domain and removes those in
    the time domain that the public attribute does not need. The features, their ranking
    and the normalisation are not published, and the original releases features instead
    of windows. This implementation makes these choices:

    - The features of a standardised window are the mean, the standard deviation and the
      magnitude of each frequency above 0, per channel.
    - A feature's leakage of an attribute is its correlation ratio on the training
      windows: the fraction of its variance between classes. With several private
      attributes, the maximum counts.
    - The ``fraction`` of frequencies with the highest private leakage are normalised.
      In each channel, they are jointly scaled to their root mean square in the training
      windows, which preserves phases and the shape of the spectrum.
    - A mean or standard deviation that leaks more about a private attribute than about
      the public one is replaced by its average over the training windows.

    ORF has no trained parameters. A round adds a batch of windows to running sums, so
    one epoch is about one pass over the data, which is enough.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``ORFConfig``.

    Returns:
      ``Method``; it returns windows unchanged before the first round.

    Raises:
      ValueError: if a setting is out of range.

    Example:
      >>> from jaxanon.datasets import load
      >>> orf(load("smartwatch").spec, fraction=0.25).config.fraction
      0.25

    References:
      Boutet et al., DySan, AsiaCCS 2021, section 4.2; Jourdan, Boutet, Frindel, Toward
      privacy in IoT mobile devices for activity recognition, MobiQuitous 2018.
    """
    names = attributes(spec)
    spec.num_classes(spec.public)  # Raises if the public attribute is numeric.

    def init_fn(key):
        del key
        classes = {name: spec.num_classes(name) for name in names}
        return {"sums": empty(spec.time, len(spec.channels), classes)}

    def add(key, state, data):
        batch = pool.draw(key, data, config.batch_size)
        labels = {name: batch.labels[name] for name in names}
        return {"sums": add_windows(state.params["sums"], batch.windows, labels)}

    def anonymize_fn(key, params, windows):
        del key
        leaks = leakage(params["sums"])
        private = jnp.max(jnp.stack([leaks[name] for name in spec.private]), axis=0)
        mean, power = average(params["sums"])
        chosen = greatest(private[2:], config.fraction) & (private[2:] > 0)
        windows = normalise(windows, chosen, power[2:])
        removed = private[:2] > leaks[spec.public][:2]
        return remove(windows, removed, mean[:2])

    source = BatchSource(
        lambda clients: pool.pool(spec, clients),
        lambda key, data, copy: (),
        lambda data: pool.rounds_per_epoch(data, config.batch_size),
        config.batch_size,
    )
    method = central(
        "orf",
        config,
        spec,
        source,
        init_fn=init_fn,
        components=(),
        hyper={},
        anonymize_fn=anonymize_fn,
        finish_fn=add,
    )

    def update(key, state, data):
        """Runs a round; ``info`` has the maximum leakage of each attribute."""
        state, _ = method.update(key, state, data)
        leaks = leakage(state.params["sums"])
        return state, {f"{name} leakage": jnp.max(leak) for name, leak in leaks.items()}

    return method._replace(update=update)


MIN_VARIANCE = 1e-6  # Variance, in standardised units, below which leakage is 0.


class Sums(NamedTuple):
    """Running sums of features over windows, ``float32``."""

    squares: jax.Array  # float[features, channels]
    counts: dict[str, jax.Array]  # float[classes], by attribute
    by_class: dict[str, jax.Array]  # float[classes, features, channels], by attribute


def features(windows):
    """Returns the mean, standard deviation and spectral magnitudes of each channel.

    Maps ``float[N, time, channels]`` to ``float[N, 2 + time // 2, channels]``. The
    magnitudes are those of the Fourier transform divided by ``time``.

    Example:
      >>> features(jnp.array([1.0, 3.0, 1.0, 3.0])[None, :, None])[0, :, 0]
      Array([2., 1., 0., 1.], dtype=float32)
    """
    squares = sum(part**2 for part, _ in _transformed(windows))
    spectrum = jnp.swapaxes(jnp.sqrt(squares), 1, 2) / windows.shape[1]
    mean, std = jnp.mean(windows, axis=1), jnp.std(windows, axis=1)
    return jnp.concatenate([mean[:, None], std[:, None], spectrum], axis=1)


def empty(time: int, channels: int, classes: dict[str, int]) -> Sums:
    """Returns zero sums; ``classes`` maps attributes to class counts."""
    shape = (2 + time // 2, channels)
    return Sums(
        jnp.zeros(shape),
        {name: jnp.zeros(num) for name, num in classes.items()},
        {name: jnp.zeros((num, *shape)) for name, num in classes.items()},
    )


def add_windows(sums: Sums, windows, labels: dict) -> Sums:
    """Adds windows to the sums; ``labels`` are ``int[N]`` by attribute."""
    values = features(windows)
    counts, by_class = {}, {}
    for name, classes in labels.items():
        member = jax.nn.one_hot(classes, len(sums.counts[name]))
        counts[name] = sums.counts[name] + jnp.sum(member, axis=0)
        by_class[name] = sums.by_class[name] + jnp.einsum("nk,nfc->kfc", member, values)
    return Sums(sums.squares + jnp.sum(values**2, axis=0), counts, by_class)


def average(sums: Sums):
    """Returns the features' mean and mean square, ``float[features, channels]``."""
    by_class = next(iter(sums.by_class.values()))
    total = jnp.maximum(jnp.sum(next(iter(sums.counts.values()))), 1)
    return jnp.sum(by_class, axis=0) / total, sums.squares / total


def leakage(sums: Sums) -> dict[str, jax.Array]:
    """Returns the correlation ratio of each feature with each attribute.

    The ratio is the fraction of a feature's variance between classes, in [0, 1]. It is
    0 for a constant feature.
    """
    mean, square = average(sums)
    variance = square - mean**2
    ratios = {}
    for name, counts in sums.counts.items():
        rows = counts[:, None, None]
        deviation = sums.by_class[name] / jnp.maximum(rows, 1) - mean[None]
        between = jnp.sum(rows * deviation**2, axis=0) / jnp.maximum(jnp.sum(counts), 1)
        varies = variance > MIN_VARIANCE
        ratios[name] = jnp.where(varies, between / jnp.where(varies, variance, 1), 0)
    return ratios


def greatest(values, share: float):
    """Returns a mask of the ``share`` of entries with the largest values.

    Example:
      >>> greatest(jnp.array([[3.0, 1.0], [2.0, 4.0]]), 0.5)
      Array([[ True, False],
             [False,  True]], dtype=bool)
    """
    rank = jnp.argsort(jnp.argsort(-values.ravel()))
    return (rank < round(share * values.size)).reshape(values.shape)


def normalise(windows, chosen, power):
    """Scales the chosen frequencies of each channel to a common root mean square.

    Args:
      windows: ``float[N, time, channels]``.
      chosen: mask of frequencies above 0, ``bool[time // 2, channels]``.
      power: mean squared magnitudes, ``float[time // 2, channels]``.

    Returns:
      ``float[N, time, channels]``. Phases and the shape of the chosen spectrum do not
      change. A channel with almost no power in it is not scaled.
    """
    time = windows.shape[1]
    parts, chosen, power = _transformed(windows), chosen.T[None], power.T[None]
    squares = sum((part / time) ** 2 for part, _ in parts)
    actual = jnp.sum(jnp.where(chosen, squares, 0), axis=2, keepdims=True)
    common = jnp.sum(jnp.where(chosen, power, 0), axis=2, keepdims=True)
    gain = jnp.sqrt(common / jnp.where(actual > 0, actual, 1))
    gain = jnp.where(actual > MIN_VARIANCE, gain, 1)
    # Each frequency has a negative counterpart, except the highest for even lengths.
    weight = np.full(time // 2, 2 / time, np.float32)
    weight[time // 2 - 1] = (1 + time % 2) / time
    more = jnp.where(chosen, gain - 1, 0) * weight[None, None]
    change = [_product(more * part, wave.T) for part, wave in parts]
    return windows + jnp.swapaxes(change[0] + change[1], 1, 2)


def _product(a, b):
    return jnp.matmul(a, b, precision="highest")


def _transformed(windows):
    """Returns Fourier coefficients, ``float[N, channels, time // 2]``, and their waves.

    Uses matrix products, which device exports support.
    """
    rows = jnp.swapaxes(windows, 1, 2)
    return [(_product(rows, wave), wave) for wave in _waves(windows.shape[1])]


@functools.lru_cache(maxsize=8)
def _waves(time):
    """Returns cosines and sines above frequency 0, ``float32[2, time, time // 2]``."""
    angle = 2 * np.pi * np.outer(np.arange(time), np.arange(1, 1 + time // 2)) / time
    # Rounding makes the cosine of a right angle exactly 0.
    return np.stack([np.cos(angle), np.sin(angle)]).round(12).astype(np.float32)


def remove(windows, removed, common):
    """Replaces the mean or standard deviation of selected channels in all windows.

    Args:
      windows: ``float[N, time, channels]``.
      removed: which means and standard deviations to replace, ``bool[2, channels]``.
      common: their replacements, ``float[2, channels]``.
    """
    mean, std = features(windows)[:, :1], features(windows)[:, 1:2]
    common = common[None]
    per_unit = common[:, 1:] / jnp.where(std > 0, std, 1)
    gain = jnp.where(std > MIN_VARIANCE, per_unit, 1)
    shape = (windows - mean) * jnp.where(removed[None, 1:], gain, 1)
    return shape + jnp.where(removed[None, :1], common[:, :1], mean)
