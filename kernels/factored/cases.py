"""Networks and cohorts shared by the tests and the benchmarks."""

from typing import NamedTuple

import jax
import jax.numpy as jnp


class BenchmarkCase(NamedTuple):
    """Clients that train two dense layers for ``num_steps`` on ``rows`` rows each."""

    clients: int
    rows: int
    widths: tuple[int, int, int]  # inputs, hidden units, outputs
    num_steps: int = 1

    @property
    def held(self) -> int:
        """Rows of factors of a layer after all steps."""
        return self.rows * self.num_steps


CASES = {
    # Blinder adapts on one window.
    "one_row": BenchmarkCase(3, 1, (7, 6, 5)),
    "steps": BenchmarkCase(2, 2, (9, 12, 8), 2),
    # Factors are cheaper for 14 by 5 with three rows; for neither layer with six.
    "given_up": BenchmarkCase(2, 3, (14, 5, 4), 2),
    "one_client": BenchmarkCase(1, 2, (8, 8, 8)),
    # A cohort of MotionSense with an autoencoder of windows.
    "cohort": BenchmarkCase(64, 1, (768, 512, 768)),
}


def problem(case: BenchmarkCase, key):
    """Returns shared parameters and inputs ``float[clients, rows, inputs]``."""
    keys = jax.random.split(key, 4)
    inputs, hidden, outputs = case.widths
    draw = lambda key, *shape: jax.random.normal(key, shape)
    params = {
        "first": draw(keys[0], inputs, hidden) / inputs**0.5,
        "bias": draw(keys[1], hidden),
        "second": draw(keys[2], hidden, outputs) / hidden**0.5,
    }
    return params, draw(keys[3], case.clients, case.rows, inputs)


def loss(params, x, matmul):
    """Computes the loss ``float[]`` of two dense layers that use ``matmul``."""
    hidden = jnp.tanh(matmul(x, params["first"]) + params["bias"][None])
    return jnp.mean(jnp.square(matmul(hidden, params["second"]) - 1))
