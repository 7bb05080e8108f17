"""Single steps of the samplers, for scans here and for user-written loops."""

import jax
import jax.numpy as jnp

from jaxanon.kernels import portable
from jaxanon.kernels.checks import known, numeric, one_of
from jaxanon.kernels.diffusion import checks, coefficients

VARIANCES = ("posterior", "beta")


def ddim_step(
    key, schedule, x, output, t, to, *, eta=0.0, prediction="noise"
) -> jax.Array:
    """Takes one step of ``ddim_sample``, for user-written loops.

    Args:
      key: typed PRNG key of the whole sample. The step draws ``fold_in(key, t)``.
      schedule: ``NoiseSchedule`` with T steps.
      x: ``float[batch, ...]`` at step ``t``.
      output: the network's output for it, in the same shape.
      t: ``int[]`` in [1, T].
      to: ``int[]`` in [0, t]; if it equals ``t``, ``x`` is returned. Steps on the
        device are not checked.
      eta, prediction: see ``ddim_sample``.

    Returns:
      ``x`` at step ``to`` in its shape and dtype, rounded to the dtype at each step.

    Raises:
      ValueError: same conditions as ``ddim_sample``.
      TypeError: same conditions as ``ddim_sample``.

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
    """Takes one step of ``ddpm_sample``, for user-written loops.

    Args:
      key, schedule, x, output, t, to, prediction: see ``ddim_step``.
      variance: see ``ddpm_sample``.

    Returns:
      ``x`` at step ``to`` in its shape and dtype, rounded to the dtype at each step.

    Raises:
      ValueError: same conditions as ``ddpm_sample``.
      TypeError: same conditions as ``ddpm_sample``.

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
    """Returns ``(t, to) -> weights`` for a checked eta, and whether noise is drawn."""
    if isinstance(eta, jax.Array):
        if eta.shape:
            raise ValueError(
                f"eta must be a scalar, got shape {eta.shape}; use jax.vmap."
            )
    elif known(eta) is None:
        raise TypeError(f"eta must be a number, got {eta!r}.")
    elif not 0 <= eta <= 1:
        raise ValueError(f"eta must be in [0, 1], got {eta!r}.")
    fresh = isinstance(eta, jax.Array) or eta > 0
    checks.schedule_only(schedule)
    return lambda t, to: coefficients.ddim(schedule, t, to, eta), fresh


def ddpm_weights(schedule, variance):
    """Returns ``(t, to) -> weights`` of ancestral steps, which always draw noise."""
    checks.schedule_only(schedule)
    one_of("variance", variance, VARIANCES)
    return lambda t, to: coefficients.ddpm(schedule, t, to, variance), True


def advance(key, state, output, t, weights, fresh):
    """Advances ``state`` by one step; weights are scalars of its dtype."""
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
    numeric(t=t, to=to)
    checks.falling(t, to)
    t = checks.one_step("t", t, schedule.num_steps)
    to = checks.one_step("to", to, schedule.num_steps)
    weights = coefficients.of_step(schedule, t, to, prediction, weights_fn(t, to))
    wide = coefficients.widest(x)
    weights = [weight.astype(wide) for weight in weights]
    return advance(key, x.astype(wide), output, t, weights, fresh).astype(x.dtype)
