"""Noise added to data, and what a denoiser may predict of it."""

import jax.numpy as jnp

from jaxanon.kernels.checks import one_of
from jaxanon.kernels.diffusion import checks, coefficients


def diffuse(schedule, x0, noise, t):
    """Data at step t of the diffusion: ``signal[t] x0 + noise_level[t] noise``.

    With ``t`` short of the last step this is also how a rewriting by partial noising
    begins: the sampler then starts from t and not from pure noise.

    Args:
      schedule: ``NoiseSchedule`` with T steps.
      x0: ``float[batch, ...]``, or any other shape.
      noise: standard normal numbers of the shape of ``x0``.
      t: ``int[]``, or ``int[batch]`` with one step per example, in [0, T]; 0 gives
        ``x0`` back. On the host it is checked, on the device it is not.

    Returns:
      ``x_t`` in shape and dtype of ``x0``; computed in float32 at least.

    Raises:
      ValueError: if shapes disagree or a step is out of range.
      TypeError: if an array does not hold floats, or ``t`` no whole numbers.

    Example:
      >>> from jaxanon.kernels.diffusion import noise_schedule
      >>> schedule = noise_schedule([0.75, 1.0])
      >>> diffuse(schedule, jnp.array([4.0, 4.0]), jnp.array([1.0, 1.0]), [0, 2])
      Array([4., 1.], dtype=float32)

    References:
      Ho et al., NeurIPS 2020, equation 4; Meng et al., SDEdit, ICLR 2022.
    """
    checks.alike(x0=x0, noise=noise)
    signal, level = _levels(schedule, x0, t)
    return _mixed(x0, (signal, x0), (level, noise))


def diffusion_velocity(schedule, x0, noise, t):
    """What a denoiser that predicts "v" learns: ``signal[t] noise - level[t] x0``.

    The targets of the other two predictions are ``noise`` and ``x0`` themselves.

    Args:
      schedule, x0, noise, t: as in ``diffuse``.

    Returns:
      In shape and dtype of ``x0``; computed in float32 at least.

    Raises:
      ValueError: as ``diffuse``.
      TypeError: as ``diffuse``.

    Example:
      >>> from jaxanon.kernels.diffusion import noise_schedule
      >>> schedule = noise_schedule([0.75, 1.0])
      >>> diffusion_velocity(schedule, jnp.array([4.0]), jnp.array([1.0]), 2)
      Array([-4.], dtype=float32)

    References:
      Salimans and Ho, Progressive distillation for fast sampling of diffusion models,
      ICLR 2022, appendix D.
    """
    checks.alike(x0=x0, noise=noise)
    signal, level = _levels(schedule, x0, t)
    return _mixed(x0, (signal, noise), (-level, x0))


def convert_denoiser_output(schedule, x_t, output, t, given, wanted):
    """One kind of prediction made of another, for the same ``x_t``.

    All is finite everywhere. Where step t has no signal left (zero terminal SNR), noise
    cannot tell x0, which is set to 0: let the network predict "v" or "x0" there. At
    step 0 there is no noise, and an x0 gives the noise 0.

    Args:
      schedule: ``NoiseSchedule`` with T steps.
      x_t: ``float[batch, ...]``, or any other shape.
      output: what was predicted, of the shape of ``x_t``.
      t: ``int[]`` or ``int[batch]`` in [0, T].
      given: what ``output`` is: "noise", "x0" or "v".
      wanted: what to make of it, from the same list.

    Returns:
      In shape and dtype of ``output``; computed in float32 at least.

    Raises:
      ValueError: if shapes disagree, a step is out of range or a name is unknown.
      TypeError: if an array does not hold floats, or ``t`` no whole numbers.

    Example:
      >>> from jaxanon.kernels.diffusion import noise_schedule
      >>> schedule = noise_schedule([0.75, 1.0])
      >>> x_t, velocity = jnp.array([2.0]), jnp.array([-4.0])
      >>> convert_denoiser_output(schedule, x_t, velocity, 2, "v", "x0")
      Array([4.], dtype=float32)

    References:
      Salimans and Ho, ICLR 2022, section 4 and appendix D.
    """
    checks.alike(x_t=x_t, output=output)
    one_of("given", given, checks.PREDICTIONS)
    one_of("wanted", wanted, checks.PREDICTIONS)
    signal, level = _levels(schedule, x_t, t)
    if given == wanted:
        return jnp.asarray(output)
    of_x0, of_noise = coefficients.clean_and_noise(signal, level, given)
    dtype = coefficients.widest(x_t, output)
    combine = lambda weights: (
        weights[0].astype(dtype) * x_t + weights[1].astype(dtype) * output
    )
    if wanted == "x0":
        made = combine(of_x0)
    elif wanted == "noise":
        made = combine(of_noise)
    else:
        made = signal.astype(dtype) * combine(of_noise)
        made -= level.astype(dtype) * combine(of_x0)
    return made.astype(jnp.result_type(output))


