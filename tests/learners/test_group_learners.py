"""Learners that group clients find groups that are there, and refuse what is wrong."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import datasets
from jaxanon.learners import builders, group_builders
from jaxanon.learners.group_config import ClusterFLConfig
from jaxanon.models.predictors import predictor


@pytest.fixture(scope="module")
def two_tongues(small, data):
    """Rows of five clients that call low, middle and high windows 0, 1 and 2; two of
    them 1, 2 and 0."""
    rows = small("fedavg").prepare(datasets.by_client(data.train))
    x = jax.random.normal(jax.random.key(0), rows.rows["x"].shape)
    level = jax.random.normal(jax.random.key(1), rows.mask.shape)
    y = jnp.digitize(level, jnp.array([-0.5, 0.5]))
    y = jnp.where(jnp.arange(5)[:, None] >= 3, (y + 1) % 3, y)
    return rows._replace(rows={"x": 0.3 * x + level[:, :, None, None], "y": y})


def test_cluster_fl_tells_who_learns_the_same(small, two_tongues):
    learner = small("clusterfl", clusters=1, local_steps=20, step_size=0.2, batch=16)
    state = learner.init(jax.random.key(0))
    state, _ = jax.jit(learner.update)(jax.random.key(1), state, two_tongues)
    side = np.asarray(state.server.members[:, 0]) > 0.2
    assert side.tolist() in ([True] * 3 + [False] * 2, [False] * 3 + [True] * 2)


def test_cluster_fl_compares_numbers_where_there_is_one_output(
    small, two_tongues, monkeypatch
):
    """A softmax of one output says the same of everything."""
    for module in (builders, group_builders):
        one = lambda spec, config: predictor("mlp", 16, 2, 1, hidden=(4,))
        monkeypatch.setattr(module, "network_of", one)
    learner = small("clusterfl", clusters=2)
    state = learner.init(jax.random.key(0))
    scale = lambda w: w * jnp.arange(1.0, 6.0).reshape(5, *[1] * (w.ndim - 1))
    own = state.own._replace(model=jax.tree.map(scale, state.own.model))
    state = state._replace(own=own)
    state, _ = jax.jit(learner.update)(jax.random.key(1), state, two_tongues)
    members = np.asarray(state.server.members)
    np.testing.assert_allclose((members[:, 0] ** 2).sum(), 1, rtol=1e-4)


@pytest.mark.parametrize(
    ("config", "settings", "message"),
    [
        (ClusterFLConfig, {"rho": 0.001}, "rho must be above 2 beta, 0.001, got 0.001"),
        (ClusterFLConfig, {"form": "published"}, "form must be one of"),
        (ClusterFLConfig, {"every": 0}, "every must be >= 1"),
        (ClusterFLConfig, {"temperature": 0.0}, "temperature must be finite and > 0"),
    ],
)
def test_says_what_was_wrong(config, settings, message):
    with pytest.raises(ValueError, match=message):
        config(**settings)
