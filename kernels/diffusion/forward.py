"""Forward diffusion, and conversion between predictions of a denoiser."""

import jax.numpy as jnp

from jaxanon.kernels.checks import numeric, one_of
from jaxanon.kernels.diffusion import checks, coefficients


def diffuse(schedule, x0, noise, t):
    """Returns data at step t of the diffusion: ``signal[t] x0 + noise[t] noise``.

    To rewrite data by partial noising (SDEdit), choose ``t`` below the last step and
    start the sampler there.

    Args:
      schedule: ``NoiseSchedule`` with T steps.
      x0: ``float[batch, ...]`` or any other shape.
      noise: standard normal array of the shape of ``x0``.
      t: ``int[]``, or ``int[batch]`` with one step per example, in [0, T]. Step 0
        returns ``x0``. Steps on the device are not checked.

    Returns:
      ``x_t`` in the shape and dtype of ``x0``, computed in at least float32.

    Raises:
      ValueError: if shapes disagree or a step is out of range.
      TypeError: if an array does not hold floats, or ``t`` does not hold integers.

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
    """Returns the target of a "v" prediction: ``signal[t] noise - level[t] x0``.

    The targets of the other two predictions are ``noise`` and ``x0``.

    Args:
      schedule, x0, noise, t: see ``diffuse``.

    Returns:
      Array in the shape and dtype of ``x0``, computed in at least float32.

    Raises:
      ValueError: same conditions as ``diffuse``.
      TypeError: same conditions as ``diffuse``.

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
    """Converts a denoiser's output to another kind of prediction for the same ``x_t``.

    All values are finite. If step t has no signal (zero terminal SNR), a noise
    prediction does not determine x0, which is set to 0; let the network predict "v" or
    "x0" there. At step 0 an x0 prediction gives noise 0.

    Args:
      schedule: ``NoiseSchedule`` with T steps.
      x_t: ``float[batch, ...]`` or any other shape.
      output: the prediction, in the shape of ``x_t``.
      t: ``int[]`` or ``int[batch]`` in [0, T].
      given: kind of ``output``: "noise", "x0" or "v".
      wanted: kind to return, from the same list.

    Returns:
      Array in the shape and dtype of ``output``, computed in at least float32.

    Raises:
      ValueError: if shapes disagree, a step is out of range or a name is unknown.
      TypeError: if an array does not hold floats, or ``t`` does not hold integers.

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
    """Returns mean and variance of ``x_to`` given ``x0`` and ``x_t``.

    They appear in a diffusion's likelihood bound, and ancestral samplers draw from
    this distribution.

    Args:
      schedule: ``NoiseSchedule`` with T steps.
      x0: ``float[batch, ...]`` or any other shape.
      x_t: array of the shape of ``x0``.
      t: ``int[]`` or ``int[batch]`` in [0, T].
      to: array of the shape of ``t`` with ``0 <= to <= t``, usually ``t - 1``. Step 0
        gives x0 with variance 0, and ``to == t`` gives ``x_t``.

    Returns:
      The mean, in the shape and dtype of ``x0``, and the variance per entry. The
      variance has the shape of ``t`` with axes of length 1 for the other axes of
      ``x0``, in float32 or float64.

    Raises:
      ValueError: if shapes disagree or a step is out of range.
      TypeError: if an array does not hold floats, or ``t`` does not hold integers.

    Example:
      >>> from jaxanon.kernels.diffusion import noise_schedule
      >>> schedule = noise_schedule([0.75, 1.0])
      >>> x0, x_t = jnp.array([4.0]), jnp.array([1.0])
      >>> mean, variance = diffusion_posterior(schedule, x0, x_t, 2, 1)
      >>> mean, jnp.round(variance, 4)
      (Array([2.], dtype=float32), Array([0.75], dtype=float32))

    References:
      Ho et al., NeurIPS 2020, equations 6 and 7; Kingma et al., Variational diffusion
      models, NeurIPS 2021, appendix A, for non-adjacent steps.
    """
    checks.alike(x0=x0, x_t=x_t)
    checks.schedule_only(schedule)
    numeric(t=t, to=to)
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
    """Returns signal and noise level of step t, broadcastable against ``x``."""
    checks.schedule_only(schedule)
    t = checks.step_number("t", t, schedule.num_steps)
    levels = schedule.signal[t], schedule.noise[t]
    return tuple(checks.per_example("t", level, x) for level in levels)


def _mixed(like, *terms):
    """Sums weight times array in at least float32; returns the dtype of ``like``."""
    dtype = coefficients.widest(*(array for _, array in terms))
    total = sum(weight.astype(dtype) * array for weight, array in terms)
    return jnp.asarray(total).astype(jnp.result_type(like))
