"""Reference implementation of the papers' formulas in plain loops.

Betas are ``[T]`` in double precision, ``alpha_bar`` is ``[T + 1]`` with 1 at index 0,
and ``noise[t]`` is the standard normal number that the step from t draws.
"""

import math

import numpy as np


def linear(num_steps, first_beta, last_beta):
    """Returns equally spaced betas."""
    between = max(num_steps - 1, 1)
    rise = (last_beta - first_beta) / between
    return [first_beta + t * rise for t in range(num_steps)]


def quadratic(num_steps, first_beta, last_beta):
    """Returns betas with equally spaced square roots."""
    roots = linear(num_steps, math.sqrt(first_beta), math.sqrt(last_beta))
    return [root**2 for root in roots]


def cosine(num_steps, offset=0.008, max_beta=0.999):
    """Computes betas by Nichol and Dhariwal 2021, equation 17 with its clip."""
    f = lambda t: math.cos((t / num_steps + offset) / (1 + offset) * math.pi / 2) ** 2
    alpha_bar = [f(t) / f(0) for t in range(num_steps + 1)]
    steps = range(1, num_steps + 1)
    return [min(1 - alpha_bar[t] / alpha_bar[t - 1], max_beta) for t in steps]


def alpha_bar(betas):
    """Computes alpha_bar by Ho et al. 2020, above equation 4."""
    products = [1.0]
    for beta in betas:
        products.append(products[-1] * (1 - beta))
    return products


def zero_terminal_snr(betas):
    """Rescales betas by Lin et al. 2024, algorithm 1, so that the last is 1."""
    roots = [math.sqrt(product) for product in alpha_bar(betas)[1:]]
    first, last = roots[0], roots[-1]
    roots = [(root - last) * first / (first - last) for root in roots]
    squares = [1.0] + [root**2 for root in roots]
    return [1 - squares[t + 1] / squares[t] for t in range(len(betas))]


def diffuse(betas, x0, noise, t):
    """Adds noise by Ho et al. 2020, equation 4."""
    product = alpha_bar(betas)[t]
    return math.sqrt(product) * x0 + math.sqrt(1 - product) * noise


def posterior(betas, x0, x_t, t):
    """Returns mean and variance at t - 1, Ho et al. 2020, equations 6 and 7."""
    product, beta = alpha_bar(betas), betas[t - 1]
    of_x0 = math.sqrt(product[t - 1]) * beta / (1 - product[t])
    of_x_t = math.sqrt(1 - beta) * (1 - product[t - 1]) / (1 - product[t])
    variance = (1 - product[t - 1]) / (1 - product[t]) * beta
    return of_x0 * x0 + of_x_t * x_t, variance


def clean(product, x_t, output, prediction):
    """Returns x0 from a prediction of noise, x0 or v (Salimans and Ho 2022, app. D)."""
    if prediction == "x0":
        return output
    if prediction == "v":
        return math.sqrt(product) * x_t - math.sqrt(1 - product) * output
    return (x_t - math.sqrt(1 - product) * output) / math.sqrt(product)


def ddpm(denoise_fn, betas, x, noise, prediction="noise", variance="posterior"):
    """Samples by Ho et al. 2020, algorithm 2, with the mean from x0 (equation 7)."""
    product = alpha_bar(betas)
    for t in range(len(betas), 0, -1):
        x0 = clean(product[t], x, denoise_fn(x, t), prediction)
        x, posterior_variance = posterior(betas, x0, x, t)
        squared = posterior_variance if variance == "posterior" else betas[t - 1]
        if t > 1:
            x = x + math.sqrt(squared) * noise[t]
    return x


def ddim(denoise_fn, betas, x, steps, noise, eta=0.0, prediction="noise"):
    """Samples by Song et al. 2021, equations 12 and 16, on a subset of the steps."""
    product = alpha_bar(betas)
    for i in range(len(steps) - 1):
        t, to = steps[i], steps[i + 1]
        x0 = clean(product[t], x, denoise_fn(x, t), prediction)
        direction = (x - math.sqrt(product[t]) * x0) / math.sqrt(1 - product[t])
        sigma = eta * math.sqrt((1 - product[to]) / (1 - product[t]))
        sigma *= math.sqrt(1 - product[t] / product[to])
        x = math.sqrt(product[to]) * x0
        x = x + math.sqrt(max(1 - product[to] - sigma**2, 0.0)) * direction
        x = x + sigma * noise[t]
    return x


def dpm_solver(denoise_fn, betas, x, steps, prediction="noise"):
    """Samples by Lu et al. 2022 (DPM-Solver++), algorithm 2.

    It falls back to first order if a step has infinite length in log-SNR, as from pure
    noise and to clean data. Steps must decrease strictly.
    """
    product = alpha_bar(betas)
    before, length_before = None, math.inf
    for i in range(len(steps) - 1):
        t, to = steps[i], steps[i + 1]
        x0 = clean(product[t], x, denoise_fn(x, t), prediction)
        ends = [_half_log_snr(product[level]) for level in (t, to)]
        length = ends[1] - ends[0]
        guess = x0
        if (
            before is not None
            and math.isfinite(length)
            and math.isfinite(length_before)
        ):
            ratio = length_before / length
            guess = (1 + 1 / (2 * ratio)) * x0 - 1 / (2 * ratio) * before
        x = math.sqrt((1 - product[to]) / (1 - product[t])) * x
        x = x - math.sqrt(product[to]) * (math.exp(-length) - 1) * guess
        before, length_before = x0, length
    return x


def _half_log_snr(product):
    """Computes lambda of Lu et al. 2022."""
    if product in (0.0, 1.0):
        return math.inf if product else -math.inf
    return math.log(product / (1 - product)) / 2


def gaussian_denoiser(betas, mean, std, prediction="noise"):
    """Returns the optimal denoiser ``(x, t) -> output`` of data from N(mean, std²)."""
    product = alpha_bar(betas)

    def denoise(x, t):
        signal, level = math.sqrt(product[t]), math.sqrt(1 - product[t])
        excess = (x - signal * mean) / ((signal * std) ** 2 + level**2)
        x0, noise = mean + signal * std**2 * excess, level * excess
        return {"noise": noise, "x0": x0, "v": signal * noise - level * x0}[prediction]

    return denoise


def gaussian_moments(betas, mean, std, steps, start, eta=0.0):
    """Returns mean and variance at each level of ``steps``.

    ``start`` holds mean and variance at ``steps[0]``. For Gaussian data every step is
    affine: ``x' = slope x + shift + sigma z``.
    """
    product = alpha_bar(betas)
    centre, variance = start
    found = [start]
    for i in range(len(steps) - 1):
        t, to = steps[i], steps[i + 1]
        spread = product[t] * std**2 + 1 - product[t]
        sigma_squared = eta**2 * (1 - product[to]) / (1 - product[t])
        sigma_squared *= 1 - product[t] / product[to]
        # Posterior means of x0 and noise as slopes in x - sqrt(alpha_bar) mean.
        slope = math.sqrt(product[to] * product[t]) * std**2 / spread
        rest = math.sqrt(max(1 - product[to] - sigma_squared, 0.0))
        slope += rest * math.sqrt(1 - product[t]) / spread
        centre = math.sqrt(product[to]) * mean + slope * (
            centre - math.sqrt(product[t]) * mean
        )
        variance = slope**2 * variance + sigma_squared
        found.append((centre, variance))
    return np.array(found)
