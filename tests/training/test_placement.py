"""Runs on several cores equal runs on one; unavailable devices raise errors."""

import chex
import pytest

import jaxanon as ja
from jaxanon import methods
from jaxanon.training import placement, trainer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data():
    return ja.load("smartwatch", public="exercise", private=["side"])


SETTINGS = {
    "blinder": methods.recipes("blinder")["paper"].settings
    | {"hidden_sizes": (8,), "latent_dim": 2, "samples_per_class": 4, "ema_decay": 0.5},
    "fed_blinder": {
        "hidden_sizes": (8,),
        "latent_dim": 2,
        "batches": 1,
        "local_rounds": 1,
    },
}


def tiny(data, name="blinder"):
    return methods.build(name, data.spec, **SETTINGS[name])


@pytest.mark.parametrize("name", ["blinder", "fed_blinder"])
def test_cores_train_what_one_device_does(data, name, monkeypatch):
    monkeypatch.setattr(placement, "num_devices", lambda: 3)
    method, options = tiny(data, name), {"epochs": 1, "progress": False}
    one = trainer.train(method, data, **options)
    many = trainer.train(method, data, num_devices=3, **options)
    assert int(many.state.round) == int(one.state.round) > 0
    chex.assert_trees_all_close(one.state.params, many.state.params, atol=2e-3)
    for name, value in one.history[-1]["losses"].items():
        assert many.history[-1]["losses"][name] == pytest.approx(value, rel=1e-3)


def test_cores_tell_the_round_in_which_training_diverged(data, monkeypatch):
    monkeypatch.setattr(placement, "num_devices", lambda: 2)
    hyper = {"inner_learning_rate": 1e30}
    with pytest.raises(FloatingPointError, match=r"NaN or infinity in round 1;"):
        trainer.train(
            tiny(data), data, epochs=1, progress=False, hyper=hyper, num_devices=2
        )


def test_devices_that_there_are_not(data):
    many = placement.num_devices() + 1
    with pytest.raises(ValueError, match=f"between 1 and {many - 1}, .* got {many}"):
        trainer.train(tiny(data), data, num_devices=many, progress=False)
    with pytest.raises(ValueError, match=r"devices must be between 1 and .* got 0"):
        trainer.train(tiny(data), data, num_devices=0, progress=False)


def test_a_method_that_one_device_has_to_train(data, monkeypatch):
    monkeypatch.setattr(placement, "num_devices", lambda: 2)
    with pytest.raises(ValueError, match="devices must be 1 for dysan"):
        placement.check_devices(methods.dysan(data.spec), 2)
    placement.check_devices(methods.dysan(data.spec), None)
