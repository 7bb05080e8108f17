"""PrivateHub: generates windows of many sensors and conceals some classes."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.core.method import Adjustable, Generation, Method
from jaxanon.core.programs import single
from jaxanon.core.registry import register
from jaxanon.kernels.checks import typed_key
from jaxanon.methods.common import diffusion, generator, pool, recipes
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
@register("privatehub", config=PrivateHubConfig, recipes=recipes.PRIVATEHUB)
def privatehub(spec, config) -> Method:
    """Builds PrivateHub for windows of ``spec``.

    App-conditioned pre-training: a U-Net learns to denoise windows, conditioned on
    their classes and statistics. A classifier of each attribute trains on raw windows.
    Sampling uses a running mean of the U-Net's weights.

    App-aware fine-tuning follows after ``pretraining`` epochs if ``classes_to_hide``
    names classes. It applies to generated windows of the other classes that the
    classifier recognises with enough confidence. Their features move closer to those of
    real windows of their class and away from those of generated windows of hidden
    classes. The classifiers are frozen, so evaluate the result with separate ones.

    ``sample`` generates windows of the requested classes. ``anonymize`` adds part of
    the noise (``strength``) and denoises towards the predicted public class and away
    from the predicted private classes. Windows of ``classes_to_hide`` are generated
    from pure noise as windows of other classes.

    Corrections to the paper, each with the published form as an option:

    - The schedule leaves no signal at its last step, where sampling starts
      (``schedule="paper"``, ``prediction_type="noise"``).
    - The z-score in the condition is that of the window's mean among windows of its
      class, because a z-score of every sample would reveal the window.
    - The triplet loss has a hinge (``triplet="paper"``).
    - Fine-tuning also uses the pre-training loss (``replay``).

    Widths are jaxanon's own.

    With ``patience`` (paper: 30), each epoch of pre-training evaluates the running mean
    on held-out windows. After that many epochs without a lower loss, denoiser and
    classifiers stop training, and the remaining rounds cost almost nothing. Sampling
    uses the weights of the best epoch. Fine-tuning starts from those weights after
    ``pretraining`` epochs and does not stop early.

    With ``epsilon`` or ``noise_multiplier``, denoiser and classifiers train with DP-SGD
    on Poisson-sampled batches of about ``batch_size`` windows, and the condition has no
    statistics. The guarantee is for one training window. ``method.guarantee`` and the
    run's ``privacy.json`` list what it does not cover.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``PrivateHubConfig``.

    Returns:
      ``Method``, with ``sample``.

    Raises:
      ValueError: if a setting is out of range, the window length cannot be halved, or
        ``classes_to_hide`` names an unknown class or all classes. Training raises it if
        the confidence threshold filters out all windows.

    Example:
      >>> from jaxanon.datasets import load
      >>> method = privatehub(load("smartwatch").spec, num_inference_steps=10)
      >>> method.config.schedule, method.config.num_train_timesteps
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

    noise_hyper = dp_sgd.hyper_of(config, guarantee)

    def finish_fn(key, state, data):
        del key
        updates = {average: diffusion.running_mean(state, average)}
        return updates if config.noisy else updates | {STATISTICS: data.statistics}

    def make(rounds):
        before = after = None
        if config.classes_to_hide:
            before = during(rounds, 0, config.pretraining)
            after = during(rounds, config.pretraining)
        components = (
            diffusion.denoising(nets, before)._replace(rest_fn=rest_fn),
            *(
                [fine_tuning.discriminating(nets, after)]
                if config.classes_to_hide
                else []
            ),
            generator.classifying(nets, before)._replace(rest_fn=rest_fn),
        )
        if lots is not None:
            components = (dp_sgd.learning(nets, lots),)
        method = central(
            "privatehub",
            config,
            spec,
            batch_source(nets, lots),
            init_fn=init_fn,
            components=components,
            hyper={name: getattr(config, name) for name in HYPER} | noise_hyper,
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
    """Returns ``anonymize`` of the method: ``(key, state, windows) -> windows``."""

    def anonymize(key, state, windows):
        standard = generator.standardised(nets, windows)
        result = sampling.rewrite(nets, key, state.params, state.hyper, standard)
        return generator.physical(nets, result)

    return anonymize


def _sample(nets: PrivateHubNetworks):
    """Returns ``Generation.sample`` of the method."""

    def sample(key, state, classes, samples=None, avoid=None):
        typed_key(key)
        full = generator.every(nets, classes)
        if samples is not None and samples != nets.spec.time:
            return sampling.stream(nets, key, state, full, samples, avoid=avoid)
        windows = sampling.synthesise(nets, key, state.params, state.hyper, full, avoid)
        return generator.physical(nets, windows)

    return sample


def _learned(nets: PrivateHubNetworks):
    """Returns ``Generation.learned``: marks all windows except held-out ones."""
    if not nets.config.patience:
        return None
    fraction = nets.config.validation_fraction
    return lambda clients: pool.hold_out(nets.spec, clients, fraction)[0].mask


def _check_sample(nets: PrivateHubNetworks):
    """Returns ``Generation.check``: rejects public classes without training windows.

    Uses only the state, because a state from ``update`` has no record of its data.
    """

    def check_sample(state, classes):
        if nets.config.noisy:  # The state has no statistics to check.
            return
        public = nets.spec.public
        mean = np.asarray(state.params[STATISTICS]["mean"])
        seen = np.any(mean != 0, axis=1)
        requested = np.unique(np.asarray(classes.get(public, ()), int))
        names = nets.spec.classes[public]
        if not seen.any():
            raise ValueError("the run has no training windows yet; train it first.")
        if missing := [names[c] for c in requested if not seen[c]]:
            raise ValueError(
                f"{public} must be one of "
                f"{[names[c] for c in np.flatnonzero(seen)]}, got {missing}, of which "
                "the run had no training windows; request another class, or train on "
                "data that contain it."
            )

    return check_sample


STEP_FRACTIONS = (0.1, 0.2, 0.4)  # Early steps; at late steps all windows look alike.

DRAWS = 4  # Noise draws whose losses are averaged.


def window_losses(nets: PrivateHubNetworks, key, state, windows, labels) -> dict:
    """Returns the denoising losses of windows, for a membership inference attack.

    Uses the weights that sample and the full condition of training. A denoiser has
    lower losses on its training windows than on others, most clearly at early steps.

    Args:
      nets: ``PrivateHubNetworks``.
      key: typed PRNG key of the noise.
      state: state of PrivateHub.
      windows: ``float[batch, time, channels]``, in physical units.
      labels: ``int[batch]`` of each attribute; attributes outside the spec are ignored.

    Returns:
      ``float32[batch]`` mean squared errors, by name of the step.

    References:
      Carlini et al., Extracting training data from diffusion models, USENIX Security
      2023, section 5; Matsumoto, Miura and Yanai, Membership inference attacks against
      diffusion models, 2023.
    """
    x0 = nets.bits.encode(generator.standardised(nets, windows))
    labels = {name: jnp.asarray(labels[name], jnp.int32) for name in nets.sizes}
    moments = conditions.moments(x0)
    condition = described(nets, state.params[STATISTICS], labels, moments)
    last = nets.config.num_train_timesteps
    steps = sorted({max(1, round(fraction * last)) for fraction in STEP_FRACTIONS})

    def draw(args):
        number, step = args
        t = jnp.broadcast_to(step, len(x0))
        noise_key = jax.random.fold_in(key, number)
        x_t, target = diffusion.noised(nets, noise_key, x0, t)
        average = state.params[AVERAGE]
        return diffusion.errors(nets, average, x_t, target, t, condition)

    every = jnp.repeat(jnp.array(steps, jnp.int32), DRAWS)
    losses = jax.lax.map(draw, (jnp.arange(len(every)), every))
    means = losses.reshape(len(steps), DRAWS, -1).mean(axis=1)
    return {f"step {step} of {last}": means[i] for i, step in enumerate(steps)}
