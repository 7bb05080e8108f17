"""Tests of PrivateHub's sampling: Gaussians, guidance and hidden classes."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toy

from jaxanon.methods.common import diffusion, generator
from jaxanon.methods.privatehub import networks, sampling
from jaxanon.methods.privatehub.config import PrivateHubConfig

pytestmark = pytest.mark.slow

TIME = 3
DATA = toy.data(time=TIME)
# Six values per window. Means for no class, three activities and two genders.
RANDOM = np.random.default_rng(0)
CENTRE = RANDOM.normal(size=(3, 2))
ACTIVITY = np.concatenate([RANDOM.normal(size=(3, 3, 2)), np.zeros((1, 3, 2))])
GENDER = np.concatenate([RANDOM.normal(size=(2, 3, 2)), np.zeros((1, 3, 2))])
ROOT = np.eye(6) * 0.5 + 0.2 * RANDOM.normal(size=(6, 6))
COVARIANCE = ROOT @ ROOT.T


class Gaussian:
    """The best denoiser of Gaussians whose means depend on classes."""

    def __init__(self, schedule, covariance=COVARIANCE):
        self.schedule = schedule
        self.values, self.vectors = map(jnp.float32, np.linalg.eigh(covariance))

    def mean(self, condition):
        classes = condition.classes
        own = jnp.float32(ACTIVITY)[classes["activity"]]
        own = own + jnp.float32(GENDER)[classes["gender"]]
        return (jnp.float32(CENTRE)[None] + own).reshape(len(own), 6)

    def apply(self, variables, x, t, condition):
        del variables
        signal, level = self.schedule.signal[t], self.schedule.noise[t]
        off = x.reshape(len(x), 6) - signal * self.mean(condition)
        share = self.values / (signal**2 * self.values + level**2)
        drawn = lambda share: (off @ self.vectors * share[None]) @ self.vectors.T
        x0 = self.mean(condition) + signal * drawn(share)
        noise = level * drawn(1 / (signal**2 * self.values + level**2))
        return (signal * noise - level * x0).reshape(x.shape)


class Told:
    """A classifier that uses only a window's first sample."""

    def __init__(self, channel, classes):
        self.channel, self.classes = channel, classes

    def apply(self, variables, x, key, dropout):
        del variables, key, dropout
        classes = jnp.int32(jnp.round(x[:, 0, self.channel]))
        return jax.nn.one_hot(classes, self.classes), None


def nets_of(covariance=COVARIANCE, **settings):
    settings = {"widths": (4,), "heads": 1} | settings
    nets = networks.networks(DATA.spec, PrivateHubConfig(**settings))
    classifiers = {"activity": Told(0, 3), "gender": Told(1, 2)}
    return nets._replace(
        unet=Gaussian(nets.schedule, covariance), classifiers=classifiers
    )


PARAMS = {"average": {}, "classifiers": {"activity": {}, "gender": {}}}


def hyper(guidance=1.0, negative=0.0, hide_threshold=0.5):
    return {
        "hide_threshold": jnp.float32(hide_threshold),
        "guidance_scale": jnp.float32(guidance),
        "negative_guidance_scale": jnp.float32(negative),
    }


def told(nets, activity=3, gender=2, batch=7):
    null = nets.nothing(batch)
    full = lambda value: jnp.full(batch, value, jnp.int32)
    return null._replace(classes={"activity": full(activity), "gender": full(gender)})


@functools.cache
def moments(guidance, negative, steps=1000):
    """Returns exact mean and covariance of samples, which are affine in the noise."""
    nets = nets_of(num_train_timesteps=1000, num_inference_steps=steps)

    @jax.jit
    def run(x, hyper):
        conditions = told(nets, activity=1), told(nets, gender=0)
        denoise_fn = diffusion.guided(nets, PARAMS, *conditions, hyper)
        return diffusion.denoised(nets, jax.random.key(0), denoise_fn, x, 1000)

    starts = jnp.concatenate([jnp.zeros((1, 6)), jnp.eye(6)]).reshape(7, 3, 2)
    ends = np.asarray(run(starts, hyper(guidance, negative)), np.float64).reshape(7, 6)
    matrix = ends[1:] - ends[0]
    return ends[0], matrix.T @ matrix


