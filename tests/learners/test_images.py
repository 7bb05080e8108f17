"""Tests of learners whose networks treat windows as images."""

import dataclasses

import jax
import numpy as np
import pytest

import jaxanon as ja
from jaxanon import datasets, learners
from jaxanon.training import trainer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def images(data):
    """Returns windows of 16 samples as images of 4 x 4 pixels."""
    spec = dataclasses.replace(data.spec, name="images")
    return data._replace(spec=spec)


def test_clients_train_a_resnet32(images):
    learner = learners.build(
        "fedavg",
        images.spec,
        model="resnet32",
        local_steps=1,
        batch_size=2,
        client_fraction=0.4,
    )
    run = trainer.train(learner, images, epochs=1, progress=False)
    assert np.isfinite(run.history[-1]["losses"]["loss"])
    report = ja.evaluate(run, images)
    # 27 values of 3 x 3 pixels and colours become 18 of 2, and 10 classes 3.
    size = 464_154 - 9 * 16 - 7 * 65
    assert report["traffic"]["up"] == 4 * size


@pytest.mark.parametrize("name", ["fedper", "atlas"])
def test_its_layers_are_shared_one_by_one(name, images):
    extra = {"max_examples": 64, "max_rounds": 2} if name == "atlas" else {}
    learner = learners.build(
        name, images.spec, model="resnet32", local_steps=1, batch_size=2, **extra
    )
    prepared = learner.prepare(datasets.by_client(images.train))
    state = jax.eval_shape(learner.init, jax.random.key(0))
    new, _ = jax.eval_shape(learner.update, jax.random.key(1), state, prepared)
    assert jax.tree.structure(new) == jax.tree.structure(state)
    if name == "fedper":  # Four layers, in forward order.
        assert set(new.params) == {"conv_1", "conv_2", "conv_3", "conv_4"}
    else:
        assert set(new.params) == set(learner.predict.network.layers)
