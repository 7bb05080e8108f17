"""Samplers that denoise along the steps of a schedule."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.kernels.checks import is_callable, whole
from jaxanon.kernels.diffusion import checks, coefficients, step


def diffusion_steps(start, num_steps):
    """Returns evenly spaced steps from ``start`` down to 0, both included.

    Args:
      start: first step, a Python int >= 1. T starts from pure noise; a smaller value
        rewrites data noised up to that step.
      num_steps: number of steps, a Python int in [1, ``start``].

    Returns:
      ``int32[num_steps + 1]``, a NumPy array.

    Raises:
      TypeError: if a number is not a Python int.
      ValueError: if a number is out of range.

    Example:
      >>> diffusion_steps(100, 4)
      array([100,  75,  50,  25,   0], dtype=int32)

    References:
      Lin et al., WACV 2024, section 3.3 ("trailing"): the last step is always visited.
    """
    start = whole("start", start, least=1)
    num_steps = whole("num_steps", num_steps, least=1)
    if num_steps > start:
        raise ValueError(
            f"num_steps must be <= start, {start}, got {num_steps}; steps are integers."
        )
    rising = (2 * start * np.arange(num_steps + 1) + num_steps) // (2 * num_steps)
    return rising[::-1].astype(np.int32)


def ddim_sample(
    denoise_fn, key, schedule, x, steps, *, eta=0.0, prediction="noise"
) -> jax.Array:
    """Samples with DDIM along ``steps``, under one ``lax.scan``.

    Each step costs one call of the network and one multiply-add. The step from t draws
    ``fold_in(key, t)``, so ``x`` and t are the whole state: a sample stopped at t can
    continue with the same key and the remaining steps. ``x`` is carried in at least
    float32. Keep it in float32 between calls that continue a sample.

    Args:
      denoise_fn: ``(x, t) -> output`` with ``x`` in its dtype and ``t`` ``int32[]`` in
        [1, T]. It may close over traced parameters. Gradients flow through it; use
        ``jax.checkpoint(denoise_fn)`` to save memory.
      key: typed PRNG key. It is unused if ``eta`` is the Python number 0.
      schedule: ``NoiseSchedule`` with T steps.
      x: ``float[batch, ...]`` of any shape, data at step ``steps[0]``. Use standard
        normal numbers for T, or the result of ``diffuse``. In ``shard_map`` it must
        vary over all axes that the key and the parameters vary over.
      steps: ``int[n + 1]`` in [0, T], not increasing: the levels to visit, starting
        with that of ``x``. See ``diffusion_steps``. Steps may end above 0. A repeated
        level has no effect, so lists can be padded. Steps on the device are not
        checked.
      eta: Python number or ``float[]`` from 0 (no fresh noise) to 1 (as in ancestral
        sampling). An array is not checked and compiles once for all values.
      prediction: kind of the output: "noise", "x0" or "v".

    Returns:
      The sample at ``steps[-1]``, in the shape and dtype of ``x``.

    Raises:
      ValueError: for steps that increase or leave [0, T], an ``eta`` outside [0, 1], an
        unknown prediction, a prediction of noise from a step without signal, or an
        output of another shape than ``x``.
      TypeError: for a key that is not typed, or numbers of the wrong kind.

    Example:
      >>> from jaxanon.kernels.diffusion import cosine_noise_schedule
      >>> denoise_fn = lambda x, t: jnp.full_like(x, 3.0)  # All data are 3.
      >>> key, schedule = jax.random.key(0), cosine_noise_schedule(100)
      >>> steps = diffusion_steps(100, 10)
      >>> ddim_sample(denoise_fn, key, schedule, jnp.ones(2), steps, prediction="x0")
      Array([3., 3.], dtype=float32)

    References:
      Song et al., Denoising diffusion implicit models, ICLR 2021, equations 12 and 16.
    """
    weights_fn, fresh = step.ddim_weights(schedule, eta)
    return _sample(denoise_fn, key, schedule, x, steps, prediction, weights_fn, fresh)


def ddpm_sample(
    denoise_fn, key, schedule, x, steps, *, variance="posterior", prediction="noise"
) -> jax.Array:
    """Samples with DDPM (ancestral sampling) along ``steps``, under one ``lax.scan``.

    Args:
      denoise_fn, key, schedule, x, steps, prediction: see ``ddim_sample``. The key is
        always used.
      variance: variance of the fresh noise. "posterior" equals DDIM with ``eta=1``.
        "beta" is the larger variance of the forward step. A step to 0 adds no noise.

    Returns:
      The sample at ``steps[-1]``, in the shape and dtype of ``x``.

    Raises:
      ValueError: same conditions as ``ddim_sample``, or for an unknown variance.
      TypeError: same conditions as ``ddim_sample``.

    Example:
      >>> from jaxanon.kernels.diffusion import cosine_noise_schedule
      >>> denoise_fn = lambda x, t: jnp.full_like(x, 3.0)  # All data are 3.
      >>> key, schedule = jax.random.key(0), cosine_noise_schedule(100)
      >>> steps = diffusion_steps(100, 100)
      >>> ddpm_sample(denoise_fn, key, schedule, jnp.ones(2), steps, prediction="x0")
      Array([3., 3.], dtype=float32)

    References:
      Ho et al., NeurIPS 2020, algorithm 2 and section 3.2.
    """
    weights_fn, fresh = step.ddpm_weights(schedule, variance)
    return _sample(denoise_fn, key, schedule, x, steps, prediction, weights_fn, fresh)


def _sample(denoise_fn, key, schedule, x, steps, prediction, weights_fn, fresh):
    """Scans over the steps with weights computed beforehand for all steps."""
    is_callable(denoise_fn=denoise_fn)
    checks.one_key(key)
    checks.alike(x=x)
    x, given = jnp.asarray(x), steps
    steps = checks.levels(steps, schedule.num_steps)
    checks.determined(schedule, given, prediction)
    t, to = steps[:-1], steps[1:]
    wide = coefficients.widest(x)
    weights = coefficients.of_step(schedule, t, to, prediction, weights_fn(t, to))

    def one(state, inputs):
        t, *weights = inputs
        # Padding has level 0, which a network may not support.
        output = denoise_fn(state.astype(x.dtype), jnp.maximum(t, 1))
        checks.alike(x=x, output=output)
        return step.advance(key, state, output, t, weights, fresh), None

    weights = [weight.astype(wide) for weight in weights]
    return jax.lax.scan(one, x.astype(wide), (t, *weights))[0].astype(x.dtype)