@pytest.mark.parametrize(
    ("guidance", "negative"), [(1.0, 0.0), (0.0, 0.0), (1.5, 0.0), (2.0, 0.75)]
)
def test_gaussians_are_sampled_within_1_percent(guidance, negative):
    """Returns the guided Gaussian: the same covariance, and guided means."""
    mean, covariance = moments(guidance, negative)
    want = (CENTRE + guidance * ACTIVITY[1] - negative * GENDER[0]).ravel()
    assert np.linalg.norm(mean - want) < 0.01 * np.linalg.norm(want)
    gap = np.linalg.norm(covariance - COVARIANCE)
    assert gap < 0.01 * np.linalg.norm(COVARIANCE)


def test_few_steps_are_near_and_the_closed_form_rejects_other_guidance():
    mean, _ = moments(1.5, 0.0, steps=20)
    want, wrong = ((CENTRE + w * ACTIVITY[1]).ravel() for w in (1.5, 1.4))
    assert np.linalg.norm(mean - want) < 0.02 * np.linalg.norm(want)
    mean, _ = moments(1.5, 0.0)
    assert np.linalg.norm(mean - wrong) > 0.02 * np.linalg.norm(wrong)


def test_the_paper_s_schedule_is_biased_and_may_start_from_data():
    """Tests a last step with 28 % signal, which pure noise does not have."""
    nets = nets_of(schedule="paper", num_inference_steps=100)
    assert nets.config.num_train_timesteps == 100

    @jax.jit
    def run(x):
        conditions = told(nets, 1, 0, len(x)), None, hyper()
        denoise_fn = diffusion.guided(nets, PARAMS, *conditions)
        return diffusion.denoised(nets, jax.random.key(0), denoise_fn, x, 100)

    want = (CENTRE + ACTIVITY[1] + GENDER[0]).ravel()
    signal = float(nets.schedule.signal[-1])
    starts = jnp.stack([jnp.zeros(6), jnp.float32(signal * want)]).reshape(2, 3, 2)
    nothing, data = np.asarray(run(starts)).reshape(2, 6)
    off = lambda mean: np.linalg.norm(mean - want) / np.linalg.norm(want)
    assert off(data) < 0.01 and off(nothing) > 0.05


POINT = 1e-8 * np.eye(6)  # A denoiser with a fixed target: its output is a mean.


def test_windows_from_nothing_are_led_away_from_what_is_to_be_avoided():
    nets = nets_of(num_train_timesteps=400, num_inference_steps=400)
    zeros = lambda *shape: jnp.zeros((3, *shape))
    statistics = {"mean": zeros(4), "root": zeros(4, 4)}
    statistics |= {"center": zeros(2), "spread": zeros(2)}
    params = PARAMS | {"statistics": statistics}
    classes = generator.every(nets, {"activity": jnp.ones(5, jnp.int32)})

    @jax.jit
    def made(avoid=None):
        given = params, hyper(1.5, 0.75), classes, avoid
        return sampling.synthesise(nets, jax.random.key(3), *given)

    plain = made()
    for gender in range(2):  # With equal noise, only the mean differs.
        apart = made({"gender": jnp.full(5, gender)}) - plain
        want = np.broadcast_to(-0.75 * GENDER[gender], apart.shape)
        np.testing.assert_allclose(apart, want, rtol=0.02, atol=0.01)


def rewritten(windows, seed=0, weights=(2.0, 0.5), **settings):
    nets = nets_of(POINT, num_inference_steps=10, **settings)
    run = jax.jit(
        lambda key, x: sampling.rewrite(nets, key, PARAMS, hyper(*weights), x)
    )
    return np.asarray(run(jax.random.key(seed), jnp.float32(windows)))


def labelled(activity, gender):
    windows = np.random.default_rng(1).normal(size=(len(activity), 3, 2))
    windows[:, 0] = np.stack([activity, gender], axis=1)
    return windows


def test_rewriting_leads_to_the_public_class_and_from_the_private_one():
    activity, gender = np.array([0, 1, 2, 2]), np.array([0, 1, 1, 0])
    got = rewritten(labelled(activity, gender), schedule="rescaled")
    want = CENTRE + 2.0 * ACTIVITY[activity] - 0.5 * GENDER[gender]
    np.testing.assert_allclose(got, want, atol=0.02)


