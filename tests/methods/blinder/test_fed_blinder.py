"""Tests FedBlinder against plain loops, and its layouts, padding and errors."""

import jax
import numpy as np
import plain_rounds as plain
import pytest

from jaxanon import datasets
from jaxanon.federated import Layout
from jaxanon.methods.blinder.averaged import build_system
from jaxanon.methods.blinder.fed_blinder import FedBlinderConfig, build, fed_blinder

pytestmark = pytest.mark.slow


OTHER = {"weighting": "clients", "batches": 2, "variant": "official"}


@pytest.mark.parametrize(
    ("chunk", "settings"), [(None, {}), (3, OTHER)], ids=["side by side", "in threes"]
)
def test_rounds_agree_with_plain_loops_over_clients(data, chunk, settings):
    spec, population = plain.moody(data.spec), plain.clients(data)
    config = FedBlinderConfig(**plain.SETTINGS, **settings)
    method = build(spec, config, Layout(chunk_size=chunk))
    update, key = jax.jit(method.update), jax.random.key(1)
    jax.clear_caches()  # A full cache would change the counts below.
    losses = plain.Losses(build_system(spec, method.config))
    # Other hyper-parameters do not recompile and agree with the loops.
    for values in ({}, {"gamma": 3.0, "learning_rate": 0.02, "beta": 0.5}):
        state = method.init(jax.random.key(0), **values)
        for number in range(2):
            expected = plain.one_round(losses, method.config, key, state, population)
            moved = plain.apart(state.params, expected)
            assert min(moved.values()) > 1  # More than one step.
            state, info = update(key, state, population)
            assert max(plain.apart(state.params, expected).values()) < 0.02
            assert int(state.round) == number + 1
            assert all(np.isfinite(value) for value in info.values())
    assert update._cache_size() == 1


def test_the_published_settings_are_the_defaults():
    config = FedBlinderConfig()
    assert (config.local_rounds, config.client_fraction, config.weighting) == (
        5,
        0.4,
        "rows",
    )
    assert (config.batch_size, config.latent_dim) == (16, 25)
    assert (config.alpha, config.beta, config.gamma) == (0.9, 2.0, 0.2)


def test_clients_that_do_not_fit_are_refused(data):
    clients = datasets.by_client(data.train)
    method = fed_blinder(data.spec)
    shorter = clients._replace(windows=clients.windows[:, :, :5])
    with pytest.raises(ValueError, match=r"clients, n, 16, 2\] .* got shape"):
        method.prepare(shorter)
    empty = clients._replace(mask=clients.mask & (np.arange(5) > 0)[:, None])
    with pytest.raises(ValueError, match=r"clients \[0\] have no windows; drop them"):
        method.prepare(empty)
