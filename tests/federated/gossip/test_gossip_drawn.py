"""Gossip of drawn layers, weights and losses, against inboxes in NumPy."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxanon import federated as fed
from jaxanon.federated import ChannelConfig
from jaxanon.federated.gossip.gossip import sample_delivery

AGENTS, ROUNDS = 3, 4
KINDS = (
    ChannelConfig(),
    ChannelConfig(drop_probability=0.4),
    ChannelConfig(drop_probability=0.2, delay_probability=0.5, max_age=2),
)
seeds = st.integers(0, 2**20)
flags = st.sampled_from([(1, 1), (1, 0), (0, 1), (0, 0)]).map(
    lambda bits: {"a": bool(bits[0]), "b": bool(bits[1])}
)
EACH = pytest.mark.parametrize("messages", KINDS, ids=["all", "lost", "late"])
few = settings(max_examples=6, deadline=None)


def mixing_of(seed):
    """Returns rows of weights that sum to 1, some of them 0."""
    rng = np.random.default_rng(seed)
    weights = rng.random((AGENTS, AGENTS)) * (rng.random((AGENTS, AGENTS)) < 0.7)
    weights += np.eye(AGENTS)
    return weights / weights.sum(axis=1, keepdims=True)


def layers_of(seed):
    rng = np.random.default_rng(seed)
    number = lambda *shape: rng.normal(size=(AGENTS, *shape)).astype(np.float32)
    return {"a": {"w": number(2, 2), "v": number()}, "b": number(3)}


def moved(params):
    """Returns the parameters after local training between two broadcasts."""
    return jax.tree.map(lambda leaf: leaf * np.float32(1.25) + 1, params)


@functools.partial(jax.jit, static_argnames="messages")
def broadcast(key, mail, params, mixing, shared, messages):
    return fed.exchange(key, mail, params, mixing, shared=shared, messages=messages)


@functools.partial(jax.jit, static_argnames="messages")
def broadcast_every(period, key, mail, params, mixing, step, shared, messages):
    return fed.exchange_every(
        period, key, mail, params, mixing, step, shared=shared, messages=messages
    )


@functools.partial(jax.jit, static_argnames=("clip", "noise"))
def noisily(key, mail, params, mixing, shared, clip, noise):
    settings = {"clip_norm": clip, "noise_multiplier": noise}
    return fed.exchange_noisily(key, mail, params, mixing, shared=shared, **settings)


@functools.partial(jax.jit, static_argnames=("clip", "noise"))
def noisily_every(period, key, mail, params, mixing, step, shared, clip, noise):
    return fed.exchange_noisily_every(
        *(period, key, mail, params, mixing, step),
        **{"shared": shared, "clip_norm": clip, "noise_multiplier": noise},
    )


class Inboxes:
    """Inboxes of ``exchange``; ``got[i][j]`` is i's copy of j and its round."""

    def __init__(self, messages):
        self.messages, self.got, self.way, self.round = messages, {}, {}, 0

    def exchange(self, key, params, mixing, shared):
        arrive, late = sample_delivery(
            jax.random.fold_in(key, self.round), AGENTS, self.messages
        )
        self.got |= self.way
        self.way = {}
        for pair in np.ndindex(AGENTS, AGENTS):
            sent = jax.tree.map(lambda leaf, j=pair[1]: np.float64(leaf[j]), params)
            if arrive[pair]:
                self.got[pair] = (self.round, sent)
            if late[pair]:
                self.way[pair] = (self.round, sent)
        mixed = [self.mean(agent, params, mixing[agent]) for agent in range(AGENTS)]
        self.round += 1
        found = jax.tree.map(lambda *leaves: np.stack(leaves), *mixed)
        return {name: found[name] if shared[name] else params[name] for name in params}

    def mean(self, agent, params, weights):
        own = jax.tree.map(lambda leaf: np.float64(leaf[agent]), params)
        heard = []
        for other in range(AGENTS):
            when, sent = self.got.get((agent, other), (-99, own))
            fresh = self.round - when <= self.messages.max_age
            heard.append(sent if fresh else own)
        return jax.tree.map(lambda *x: np.tensordot(weights, x, axes=1), *heard)


