"""Tests of learners on windows of event tokens."""

import dataclasses

import jax
import numpy as np
import pytest

import jaxanon as ja
from jaxanon import learners, methods
from jaxanon.training import trainer


@pytest.fixture(scope="module")
def events(data):
    """Returns windows in which class c has the event c + 1 among the events 4 and 5."""
    random = np.random.default_rng(0)

    def side(windows):
        numbers = random.integers(4, 6, windows.windows.shape[:2])
        where = random.integers(0, 16, len(numbers))
        numbers[np.arange(len(numbers)), where] = 1 + windows.labels["activity"]
        return windows._replace(windows=numbers[..., None].astype(np.float32))

    spec = dataclasses.replace(
        data.spec,
        channels=("event",),
        units=("1",),
        mean=(0.0,),
        std=(1.0,),
        tokens=6,
    )
    return data._replace(spec=spec, train=side(data.train), test=side(data.test))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cnn", "lstm", "mlp"])
def test_networks_of_every_kind_read_events(kind, events):
    learner = learners.build(
        *("fedavg", events.spec),
        **{"model": kind, "embedding": 3, "lstm_features": (4,), "filters": (4,)},
    )
    layers = learner.predict.network.init(jax.random.key(0))
    assert learner.predict.network.layers[0] == "embed_1"
    assert layers["embed_1"]["embedding"].shape == (6, 3)
    assert learner.predict.network.apply(layers, events.test.windows[:2]).shape == (
        2,
        3,
    )


@pytest.mark.slow
def test_models_of_events_are_compared_on_events(events):
    learner = learners.build("clusterfl", events.spec, filters=(4,), probe=50)
    probe = learner.init(jax.random.key(0)).server.probe
    assert probe.shape == (50, 16, 1) and set(np.unique(probe)) == set(range(6))


@pytest.mark.slow
def test_classes_that_one_event_tells_are_learned(events):
    learner = learners.build(
        *("fedavg", events.spec),
        **{
            "filters": (8,),
            "hidden_sizes": (),
            "local_steps": 20,
            "learning_rate": 0.2,
        },
    )
    run = trainer.train(learner, events, epochs=15, progress=False)
    assert ja.evaluate(run, events)["pooled"]["accuracy"] > 0.9  # Chance level: 1/3.


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fedper", "fedsgd_ldp"])
def test_the_table_is_a_layer_like_others(name, events):
    extra = (
        {"max_examples": 64, "max_rounds": 2}
        if name != "fedper"
        else {"shared_layers": 1}
    )
    learner = learners.build(
        name,
        events.spec,
        filters=(4,),
        hidden_sizes=(),
        local_steps=2,
        batch_size=4,
        **extra,
    )
    run = trainer.train(learner, events, epochs=2, progress=False)
    assert np.isfinite(run.history[-1]["losses"]["loss"])
    if name == "fedper":  # Only the embedding table is shared.
        assert set(run.state.params) == {"embed_1"}


def test_anonymizers_refuse_events(events):
    method = methods.build("blinder", events.spec, hidden_sizes=(4,), latent_dim=2)
    match = r"measurements for blinder, got .* \(toy\), .* a learner such as"
    with pytest.raises(ValueError, match=match):
        trainer.train(method, events, epochs=1, progress=False)
    with pytest.raises(ValueError, match=match):
        ja.sweep(
            "blinder", events, grid={}, num_seeds=1, hidden_sizes=(4,), latent_dim=2
        )
