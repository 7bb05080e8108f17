"""Rounds of FedBlinder and of KD-Blinder in plain loops, for tests to compare.

The draws match those of the methods, from a client's real windows only. Everything else
is explicit here, loss by loss and step by step.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxanon.federated import Population, sample_cohort
from jaxanon.methods.blinder.averaged import BlinderSystem
from jaxanon.methods.blinder.blinder import classifier_loss
from jaxanon.methods.common import client_batches
from jaxanon.models.kd_blinder import class_covariance_root

_ADAM = optax.scale_by_adam()


def _entropy(logits, targets, weights, released=False):
    """Computes cross-entropy; Blinder's program takes a softmax for logits."""
    if released:
        p = jax.nn.softmax(logits)
        rows = jnp.mean(jnp.log(1 + jnp.exp(p)) - targets * p, -1)
        return _mean(rows, weights)
    return _mean(-jnp.sum(targets * jax.nn.log_softmax(logits), -1), weights)


SIZES = (3, 14, 9, 6)
SETTINGS = {
    "hidden_sizes": (12,),
    "latent_dim": 3,
    "discriminator_hidden_sizes": (7,),
    "batch_size": 5,
    "local_rounds": 2,
    "discriminator_steps": 2,
    "client_fraction": 0.8,
    "learning_rate": 0.01,
    "discriminator_learning_rate": 0.02,
}


def moody(spec):
    """Returns a spec whose private attribute changes within a client."""
    classes = spec.classes | {"mood": ("w", "x", "y", "z")}
    return dataclasses.replace(spec, private=("mood",), classes=classes)


def clients(data) -> Population:
    """Returns four unequal clients with two of four moods, and a padding client.

    One activity is rare. Padding is NaN, which shows any access.
    """
    rng = np.random.default_rng(3)
    mask = np.arange(max(SIZES))[None] < np.array([*SIZES, 0])[:, None]
    mood = (np.arange(5)[:, None] + rng.integers(0, 2, mask.shape)) % 4
    activity = rng.choice(3, mask.shape, p=[0.7, 0.2, 0.1])
    windows = (data.train.windows[: mask.size] - 10) / 3
    windows = windows.reshape(*mask.shape, *windows.shape[1:])
    windows = np.where(mask[..., None, None], windows, np.nan)
    labels = {"activity": activity, "mood": mood}
    labels = {name: jnp.asarray(each, jnp.int32) for name, each in labels.items()}
    own = client_batches.ClientWindows(jnp.asarray(windows, jnp.float32), labels)
    return Population(own, jnp.asarray(mask))


def apart(one, other):
    """Returns the greatest distance per group of two trees, in steps of 0.01."""
    far = jax.tree.map(lambda a, b: float(np.max(np.abs(a - b))), one, other)
    return {group: max(jax.tree.leaves(each)) / 0.01 for group, each in far.items()}


@jax.jit
def _adam_step(length, moving, gradient, opt_state):
    """Takes one Adam step of ``length``; returns the parameters and its next state."""
    steps, opt_state = _ADAM.update(gradient, opt_state)
    return jax.tree.map(lambda p, s: p - length * s, moving, steps), opt_state


def _mean(rows, weights):
    return jnp.sum(weights * rows) / jnp.sum(weights)


def _latent(networks, params, batch):
    mean, log_variance = networks.encode(params, batch.windows)
    return mean, log_variance, mean + jnp.exp(log_variance / 2) * batch.noise


class Losses:
    """Three losses of a step, compiled with their gradients once per test."""

    def __init__(self, system: BlinderSystem):
        self.system, self.released = system, system.config.variant == "official"
        self.vae = jax.jit(jax.grad(self._vae))
        self.adversary = jax.jit(jax.grad(self._adversary))
        self.heir = jax.jit(jax.grad(self._heir), static_argnums=(5, 6))
        self.judge = jax.jit(jax.grad(self._judge))
        self.latent = jax.jit(
            lambda params, batch: _latent(system.networks, params, batch)[2]
        )
        self.taught = jax.jit(system.networks.discriminate)
        self.means = jax.jit(lambda p, windows: system.networks.encode(p, windows)[0])

    def _vae(self, moving, params, hyper, batch, shift):
        params, networks = params | moving, self.system.networks
        mean, log_variance, z = _latent(networks, params, batch)
        z = z + shift
        rebuilt = networks.decode(params, z, batch.private, batch.public)
        errors = jnp.sum((rebuilt - batch.windows) ** 2, (1, 2))
        kl = 0.5 * jnp.sum(mean**2 + jnp.exp(log_variance) - 1 - log_variance, -1)
        (logits,) = networks.discriminate(params, z)
        alpha, beta = hyper["alpha"], hyper["beta"]
        if self.released:  # (512 of the mean square and 2 beta KL) / 150
            alpha, beta = 512 / 150 / batch.windows[0].size, 2 * beta / 150
        total = alpha * _mean(errors, batch.weights) + beta * _mean(kl, batch.weights)
        seen = _entropy(logits, batch.private[0], batch.weights, self.released)
        return total - hyper["gamma"] * seen

    def _adversary(self, moving, z, batch):
        (logits,) = self.system.networks.discriminate(moving, z)
        return _entropy(logits, batch.private[0], batch.weights, self.released)

    def _heir(self, moving, z, batch, taught, hyper, has, restricted):
        """Computes KD-Blinder's loss; ``has`` is a tuple of the client's classes."""
        (logits,) = self.system.networks.discriminate(moving, z)
        targets, weights = batch.private[0], batch.weights
        lacks = tuple(c for c in range(logits.shape[1]) if c not in has)
        own = jax.nn.log_softmax(logits[:, has])
        total = -_mean(jnp.sum(targets[:, has] * own, -1), weights)
        if not restricted:
            total = _entropy(logits, targets, weights)
        if lacks:
            # Uses the closed-form gradient T (softmax - teacher's). It is exactly 0
            # where they agree; Adam would turn rounding errors into whole steps.
            soft = lambda x: jax.nn.softmax(x[:, lacks] / hyper["temperature"])
            slope = jax.lax.stop_gradient(soft(logits) - soft(taught))
            apart = _mean(jnp.sum(slope * logits[:, lacks], -1), weights)
            total += hyper["distillation"] * hyper["temperature"] * apart
        smooth = _mean(-jnp.sum(jnp.exp(own) * own, -1), weights)
        return total - hyper["smoothing"] * smooth

    def _judge(self, moving, batch, key):
        system = self.system
        return classifier_loss(moving, batch, key, system.spec, system.classifier_nets)[
            0
        ]


