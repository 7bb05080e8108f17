"""One step of a sampler, for the scans here and for loops elsewhere."""

import jax
import jax.numpy as jnp

from jaxanon.kernels import portable
from jaxanon.kernels.checks import one_of
from jaxanon.kernels.diffusion import checks, coefficients

VARIANCES = ("posterior", "beta")


def ddim_step(
    key, schedule, x, output, t, to, *, eta=0.0, prediction="noise"
) -> jax.Array:
    """One step of ``ddim_sample``, for a loop of the caller's own.

    Args:
      key: the key of the whole sample: the step draws ``fold_in(key, t)``.
      schedule: ``NoiseSchedule`` with T steps.
      x: ``float[batch, ...]`` at step ``t``.
      output: what the network said of it, in the same shape.
      t: ``int[]`` in [1, T].
      to: ``int[]`` in [0, t]; where it is ``t``, ``x`` comes back. Steps that are on
        the device are not checked.
      eta: as in ``ddim_sample``.
      prediction: likewise.

    Returns:
      ``x`` at step ``to``, in its shape and dtype, rounded to the latter at each step.

    Raises:
      ValueError: as ``ddim_sample``.
      TypeError: as ``ddim_sample``.

    Example:
      >>> from jaxanon.kernels.diffusion import noise_schedule
      >>> schedule = noise_schedule([0.75, 1.0])
      >>> x, velocity = jnp.array([2.0]), jnp.array([-4.0])
      >>> ddim_step(jax.random.key(0), schedule, x, velocity, 2, 0, prediction="v")
      Array([4.], dtype=float32)
    """
    weights = ddim_weights(schedule, eta)
    return _step(key, schedule, x, output, t, to, prediction, *weights)


def ddpm_step(
    key, schedule, x, output, t, to, *, variance="posterior", prediction="noise"
) -> jax.Array:
    """One step of ``ddpm_sample``, for a loop of the caller's own.

    Args:
      key, schedule, x, output, t, to, prediction: as in ``ddim_step``.
      variance: as in ``ddpm_sample``.

    Returns:
      ``x`` at step ``to``, in its shape and dtype, rounded to the latter at each step.

    Raises:
      ValueError: as ``ddpm_sample``.
      TypeError: as ``ddpm_sample``.

    Example:
      >>> from jaxanon.kernels.diffusion import noise_schedule
      >>> schedule = noise_schedule([0.75, 1.0])
      >>> x, velocity = jnp.array([2.0]), jnp.array([-4.0])
      >>> ddpm_step(jax.random.key(0), schedule, x, velocity, 2, 0, prediction="v")
      Array([4.], dtype=float32)
    """
    weights = ddpm_weights(schedule, variance)
    return _step(key, schedule, x, output, t, to, prediction, *weights)


def ddim_weights(schedule, eta):
    """``(t, to) -> weights`` for a checked eta, and whether noise is drawn at all."""
    if isinstance(eta, jax.Array):
        if eta.shape:
            raise ValueError(
                f"eta must be a single number, got shape {eta.shape}; use jax.vmap."
            )
    elif not 0 <= eta <= 1:
        raise ValueError(f"eta must be in [0, 1], got {eta!r}.")
    fresh = isinstance(eta, jax.Array) or eta > 0
    return lambda t, to: coefficients.ddim(schedule, t, to, eta), fresh


def ddpm_weights(schedule, variance):
    """The same for ancestral steps, which always draw."""
    one_of("variance", variance, VARIANCES)
    return lambda t, to: coefficients.ddpm(schedule, t, to, variance), True


def advance(key, state, output, t, weights, fresh):
    """``state`` one step on; weights are scalars of its dtype."""
    keep, move, scale = weights
    state = keep * state + move * output.astype(state.dtype)
    if fresh:
        noise = portable.normal(portable.fold_in(key, t), state.shape, state.dtype)
        state += scale * noise
    return state


def _step(key, schedule, x, output, t, to, prediction, weights_fn, fresh):
    checks.one_key(key)
    checks.alike(x=x, output=output)
    x, output = jnp.asarray(x), jnp.asarray(output)
    checks.falling(t, to)
    t = checks.one_step("t", t, schedule.num_steps)
    to = checks.one_step("to", to, schedule.num_steps)
    weights = coefficients.of_step(schedule, t, to, prediction, weights_fn(t, to))
    wide = coefficients.widest(x)
    weights = [weight.astype(wide) for weight in weights]
    return advance(key, x.astype(wide), output, t, weights, fresh).astype(x.dtype)
