"""PrivateHub by DP-SGD: every window's gradient is clipped, their sum gets noise."""

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
from jaxanon.models.conditions import forget

PART = 32  # Windows whose gradients are held at once.


def learning(nets: PrivateHubNetworks, lots: PoissonSampling) -> Component:
    """Denoiser and classifiers, by one noisy gradient of the sum of their losses.

    A window's gradient, of all networks together, is clipped to ``clip_norm``, so one
    mechanism pays for all that is learned. Its loss is of it alone: it counts as much
    as any other, whatever its class, and nothing is dropped out.
    """

    def gradient_fn(key, moving, hyper, batch):
        learn_key, noise_key = jax.random.split(key)
        example = _example(nets, learn_key, hyper["condition_dropout"], batch)
        bound = hyper["clip_norm"]
        total, loss, beyond = _clipped_sum(nets, moving, example, batch.real, bound)
        noisy = kernels.add_noise_to_sum(noise_key, total, hyper["noise_multiplier"])
        grads = jax.tree.map(lambda leaf: leaf / lots.expected_batch_size, noisy)
        number = jnp.maximum(jnp.sum(batch.real), 1)
        return grads, {"loss": loss / number, "clipped": beyond / number}

    return Component(
        (DENOISER, CLASSIFIERS),
        gradient_fn=gradient_fn,
        learning_rate=("learning_rate", "classifier_learning_rate"),
    )


def _example(nets, key, condition_dropout, batch):
    """What each loss is of, drawn before gradients are taken: one draw for each row."""
    step_key, noise_key, told_key = jax.random.split(key, 3)
    t = diffusion.drawn_steps(nets, step_key, len(batch.windows))
    x_t, wanted = diffusion.noised(nets, noise_key, batch.windows, t)
    told = forget(told_key, batch.condition, nets.sizes, condition_dropout)
    return x_t, wanted, t, told, batch.windows, batch.labels


def _clipped_sum(nets, moving, example, real, bound):
    """``BoundedSum`` over a lot, the sum of its losses, and how many were clipped.

    In parts, for all gradients at once may not fit. Sums from the layers' factors,
    ``kernels.clipped_gradient_sum``, are as quick here, and take minutes to compile.
    """
    number = len(real)
    size = min(PART, number)
    places = jnp.arange(-(-number // size) * size).reshape(-1, size)

    def alone(example):
        row = jax.tree.map(lambda leaf: leaf[None], example)
        return jax.value_and_grad(lambda moving: _losses(nets, moving, row)[0])(moving)

    def add(sums, place):
        own = jax.tree.map(lambda leaf: leaf[place % number], example)
        counted = real[place % number] & (place < number)
        losses, rows = jax.vmap(alone)(own)
        total = kernels.clipped_sum(rows, bound, weights=counted)
        squares = jax.tree.map(
            lambda x: jnp.sum(x**2, axis=tuple(range(1, x.ndim))), rows
        )
        beyond = counted & (sum(jax.tree.leaves(squares)) > bound**2)
        found = total.value, jnp.sum(losses * counted), jnp.sum(beyond, dtype=float)
        return jax.tree.map(jnp.add, sums, found), None

    nothing = jax.tree.map(jnp.zeros_like, moving), jnp.zeros(()), jnp.zeros(())
    (value, loss, beyond), _ = jax.lax.scan(add, nothing, places)
    return kernels.BoundedSum(value, bound), loss, beyond


def _losses(nets, moving, example):
    """``float[batch]``, of every row by itself."""
    x_t, wanted, t, told, windows, labels = example
    found = diffusion.errors(nets, moving[DENOISER], x_t, wanted, t, told)
    for name in nets.sizes:
        logits, _ = classify(nets, moving, name, windows)
        found = found + optax.softmax_cross_entropy_with_integer_labels(
            logits, labels[name]
        )
    return found


def hyper_of(config, guarantee) -> dict[str, float]:
    """Hyper-parameters that there are beside the others where there is noise.

    Args:
      config: ``PrivateHubConfig``.
      guarantee: of its noise, or None.
    """
    if guarantee is None:
        return {}
    multiplier = guarantee.noise_multiplier
    return {"clip_norm": config.clip_norm, guarantee.rests_on: multiplier}


def guarded(init, guarantee):
    """``init`` of a method, which takes no other noise than what was reckoned with."""

    def checked(key, **values):
        if guarantee is not None and guarantee.rests_on in values:
            raise ValueError(
                f"{guarantee.rests_on} is what the guarantee rests on; give it, or "
                "epsilon, as a setting of the method."
            )
        return init(key, **values)

    return checked
