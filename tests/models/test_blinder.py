"""Blinder's networks and losses, against hand arithmetic and published numbers."""

import functools
import itertools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon.models import autoencoder, blinder
from jaxanon.models import losses as models_losses
from jaxanon.models.layers import Dense, flatten, unflatten

pytestmark = pytest.mark.slow


def count(tree):
    return sum(leaf.size for leaf in jax.tree.leaves(tree))


def test_parameter_counts_follow_from_the_published_widths():
    net = blinder.networks(128, 6, [2], latent=25)
    params = jax.eval_shape(lambda key: net.init(key, 128, 6, 4), jax.random.key(0))
    layers = lambda *widths: sum((i + 1) * o for i, o in itertools.pairwise(widths))
    assert count(params["encoder"]) == layers(768, 512, 512, 256, 128, 50)
    assert count(params["decoder"]) == layers(31, 128, 256, 512, 512, 768)
    assert count(params["discriminators"]) == layers(25, 128, 128, 2)


def test_the_encoder_on_android_is_the_published_six_megabytes():
    hidden = (1024, 512, 256, 128, 128)
    net = blinder.networks(128, 6, [2], latent=25, hidden=hidden)
    params = jax.eval_shape(lambda key: net.init(key, 128, 6, 4), jax.random.key(0))
    assert count(params["encoder"]) == 1_499_442
    assert round(4 * count(params["encoder"]) / 1e6, 2) == 6.00


def test_dense_layers_start_as_they_say():
    start = lambda net: net.init(jax.random.key(0), jnp.zeros((1, 100)))["params"]
    params = start(Dense(400))
    np.testing.assert_allclose(jnp.std(params["kernel"]), 0.1, rtol=0.02)
    assert not jnp.any(params["bias"])
    params = start(Dense(400, "official"))
    for leaf in (params["kernel"], params["bias"]):
        # U(-0.1, 0.1) has std 0.1 / sqrt(3), not that of 1/fan_in.
        assert float(jnp.max(jnp.abs(leaf))) <= 0.1
        np.testing.assert_allclose(jnp.std(leaf), 0.1 / 3**0.5, rtol=0.1)


def test_a_row_holds_channel_after_channel():
    windows = jnp.arange(12.0).reshape(1, 3, 4)  # time 3, channels 4
    rows = flatten(windows)
    chex.assert_trees_all_equal(rows[0, :3], windows[0, :, 0])
    chex.assert_trees_all_equal(unflatten(rows, 3, 4), windows)


@pytest.mark.parametrize("filters", [(), (4, 6)])
def test_windows_come_back_in_their_own_shape(filters):
    net = blinder.networks(16, 3, [2, 5], latent=4, hidden=(12, 8), filters=filters)
    params = jax.jit(net.init, static_argnums=(1, 2, 3))(jax.random.key(0), 16, 3, 7)
    windows = jax.random.normal(jax.random.key(1), (2, 16, 3))
    private = [jnp.ones((2, 2)), jnp.ones((2, 5))]

    @jax.jit
    def through(params, windows):
        mean, log_variance = net.encode(params, windows)
        rebuilt = net.decode(params, mean, private, jnp.ones((2, 7)))
        return mean, log_variance, rebuilt, net.discriminate(params, mean)

    mean, log_variance, rebuilt, told = through(params, windows)
    assert mean.shape == log_variance.shape == (2, 4)
    assert rebuilt.shape == (2, 16, 3)
    assert [x.shape for x in told] == [(2, 2), (2, 5)]


def test_convolutions_want_a_length_they_can_halve():
    with pytest.raises(ValueError, match="time must be a multiple of 4 .* got 126"):
        blinder.networks(126, 2, [2], filters=(8, 8))


def test_kl_is_the_closed_form_and_uses_log_variance():
    # KL(N(1, 4) || N(0, 1)) = (1 + 4 - 1 - ln 4) / 2.
    kl = models_losses.kl_to_standard_normal(
        jnp.array([[1.0]]), jnp.log(jnp.array([[4.0]]))
    )
    np.testing.assert_allclose(kl, [(4 - np.log(4)) / 2], rtol=1e-6)
    # Eq. 1 takes exp(σ/2) of the log-variance: noise 1 moves z by 2, not by ln 4.
    z = autoencoder.sample(jnp.zeros(1), jnp.log(jnp.array([4.0])), jnp.ones(1))
    np.testing.assert_allclose(z, [2.0], rtol=1e-6)


@pytest.mark.parametrize(
    "classes, perfect, chance", [(2, 0.5032, 0.7241), (3, 0.5665, 0.7625)]
)
def test_released_adversary_loss_has_the_measured_range(classes, perfect, chance):
    target = jnp.eye(classes)[:1]
    loss = lambda logits: models_losses.cross_entropy(
        logits, target, jnp.ones(1), official=True
    )
    np.testing.assert_allclose(loss(100 * target), perfect, atol=1e-4)
    np.testing.assert_allclose(loss(0 * target), chance, atol=1e-4)
    proper = models_losses.cross_entropy(0 * target, target, jnp.ones(1))
    np.testing.assert_allclose(proper, np.log(classes), rtol=1e-6)


@functools.cache
def small():
    net = blinder.networks(
        8, 2, [2, 3], latent=3, hidden=(9,), discriminator_hidden_sizes=(7,)
    )
    with jax.enable_x64(False):  # The first caller sets the type.
        init = jax.jit(net.init, static_argnums=(1, 2, 3))
        params = init(jax.random.key(0), 8, 2, 4)
    return net, params


