"""PrivateHub: synthetic windows of many sensors that keep some classes secret."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.core.method import Adjustable, Generation, Method
from jaxanon.core.programs import single
from jaxanon.core.registry import register
from jaxanon.kernels.checks import typed_key
from jaxanon.methods.common import diffusion, generator, pool
from jaxanon.methods.common.alternating import by_epoch, central, during, with_phases
from jaxanon.methods.common.diffusion import AVERAGE
from jaxanon.methods.privatehub import dp_sgd, early_stopping, fine_tuning, sampling
from jaxanon.methods.privatehub.config import (
    AT_RELEASE,
    HYPER,
    PrivateHubConfig,
    guarantee_of,
)
from jaxanon.methods.privatehub.data import batch_source, described
from jaxanon.methods.privatehub.networks import STATISTICS, PrivateHubNetworks, networks
from jaxanon.models import conditions


@single
@register("privatehub", config=PrivateHubConfig)
def privatehub(spec, config) -> Method:
    """Builds PrivateHub for windows of ``spec``.

    App-conditioned pre-training: a U-Net learns to take noise off windows, told their
    classes and statistics, and a classifier of each attribute learns from raw windows.
    What samples is a running mean of the U-Net's weights.

    App-aware fine-tuning, after ``pretraining`` epochs, where there are classes in
    ``classes_to_hide``: windows made of classes to show, if the classifier is sure
    enough of them, learn to lie nearer to real ones of their class than to those made
    of classes to hide, by the classifier's features. The classifiers rest. Who judges
    the result must have a classifier of his own.

    ``sample`` makes windows of classes that one names. ``anonymize`` rewrites windows:
    noised part of the way (``strength``), they are led back to their public class and
    away from their private ones, as the classifiers see them. Those of a class in
    ``classes_to_hide`` are made from nothing, as windows of other classes.

    Corrected, with the published form as an option: the schedule leaves no signal at
    its last step, from which sampling starts (``schedule="paper"``,
    ``prediction_type="noise"``); the z-score told is that of a window's mean among its
    class's, for one of every sample would tell the window; the triplet loss has a hinge
    (``triplet="paper"``), and pre-training's loss is replayed beside it (``replay``).
    Widths are our own.

    With ``patience`` (published: 30) the loss of held-out windows, of the running mean,
    is taken after each epoch of pre-training. Where it has not fallen for so many, the
    denoiser and the classifiers learn no more, and rounds that are left cost next to
    nothing. The weights of the best epoch sample. Fine-tuning begins when it would have
    (after ``pretraining`` epochs), from those weights, and does not stop early.

    With ``epsilon`` or ``noise_multiplier``, denoiser and classifiers learn by DP-SGD
    from lots of about ``batch_size`` windows, and statistics are not told; averaging
    weights costs nothing. What is guaranteed is of one training window:
    ``method.guarantee`` and the run's ``privacy.json`` say what is not covered.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``PrivateHubConfig``.

    Returns:
      ``Method``, with ``sample``.

    Raises:
      ValueError: if a setting is out of range, windows cannot be halved, or
        ``classes_to_hide`` names no class, or all. Training raises it where the
        threshold filters all.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> method = privatehub(load("smartwatch").spec, num_inference_steps=10)
      >>> method.config.schedule, method.config.num_steps
      ('cosine', 100)

    References:
      PrivateHub, chapter 4 of the dissertation in which Atlas is chapter 3.
    """
    nets = networks(spec, config)
    average = early_stopping.RUNNING if config.patience else AVERAGE
    rest_fn = early_stopping.over(nets) if config.patience else None
    guarantee = guarantee_of(config)
    lots = None if guarantee is None else guarantee.lots

    def init_fn(key):
        if not config.patience:
            return nets.init(key)
        key, watch_key = jax.random.split(key)
        params = nets.init(key)
        return params | early_stopping.groups(watch_key, params)

    of_noise = dp_sgd.hyper_of(config, guarantee)

    def finish_fn(key, state, data):
        del key
        renewed = {average: diffusion.running_mean(state, average)}
        return renewed if config.noisy else renewed | {STATISTICS: data.statistics}

    def make(rounds):
        before = after = None
        if config.classes_to_hide:
            before = during(rounds, 0, config.pretraining)
            after = during(rounds, config.pretraining)
        players = (
            diffusion.denoising(nets, before)._replace(rest_fn=rest_fn),
            *(
                [fine_tuning.discriminating(nets, after)]
                if config.classes_to_hide
                else []
            ),
            generator.classifying(nets, before)._replace(rest_fn=rest_fn),
        )
        if lots is not None:
            players = (dp_sgd.learning(nets, lots),)
        method = central(
            "privatehub",
            config,
            spec,
            batch_source(nets, lots),
            init_fn=init_fn,
            players=players,
            hyper={name: getattr(config, name) for name in HYPER} | of_noise,
            finish_fn=finish_fn,
        )
        if config.patience:
            return early_stopping.watching(nets, rounds, method)
        return method

    method = by_epoch(make) if config.classes_to_hide or config.patience else make(1)
    if config.classes_to_hide:
        method = with_phases(
            method,
            check_history=fine_tuning.check_kept,
            min_epochs=config.pretraining + 1,
            phases=("pretraining",),
        )
    return method._replace(
        init=dp_sgd.guarded(method.init, guarantee),
        anonymize=_anonymize(nets),
        generate=Generation(
            _sample(nets),
            _check_sample(nets),
            functools.partial(window_losses, nets),
            _learned(nets),
        ),
        adjustable=Adjustable(
            AT_RELEASE if config.classes_to_hide else AT_RELEASE[:-1],
            ("strength", "num_inference_steps", "sampler", "smoothing"),
        ),
        guarantee=guarantee,
        tokens=True,
    )


def _anonymize(nets: PrivateHubNetworks):
    """Of a ``Method``: ``(key, state, windows) -> windows``."""

    def anonymize(key, state, windows):
        standard = generator.standardised(nets, windows)
        given = state.params, state.hyper, standard
        made = sampling.rewrite(nets, key, *given)
        return generator.physical(nets, made)

    return anonymize


def _sample(nets: PrivateHubNetworks):
    """Of a ``Method``, as ``Generation.sample`` has it."""

    def sample(key, state, classes, samples=None, avoid=None):
        typed_key(key)
        full = generator.every(nets, classes)
        if samples is not None and samples != nets.spec.time:
            return sampling.stream(nets, key, state, full, samples, avoid=avoid)
        given = state.params, state.hyper, full, avoid
        return generator.physical(nets, sampling.synthesise(nets, key, *given))

    return sample


def _learned(nets: PrivateHubNetworks):
    """Of a ``Method``: all windows but those that patience holds out."""
    if not nets.config.patience:
        return None
    share = nets.config.validation_fraction
    return lambda clients: pool.hold_out(nets.spec, clients, share)[0].mask


def _check_sample(nets: PrivateHubNetworks):
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


SHARES = (0.1, 0.2, 0.4)  # Of the diffusion: near the end all windows are alike.

DRAWS = 4  # Of noise, whose losses are averaged.


def window_losses(nets: PrivateHubNetworks, key, state, windows, labels) -> dict:
    """Mean squared errors of what is predicted of windows that are noised.

    Of the weights that sample, told all that training tells. What a denoiser was
    trained on it takes noise off better than off other windows, most so at early steps.

    Args:
      nets: ``PrivateHubNetworks``.
      key: typed PRNG key of the noise.
      state: of PrivateHub.
      windows: ``float[batch, time, channels]``, in physical units.
      labels: ``int[batch]`` of each attribute; others than the spec's are of no
        account.

    Returns:
      ``float32[batch]`` by name of the step.

    References:
      Carlini et al., Extracting training data from diffusion models, USENIX Security
      2023, section 5; Matsumoto, Miura and Yanai, Membership inference attacks against
      diffusion models, 2023.
    """
    x0 = nets.bits.encode(generator.standardised(nets, windows))
    labels = {name: jnp.asarray(labels[name], jnp.int32) for name in nets.sizes}
    moments = conditions.moments(x0)
    told = described(nets, state.params[STATISTICS], labels, moments)
    last = nets.config.num_train_timesteps
    steps = sorted({max(1, round(share * last)) for share in SHARES})

    def draw(given):
        number, step = given
        t = jnp.broadcast_to(step, len(x0))
        own_key = jax.random.fold_in(key, number)
        x_t, wanted = diffusion.noised(nets, own_key, x0, t)
        return diffusion.errors(nets, state.params[AVERAGE], x_t, wanted, t, told)

    every = jnp.repeat(jnp.array(steps, jnp.int32), DRAWS)
    found = jax.lax.map(draw, (jnp.arange(len(every)), every))
    means = found.reshape(len(steps), DRAWS, -1).mean(axis=1)
    return {f"step {step} of {last}": means[i] for i, step in enumerate(steps)}