@pytest.mark.parametrize(
    ("hide", "hide_threshold", "want"),
    [
        # Of 0.3, 0.25 and 0.45, the first two have the larger sum, and the first is
        # likelier.
        (("a", "b"), 0.5, [0, 2]),
        (("a", "b"), 0.6, [2, 2]),
        (("a", "b"), 0.0, [0, 1]),
        (("c",), 0.4, [2, 2]),
        (("c",), 0.5, [0, 2]),
        ((), 0.5, [2, 2]),
    ],
)
def test_classes_to_hide_are_suspected_together(hide, hide_threshold, want):
    nets = nets_of(classes_to_hide=hide)
    logits = jnp.log(jnp.array([[0.3, 0.25, 0.45], [0.1, 0.2, 0.7]])) + 5.0
    found = sampling.suspected(nets, logits, hide_threshold)
    np.testing.assert_array_equal(found, want)


def test_a_window_that_is_not_suspected_is_rewritten_as_what_else_it_may_be():
    """The classifier gives a window's class 0.58 and each other class 0.21."""
    windows = labelled(np.array([1, 1]), np.array([0, 1]))
    nets = nets_of(POINT, num_inference_steps=10, classes_to_hide=("b",), strength=0.5)
    run = lambda hide_threshold: sampling.rewrite(
        *(nets, jax.random.key(0), PARAMS, hyper(2.0, 0.5, hide_threshold)),
        jnp.float32(windows),
    )
    want = CENTRE + 2.0 * ACTIVITY[0] - 0.5 * GENDER[[0, 1]]
    np.testing.assert_allclose(run(0.6), want, atol=0.02)
    # Where it is, it becomes one of the others and is guided away from its class.
    anew = np.asarray(run(0.55)) + 0.5 * ACTIVITY[1]
    made = CENTRE + 2.0 * ACTIVITY[[0, 2], None] - 0.5 * GENDER[[0, 1]]
    assert (np.abs(anew - made).max((2, 3)) < 0.02).any(axis=0).all()


def test_windows_to_hide_are_made_of_other_classes():
    activity, gender = np.tile([0, 1, 2, 1], 150), np.tile([0, 1, 1, 0], 150)
    for strength in (0.5, 1.0):
        got = rewritten(
            labelled(activity, gender), classes_to_hide=("b",), strength=strength
        )
        shown = activity != 1
        want = CENTRE + 2.0 * ACTIVITY[activity] - 0.5 * GENDER[gender]
        np.testing.assert_allclose(got[shown], want[shown], atol=0.02)
        # The others: class 0 or 2 with equal probability, and guided away from their
        # class.
        base = got[~shown] - CENTRE + 0.5 * (ACTIVITY[1] + GENDER[gender[~shown]])
        made = [base - 2.0 * ACTIVITY[other] for other in (0, 2)]
        first, last = (np.abs(off).max((1, 2)) < 0.02 for off in made)
        assert (first ^ last).all()
        assert first.mean() == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("strength", [0.5, 1.0])
@pytest.mark.parametrize("schedule", ["cosine", "paper"])
def test_nothing_is_left_of_windows_to_hide(strength, schedule):
    """Checks that a hidden window leaves no trace in the output and others do."""
    gender = np.zeros(6, int)
    one = labelled(np.array([1, 1, 1, 0, 0, 0]), gender)
    other = one + 0.1 * np.arange(1, 7)[:, None, None] * [[[0.0], [1.0], [1.0]]]
    settings = {"strength": strength, "schedule": schedule, "classes_to_hide": ("b",)}
    nets = nets_of(num_inference_steps=10, **settings)
    run = jax.jit(
        lambda x: sampling.rewrite(nets, jax.random.key(0), PARAMS, hyper(), x)
    )
    change = np.abs(run(jnp.float32(one)) - run(jnp.float32(other))).max((1, 2))
    assert (change[:3] == 0).all()
    if strength < 1 or schedule == "paper":
        assert (change[3:] > 1e-3).all()


def test_weak_rewriting_changes_little():
    windows = labelled(np.array([0, 1]), np.array([0, 1]))
    got = rewritten(windows, strength=0.01)  # One step of a hundred.
    assert diffusion.first_step(nets_of(strength=0.001).config) == 1
    nets = nets_of(num_inference_steps=10, strength=0.01)
    soft = sampling.rewrite(
        nets, jax.random.key(0), PARAMS, hyper(), jnp.float32(windows)
    )
    level = float(nets.schedule.noise[1])
    assert np.abs(soft - windows).max() < 10 * level
    assert np.abs(got - windows).max() > 0.5  # A confident denoiser changes all.
