"""Tests of PrivDiffuser: losses, utility, privacy and errors."""

import functools
import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toy
from optimized import optimized
from sklearn.linear_model import LogisticRegression

from jaxanon import datasets, methods
from jaxanon.methods.guided_diffusion import guidance
from jaxanon.methods.guided_diffusion.guidance import PrivDiffuserConfig

pytestmark = pytest.mark.slow

DATA = toy.data(per_subject=120)
FIRST, LAST = 36, 96  # Number of epochs of the first phase, and of both.
SMALL = {
    "widths": (16,),
    "heads": 2,
    "batch_size": 64,
    "num_train_timesteps": 50,
    "latent_dim": 8,
}
SMALL |= {"num_inference_steps": 10, "pretraining": FIRST}
BEFORE = {FIRST: 1, FIRST + 1: FIRST, LAST: FIRST + 1}  # The epoch to resume from.
METHOD = methods.privdiffuser(DATA.spec, **SMALL)
# The function hides the module of the same name.
MODULE = importlib.import_module("jaxanon.methods.guided_diffusion.privdiffuser")


def frequency(windows):
    """Returns the class by the spectrum of the sum of a window's channels."""
    power = np.abs(np.fft.rfft(windows, axis=1)[:, 1:4]) ** 2
    return power.sum(-1).argmax(-1)


def loud(windows):
    """Returns the gender by the amplitude of a window."""
    return (np.std(windows, axis=(1, 2)) > 1.5 * 3 / np.sqrt(2)).astype(int)


@functools.cache
def prepared():
    return METHOD.prepare(datasets.by_client(DATA.train))


@optimized
def train(state, data, rounds):
    step = lambda _, state: METHOD.update(jax.random.key(1), state, data)[0]
    return jax.lax.fori_loop(0, rounds, step, state)


@functools.cache
def trained(epochs):
    per_epoch = METHOD.schedule.rounds_per_epoch(prepared())
    if epochs in BEFORE:
        begun = BEFORE[epochs]
        return train(trained(begun), prepared(), (epochs - begun) * per_epoch)
    state = METHOD.init(jax.random.key(0), learning_rate=3e-3, ema_decay=0.98)
    return train(state, prepared(), epochs * per_epoch)


TRACED = []


@jax.jit
def anonymize(key, state, windows):
    """Counts the compilations."""
    TRACED.append(windows.shape)
    return METHOD.anonymize(key, state, windows)


def scores(**hyper):
    """Returns the accuracy of activity and gender on anonymized test windows."""
    state = trained(LAST)
    hyper = {name: jnp.float32(value) for name, value in hyper.items()}
    state = state._replace(hyper=state.hyper | hyper)
    safe = np.asarray(anonymize(jax.random.key(4), state, DATA.test.windows))
    assert safe.shape == DATA.test.windows.shape and safe.dtype == np.float32
    assert abs(safe.mean() - 10) < 2  # In physical units.
    labels = DATA.test.labels
    shown = (frequency(safe) == labels["activity"]).mean()
    return shown, (loud(safe) == labels["gender"]).mean()


def test_raw_windows_show_both():
    windows, labels = DATA.test
    assert (frequency(windows) == labels["activity"]).mean() > 0.98
    assert (loud(windows) == labels["gender"]).mean() > 0.98


def test_rewriting_keeps_the_public_class_and_loses_the_private():
    shown, told = scores(strength=0.8, guidance_scale=1.5, negative_guidance_scale=1.0)
    assert shown > 0.85 and told < 0.65


def test_negative_guidance_is_what_loses_it():
    _, told = scores(strength=0.7, guidance_scale=1.5, negative_guidance_scale=0.0)
    _, less = scores(strength=0.7, guidance_scale=1.5, negative_guidance_scale=2.0)
    assert told > 0.65 and less < told - 0.15


def test_guidance_is_what_keeps_the_public_class():
    shown, _ = scores(strength=1.0, guidance_scale=4.0, negative_guidance_scale=0.0)
    compiled = len(TRACED)
    guessed, _ = scores(strength=1.0, guidance_scale=0.0, negative_guidance_scale=0.0)
    assert shown > 0.85 and guessed < 0.55
    assert len(TRACED) == compiled  # Weights change without recompiling.