@EACH
@few
@given(seeds, flags)
def test_rounds_of_broadcasts_are_those_of_inboxes(messages, seed, shared):
    key, mixing, params = jax.random.key(seed), mixing_of(seed), layers_of(seed)
    boxes, wanted = Inboxes(messages), params
    on = jax.tree.map(np.bool_, shared)
    mail = fed.empty_message_buffer(params, on, messages)
    for _ in range(ROUNDS):
        mail, params = broadcast(key, mail, params, mixing, on, messages)
        wanted = boxes.exchange(key, wanted, mixing, shared)
        chex.assert_trees_all_close(params, wanted, rtol=1e-4, atol=1e-4)
        params, wanted = moved(params), moved(wanted)
    assert mail.round == ROUNDS


@EACH
@few
@given(seeds, flags)
def test_python_s_flags_are_those_of_a_program(messages, seed, shared):
    """A layer that stays local is the same object and is not in the message buffer."""
    key, mixing, params = jax.random.key(seed), mixing_of(seed), layers_of(seed)
    mail = fed.empty_message_buffer(params, shared, messages)
    assert set(mail.sent) == {name for name in shared if shared[name]}
    after, got = fed.exchange(
        key, mail, params, mixing, shared=shared, messages=messages
    )
    on = jax.tree.map(np.bool_, shared)
    _, wanted = broadcast(
        key,
        fed.empty_message_buffer(params, on, messages),
        params,
        mixing,
        on,
        messages,
    )
    chex.assert_trees_all_close(got, wanted, rtol=1e-5, atol=1e-6)
    assert [*got] == [*params] and set(after.sent) == set(mail.sent)
    assert all(got[name] is params[name] for name in shared if not shared[name])


@EACH
@few
@given(seeds, st.sampled_from([np.nan, np.inf]))
def test_nothing_comes_from_whom_nobody_weighs(messages, seed, wild):
    mixing, params = mixing_of(seed), layers_of(seed)
    mixing[1:, 0] = 0
    mixing /= mixing.sum(axis=1, keepdims=True)
    broken = jax.tree.map(np.copy, params)
    for leaf in jax.tree.leaves(broken):
        leaf[0] = wild
    on, key = {"a": np.True_, "b": np.True_}, jax.random.key(seed)
    others = lambda tree: jax.tree.map(lambda leaf: leaf[1:], tree)
    one, other = (
        broadcast(
            key,
            fed.empty_message_buffer(each, on, messages),
            each,
            mixing,
            on,
            messages,
        )[1]
        for each in (params, broken)
    )
    chex.assert_trees_all_equal(others(one), others(other))
    for leaf in jax.tree.leaves(jax.tree.map(lambda x: x[0], other)):
        assert not np.isfinite(leaf).any()


@few
@given(seeds, flags, st.integers(1, 4), st.integers(0, 9))
def test_every_so_often_is_then_and_at_no_other_time(seed, shared, period, step):
    key, mixing, params = jax.random.key(seed), mixing_of(seed), layers_of(seed)
    shared, due = jax.tree.map(np.bool_, shared), (step + 1) % period == 0
    mail = fed.empty_message_buffer(params, shared)
    got = broadcast_every(period, key, mail, params, mixing, step, shared, KINDS[0])
    wanted = broadcast(key, mail, params, mixing, shared, KINDS[0])
    chex.assert_trees_all_close(got, wanted if due else (mail, params), rtol=1e-6)
    noise = 0.5, 1.0
    mail = fed.empty_noisy_message_buffer(jax.tree.map(np.zeros_like, params), shared)
    got = noisily_every(period, key, mail, params, mixing, step, shared, *noise)
    wanted = noisily(key, mail, params, mixing, shared, *noise)
    chex.assert_trees_all_close(
        got, wanted if due else (mail, params), rtol=1e-5, atol=1e-6
    )


def flat(tree):
    return np.concatenate(
        [np.float64(leaf).reshape(AGENTS, -1) for leaf in jax.tree.leaves(tree)], axis=1
    )


