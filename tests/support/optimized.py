"""``jax.jit`` for programs that run for longer than they compile."""

import functools

import jax

# Elsewhere conftest.py lowers XLA's optimization level. One level up, training small
# networks for hundreds of rounds takes a quarter of the time, but compiling a U-Net
# takes three times as long.
optimized = functools.partial(
    jax.jit, compiler_options={"xla_backend_optimization_level": 1}
)
