"""The numbers that one step multiplies by, finite from clean data to pure noise."""

import jax.numpy as jnp

from jaxanon.kernels.checks import one_of
from jaxanon.kernels.diffusion import checks
from jaxanon.kernels.precision import wide


def widest(*arrays):
    """The dtype to compute in, of all arrays together."""
    return wide(*map(jnp.result_type, arrays))


def clean_and_noise(signal, noise, prediction):
    """Weights ``((x, output), (x, output))`` that give x0 and the noise.

    Where there is no signal, noise alone cannot tell x0, which is set to 0; where there
    is no noise, x0 cannot tell the noise, likewise.
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
    """``SNR_t / SNR_to - 1``, in [-1, 0]: less cancels here than in alpha_bar."""
    change = schedule.log_snr[t] - schedule.log_snr[to]
    return jnp.expm1(jnp.where(t > to, change, 0))  # At t = to = 0 it is inf - inf.


def ddim(schedule, t, to, eta):
    """Weights of x0 and the noise at ``to``, and the scale of the fresh noise."""
    lost = ratio_of_snr(schedule, t, to)
    noise = schedule.noise[to]
    # At to = 0 nothing is left under the root when eta is 1, nor of its gradient.
    kept = jnp.sqrt(jnp.where(noise > 0, 1 + eta**2 * lost, 1))
    return schedule.signal[to], noise * kept, eta * noise * jnp.sqrt(-lost)


def ddpm(schedule, t, to, variance):
    """The same for an ancestral step, whose variance is beta's or the posterior's."""
    lost = ratio_of_snr(schedule, t, to)
    noise = schedule.noise[to]
    level = noise if variance == "posterior" else schedule.noise[t]
    scale = jnp.where(to > 0, level * jnp.sqrt(-lost), 0)
    return schedule.signal[to], noise * jnp.sqrt(1 + lost), scale


def second_order(schedule, steps):
    """Weights of what an x0 has changed by since the step before, ``float[n]``.

    0 where there is no such step, or where log-SNR has no bounds in one of the two.
    """
    t, to = steps[:-1], steps[1:]
    # Levels may be repeated: the one before is the lowest that lies above.
    higher, last = steps[None] > t[:, None], schedule.num_steps
    above = jnp.min(jnp.where(higher, steps[None], last), axis=1)
    known = jnp.any(higher, axis=1) & (t > to)
    known &= (schedule.signal[above] > 0) & (schedule.noise[to] > 0)
    level = lambda at: jnp.where(known, schedule.log_snr[at], 0)
    length, before = level(to) - level(t), level(t) - level(above)
    ratio = length / jnp.where(known, before, 1)
    return schedule.signal[to] * -jnp.expm1(-length / 2) * ratio / 2


def of_step(schedule, t, to, prediction, weights):
    """``keep, move, scale`` of ``keep x + move output + scale z``; one step, whole.

    A step to its own level keeps x as it is.
    """
    one_of("prediction", prediction, checks.PREDICTIONS)
    of_x0, of_noise, scale = weights
    x0, noise = clean_and_noise(schedule.signal[t], schedule.noise[t], prediction)
    keep = of_x0 * x0[0] + of_noise * noise[0]
    move = of_x0 * x0[1] + of_noise * noise[1]
    goes = t > to
    return jnp.where(goes, keep, 1), jnp.where(goes, move, 0), scale * goes


def _reciprocal(value):
    """1 / value, and 0 for 0, with gradients that stay finite."""
    some = value > 0
    return jnp.where(some, 1 / jnp.where(some, value, 1), 0)
