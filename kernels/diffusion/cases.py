"""Shapes shared by the tests and the benchmarks."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.kernels.diffusion import reference


class BenchmarkCase(NamedTuple):
    """Shape of a batch of windows, sampling steps and network width."""

    batch: int
    time: int
    channels: int
    betas: tuple[float, ...]
    num_steps: int
    width: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of the windows."""
        return self.batch, self.time, self.channels


CASES = {
    "small": BenchmarkCase(4, 3, 2, tuple(reference.linear(12, 1e-3, 0.4)), 5, 8),
    # A cohort's windows with PrivateHub's schedule: every step and every fifth step.
    "windows": BenchmarkCase(
        64, 128, 6, tuple(reference.linear(100, 1e-4, 0.05)), 100, 512
    ),
    "strided": BenchmarkCase(
        64, 128, 6, tuple(reference.linear(100, 1e-4, 0.05)), 20, 512
    ),
}


def network(case: BenchmarkCase, key):
    """Returns a network of three matrix products: ``(x, t, condition) -> output``."""
    size = case.time * case.channels
    keys = jax.random.split(key, 3)
    draw = lambda key, a, b: jax.random.normal(key, (a, b)) / jnp.sqrt(a)
    first = draw(keys[0], size, case.width)
    second = draw(keys[1], case.width, case.width)
    third = 0.5 * draw(keys[2], case.width, size)

    def denoise(x, t, condition):
        rows = x.reshape(len(x), size).astype(jnp.float32)
        hidden = jnp.tanh(rows @ first + t / len(case.betas) + condition)
        return (jnp.tanh(hidden @ second) @ third).reshape(x.shape)

    return denoise


def flops_per_call(case: BenchmarkCase) -> int:
    """Returns the operations of the network's matrix products for one batch."""
    size = case.time * case.channels
    return 2 * case.batch * (2 * size * case.width + case.width**2)
