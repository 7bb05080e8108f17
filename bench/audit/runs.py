"""Audits of whole trainings in one run with many canaries, with and without bugs."""

import contextlib
import dataclasses
from collections.abc import Callable
from typing import NamedTuple
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from audit.releases import BUGS, HONEST, PLANTED, Bug
from harness.data import made_spec
from jaxanon import attacks, energy, federated, kernels
from jaxanon.datasets import Windows, by_client
from jaxanon.energy import config as energy_config
from jaxanon.federated import PoissonSampling
from jaxanon.federated.gossip import private_gossip
from jaxanon.methods.privatehub import data as privatehub_data
from jaxanon.methods.privatehub import dp_sgd, networks
from jaxanon.methods.privatehub.config import PrivateHubConfig, guarantee_of
from jaxanon.privacy import epsilon_spent

DELTA = 1e-5
SIDE = 128  # Side length of a square of numbers, one per canary.
FAR = 1e3  # Norm of a canary's gradient; the clip norm is 1.


class Training(NamedTuple):
    """A training with observed steps, and its claimed ε for a canary."""

    name: str
    claimed: float
    observe: Callable  # (key, inside) -> float[canaries]
    canaries: int


def counted(training: Training) -> dict[str, float]:
    """Returns the ε measured in one run, without and with each bug in its kernels."""
    key, count = lambda: jax.random.key(3), training.canaries
    how = {"guesses": count // 20, "delta": DELTA}
    found = {HONEST: attacks.one_run(key(), training.observe, count, **how).epsilon}

    @jax.jit  # Compiled once for all bugs.
    def evidence(key, inside, noise, reach, bare):
        with planted(Bug(noise, reach, bare)):
            return training.observe(key, inside)

    for name in PLANTED:
        coin_key, run_key = jax.random.split(key())  # As in ``one_run``.
        inside = jax.random.bernoulli(coin_key, shape=(count,))
        told = evidence(run_key, inside, **BUGS[name]._asdict())
        found[name] = attacks.guess_canaries(told, inside, **how).epsilon
    return found


@contextlib.contextmanager
def planted(bug: Bug):
    """Patches kernels to clip late, add too little noise, or skip the largest leaf."""
    if bug is BUGS[HONEST]:  # Other bugs may have traced sizes.
        yield
        return
    sum_up, ghost = kernels.clipped_sum, kernels.clipped_gradient_sum
    add, alone = kernels.add_noise_to_sum, private_gossip.clip_and_noise_per_client
    times = lambda by, numbers: jax.tree.map(lambda one: by * one, numbers)
    beyond = lambda norms: times(bug.reach, norms)

    def said(total):
        return dataclasses.replace(
            total, clip_norms=times(1 / bug.reach, total.clip_norms)
        )

    def rows_beyond(rows, norms, **options):
        return said(sum_up(rows, beyond(norms), **options))

    def ghosts_beyond(loss_fn, params, batch, norms, **options):
        total, info = ghost(loss_fn, params, batch, beyond(norms), **options)
        return said(total), info

    def little(key, total, multipliers, **options):
        noisy = add(key, total, times(bug.noise, multipliers), **options)
        return _bare_if(bug.bare, total.value, noisy)

    def clients(key, rows, norm, multiplier, **options):
        norm, multiplier = bug.reach * norm, bug.noise * multiplier / bug.reach
        noisy = alone(key, rows, norm, multiplier, **options)
        return _bare_if(bug.bare, kernels.clip_rows(rows, norm, **options), noisy)

    with (
        mock.patch.object(kernels, "clipped_sum", rows_beyond),
        mock.patch.object(kernels, "clipped_gradient_sum", ghosts_beyond),
        mock.patch.object(kernels, "add_noise_to_sum", little),
        mock.patch.object(private_gossip, "clip_and_noise_per_client", clients),
    ):
        yield


def _bare_if(bare, clipped, noisy):
    """Returns noisy leaves; the largest, which holds the canaries, without if bare."""
    leaves, treedef = jax.tree.flatten(noisy)
    place = max(range(len(leaves)), key=lambda n: leaves[n].size)
    leaf = jax.tree.leaves(clipped)[place]
    leaves[place] = jnp.where(bare, leaf, leaves[place])
    return treedef.unflatten(leaves)


def _told(seen, gap):
    """Returns the log density ratio for canaries that move a noisy value by ``gap``.

    A leaf without noise takes one of two values and is proof.
    """
    noise = jnp.maximum(jnp.var(seen) - gap**2 / 4, 1e-3 * gap**2)
    return (seen - gap / 2) * gap / noise


def cases(side: int = SIDE):
    """Yields trainings that claim an ε for every training example or home.

    There are ``side ** 2`` examples and twice as many homes, in neighbourhoods of 64.
    ``side`` is a multiple of 8.
    """
    yield _fedsgd_ldp(side)
    yield _privatehub(side**2)
    yield _pfdrl(2 * side**2)


def _fedsgd_ldp(side):
    """Two rounds of two steps; each half of the canaries moves one of two layers."""
    canaries = side**2
    lots = PoissonSampling(
        sampling_probability=1.0, expected_batch_size=canaries, max_examples=canaries
    )
    multiplier = 3.0
    half = side // 2
    place = np.arange(canaries)
    layer = place >= canaries // 2
    rows = {"layer": layer, "row": place // half % side, "column": place % half}

    def loss_fn(params, x, key):
        row = jax.nn.one_hot(x["row"], side)
        second = 1.0 * x["layer"][:, None]
        went = (row * (1 - second)) @ params["a"] + (row * second) @ params["b"]
        return FAR * jnp.sum(went * jax.nn.one_hot(x["column"], half), axis=1)

    def observe(key, inside):
        algorithm = federated.fedsgd_ldp(
            lambda key: {name: jnp.zeros((side, half)) for name in ("a", "b")},
            loss_fn,
            lots=lots,
            steps=federated.Steps(num_steps=2),
            num_clients=1,
        )
        state = algorithm.init(key, learning_rate=1.0, noise_multiplier=multiplier)
        whole = jax.tree.map(lambda x: jnp.asarray(x)[None], rows)
        clients = federated.Population(whole, inside[None])
        _, seen = federated.simulate_observed(
            algorithm, key, state, clients, 2, client=0
        )
        moved = jax.tree.map(lambda a, b: jnp.sum(a - b, 0), seen.before, seen.message)
        gap = 4 / lots.expected_batch_size
        return jnp.concatenate([_told(moved[name], gap).ravel() for name in "ab"])

    release = federated.sampled_gaussian(lots, multiplier, 4)
    claimed = epsilon_spent([release], DELTA)
    return Training("FedSGD-LDP, one run", claimed, observe, canaries)


def _privatehub(canaries):
    """A batch of all windows; each window's loss selects one number of the networks."""
    classes = {"activity": ("a", "b"), "gender": ("f", "m"), "subject": ("1",)}
    spec = made_spec(
        *("numbers", 8), std=(float(canaries),), rate_hz=1.0, classes=classes
    )
    config = PrivateHubConfig(
        **{
            "widths": (4,),
            "heads": 2,
            "num_train_timesteps": 20,
            "num_inference_steps": 5,
        },
        classifier_filters=(8,),
        classifier_features=canaries // 68,  # One number per canary.
        batch_size=canaries,
        max_examples=canaries,
        delta=DELTA,
        noise_multiplier=1.5,
    )
    nets = networks.networks(spec, config)
    guarantee = guarantee_of(config)
    component = dp_sgd.learning(nets, guarantee.lots)
    numbers = np.arange(canaries)
    windows = np.zeros((canaries, spec.time, 1), np.float32)
    windows[:, 0, 0] = numbers
    nothing = np.zeros(canaries, np.int32)
    clients = by_client(Windows(windows, dict.fromkeys(spec.classes, nothing)))
    data = privatehub_data.prepare(nets, clients)

    params = jax.eval_shape(nets.init, jax.random.key(0))
    zeros = lambda leaf: jnp.zeros(leaf.shape, leaf.dtype)
    moving = {group: jax.tree.map(zeros, params[group]) for group in component.groups}

    def losses(nets, moving, example):
        return FAR * ravel_pytree(moving)[0][_numbers(example[4], canaries)]

    def observe(key, inside):
        lot_key, key = jax.random.split(key)
        hyper = {
            "clip_norm": config.clip_norm,
            "condition_dropout": config.condition_dropout,
        }
        hyper |= {"noise_multiplier": config.noise_multiplier}

        batch = privatehub_data.lot(nets, lot_key, data, guarantee.lots)
        batch = batch._replace(
            real=batch.real & inside[_numbers(batch.windows, canaries)]
        )
        with mock.patch.object(dp_sgd, "_losses", losses):
            seen, _ = component.gradient_fn(key, moving, hyper, batch)
        share = 1 / guarantee.lots.expected_batch_size
        told = jax.tree.map(lambda x: _told(x, share), seen)
        return ravel_pytree(told)[0][:canaries]

    return Training("PrivateHub, one run", guarantee.epsilon(1), observe, canaries)


def _numbers(windows, canaries):
    """Returns windows that carry their index in the first number."""
    return jnp.rint(windows[:, 0, 0] * canaries).astype(jnp.int32)


def _pfdrl(canaries):
    """Neighbourhoods of 64 homes, which each learn at full range or send only noise.

    Homes broadcast a forecaster's layers twice and a controller's twice.
    """
    config = energy.PFDRLConfig(noise_multiplier=3.0)
    homes, slots = 64, 24
    mixing = federated.metropolis_weights(federated.ring_graph(homes))
    shared = {"w": True, "v": True}
    way = {"w": jnp.array([0.6, 0.6]), "v": jnp.array([0.28**0.5])}
    period = int(energy_config.period(config, 12.0))

    def street(key, numbers, inside):
        params = {"w": jnp.zeros((homes, 2)), "v": jnp.zeros((homes, 1))}
        mail = federated.empty_noisy_message_buffer(params, shared, config.messages)

        def one_slot(carry, slot):
            mail, params = carry
            learned = jax.tree.map(
                lambda own, sent, way: jnp.where(
                    inside[:, None], own + FAR * way[None], sent
                ),
                params,
                mail.public,
                way,
            )
            mail, params = federated.exchange_noisily_every(
                *(period, jax.random.fold_in(key, slot), mail, learned, mixing, slot),
                shared=shared,
                clip_norm=config.clip_norm,
                noise_multiplier=config.noise_multiplier,
                messages=config.messages,
                numbers=numbers,
            )
            return (mail, params), None

        (mail, _), _ = jax.lax.scan(one_slot, (mail, params), jnp.arange(slots))
        length = {name: jnp.linalg.norm(way[name]) for name in way}
        return {name: mail.public[name] @ way[name] / length[name] for name in way}

    def observe(key, inside):
        numbers = jnp.arange(canaries).reshape(-1, homes)
        gaps = {name: 2 * config.clip_norm * jnp.linalg.norm(way[name]) for name in way}
        told = 0.0
        for model in jax.random.split(key, 2):
            sent = jax.lax.map(
                lambda own, model=model: street(model, *own),
                (numbers, inside.reshape(-1, homes)),
            )
            told += sum(_told(sent[name], gaps[name]) for name in way)
        return told.ravel()

    claimed = energy.broadcast_epsilon(config, slots, DELTA)
    name = "PFDRL, a device's broadcasts, one run"
    return Training(name, claimed, observe, canaries)
