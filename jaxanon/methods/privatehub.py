"""PrivateHub: synthetic windows of many sensors that keep some classes secret."""

import jax.numpy as jnp

from jaxanon.kernels.checks import typed_key
from jaxanon.methods import acp, hub_sampling
from jaxanon.methods.central import central
from jaxanon.methods.hub_networks import AVERAGE, STATISTICS, Networks, networks
from jaxanon.methods.hub_room import room
from jaxanon.methods.method import Method
from jaxanon.methods.privatehub_config import HYPER, PrivateHubConfig


def privatehub(spec, **settings) -> Method:
    """Builds PrivateHub for windows of ``spec``.

    App-conditioned pre-training: a U-Net learns to take noise off windows, told their
    classes and statistics, and a classifier of each attribute learns from raw windows.
    What samples is a running mean of the U-Net's weights.

    ``sample`` makes windows of classes that one names. ``anonymize`` rewrites windows:
    noised part of the way (``strength``), they are led back to their public class and
    away from their private ones, as the classifiers see them. Those of a class in
    ``hide`` are made from nothing, as windows of other classes.

    Corrected, with the published form as an option: the schedule leaves no signal at
    its last step, from which sampling starts (``schedule="paper"``,
    ``prediction="noise"``); the z-score told is that of a window's mean among its
    class's, for one of every sample would tell the window. Widths are our own, and
    nothing stops early.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``PrivateHubConfig``.

    Returns:
      ``Method``, with ``sample``.

    Raises:
      ValueError: if a setting is out of range, windows cannot be halved, or ``hide``
        names no class, or all.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> method = privatehub(load("smartwatch").spec, sampling_steps=10)
      >>> method.config.schedule, method.config.num_steps
      ('cosine', 100)

    References:
      PrivateHub, chapter 4 of the dissertation in which Atlas is chapter 3.
    """
    config = PrivateHubConfig(**settings)
    nets = networks(spec, config)
    method = central(
        "privatehub",
        config,
        spec,
        room(nets),
        init_fn=nets.init,
        players=(acp.denoising(nets), acp.classifying(nets)),
        hyper={name: getattr(config, name) for name in HYPER},
        anonymize_fn=lambda key, params, windows: windows,
        finish_fn=lambda key, state, data: {
            AVERAGE: acp.running_mean(state),
            STATISTICS: data.statistics,
        },
    )
    return method._replace(
        anonymize=_anonymize(nets), sample=_sample(nets), takes_tokens=True
    )


def _anonymize(nets: Networks):
    """Of a ``Method``: ``(key, state, windows) -> windows``."""

    def anonymize(key, state, windows):
        mean, std = _scale(nets.spec)
        given = state.params, state.hyper, (windows - mean) / std
        return _physical(nets, hub_sampling.rewrite(nets, key, *given))

    return anonymize


def _sample(nets: Networks):
    """Of a ``Method``: ``(key, state, classes) -> windows``."""

    def sample(key, state, classes):
        typed_key(key)
        full = _every(nets, classes)
        made = hub_sampling.synthesise(nets, key, state.params, state.hyper, full)
        return _physical(nets, made)

    return sample


def _every(nets, classes):
    """All attributes' classes, those that are not given as not known."""
    if nets.spec.public not in classes:
        raise ValueError(
            f"classes must have {nets.spec.public!r}, of each window to be made, got "
            f"{sorted(classes)}."
        )
    if unknown := sorted(set(classes) - set(nets.sizes)):
        raise ValueError(
            f"classes must be of {sorted(nets.sizes)}, got {unknown}; nothing else was "
            "learned."
        )
    public = jnp.asarray(classes[nets.spec.public], jnp.int32)
    none = nets.nothing(len(public)).classes
    return none | {name: jnp.asarray(own, jnp.int32) for name, own in classes.items()}


def _physical(nets, windows):
    mean, std = _scale(nets.spec)
    return nets.bits.whole(windows * std + mean).astype(jnp.float32)


def _scale(spec):
    return (jnp.float32(x)[None, None] for x in (spec.mean, spec.std))
