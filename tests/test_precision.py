"""Training in 32 bits where JAX is asked for 64."""

import chex
import jax
import numpy as np
import pytest
import toy

import jaxanon as ja


@pytest.mark.parametrize(
    ("room", "name", "settings"),
    [
        (
            ja.learners,
            "clusterfl",
            {"model": "mlp", "hidden": (4,), "clusters": 1, "probe": 8},
        ),
        (ja.methods, "orf", {}),
    ],
)
def test_64_bits_change_nothing(room, name, settings):
    data, found = toy.data(), []
    for wide in (False, True):
        with jax.enable_x64(wide):
            method = room.build(name, data.spec, **settings)
            run = ja.train(method, data, epochs=1, progress=False)
            options = {"attacks": ["tree"]} if room is ja.methods else {}
            report = ja.evaluate(run, data, **options)
            assert jax.numpy.ones(1).dtype == (np.float64 if wide else np.float32)
        found.append((run.state, {**report, "costs": None}))
    chex.assert_trees_all_equal(*(state for state, _ in found))
    assert found[0][1] == found[1][1]