@few
@given(seeds, flags, st.sampled_from([0.5, 1e3]))
def test_what_is_broadcast_moves_by_the_clip_norm_at_most(seed, shared, clip):
    """Without noise: others mix the released layers, an agent mixes its exact ones."""
    key, mixing, params = jax.random.key(seed), mixing_of(seed), layers_of(seed)
    on = jax.tree.map(np.bool_, shared)
    known = jax.tree.map(lambda leaf: leaf * 0, params)
    mail = fed.empty_noisy_message_buffer(known, on)
    itself = np.diag(np.diag(mixing))
    for _ in range(2):
        change = jax.tree.map(lambda now, last: np.float64(now) - last, params, known)
        nothing = jax.tree.map(np.zeros_like, change)
        change = {name: (change if shared[name] else nothing)[name] for name in shared}
        norms = np.linalg.norm(flat(change), axis=1)
        share = np.minimum(1, clip / np.maximum(norms, 1e-30))
        cut = jax.tree.map(lambda x, s=share: np.einsum("i,i...->i...", s, x), change)
        told = jax.tree.map(np.add, known, cut)
        mixed = jax.tree.map(
            lambda now, sent: (
                np.tensordot(itself, now, axes=1)
                + np.tensordot(mixing - itself, sent, axes=1)
            ),
            *(params, told),
        )
        wanted = {
            name: mixed[name] if shared[name] else params[name] for name in params
        }
        mail, params = noisily(key, mail, params, mixing, on, clip, 0.0)
        chex.assert_trees_all_close(params, wanted, rtol=1e-4, atol=1e-4)
        chex.assert_trees_all_close(mail.public, told, rtol=1e-4, atol=1e-4)
        known, params = jax.tree.map(np.asarray, mail.public), moved(params)


@few
@given(seeds, st.sampled_from([(0.5, 1.0), (2.0, 0.25)]))
def test_noise_is_as_wide_as_it_says_and_everybody_s_own(seed, noise):
    """2,000 unchanged numbers of each of 3 agents; five standard errors are 8 %."""
    params = {
        "a": np.zeros((AGENTS, 2000), np.float32),
        "b": np.ones((AGENTS, 1), np.float32),
    }
    on = {"a": np.True_, "b": np.False_}
    mail = fed.empty_noisy_message_buffer(params, on)
    mixing = mixing_of(seed)
    mail, _ = noisily(jax.random.key(seed), mail, params, mixing, on, *noise)
    told = np.asarray(mail.public["a"])
    np.testing.assert_allclose(told.std(axis=1), np.prod(noise), rtol=0.08)
    assert np.abs(np.corrcoef(told) - np.eye(AGENTS)).max() < 0.12
    np.testing.assert_array_equal(mail.public["b"], params["b"])


@EACH
@few
@given(seeds, flags)
def test_mailboxes_begin_with_nothing_from_others(messages, seed, shared):
    params, depth = layers_of(seed), messages.max_age
    mail = fed.empty_message_buffer(params, shared, messages)
    forgotten = (depth + 1) * (1 - np.eye(AGENTS))
    np.testing.assert_array_equal(mail.age, forgotten)
    assert mail.round == 0 and not mail.under_way.any()
    wanted = {name: params[name] for name in params if shared[name]}
    room = jax.tree.map(lambda leaf: np.zeros((depth, *leaf.shape), leaf.dtype), wanted)
    chex.assert_trees_all_equal(mail.sent, room)
    chex.assert_trees_all_equal_dtypes(mail.sent, room)
    noisy = fed.empty_noisy_message_buffer(params, shared, messages)
    chex.assert_trees_all_equal(noisy.mail, mail)
    chex.assert_trees_all_equal(noisy.public, wanted)


@few
@given(
    st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8),
    st.integers(0, 8),
)
def test_the_first_layers_are_shared(layers, alpha):
    alpha = min(alpha, len(layers))
    found = fed.base_layers(tuple(layers), alpha)
    assert [*found] == layers
    assert [name for name in layers if found[name]] == layers[:alpha]
    traced = fed.base_layers(tuple(layers), jnp.int32(alpha))
    assert {name: bool(flag) for name, flag in traced.items()} == found
    for wrong in (-1, len(layers) + 1):
        with pytest.raises(ValueError, match="alpha must be in"):
            fed.base_layers(tuple(layers), wrong)
