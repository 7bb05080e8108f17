"""Deep Q-learning: targets by hand, a ring and a deque, a small MDP's fixed point."""

import collections
import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import energy
from jaxanon.energy import DQNConfig, Levels, Series
from jaxanon.energy.q_learning import Transition, blank, draw, store, td_target
from jaxanon.models.predictors import Predictor, q_network

pytestmark = pytest.mark.slow

DISCOUNT = 0.8


class Chain:
    """Four states in a row; 1 goes right, 0 left; the last has a reward.

    Transitions are deterministic, as in the chapter; otherwise the fixed point of
    Huber's loss differs from Bellman's.
    """

    num_actions, num_observed = 2, 4

    def reset(self, key, params):
        del key, params
        return jnp.eye(4)[0], jnp.int32(0)

    def step(self, key, state, action, params):
        del key
        after = jnp.clip(state + 2 * action - 1, 0, 3).astype(jnp.int32)
        paid = jnp.where(state == 3, params, 0.0)
        return jnp.eye(4)[after], after, paid, jnp.array(False), {}


def fixed_point(pay):
    """Returns the values of the chain by value iteration in plain loops."""
    values = np.zeros((4, 2))
    for _ in range(500):
        best = values.max(axis=1)
        for state in range(4):
            to = [max(state - 1, 0), min(state + 1, 3)]
            for action in range(2):
                after = best[to[action]]
                values[state, action] = pay * (state == 3) + DISCOUNT * after
    return values


@functools.partial(jax.jit, static_argnames=("agent", "steps"))
def run(agent, key, state, env_params, steps):
    one = lambda state, _: agent.update(key, state, env_params)
    return jax.lax.scan(one, state, length=steps)


@pytest.mark.parametrize("double", [False, True])
def test_a_small_mdp_against_value_iteration(double):
    net = q_network(4, 2, (16,))
    config = DQNConfig(
        double_dqn=double, num_envs=8, target_update_interval=20, capacity=4000
    )
    agent = energy.dqn(Chain(), net, config)
    start = functools.partial(agent.init, discount=DISCOUNT, exploration_epsilon=1.0)
    pays = jnp.array([1.0, 2.0])  # Two agents.
    keys = jax.random.split(jax.random.key(0), 2)
    states = jax.vmap(start)(keys, pays)
    learn = jax.vmap(lambda key, state, pay: run(agent, key, state, pay, 1500)[0])
    states = learn(jax.random.split(jax.random.key(1), 2), states, pays)
    found = jax.vmap(net.apply, in_axes=(0, None))(states.params, jnp.eye(4))
    for pay, values in zip(pays, found, strict=True):
        expected = fixed_point(float(pay))
        np.testing.assert_allclose(values, expected, atol=0.03 * expected.max())
        assert values.argmax(axis=1).tolist() == expected.argmax(axis=1).tolist()


def test_the_chain_s_own_fixed_point_tells_left_from_right():
    values = fixed_point(1.0)
    assert values.argmax(axis=1).tolist() == [1, 1, 1, 1]
    # Otherwise the test above could not fail.
    assert (values[:, 1] - values[:, 0]).min() > 0.1


def test_targets_by_hand():
    rated = jnp.array([[1.0, 3.0], [5.0, 2.0], [7.0, 9.0]])
    own = jnp.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    reward, ended = jnp.array([1.0, 0.0, 2.0]), jnp.array([False, False, True])
    target = functools.partial(td_target, reward, ended, 0.5, rated)
    assert target(rated).tolist() == [1 + 1.5, 2.5, 2.0]
    # Double: the online network chooses, the target network evaluates.
    assert target(own).tolist() == [1 + 0.5, 1.0, 2.0]


def transition(number):
    value = jnp.float32(number)[None]
    seen = jnp.stack([value, -value], axis=1)
    return Transition(seen, value.astype(jnp.int32), value, seen + 1, value > 3)


def test_a_ring_is_a_deque():
    replay, kept = blank(5, 2), collections.deque(maxlen=5)
    put = jax.jit(store)
    for number in range(0, 14, 2):
        pair = [transition(number), transition(number + 1)]
        replay = put(replay, jax.tree.map(lambda *a: jnp.concatenate(a), *pair))
        kept.extend(pair)
        there = sorted(replay.kept.action[: min(int(replay.count), 5)].tolist())
        assert there == sorted(int(one.action[0]) for one in kept)
    last = jax.tree.map(lambda leaf: leaf[13 % 5][None], replay.kept)
    chex.assert_trees_all_equal(last, transition(13))


def test_draws_are_even_and_only_of_what_is_there():
    replay = blank(10, 2)
    for number in range(4):
        replay = store(replay, transition(7 + number))
    counts = collections.Counter(draw(jax.random.key(0), replay, 4000).action.tolist())
    assert sorted(counts) == [7, 8, 9, 10]
    # 1,000 each, with a standard deviation of 27.
    assert max(abs(count - 1000) for count in counts.values()) < 4 * 28


