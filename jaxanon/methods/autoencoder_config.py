"""The settings that all autoencoders of the ObscureNet family share."""

import dataclasses
from typing import Any

from jaxanon.kernels.checks import one_of
from jaxanon.kernels.setting_checks import at_least, finite, of_kinds
from jaxanon.methods.shown import ANONYMIZATIONS, FLIPS, check_flip
from jaxanon.models.layers import INITIALISATIONS


@dataclasses.dataclass(frozen=True, kw_only=True)
class AutoencoderConfig:
    """Settings of an autoencoder that is trained in one place.

    Numbers in them, but for ``flip``, are defaults of hyper-parameters, arrays in the
    state that a sweep may vary without compiling anew.

    Raises:
      ValueError: for a setting out of its range.
      TypeError: for a setting that should be a whole number, or any, and is none.
    """

    latent: int | None = None
    """size of the latent; default: as published for the data set, else 10"""
    hidden: tuple[int, ...] | None = None
    """widths of the encoder's layers, which the decoder mirrors; default likewise"""
    batch: int = 512
    """windows per model and round"""
    step_size: float = 1e-3
    """step size of Adam"""
    initialisation: str = "released"
    """of all layers; lecun: variance 1 / fan-in, quicker to learn"""
    judge_batch: int = 256
    """windows per round for the classifiers of what a window's classes are"""
    judge_step_size: float = 1e-3
    """step size of their Adam"""
    anonymization: str = "stochastic"
    """stochastic: a random private class; deterministic: the one next to the predicted;
    probabilistic: that one or the predicted; vector, of a decoder that is told classes:
    random weights of them, as the released programs have it; a trained state serves
    all"""
    flip_to: str = "next"
    """the class shown instead of the predicted: the one after it, by number; previous,
    as released for MobiAct's weight: the one before it"""
    flip: float = 0.5
    """probabilistic: how often it is shown; the released programs' is 0.49"""

    def __post_init__(self):
        of_kinds(self)
        sizes = {"latent": self.latent, "hidden": self.hidden}
        given = {name: value for name, value in sizes.items() if value is not None}
        at_least(1, batch=self.batch, judge_batch=self.judge_batch, **given)
        finite(
            zero=False, step_size=self.step_size, judge_step_size=self.judge_step_size
        )
        one_of("anonymization", self.anonymization, (*ANONYMIZATIONS, "vector"))
        one_of("flip_to", self.flip_to, FLIPS)
        one_of("initialisation", self.initialisation, INITIALISATIONS)
        check_flip(self.flip)


def sized(config: Any, spec, published: dict) -> Any:
    """``config`` with the sizes that it leaves open.

    Args:
      config: ``AutoencoderConfig``.
      spec: the windows' ``Spec``; its name chooses.
      published: name of a data set, or ``""`` for all others, to latent and hidden.

    Example:
      >>> from jaxanon.datasets import load
      >>> table = {"": (10, (512, 128))}
      >>> config = sized(AutoencoderConfig(latent=4), load("smartwatch").spec, table)
      >>> config.latent, config.hidden
      (4, (512, 128))
    """
    latent, hidden = published.get(spec.name, published[""])
    return dataclasses.replace(
        config,
        latent=latent if config.latent is None else config.latent,
        hidden=hidden if config.hidden is None else config.hidden,
    )