NETS = MODULE.networks(DATA.spec, PrivDiffuserConfig(**SMALL))


def offset(part):
    """Returns windows in which men's values have an offset and a larger amplitude."""
    men = np.float32(part.labels["gender"][:, None, None])
    return part._replace(windows=part.windows + 6 * men)


def told_by_public_latents(weight, seed):
    """Returns the test accuracy of separate linear classifiers after one phase."""
    data = METHOD.prepare(datasets.by_client(offset(DATA.train)))
    state = METHOD.init(jax.random.key(seed), disentangling=weight)
    state = train(state, data, FIRST * METHOD.schedule.rounds_per_epoch(data))
    read = jax.jit(lambda x: guidance.latents(NETS, state.params, x)[0])
    known, new = (
        np.asarray(
            read(jnp.float32((offset(part).windows - DATA.spec.mean) / DATA.spec.std))
        )
        for part in (DATA.train, DATA.test)
    )
    return [
        LogisticRegression(max_iter=500)
        .fit(known, DATA.train.labels[name])
        .score(new, DATA.test.labels[name])
        for name in ("gender", "activity")
    ]


def test_public_latents_lose_what_tells_the_private_class():
    """Tests two seeds together, because one alone depends on rounding."""
    told, less = (
        np.mean([told_by_public_latents(weight, seed) for seed in (2, 3)], axis=0)
        for weight in (0.0, 0.1)
    )
    assert told[0] > 0.85 and less[0] < told[0] - 0.2 and less[1] > 0.9


def test_the_denoiser_rests_first_and_what_it_is_told_by_rests_after():
    state, phase, later = map(trained, (1, FIRST, FIRST + 1))
    moved = lambda one, other, group: any(
        jax.tree.leaves(jax.tree.map(lambda a, b: bool((a != b).any()),
                                     one.params[group], other.params[group]))
    )  # fmt: skip
    for group, before, after in (
        ("classifiers", True, False),
        ("law", True, False),
        ("denoiser", False, True),
    ):
        assert moved(state, phase, group) == before, group
        assert moved(phase, later, group) == after, group
    # The running mean counts from its start and soon forgets the initial value.
    gap = lambda group: np.sqrt(sum(
        float(jnp.sum((a - b) ** 2)) for a, b in zip(
            *(jax.tree.leaves(state.params[group]) for state in (later, phase)),
            strict=True)
    ))  # fmt: skip
    assert gap("average") > 0.65 * gap("denoiser")


class Says:
    """A network with a constant output."""

    def __init__(self, answer):
        self.apply = lambda variables, *inputs: answer


def test_what_disentangling_costs_by_hand():
    """The network predicts two people's genders, or each the other's."""
    labels = {"activity": jnp.array([2, 2]), "gender": jnp.array([1, 0])}
    right = jnp.array([[-1.0, 1.0], [1.0, -1.0]])
    np.testing.assert_array_equal(MODULE.secrets(NETS, labels), right)
    features = {name: jnp.ones((2, 8)) for name in labels}
    cost = lambda law: MODULE.disentangling(NETS._replace(law=Says(law)))(
        {"law": {}}, features, labels, {"disentangling": 0.25}
    )
    # 1 nat for each of two values: half of all pairs are 2 deviations apart.
    total, info = cost((right, 0 * right))
    assert (float(total), float(info["information"])) == (0.5, 2.0)
    total, info = cost((-right, 0 * right))  # Worse than a guess: no penalty.
    assert (float(total), float(info["information"])) == (0.0, -2.0)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"widths": (4,) * 6, "heads": 1}, "multiple of 32 samples .* got 16"),
        ({"num_inference_steps": 51}, "<= num_train_timesteps, 50, got 51"),
        ({"categories": ("z",)}, r"must name channels among \('x', 'y'\), got 'z'"),
    ],
)
def test_settings_that_cannot_be(settings, match):
    with pytest.raises(ValueError, match=match):
        methods.privdiffuser(DATA.spec, **SMALL | settings)
