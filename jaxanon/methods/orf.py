"""ORF: frequencies that tell the private attribute normalised, statistics left out."""

import dataclasses

import jax.numpy as jnp

from jaxanon.kernels.setting_checks import at_least, configured, finite, of_kinds
from jaxanon.methods import pool, signature
from jaxanon.methods.central import Room, central
from jaxanon.methods.draws import attributes
from jaxanon.methods.method import Method


@dataclasses.dataclass(frozen=True, kw_only=True)
class ORFConfig:
    """ORF's settings; none is published.

    Raises:
      ValueError: for a setting out of its range.
      TypeError: for a setting of another type.
    """

    share: float = 0.5
    """of the frequencies, those that tell most of a private attribute"""
    batch: int = 1024
    """windows per round, that the statistics are of"""

    def __post_init__(self):
        of_kinds(self)
        finite(zero=True, share=self.share)
        at_least(1, batch=self.batch)
        if self.share > 1:
            raise ValueError(f"share must be at most 1, got {self.share!r}.")


def orf(spec, **settings) -> Method:
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
    - the ``share`` of the frequencies that tell most of a private attribute are
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
      >>> orf(load("smartwatch").spec, share=0.25).config.share
      0.25

    References:
      Boutet et al., DySan, AsiaCCS 2021, section 4.2; Jourdan, Boutet, Frindel, Toward
      privacy in IoT mobile devices for activity recognition, MobiQuitous 2018.
    """
    config = configured(ORFConfig, settings)
    names = attributes(spec)
    spec.num_classes(spec.public)  # A number is refused.

    def init_fn(key):
        del key
        classes = {name: spec.num_classes(name) for name in names}
        return {"sums": signature.empty(spec.time, len(spec.channels), classes)}

    def add(key, state, data):
        batch = pool.draw(key, data, config.batch)
        labels = {name: batch.labels[name] for name in names}
        return {"sums": signature.add(state.params["sums"], batch.windows, labels)}

    def anonymize_fn(key, params, windows):
        del key
        told = signature.told(params["sums"])
        private = jnp.max(jnp.stack([told[name] for name in spec.private]), axis=0)
        mean, power = signature.average(params["sums"])
        chosen = signature.greatest(private[2:], config.share) & (private[2:] > 0)
        windows = signature.normalise(windows, chosen, power[2:])
        removed = private[:2] > told[spec.public][:2]
        return signature.remove(windows, removed, mean[:2])

    room = Room(
        lambda clients: pool.pool(spec, clients),
        lambda key, data, copy: (),
        lambda data: pool.rounds_per_epoch(data, config.batch),
        config.batch,
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
        told = signature.told(state.params["sums"])
        return state, {f"{name} told": jnp.max(each) for name, each in told.items()}

    return method._replace(update=update)