@functools.partial(jax.jit, static_argnums=1)
def draw(seed, rows):
    keys = jax.random.split(jax.random.key(seed), 10)
    hot = lambda key, n: jax.nn.one_hot(jax.random.randint(key, (rows,), 0, n), n)
    return blinder.BlinderBatch(
        jax.random.normal(keys[0], (rows, 8, 2)),
        hot(keys[1], 4),
        (hot(keys[2], 2), hot(keys[3], 3)),
        jnp.ones(rows),
        jax.random.normal(keys[4], (rows, 3)),
        (hot(keys[5], 2), hot(keys[6], 3)),
        jax.random.normal(keys[7], (2 * rows, 3)),
        (hot(keys[8], 2), hot(keys[9], 3)),
    )


def test_loss_is_eq_4_and_the_released_scaling_is_its_own():
    net, params = small()
    batch, scale = draw(1, 5), blinder.LossScale(0.5, 3.0, 0.25)

    @jax.jit
    def found(params, batch):
        mean, log_variance = net.encode(params, batch.windows)
        z = mean + jnp.exp(log_variance / 2) * batch.noise
        rebuilt = net.decode(params, z, batch.private, batch.public)
        losses = [
            blinder.vae_loss(net, scale, official=released)(params, batch)[0]
            for released in (False, True)
        ]
        return mean, log_variance, rebuilt, net.discriminate(params, z), losses

    mean, log_variance, rebuilt, told, (paper, released) = jax.tree.map(
        np.asarray, found(params, batch)
    )
    squared = np.sum(np.square(batch.windows - rebuilt), axis=(1, 2)).mean()
    kl = 0.5 * np.sum(mean**2 + np.exp(log_variance) - 1 - log_variance, -1).mean()
    entropy = lambda logits, y: -np.sum(y * jax.nn.log_softmax(logits), -1).mean()
    adversary = sum(map(entropy, told, batch.private))
    expected = 0.5 * squared + 3 * kl - 0.25 * adversary
    np.testing.assert_allclose(paper, expected, rtol=1e-5)
    pairs = zip(told, batch.private, strict=True)
    odd = sum(
        models_losses.cross_entropy(logits, y, jnp.ones(5), official=True)
        for logits, y in pairs
    )
    # 512 MSE + c * sum(1 + logvar - ...) with c = 2 is 4 KL; here beta is 3.
    expected = (512 * squared / 16 + 2 * 3 * kl) / 150 - 0.25 * odd
    np.testing.assert_allclose(released, expected, rtol=1e-5)


def test_padding_in_a_batch_changes_nothing():
    net, params = small()
    scale = blinder.LossScale(0.9, 2.0, 0.2)
    batch = jax.tree.map(np.asarray, draw(2, 4))
    pad = lambda leaf, rows: np.concatenate([leaf, 9 + 0 * leaf[:rows]])
    padded = jax.tree.map(lambda leaf: pad(leaf, 2 if len(leaf) == 8 else 1), batch)
    padded = padded._replace(weights=np.float32([1, 1, 1, 1, 0]))
    for loss in (
        jax.jit(blinder.vae_loss(net, scale)),
        jax.jit(blinder.discriminator_loss(net)),
    ):
        chex.assert_trees_all_close(
            loss(params, padded), loss(params, batch), rtol=1e-5
        )


def test_shadows_are_decoded_under_the_other_class_and_encoded_with_the_rest():
    net, params = small()
    batch = draw(3, 1)

    @jax.jit
    def by_hand(params, batch):
        first = autoencoder.sample(*net.encode(params, batch.windows), batch.noise)
        shadow = net.decode(params, first, batch.shadow, batch.public)
        both = jnp.concatenate([batch.windows, shadow])
        return first, autoencoder.sample(*net.encode(params, both), batch.renoise)

    first, expected = by_hand(params, batch)
    with_shadows = jax.jit(blinder.with_shadows(net))
    z, private, weights = with_shadows(params, batch)
    chex.assert_trees_all_close(z, expected, rtol=1e-5)
    chex.assert_trees_all_equal(private[1][1], batch.shadow[1][0])
    assert weights.shape == (2,)
    plain = jax.jit(blinder.without_shadows(net))(params, batch)
    chex.assert_trees_all_close(plain[0], first)


def test_factored_blinder_follows_algorithm_1_to_1e_10():
    from jaxanon.kernels import meta_gradient

    with jax.enable_x64():
        net, params = small()
        double = lambda tree: jax.tree.map(lambda a: jnp.asarray(a, jnp.float64), tree)
        stack = lambda *batches: jax.tree.map(lambda *a: jnp.stack(a), *batches)
        support, query = stack(draw(1, 1), draw(2, 1)), stack(draw(3, 5), draw(4, 5))
        params, support, query = map(double, (params, support, query))
        scale = blinder.LossScale(0.9, 2.0, 0.2)
        phases = blinder.phases(net, scale, 0.05, discriminator_steps=2)
        arrays = (params, support, query, jnp.ones(2))
        joint = (blinder.joint_objective(net, scale),)
        for second_order in (True, False):
            options = {"second_order": second_order}
            loops = jax.jit(
                lambda *arrays, options=options: meta_gradient(
                    phases,
                    blinder.objectives(net, scale),
                    *arrays,
                    implementation="reference",
                    **options,
                )[0]
            )
            expected = loops(*arrays)
            for name in ("factored", "materialised")[: 1 + second_order]:
                run = jax.jit(
                    lambda *arrays, name=name, options=options: meta_gradient(
                        phases, joint, *arrays, implementation=name, **options
                    )[0]
                )
                got = run(*arrays)
                chex.assert_trees_all_close(got, expected, rtol=1e-10, atol=1e-13)
