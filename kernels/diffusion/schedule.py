"""Noise schedules of a diffusion."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.kernels.checks import known, not_traced, numeric, whole


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class NoiseSchedule:
    """Levels of a diffusion of T steps: ``x_t = signal[t] x_0 + noise[t] e``.

    Index 0 is clean data and index T the noisiest. The three arrays are equivalent;
    each is accurate where the others lose digits. Stack schedules leaf by leaf to
    ``vmap`` over them.
    """

    signal: jax.Array  # float[T + 1]; square root of alpha_bar, from 1 down
    noise: jax.Array  # float[T + 1]; square root of 1 - alpha_bar, from 0 up
    log_snr: jax.Array  # float[T + 1]; 2 log(signal / noise), from inf down

    @property
    def num_steps(self) -> int:
        """T."""
        return self.signal.shape[-1] - 1

    @property
    def alpha_bar(self) -> jax.Array:
        """``float[T + 1]``, the signal's fraction of the variance; entry 0 is 1."""
        return self.signal**2


def noise_schedule(betas, *, zero_terminal_snr=False) -> NoiseSchedule:
    """Returns the schedule that adds noise of variance ``betas[t - 1]`` in step t.

    It is computed on the host in double precision and stored in float32 (float64 under
    ``jax.enable_x64``), so that ``1 - alpha_bar`` stays accurate for small betas.

    Args:
      betas: T numbers in (0, 1), known when the program is built. The last may be 1,
        which leaves no signal.
      zero_terminal_snr: whether to rescale the signal to 0 at step T while keeping
        step 1. Sampling from pure noise is then unbiased. The network should predict
        "v" or "x0" (see ``convert_denoiser_output``).

    Returns:
      ``NoiseSchedule`` with T steps.

    Raises:
      TypeError: if an argument is traced.
      ValueError: for betas out of range, or fewer than two of them to rescale.

    Example:
      >>> schedule = noise_schedule([0.75, 1.0])
      >>> schedule.num_steps, schedule.signal
      (2, Array([1. , 0.5, 0. ], dtype=float32))

    References:
      Ho et al., Denoising diffusion probabilistic models, NeurIPS 2020, equation 4.
      Lin et al., Common diffusion noise schedules and sample steps are flawed, WACV
      2024, algorithm 1.
    """
    not_traced("zero_terminal_snr", zero_terminal_snr)
    betas = _host(betas)
    with np.errstate(divide="ignore"):
        log_alpha_bar = np.cumsum(np.log1p(-betas))
        if zero_terminal_snr:
            log_alpha_bar = _rescaled(log_alpha_bar)
        log_alpha_bar = np.concatenate([[0.0], log_alpha_bar])
        noise_squared = -np.expm1(log_alpha_bar)
        log_snr = log_alpha_bar - np.log(noise_squared)
    levels = np.exp(log_alpha_bar / 2), np.sqrt(noise_squared), log_snr
    return NoiseSchedule(*map(jnp.asarray, levels))


def linear_noise_schedule(
    num_steps, first_beta, last_beta, *, zero_terminal_snr=False
) -> NoiseSchedule:
    """Returns the schedule with betas spaced linearly.

    PrivateHub uses ``(100, 1e-4, 0.05)``. This leaves alpha_bar = 0.078 at the last
    step, 28 % of the signal's amplitude, so sampling from pure noise is biased. Use
    ``(100, 1e-3, 0.2)`` or ``zero_terminal_snr=True`` to avoid the bias.

    Args:
      num_steps: T, a Python int >= 1.
      first_beta: Python number in (0, 1).
      last_beta: Python number in [first_beta, 1).
      zero_terminal_snr: see ``noise_schedule``.

    Returns:
      ``NoiseSchedule`` with T steps.

    Raises:
      TypeError: if a number is traced, or ``num_steps`` is not a Python int.
      ValueError: if a number is out of its range.

    Example:
      >>> schedule = linear_noise_schedule(100, 1e-4, 0.05)
      >>> round(float(schedule.alpha_bar[100]), 4)
      0.0782

    References:
      Ho et al., NeurIPS 2020, section 4.
    """
    _check_line(num_steps, first_beta, last_beta)
    betas = np.linspace(first_beta, last_beta, num_steps)
    return noise_schedule(betas, zero_terminal_snr=zero_terminal_snr)


