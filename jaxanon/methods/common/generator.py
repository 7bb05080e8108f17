"""Classifiers, batches and class conditions shared by all generators."""

from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.datasets.spec import attributes
from jaxanon.kernels import portable
from jaxanon.methods.common import pool
from jaxanon.methods.common.alternating import BatchSource, Component
from jaxanon.models.classifiers import WindowClassifier
from jaxanon.models.conditions import AnalogBits, check_values, parse_categories
from jaxanon.models.layers import apply
from jaxanon.models.losses import weighted_cross_entropy

DROPOUT = 0.3  # Applied to the classifiers' features.


class Judging(Protocol):
    """Networks that include a classifier of each attribute in their spec."""

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
    """Returns the component that trains a classifier per attribute on raw windows.

    All classes have equal weight. ``more_fn(params, features, labels, hyper) ->
    (float[], info)`` adds a loss on each attribute's features, ``float[batch, d]``.
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
            more, more_info = more_fn(params, features, batch.labels, hyper)
            total, info = total + more, info | more_info
        return total, (info, {})

    return Component(
        (CLASSIFIERS,),
        loss_fn,
        when_fn=when_fn,
        learning_rate="classifier_learning_rate",
    )


class GeneratorBatch(NamedTuple):
    """Encoded windows and their labels."""

    windows: jax.Array  # float32[batch, time, d]
    labels: dict[str, jax.Array]  # int32[batch], by attribute


def batch_source(nets: Judging, *, every_class: bool = False) -> BatchSource:
    """Returns a source of batches drawn uniformly with replacement from all clients.

    Args:
      nets: networks with ``bits``.
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
    """Initializes the parameters of each classifier, by attribute.

    Args:
      classifiers: networks by attribute.
      keys: typed PRNG keys, one per classifier.
      window: example input, ``float[1, time, d]``.
    """
    pairs = zip(classifiers.items(), keys, strict=True)
    return {name: net.init(key, window)["params"] for (name, net), key in pairs}


def classify(nets: Judging, params, name: str, x, key=None, dropout=0.0):
    """Returns the logits and features of an attribute's classifier.

    Args:
      nets: networks with ``classifiers``.
      params: parameters with the group ``classifiers``.
      name: attribute name.
      x: encoded windows, ``float[batch, time, d]``.
      key, dropout: arguments of ``WindowClassifier``.

    Returns:
      ``float[batch, classes]`` and ``float[batch, features]``.
    """
    own = params[CLASSIFIERS][name]
    return apply(nets.classifiers[name], own, x, key, dropout)


def attributes_and_values(spec, config):
    """Returns the number of classes per attribute and of values per channel.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      config: settings with ``categories`` and ``classes_to_hide``.

    Returns:
      A dict of ints by attribute, and a tuple of ints by channel, 0 for a continuous
      channel.

    Raises:
      ValueError: if the public attribute is numeric, ``categories`` names an unknown
        channel, or ``classes_to_hide`` has unknown or repeated classes or all classes.
    """
    sizes, values = sizes_and_values(spec, config.categories)
    unknown = [
        name for name in config.classes_to_hide if name not in spec.classes[spec.public]
    ]
    if unknown:
        raise ValueError(
            f"classes_to_hide must name classes of {spec.public!r}, "
            f"{spec.classes[spec.public]}, got {unknown}; on the command line, "
            "separate names by spaces (--classes-to-hide A B)."
        )
    if len(set(config.classes_to_hide)) < len(config.classes_to_hide):
        raise ValueError(
            "classes_to_hide must not repeat a class, got "
            f"{list(config.classes_to_hide)}."
        )
    if len(config.classes_to_hide) == sizes[spec.public]:
        raise ValueError(
            f"classes_to_hide must leave at least one class of {spec.public!r}, got "
            f"all: {config.classes_to_hide}."
        )
    return sizes, values


def sizes_and_values(spec, categories):
    """Returns the same as ``attributes_and_values``, without checking hidden classes.

    Raises:
      ValueError: if the public attribute is numeric, or ``categories`` names an unknown
        channel.
    """
    sizes = {name: spec.num_classes(name) for name in attributes(spec)}
    if spec.tokens:
        return sizes, (spec.tokens,)
    return sizes, parse_categories(spec.channels, categories)


def shown_classes(nets: Judging, key, found):
    """Replaces hidden public classes by classes drawn uniformly from the others.

    Returns:
      ``int32[batch]``, the classes to show, and ``bool[batch]``, which were hidden.
    """
    secret = is_hidden(nets)
    shown = jnp.log(1.0 - secret)
    other = portable.categorical(key, shown, found.shape)
    return jnp.where(secret[found], other, found), secret[found]


def is_hidden(nets: Judging):
    """Returns which public classes are hidden, ``bool[classes]``."""
    names = nets.spec.classes[nets.spec.public]
    return jnp.array([name in nets.config.classes_to_hide for name in names])


def every(nets: Judging, classes) -> dict:
    """Returns ``filled(nets, classes)``; requires the public attribute.

    Raises:
      ValueError: if the public attribute is missing, or ``filled`` raises.
    """
    if nets.spec.public not in classes:
        raise ValueError(
            f"classes must have {nets.spec.public!r} for each window to generate, got "
            f"{sorted(classes)}."
        )
    return filled(nets, classes)


def filled(nets: Judging, classes) -> dict:
    """Returns ``int32[n]`` for each attribute; missing attributes become unknown.

    Raises:
      ValueError: if an attribute is not in the spec, or a class is out of range. Traced
        classes are not checked.
    """
    if unknown := sorted(set(classes) - set(nets.sizes)):
        raise ValueError(
            f"classes must name attributes in {sorted(nets.sizes)}, got {unknown}; the "
            "model was trained on these only."
        )
    for name, own in classes.items():
        if not isinstance(own, jax.core.Tracer):
            own, size = np.asarray(own), nets.sizes[name]
            wrong = own[(own < 0) | (own >= size)]
            if len(wrong):
                raise ValueError(
                    f"classes of {name!r} must lie in [0, {size}), got {wrong[0]}; "
                    f"the classes are {nets.spec.classes[name]}."
                )
    blank = jnp.zeros(len(next(iter(classes.values()))), jnp.int32)
    none = {name: blank + size for name, size in nets.sizes.items()}
    return none | {name: jnp.asarray(own, jnp.int32) for name, own in classes.items()}


def standardised(nets: Judging, windows):
    """Standardises windows by the mean and standard deviation of their spec."""
    mean, std = _scale(nets.spec)
    return (windows - mean) / std


def physical(nets: Judging, windows):
    """Inverts ``standardised`` and rounds categorical channels to valid values."""
    mean, std = _scale(nets.spec)
    return nets.bits.whole(windows * std + mean).astype(jnp.float32)


def _scale(spec):
    return (jnp.float32(x)[None, None] for x in (spec.mean, spec.std))
