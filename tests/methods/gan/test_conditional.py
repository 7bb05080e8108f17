"""Tests of conditional GANs: samples, concealed classes and errors."""

import dataclasses
import functools
import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toy
from optimized import optimized

from jaxanon import datasets, methods
from jaxanon.methods.common import generator
from jaxanon.methods.gan import conditional
from jaxanon.methods.gan.conditional import CGANConfig, OccupancyGANConfig

pytestmark = pytest.mark.slow

DATA = toy.data(per_subject=120)
SMALL = {"widths": (32, 16), "latent_dim": 8, "batch_size": 32}
STEPS = {"learning_rate": 1e-3, "discriminator_learning_rate": 1e-3}


def frequency(windows):
    """Returns the class by the spectrum of a window."""
    power = np.abs(np.fft.rfft(windows, axis=1)[:, 1:4]) ** 2
    return power.sum(-1).argmax(-1)


@functools.cache
def program(name, hide):
    """Returns the method, its data and a function that trains it on the toy data."""
    method = methods.build(name, DATA.spec, **SMALL, classes_to_hide=hide)
    data = method.prepare(datasets.by_client(DATA.train))

    @optimized
    def train(state, data):
        step = lambda state, _: method.update(jax.random.key(1), state, data)
        return jax.lax.scan(step, state, length=900)

    return method, data, train


@functools.cache
def trained(name, hide=(), **hyper):
    """Returns the method, the state and the info of each round."""
    method, data, train = program(name, hide)
    return method, *train(method.init(jax.random.key(0), **STEPS, **hyper), data)


def made_of(name, hide=(), **hyper):
    """Returns the fraction of generated windows of the requested class, by class."""
    method, state, _ = trained(name, hide, **hyper)
    wanted = np.repeat(np.arange(3), 60)
    made = np.asarray(
        method.generate.sample(jax.random.key(2), state, {"activity": wanted})
    )
    assert made.shape == (180, 16, 2) and made.dtype == np.float32
    right = frequency(made) == wanted
    return [right[wanted == label].mean() for label in range(3)], made


def test_it_makes_windows_of_the_class_that_was_asked_for():
    right, made = made_of("cgan")
    assert np.mean(right) > 0.8
    assert abs(made.mean() - 10) < 1  # In physical units.
    spread = made.reshape(3, 60, -1).std(axis=1).mean()
    assert spread > 1  # The windows differ from each other.


def test_classes_to_hide_are_not_made_and_others_are():
    right, _ = made_of("cgan", ("c",))
    assert min(right[:2]) > 0.7 and right[2] < 0.1


def test_a_classifier_cannot_tell_classes_to_hide_if_that_weighs():
    """At ln 3 the classifier finds all three classes equally likely."""
    unsure, sure = (
        np.mean(trained("occupancy_gan", ("c",), privacy=weight)[2]["concealed"][-100:])
        for weight in (5.0, 0.0)
    )
    assert np.log(3) <= unsure < 2.2 and sure > 5
    right, _ = made_of("occupancy_gan", ("c",), privacy=5.0)
    assert min(right[:2]) > 0.7


def test_windows_are_made_anew_of_their_class_or_of_another_if_it_is_to_hide():
    windows, labels = DATA.test
    wanted = labels["activity"]
    method, state, _ = trained("cgan")
    safe = np.asarray(method.anonymize(jax.random.key(4), state, windows))
    assert safe.shape == windows.shape and safe.dtype == np.float32
    assert (frequency(safe) == wanted).mean() > 0.75
    method, state, _ = trained("cgan", ("c",))
    safe = np.asarray(method.anonymize(jax.random.key(4), state, windows))
    secret = wanted == 2
    assert (frequency(safe)[secret] == 2).mean() < 0.1
    assert (frequency(safe) == wanted)[~secret].mean() > 0.75


def nets_of(config):
    nets = conditional.networks(DATA.spec, config)
    return nets, nets.init(jax.random.key(0))


class Says:
    """A network with a fixed output."""

    def __init__(self, answer_fn):
        self.apply = lambda variables, *inputs: answer_fn(*inputs)


def test_the_critic_s_loss_by_hand():
    """Outputs 2 for windows of ones and -1 for others, whatever their class."""
    nets, params = nets_of(CGANConfig(**SMALL, classes_to_hide=("c",)))
    judge = Says(lambda x, classes: jnp.where(x[:, 0, 0] == 1, 2.0, -1.0))
    make = Says(lambda noise, classes: jnp.zeros((len(noise), 16, 2)))
    nets = nets._replace(critic=judge, generator=make)
    labels = {"activity": jnp.array([0, 2])}
    batch = generator.GeneratorBatch(jnp.ones((2, 16, 2)), labels)
    soft = lambda x: np.log1p(np.exp(x))
    for concealing, real in ((True, (soft(-2) + soft(2)) / 2), (False, soft(-2))):
        component = conditional.judging(nets, concealing=concealing)
        loss, _ = component.loss_fn(jax.random.key(0), params, {}, batch, None)
        assert float(loss) == pytest.approx(real + soft(-1), rel=1e-5)
    loss, _ = conditional.generating(nets).loss_fn(
        jax.random.key(0), params, {}, batch, None
    )
    assert float(loss) == pytest.approx(soft(1), rel=1e-5)


