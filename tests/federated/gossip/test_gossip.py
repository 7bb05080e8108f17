"""Gossip: by hand, against a message buffer, and with layers that stay local."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import federated
from jaxanon.federated import ChannelConfig
from jaxanon.federated.gossip import gossip, reference

pytestmark = pytest.mark.slow

KEY = 3
HALF = np.full((2, 2), 0.5, np.float32)


def params_of(agents):
    rng = np.random.default_rng(agents)
    return {
        "base": {"w": rng.normal(size=(agents, 2, 3)), "b": rng.normal(size=agents)},
        "head": {"w": rng.normal(size=(agents, 3))},
    }


def test_two_agents_by_hand():
    """D-PSGD on (w - x)^2 / 2 with x = 4 and 8, steps of 1/2, and full averaging."""
    shared = {"w": True, "v": False}
    w, v = jnp.zeros(2), jnp.zeros(2)
    x = jnp.array([4.0, 8.0])
    mail = federated.empty_message_buffer({"w": w, "v": v}, shared)
    exchange = jax.jit(functools.partial(federated.exchange, shared=shared))
    for expected in (3.0, 4.5, 5.25):  # Halfway to the mean of 6, every time.
        w, v = w + (x - w) / 2, v + (x - v) / 2
        mail, after = exchange(jax.random.key(0), mail, {"w": w, "v": v}, HALF)
        w, v = after["w"], after["v"]
        np.testing.assert_array_equal(w, [expected] * 2)
    np.testing.assert_array_equal(v, [3.5, 7.0])  # Each covers 7/8 of its distance.
    assert mail.round == 3


def test_two_agents_one_late_message_by_hand(monkeypatch):
    """Agent 0 receives from 1: nothing, the late message, the same, nothing."""
    rounds = iter([(False, True), (False, False), (False, False), (True, False)])

    def scripted(key, agents, messages):
        in_time, late = next(rounds)
        eye = np.eye(2, dtype=bool)
        link = np.array([[False, True], [False, False]])
        return jnp.asarray(eye | eye[::-1] & ~link | link & in_time), link & late

    monkeypatch.setattr(gossip, "sample_delivery", scripted)
    heard, messages = [], ChannelConfig(max_age=1)
    mail = federated.empty_message_buffer({"w": jnp.zeros(2)}, {"w": True}, messages)
    for round in range(4):
        sent = {"w": jnp.array([0.0, 10.0 + round])}
        mail, mixed = federated.exchange(
            jax.random.key(0), mail, sent, HALF, shared={"w": True}, messages=messages
        )
        heard.append(float(mixed["w"][0]))
    # Half of: its own 0; 10, a round late; its own 0 (10 is too old); 13.
    assert heard == [0.0, 5.0, 0.0, 6.5]


@pytest.mark.parametrize(
    "messages",
    [
        ChannelConfig(),
        ChannelConfig(drop_probability=0.4),
        ChannelConfig(drop_probability=0.3, delay_probability=0.4, max_age=3),
    ],
    ids=str,
)
def test_agrees_with_letters_in_boxes(messages):
    agents, rounds = 5, 6
    mixing = federated.metropolis_weights(federated.k_regular_graph(agents, 2))
    shared = {"base": True, "head": False}
    params = params_of(agents)
    change = lambda agent, tree: jax.tree.map(
        lambda leaf: 0.9 * leaf + 0.1 * agent, tree
    )
    expected = reference.gossip(
        jax.random.key(KEY),
        [jax.tree.map(lambda leaf, n=n: leaf[n], params) for n in range(agents)],
        np.asarray(mixing),
        rounds,
        shared=shared,
        messages=messages,
        train_fn=change,
    )

    @jax.jit
    def run(key, params):
        mail = federated.empty_message_buffer(params, shared, messages)

        def one(carry, _):
            mail, params = carry
            params = jax.vmap(change)(jnp.arange(agents), params)
            mail, params = federated.exchange(
                key, mail, params, mixing, shared=shared, messages=messages
            )
            return (mail, params), mail.age

        return jax.lax.scan(one, (mail, params), length=rounds)

    (_, found), ages = run(
        jax.random.key(KEY), jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), params)
    )
    expected = jax.tree.map(lambda *leaves: np.stack(leaves), *expected)
    chex.assert_trees_all_close(found, expected, rtol=1e-4, atol=1e-5)
    if messages.max_age > 1:
        # Otherwise no message was late or lost.
        assert set(np.unique(ages)) >= {0, 1, 2}


def test_perfect_messages_are_a_product_and_keep_the_mean():
    params = jax.tree.map(jnp.asarray, params_of(6))
    mixing = federated.metropolis_weights(federated.ring_graph(6))
    shared = {"base": True, "head": True}

    @jax.jit
    def run(key, params):
        mail = federated.empty_message_buffer(params, shared)
        found = federated.exchange(key, mail, params, mixing, shared=shared)[1]
        return found, federated.mix(mixing, params)

    found, product = run(jax.random.key(0), params)
    chex.assert_trees_all_close(found, product)
    mean = functools.partial(jax.tree.map, lambda leaf: np.mean(leaf, axis=0))
    chex.assert_trees_all_close(mean(found), mean(params), atol=1e-6)


def test_where_all_is_lost_everybody_learns_alone():
    params = jax.tree.map(jnp.asarray, params_of(4))
    shared, messages = (
        {"base": True, "head": True},
        ChannelConfig(drop_probability=1.0, max_age=2),
    )
    mixing = federated.metropolis_weights(federated.complete_graph(4))

    @jax.jit
    def run(key, params):
        mail = federated.empty_message_buffer(params, shared, messages)
        return federated.exchange(
            key, mail, params, mixing, shared=shared, messages=messages
        )

    _, found = run(jax.random.key(0), params)
    chex.assert_trees_all_close(found, params, rtol=1e-6)


def test_fates_have_their_probabilities():
    messages = ChannelConfig(drop_probability=0.2, delay_probability=0.3, max_age=1)
    fates = jax.jit(lambda key: gossip.sample_delivery(key, 200, messages))
    in_time, late = map(np.asarray, fates(jax.random.key(0)))
    others = ~np.eye(200, dtype=bool)
    assert in_time.diagonal().all() and not late.diagonal().any()
    # 39,800 links; four standard deviations of a fraction are below 0.01.
    assert abs(in_time[others].mean() - 0.5) < 0.01
    assert abs(late[others].mean() - 0.3) < 0.01
    assert not (in_time & late).any()


def test_some_agents_have_the_fates_that_they_have_among_all():
    messages = ChannelConfig(drop_probability=0.2, delay_probability=0.3, max_age=1)
    some = np.array([2, 3, 7])
    fates = jax.jit(
        lambda key: [gossip.sample_delivery(key, n, messages) for n in (8, some)]
    )
    everybody, found = fates(jax.random.key(0))
    for own, whole in zip(found, everybody, strict=True):
        np.testing.assert_array_equal(own, whole[np.ix_(some, some)])


def test_rounds_have_fates_of_their_own():
    messages, key = ChannelConfig(drop_probability=0.5, max_age=1), jax.random.key(0)
    params = {"w": jnp.zeros(20)}
    mail = federated.empty_message_buffer(params, {"w": True}, messages)
    given = {"shared": {"w": True}, "messages": messages}
    exchange, ages = jax.jit(functools.partial(federated.exchange, **given)), []
    for _ in range(2):
        mail, params = exchange(key, mail, params, np.eye(20))
        ages.append(np.asarray(mail.age) == 0)
    assert (ages[0] != ages[1]).sum() > 100  # About half of 380.


def test_layers_chosen_by_a_traced_alpha_are_those_of_a_python_number():
    names = ("dense_1", "dense_2", "dense_3")
    params = {name: jnp.arange(8.0).reshape(2, 4) + n for n, name in enumerate(names)}

    @jax.jit
    def by_shared(shared):
        mail = federated.empty_message_buffer(params, shared)
        key = jax.random.key(0)
        return federated.exchange(key, mail, params, HALF, shared=shared)[1]

    after = lambda alpha: by_shared(federated.base_layers(names, alpha))
    swept = jax.jit(jax.vmap(after))(jnp.arange(4))
    for alpha in range(4):
        one = jax.tree.map(lambda leaf, a=alpha: leaf[a], swept)
        chex.assert_trees_all_equal(one, after(alpha))
        changed = [bool((one[name] != params[name]).any()) for name in names]
        assert changed == [n < alpha for n in range(3)]


def test_periods_are_a_sweep_too():
    shared = {"w": True}

    @jax.vmap
    def run(period):
        start = {"w": jnp.array([0.0, 8.0])}

        def one(carry, step):
            mail, params = federated.exchange_every(
                period, jax.random.key(0), *carry, HALF, step, shared=shared
            )
            return (mail, {"w": params["w"] + jnp.array([0.0, 8.0])}), params["w"][0]

        return jax.lax.scan(
            one, (federated.empty_message_buffer(start, shared), start), jnp.arange(4)
        )

    (mail, _), w = run(jnp.array([1, 2, 5]))
    assert mail.round.tolist() == [4, 2, 0]
    # Agent 2 gains 8 in each step, half of which reaches the other when they average.
    np.testing.assert_array_equal(w, [[4, 8, 12, 16], [0, 8, 8, 16], [0, 0, 0, 0]])


def test_nothing_comes_from_an_agent_of_weight_zero_not_even_nan():
    kinds = np.array([0, 0, 1])
    mixing = federated.metropolis_weights(kinds[:, None] == kinds[None])
    mixed = federated.mix(mixing, jnp.array([[1.0], [3.0], [jnp.nan]]))
    np.testing.assert_array_equal(mixed, [[2.0], [2.0], [jnp.nan]])


def test_half_precision_is_summed_in_float32():
    x = jnp.full((2048, 1), 1.0, jnp.float16)
    mixed = federated.mix(jnp.full((2048, 2048), 1 / 2048), x)
    assert mixed.dtype == jnp.float16
    np.testing.assert_array_equal(mixed, x)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: ChannelConfig(drop_probability=0.7, delay_probability=0.6),
            "drop_probability + delay_probability must",
        ),
        (
            lambda: ChannelConfig(delay_probability=0.5),
            "max_age must be >= 1 with delay_probability 0.5",
        ),
        (lambda: federated.base_layers(("a", "b"), 3), "alpha must be in [0, 2]"),
        (
            lambda: federated.mix(HALF, {"w": jnp.zeros((3, 2))}),
            "a leading axis of 2 agents as mixing, got an array of shape (3, 2)",
        ),
        (
            lambda: federated.empty_message_buffer({"w": jnp.zeros(2)}, {"v": True}),
            "one entry per layer, ['w'], got ['v']",
        ),
        (
            lambda: federated.exchange_every(
                0, jax.random.key(0), None, {}, HALF, 0, shared={}
            ),
            "period must be >= 1, got 0",
        ),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError) as raised:
        call()
    assert message in str(raised.value)
