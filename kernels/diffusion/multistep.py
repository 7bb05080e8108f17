"""Second-order sampler that reuses the network's previous output."""

import jax
import jax.numpy as jnp

from jaxanon.kernels.checks import is_callable
from jaxanon.kernels.diffusion import checks, coefficients


def dpm_solver_sample(
    denoise_fn, schedule, x, steps, *, prediction="noise"
) -> jax.Array:
    """Samples with DPM-Solver++ (2M) along ``steps``, under one ``lax.scan``.

    It makes the same number of network calls as ``ddim_sample`` with ``eta=0``, but
    extrapolates each predicted x0 from the previous one. Halving the step length
    reduces the error to a quarter, compared with half for DDIM. DDIM steps are used
    for the first step, from pure noise (and the step after it) and to clean data. The
    sampler is deterministic. It does not return the previous x0, so a sample that is
    continued from an intermediate level restarts with a DDIM step.

    Args:
      denoise_fn, schedule, x, steps, prediction: see ``ddim_sample``.

    Returns:
      The sample at ``steps[-1]``, in the shape and dtype of ``x``.

    Raises:
      ValueError: same conditions as ``ddim_sample``.
      TypeError: same conditions as ``ddim_sample``.

    Example:
      >>> from jaxanon.kernels.diffusion import cosine_noise_schedule, diffusion_steps
      >>> denoise_fn = lambda x, t: jnp.full_like(x, 3.0)  # All data are 3.
      >>> schedule, steps = cosine_noise_schedule(100), diffusion_steps(100, 10)
      >>> dpm_solver_sample(denoise_fn, schedule, jnp.ones(2), steps, prediction="x0")
      Array([3., 3.], dtype=float32)

    References:
      Lu et al., DPM-Solver++, 2022, algorithm 2.
    """
    is_callable(denoise_fn=denoise_fn)
    checks.alike(x=x)
    checks.schedule_only(schedule)
    x, given = jnp.asarray(x), steps
    steps = checks.levels(steps, schedule.num_steps)
    checks.determined(schedule, given, prediction)
    t, to = steps[:-1], steps[1:]
    wide = coefficients.widest(x)
    move = coefficients.of_step(
        schedule, t, to, prediction, coefficients.ddim(schedule, t, to, 0.0)
    )[:2]
    of_x0, _ = coefficients.clean_and_noise(
        schedule.signal[t], schedule.noise[t], prediction
    )
    weights = *move, *of_x0, coefficients.second_order(schedule, steps)
    goes = t > to

    def one(carried, inputs):
        state, before = carried
        t, goes, keep, move, of_state, of_output, further = inputs
        # Padding has level 0, which a network may not support.
        output = denoise_fn(state.astype(x.dtype), jnp.maximum(t, 1))
        checks.alike(x=x, output=output)
        output = output.astype(wide)
        x0 = of_state * state + of_output * output
        state = keep * state + move * output + further * (x0 - before)
        return (state, jnp.where(goes, x0, before)), None

    weights = [weight.astype(wide) for weight in weights]
    begin = x.astype(wide), jnp.zeros_like(x, wide)
    (state, _), _ = jax.lax.scan(one, begin, (t, goes, *weights))
    return state.astype(x.dtype)
