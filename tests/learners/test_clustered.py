"""Tests that clustering learners find existing groups and reject invalid settings."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import datasets
from jaxanon.learners import clustered
from jaxanon.learners import learner as learners_learner
from jaxanon.learners.clustered import ClusterFLConfig
from jaxanon.models.predictors import predictor

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def two_tongues(small, data):
    """Returns rows of five clients, two of which label windows differently.

    Three label low, middle and high windows 0, 1 and 2; two label them 1, 2 and 0.
    """
    rows = small("fedavg").prepare(datasets.by_client(data.train))
    x = jax.random.normal(jax.random.key(0), rows.rows["x"].shape)
    level = jax.random.normal(jax.random.key(1), rows.mask.shape)
    y = jnp.digitize(level, jnp.array([-0.5, 0.5]))
    y = jnp.where(jnp.arange(5)[:, None] >= 3, (y + 1) % 3, y)
    return rows._replace(rows={"x": 0.3 * x + level[:, :, None, None], "y": y})


def test_clusterfl_tells_who_learns_the_same(small, two_tongues):
    learner = small(
        "clusterfl", clusters=1, local_steps=20, learning_rate=0.2, batch_size=16
    )
    state = learner.init(jax.random.key(0))
    state, _ = jax.jit(learner.update)(jax.random.key(1), state, two_tongues)
    side = np.asarray(state.server.members[:, 0]) > 0.2
    assert side.tolist() in ([True] * 3 + [False] * 2, [False] * 3 + [True] * 2)


def test_clusterfl_compares_numbers_where_there_is_one_output(
    small, two_tongues, monkeypatch
):
    """Checks that a network with one output is not compared by its softmax."""
    for module in (learners_learner, clustered):
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


def test_centralized_clustering_tells_who_learns_the_same(small, two_tongues):
    learner = small("centralized_clustering", batch_size=64)
    state, update = learner.init(jax.random.key(0)), jax.jit(learner.update)
    for _ in range(2):
        state, _ = update(jax.random.key(1), state, two_tongues)
    groups = state.own.tolist()
    assert groups in ([0] * 3 + [1] * 2, [1] * 3 + [0] * 2)
    models = [
        learner.predict.model(None, state, two_tongues, jnp.int32(c)) for c in (0, 4)
    ]
    assert any(
        bool(jnp.any(a != b))
        for a, b in zip(*map(jax.tree.leaves, models), strict=True)
    )
    assert learner.schedule.work_per_round(two_tongues) == 2


def test_centralized_clustering_by_windows_tells_amplitudes(small, data):
    """Subjects of one gender move twice as far: deviations are 2 and 1."""
    learner = small("centralized_clustering", by="windows", alone=0)
    rows = learner.prepare(datasets.by_client(data.train))
    state = learner.init(jax.random.key(0))
    state, _ = jax.jit(learner.update)(jax.random.key(1), state, rows)
    groups = np.asarray(state.own)
    assert len({*groups[::2]}) == len({*groups[1::2]}) == 1 and groups[0] != groups[1]


def test_fedmask_masks_the_last_layers(small):
    learner = small("fedmask", masked_layers=1)
    assert [*learner.init(jax.random.key(0)).own.masks] == ["dense_2"]
    assert len(small("fedmask").init(jax.random.key(0)).own.masks) == 2
    with pytest.raises(ValueError, match="masked_layers must be at most 2, the layers"):
        small("fedmask", masked_layers=3)


def test_feddl_parts_at_the_outputs_those_who_call_things_otherwise(small, two_tongues):
    learner = small("feddl", local_steps=20, learning_rate=0.2, batch_size=16)
    state, update = learner.init(jax.random.key(0)), jax.jit(learner.update)
    for _ in range(3):
        state, info = update(jax.random.key(1), state, two_tongues)
    assert [*state.server.groups] == ["dense_1", "dense_2"]
    assert state.server.groups["dense_2"].tolist() == [0, 0, 0, 3, 3]
    below = state.server.groups["dense_1"].tolist()
    assert below in ([0] * 5, [0, 0, 0, 3, 3])  # In the same or larger groups.
    assert info["layers"] == 2.0


def test_a_penalty_outweighs_what_it_is_to_hold():
    with pytest.raises(ValueError, match="rho must be > 2 beta, 0.001, got 0.001"):
        ClusterFLConfig(rho=0.001)
