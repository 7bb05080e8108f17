"""Tests of TimeGAN: losses by hand, training order and samples."""

import functools
import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toy

from jaxanon import datasets, methods
from jaxanon.methods.gan import timegan, timegan_networks
from jaxanon.methods.gan.timegan_networks import TimeGANConfig
from jaxanon.methods.privatehub.fine_tuning import FILTERED
from jaxanon.models import layers

pytestmark = pytest.mark.slow

DATA = toy.data()
MODULE = importlib.import_module("jaxanon.methods.gan.timegan")
SMALL = {
    **{
        "features": (8, 6),
        "batch_size": 32,
        "embedding": 2,
        "supervising": 1,
        "joint": 12,
    },
    **{"learning_rate": 3e-3, "classes_to_hide": ("c",), "confidence_threshold": 0.0},
}
LEARNING = {
    "embedding": {"embedder", "recovery", "classifiers"},
    "supervising": {"supervisor", "classifiers"},
    "joint": {"embedder", "recovery", "supervisor", "generator", "critic"}
    | {"classifiers"},
    "fine": {"generator", "supervisor", "critic"},
}


@functools.cache
def method_of():
    """Returns the method, the data and a jitted round."""
    method = methods.timegan(DATA.spec, **SMALL)
    data = method.prepare(datasets.by_client(DATA.train))
    step = jax.jit(lambda state, data: method.update(jax.random.key(1), state, data))
    return method, data, step


def after(epochs):
    """Returns the state at the start of an epoch."""
    method, data, _ = method_of()
    rounds = epochs * method.schedule.rounds_per_epoch(data)
    return method.init(jax.random.key(0))._replace(round=jnp.int32(rounds))


def drawn(nets, data):
    """Returns a batch for the losses."""
    draw = jax.jit(timegan_networks.batch_source(nets).draw_fn)
    return draw(jax.random.key(7), data, 0)


@pytest.mark.parametrize(
    ("epoch", "phase"),
    [(0, "embedding"), (2, "supervising"), (3, "joint"), (15, "fine")],
)
def test_who_learns_when(epoch, phase):
    _, data, step = method_of()
    state = after(epoch)
    new, info = step(state, data)
    same = lambda one, other: jax.tree.all(
        jax.tree.map(lambda x, y: bool((x == y).all()), one, other)
    )
    moved = {
        name for name in state.params if not same(state.params[name], new.params[name])
    } - {"range"}
    assert moved == LEARNING[phase]
    assert (float(info["triplet"]) > 0) == (phase == "fine")
    if phase == "joint":  # Generator and embedder step twice as often.
        counts = {name: int(new.opt_state[name].count) for name in moved}
        assert counts.pop("critic") == counts.pop("classifiers") == 1
        assert counts == dict.fromkeys(moved - {"critic", "classifiers"}, 2)
    assert float(info[FILTERED]) == 0


def test_the_generator_s_loss_by_its_published_weights():
    """Compares with NumPy on the networks' outputs, with the authors' weights."""
    _, data, _ = method_of()
    config = TimeGANConfig(**SMALL)
    nets = timegan_networks.networks(DATA.spec, config)
    params = after(0).params
    part = drawn(nets, data).parts[0]
    labels, hyper = part.labels["activity"], {"gamma": 2.0}

    @jax.jit
    def said(key, same, params):
        own, _ = MODULE.generator_loss(nets, same, params, hyper, part)
        first, foreseen = nets.imagine(key, params, labels)
        latent = nets.run(params, "embedder", part.windows)
        judged = [nets.discriminate(params, x, labels) for x in (foreseen, first)]
        told = nets.run(params, "supervisor", latent)
        return own, nets.run(params, "recovery", foreseen), latent, told, judged

    both = jax.random.key(8), jax.random.key(8)
    loss, made, latent, told, judged = said(*both, params)
    made, told = np.asarray(made, np.float64), np.asarray(told, np.float64)
    x = np.asarray(part.windows, np.float64)
    assert x.min() >= 0 and x.max() <= 1
    step = np.mean((np.asarray(latent)[:, 1:] - told[:, :-1]) ** 2)
    real = lambda logits: np.mean(np.log1p(np.exp(-np.asarray(logits, np.float64))))
    deviation = lambda x: np.sqrt(x.var(0) + 1e-6)
    moments = np.abs(x.mean(0) - made.mean(0)).mean()
    moments += np.abs(deviation(x) - deviation(made)).mean()
    wanted = real(judged[0]) + 2 * real(judged[1])
    wanted += 100 * np.sqrt(step) + 100 * moments
    assert float(loss) == pytest.approx(wanted, rel=1e-4)


def test_the_embedder_s_second_loss_by_its_published_weights():
    _, data, _ = method_of()
    nets = timegan_networks.networks(DATA.spec, TimeGANConfig(**SMALL))
    batch = drawn(nets, data)
    params = after(0).params
    component = MODULE.embedding_again(nets, 1, None)
    x = batch.parts[1].windows

    @jax.jit
    def said(params):
        loss, _ = component.loss_fn(jax.random.key(0), params, {}, batch, None)
        latent = nets.run(params, "embedder", x)
        lost = x - nets.run(params, "recovery", latent)
        return loss, latent, lost, nets.run(params, "supervisor", latent)

    loss, latent, lost, told = map(np.asarray, said(params))
    lost = np.mean(lost**2)
    step = np.mean((np.asarray(latent)[:, 1:] - told[:, :-1]) ** 2)
    assert float(loss) == pytest.approx(10 * np.sqrt(lost) + 0.1 * step, rel=1e-4)


