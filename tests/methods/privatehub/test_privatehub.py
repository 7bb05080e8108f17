"""Tests of PrivateHub's pre-training: loss, running mean and samples."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toy

from jaxanon import datasets, methods
from jaxanon.core.method import check_measured
from jaxanon.federated.engine.algorithm import State
from jaxanon.methods.common import diffusion, generator
from jaxanon.methods.privatehub import data as privatehub_data
from jaxanon.methods.privatehub import networks
from jaxanon.methods.privatehub.config import PrivateHubConfig

pytestmark = pytest.mark.slow

DATA = toy.data(per_subject=120)
SMALL = {"widths": (8, 16), "heads": 2, "batch_size": 64, "num_train_timesteps": 50}
SMALL |= {"classifier_filters": (32, 32), "classifier_features": 32}
LEAST = {"widths": (4,), "classifier_filters": (4,), "classifier_features": 4}


def nets_of(spec=DATA.spec, **settings):
    return networks.networks(spec, PrivateHubConfig(**(SMALL | settings)))


class OfSilence:
    """The best denoiser of windows that are all 0, for any schedule."""

    def __init__(self, nets):
        self.nets = nets

    def apply(self, variables, x, t, condition):
        del variables, condition
        shape = (-1, 1, 1)
        signal, level = (
            getattr(self.nets.schedule, name)[t].reshape(shape)
            for name in ("signal", "noise")
        )
        noise = x / level
        kinds = {"noise": noise, "x0": 0 * x, "v": signal * noise}
        return kinds[self.nets.config.prediction_type]


class Zero:
    """Always outputs 0."""

    def apply(self, variables, x, t, condition):
        del variables, t, condition
        return jnp.zeros_like(x)


@pytest.mark.parametrize(
    ("prediction", "schedule"),
    [("v", "cosine"), ("x0", "rescaled"), ("noise", "paper")],
)
def test_the_loss_is_0_for_the_best_denoiser_alone(prediction, schedule):
    nets = nets_of(prediction_type=prediction, schedule=schedule)
    batch = privatehub_data.PrivateHubBatch(
        jnp.zeros((4000, 16, 2)), {}, nets.nothing(4000)
    )
    loss = lambda unet: float(
        diffusion.denoising_loss(
            nets._replace(unet=unet), jax.random.key(0), {}, jnp.float32(0.1), batch
        )
    )
    assert loss(OfSilence(nets)) < 1e-9
    # An output of 0 has the mean square of the target as error, over all steps.
    levels = np.asarray(nets.schedule.alpha_bar[1:])
    wanted = {"v": levels.mean(), "x0": 0, "noise": 1}[prediction]
    assert loss(Zero()) == pytest.approx(wanted, abs=0.02)


def test_schedules_end_as_they_say():
    last = {name: nets_of(schedule=name).schedule for name in ("cosine", "rescaled")}
    assert all(float(schedule.signal[-1]) == 0 for schedule in last.values())
    paper = nets_of(schedule="paper", num_train_timesteps=100).schedule
    assert float(paper.alpha_bar[-1]) == pytest.approx(0.0782, abs=1e-4)
    fewer = nets_of(schedule="paper").schedule  # The same noise in half the steps.
    assert float(fewer.alpha_bar[-1]) == pytest.approx(0.0782, abs=0.005)


def test_the_running_mean_by_hand():
    state = State(jnp.int32(0), {"denoiser": 4.0, "average": 0.0}, {}, {})
    for round_, ema, decay in ((0, 0.999, 1 / 10), (2, 0.999, 3 / 12), (500, 0.9, 0.9)):
        now = state._replace(
            round=jnp.int32(round_), hyper={"ema_decay": jnp.float32(ema)}
        )
        assert float(diffusion.running_mean(now)) == pytest.approx(
            (1 - decay) * 4, rel=1e-5
        )


def test_statistics_of_classes_are_numpy_s_and_are_drawn_with_their_moments():
    random = np.random.default_rng(0)
    moments = random.normal(size=(300, 4)) @ random.normal(size=(4, 4)) + [5, 5, 30, 30]
    labels = np.repeat([0, 2], [100, 200])
    found = privatehub_data.class_statistics(moments, labels, 3)
    own = moments[labels == 2]
    np.testing.assert_allclose(found["mean"][2], own.mean(0), rtol=1e-5)
    covariance = found["root"][2] @ found["root"][2].T
    np.testing.assert_allclose(covariance, np.cov(own.T, ddof=0), rtol=1e-4)
    np.testing.assert_allclose(found["spread"][2], own[:, :2].std(0), rtol=1e-5)
    assert not found["mean"][1].any() and not found["root"][1].any()
    found = jax.tree.map(jnp.asarray, found)
    drawn = privatehub_data.drawn_statistics(
        jax.random.key(0), found, jnp.full(20_000, 2, jnp.int32)
    )
    drawn = np.asarray(drawn, np.float64)
    np.testing.assert_allclose(drawn[:, :4].mean(0), own.mean(0), rtol=0.02)
    np.testing.assert_allclose(
        np.cov(drawn[:, :4].T), covariance, atol=0.03 * covariance.max()
    )
    # z-scores of such means are standard.
    np.testing.assert_allclose(drawn[:, 4:].mean(0), 0, atol=0.03)
    np.testing.assert_allclose(drawn[:, 4:].std(0), 1, atol=0.02)


@functools.cache
def trained():
    """Returns the method, the state and the infos after 60 epochs on the toy data."""
    method = methods.privatehub(DATA.spec, **SMALL, num_inference_steps=10)
    prepared = method.prepare(datasets.by_client(DATA.train))
    rounds = 60 * method.schedule.rounds_per_epoch(prepared)

    @jax.jit
    def train(state, data):
        step = lambda state, _: method.update(jax.random.key(1), state, data)
        return jax.lax.scan(step, state, length=rounds)

    start = method.init(jax.random.key(0), learning_rate=3e-3, ema_decay=0.98)
    return method, *train(start, prepared)


def frequency(windows):
    """Returns the class by the spectrum of the sum of a window's channels."""
    power = np.abs(np.fft.rfft(windows, axis=1)[:, 1:4]) ** 2
    return power.sum(-1).argmax(-1)


