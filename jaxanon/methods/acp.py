"""App-conditioned pre-training: a denoiser learns windows by class and statistics."""

import jax
import jax.numpy as jnp

from jaxanon import kernels
from jaxanon.methods.central import Player
from jaxanon.methods.hub_networks import (
    AVERAGE,
    CLASSIFIERS,
    DENOISER,
    Judging,
    Networks,
    classify,
)
from jaxanon.methods.hub_room import Batch
from jaxanon.models.conditions import forget
from jaxanon.models.confusion import weighted_cross_entropy

DROPOUT = 0.3  # Of the classifiers' features.
WARM_UP = 10  # Rounds in which the running mean soon forgets where it began.


def denoising(nets: Networks, when_fn=None) -> Player:
    """The denoiser, by the mean squared error of what it predicts.

    Steps are uniform from 1 to T. What a window is told of is forgotten now and then,
    so that guidance has something to lean away from.
    """

    def loss_fn(key, params, hyper, batch, given):
        del given
        loss = denoising_loss(nets, key, params[DENOISER], hyper["forgetting"], batch)
        return loss, ({"denoising": loss}, {})

    return Player((DENOISER,), loss_fn, when_fn=when_fn)


def denoising_loss(nets: Networks, key, denoiser, forgetting, batch: Batch):
    """``float[]``, mean squared error over a batch, of noise, x0 or v."""
    step_key, noise_key, told_key = jax.random.split(key, 3)
    x0, schedule = batch.windows, nets.schedule
    t = jax.random.randint(step_key, (len(x0),), 1, schedule.num_steps + 1)
    noise = jax.random.normal(noise_key, x0.shape)
    condition = forget(told_key, batch.condition, nets.sizes, forgetting)
    x_t = kernels.diffuse(schedule, x0, noise, t)
    found = nets.denoise(denoiser, x_t, t, condition)
    if nets.config.prediction == "v":
        wanted = kernels.diffusion_velocity(schedule, x0, noise, t)
    else:
        wanted = noise if nets.config.prediction == "noise" else x0
    return jnp.mean((found - wanted) ** 2)


def classifying(nets: Judging, when_fn=None) -> Player:
    """Classifiers of each attribute on raw windows, every class counting the same."""

    def loss_fn(key, params, hyper, batch, given):
        del hyper, given
        total, info = jnp.zeros(()), {}
        for index, (name, size) in enumerate(nets.sizes.items()):
            own = jax.random.fold_in(key, index)
            logits, _ = classify(nets, params, name, batch.windows, own, DROPOUT)
            labels = batch.labels[name]
            counts = jnp.bincount(labels, length=size)
            weights = 1.0 / counts[labels]
            info[f"{name} classifier"] = weighted_cross_entropy(logits, labels, weights)
            total = total + info[f"{name} classifier"]
        return total, (info, {})

    return Player(
        (CLASSIFIERS,), loss_fn, when_fn=when_fn, step_size="classifier_step_size"
    )


def running_mean(state):
    """The denoiser's weights averaged over rounds, of the parameters of ``state``.

    The decay rises from 0 to ``ema`` as rounds pass, for the first weights are noise.
    """
    round_ = state.round.astype(jnp.float32)
    decay = jnp.minimum(state.hyper["ema"], (1 + round_) / (WARM_UP + round_))
    mix = lambda old, new: decay * old + (1 - decay) * new
    return jax.tree.map(mix, state.params[AVERAGE], state.params[DENOISER])
