"""PrivateHub: synthetic windows of many sensors that keep some classes secret."""

import functools

import jax
import numpy as np

from jaxanon.kernels.checks import typed_key
from jaxanon.kernels.setting_checks import configured
from jaxanon.methods import (
    aaf,
    acp,
    hub_losses,
    hub_noise,
    hub_sampling,
    hub_stopping,
    hub_streams,
    pool,
)
from jaxanon.methods.central import central
from jaxanon.methods.epochs import by_epoch, during
from jaxanon.methods.hub_networks import AVERAGE, STATISTICS, Networks, networks
from jaxanon.methods.hub_noise_settings import guarantee_of
from jaxanon.methods.hub_room import room
from jaxanon.methods.method import Method
from jaxanon.methods.privatehub_config import AT_RELEASE, HYPER, PrivateHubConfig
from jaxanon.models.precision import single


@single
def privatehub(spec, **settings) -> Method:
    """Builds PrivateHub for windows of ``spec``.

    App-conditioned pre-training: a U-Net learns to take noise off windows, told their
    classes and statistics, and a classifier of each attribute learns from raw windows.
    What samples is a running mean of the U-Net's weights.

    App-aware fine-tuning, after ``pretraining`` epochs, where there are classes in
    ``hide``: windows made of classes to show, if the classifier is sure enough of them,
    learn to lie nearer to real ones of their class than to those made of classes to
    hide, by the classifier's features. The classifiers rest. Who judges the result must
    have a classifier of his own.

    ``sample`` makes windows of classes that one names. ``anonymize`` rewrites windows:
    noised part of the way (``strength``), they are led back to their public class and
    away from their private ones, as the classifiers see them. Those of a class in
    ``hide`` are made from nothing, as windows of other classes.

    Corrected, with the published form as an option: the schedule leaves no signal at
    its last step, from which sampling starts (``schedule="paper"``,
    ``prediction="noise"``); the z-score told is that of a window's mean among its
    class's, for one of every sample would tell the window; the triplet loss has a hinge
    (``triplet="paper"``), and pre-training's loss is replayed beside it (``replay``).
    Widths are our own.

    With ``patience`` (published: 30) the loss of held-out windows, of the running mean,
    is taken after each epoch of pre-training. Where it has not fallen for so many, the
    denoiser and the classifiers learn no more, and rounds that are left cost next to
    nothing. The weights of the best epoch sample. Fine-tuning begins when it would have
    (after ``pretraining`` epochs), from those weights, and does not stop early.

    With ``epsilon`` or ``noise_multiplier``, denoiser and classifiers learn by DP-SGD
    from lots of about ``batch`` windows, and statistics are not told; averaging weights
    costs nothing. What is guaranteed is of one training window: ``method.guarantee``
    and the run's ``privacy.json`` say what is not covered.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``PrivateHubConfig``.

    Returns:
      ``Method``, with ``sample``.

    Raises:
      ValueError: if a setting is out of range, windows cannot be halved, or ``hide``
        names no class, or all. Training raises it where the threshold filters all.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> method = privatehub(load("smartwatch").spec, sampling_steps=10)
      >>> method.config.schedule, method.config.num_steps
      ('cosine', 100)

    References:
      PrivateHub, chapter 4 of the dissertation in which Atlas is chapter 3.
    """
    config = configured(PrivateHubConfig, settings)
    nets = networks(spec, config)
    average = hub_stopping.RUNNING if config.patience else AVERAGE
    rest_fn = hub_stopping.over(nets) if config.patience else None
    guarantee = guarantee_of(config)
    lots = None if guarantee is None else guarantee.lots

    def init_fn(key):
        if not config.patience:
            return nets.init(key)
        key, watch_key = jax.random.split(key)
        params = nets.init(key)
        return params | hub_stopping.groups(watch_key, params)

    of_noise = hub_noise.hyper_of(config, guarantee)

    def finish_fn(key, state, data):
        del key
        renewed = {average: acp.running_mean(state, average)}
        return renewed if config.noisy else renewed | {STATISTICS: data.statistics}

    def make(rounds):
        before = after = None
        if config.hide:
            before = during(rounds, 0, config.pretraining)
            after = during(rounds, config.pretraining)
        players = (
            acp.denoising(nets, before)._replace(rest_fn=rest_fn),
            *([aaf.discriminating(nets, after)] if config.hide else []),
            acp.classifying(nets, before)._replace(rest_fn=rest_fn),
        )
        if lots is not None:
            players = (hub_noise.learning(nets, lots),)
        method = central(
            "privatehub",
            config,
            spec,
            room(nets, lots),
            init_fn=init_fn,
            players=players,
            hyper={name: getattr(config, name) for name in HYPER} | of_noise,
            finish_fn=finish_fn,
        )
        if config.patience:
            return hub_stopping.watching(nets, rounds, method)
        return method

    method = by_epoch(make) if config.hide or config.patience else make(1)
    return method._replace(
        init=hub_noise.guarded(method.init, guarantee),
        anonymize=_anonymize(nets),
        sample=_sample(nets),
        check_sample=_check_sample(nets),
        losses=functools.partial(hub_losses.window_losses, nets),
        check_history=aaf.check_kept if config.hide else None,
        least_epochs=config.pretraining + 1 if config.hide else 1,
        phases=("pretraining",) if config.hide else (),
        at_release=AT_RELEASE if config.hide else AT_RELEASE[:-1],
        settings_at_release=("strength", "sampling_steps", "solver", "smoothing"),
        learned_fn=_learned(nets),
        takes_tokens=True,
        guarantee=guarantee,
    )


def _anonymize(nets: Networks):
    """Of a ``Method``: ``(key, state, windows) -> windows``."""

    def anonymize(key, state, windows):
        standard = hub_sampling.standardised(nets, windows)
        given = state.params, state.hyper, standard
        made = hub_sampling.rewrite(nets, key, *given)
        return hub_sampling.physical(nets, made)

    return anonymize


def _sample(nets: Networks):
    """Of a ``Method``, as ``Method.sample`` has it."""

    def sample(key, state, classes, samples=None, avoid=None):
        typed_key(key)
        full = hub_sampling.every(nets, classes)
        if samples is not None and samples != nets.spec.time:
            return hub_streams.stream(nets, key, state, full, samples, avoid=avoid)
        given = state.params, state.hyper, full, avoid
        return hub_sampling.physical(nets, hub_sampling.synthesise(nets, key, *given))

    return sample


def _learned(nets: Networks):
    """Of a ``Method``: all windows but those that patience holds out."""
    if not nets.config.patience:
        return None
    share = nets.config.held_out
    return lambda clients: pool.hold_out(nets.spec, clients, share)[0].mask


def _check_sample(nets: Networks):
    """Of a ``Method``: refuses public classes of which no window was ever seen.

    By the state: what was trained by ``update`` has no config, which tells a ``Run``.
    """

    def check_sample(state, classes):
        if nets.config.noisy:  # Statistics would tell of windows.
            return
        public = nets.spec.public
        mean = np.asarray(state.params[STATISTICS]["mean"])
        seen = np.any(mean != 0, axis=1)
        asked = np.unique(np.asarray(classes.get(public, ()), int))
        names = nets.spec.classes[public]
        if not seen.any():
            raise ValueError("this run has seen no training window; train it first.")
        if lacking := [names[c] for c in asked if not seen[c]]:
            raise ValueError(
                f"of {lacking} this run has seen no training window, so it cannot make "
                f"any; ask for {[names[c] for c in np.flatnonzero(seen)]}, or train on "
                "data that have it."
            )

    return check_sample