def test_what_the_two_classifiers_say_by_hand():
    nets, params = nets_of(OccupancyGANConfig(**SMALL, classes_to_hide=("c",)))
    logits = jnp.log(jnp.array([[0.5, 0.25, 0.25], [0.2, 0.2, 0.6]]))
    says = Says(lambda x, key, dropout: (logits, None))
    nets = nets._replace(classifiers=nets.classifiers | {"activity": says})
    labels, hyper = jnp.array([0, 2]), {"utility": 2.0, "privacy": 3.0}
    module = importlib.import_module("jaxanon.methods.gan.conditional")
    told = lambda variant: float(
        module.classifier_losses(
            nets, params, jnp.zeros((2, 16, 2)), labels, hyper, variant
        )[0]
    )
    shown = 2 * -np.log(0.5)
    assert told("paper") == pytest.approx(shown + 3 * np.log(0.6), rel=1e-5)
    even = -np.mean(np.log([0.2, 0.2, 0.6]))
    assert told("confusion") == pytest.approx(shown + 3 * even, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "settings", "match"),
    [
        (
            "cgan",
            {"classes_to_hide": ("d",)},
            r"classes_to_hide must name classes of 'activity', .* \['d'\]",
        ),
        (
            "cgan",
            {"classes_to_hide": ("a", "b", "c")},
            "classes_to_hide must leave at least one class of",
        ),
        (
            "occupancy_gan",
            {},
            "classes_to_hide must name at least one class .* train cgan",
        ),
    ],
)
def test_settings_that_cannot_be(name, settings, match):
    with pytest.raises(ValueError, match=match):
        methods.build(name, DATA.spec, **settings)


def test_what_cannot_be_sampled():
    method, state, _ = trained("cgan")
    sample = lambda classes, *more: method.generate.sample(
        jax.random.key(0), state, classes, *more
    )
    with pytest.raises(ValueError, match="samples must be 16 for a GAN, .* got 32; "):
        sample({"activity": [0]}, 32)
    with pytest.raises(ValueError, match=r"of 'activity' only, got \['gender'\]"):
        sample({"activity": [0], "gender": [1]})
    with pytest.raises(ValueError, match=r"in \['activity', 'gender'\], got \['age'\]"):
        sample({"activity": [0], "age": [1]})
    with pytest.raises(ValueError, match=r"'activity' must lie in \[0, 3\), got 3; "):
        sample({"activity": [3]})
    with pytest.raises(ValueError, match="no guidance; omit avoid"):
        sample({"activity": [0]}, None, {"gender": [0]})


def test_doors_are_made_as_open_as_their_class_has_them():
    """Tests a categorical channel that is 1 in a tenth, half and nine tenths."""
    rng, shares = np.random.default_rng(0), np.array([0.1, 0.5, 0.9])

    def with_doors(side):
        on = shares[side.labels["activity"]][:, None]
        doors = rng.random(side.windows.shape[:2]) < on
        windows = np.stack([side.windows[..., 0], doors], axis=2)
        return side._replace(windows=windows.astype(np.float32))

    train = with_doors(DATA.train)
    moments = {
        "mean": tuple(train.windows.mean((0, 1)).tolist()),
        "std": tuple(train.windows.std((0, 1)).tolist()),
    }
    spec = dataclasses.replace(DATA.spec, channels=("x", "door"), **moments)
    method = methods.cgan(spec, **SMALL, categories=("door",))
    data = method.prepare(datasets.by_client(train))

    @optimized
    def learned(state):
        step = lambda state, _: method.update(jax.random.key(1), state, data)
        return jax.lax.scan(step, state, length=400)[0]

    state = learned(method.init(jax.random.key(0), **STEPS))
    wanted = np.repeat(np.arange(3), 60)
    made = np.asarray(
        method.generate.sample(jax.random.key(2), state, {"activity": wanted})
    )
    assert set(np.unique(made[..., 1])) == {0, 1}
    found = [made[wanted == label, :, 1].mean() for label in range(3)]
    np.testing.assert_allclose(found, shares, atol=0.15)


@pytest.mark.parametrize(
    ("name", "settings", "match"),
    [
        ("cgan", {}, "at least one training window because the generator"),
        (
            "occupancy_gan",
            {"classes_to_hide": ("c",)},
            r"\['b'\] have fewer; record more",
        ),
        ("timegan", {}, "at least one training window because the generator"),
        (
            "timegan",
            {"classes_to_hide": ("c",)},
            "at least two training windows because other classes",
        ),
    ],
)
def test_a_class_without_windows_is_refused(name, settings, match):
    clients = datasets.by_client(DATA.train)
    mask = clients.mask & (clients.labels["activity"] != 1)
    with pytest.raises(ValueError, match=match):
        methods.build(name, DATA.spec, **settings).prepare(clients._replace(mask=mask))
