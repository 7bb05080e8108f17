"""The environment: table 2.1, Bellman's equation, Gymnax's signatures."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import energy
from jaxanon.energy import OFF, ON, STANDBY, Levels, Series, mdp

TELEVISION = Levels(jnp.float32(2.0), jnp.float32(200.0))
BY_MODE = jnp.array([0.0, 2.0, 200.0])


def series(modes, forecast=None):
    load = BY_MODE[jnp.asarray(modes)]
    return Series(load if forecast is None else forecast, load, TELEVISION)


@pytest.mark.parametrize(
    ("mode", "rewards"),
    # Chosen mode: on, standby, off, as in table 2.1.
    [(ON, (10, -10, -30)), (STANDBY, (-10, 10, 30)), (OFF, (-30, -10, 10))],
)
def test_rewards_are_those_of_table_2_1(mode, rewards):
    actions = jnp.array([ON, STANDBY, OFF])
    assert energy.reward(jnp.full(3, mode), actions).tolist() == list(rewards)


def test_the_optimal_policy_is_the_best_of_the_exact_values():
    modes = jax.random.randint(jax.random.key(0), (50,), 0, 3)
    for discount in (0.0, 0.9, 0.99):
        values = energy.optimal_values(modes, discount)
        best = jnp.argmax(values, axis=1)
        assert best.tolist() == energy.optimal_actions(modes).tolist()


def test_exact_values_agree_with_a_loop():
    modes, discount = [2, 1, 0, 1], 0.9
    table, expected, after = np.array(mdp.REWARDS), [], 0.0
    for mode in reversed(modes):
        expected.append(table[mode] + discount * after)
        after = max(expected[-1])
    found = energy.optimal_values(jnp.array(modes), discount)
    np.testing.assert_allclose(found, expected[::-1], rtol=1e-6)


def test_of_one_mode_for_ever_the_value_is_a_geometric_series():
    values = energy.optimal_values(jnp.full(400, ON), 0.9)
    np.testing.assert_allclose(values[0, ON], 10 / (1 - 0.9), rtol=1e-5)


def rollout(key, env, given, policy, steps):
    """Returns (minute, observation, reward, done, mode) of every step."""
    first, later = jax.random.split(key)
    seen, state = env.reset(first, given)

    def one(carry, number):
        seen, state = carry
        action = policy(seen)
        after, next_state, gained, done, info = env.step(
            jax.random.fold_in(later, number), state, action, given
        )
        return (after, next_state), (state.minute, seen, gained, done, info["mode"])

    return jax.lax.scan(one, (seen, state), jnp.arange(steps))[1]


def test_an_episode_goes_through_the_series_and_the_next_begins_anew():
    modes = jnp.array([0, 1, 2, 1, 0, 2])
    env = energy.environment(6, "modes")
    best = lambda seen: energy.optimal_actions(jnp.argmax(seen[3:]))
    minute, seen, gained, done, mode = jax.jit(
        lambda key: rollout(key, env, series(modes), best, 12)
    )(jax.random.key(0))
    assert minute.tolist() == [*range(6)] * 2
    assert done.tolist() == ([False] * 5 + [True]) * 2
    assert mode.tolist() == modes.tolist() * 2
    assert gained.tolist() == [10, 30, 10, 30, 10, 10] * 2
    np.testing.assert_array_equal(seen[:, 3:], np.eye(3)[np.tile(modes, 2)])


def test_short_episodes_begin_anywhere():
    env = energy.environment(2)
    given = series(jnp.zeros(5, int))
    starts = jax.vmap(lambda key: env.reset(key, given)[1].minute)(
        jax.random.split(jax.random.key(0), 200)
    )
    assert sorted(set(starts.tolist())) == [0, 1, 2, 3]


def test_homes_and_devices_are_axes():
    modes = jnp.array([[[0, 1], [1, 1], [2, 0]]])  # [homes, devices, minutes]
    each = lambda leaf: jnp.broadcast_to(leaf, (1, 3))
    given = Series(BY_MODE[modes], BY_MODE[modes], Levels(*map(each, TELEVISION)))
    env = energy.environment(2)
    keys = jax.random.split(jax.random.key(0), (1, 3))
    _, state = jax.vmap(jax.vmap(env.reset))(keys, given)
    switch_off = jnp.zeros((1, 3), int)
    keys = jax.random.split(jax.random.key(1), (1, 3))
    _, _, gained, _, _ = jax.vmap(jax.vmap(env.step))(keys, state, switch_off, given)
    assert gained.tolist() == [[10, 30, -30]]


def test_what_is_observed_of_power():
    given = series([STANDBY], forecast=jnp.array([200.0]))
    # log(1 + 200 / 0.2) / 10 and log(1 + 2 / 0.2) / 10.
    expected = [np.log(1001) / 10, np.log(11) / 10]
    np.testing.assert_allclose(energy.observation(given, 0), expected, rtol=1e-6)
    chex.assert_trees_all_equal(
        energy.observation(given, 7), energy.observation(given, 0)
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: energy.environment(0), "minutes must be >= 1, got 0"),
        (lambda: energy.environment(1, "price"), "observed must be one of"),
        (lambda: energy.observation(series([0]), 0, "mode"), "observed must be one of"),
        (
            lambda: energy.environment(9).reset(jax.random.key(0), series([0, 1])),
            "at least 9 minutes, .* got 2",
        ),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
