"""Noisy gossip: two agents by hand, plain NumPy, statistics, and errors."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import federated
from jaxanon.federated import ChannelConfig
from jaxanon.federated.gossip import gossip

HALF = np.full((2, 2), 0.5, np.float32)


def test_two_agents_by_hand():
    """Changes of norm 5 and 1 are clipped to 2; the excess of the first follows."""
    shared = {"w": True, "v": False}
    start = {"w": jnp.zeros((2, 2)), "v": jnp.zeros(2)}
    mail = federated.empty_noisy_message_buffer(start, shared)
    params = {"w": jnp.array([[3.0, 4.0], [0.0, 1.0]]), "v": jnp.array([5.0, 7.0])}
    settings = {"shared": shared, "clip_norm": 2.0, "noise_multiplier": 0.0}
    key = jax.random.key(0)
    exchange = jax.jit(functools.partial(federated.exchange_noisily, **settings))
    mail, params = exchange(key, mail, params, HALF)
    # Sent: (3, 4) * 2 / 5 and (0, 1). An agent mixes its own exact values.
    np.testing.assert_allclose(mail.public["w"], [[1.2, 1.6], [0, 1]], rtol=1e-6)
    np.testing.assert_allclose(params["w"], [[1.5, 2.5], [0.6, 1.3]], rtol=1e-6)
    np.testing.assert_array_equal(params["v"], [5.0, 7.0])
    mail, params = exchange(key, mail, params, HALF)
    # Changes since: (0.3, 0.9) and (0.6, 0.3), both shorter than 2.
    np.testing.assert_allclose(mail.public["w"], [[1.5, 2.5], [0.6, 1.3]], rtol=1e-5)
    np.testing.assert_allclose(params["w"], [[1.05, 1.9]] * 2, rtol=1e-5)
    assert mail.mail.round == 2


def test_agrees_with_a_plain_loop_where_messages_are_lost():
    agents, rounds, norm = 4, 5, 0.5
    mixing = np.asarray(federated.metropolis_weights(federated.ring_graph(agents)))
    messages = ChannelConfig(drop_probability=0.4, delay_probability=0.2, max_age=2)
    rng = np.random.default_rng(0)
    steps = rng.normal(size=(rounds, agents, 3)).astype(np.float32)
    key, shared = jax.random.key(3), {"w": True}
    params = {"w": jnp.zeros((agents, 3))}
    mail = federated.empty_noisy_message_buffer(params, shared, messages)
    public, own = np.zeros((agents, 3)), np.zeros((agents, 3))
    boxes, under_way = [{} for _ in range(agents)], []

    @jax.jit
    def exchange(mail, params, step):
        params = {"w": params["w"] + step}
        fates = gossip.sample_delivery(
            jax.random.fold_in(key, mail.mail.round), agents, messages
        )
        return fates, federated.exchange_noisily(
            key, mail, params, mixing, shared=shared, clip_norm=norm,
            noise_multiplier=0.0, messages=messages,
        )  # fmt: skip

    for t in range(rounds):
        assert mail.mail.round == t
        fates, (mail, params) = exchange(mail, params, steps[t])
        own = own + steps[t]
        change = own - public
        length = np.linalg.norm(change, axis=1, keepdims=True)
        public = public + change * np.minimum(1, norm / length)
        in_time, late = map(np.asarray, fates)
        for to, who, when, what in under_way:
            boxes[to][who] = when, what
        under_way = []
        for to in range(agents):
            for who in range(agents):
                if in_time[to, who]:
                    boxes[to][who] = t, public[who]
                if late[to, who]:
                    under_way.append((to, who, t, public[who]))
        after = []
        for to in range(agents):
            total = 0
            for who in range(agents):
                when, what = boxes[to].get(who, (-9, None))
                known = who != to and when >= t - messages.max_age
                total = total + mixing[to, who] * (what if known else own[to])
            after.append(total)
        own = np.array(after)
        np.testing.assert_allclose(params["w"], own, rtol=1e-4, atol=1e-6)


def test_noise_is_what_it_says_and_layers_at_home_get_none():
    """Others get N(change, (z C)^2); only the shared one of two layers counts."""
    agents, numbers, norm, z = 3, 4000, 0.5, 2.0
    params = {"w": jnp.ones((agents, numbers)), "v": 100 * jnp.ones((agents, 2))}
    shared = {"w": jnp.asarray(True), "v": jnp.asarray(False)}
    blank = jax.tree.map(jnp.zeros_like, params)
    mail = federated.empty_noisy_message_buffer(blank, shared)
    given = {"clip_norm": norm, "noise_multiplier": z}
    exchange = jax.jit(functools.partial(federated.exchange_noisily, **given))
    told = []
    for number in range(2):
        key = jax.random.key(number)
        after, mixed = exchange(key, mail, params, np.eye(agents), shared=shared)
        told.append(np.asarray(after.public["w"]))
        assert not np.asarray(after.public["v"]).any()
        # No agent receives a message, so nothing changes.
        np.testing.assert_array_equal(mixed["w"], params["w"])
    # A change of norm sqrt(4000), to which the 100 values of "v" add nothing, clipped
    # to .5.
    noise = np.stack(told) - norm / np.sqrt(numbers)
    deviation = z * norm
    assert abs(noise.mean()) < 5 * deviation / np.sqrt(noise.size)
    assert abs(noise.std() / deviation - 1) < 5 / np.sqrt(2 * noise.size)
    # Independent over agents and broadcasts.
    rows = noise.reshape(6, -1)
    assert np.abs(np.corrcoef(rows) - np.eye(6)).max() < 5 / np.sqrt(numbers)


def test_agents_by_themselves_draw_the_noise_of_their_numbers():
    params, shared = {"w": jnp.zeros((4, 500))}, {"w": True}
    noise = {"shared": shared, "clip_norm": 1.0, "noise_multiplier": 1.0}

    @jax.jit
    def told(own):
        some = {"w": params["w"][own]}
        after, _ = federated.exchange_noisily(
            jax.random.key(0), federated.empty_noisy_message_buffer(some, shared), some,
            np.eye(len(own)), **noise, numbers=own,
        )  # fmt: skip
        return after.public["w"]

    parts = told(jnp.array([2, 0])), told(jnp.array([3, 1]))
    whole = np.asarray(told(jnp.arange(4)))
    np.testing.assert_allclose(parts[0], whole[np.array([2, 0])], rtol=1e-6)
    np.testing.assert_allclose(parts[1], whole[np.array([3, 1])], rtol=1e-6)
    assert np.abs(np.corrcoef(whole) - np.eye(4)).max() < 5 / np.sqrt(500)


def test_nothing_leaves_between_broadcasts():
    params, shared = {"w": jnp.ones((2, 3))}, {"w": True}
    mail = federated.empty_noisy_message_buffer(params, shared)
    moved = {"w": 2 * params["w"]}
    given = {"shared": shared, "clip_norm": 1.0, "noise_multiplier": 1.0}
    every = jax.jit(functools.partial(federated.exchange_noisily_every, **given))
    for step, due in ((0, False), (1, True)):
        after, _ = every(2, jax.random.key(0), mail, moved, HALF, step)
        assert bool((after.public["w"] != 1).any()) == due
        assert after.mail.round == due
    with pytest.raises(ValueError, match="period must be >= 1, got 0"):
        federated.exchange_noisily_every(
            0, jax.random.key(0), mail, moved, HALF, 0, shared=shared,
            clip_norm=1.0, noise_multiplier=1.0,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("norm", "z", "message"),
    [
        (0.0, 1.0, "clip_norm must be finite and > 0, got 0.0"),
        (-1.0, 1.0, "clip_norm must be finite and > 0, got -1.0"),
        (1.0, -0.5, "noise_multiplier must be finite and > 0, got -0.5"),
    ],
)
def test_norms_and_noise_out_of_range_are_refused(norm, z, message):
    params, shared = {"w": jnp.ones((2, 3))}, {"w": True}
    mail = federated.empty_noisy_message_buffer(params, shared)
    with pytest.raises(ValueError, match=message):
        federated.exchange_noisily(
            jax.random.key(0), mail, params, HALF, shared=shared,
            clip_norm=norm, noise_multiplier=z,
        )  # fmt: skip
