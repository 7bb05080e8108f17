"""Tests of fine-tuning: the triplet loss by hand, the filter and the gradients."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toy

import jaxanon as ja
from jaxanon import datasets, kernels, methods
from jaxanon.methods.privatehub import data as privatehub_data
from jaxanon.methods.privatehub import fine_tuning, networks
from jaxanon.methods.privatehub.config import PrivateHubConfig

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("built_plainly")]

DATA = toy.data()
SMALL = {"widths": (4,), "heads": 2, "batch_size": 32, "num_train_timesteps": 20}
SMALL |= {"num_inference_steps": 5, "classes_to_hide": ("b",)}


def nets_of(**settings):
    return networks.networks(DATA.spec, PrivateHubConfig(**(SMALL | settings)))


VALUES = jnp.array([[3.0, 1.0], [0.0, 2.0], [0.1, -1.0]])  # For a, b and c.


class Constant:
    """A denoiser whose windows have one value per class, given the right condition."""

    def __init__(self, nets):
        self.schedule = nets.schedule

    def apply(self, variables, x, t, condition):
        t = jnp.broadcast_to(t, len(x))[:, None, None]
        told = (condition.classes["gender"] == 2) & condition.known
        own = variables["params"]["scale"] * VALUES[condition.classes["activity"]]
        x0 = jnp.where(told[:, None], own, 50.0)[:, None]
        return (self.schedule.signal[t] * x - x0) / self.schedule.noise[t]  # As v.


class First:
    """Features are the first samples; the first of them is the logit of class a."""

    def apply(self, variables, x, key, dropout):
        nothing = jnp.zeros(len(x))
        return jnp.stack([x[:, 0, 0], nothing, nothing], axis=1), x[:, 0]


def told(nets, labels):
    windows = jax.random.normal(jax.random.key(9), (len(labels), 16, 2))
    null = nets.nothing(len(labels))
    classes = {"activity": labels, "gender": 0 * labels}
    condition = null._replace(classes=classes, known=jnp.ones(len(labels), bool))
    return privatehub_data.PrivateHubBatch(windows, classes, condition)


@pytest.mark.parametrize("gradient", ["one_step", "last_steps"])
def test_windows_are_made_of_their_public_class_and_statistics_alone(gradient):
    nets = nets_of(gradient=gradient)
    nets = nets._replace(unet=Constant(nets))
    labels = jnp.array([0, 1, 2, 2])
    batch = told(nets, labels)
    run = jax.jit(lambda key, p: fine_tuning.make(nets, key, p, batch))
    made = run(jax.random.key(0), {"scale": jnp.float32(1)})
    want = np.broadcast_to(VALUES[labels][:, None], made.shape)
    np.testing.assert_allclose(made, want, atol=1e-3)


@pytest.mark.parametrize("k", [1, 3, 5])
def test_gradients_pass_through_the_last_steps_alone(k):
    """Compares with a loop whose earlier steps have separate parameters."""
    nets = nets_of(gradient="last_steps", gradient_steps=k)

    class Scaled:
        def apply(self, variables, x, t, condition):
            return jnp.tanh(variables["params"] * x) + 0.01 * t

    nets = nets._replace(unet=Scaled())
    null = nets.nothing(2)

    def sampled(w):
        return jnp.sum(
            fine_tuning.sampled(nets, jax.random.key(3), w, (2, 16, 2), null) ** 2
        )

    def loop(first, last):
        noise_key, sample_key = jax.random.split(jax.random.key(3))
        x = jax.random.normal(noise_key, (2, 16, 2))
        steps = kernels.diffusion_steps(20, 5)
        for number, (t, to) in enumerate(itertools.pairwise(steps)):
            w = last if number >= 5 - k else first
            output = Scaled().apply({"params": w}, x, t, None)
            given = sample_key, nets.schedule, x, output, t, to
            x = kernels.ddim_step(*given, prediction="v")
        return jnp.sum(x**2)

    w = jnp.float32(0.7)
    value, slope = jax.jit(jax.value_and_grad(sampled))(w)
    want, of_last = jax.jit(jax.value_and_grad(loop, argnums=1))(w, w)
    assert float(value) == pytest.approx(float(want), rel=1e-5)
    assert float(slope) == pytest.approx(float(of_last), rel=1e-4)
    if k < 5:
        of_first = jax.jit(jax.grad(loop))(w, w)
        assert abs(float(of_first)) > 1e-3


def test_a_triplet_by_hand():
    anchors, positives = (
        jnp.array([[3.0, 4.0], [1.0, 0.0]]),
        jnp.array([[1.0, 0], [2, 0]]),
    )
    negatives = jnp.array([[0.0, 2.0], [0.0, 5.0]])
    got = fine_tuning.triplet(anchors, positives, negatives, 0.3)
    # For (.6, .8): .8 from (1, 0), .4 from (0, 1). The other has no loss.
    np.testing.assert_allclose(got, [0.8 - 0.4 + 0.3, 0], rtol=1e-5)
    got = fine_tuning.triplet(anchors, positives, negatives, 0.3, "paper")
    np.testing.assert_allclose(got, [20 - 13 + 0.3, 1 - 26 + 0.3], rtol=1e-5)


def _loss(threshold, replay=0.0, scale=1.0, **settings):
    nets = nets_of(**settings)
    nets = nets._replace(unet=Constant(nets), classifiers={"activity": First()})
    labels = jnp.array([0, 1, 2, 2])
    positives = jnp.zeros((4, 16, 2)).at[:, 0].set(jnp.array([1.0, 1.0])[None])
    negatives = told(nets, jnp.ones(4, jnp.int32))
    batch = told(nets, labels)._replace(positives=positives, negatives=negatives)
    hyper = {"confidence_threshold": threshold, "margin": 2.0, "condition_dropout": 0.0}
    hyper = jax.tree.map(jnp.float32, hyper | {"replay": replay})
    component = fine_tuning.discriminating(nets, None)

    def loss(scale):
        params = {"denoiser": {"scale": scale}, "classifiers": {"activity": {}}}
        return component.loss_fn(jax.random.key(0), params, hyper, batch, None)

    (total, (info, _)), slope = jax.jit(jax.value_and_grad(loss, has_aux=True))(
        jnp.float32(scale)
    )
    return float(total), {name: float(one) for name, one in info.items()}, float(slope)


def by_hand(anchor, variant, margin=2.0):
    length = (lambda x: x / np.linalg.norm(x)) if variant == "hinge" else (lambda x: x)
    anchor, positive, negative = map(length, (anchor, np.ones(2), np.array([0.0, 2.0])))
    found = np.sum((anchor - positive) ** 2) - np.sum((anchor - negative) ** 2) + margin
    return max(found, 0) if variant == "hinge" else found


@pytest.mark.parametrize("variant", ["hinge", "paper"])
def test_what_is_filtered_does_not_count_and_classes_to_hide_never_do(variant):
    a, c = np.float64(VALUES[0]), np.float64(VALUES[2])
    # For a, the probability is e^3 / (e^3 + 2) = 0.91; for c, 1 / (2 + e^0.1) = 0.32.
    total, info, _ = _loss(0.5, triplet=variant)
    assert total == pytest.approx(by_hand(a, variant), rel=1e-4, abs=1e-6)
    assert (info["kept"], info["all filtered"]) == (pytest.approx(1 / 3), 0)
    total, info, _ = _loss(0.3, triplet=variant)
    want = (by_hand(a, variant) + 2 * by_hand(c, variant)) / 3
    assert total == pytest.approx(want, rel=1e-4)
    assert (info["kept"], info["all filtered"]) == (1, 0)
    total, info, slope = _loss(0.95, triplet=variant)
    assert (total, slope) == (0, 0)
    assert (info["kept"], info["all filtered"]) == (0, 1)


def test_no_gradient_goes_through_what_is_made_to_hide():
    """Without a hinge: the gradient of |s a - p|² - |s a - n|² by s, with n fixed."""
    a, p, n = np.array([3.0, 1.0]), np.ones(2), np.array([0.0, 2.0])
    want = 2 * a @ (a - p) - 2 * a @ (a - n)
    assert _loss(0.5, triplet="paper")[2] == pytest.approx(want, rel=1e-3)


@functools.cache
def _method():
    # Number of epochs of 4 rounds before fine-tuning, which uses the rest.
    return methods.privatehub(DATA.spec, **SMALL, pretraining=2)


def test_batches_are_compared_with_their_own_classes_and_those_to_hide():
    nets = nets_of()
    data = privatehub_data.prepare(nets, datasets.by_client(DATA.train))
    batch = privatehub_data.compared(nets, jax.random.key(0), data)
    of_window = {
        np.asarray(window).tobytes(): int(label)
        for window, label in zip(
            data.pool.windows, data.pool.labels["activity"], strict=True
        )
    }
    tell = lambda windows: [
        of_window[np.asarray(window).tobytes()] for window in windows
    ]
    own = batch.labels["activity"].tolist()
    assert tell(batch.windows) == tell(batch.positives) == own
    assert len(set(own)) == 3
    assert (np.asarray(batch.windows) != np.asarray(batch.positives)).any(
        (1, 2)
    ).sum() > 25
    assert tell(batch.negatives.windows) == batch.negatives.labels["activity"].tolist()
    assert set(batch.negatives.labels["activity"].tolist()) == {1}


def test_fine_tuning_follows_and_the_classifiers_rest():
    method = _method()
    settings = {"progress": False, "hyper": {"confidence_threshold": 0.0}}
    with pytest.warns(UserWarning, match="got 2: training ends before its last phase"):
        early = ja.train(method, DATA, epochs=2, **settings)
    late = ja.train(method, DATA, epochs=4, **settings)
    rows = [row["losses"] for row in late.history]
    assert [row["kept"] for row in rows] == [0, 0, 1, 1]
    assert [row["triplet"] > 0 for row in rows] == [False, False, True, True]
    assert [row["denoising"] > 0 for row in rows] == [True, True, False, False]
    differs = lambda group: any(
        np.any(one != other)
        for one, other in zip(
            *(jax.tree.leaves(run.state.params[group]) for run in (early, late)),
            strict=True,
        )
    )
    assert differs("denoiser") and differs("average") and not differs("classifiers")


def test_a_threshold_that_filters_everything_says_so_and_stops():
    # After 8 rounds no classifier is that confident about an untrained denoiser.
    match = "confidence_threshold must be below .* another folder with a lower"
    with pytest.raises(ValueError, match=match):
        hyper = {"confidence_threshold": 0.9999}
        ja.train(_method(), DATA, epochs=4, progress=False, hyper=hyper)


def _row(number, share, kept=0.0):
    return {"round": number, "losses": {fine_tuning.FILTERED: share, "kept": kept}}


def test_a_round_that_keeps_nothing_by_chance_stops_nothing():
    # Epochs of 51 rounds are calls of 50 and of one.
    history = [_row(50, 0.2, 0.3), _row(51, 1.0)]
    for ended in (False, True):
        fine_tuning.check_kept(history, ended=ended)
    history += [_row(101, 0.1, 0.2), _row(102, 1.0)]
    fine_tuning.check_kept(history, ended=True)


def test_rounds_in_a_row_that_keep_nothing_stop():
    pretraining = [_row(10 * k, 0.0) for k in range(1, 21)]
    tuned = [_row(200 + 10 * k, 1.0) for k in range(1, 6)]
    fine_tuning.check_kept([*pretraining, *tuned[:4]], ended=False)
    with pytest.raises(ValueError, match="in 50 rounds or more"):
        fine_tuning.check_kept([*pretraining, *tuned], ended=False)
    # All of a fine-tuning of 40 rounds, at its end.
    with pytest.raises(ValueError, match="in 40 rounds or more"):
        fine_tuning.check_kept([*pretraining, *tuned[:4]], ended=True)
    kept = [_row(201, 0.0, 0.5), *tuned[:4]]
    fine_tuning.check_kept([*pretraining, *kept], ended=True)
    # A run that continues another one, whose rounds do not count.
    fine_tuning.check_kept([_row(2003, 1.0)], ended=False)
