"""Coefficients of one sampling step, finite from clean data to pure noise."""

import jax.numpy as jnp

from jaxanon.kernels.checks import one_of
from jaxanon.kernels.diffusion import checks
from jaxanon.kernels.precision import wide


def widest(*arrays):
    """Returns the dtype to compute in for all arrays together."""
    return wide(*map(jnp.result_type, arrays))


def clean_and_noise(signal, noise, prediction):
    """Returns weights ``((x, output), (x, output))`` of x0 and of the noise.

    Without signal, x0 cannot be derived from the noise and is set to 0. Without noise,
    the noise cannot be derived from x0 and is set to 0.
    """
    zero, one = jnp.zeros_like(signal), jnp.ones_like(signal)
    if prediction == "v":
        return (signal, -noise), (noise, signal)
    if prediction == "x0":
        scale = _reciprocal(noise)
        return (zero, one), (scale, -signal * scale)
    scale = _reciprocal(signal)
    return (scale, -noise * scale), (zero, one)


def ratio_of_snr(schedule, t, to):
    """Returns ``SNR_t / SNR_to - 1`` in [-1, 0], more exactly than from alpha_bar."""
    change = schedule.log_snr[t] - schedule.log_snr[to]
    return jnp.expm1(jnp.where(t > to, change, 0))  # inf - inf at t = to = 0.


def ddim(schedule, t, to, eta):
    """Returns the weights of x0 and noise at ``to``, and the scale of fresh noise."""
    lost = ratio_of_snr(schedule, t, to)
    noise = schedule.noise[to]
    # At to = 0 with eta 1 the radicand is 0 and its gradient would be infinite.
    kept = jnp.sqrt(jnp.where(noise > 0, 1 + eta**2 * lost, 1))
    return schedule.signal[to], noise * kept, eta * noise * jnp.sqrt(-lost)


def ddpm(schedule, t, to, variance):
    """Returns the weights of an ancestral step with beta or posterior variance."""
    lost = ratio_of_snr(schedule, t, to)
    noise = schedule.noise[to]
    level = noise if variance == "posterior" else schedule.noise[t]
    scale = jnp.where(to > 0, level * jnp.sqrt(-lost), 0)
    return schedule.signal[to], noise * jnp.sqrt(1 + lost), scale


def second_order(schedule, steps):
    """Returns the weights ``float[n]`` of the change of x0 since the previous step.

    They are 0 without a previous step, or if log-SNR is infinite in one of the two.
    """
    t, to = steps[:-1], steps[1:]
    # Levels may repeat: the previous one is the lowest level above.
    higher, last = steps[None] > t[:, None], schedule.num_steps
    above = jnp.min(jnp.where(higher, steps[None], last), axis=1)
    known = jnp.any(higher, axis=1) & (t > to)
    known &= (schedule.signal[above] > 0) & (schedule.noise[to] > 0)
    level = lambda at: jnp.where(known, schedule.log_snr[at], 0)
    length, before = level(to) - level(t), level(t) - level(above)
    ratio = length / jnp.where(known, before, 1)
    return schedule.signal[to] * -jnp.expm1(-length / 2) * ratio / 2


def of_step(schedule, t, to, prediction, weights):
    """Returns ``keep, move, scale`` of the step ``keep x + move output + scale z``.

    A step to its own level leaves x unchanged.
    """
    one_of("prediction", prediction, checks.PREDICTIONS)
    of_x0, of_noise, scale = weights
    x0, noise = clean_and_noise(schedule.signal[t], schedule.noise[t], prediction)
    keep = of_x0 * x0[0] + of_noise * noise[0]
    move = of_x0 * x0[1] + of_noise * noise[1]
    goes = t > to
    return jnp.where(goes, keep, 1), jnp.where(goes, move, 0), scale * goes


def _reciprocal(value):
    """Returns 1 / value, or 0 for 0, with finite gradients."""
    some = value > 0
    return jnp.where(some, 1 / jnp.where(some, value, 1), 0)
