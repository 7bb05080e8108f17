"""DySan's networks together: what they make of a batch, and what each is graded by."""

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
    least_time,
    sanitize,
)

NOISE = 2  # Random numbers that the sanitizer is given with a window.

ERRORS = ("balanced", "official")


class Widths(NamedTuple):
    """Sizes of the layers; the defaults are those of the released program."""

    filters: Sequence[int] = (64, 128)
    hidden_sizes: Sequence[int] = (128, 64)
    predictor_filters: Sequence[int] = (100, 100, 160, 160)
    discriminator_filters: int = 64
    classifier_hidden_sizes: int = 64


class DySanNetworks(NamedTuple):
    """A sanitizer, a predictor, and one discriminator for each private attribute.

    A discriminator is given the public class, as in eq. 1. The released program gives
    all networks the wearer's height, weight and age, too, which ``sides`` counts; they
    are ``float[batch, sides]`` in [-1, 1], and -1 where they are not given, as in that
    program's analysis.
    """

    time: int
    channels: int
    public: tuple[str, int]  # attribute and its number of classes
    sanitizer: Sanitizer
    predictor: Predictor
    discriminators: dict[str, Discriminator]
    sides: int = 0

    def init(self, key):
        """Parameters, a dict of groups; ``averages`` are those of the judges."""
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
        """The sanitizer of ``params``, ready for many windows."""
        return compose(params["sanitizer"], self.time)

    def sanitize(self, key, composed, windows, sides=None):
        """Windows and their sides, shaped as given, sanitized with fresh noise."""
        noise = portable.uniform(key, (len(windows), NOISE))
        return sanitize(composed, windows, self._known(sides, windows), noise)

    def predict(self, params, windows, sides=None, key=None):
        """``(logits of the public attribute, averages)``; dropout with a key."""
        variables = _variables(params, "predictor")
        known = self._known(sides, windows)
        return _apply(self.predictor, variables, windows, known, key)

    def discriminate(self, params, windows, public, sides=None, key=None):
        """``(dict of logits of private attributes, dict of averages)``.

        ``public`` are the classes of the windows, ``int[batch]``.
        """
        own = scaled(public, self.public[1])[:, None]
        sides = jnp.concatenate([self._known(sides, windows), own], axis=1)
        variables = _variables(params, "discriminators")
        logits, averages = {}, {}
        for number, (name, net) in enumerate(self.discriminators.items()):
            own_key = None if key is None else jax.random.fold_in(key, number)
            one = {kind: each[name] for kind, each in variables.items()}
            logits[name], averages[name] = _apply(net, one, windows, sides, own_key)
        return logits, averages

    def _known(self, sides, windows):
        return -jnp.ones((len(windows), self.sides)) if sides is None else sides


def scaled(classes, num_classes: int):
    """Numbers of classes from 0, as floats from -1 to 1."""
    return 2 * classes / (num_classes - 1) - 1


def networks(
    time: int, channels: int, public, private, widths: Widths, sides: int = 0
) -> DySanNetworks:
    """The networks for windows of ``time`` samples.

    Args:
      time, channels: of a window.
      public: name and number of classes of the attribute to keep.
      private: names and numbers of classes of those to hide.
      widths: ``Widths``.
      sides: how much else is told of a wearer.

    Raises:
      ValueError: if a window is too short for the convolutions.

    Example:
      >>> net = networks(125, 6, ("activity", 4), {"gender": 2}, Widths())
      >>> shapes = jax.eval_shape(net.init, jax.random.key(0))
      >>> sum(leaf.size for leaf in jax.tree.leaves(shapes["sanitizer"]))
      3919686
    """
    least = max(REACH, least_time(widths.predictor_filters))
    if time < least:
        raise ValueError(
            f"windows must have at least {least} samples for predictor_filters="
            f"{tuple(widths.predictor_filters)}, got {time}; take longer windows or "
            "fewer filters."
        )
    own = (widths.discriminator_filters, widths.classifier_hidden_sizes)
    return DySanNetworks(
        time,
        channels,
        public,
        Sanitizer(tuple(widths.filters), tuple(widths.hidden_sizes)),
        Predictor(
            public[1], tuple(widths.predictor_filters), widths.classifier_hidden_sizes
        ),
        {name: Discriminator(classes, *own) for name, classes in private.items()},
        sides,
    )


def errors(nets: DySanNetworks, logits: dict, labels: dict, variant: str) -> dict:
    """The balanced error of each attribute of which there are logits, ``float[]``.

    Args:
      nets: of ``networks``.
      logits: names of attributes to ``float[batch, classes]``.
      labels: names of attributes to ``int[batch]``.
      variant: ``"balanced"`` over an attribute's own classes; ``"official"`` over those
        of the first private one, whatever the attribute, an absent class counting as
        one without error.
    """
    first = next(iter(nets.discriminators))
    found = {}
    for name, each in logits.items():
        groups, num_groups = labels[name], each.shape[1]
        if variant == "official":
            groups, num_groups = labels[first], nets.discriminators[first].num_classes
        found[name] = balanced_error(
            each, labels[name], groups, num_groups, absent=variant == "official"
        )
    return found


def _variables(params, group):
    return {"params": params[group], "batch_stats": params["averages"][group]}


def _apply(net, variables, windows, sides, key):
    if key is None:
        return net.apply(variables, windows, sides), variables["batch_stats"]
    logits, renewed = net.apply(variables, windows, sides, key, mutable=["batch_stats"])
    return logits, renewed["batch_stats"]