def quadratic_noise_schedule(
    num_steps, first_beta, last_beta, *, zero_terminal_snr=False
) -> NoiseSchedule:
    """Returns the schedule whose betas have linearly spaced square roots.

    Args:
      num_steps: T, a Python int >= 1.
      first_beta: Python number in (0, 1).
      last_beta: Python number in [first_beta, 1).
      zero_terminal_snr: see ``noise_schedule``.

    Returns:
      ``NoiseSchedule`` with T steps.

    Raises:
      TypeError: if a number is traced, or ``num_steps`` is not a Python int.
      ValueError: if a number is out of its range.

    Example:
      >>> schedule = quadratic_noise_schedule(100, 1e-4, 0.05)
      >>> round(float(schedule.alpha_bar[100]), 3)
      0.169

    References:
      Song et al., Denoising diffusion implicit models, ICLR 2021, appendix D.
    """
    _check_line(num_steps, first_beta, last_beta)
    betas = np.linspace(first_beta**0.5, last_beta**0.5, num_steps) ** 2
    return noise_schedule(betas, zero_terminal_snr=zero_terminal_snr)


def cosine_noise_schedule(
    num_steps, *, offset=0.008, max_beta=0.999, zero_terminal_snr=False
) -> NoiseSchedule:
    """Returns the schedule whose alpha_bar is a squared cosine of time.

    Args:
      num_steps: T, a Python int >= 1.
      offset: s > 0, which keeps the first betas from being too small.
      max_beta: upper bound of the betas, in (0, 1]. With 1 the last step keeps no
        signal.
      zero_terminal_snr: see ``noise_schedule``.

    Returns:
      ``NoiseSchedule`` with T steps.

    Raises:
      TypeError: if a number is traced, or ``num_steps`` is not a Python int.
      ValueError: if a number is out of its range.

    Example:
      >>> schedule = cosine_noise_schedule(100)
      >>> round(float(schedule.alpha_bar[50]), 2)
      0.49

    References:
      Nichol and Dhariwal, Improved denoising diffusion probabilistic models, ICML 2021,
      equation 17.
    """
    whole("num_steps", num_steps, least=1)
    not_traced("offset", offset)
    not_traced("max_beta", max_beta)
    if not offset > 0:
        raise ValueError(f"offset must be > 0, got {offset!r}; the paper's is 0.008.")
    if not 0 < max_beta <= 1:
        raise ValueError(f"max_beta must be in (0, 1], got {max_beta!r}.")
    time = np.arange(num_steps + 1) / num_steps
    squared = np.cos((time + offset) / (1 + offset) * math.pi / 2) ** 2
    squared[-1] = 0.0  # cos(pi / 2) is not exactly 0 in floating point.
    betas = np.minimum(1 - squared[1:] / squared[:-1], max_beta)
    return noise_schedule(betas, zero_terminal_snr=zero_terminal_snr)


def _rescaled(log_alpha_bar):
    """Shifts the signal to end at 0 and rescales it to keep its first value."""
    signal = np.exp(log_alpha_bar / 2)
    if not signal[0] > signal[-1]:
        raise ValueError(
            "betas must have at least 2 entries for zero_terminal_snr, got "
            f"{len(signal)}; the first step is kept and the last is rescaled."
        )
    signal = (signal - signal[-1]) * signal[0] / (signal[0] - signal[-1])
    return 2 * np.log(signal)


def _host(betas):
    """Returns checked betas as float64."""
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(betas)):
        raise TypeError(
            "betas must be known when the program is built, got a traced array; build "
            "schedules outside and stack them for vmap."
        )
    numeric(betas=betas)
    betas = np.asarray(betas, np.float64)
    if betas.ndim != 1 or not len(betas):
        raise ValueError(
            f"betas must be float[T] with T >= 1, got shape {betas.shape}; pass one "
            "number per step."
        )
    inside = (betas > 0) & (betas < 1)
    inside[-1] |= betas[-1] == 1
    if not inside.all():
        step = int(np.argmin(inside))
        raise ValueError(
            f"betas must be in (0, 1) (the last may be 1), got {betas[step]} for step "
            f"{step + 1} of {len(betas)}."
        )
    return betas


def _check_line(num_steps, first_beta, last_beta):
    whole("num_steps", num_steps, least=1)
    not_traced("first_beta", first_beta)
    not_traced("last_beta", last_beta)
    for name, beta in (("first_beta", first_beta), ("last_beta", last_beta)):
        if known(beta) is None:
            raise TypeError(f"{name} must be a Python number, got {beta!r}.")
    if not 0 < first_beta <= last_beta < 1:
        raise ValueError(
            "first_beta and last_beta must have 0 < first_beta <= last_beta < 1, got "
            f"{first_beta!r} and {last_beta!r}."
        )