def test_it_learns_and_makes_windows_of_the_class_that_was_asked_for():
    method, state, info = trained()
    losses = np.asarray(info["denoising"])
    assert losses[-40:].mean() < 0.6 * losses[:10].mean()
    assert np.asarray(info["activity classifier"])[-20:].mean() < 0.2
    wanted = np.repeat(np.arange(3), 60)
    sample = jax.jit(method.generate.sample)
    made = [
        np.asarray(sample(jax.random.key(2), state, {"activity": wanted, "gender": g}))
        for g in (0 * wanted, 0 * wanted + 1)
    ]
    for windows in made:
        assert windows.shape == (180, 16, 2) and windows.dtype == np.float32
        assert (frequency(windows) == wanted).mean() > 0.9
        assert abs(windows.mean() - 10) < 1  # In physical units.
    # Women's waves have half the amplitude of men's.
    assert np.std(made[1]) > 1.4 * np.std(made[0])


def test_streams_are_of_their_class_all_along():
    method, state, _ = trained()
    wanted = np.repeat(np.arange(3), 20)
    classes, key = {"activity": wanted}, jax.random.key(5)
    sample = jax.jit(method.generate.sample, static_argnums=3)
    made = np.asarray(sample(key, state, classes, 44))
    assert made.shape == (60, 44, 2)
    for first in (0, 11, 28):  # Whether or not a window starts there.
        assert (frequency(made[:, first : first + 16]) == wanted).mean() > 0.85


def test_rewriting_keeps_the_public_class():
    method, state, _ = trained()
    windows, labels = DATA.test
    safe = np.asarray(jax.jit(method.anonymize)(jax.random.key(4), state, windows))
    assert safe.shape == windows.shape and safe.dtype == np.float32
    assert (frequency(safe) == labels["activity"]).mean() > 0.85
    assert np.abs(safe - windows).mean() > 0.2


def test_what_cannot_be_sampled():
    method, state, _ = trained()
    with pytest.raises(ValueError, match=r"must have 'activity' .* got \['gender'\]"):
        method.generate.sample(jax.random.key(0), state, {"gender": [0]})
    with pytest.raises(ValueError, match=r"in \['activity', 'gender'\], got \['age'\]"):
        method.generate.sample(jax.random.key(0), state, {"activity": [0], "age": [1]})
    with pytest.raises(
        ValueError, match=r"'activity' must lie in \[0, 3\), got 3; the"
    ):
        method.generate.sample(jax.random.key(0), state, {"activity": [0, 3]})
    with pytest.raises(TypeError, match="key must be a typed PRNG key"):
        method.generate.sample(0, state, {"activity": [0]})


