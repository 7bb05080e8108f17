"""DySan's networks and their errors on a batch."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.kernels import portable
from jaxanon.models.losses import balanced_error
from jaxanon.models.sanitizer import (
    REACH,
    Discriminator,
    Predictor,
    Sanitizer,
    compose,
    min_time,
    sanitize,
)

NOISE = 2  # Random inputs of the sanitizer per window.

ERRORS = ("balanced", "official")


class Widths(NamedTuple):
    """Sizes of the layers; the defaults are those of the official program."""

    filters: Sequence[int] = (64, 128)
    hidden_sizes: Sequence[int] = (128, 64)
    predictor_filters: Sequence[int] = (100, 100, 160, 160)
    discriminator_filters: int = 64
    classifier_hidden_sizes: int = 64


class DySanNetworks(NamedTuple):
    """A sanitizer, a predictor, and one discriminator per private attribute.

    The public class is an input of the discriminators, as in eq. 1. In the official
    program, all networks also take the wearer's height, weight and age. ``sides`` is
    the number of such side inputs, ``float[batch, sides]`` in [-1, 1]; they default to
    -1, as in that program's analysis.
    """

    time: int
    channels: int
    public: tuple[str, int]  # attribute and its number of classes
    sanitizer: Sanitizer
    predictor: Predictor
    discriminators: dict[str, Discriminator]
    sides: int = 0

    def init(self, key):
        """Returns a dict of groups; ``averages`` holds the batch statistics."""
        keys = iter(jax.random.split(key, 2 + len(self.discriminators)))
        windows = jnp.zeros((1, self.time, self.channels))
        sides, more = jnp.zeros((1, self.sides)), jnp.zeros((1, self.sides + 1))
        noise = jnp.zeros((1, NOISE))
        sanitizer = self.sanitizer.init(next(keys), windows, sides, noise)
        predictor = self.predictor.init(next(keys), windows, sides)
        others = {
            name: net.init(next(keys), windows, more)
            for name, net in self.discriminators.items()
        }
        pick = lambda kind: {name: each[kind] for name, each in others.items()}
        return {
            "sanitizer": sanitizer["params"],
            "predictor": predictor["params"],
            "discriminators": pick("params"),
            "averages": {
                "predictor": predictor["batch_stats"],
                "discriminators": pick("batch_stats"),
            },
        }

    def compose(self, params):
        """Returns the sanitizer with merged linear layers; see ``compose``."""
        return compose(params["sanitizer"], self.time)

    def sanitize(self, key, composed, windows, sides=None):
        """Sanitizes windows and their side inputs with fresh noise."""
        noise = portable.uniform(key, (len(windows), NOISE))
        return sanitize(composed, windows, self._sides(sides, windows), noise)

    def predict(self, params, windows, sides=None, key=None):
        """Returns ``(logits of the public attribute, averages)``; ``key``: dropout."""
        variables = _variables(params, "predictor")
        sides = self._sides(sides, windows)
        return _apply(self.predictor, variables, windows, sides, key)

    def discriminate(self, params, windows, public, sides=None, key=None):
        """Returns ``(logits, averages)``, dicts by private attribute.

        ``public`` holds the public classes of the windows, ``int[batch]``.
        """
        condition = scale_classes(public, self.public[1])[:, None]
        sides = jnp.concatenate([self._sides(sides, windows), condition], axis=1)
        variables = _variables(params, "discriminators")
        logits, averages = {}, {}
        for number, (name, net) in enumerate(self.discriminators.items()):
            net_key = None if key is None else jax.random.fold_in(key, number)
            one = {kind: each[name] for kind, each in variables.items()}
            logits[name], averages[name] = _apply(net, one, windows, sides, net_key)
        return logits, averages

    def _sides(self, sides, windows):
        return -jnp.ones((len(windows), self.sides)) if sides is None else sides


def scale_classes(classes, num_classes: int):
    """Maps class indices to floats from -1 to 1."""
    return 2 * classes / (num_classes - 1) - 1


def networks(
    time: int, channels: int, public, private, widths: Widths, sides: int = 0
) -> DySanNetworks:
    """Builds DySan's networks.

    Args:
      time: samples per window.
      channels: sensor channels.
      public: name and number of classes of the attribute to preserve.
      private: dict from names of attributes to hide to their numbers of classes.
      widths: sizes of the layers.
      sides: number of side inputs.

    Raises:
      ValueError: if a window is too short for the convolutions.

    Example:
      >>> net = networks(125, 6, ("activity", 4), {"gender": 2}, Widths())
      >>> shapes = jax.eval_shape(net.init, jax.random.key(0))
      >>> sum(leaf.size for leaf in jax.tree.leaves(shapes["sanitizer"]))
      3919686
    """
    shortest = max(REACH, min_time(widths.predictor_filters))
    if time < shortest:
        raise ValueError(
            f"windows must have at least {shortest} samples for predictor_filters="
            f"{tuple(widths.predictor_filters)}, got {time}; use longer windows or "
            "fewer filters."
        )
    sizes = (widths.discriminator_filters, widths.classifier_hidden_sizes)
    return DySanNetworks(
        time,
        channels,
        public,
        Sanitizer(tuple(widths.filters), tuple(widths.hidden_sizes)),
        Predictor(
            public[1], tuple(widths.predictor_filters), widths.classifier_hidden_sizes
        ),
        {name: Discriminator(classes, *sizes) for name, classes in private.items()},
        sides,
    )


def errors(nets: DySanNetworks, logits: dict, labels: dict, variant: str) -> dict:
    """Returns the balanced error, ``float[]``, of each attribute in ``logits``.

    Args:
      nets: networks, from ``networks``.
      logits: dict from attributes to ``float[batch, classes]``.
      labels: dict from attributes to ``int[batch]``.
      variant: ``"balanced"`` averages over the attribute's classes. ``"official"``
        always averages over the classes of the first private attribute and counts an
        absent class as free of errors, as the official program does.
    """
    first = next(iter(nets.discriminators))
    result = {}
    for name, each in logits.items():
        groups, num_groups = labels[name], each.shape[1]
        if variant == "official":
            groups, num_groups = labels[first], nets.discriminators[first].num_classes
        result[name] = balanced_error(
            each, labels[name], groups, num_groups, absent=variant == "official"
        )
    return result


def _variables(params, group):
    return {"params": params[group], "batch_stats": params["averages"][group]}


def _apply(net, variables, windows, sides, key):
    if key is None:
        return net.apply(variables, windows, sides), variables["batch_stats"]
    logits, renewed = net.apply(variables, windows, sides, key, mutable=["batch_stats"])
    return logits, renewed["batch_stats"]
