"""Early stopping of PrivateHub's pre-training by the loss on held-out windows."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.core.method import Method
from jaxanon.methods.common import diffusion, early_stopping
from jaxanon.methods.common.diffusion import AVERAGE, DENOISER
from jaxanon.methods.privatehub.data import PrivateHubBatch
from jaxanon.methods.privatehub.networks import PrivateHubNetworks

RUNNING, WATCH = "running mean", "watch"  # Parameter groups.


class PrivateHubStoppingState(NamedTuple):
    """State of early stopping."""

    seen: early_stopping.Patience
    key: jax.Array  # uint32[...], key data of the noise; the same for every evaluation


def groups(key, params) -> dict:
    """Returns further parameter groups: the running mean and the stopping state."""
    running = jax.tree.map(jnp.copy, params[AVERAGE])
    watch = PrivateHubStoppingState(early_stopping.patience(), jax.random.key_data(key))
    return {RUNNING: running, WATCH: watch}


def over(nets: PrivateHubNetworks):
    """Returns ``(params) -> bool[]``, whether pre-training has stopped."""
    return lambda params: params[WATCH].seen.waited >= nets.config.patience


def watching(nets: PrivateHubNetworks, rounds: int, method: Method) -> Method:
    """Returns a method that evaluates held-out windows at the end of each epoch.

    Sampling uses the weights of the best evaluation. Fine-tuning starts from them and
    samples with the running mean again.

    Args:
      nets: ``PrivateHubNetworks``.
      rounds: number of rounds per epoch.
      method: method whose components stop once ``over`` is true, and whose rounds
        update ``RUNNING``.

    Returns:
      ``Method``, whose info has ``epochs without gain``.
    """
    last = rounds * nets.config.pretraining if nets.config.classes_to_hide else None

    def update(key, state, data):
        state, info = method.update(key, state, data)
        params = state.params
        due = (state.round % rounds == 0) & ~over(nets)(params)
        if last is not None:
            due &= state.round <= last
        evaluate = lambda: _evaluate(nets, params, data.held_out)
        skip = lambda: (params[WATCH], params[AVERAGE])
        watch, best = jax.lax.cond(due, evaluate, skip)
        updates = {WATCH: watch, AVERAGE: best}
        if last is not None:
            begins, tuned = state.round == last, state.round > last
            updates[DENOISER] = _where(begins, best, params[DENOISER])
            updates[RUNNING] = _where(begins, best, params[RUNNING])
            updates[AVERAGE] = _where(tuned, params[RUNNING], best)
        waited = watch.seen.waited.astype(jnp.float32)
        info = info | {"epochs without gain": waited}
        return state._replace(params=params | updates), info

    return method._replace(update=update)


def _evaluate(nets, params, held_out):
    """Returns the stopping state and the best weights after one more evaluation."""
    watch = params[WATCH]
    key = jax.random.wrap_key_data(watch.key)
    loss = held_out_loss(nets, key, params[RUNNING], held_out)
    seen, better = early_stopping.look(watch.seen, loss)
    best = _where(better, params[RUNNING], params[AVERAGE])
    return watch._replace(seen=seen), best


def held_out_loss(nets: PrivateHubNetworks, key, denoiser, batch: PrivateHubBatch):
    """Returns ``float[]``, the mean squared error of windows with their full condition.

    Args:
      nets: ``PrivateHubNetworks``.
      key: typed PRNG key of steps and noise.
      denoiser: parameters of the denoiser.
      batch: batch of any size, which is processed in parts.
    """
    count = len(batch.windows)
    size = min(nets.config.batch_size, count)
    num_parts = -(-count // size)
    indices = jnp.arange(num_parts * size).reshape(num_parts, size)

    def part_loss(part):
        number, index = part
        step_key, noise_key = jax.random.split(jax.random.fold_in(key, number))
        rows = jax.tree.map(lambda leaf: leaf[index % count], batch)
        t = diffusion.drawn_steps(nets, step_key, size)
        x_t, target = diffusion.noised(nets, noise_key, rows.windows, t)
        errors = diffusion.errors(nets, denoiser, x_t, target, t, rows.condition)
        return jnp.sum(errors * (index < count))

    return jnp.sum(jax.lax.map(part_loss, (jnp.arange(num_parts), indices))) / count


def _where(condition, x, y):
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), x, y)
