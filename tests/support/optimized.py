"""``jax.jit`` for programs that run for longer than it takes to compile them."""

import functools

import jax

# Elsewhere conftest.py lets XLA take it easy. One level up, what trains small networks
# for hundreds of rounds takes a quarter of the time; a U-Net three times as long to
# compile.
optimized = functools.partial(
    jax.jit, compiler_options={"xla_backend_optimization_level": 1}
)
