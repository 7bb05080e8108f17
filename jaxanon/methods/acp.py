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
    t = drawn_steps(nets, step_key, len(batch.windows))
    condition = forget(told_key, batch.condition, nets.sizes, forgetting)
    x_t, wanted = noised(nets, noise_key, batch.windows, t)
    return jnp.mean(errors(nets, denoiser, x_t, wanted, t, condition))


def drawn_steps(nets: Networks, key, size: int):
    """``int32[size]``, steps of the diffusion, uniform from 1 to T."""
    return jax.random.randint(key, (size,), 1, nets.schedule.num_steps + 1)


def noised(nets: Networks, key, x0, t):
    """Windows at steps ``t``, and what the denoiser should predict of them.

    Args:
      nets: ``Networks``.
      key: typed PRNG key of the noise.
      x0: ``float[batch, time, d]``.
      t: ``int32[batch]`` or ``int32[]``.

    Returns:
      Two arrays in the shape of ``x0``.
    """
    noise, schedule = jax.random.normal(key, x0.shape), nets.schedule
    x_t = kernels.diffuse(schedule, x0, noise, t)
    if nets.config.prediction == "v":
        return x_t, kernels.diffusion_velocity(schedule, x0, noise, t)
    return x_t, noise if nets.config.prediction == "noise" else x0


def errors(nets: Networks, denoiser, x_t, wanted, t, condition):
    """``float[batch]``, mean squared error of each window, and of no other."""
    found = nets.denoise(denoiser, x_t, t, condition)
    return jnp.mean((found - wanted) ** 2, axis=(1, 2))


def classifying(nets: Judging, when_fn=None, more_fn=None) -> Player:
    """Classifiers of each attribute on raw windows, every class counting the same.

    ``more_fn(params, features, labels, hyper) -> (float[], info)`` is added, of the
    features of each attribute, ``float[batch, d]``.
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
            more, told = more_fn(params, features, batch.labels, hyper)
            total, info = total + more, info | told
        return total, (info, {})

    return Player(
        (CLASSIFIERS,), loss_fn, when_fn=when_fn, step_size="classifier_step_size"
    )


def running_mean(state, group: str = AVERAGE):
    """The denoiser's weights averaged over rounds, whose mean so far is in ``group``.

    The decay rises from 0 to ``ema`` as rounds pass, for the first weights are noise.
    """
    round_ = state.round.astype(jnp.float32)
    decay = jnp.minimum(state.hyper["ema"], (1 + round_) / (WARM_UP + round_))
    mix = lambda old, new: decay * old + (1 - decay) * new
    return jax.tree.map(mix, state.params[group], state.params[DENOISER])