def linear(layers, observed):
    return observed @ layers["w"]


def test_one_learning_step_by_hand():
    """A linear network's first step of Adam follows the sign of the gradient."""
    w = jnp.array([[1.0, 2.0, 0.0], [0.0, -1.0, 4.0]])
    net = Predictor(lambda key: {"w": w}, linear, ("w",))
    env = energy.environment(1)
    given = Series(jnp.zeros(1), jnp.full(1, 60.0), Levels(2.0, 60.0))
    agent = energy.dqn(env, net, DQNConfig(batch_size=1))
    state = agent.init(
        jax.random.key(0), given, exploration_epsilon=0.0, learning_rate=0.5
    )
    after, info = jax.jit(agent.update)(jax.random.key(1), state, given)
    # The observation is (0, log(301) / 10) with values (0, -0.57, 2.28). The device
    # stays on with reward 10, and the episode ends. Huber's loss of 10 - 2.28 subtracts
    # 0.5.
    seen = np.log(301) / 10
    np.testing.assert_allclose(info["loss"], 10 - 4 * seen - 0.5, rtol=1e-5)
    assert info["reward"] == 10
    expected = np.array(w)
    expected[1, 2] += 0.5
    np.testing.assert_allclose(after.params["w"], expected, rtol=1e-5)
    assert after.learned == 1


def small(**settings):
    env = energy.environment(5)
    series = Series(*2 * (jnp.array([0.0, 1.0, 100.0, 1.0, 1.0]),), Levels(1.0, 100.0))
    net = q_network(2, 3, (8,))
    agent = energy.dqn(env, net, DQNConfig(**settings))
    return agent, agent.init(jax.random.key(0), series), series


def test_going_on_is_as_not_having_stopped():
    agent, state, series = small(batch_size=4, num_envs=2, target_update_interval=3)
    once, _ = run(agent, jax.random.key(1), state, series, 10)
    half, _ = run(agent, jax.random.key(1), state, series, 5)
    twice, _ = run(agent, jax.random.key(1), half, series, 5)
    chex.assert_trees_all_equal(once, twice)


def test_nothing_is_learned_before_there_is_a_batch_and_the_target_waits():
    agent, state, series = small(batch_size=4, target_update_interval=2)
    losses, changed = [], []
    one = jax.jit(lambda state: agent.update(jax.random.key(1), state, series))
    for _ in range(7):
        after, info = one(state)
        losses.append(float(info["loss"]) > 0)
        same = jax.tree.map(
            lambda a, b: bool((a == b).all()), after.target, state.target
        )
        changed.append(not all(jax.tree.leaves(same)))
        state = after
    assert losses == [False] * 3 + [True] * 4  # From the fourth transition on.
    assert changed == [False] * 4 + [True, False, True]  # Every second learning step.
    chex.assert_trees_all_equal(state.target, state.params)


@pytest.mark.parametrize(("epsilon", "share"), [(0.0, 0), (1.0, 2 / 3), (0.3, 0.2)])
def test_epsilon_is_the_share_of_random_actions(epsilon, share):
    """A third of random actions are also optimal."""
    net = Predictor(lambda key: {"w": jnp.array([[0.0, 0.0, 1.0]] * 2)}, linear, ("w",))
    config = DQNConfig(num_envs=900, batch_size=1000, capacity=1000)
    agent = energy.dqn(energy.environment(1), net, config)
    series = Series(jnp.ones(1), jnp.ones(1), Levels(1.0, 60.0))
    state = agent.init(jax.random.key(0), series, exploration_epsilon=epsilon)
    state, _ = jax.jit(agent.update)(jax.random.key(1), state, series)
    others = float((state.replay.kept.action[:900] != 2).mean())
    assert abs(others - share) < 4 * (share * (1 - share) / 900) ** 0.5 + 1e-9


def test_networks_start_with_the_signal_at_its_size():
    net = q_network(2, 3)
    observed = jax.random.uniform(jax.random.key(0), (64, 2))
    worths = net.apply(net.init(jax.random.key(1)), observed)
    assert worths.shape == (64, 3)
    assert 0.1 < float(jnp.std(worths)) < 3  # Lecun's would leave a sixteenth.


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"capacity": 31}, "capacity must be >= 32, the maximum of batch_size"),
        ({"num_envs": 40, "capacity": 39}, "capacity must be >= 40"),
    ],
)
def test_configs_check_themselves(settings, message):
    with pytest.raises(ValueError, match=message):
        DQNConfig(**settings)


def test_unknown_hyper_parameters_are_refused():
    agent, _, series = small()
    with pytest.raises(
        TypeError, match=r"'exploration_epsilon', 'learning_rate'\], got \['eps'\]"
    ):
        agent.init(jax.random.key(0), series, eps=0.1)