def diffusion_posterior(schedule, x0, x_t, t, to):
    """Mean and variance of ``x_to`` given both its past and its future.

    These are the terms of a diffusion's likelihood bound, and what an ancestral sampler
    draws from.

    Args:
      schedule: ``NoiseSchedule`` with T steps.
      x0: ``float[batch, ...]``, or any other shape.
      x_t: of the shape of ``x0``.
      t: ``int[]`` or ``int[batch]`` in [0, T].
      to: of the shape of ``t``, where ``0 <= to <= t``; usually ``t - 1``. Step 0 is x0
        itself, with variance 0, and ``to == t`` is ``x_t`` itself.

    Returns:
      The mean, in shape and dtype of ``x0``, and the variance of each number of it, in
      the shape of ``t`` with ones for the other axes of ``x0``, float32 or float64.

    Raises:
      ValueError: if shapes disagree or a step is out of range.
      TypeError: if an array does not hold floats, or ``t`` no whole numbers.

    Example:
      >>> from jaxanon.kernels.diffusion import noise_schedule
      >>> schedule = noise_schedule([0.75, 1.0])
      >>> x0, x_t = jnp.array([4.0]), jnp.array([1.0])
      >>> mean, variance = diffusion_posterior(schedule, x0, x_t, 2, 1)
      >>> mean, jnp.round(variance, 4)
      (Array([2.], dtype=float32), Array([0.75], dtype=float32))

    References:
      Ho et al., NeurIPS 2020, equations 6 and 7; Kingma et al., Variational diffusion
      models, NeurIPS 2021, appendix A, for steps that are not neighbours.
    """
    checks.alike(x0=x0, x_t=x_t)
    given = t, to
    t = checks.step_number("t", t, schedule.num_steps)
    to = checks.step_number("to", to, schedule.num_steps)
    if t.shape != to.shape:
        raise ValueError(f"to must have the shape of t, {t.shape}, got {to.shape}.")
    checks.falling(*given)
    lost = coefficients.ratio_of_snr(schedule, t, to)
    level = jnp.where(t > 0, schedule.noise[t], 1)
    shrink = jnp.where(t > to, schedule.noise[to] / level, 1)
    of_x0, of_x_t = -lost * schedule.signal[to], jnp.sqrt(1 + lost) * shrink
    of_x0, of_x_t, variance = (
        checks.per_example("t", weight, x0)
        for weight in (of_x0, of_x_t, -lost * schedule.noise[to] ** 2)
    )
    return _mixed(x0, (of_x0, x0), (of_x_t, x_t)), variance


def _levels(schedule, x, t):
    """Signal and noise level of step t, ready to multiply ``x``."""
    t = checks.step_number("t", t, schedule.num_steps)
    levels = schedule.signal[t], schedule.noise[t]
    return tuple(checks.per_example("t", level, x) for level in levels)


def _mixed(like, *terms):
    """Sum of weight times array, in float32 or wider, then as ``like``."""
    dtype = coefficients.widest(*(array for _, array in terms))
    total = sum(weight.astype(dtype) * array for weight, array in terms)
    return jnp.asarray(total).astype(jnp.result_type(like))
