"""A sampler of second order: it remembers what the network said a step before."""

import jax
import jax.numpy as jnp

from jaxanon.kernels.diffusion import checks, coefficients


def dpm_solver_sample(
    denoise_fn, schedule, x, steps, *, prediction="noise"
) -> jax.Array:
    """Samples with DPM-Solver++ (2M) along ``steps``, under one ``lax.scan``.

    As ``ddim_sample`` with ``eta=0``, whose network calls it has, and as many: each x0
    that the network predicts is led on along the line from the x0 before it, so that
    half as long steps make a fourth of the error, where DDIM's make a half. The first
    step, a step from pure noise (and the one after it) and a step to clean data are
    DDIM's. Nothing is drawn, and there is no key. What it remembers is not handed out:
    a sample that is taken up part-way begins anew with a step of DDIM's.

    Args:
      denoise_fn, schedule, x, steps, prediction: as in ``ddim_sample``.

    Returns:
      The sample at ``steps[-1]``, in shape and dtype of ``x``.

    Raises:
      ValueError: as ``ddim_sample``.
      TypeError: as ``ddim_sample``.

    Example:
      >>> from jaxanon.kernels.diffusion import cosine_noise_schedule, diffusion_steps
      >>> denoise_fn = lambda x, t: jnp.full_like(x, 3.0)  # All data are 3.
      >>> schedule, steps = cosine_noise_schedule(100), diffusion_steps(100, 10)
      >>> dpm_solver_sample(denoise_fn, schedule, jnp.ones(2), steps, prediction="x0")
      Array([3., 3.], dtype=float32)

    References:
      Lu et al., DPM-Solver++, 2022, algorithm 2.
    """
    checks.alike(x=x)
    x = jnp.asarray(x)
    steps = checks.levels(steps, schedule.num_steps)
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
        # Padding stands at level 0, which a network may not know.
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