class Spectrum:
    """Features are a window's first two samples; all classes are equally likely."""

    def apply(self, variables, x, key, dropout):
        del variables, key, dropout
        return jnp.zeros((len(x), 3)), x[:, :2, 0]


def test_fine_tuning_s_loss_is_the_triplet_s_and_its_own():
    _, data, _ = method_of()
    nets = timegan_networks.networks(DATA.spec, TimeGANConfig(**SMALL))
    nets = nets._replace(classifiers={name: Spectrum() for name in nets.classifiers})
    batch, params = drawn(nets, data), after(0).params
    component = MODULE.discriminating(nets, None)
    labels = np.asarray(batch.labels["activity"])
    assert component.groups == ("generator", "supervisor")

    @jax.jit
    def said(key, same, params, hyper):
        loss, _ = component.loss_fn(same, params, hyper, batch, None)
        keys = jax.random.split(key, 3)
        made = nets.make(keys[0], params, labels)
        secret = nets.make(keys[1], params, batch.negatives)
        rest, _ = MODULE.generator_loss(nets, keys[2], params, hyper, batch.parts[0])
        return loss, made, secret, rest

    hyper = {"gamma": 1.0, "confidence_threshold": 0.2, "margin": 0.5}
    both = lambda: (jax.random.key(4), jax.random.key(4))
    loss, made, secret, rest = said(*both(), params, hyper | {"replay": 0.25})
    assert (np.asarray(batch.negatives) == 2).all()  # Class c is hidden.
    np.testing.assert_array_equal(batch.positives.labels["activity"], labels)
    unit = lambda x: x[:, :2, 0] / np.linalg.norm(x[:, :2, 0], axis=1, keepdims=True)
    sides = made, batch.positives.windows, secret
    anchor, near, far = (unit(np.asarray(x, np.float64)) for x in sides)
    apart = ((anchor - near) ** 2).sum(1) - ((anchor - far) ** 2).sum(1) + 0.5
    shown = labels != 2  # A third is above the threshold.
    wanted = np.maximum(apart, 0)[shown].mean() + 0.25 * float(rest)
    assert float(loss) == pytest.approx(wanted, rel=1e-4)
    filtered, *_ = said(
        *both(), params, hyper | {"replay": 0.25, "confidence_threshold": 0.4}
    )
    assert float(filtered) == pytest.approx(0.25 * float(rest), rel=1e-4)


def test_a_critic_that_is_good_enough_rests(monkeypatch):
    _, data, _ = method_of()
    nets = timegan_networks.networks(DATA.spec, TimeGANConfig(**SMALL))
    batch, apply = drawn(nets, data), layers.apply

    def critic_says(answers):
        """Runs one after the other; the other networks have fixed outputs."""

        def said(net, params, x):
            if net is nets.recurrent["critic"]:
                return jnp.full((*x.shape[:2], 1), next(answers))
            return apply(net, params, x)

        monkeypatch.setattr(timegan_networks, "apply", said)

    for sure, learns in ((9.0, False), (1.0, True)):
        # Real for embedded windows, synthetic for generated ones.
        critic_says(iter([sure, -sure, -sure]))
        component = MODULE.judging(nets, None)
        loss, (info, _) = component.loss_fn(
            jax.random.key(0), after(0).params, {"gamma": 1.0}, batch, None
        )
        assert float(info["critic"]) == pytest.approx(3 * np.log1p(np.exp(-sure)), 1e-4)
        assert (float(loss) > 0) == learns
    # Adam's momentum does not move it either.
    zeros = {"w": jnp.zeros(2)}
    _, moved = component.optimizer.update(
        {"w": jnp.ones(2)}, component.optimizer.init(zeros)
    )
    steps, still = component.optimizer.update(zeros, moved)
    assert not steps["w"].any()
    jax.tree.map(np.testing.assert_array_equal, still, moved)


def test_it_makes_windows_in_the_data_s_range():
    method, data, step = method_of()
    state = method.init(jax.random.key(0))
    infos = []
    for _ in range(60):
        state, info = step(state, data)
        infos.append({name: float(value) for name, value in info.items()})
    assert infos[3]["embedding"] < infos[0]["embedding"]
    assert infos[-1]["embedder"] < infos[20]["embedder"]
    assert infos[-1]["moments"] < 0.7 * infos[14]["moments"]
    classes = {"activity": np.arange(30) % 3}
    made = np.asarray(
        jax.jit(method.generate.sample)(jax.random.key(2), state, classes)
    )
    assert made.shape == (30, 16, 2)
    low, high = (getattr(DATA.train.windows, f)(axis=(0, 1)) for f in ("min", "max"))
    assert (made >= low - 1e-3).all() and (made <= high + 1e-3).all()
    safe = np.asarray(method.anonymize(jax.random.key(3), state, DATA.test.windows))
    assert safe.shape == DATA.test.windows.shape and np.isfinite(safe).all()


def test_losses_at_nothing_have_slopes():
    x = jnp.ones((2, 3, 1))
    slope = jax.grad(lambda y: timegan.recovery(x, y))(x)
    assert not np.isnan(np.asarray(slope)).any()
    slope = jax.grad(lambda y: timegan.moment_distance(x, y))(x)
    assert not np.isnan(np.asarray(slope)).any()


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        (
            {"classes_to_hide": ("d",)},
            "classes_to_hide must name classes of 'activity'",
        ),
        ({"categories": ("z",)}, "categories must name channels"),
    ],
)
def test_settings_that_cannot_be(settings, match):
    with pytest.raises(ValueError, match=match):
        methods.timegan(DATA.spec, **(SMALL | settings))
