"""Classifiers and class conditions that all generators share."""

from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.datasets.spec import attributes
from jaxanon.kernels import portable
from jaxanon.methods.common import pool
from jaxanon.methods.common.alternating import BatchSource, Component
from jaxanon.models.classifiers import WindowClassifier
from jaxanon.models.conditions import AnalogBits, check_values, values_of
from jaxanon.models.layers import apply
from jaxanon.models.losses import weighted_cross_entropy

DROPOUT = 0.3  # Of the classifiers' features.


class Judging(Protocol):
    """Networks that have classifiers of their spec's attributes among them."""

    @property
    def spec(self) -> Any: ...
    @property
    def config(self) -> Any: ...  # with ``classes_to_hide``
    @property
    def bits(self) -> AnalogBits: ...
    @property
    def sizes(self) -> dict[str, int]: ...
    @property
    def classifiers(self) -> dict[str, WindowClassifier]: ...


def classifying(nets: Judging, when_fn=None, more_fn=None) -> Component:
    """Classifiers of each attribute on raw windows, every class counting the same.

    ``more_fn(params, features, labels, hyper) -> (float[], info)`` is added, of the
    features of each attribute, ``float[batch, d]``.
    """

    def loss_fn(key, params, hyper, batch, given):
        del given
        total, info, features = jnp.zeros(()), {}, {}
        for index, (name, size) in enumerate(nets.sizes.items()):
            own = jax.random.fold_in(key, index), DROPOUT
            logits, features[name] = classify(nets, params, name, batch.windows, *own)
            labels = batch.labels[name]
            counts = jnp.bincount(labels, length=size)
            weights = 1.0 / counts[labels]
            info[f"{name} classifier"] = weighted_cross_entropy(logits, labels, weights)
            total = total + info[f"{name} classifier"]
        if more_fn is not None:
            more, told = more_fn(params, features, batch.labels, hyper)
            total, info = total + more, info | told
        return total, (info, {})

    return Component(
        (CLASSIFIERS,),
        loss_fn,
        when_fn=when_fn,
        learning_rate="classifier_learning_rate",
    )


class GeneratorBatch(NamedTuple):
    """Windows as networks see them, and all that is known of them."""

    windows: jax.Array  # float32[batch, time, d]
    labels: dict[str, jax.Array]  # int32[batch] of each attribute


def batch_source(nets: Judging, *, every_class: bool = False) -> BatchSource:
    """Batches drawn uniformly, with replacement, from all clients' windows.

    Args:
      nets: ``Networks``, or others with ``bits``.
      every_class: whether each public class must have windows.
    """
    size, spec = nets.config.batch_size, nets.spec

    def prepare(clients):
        check_values(clients.windows[clients.mask], spec.channels, nets.bits.values)
        found = pool.pool(spec, clients)
        if every_class:
            pool.check_counts(spec, found.counts, 1, pool.FOR_TELLING)
        return found

    def draw(key, data, copy):
        del copy
        drawn = pool.draw(key, data, size)
        return GeneratorBatch(nets.bits.encode(drawn.windows), drawn.labels)

    return BatchSource(
        prepare, draw, lambda data: pool.rounds_per_epoch(data, size), size
    )


CLASSIFIERS = "classifiers"


def init_classifiers(classifiers, keys, window) -> dict:
    """Parameters of each classifier, by its attribute's name.

    Args:
      classifiers: a network of each attribute.
      keys: typed PRNG keys, one of each.
      window: what they see, ``float[1, time, d]``.
    """
    pairs = zip(classifiers.items(), keys, strict=True)
    return {name: net.init(key, window)["params"] for (name, net), key in pairs}


def classify(nets: Judging, params, name: str, x, key=None, dropout=0.0):
    """Logits and features of an attribute, by its classifier.

    Args:
      nets: with ``classifiers``.
      params: with theirs.
      name: of the attribute.
      x: ``float[batch, time, d]``, as the networks see windows.
      key, dropout: of ``WindowClassifier``.

    Returns:
      ``float[batch, classes]`` and ``float[batch, features]``.
    """
    own = params[CLASSIFIERS][name]
    return apply(nets.classifiers[name], own, x, key, dropout)


