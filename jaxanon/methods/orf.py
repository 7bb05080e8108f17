"""ORF: frequencies that tell the private attribute normalised, statistics left out."""

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
from jaxanon.methods.common import pool
from jaxanon.methods.common.alternating import BatchSource, central


@dataclasses.dataclass(frozen=True, kw_only=True)
class ORFConfig:
    """ORF's settings; none is published."""

    fraction: float = setting(
        0.5, at_least=0, at_most=1, help="of frequencies, normalised"
    )
    batch_size: int = setting(1024, at_least=1, help="windows per round of statistics")

    __post_init__ = check


@register("orf", config=ORFConfig)
def orf(spec, config) -> Method:
    """Builds ORF, a signal-processing baseline, for windows of ``spec``.

    As DySan describes it: the features that tell most of the private attribute are
    found; those in the frequency domain are normalised, those in the time domain that
    the public attribute does not use are removed. Which features, how they are ranked
    and what normalising is are not published, and what leaves there are features, not
    windows. Here

    - features are, for each channel of a standardised window, its mean, its standard
      deviation and the magnitude of each frequency above 0;
    - a feature tells of an attribute as much as its correlation ratio, the share of
      its variance that lies between the classes, over the training windows; of several
      private attributes the one that is told most counts;
    - the ``fraction`` of the frequencies that tell most of a private attribute are
      normalised, in each channel together: scaled to the root mean square that they
      have in the training windows, their shape and their phases kept;
    - a mean or standard deviation that tells more of a private attribute than of the
      public one is removed: it becomes the training windows' mean of it.

    Nothing is trained. A round adds a batch of windows to the sums that the statistics
    are made of, so that an epoch is about one pass, and enough.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``ORFConfig``.

    Returns:
      ``Method``; before the first round it changes nothing.

    Raises:
      ValueError: if a setting is out of range.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> orf(load("smartwatch").spec, fraction=0.25).config.fraction
      0.25

    References:
      Boutet et al., DySan, AsiaCCS 2021, section 4.2; Jourdan, Boutet, Frindel, Toward
      privacy in IoT mobile devices for activity recognition, MobiQuitous 2018.
    """
    names = attributes(spec)
    spec.num_classes(spec.public)  # A number is refused.

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
        told = leakage(params["sums"])
        private = jnp.max(jnp.stack([told[name] for name in spec.private]), axis=0)
        mean, power = average(params["sums"])
        chosen = greatest(private[2:], config.fraction) & (private[2:] > 0)
        windows = normalise(windows, chosen, power[2:])
        removed = private[:2] > told[spec.public][:2]
        return remove(windows, removed, mean[:2])

    room = BatchSource(
        lambda clients: pool.pool(spec, clients),
        lambda key, data, copy: (),
        lambda data: pool.rounds_per_epoch(data, config.batch_size),
        config.batch_size,
    )
    method = central(
        "orf",
        config,
        spec,
        room,
        init_fn=init_fn,
        players=(),
        hyper={},
        anonymize_fn=anonymize_fn,
        finish_fn=add,
    )

    def update(key, state, data):
        """The round, and how much the feature tells that tells most."""
        state, _ = method.update(key, state, data)
        told = leakage(state.params["sums"])
        return state, {f"{name} told": jnp.max(each) for name, each in told.items()}

    return method._replace(update=update)


SILENT = 1e-6  # Variance, of standardised windows, below which a feature says nothing.


class Sums(NamedTuple):
    """Of features over windows; ``float32``, with axes ``features, channels``."""

    squares: jax.Array  # float[features, channels]
    counts: dict[str, jax.Array]  # of each attribute, float[classes]
    by_class: dict[str, jax.Array]  # of each, float[classes, features, channels]


def features(windows):
    """Mean, standard deviation and magnitude of every frequency, by channel.

    ``float[N, time, channels]`` to ``float[N, 2 + time // 2, channels]``; magnitudes
    are those of the Fourier transform, divided by ``time``.

    Example:
      >>> features(jnp.array([1.0, 3.0, 1.0, 3.0])[None, :, None])[0, :, 0]
      Array([2., 1., 0., 1.], dtype=float32)
    """
    squares = sum(part**2 for part, _ in _transformed(windows))
    spectrum = jnp.swapaxes(jnp.sqrt(squares), 1, 2) / windows.shape[1]
    centre, spread = jnp.mean(windows, axis=1), jnp.std(windows, axis=1)
    return jnp.concatenate([centre[:, None], spread[:, None], spectrum], axis=1)


