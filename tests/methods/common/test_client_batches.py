"""Tests of client batches, target classes and the settings passed to rounds."""

import dataclasses
import importlib
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toy

from jaxanon import datasets, methods
from jaxanon.methods.common import client_batches

# ``methods.blinder`` is the function of the same name.
module = importlib.import_module("jaxanon.methods.blinder.blinder")


@pytest.fixture(scope="module")
def data():
    data = toy.data()
    spec = dataclasses.replace(data.spec, private=("gender", "subject"))
    return data._replace(spec=spec)


def test_padding_is_zero_in_standardised_windows_too(data):
    clients = datasets.by_client(data.train)
    assert not clients.mask.all()
    real = clients.mask[..., None, None]
    spoiled = clients._replace(windows=np.where(real, clients.windows, 55))
    prepared = client_batches.prepare(data.spec, spoiled, 3)
    mean, std = np.float32(data.spec.mean), np.float32(data.spec.std)
    expected = np.where(real, (clients.windows - mean) / std, 0)
    np.testing.assert_allclose(prepared.windows, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_shadows_are_other_classes_and_shown_ones_any_class_at_all(data):
    prepared = client_batches.prepare(data.spec, datasets.by_client(data.train), 3)
    draw = lambda key: client_batches.draw_batch(
        key, 3, prepared, data.spec, 2, 20, 1000
    )
    batch = jax.jit(draw)(jax.random.key(0))
    for index, num in enumerate((2, 5)):
        true, shadow, shown = (
            np.argmax(kind[index], 1)
            for kind in (batch.private, batch.shadow, batch.target)
        )
        assert not np.any(shadow == true)
        bound = 4.5 * np.sqrt(1000 / num * (1 - 1 / num))
        counts = np.bincount(shown, minlength=num)
        np.testing.assert_allclose(counts, 1000 / num, atol=bound)
        # They are independent.
        assert abs(np.sum(shown == shadow) - 1000 / num) < bound


class Net:
    """Rebuilds windows that encode the decoder's inputs: latent, classes."""

    def encode(self, params, x):
        """Returns mean 3 and standard deviation 1/2."""
        del params
        z = jnp.full((len(x), 1), 3.0)
        return z, jnp.full_like(z, 2 * np.log(0.5))

    def decode(self, params, z, private, public):
        """Writes each input to one row of the window."""
        del params
        classes = [jnp.argmax(hot, -1) for hot in (*private, public)]
        rows = jnp.stack([z[:, 0], *classes], axis=1)
        rows = jnp.pad(rows, [(0, 0), (0, toy.TIME - rows.shape[1])])
        return jnp.repeat(rows[..., None], toy.CHANNELS, axis=2)


class Judge:
    """Predicts the classes in its parameters."""

    def __init__(self, num_classes):
        self.num_classes = num_classes

    def apply(self, params, x):
        """Returns logits."""
        del x
        return jax.nn.one_hot(params["params"], self.num_classes)


@pytest.fixture
def show(data, monkeypatch):
    """``kind -> (predicted classes, latents, shown classes)`` of 2000 windows."""
    monkeypatch.setattr(module.models, "networks", lambda *args, **options: Net())
    monkeypatch.setattr(module, "Classifier", Judge)

    def run(kind):
        method = methods.blinder(data.spec, anonymization=kind)
        row = jnp.arange(2000)
        predicted = {"activity": row % 3, "gender": row % 2, "subject": row % 5}
        state = types.SimpleNamespace(params={"classifiers": predicted}, average=None)
        # These kinds need no classifier of the attribute.
        for name in {
            "stochastic": ("gender", "subject"),
            "automatic": ("subject",),
        }.get(kind, ()):
            del predicted[name]
        windows = jnp.zeros((2000, toy.TIME, toy.CHANNELS))
        anonymize = jax.jit(lambda key: method.anonymize(key, state, windows))
        safe = np.asarray(anonymize(jax.random.key(0)))
        rows = ((safe - data.spec.mean) / data.spec.std)[:, :4, 0]
        names = ("gender", "subject", "activity")
        shown = dict(zip(names, np.rint(rows[:, 1:]).astype(int).T, strict=True))
        return jax.tree.map(np.asarray, predicted), rows[:, 0], shown

    return run


def test_deterministic_shows_the_class_after_the_predicted_one(show):
    predicted, latents, shown = show("deterministic")
    np.testing.assert_array_equal(shown["activity"], predicted["activity"])
    np.testing.assert_array_equal(shown["gender"], (predicted["gender"] + 1) % 2)
    np.testing.assert_array_equal(shown["subject"], (predicted["subject"] + 1) % 5)
    np.testing.assert_allclose(latents, 3, rtol=1e-4)


def test_stochastic_samples_latents_and_shows_any_class(show):
    predicted, latents, shown = show("stochastic")
    np.testing.assert_array_equal(shown["activity"], predicted["activity"])
    for name, num in (("gender", 2), ("subject", 5)):
        bound = 4.5 * np.sqrt(2000 / num * (1 - 1 / num))
        counts = np.bincount(shown[name], minlength=num)
        np.testing.assert_allclose(counts, 2000 / num, atol=bound)
    # Windows of one class have different latents.
    assert len(np.unique(latents)) > 1900
    np.testing.assert_allclose(np.mean(latents), 3, atol=4.5 * 0.5 / 2000**0.5)
    np.testing.assert_allclose(np.std(latents), 0.5, rtol=0.08)


def test_automatic_flips_one_of_two_classes_and_draws_one_of_more(show):
    predicted, _, shown = show("automatic")
    flipped = np.mean(shown["gender"] != predicted["gender"])
    assert abs(flipped - 0.51) < 4.5 * 0.5 / 2000**0.5
    counts = np.bincount(shown["subject"], minlength=5)
    np.testing.assert_allclose(counts, 400, atol=4.5 * np.sqrt(400 * 0.8))


def test_settings_reach_the_rounds(data, monkeypatch):
    told = {}

    def meta(*functions, **options):
        del functions
        told.update(options)
        return types.SimpleNamespace(init=None, update=None)

    monkeypatch.setattr(module, "fed_maml", meta)
    settings = {
        "support_size": 2,
        "query_size": 5,
        "samples_per_class": 20,
        "client_fraction": 0.6,
    }
    settings |= {"ema_decay": 0.9, "guided": True, "discriminator_rounds": 4}
    for second_order in (True, False):
        methods.blinder(data.spec, **settings, second_order=second_order)
        assert told["second_order"] is second_order
    # A cohort lasts an epoch: 3 activities of 20 windows, 7 per round.
    assert told["rounds_per_cohort"] == 60 // 7
    assert told["cohort_size_fn"](5) == 3
    assert (told["ema_decay"], told["alone_rounds"]) == (0.9, 4)


@pytest.mark.parametrize("guided", [True, False])
def test_guided_divergence_grows_with_the_values_of_a_window(data, monkeypatch, guided):
    seen = []

    def phases(networks, scale, *_, **__):
        seen.append(scale.beta)

    def meta(init_fn, draw_fn, phases_fn, *_, **options):
        phases_fn(options["hyper"])
        return types.SimpleNamespace(init=None, update=None)

    monkeypatch.setattr(module, "fed_maml", meta)
    monkeypatch.setattr(module.models, "phases", phases)
    methods.blinder(data.spec, beta=2.0, guided=guided)
    values = data.spec.time * len(data.spec.channels)
    assert values != 256
    assert seen == [2 * values / 256 if guided else 2.0]


@pytest.mark.parametrize("fresh_batches", [True, False])
def test_the_released_list_of_batches_and_the_paper_s_plain_steps(
    monkeypatch, data, fresh_batches
):
    seen = {}

    def meta(*args, **options):
        seen.update(options, draw_fn=args[1])
        return built(*args, **options)

    built = module.fed_maml
    monkeypatch.setattr(module, "fed_maml", meta)
    settings = {
        "hidden_sizes": (4,),
        "latent_dim": 2,
        "query_size": 3,
        "samples_per_class": 6,
    }
    method = methods.blinder(
        data.spec, **settings, fresh_batches=fresh_batches, server_optimizer="sgd"
    )
    rounds = method.schedule.rounds_per_epoch(None)
    assert seen["rounds_per_list"] == (None if fresh_batches else rounds)
    plain = seen["server_optimizer"]
    gradient = jnp.array([3.0, -0.5])
    step, _ = plain.update(gradient, plain.init(gradient))
    np.testing.assert_array_equal(step, -gradient)
    # The support, query and extra windows of a list use separate keys.
    prepared = method.prepare(datasets.by_client(data.train))
    drawn = []
    monkeypatch.setattr(
        client_batches,
        "draw_batch",
        lambda *args, rows_key: drawn.append(rows_key) or Weighed(),
    )
    given = (jax.random.key(3),) if not fresh_batches else ()
    seen["draw_fn"](jax.random.key(2), 0, prepared, *given)
    if fresh_batches:
        assert drawn == [None] * 3
    else:
        assert len({tuple(jax.random.key_data(key).tolist()) for key in drawn}) == 3


class Weighed:
    """A batch with the fields needed here."""

    weights = jnp.ones(2)