def attributes_and_values(spec, config):
    """Classes of each attribute, and how many values each channel has.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      config: with ``categories`` and ``classes_to_hide``.

    Returns:
      A dict of ints, and a tuple of them, 0 of a channel that is measured.

    Raises:
      ValueError: for a public attribute that is a number, categories that name no
        channel, classes to hide that there are not, one of them twice, or all.
    """
    sizes, values = sizes_and_values(spec, config.categories)
    unknown = [
        name for name in config.classes_to_hide if name not in spec.classes[spec.public]
    ]
    if unknown:
        raise ValueError(
            f"classes_to_hide must name classes of {spec.public!r}, of "
            f"{spec.classes[spec.public]}, a word each (--hide A B), got {unknown}."
        )
    if len(set(config.classes_to_hide)) < len(config.classes_to_hide):
        raise ValueError(
            f"classes_to_hide names a class twice, got {list(config.classes_to_hide)}."
        )
    if len(config.classes_to_hide) == sizes[spec.public]:
        raise ValueError(
            f"classes_to_hide names every class of {spec.public!r}, "
            f"{config.classes_to_hide}; leave one to "
            "be shown."
        )
    return sizes, values


def sizes_and_values(spec, categories):
    """The same where nothing is hidden.

    Raises:
      ValueError: for a public attribute that is a number, or categories that name no
        channel.
    """
    sizes = {name: spec.num_classes(name) for name in attributes(spec)}
    if spec.tokens:
        return sizes, (spec.tokens,)
    return sizes, values_of(spec.channels, categories)


def shown_classes(nets: Judging, key, found):
    """Public classes as they are, ``int32[batch]``, those to hide drawn anew, evenly.

    Also ``bool[batch]``, which those are.
    """
    secret = is_hidden(nets)
    shown = jnp.log(1.0 - secret)
    other = portable.categorical(key, shown, found.shape)
    return jnp.where(secret[found], other, found), secret[found]


def is_hidden(nets: Judging):
    """``bool[classes]``, which public classes are to hide."""
    names = nets.spec.classes[nets.spec.public]
    return jnp.array([name in nets.config.classes_to_hide for name in names])


def every(nets: Judging, classes) -> dict:
    """``filled``, where the public attribute is among them.

    Raises:
      ValueError: if it is missing, and as ``filled``.
    """
    if nets.spec.public not in classes:
        raise ValueError(
            f"classes must have {nets.spec.public!r}, of each window to be made, got "
            f"{sorted(classes)}."
        )
    return filled(nets, classes)


def filled(nets: Judging, classes) -> dict:
    """``int32[n]`` of all attributes; those that are not among ``classes`` not known.

    Raises:
      ValueError: if there are others than the spec's, or classes out of range, where
        they are known on the host.
    """
    if unknown := sorted(set(classes) - set(nets.sizes)):
        raise ValueError(
            f"classes must be of {sorted(nets.sizes)}, got {unknown}; nothing else was "
            "learned."
        )
    for name, own in classes.items():
        if not isinstance(own, jax.core.Tracer):
            own, size = np.asarray(own), nets.sizes[name]
            wrong = own[(own < 0) | (own >= size)]
            if len(wrong):
                raise ValueError(
                    f"classes of {name!r} must lie in [0, {size}), got {wrong[0]}; "
                    f"they are {nets.spec.classes[name]}."
                )
    blank = jnp.zeros(len(next(iter(classes.values()))), jnp.int32)
    none = {name: blank + size for name, size in nets.sizes.items()}
    return none | {name: jnp.asarray(own, jnp.int32) for name, own in classes.items()}


def standardised(nets: Judging, windows):
    """Windows as their spec's mean and deviation scale them."""
    mean, std = _scale(nets.spec)
    return (windows - mean) / std


def physical(nets: Judging, windows):
    """The inverse; values of categorical channels come out whole."""
    mean, std = _scale(nets.spec)
    return nets.bits.whole(windows * std + mean).astype(jnp.float32)


def _scale(spec):
    return (jnp.float32(x)[None, None] for x in (spec.mean, spec.std))