def one_round(losses: Losses, config, key, state, data, *, heir=False, without=()):
    """Returns parameters after one round; ``heir`` selects KD-Blinder.

    ``without`` disables restriction, inheritance, smoothing, balance or augmentation.
    """
    size = max(1, int(config.client_fraction * len(data.mask)))
    _, client_key = jax.random.split(jax.random.fold_in(key, state.round))
    trained, weights = [], []
    for client in sample_cohort(key, state.round, len(data.mask), size):
        real = np.asarray(data.mask[client])
        if not real.any():
            continue
        own = jax.tree.map(lambda leaf, c=client, r=real: leaf[c][r], data.rows)
        own_key = jax.random.fold_in(client_key, client)
        trained.append(_client(losses, config, own_key, state, own, heir, without))
        weights.append(real.sum() if config.weighting == "rows" else 1)
    mean = lambda *leaves: np.average(np.stack(leaves), axis=0, weights=weights)
    return jax.tree.map(mean, *trained)


def _client(losses, config, key, state, own, heir, without):
    system, hyper, sent = losses.system, state.hyper, state.params
    num_real = len(own.windows)
    off = {"inheritance": "distillation", "smoothing": "smoothing"}
    weights_of = hyper | {off[each]: 0.0 for each in without if each in off}
    course_key, step_key, _, _ = jax.random.split(key, 4)
    draw = _heir_draws if heir else _plain_draws
    draw_fn = draw(losses, course_key, state, own, without)
    lengths = [
        hyper["discriminator_learning_rate"],
        hyper["learning_rate"],
        hyper["learning_rate"],
    ]
    groups = (("discriminators",), ("encoder", "decoder"), ("classifiers",))
    moving = [{g: sent[g] for g in own_groups} for own_groups in groups]
    opt_states = [_ADAM.init(own) for own in moving]

    def step_of(which, gradient):
        moving[which], opt_states[which] = _adam_step(
            lengths[which], moving[which], gradient, opt_states[which]
        )

    steps = int(
        np.ceil(config.local_rounds * num_real / min(config.batch_size, num_real))
    )
    if config.batches is not None:
        steps = config.local_rounds * config.batches
    for step in range(steps):
        plain, batch, shift, dropout_key = draw_fn(
            jax.random.fold_in(step_key, step), step
        )
        z = losses.latent(moving[1], plain)
        for _ in range(config.discriminator_steps):
            if heir:
                (taught,) = losses.taught(sent, z)
                labels = np.asarray(own.labels[system.spec.private[0]])
                has = tuple(np.unique(labels).tolist())
                given = (z, plain, taught, weights_of, has)
                restricted = "restriction" not in without
                step_of(0, losses.heir(moving[0], *given, restricted))
            else:
                step_of(0, losses.adversary(moving[0], z, plain))
        resting = moving[0] | moving[2]
        step_of(1, losses.vae(moving[1], resting, hyper, batch, shift))
        step_of(2, losses.judge(moving[2], batch, dropout_key))
    return moving[0] | moving[1] | moving[2]


def _plain_draws(losses, key, state, own, without):
    spec, config = losses.system.spec, losses.system.config
    rows = client_batches.in_turn(
        key, jnp.ones(len(own.windows), bool), config.batch_size
    )

    def draw(key, step):
        row_key, noise_key, dropout_key = jax.random.split(key, 3)
        batch = client_batches.batch_of(
            noise_key, spec, own, *rows(row_key, step), config.latent_dim
        )
        return batch, batch, 0.0, dropout_key

    return draw


def _heir_draws(losses, key, state, own, without):
    spec, config = losses.system.spec, losses.system.config
    mask = jnp.ones(len(own.windows), bool)
    public, num = own.labels[spec.public], spec.num_classes(spec.public)
    in_turn = client_batches.in_turn(key, mask, config.batch_size)
    even = client_batches.balanced(public, mask, num, config.batch_size)
    even = in_turn if "balance" in without else even
    counts = np.bincount(public, minlength=num)
    means = losses.means(state.params, own.windows)
    root = class_covariance_root(means, public, mask, num)

    def draw(key, step):
        plain_key, even_key, chance_key, spread_key, dropout_key = jax.random.split(
            key, 5
        )

        def batch_of(key, rows):
            row_key, noise_key = jax.random.split(key)
            index, real = rows(row_key, step)
            return client_batches.batch_of(
                noise_key, spec, own, index, real, config.latent_dim
            )

        batch = batch_of(even_key, even)
        classes = np.argmax(batch.public, 1)
        chosen = jax.random.bernoulli(
            chance_key, jnp.asarray(1 - counts[classes] / counts.max())
        )
        noise = jax.random.normal(spread_key, batch.noise.shape) @ root.T
        shift = state.hyper["augmentation"] * chosen[:, None] * noise
        if "augmentation" in without:
            shift = 0 * shift
        return batch_of(plain_key, in_turn), batch, shift, dropout_key

    return draw