def empty(time: int, channels: int, classes: dict[str, int]) -> Sums:
    """Sums over no windows; ``classes`` are the numbers of each attribute's."""
    shape = (2 + time // 2, channels)
    return Sums(
        jnp.zeros(shape),
        {name: jnp.zeros(num) for name, num in classes.items()},
        {name: jnp.zeros((num, *shape)) for name, num in classes.items()},
    )


def add_windows(sums: Sums, windows, labels: dict) -> Sums:
    """The sums with these windows in them; ``labels`` are ``int[N]`` by attribute."""
    found = features(windows)
    counts, by_class = {}, {}
    for name, own in labels.items():
        member = jax.nn.one_hot(own, len(sums.counts[name]))
        counts[name] = sums.counts[name] + jnp.sum(member, axis=0)
        by_class[name] = sums.by_class[name] + jnp.einsum("nk,nfc->kfc", member, found)
    return Sums(sums.squares + jnp.sum(found**2, axis=0), counts, by_class)


def average(sums: Sums):
    """Mean and mean square of the features, ``float[features, channels]`` each."""
    by_class = next(iter(sums.by_class.values()))
    total = jnp.maximum(jnp.sum(next(iter(sums.counts.values()))), 1)
    return jnp.sum(by_class, axis=0) / total, sums.squares / total


def leakage(sums: Sums) -> dict[str, jax.Array]:
    """How much each feature tells of each attribute: its correlation ratio.

    The share of a feature's variance that lies between the classes, in [0, 1]; 0 for a
    feature that does not vary.
    """
    mean, square = average(sums)
    variance = square - mean**2
    found = {}
    for name, counts in sums.counts.items():
        rows = counts[:, None, None]
        apart = sums.by_class[name] / jnp.maximum(rows, 1) - mean[None]
        between = jnp.sum(rows * apart**2, axis=0) / jnp.maximum(jnp.sum(counts), 1)
        varies = variance > SILENT
        found[name] = jnp.where(varies, between / jnp.where(varies, variance, 1), 0)
    return found


def greatest(values, share: float):
    """``bool`` of the same shape: the share of entries that are greatest.

    Example:
      >>> greatest(jnp.array([[3.0, 1.0], [2.0, 4.0]]), 0.5)
      Array([[ True, False],
             [False,  True]], dtype=bool)
    """
    place = jnp.argsort(jnp.argsort(-values.ravel()))
    return (place < round(share * values.size)).reshape(values.shape)


def normalise(windows, chosen, power):
    """Scales the chosen frequencies of each channel to a common root mean square.

    Args:
      windows: ``float[N, time, channels]``.
      chosen: ``bool[time // 2, channels]``, frequencies above 0.
      power: ``float[time // 2, channels]``, mean squares of their magnitudes.

    Returns:
      ``float[N, time, channels]``; phases and the shape of the chosen part of a
      spectrum stay as they are, and so does one that is silent.
    """
    time = windows.shape[1]
    parts, chosen, power = _transformed(windows), chosen.T[None], power.T[None]
    squares = sum((part / time) ** 2 for part, _ in parts)
    own = jnp.sum(jnp.where(chosen, squares, 0), axis=2, keepdims=True)
    common = jnp.sum(jnp.where(chosen, power, 0), axis=2, keepdims=True)
    gain = jnp.where(own > SILENT, jnp.sqrt(common / jnp.where(own > 0, own, 1)), 1)
    # Every frequency has an opposite one but the highest, of windows of even length.
    share = np.full(time // 2, 2 / time, np.float32)
    share[time // 2 - 1] = (1 + time % 2) / time
    more = jnp.where(chosen, gain - 1, 0) * share[None, None]
    change = [_product(more * part, wave.T) for part, wave in parts]
    return windows + jnp.swapaxes(change[0] + change[1], 1, 2)


def _product(a, b):
    return jnp.matmul(a, b, precision="highest")


def _transformed(windows):
    """Fourier coefficients above 0, ``float[N, channels, time // 2]``, and their waves.

    By products: what runs on a device knows them, and they are short.
    """
    rows = jnp.swapaxes(windows, 1, 2)
    return [(_product(rows, wave), wave) for wave in _waves(windows.shape[1])]


@functools.lru_cache(maxsize=8)
def _waves(time):
    """Cosines and sines of the frequencies above 0, ``float32[2, time, time // 2]``."""
    angle = 2 * np.pi * np.outer(np.arange(time), np.arange(1, 1 + time // 2)) / time
    # A cosine of a right angle is 0.
    return np.stack([np.cos(angle), np.sin(angle)]).round(12).astype(np.float32)


def remove(windows, removed, common):
    """Gives all windows the same mean, or deviation, of a channel.

    Args:
      windows: ``float[N, time, channels]``.
      removed: ``bool[2, channels]``, whether the mean goes and whether the deviation.
      common: ``float[2, channels]``, what there is in their place.
    """
    centre, spread = features(windows)[:, :1], features(windows)[:, 1:2]
    common = common[None]
    per_unit = common[:, 1:] / jnp.where(spread > 0, spread, 1)
    gain = jnp.where(spread > SILENT, per_unit, 1)
    shape = (windows - centre) * jnp.where(removed[None, 1:], gain, 1)
    return shape + jnp.where(removed[None, :1], common[:, :1], centre)
