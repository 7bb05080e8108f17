"""Tests KD-Blinder against plain loops, with and without BalanceFL's parts."""

import jax
import jax.numpy as jnp
import plain_rounds as plain
import pytest

from jaxanon.federated import Population
from jaxanon.methods.blinder.averaged import build_system
from jaxanon.methods.blinder.kd_blinder import KDBlinderConfig, kd_blinder

pytestmark = pytest.mark.slow


# Larger than published, so that each term has an effect after one round.
SETTINGS = plain.SETTINGS | {"smoothing": 0.5, "distillation": 3.0, "augmentation": 2.0}
SETTINGS |= {"variant": "official"}  # Applies to the autoencoder only.


@pytest.fixture(scope="module")
def losses(data):
    spec = plain.moody(data.spec)
    return plain.Losses(build_system(spec, KDBlinderConfig(**SETTINGS)))


@pytest.fixture(scope="module")
def method(data):
    return kd_blinder(plain.moody(data.spec), **SETTINGS)


@pytest.fixture(scope="module")
def update(method):
    return jax.jit(method.update)


@pytest.fixture(scope="module")
def rounds(data, method, update):
    """Method, clients, and the states before and after the second of two rounds."""
    population = plain.clients(data)
    state = method.init(jax.random.key(0))
    first, _ = update(jax.random.key(1), state, population)
    second, _ = update(jax.random.key(1), first, population)
    return method, population, first, second


def _loops(losses, rounds, **more):
    method, population, first, _ = rounds
    return plain.one_round(
        losses, method.config, jax.random.key(1), first, population, heir=True, **more
    )


def test_a_round_agrees_with_plain_loops_over_clients(losses, rounds):
    expected = _loops(losses, rounds)
    assert min(plain.apart(rounds[2].params, expected).values()) > 1
    assert max(plain.apart(rounds[3].params, expected).values()) < 0.02


@pytest.mark.parametrize(
    ("ingredient", "groups"),
    [
        ("restriction", ["discriminators"]),
        ("inheritance", ["discriminators"]),
        ("smoothing", ["discriminators"]),
        ("balance", ["encoder", "decoder", "classifiers"]),
        ("augmentation", ["encoder", "decoder"]),
    ],
)
def test_each_ingredient_is_in_the_round(losses, rounds, ingredient, groups):
    # Without the part, the loops give another result.
    without = _loops(losses, rounds, without=(ingredient,))
    apart = plain.apart(rounds[3].params, without)
    assert all(apart[group] > 0.1 for group in groups), apart


def test_discriminators_of_clients_of_one_class_rest(rounds, update):
    _, population, first, _ = rounds
    # All clients but one are padding; that one has one mood of four.
    own = population.rows
    labels = own.labels | {"mood": jnp.full_like(own.labels["mood"], 2)}
    alone = population.mask & (jnp.arange(5) == 1)[:, None]
    clients = Population(own._replace(labels=labels), alone)
    after, _ = update(jax.random.key(1), first, clients)
    for group, moved in plain.apart(after.params, first.params).items():
        assert moved == 0 if group == "discriminators" else moved > 1


def test_the_published_settings_are_the_defaults():
    config = KDBlinderConfig()
    assert (config.temperature, config.distillation) == (2.0, 1.0)
    assert (config.smoothing, config.restricted) == (0.002, True)
