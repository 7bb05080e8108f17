"""Samplers: from noise, or from noised data, back along the steps of a schedule."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.kernels.checks import whole
from jaxanon.kernels.diffusion import checks, coefficients, step


def diffusion_steps(start, num_steps):
    """Evenly spaced steps from ``start`` down to 0, both included.

    Args:
      start: the first step, a Python int >= 1: T to begin with pure noise, less to
        rewrite data that was noised up to there.
      num_steps: how many steps to take, a Python int in [1, ``start``].

    Returns:
      ``int32[num_steps + 1]``, a NumPy array.

    Raises:
      TypeError: if a number is no Python int.
      ValueError: if it is out of its range.

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
            f"num_steps must be <= start, {start}, got {num_steps}; steps are whole."
        )
    rising = (2 * start * np.arange(num_steps + 1) + num_steps) // (2 * num_steps)
    return rising[::-1].astype(np.int32)


def ddim_sample(
    denoise_fn, key, schedule, x, steps, *, eta=0.0, prediction="noise"
) -> jax.Array:
    """Samples with DDIM along ``steps``, under one ``lax.scan``.

    Each step costs one call of the network and one multiply-add. The step from t draws
    ``fold_in(key, t)``, so ``x`` and t are the whole state: a sample that stopped at t
    goes on, with the same key and the rest of the steps, as if it never had. ``x`` is
    carried in float32 at least, whatever its dtype; keep it so where it is to go on.

    Args:
      denoise_fn: ``(x, t) -> output``: ``x`` as given, ``t`` ``int32[]`` in [1, T].
        May close over traced parameters. Gradients pass; to save memory there, give
        ``jax.checkpoint(denoise_fn)``.
      key: a typed PRNG key; unused where ``eta`` is the Python number 0.
      schedule: ``NoiseSchedule`` with T steps.
      x: ``float[batch, ...]`` (any shape), data at step ``steps[0]``: standard normal
        for T, or what ``diffuse`` returned. In ``shard_map`` it varies over all axes
        that the key and the parameters vary over.
      steps: ``int[n + 1]``, not rising, in [0, T]: the levels to visit, the first that
        of ``x``. ``diffusion_steps`` makes them; ending above 0 stops part-way. A
        repeated level changes nothing, so lists of unlike length may be padded. Steps
        that are on the device are not checked.
      eta: from 0 (no fresh noise) to 1 (as much as ancestral sampling); a Python number
        or ``float[]``. An array is not checked, and compiled once for all values.
      prediction: what the output is: "noise", "x0" or "v".

    Returns:
      The sample at ``steps[-1]``, in shape and dtype of ``x``.

    Raises:
      ValueError: for steps that rise or leave [0, T], an ``eta`` outside [0, 1], an
        unknown prediction, an output of another shape than ``x``.
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
    """Samples ancestrally along ``steps``, under one ``lax.scan``.

    As ``ddim_sample`` otherwise.

    Args:
      denoise_fn, key, schedule, x, steps, prediction: as in ``ddim_sample``; the key is
        always used.
      variance: of the fresh noise. "posterior" is what it is given x0, and the sampler
        is then DDIM with ``eta=1``; "beta" is that of the forward step, which is wider.
        No noise is added in a step to 0.

    Returns:
      The sample at ``steps[-1]``, in shape and dtype of ``x``.

    Raises:
      ValueError: as ``ddim_sample``, or for an unknown variance.
      TypeError: as ``ddim_sample``.

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
    """Scans the steps; all weights are worked out before, for all steps at once."""
    checks.one_key(key)
    checks.alike(x=x)
    x = jnp.asarray(x)
    steps = checks.levels(steps, schedule.num_steps)
    t, to = steps[:-1], steps[1:]
    wide = coefficients.widest(x)
    weights = coefficients.of_step(schedule, t, to, prediction, weights_fn(t, to))

    def one(state, inputs):
        t, *weights = inputs
        # Padding stands at level 0, which a network may not know.
        output = denoise_fn(state.astype(x.dtype), jnp.maximum(t, 1))
        checks.alike(x=x, output=output)
        return step.advance(key, state, output, t, weights, fresh), None

    weights = [weight.astype(wide) for weight in weights]
    return jax.lax.scan(one, x.astype(wide), (t, *weights))[0].astype(x.dtype)
