"""Deep Q-learning in the style of PureJaxRL: one scan, a buffer, Flax and Optax.

After Lu et al., Discovered policy optimisation (PureJaxRL), 2022. Each agent has one
environment; agents are vmapped or sequential. Each step acts, stores the transition,
and trains on one batch once the buffer has enough. Network, environment, buffer size,
batch, target period, loss and optimizer equal ours, so a step is the same work.
"""

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn
from flax.training.train_state import TrainState

from jaxanon import energy

CAPACITY, BATCH, TARGET_EVERY = 2000, 32, 100
RATE, DISCOUNT, EPSILON = 1e-3, 0.9, 0.1


class Net(nn.Module):
    """Dense layers with ReLU."""

    hidden: tuple
    outputs: int = 3

    @nn.compact
    def __call__(self, x):
        """Maps ``float[..., seen]`` to ``float[..., outputs]``."""
        for units in self.hidden:
            x = nn.relu(nn.Dense(units, kernel_init=nn.initializers.he_normal())(x))
        return nn.Dense(self.outputs)(x)


class State(TrainState):
    """Train state with the parameters of the target network."""

    target: dict


def loop(hidden, steps):
    """Returns ``(key, series) -> rewards`` that runs ``steps`` steps."""
    env, net = energy.environment(60), Net(hidden)

    def run(key, series):
        key, net_key, env_key = jax.random.split(key, 3)
        seen, place = env.reset(env_key, series)
        params = net.init(net_key, seen)
        state = State.create(
            apply_fn=net.apply,
            params=params,
            target=jax.tree.map(jnp.copy, params),
            tx=optax.adam(RATE),
        )
        blank = {
            "seen": jnp.zeros((CAPACITY, 2)),
            "action": jnp.zeros(CAPACITY, jnp.int32),
            "reward": jnp.zeros(CAPACITY),
            "after": jnp.zeros((CAPACITY, 2)),
            "done": jnp.zeros(CAPACITY, bool),
        }

        def learn(state, buffer, filled, key):
            rows = jax.random.randint(key, (BATCH,), 0, filled)
            batch = {name: values[rows] for name, values in buffer.items()}
            best = jnp.max(net.apply(state.target, batch["after"]), axis=-1)
            goal = batch["reward"] + (1 - batch["done"]) * DISCOUNT * best

            def loss(params):
                values = net.apply(params, batch["seen"])
                own = jnp.take_along_axis(values, batch["action"][:, None], -1)[:, 0]
                return jnp.mean(optax.huber_loss(own, goal))

            return state.apply_gradients(grads=jax.grad(loss)(state.params))

        def step(carry, number):
            state, buffer, seen, place, key = carry
            key, coin, choice, env_key, draw = jax.random.split(key, 5)
            greedy = jnp.argmax(net.apply(state.params, seen))
            at_random = jax.random.randint(choice, (), 0, 3)
            explores = jax.random.uniform(coin) < EPSILON
            action = jnp.where(explores, at_random, greedy)
            after, place, reward, done, _ = env.step(env_key, place, action, series)
            new = {"seen": seen, "action": action, "reward": reward, "after": after}
            new["done"] = done
            at = number % CAPACITY
            buffer = {name: buffer[name].at[at].set(new[name]) for name in buffer}
            filled = jnp.minimum(number + 1, CAPACITY)
            state = jax.lax.cond(
                filled >= BATCH,
                lambda state: learn(state, buffer, filled, draw),
                lambda state: state,
                state,
            )
            target = jax.lax.cond(
                number % TARGET_EVERY == 0,
                lambda: state.params,
                lambda: state.target,
            )
            state = state.replace(target=target)
            return (state, buffer, after, place, key), reward

        begin = state, blank, seen, place, key
        return jax.lax.scan(step, begin, jnp.arange(steps))[1]

    return run
