"""A run whose anonymizer is known: it mirrors each channel at its mean."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toy

from jaxanon.core.run import Run
from jaxanon.methods import build


@pytest.fixture(scope="module")
def run():
    """Windows of 16 samples at 10 Hz, channels x and y in g."""
    spec = toy.data().spec
    method = build("orf", spec)
    mean = np.float32(spec.mean)

    def mirrored(key, state, windows):
        return 2 * jnp.broadcast_to(mean, windows.shape) - windows

    mirror = method._replace(anonymize=mirrored)
    state = method.init(jax.random.key(0))
    return Run(mirror, state, spec, None, [], {})
