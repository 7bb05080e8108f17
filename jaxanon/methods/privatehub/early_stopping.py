"""PrivateHub's pre-training stops where held-out windows say so."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.core.method import Method
from jaxanon.methods.common import diffusion, early_stopping
from jaxanon.methods.common.diffusion import AVERAGE, DENOISER
from jaxanon.methods.privatehub.data import PrivateHubBatch
from jaxanon.methods.privatehub.networks import PrivateHubNetworks

RUNNING, WATCH = "running mean", "watch"  # Groups of the parameters.


class PrivateHubStoppingState(NamedTuple):
    """What is known of the loss of held-out windows."""

    seen: early_stopping.Patience
    key: jax.Array  # uint32[...], data of the key of its noise, the same at every look


def groups(key, params) -> dict:
    """Groups beside ``params``: the running mean so far, and what is known."""
    running = jax.tree.map(jnp.copy, params[AVERAGE])
    watch = PrivateHubStoppingState(early_stopping.patience(), jax.random.key_data(key))
    return {RUNNING: running, WATCH: watch}


def over(nets: PrivateHubNetworks):
    """``(params) -> bool[]``, whether pre-training has stopped."""
    return lambda params: params[WATCH].seen.waited >= nets.config.patience


def watching(nets: PrivateHubNetworks, rounds: int, method: Method) -> Method:
    """A method that looks at held-out windows at the end of each epoch.

    What samples are the weights of the best look; in fine-tuning, which begins from
    them, the running mean again.

    Args:
      nets: ``PrivateHubNetworks``.
      rounds: of an epoch.
      method: whose players rest once ``over`` says so, and whose rounds renew
        ``RUNNING``.

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
        look = lambda: _look(nets, params, data.held_out)
        rest = lambda: (params[WATCH], params[AVERAGE])
        watch, best = jax.lax.cond(due, look, rest)
        renewed = {WATCH: watch, AVERAGE: best}
        if last is not None:
            begins, tuned = state.round == last, state.round > last
            renewed[DENOISER] = _either(begins, best, params[DENOISER])
            renewed[RUNNING] = _either(begins, best, params[RUNNING])
            renewed[AVERAGE] = _either(tuned, params[RUNNING], best)
        waited = watch.seen.waited.astype(jnp.float32)
        info = info | {"epochs without gain": waited}
        return state._replace(params=params | renewed), info

    return method._replace(update=update)


def _look(nets, params, held_out):
    """What is known, and the best weights, after one more look."""
    watch = params[WATCH]
    key = jax.random.wrap_key_data(watch.key)
    loss = held_out_loss(nets, key, params[RUNNING], held_out)
    seen, better = early_stopping.look(watch.seen, loss)
    best = _either(better, params[RUNNING], params[AVERAGE])
    return watch._replace(seen=seen), best


def held_out_loss(nets: PrivateHubNetworks, key, denoiser, batch: PrivateHubBatch):
    """``float[]``, mean squared error of windows that are told all that is known.

    Args:
      nets: ``PrivateHubNetworks``.
      key: typed PRNG key of steps and noise.
      denoiser: its parameters.
      batch: of any size; it is taken in parts.
    """
    number = len(batch.windows)
    size = min(nets.config.batch_size, number)
    parts = -(-number // size)
    place = jnp.arange(parts * size).reshape(parts, size)

    def part(given):
        index, place = given
        step_key, noise_key = jax.random.split(jax.random.fold_in(key, index))
        own = jax.tree.map(lambda leaf: leaf[place % number], batch)
        t = diffusion.drawn_steps(nets, step_key, size)
        x_t, wanted = diffusion.noised(nets, noise_key, own.windows, t)
        found = diffusion.errors(nets, denoiser, x_t, wanted, t, own.condition)
        return jnp.sum(found * (place < number))

    return jnp.sum(jax.lax.map(part, (jnp.arange(parts), place))) / number


def _either(which, one, other):
    return jax.tree.map(lambda a, b: jnp.where(which, a, b), one, other)