class Sure:
    """A classifier that is equally sure of the first class for every window."""

    def __init__(self, classes):
        self.classes = classes

    def apply(self, variables, x, key, dropout):
        del variables, key, dropout
        first = jnp.zeros(self.classes).at[0].set(2.0)
        return jnp.broadcast_to(first[None], (len(x), self.classes)), x[:, 0]


def test_classifiers_learn_every_class_alike_however_rare():
    nets = nets_of()
    nets = nets._replace(classifiers={n: Sure(k) for n, k in nets.sizes.items()})
    params = {"classifiers": {name: {} for name in nets.sizes}}
    labels = {
        "activity": jnp.array([0] * 60 + [1] * 3 + [2]),
        "gender": jnp.array([0] * 32 + [1] * 32),
    }
    batch = privatehub_data.PrivateHubBatch(jnp.zeros((64, 16, 2)), labels, None)
    loss, (info, _) = generator.classifying(nets).loss_fn(
        jax.random.key(0), params, {}, batch, None
    )
    costs = lambda classes: np.log(np.exp(2) + classes - 1) - 2 * np.eye(classes)[0]
    for name, classes in nets.sizes.items():  # The mean over classes, not windows.
        wanted = costs(classes).mean()
        assert float(info[f"{name} classifier"]) == pytest.approx(wanted, rel=1e-5)
    by_windows = (costs(3) * [60, 3, 1]).sum() / 64
    assert abs(float(info["activity classifier"]) - by_windows) > 1
    assert float(loss) == pytest.approx(sum(map(float, info.values())), rel=1e-6)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"widths": (4,) * 6, "heads": 1}, "multiple of 32 samples .* got 16"),
        (
            {"classes_to_hide": ("d",)},
            r"classes_to_hide must name classes of 'activity', .* got \['d'\]; ",
        ),
        (
            {"classes_to_hide": ("b", "b")},
            r"classes_to_hide must not repeat a class, got \['b', 'b'\]",
        ),
        (
            {"classes_to_hide": ("a", "b", "c")},
            "classes_to_hide must leave at least one class of 'activity'",
        ),
        (
            {"prediction_type": "noise"},
            "zero-terminal-SNR schedule 'cosine', got 'noise'",
        ),
        (
            {"num_inference_steps": 51, "num_train_timesteps": 50},
            "<= num_train_timesteps, 50, got 51",
        ),
        (
            {"gradient": "last_steps", "gradient_steps": 21},
            "gradient_steps must be <= num_inference_steps, 20, got 21",
        ),
        ({"categories": ("z",)}, r"must name channels among \('x', 'y'\), got 'z'"),
    ],
)
def test_settings_that_cannot_be(settings, match):
    with pytest.raises(ValueError, match=match):
        methods.privatehub(DATA.spec, **settings)


def test_numbers_that_stand_for_events_come_back_as_such():
    spec = dataclasses.replace(
        DATA.spec, channels=("event",), units=("",), mean=(0.0,), std=(1.0,), tokens=6
    )
    method = methods.privatehub(spec, **SMALL | LEAST, num_inference_steps=2)
    check_measured(method)
    with pytest.raises(ValueError, match="data must be measurements for"):
        check_measured(methods.cvae(spec))
    state = method.init(jax.random.key(0))
    windows = np.random.default_rng(0).integers(0, 6, (8, 16, 1)).astype(np.float32)
    safe = np.asarray(jax.jit(method.anonymize)(jax.random.key(1), state, windows))
    assert set(np.unique(safe)) <= set(range(6)) and len(np.unique(safe)) > 2


def test_windows_that_cannot_be():
    clients = datasets.by_client(DATA.train)
    method = methods.privatehub(DATA.spec, **SMALL, categories=("x",))
    with pytest.raises(ValueError, match="channel 'x' must hold whole numbers from 0"):
        method.prepare(clients)
    few = 0 * clients.labels["activity"]
    few[0, 0] = 1
    few = {**clients.labels, "activity": few}
    method = methods.privatehub(DATA.spec, **SMALL, classes_to_hide=("a",))
    with pytest.raises(ValueError, match=r"but \['b', 'c'\] have fewer"):
        method.prepare(clients._replace(labels=few))
