"""Deep Q-learning: acting, replay and training as one pure function."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from jaxanon.kernels.bounds import check, setting
from jaxanon.models.predictors import Predictor

HYPER = {"learning_rate": 1e-3, "discount": 0.9, "exploration_epsilon": 0.1}


@dataclasses.dataclass(frozen=True, kw_only=True)
class DQNConfig:
    """Static settings of deep Q-learning.

    Raises:
      TypeError: if a setting has the wrong type.
      ValueError: if a setting is below 1, or ``capacity`` is less than ``batch_size``
        or ``num_envs``.

    Example:
      >>> DQNConfig(double_dqn=True).capacity
      2000
    """

    capacity: int = setting(2000, at_least=1, help="transitions in the replay memory")
    batch_size: int = setting(
        32,
        at_least=1,
        help="transitions per training step. Training follows each step of the "
        "environments once enough are stored. The chapter gives no value",
    )
    target_update_interval: int = setting(
        100, at_least=1, help="training steps between updates of the target network"
    )
    double_dqn: bool = setting(
        False,
        help="whether the online network selects the actions of targets",
    )
    num_envs: int = setting(1, at_least=1, help="number of environments per agent")

    def __post_init__(self):
        check(self)
        least = max(self.batch_size, self.num_envs)
        if self.capacity < least:
            raise ValueError(
                f"capacity must be >= {least}, the maximum of batch_size and num_envs, "
                f"got {self.capacity!r}."
            )


class Transition(NamedTuple):
    """One step of an environment, or a batch of steps."""

    observation: jax.Array  # float[..., observed]
    action: jax.Array  # int32[...]
    reward: jax.Array  # float32[...]
    following: jax.Array  # float[..., observed]; next observation
    ended: jax.Array  # bool[...]; whether the episode ended


class Replay(NamedTuple):
    """Ring buffer of transitions."""

    kept: Transition  # [capacity, ...]
    count: jax.Array  # int32[]; total number stored


class AgentState(NamedTuple):
    """State of an agent, which is checkpointed."""

    step: jax.Array  # int32[]; steps of the environments
    learned: jax.Array  # int32[]; training steps
    params: dict  # layers of the network
    target: dict  # params at the last update of the target
    opt_state: optax.OptState
    replay: Replay
    observation: jax.Array  # float[num_envs, observed]
    place: Any  # [num_envs, ...]; states of the environments
    hyper: dict[str, jax.Array]  # float[] each; may vary in a sweep


class Agent(NamedTuple):
    """Functions of an agent: ``init`` and ``update``.

    ``init(key, env_params, **hyper) -> AgentState``. ``update(key, state, env_params)
    -> (state, info)`` performs one step. It takes the key of the run and uses
    ``fold_in(key, state.step)``. ``info`` has ``reward``, the mean over environments,
    and ``loss``, which is 0 before training starts. Use ``vmap`` for several agents.
    """

    init: Callable
    update: Callable


def td_target(reward, ended, discount, target_values, action_values):
    """Returns the temporal-difference targets of transitions.

    Args:
      reward: ``float[batch]``.
      ended: ``bool[batch]``, whether the transition ends an episode.
      discount: ``float[]``.
      target_values: ``float[batch, actions]``, values of the next state by the target
        network.
      action_values: ``float[batch, actions]``, values that select the next action:
        those of the target network, or of the online network in double Q-learning.

    Returns:
      ``float[batch]``.

    Example:
      >>> target, online = jnp.array([[4.0, 2.0]]), jnp.array([[0.0, 1.0]])
      >>> one, no = jnp.ones(1), jnp.array([False])
      >>> td_target(one, no, 0.5, target, target)
      Array([3.], dtype=float32)
      >>> td_target(one, no, 0.5, target, online)
      Array([2.], dtype=float32)

    References:
      Mnih et al., Human-level control through deep reinforcement learning, Nature
      2015; van Hasselt et al., Deep reinforcement learning with double Q-learning, AAAI
      2016.
    """
    best = jnp.argmax(action_values, axis=1)
    after = jnp.take_along_axis(target_values, best[:, None], axis=1)[:, 0]
    return reward + jnp.where(ended, 0, discount * after)


def greedy(net: Predictor, params, observed):
    """Returns the actions with the highest values; ties give the first.

    Args:
      net: ``Predictor``.
      params: parameters of the network.
      observed: ``float[batch, observed]``.

    Returns:
      ``int32[batch]``.

    Example:
      >>> net = Predictor(None, lambda layers, x: x @ layers, ())
      >>> greedy(net, jnp.array([[1.0, -1.0]]), jnp.array([[2.0], [-2.0]]))
      Array([0, 1], dtype=int32)
    """
    return jnp.argmax(net.apply(params, observed), axis=1).astype(jnp.int32)


def dqn(env, net: Predictor, config: DQNConfig) -> Agent:
    """Builds deep Q-learning with replay, a target network, Huber loss and Adam.

    In each step the agent acts in all its environments, randomly with probability
    ``exploration_epsilon`` and otherwise greedily, stores the transitions, and trains
    on one batch. ``init`` takes the hyper-parameters ``learning_rate`` (1e-3),
    ``discount`` (0.9) and ``exploration_epsilon`` (0.1; the chapter gives no value).
    With deterministic transitions, as in chapter 2, it converges to Bellman's values.
    Otherwise Huber's loss shifts the values from the mean towards the median of future
    returns.

    Args:
      env: ``Environment``, or any environment with Gymnax's ``reset`` and ``step``,
        ``num_actions`` and ``num_observed``, that resets itself.
      net: result of ``q_network``.
      config: ``DQNConfig``.

    Returns:
      ``Agent``.

    Raises:
      TypeError: from ``init``, for unknown hyper-parameters.

    Example:
      >>> from jaxanon.energy import Levels, Series, environment
      >>> from jaxanon.models.predictors import q_network
      >>> env = environment(3, "modes")
      >>> series = Series(jnp.zeros(3), jnp.ones(3), Levels(1.0, 50.0))
      >>> agent = dqn(env, q_network(6, 3, (8,)), DQNConfig(batch_size=2))
      >>> state = agent.init(jax.random.key(0), series, exploration_epsilon=1.0)
      >>> state, info = jax.jit(agent.update)(jax.random.key(1), state, series)
      >>> state.replay.count, info["loss"]
      (Array(1, dtype=int32), Array(0., dtype=float32))

    References:
      Chapter 2, section 2.2.3 and algorithm 2.
    """
    optimizer = optax.scale_by_adam()

    def init(key, env_params, **hyper):
        unknown = sorted(set(hyper) - set(HYPER))
        if unknown:
            raise TypeError(
                f"init takes the hyper-parameters {sorted(HYPER)}, got {unknown}."
            )
        net_key, env_key = jax.random.split(key)
        params = net.init(net_key)
        keys = jax.random.split(env_key, config.num_envs)
        observed, place = jax.vmap(env.reset, in_axes=(0, None))(keys, env_params)
        to_array = lambda value: jnp.asarray(value, jnp.float32)
        return AgentState(
            step=jnp.zeros((), jnp.int32),
            learned=jnp.zeros((), jnp.int32),
            params=params,
            target=jax.tree.map(jnp.copy, params),
            opt_state=optimizer.init(params),
            replay=blank(config.capacity, env.num_observed),
            observation=observed,
            place=place,
            hyper={name: to_array(value) for name, value in (HYPER | hyper).items()},
        )

    def act(key, state, env_params):
        coin_key, random_key, env_key = jax.random.split(key, 3)
        shape = (config.num_envs,)
        at_random = jax.random.randint(random_key, shape, 0, env.num_actions)
        coin = jax.random.bernoulli(coin_key, state.hyper["exploration_epsilon"], shape)
        best = greedy(net, state.params, state.observation)
        action = jnp.where(coin, at_random, best)
        keys = jax.random.split(env_key, config.num_envs)
        step = jax.vmap(env.step, in_axes=(0, 0, 0, None))
        observed, place, reward, done, _ = step(keys, state.place, action, env_params)
        new = Transition(state.observation, action, reward, observed, done)
        replay = store(state.replay, new)
        state = state._replace(observation=observed, place=place, replay=replay)
        return state, jnp.mean(reward)

    def loss_fn(params, target, batch, discount):
        rated = net.apply(target, batch.following)
        selected = net.apply(params, batch.following) if config.double_dqn else rated
        worth = td_target(batch.reward, batch.ended, discount, rated, selected)
        values = net.apply(params, batch.observation)
        value = jnp.take_along_axis(values, batch.action[:, None], axis=1)[:, 0]
        return jnp.mean(optax.huber_loss(value, jax.lax.stop_gradient(worth)))

    def learn(key, state, enough):
        batch = draw(key, state.replay, config.batch_size)
        loss, gradient = jax.value_and_grad(loss_fn)(
            state.params, state.target, batch, state.hyper["discount"]
        )
        # With zero gradients Adam does not move, which avoids selecting whole trees.
        gradient = jax.tree.map(lambda g: jnp.where(enough, g, 0), gradient)
        direction, opt_state = optimizer.update(gradient, state.opt_state)
        down = lambda p, d: p - state.hyper["learning_rate"] * d
        params = jax.tree.map(down, state.params, direction)
        learned = state.learned + enough
        due = enough & (learned % config.target_update_interval == 0)
        refresh = lambda new, old: jnp.where(due, new, old)
        target = jax.tree.map(refresh, params, state.target)
        counts = (
            optax.tree_utils.tree_get(each, "count")
            for each in (opt_state, state.opt_state)
        )
        count = jnp.where(enough, *counts)
        after = state._replace(
            learned=learned,
            params=params,
            target=target,
            opt_state=optax.tree_utils.tree_set(opt_state, count=count),
        )
        return after, jnp.where(enough, loss, 0)

    def update(key, state, env_params):
        act_key, learn_key = jax.random.split(jax.random.fold_in(key, state.step))
        state, reward = act(act_key, state, env_params)
        enough = state.replay.count >= config.batch_size
        state, loss = learn(learn_key, state, enough)
        return state._replace(step=state.step + 1), {"reward": reward, "loss": loss}

    return Agent(init, update)


def blank(capacity: int, num_observed: int) -> Replay:
    """Returns an empty replay memory.

    Args:
      capacity: maximum number of transitions.
      num_observed: length of an observation.

    Example:
      >>> blank(4, 2).kept.observation.shape
      (4, 2)
    """
    seen = jnp.zeros((capacity, num_observed))
    numbers = jnp.zeros(capacity, jnp.int32), jnp.zeros(capacity)
    kept = Transition(seen, *numbers, seen, jnp.zeros(capacity, bool))
    return Replay(kept, jnp.zeros((), jnp.int32))


def store(replay: Replay, new: Transition) -> Replay:
    """Stores transitions, replacing the oldest.

    Args:
      replay: replay memory.
      new: transitions ``[n, ...]`` in order, with n at most the capacity.

    Example:
      >>> one = Transition(jnp.ones((1, 2)), jnp.array([1]), jnp.ones(1),
      ...                  jnp.ones((1, 2)), jnp.array([False]))
      >>> store(blank(4, 2), one).kept.action
      Array([1, 0, 0, 0], dtype=int32)
    """
    number, capacity = len(new.action), len(replay.kept.action)
    # int32 overflows after 2**31 transitions, 4,000 years of minutes.
    places = (replay.count + jnp.arange(number)) % capacity
    put = lambda old, now: old.at[places].set(now.astype(old.dtype))
    return Replay(jax.tree.map(put, replay.kept, new), replay.count + number)


def draw(key, replay: Replay, number: int) -> Transition:
    """Samples stored transitions uniformly with replacement.

    Args:
      key: typed PRNG key.
      replay: replay memory; if empty, blank transitions are returned.
      number: number of transitions.

    Example:
      >>> draw(jax.random.key(0), blank(4, 2), 3).action
      Array([0, 0, 0], dtype=int32)
    """
    filled = jnp.minimum(replay.count, len(replay.kept.action))
    places = jax.random.randint(key, (number,), 0, jnp.maximum(filled, 1))
    return jax.tree.map(lambda leaf: leaf[places], replay.kept)
