"""PrivateHub with DP-SGD: clips each window's gradient and adds noise to the sum."""

import jax
import jax.numpy as jnp
import optax

from jaxanon import kernels
from jaxanon.federated import PoissonSampling
from jaxanon.methods.common import diffusion
from jaxanon.methods.common.alternating import Component
from jaxanon.methods.common.diffusion import DENOISER
from jaxanon.methods.common.generator import CLASSIFIERS, classify
from jaxanon.methods.privatehub.networks import PrivateHubNetworks
from jaxanon.models.conditions import drop_conditions

PART = 32  # Windows whose gradients are in memory at once.


def learning(nets: PrivateHubNetworks, lots: PoissonSampling) -> Component:
    """Returns one component that trains denoiser and classifiers with DP-SGD.

    A window's gradient, over all networks together, is clipped to ``clip_norm``, so one
    mechanism covers everything that is learned. The loss of a window depends only on
    that window: there is no class weighting and no dropout.
    """

    def gradient_fn(key, moving, hyper, batch):
        learn_key, noise_key = jax.random.split(key)
        example = _example(nets, learn_key, hyper["condition_dropout"], batch)
        bound = hyper["clip_norm"]
        total, loss, clipped = _clipped_sum(nets, moving, example, batch.real, bound)
        noisy = kernels.add_noise_to_sum(noise_key, total, hyper["noise_multiplier"])
        grads = jax.tree.map(lambda leaf: leaf / lots.expected_batch_size, noisy)
        count = jnp.maximum(jnp.sum(batch.real), 1)
        return grads, {"loss": loss / count, "clipped": clipped / count}

    return Component(
        (DENOISER, CLASSIFIERS),
        gradient_fn=gradient_fn,
        learning_rate=("learning_rate", "classifier_learning_rate"),
    )


def _example(nets, key, condition_dropout, batch):
    """Draws the inputs of each row's loss before gradients are taken."""
    step_key, noise_key, dropout_key = jax.random.split(key, 3)
    t = diffusion.drawn_steps(nets, step_key, len(batch.windows))
    x_t, target = diffusion.noised(nets, noise_key, batch.windows, t)
    condition = drop_conditions(
        dropout_key, batch.condition, nets.sizes, condition_dropout
    )
    return x_t, target, t, condition, batch.windows, batch.labels


def _clipped_sum(nets, moving, example, real, bound):
    """Returns the ``BoundedSum`` of a batch, its total loss and the number clipped.

    Works in parts to bound memory. ``kernels.clipped_gradient_sum``, which sums from
    the layers' factors, is equally fast here but takes minutes to compile.
    """
    count = len(real)
    size = min(PART, count)
    indices = jnp.arange(-(-count // size) * size).reshape(-1, size)

    def value_and_grad(example):
        row = jax.tree.map(lambda leaf: leaf[None], example)
        return jax.value_and_grad(lambda moving: _losses(nets, moving, row)[0])(moving)

    def add(sums, index):
        rows = jax.tree.map(lambda leaf: leaf[index % count], example)
        counted = real[index % count] & (index < count)
        losses, grads = jax.vmap(value_and_grad)(rows)
        total = kernels.clipped_sum(grads, bound, weights=counted)
        squares = jax.tree.map(
            lambda x: jnp.sum(x**2, axis=tuple(range(1, x.ndim))), grads
        )
        clipped = counted & (sum(jax.tree.leaves(squares)) > bound**2)
        part = total.value, jnp.sum(losses * counted), jnp.sum(clipped, dtype=float)
        return jax.tree.map(jnp.add, sums, part), None

    zeros = jax.tree.map(jnp.zeros_like, moving), jnp.zeros(()), jnp.zeros(())
    (value, loss, clipped), _ = jax.lax.scan(add, zeros, indices)
    return kernels.BoundedSum(value, bound), loss, clipped


def _losses(nets, moving, example):
    """Returns ``float[batch]``, the loss of each row."""
    x_t, target, t, condition, windows, labels = example
    losses = diffusion.errors(nets, moving[DENOISER], x_t, target, t, condition)
    for name in nets.sizes:
        logits, _ = classify(nets, moving, name, windows)
        losses = losses + optax.softmax_cross_entropy_with_integer_labels(
            logits, labels[name]
        )
    return losses


def hyper_of(config, guarantee) -> dict[str, float]:
    """Returns the hyper-parameters of the noise; empty without noise.

    Args:
      config: ``PrivateHubConfig``.
      guarantee: guarantee of its noise, or None.
    """
    if guarantee is None:
        return {}
    multiplier = guarantee.noise_multiplier
    return {"clip_norm": config.clip_norm, guarantee.rests_on: multiplier}


def guarded(init, guarantee):
    """Wraps ``init`` to reject hyper-parameters that would void the guarantee."""

    def checked(key, **values):
        if guarantee is not None and guarantee.rests_on in values:
            raise ValueError(
                f"{guarantee.rests_on} cannot be a hyper-parameter, because the "
                "guarantee depends on it; pass it, or epsilon, as a setting of the "
                "method."
            )
        return init(key, **values)

    return checked
