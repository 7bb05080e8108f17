"""Shuffled layers: the same mean, and whether they can still be linked."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import federated
from jaxanon.federated import Steps
from jaxanon.federated import shuffle_messages as shuffle
from jaxanon.federated.private.shuffling import (
    Arrivals,
    Round,
    aggregate_arrivals,
    link_messages,
    num_bytes,
    share_linked,
)

pytestmark = pytest.mark.slow

CLIENTS = 12


@functools.cache
def pulled(**settings):
    """Returns Atlas of clients with different targets, and layers of sizes 40 and 3."""
    loss = lambda p, x, key: (
        jnp.sum(x * (p["a"]["w"][None] + 0.1), axis=1) + jnp.sum(p["b"] ** 2)
    )
    start = lambda key: {"a": {"w": jnp.zeros(40)}, "b": jnp.ones(3)}
    algorithm = federated.atlas(
        start, loss, steps=Steps(num_steps=1), num_clients=CLIENTS, **settings
    )
    rows = np.random.default_rng(5).normal(size=(CLIENTS, 1, 40)).astype(np.float32)
    return algorithm, federated.stack([*rows])


@functools.partial(jax.jit, static_argnums=0)
def told(algorithm, key, state, clients):
    """Returns a round, the messages of all clients, and the layers in them."""

    def one(client):
        # The client's message if the others had no rows.
        alone = clients._replace(
            mask=clients.mask & (jnp.arange(CLIENTS) == client)[:, None]
        )
        after, _ = algorithm.update(key, state, alone)
        flags = jax.tree.map(lambda leaf: leaf[client], after.own.shared)
        return after.params, flags

    sent = jax.vmap(one)(jnp.arange(CLIENTS))
    return algorithm.update(key, state, clients), *sent


def two_rounds(noise_multiplier):
    """Returns the arrivals of two rounds, their senders, and the broadcast models."""
    algorithm, clients = pulled(privacy_unit="client")
    hyper = {"noise_multiplier": noise_multiplier, "mask_learning_rate": 0.0}
    state = algorithm.init(jax.random.key(0), **hyper)
    seen = []
    for number in range(2):
        key = jax.random.key(1)
        (after, _), sent, senders = told(algorithm, key, state, clients)
        senders = jax.tree.map(np.asarray, senders)
        own_key = jax.random.fold_in(jax.random.key(2), number)
        arrivals, whose = shuffle(own_key, sent, senders, num_slots=4)
        before, state = state.params, after
        made = aggregate_arrivals(before, arrivals)
        chex.assert_trees_all_close(made, state.params, rtol=1e-5, atol=1e-6)
        seen.append((arrivals["a"], whose["a"], before["a"]))
    return seen


@pytest.mark.parametrize(("noise_multiplier", "low", "high"), [(0, 1, 1), (9, 0, 0.5)])
def test_the_mean_is_unchanged_and_only_noise_hides_whose_it_was(
    noise_multiplier, low, high
):
    """Guessing links one of 12 clients on average; without noise all are linked."""
    (first, whose, before), (later, theirs, after) = two_rounds(noise_multiplier)
    assert len(first.slot) == len(later.slot) == CLIENTS
    assert (whose != np.arange(CLIENTS)).any() and (whose != theirs).any()
    guess = link_messages(first, later, before, after)
    assert sorted(guess) == list(range(CLIENTS))
    assert low <= np.mean(whose[guess] == theirs) <= high


def test_rounds_as_the_server_gets_them():
    """The messages are those of the rounds, and noise hides their senders next time."""
    shares = {}
    for noise_multiplier in (0.0, 9.0):
        algorithm, clients = pulled(privacy_unit="client", send_slots=4)
        hyper = {"noise_multiplier": noise_multiplier, "mask_learning_rate": 0.0}
        state = algorithm.init(jax.random.key(0), **hyper)
        key = jax.random.key(1)
        after, rounds = federated.simulate_observed_shuffled(
            algorithm, key, state, clients, num_rounds=2, num_slots=4
        )
        own = jax.tree.map(jnp.copy, state)  # simulate donates its buffers.
        want, info = federated.simulate(algorithm, key, own, clients, 2)
        chex.assert_trees_all_close(after.params, want.params, rtol=1e-6)
        made = aggregate_arrivals(rounds[1].before, rounds[1].arrivals)
        chex.assert_trees_all_close(made, want.params, rtol=1e-5, atol=1e-6)
        assert (rounds[0].whose["a"] != rounds[1].whose["a"]).any()
        # Each client sends both layers: 43 numbers, and 4 bytes with each layer.
        assert info["bytes_up"].tolist() == [43 * 4 + 2 * 4] * 2
        assert num_bytes(rounds[0].arrivals) == CLIENTS * (43 * 4 + 2 * 4)
        # Layer b is the same for all clients' data; a differs.
        only = [
            each._replace(arrivals={"a": each.arrivals["a"]}, whose=each.whose)
            for each in rounds
        ]
        shares[noise_multiplier], guessing = share_linked(*only)
        assert guessing == pytest.approx(1 / CLIENTS)
    assert shares[0.0] == 1.0 and shares[9.0] <= 0.5


def test_nobody_is_linked_who_came_once():
    came = lambda who: shuffle(
        jax.random.key(0), {"a": jnp.ones((2, 3))}, {"a": np.array(who)}, 2
    )
    rounds = [
        Round({"a": jnp.zeros(3)}, *came(who)) for who in ([True, False], [False, True])
    ]
    assert np.isnan(share_linked(*rounds)).all()


def test_slots_and_orders_are_random_and_layers_do_not_share_them():
    sent = {"a": jnp.arange(2000.0), "b": jnp.arange(2000.0)}
    senders = {name: np.arange(2000) % 4 != 3 for name in sent}
    arrivals, whose = shuffle(jax.random.key(0), sent, senders, 5)
    for name in "ab":
        slot, layer = arrivals[name]
        assert (np.diff(slot) >= 0).all()
        # 300 each, with a standard deviation of 15.5.
        counts = np.bincount(slot, minlength=5)
        assert counts.sum() == 1500 and np.abs(counts - 300).max() < 5 * 15.5
        np.testing.assert_array_equal(layer, whose[name])
        np.testing.assert_array_equal(
            np.sort(whose[name]), np.flatnonzero(senders[name])
        )
        # The slot is independent of the client index and of the other layer's order.
        assert abs(np.corrcoef(slot, whose[name])[0, 1]) < 5 / 1500**0.5
        within = whose[name][slot == 2]
        assert abs(np.corrcoef(within, np.arange(len(within)))[0, 1]) < 5 / 280**0.5
    place = [np.argsort(whose[name]) for name in "ab"]
    assert abs(np.corrcoef(*place)[0, 1]) < 5 / 1500**0.5


def test_bytes_are_those_of_atlas_but_for_the_names_of_layers():
    """A client that sends both: 43 numbers, and two scores or two layer names."""
    algorithm, clients = pulled()
    state = algorithm.init(jax.random.key(0), learning_rate=0.0)
    (_, info), sent, senders = told(algorithm, jax.random.key(1), state, clients)
    senders = jax.tree.map(np.asarray, senders)
    arrivals, _ = shuffle(jax.random.key(2), sent, senders, 3)
    assert num_bytes(arrivals) == CLIENTS * (43 * 4 + 2 * 4)
    assert info["bytes_up"] == 43 * 4 + 2 * 4


def test_a_round_with_fewer_messages_leaves_some_unlinked():
    row = lambda *values: jnp.array(values)[:, None] * jnp.ones((1, 3))
    few = Arrivals(np.array([0]), row(2.0))
    more = Arrivals(np.array([0, 0]), row(-1.0, 5.0))
    zero = jnp.zeros(3)
    assert link_messages(few, more, zero, zero).tolist() == [-1, 0]
    assert link_messages(more, few, zero, zero).tolist() == [1]


def test_says_what_was_wrong():
    one = {"a": jnp.ones(2)}
    senders = {"a": np.ones(2, bool)}
    with pytest.raises(ValueError, match="num_slots must be >= 1, got 0"):
        shuffle(jax.random.key(0), one, senders, 0)
    with pytest.raises(ValueError, match=r"the layers \['a'\], got \['b'\]"):
        shuffle(jax.random.key(0), one, {"b": senders["a"]}, 2)
    algorithm, clients = pulled()
    state = algorithm.init(jax.random.key(0))
    given = (jax.random.key(1), state, clients)
    with pytest.raises(ValueError, match="num_rounds must be >= 1, got 0"):
        federated.simulate_observed_shuffled(
            algorithm, *given, num_rounds=0, num_slots=2
        )
    with pytest.raises(ValueError, match="send_slots must be >= 1, got 0"):
        pulled(send_slots=0)
    plain = federated.fedavg(
        lambda key: {"a": {"w": jnp.zeros(40)}, "b": jnp.ones(3)},
        lambda p, x, key: jnp.sum(x * p["a"]["w"][None], axis=1),
        steps=federated.Steps(num_steps=1),
    )
    state = plain.init(jax.random.key(0))
    with pytest.raises(ValueError, match="must send layers with flags"):
        federated.simulate_observed_shuffled(
            plain, jax.random.key(1), state, clients, 1, 2
        )
