"""Blinder's Algorithm 1, lines 16-23, against explicit code for one client."""

import chex
import jax
import jax.numpy as jnp
import pytest

from jaxanon.kernels import meta_gradient
from jaxanon.models import blinder

pytestmark = pytest.mark.slow

STEP, ALPHA, BETA, GAMMA = 0.05, 0.9, 2.0, 3.0
ROWS = 3  # for the query set; the support set has one.


def layers(tree):
    """Returns weights and biases of every dense layer in a plain dict of lists."""

    def stack(network):
        network = network["MultiLayer_0"]
        dense = [network[name] for name in sorted(network)]
        return [(layer["kernel"], layer["bias"]) for layer in dense]

    return {
        "encoder": stack(tree["encoder"]),
        "decoder": stack(tree["decoder"]),
        "discriminators": [stack(one) for one in tree["discriminators"]],
    }


def dense(stack, x):
    for weights, bias in stack[:-1]:
        x = jnp.maximum(x @ weights + bias[None], 0)
    weights, bias = stack[-1]
    return x @ weights + bias[None]


def encode(w, x):
    rows = jnp.concatenate([x[:, :, 0], x[:, :, 1]], axis=1)  # Channel by channel.
    return jnp.split(dense(w["encoder"], rows), 2, axis=1)


def latent(w, x, noise):
    mean, log_variance = encode(w, x)
    return mean + jnp.exp(log_variance / 2) * noise


def decode(w, z, private, public):
    flat = dense(w["decoder"], jnp.concatenate([z, *private, public], axis=1))
    return jnp.stack(jnp.split(flat, 2, axis=1), axis=2)


def discriminator(w, z, private, released):
    total = 0.0
    for stack, y in zip(w["discriminators"], private, strict=True):
        logits = dense(stack, z)
        if released:  # Binary cross-entropy of sigmoid(softmax(logits)).
            p = jax.nn.sigmoid(jax.nn.softmax(logits))
            total -= jnp.mean(y * jnp.log(p) + (1 - y) * jnp.log(1 - p))
        else:
            total -= jnp.mean(jnp.sum(y * jax.nn.log_softmax(logits), axis=1))
    return total


def eq_4(w, batch, released):
    mean, log_variance = encode(w, batch.windows)
    z = mean + jnp.exp(log_variance / 2) * batch.noise
    errors = batch.windows - decode(w, z, batch.private, batch.public)
    kl = 0.5 * (mean**2 + jnp.exp(log_variance) - 1 - log_variance).sum(1).mean()
    if released:
        loss = (512 * jnp.mean(errors**2) + 2 * BETA * kl) / 150
    else:
        loss = ALPHA * (errors**2).sum((1, 2)).mean() + BETA * kl
    return loss - GAMMA * discriminator(w, z, batch.private, released)


def descend(loss, weights):
    move = lambda a, g: a - STEP * g
    return jax.tree.map(move, weights, jax.grad(loss)(weights))


def by_hand(w, support, query, steps, shadows, released):
    """Computes gradients of lines 22 and 23 at the weights before line 16."""
    fixed = jax.lax.stop_gradient
    # Lines 16-19.
    z, private = latent(w, support.windows, support.noise), support.private
    if shadows:
        shadow = decode(w, z, support.shadow, support.public)
        real, renoise = len(z), support.renoise
        z = jnp.concatenate(
            [
                latent(w, support.windows, renoise[:real]),
                latent(w, shadow, renoise[real:]),
            ]
        )
        pairs = zip(private, support.shadow, strict=True)
        private = [jnp.concatenate(pair) for pair in pairs]
    z = fixed(z)

    def line_20(adversary):
        loss = lambda a: discriminator({"discriminators": a}, z, private, released)
        for _ in range(steps):
            adversary = descend(loss, adversary)
        return adversary

    adversary = line_20(w["discriminators"])

    def line_21(vae):
        seen = {"discriminators": fixed(adversary)}
        return descend(lambda vae: eq_4({**vae, **seen}, support, released), vae)

    vae = {name: w[name] for name in ("encoder", "decoder")}
    z_query = fixed(latent(line_21(vae), query.windows, query.noise))

    def line_22(before):
        adapted = {"discriminators": line_20(before)}
        return discriminator(adapted, z_query, query.private, released)

    def line_23(vae):
        adapted = {**line_21(vae), "discriminators": fixed(adversary)}
        return eq_4(adapted, query, released)

    grads = jax.grad(line_23)(vae)
    return {**grads, "discriminators": jax.grad(line_22)(w["discriminators"])}


def draw(key, rows):
    keys = jax.random.split(key, 8)
    hot = lambda key, n: jax.nn.one_hot(jax.random.randint(key, (rows,), 0, n), n)
    true, other = hot(keys[0], 3), hot(keys[1], 2)
    return blinder.BlinderBatch(
        windows=jax.random.normal(keys[2], (rows, 4, 2)),
        public=hot(keys[3], 4),
        private=(true, other),
        weights=jnp.ones(rows),
        noise=jax.random.normal(keys[4], (rows, 2)),
        shadow=(jnp.roll(true, 1, axis=1), 1 - other),
        renoise=jax.random.normal(keys[5], (2 * rows, 2)),
        target=(hot(keys[6], 3), hot(keys[7], 2)),
    )


@pytest.mark.parametrize("shadows, released", [(True, False), (False, True)])
def test_a_client_follows_the_lines_of_the_algorithm(shadows, released):
    net = blinder.networks(
        4, 2, [3, 2], latent=2, hidden=(5,), discriminator_hidden_sizes=(4,)
    )
    phases = blinder.phases(
        net,
        blinder.LossScale(ALPHA, BETA, GAMMA),
        STEP,
        discriminator_steps=2,
        shadows=shadows,
        official=released,
    )
    objectives = blinder.objectives(
        net, blinder.LossScale(ALPHA, BETA, GAMMA), official=released
    )

    @jax.jit
    def both(key):
        start_key, support_key, query_key = jax.random.split(key, 3)
        double = lambda tree: jax.tree.map(lambda a: a.astype(jnp.float64), tree)
        params = double(net.init(start_key, 4, 2, 4))
        support = double(draw(support_key, 1))
        query = double(draw(query_key, ROWS))
        one = lambda batch: jax.tree.map(lambda leaf: leaf[None], batch)
        grads, _ = meta_gradient(
            phases,
            objectives,
            params,
            one(support),
            one(query),
            jnp.ones(1),
            implementation="reference",
        )
        expected = by_hand(layers(params), support, query, 2, shadows, released)
        return layers(grads), expected

    with jax.enable_x64():
        got, expected = both(jax.random.key(0))
        for leaf in jax.tree.leaves(got):
            assert leaf.dtype == jnp.float64 and jnp.any(leaf != 0)
        chex.assert_trees_all_close(got, expected, rtol=1e-9, atol=1e-12)
