"""The synthetic dataset of the methods' tests, and untrained runs."""

import math

import jax
import numpy as np
import pytest
import toy

from jaxanon import methods
from jaxanon.core.run import Run


@pytest.fixture(scope="session")
def data():
    """Returns windows of five subjects, three activities and two genders."""
    return toy.data()


@pytest.fixture(scope="session")
def untrained(data):
    """Returns ``(name, **settings) -> Run`` with non-zero NumPy matrices.

    The method draws the rest; compiling all draws takes longer than the test.
    """

    def untrained(name, **settings):
        method = methods.build(name, data.spec, **settings)
        key, rng = jax.random.key(3), np.random.default_rng(3)
        if name == "deeprotect":  # Its bounds hold for its own matrices.
            state = jax.jit(method.init)(key)
            return Run(method, state, data.spec, None, [], {})
        like, tree = jax.tree.flatten(jax.eval_shape(method.init, key))
        few = [leaf.ndim < 2 or leaf.dtype != np.float32 for leaf in like]

        @jax.jit
        def init(key):
            leaves = jax.tree.leaves(method.init(key))
            return [leaf for leaf, own in zip(leaves, few, strict=True) if own]

        def drawn(shape):
            size = math.prod(shape[:-1])
            return np.float32(rng.normal(size=shape) / math.sqrt(size))

        kept = iter(init(key))
        leaves = [
            next(kept) if own else jax.numpy.asarray(drawn(leaf.shape))
            for own, leaf in zip(few, like, strict=True)
        ]
        state = jax.tree.unflatten(tree, leaves)
        return Run(method, state, data.spec, None, [], {})

    return untrained


@pytest.fixture(scope="session")
def small_blinder(untrained):
    """Returns a federated run that compiles fast."""
    small = {
        "latent_dim": 2,
        "hidden_sizes": (8,),
        "samples_per_class": 4,
        "support_size": 1,
        "query_size": 3,
    }
    quick = {
        "discriminator_hidden_sizes": (4,),
        "discriminator_steps": 0,
        "second_order": False,
    }
    return untrained("blinder", **small, **quick, extra=0, shadows=False)
