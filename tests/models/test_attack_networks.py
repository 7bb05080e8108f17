"""The attackers' networks: published sizes and effects of training."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from jaxanon.models import fit
from jaxanon.models.classifiers import ConvClassifier, RecurrentClassifier
from jaxanon.models.conv2d import PlaneConv, max_pool

SMALL = {
    "conv": ConvClassifier(2, filters=(4, 4), hidden=(8,)),
    "recurrent": RecurrentClassifier(2, features=6, hidden=6),
}
each = pytest.mark.parametrize("name", sorted(SMALL))


@pytest.mark.parametrize(
    ("channels", "classes", "sizes", "count"),
    [
        (6, 4, {}, 458_932),
        (6, 1, {}, 458_881),
        (6, 3, {}, 458_915),
        (2, 5, {"filters": (128, 64, 32), "hidden": (128, 32, 16)}, 241_445),
    ],
)
def test_published_parameter_counts(channels, classes, sizes, count):
    net = ConvClassifier(classes, **sizes)
    windows = jax.ShapeDtypeStruct((1, 128, channels), jnp.float32)
    variables = jax.eval_shape(net.init, jax.random.key(0), windows)
    assert sum(leaf.size for leaf in jax.tree.leaves(variables)) == count


def frequencies(rows, seed=0):
    """Returns two classes that differ only in frequency, at random phase."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(2, size=rows)
    phase = rng.uniform(0, 6, (rows, 1))
    wave = np.sin((0.6 + 0.8 * labels[:, None]) * np.arange(18) + phase)
    return np.float32(wave[..., None]), np.int32(labels)


@functools.cache
def fitted(name):
    options = {"net": SMALL[name], "epochs": 40, "batch": 32}
    options["hyper"] = fit.Hyper(1e-2, 0.0)
    return fit.fit_classifier(jax.random.key(0), *frequencies(256), 2, **options)


@pytest.mark.slow
@each
def test_learns_a_frequency_whatever_its_phase(name):
    windows, labels = frequencies(256, 1)
    assert np.mean(fit.predict(fitted(name), windows) == labels) > 0.95


@each
def test_any_length_of_window(name):
    for time in (1, 3, 5):
        x = jax.ShapeDtypeStruct((2, time, 3), jnp.float32)
        key = jax.random.key(0)
        logits, _ = jax.eval_shape(SMALL[name].init_with_output, key, x)
        assert logits.shape == (2, 2)


@pytest.mark.slow
@pytest.mark.parametrize(("channels", "time", "d"), [(6, 9, 3), (1, 2, 1)])
def test_the_convolution_is_flax_s(channels, time, d):
    x = jax.random.normal(jax.random.key(0), (2, channels, time, d))
    params = PlaneConv(4).init(jax.random.key(1), x)
    theirs = nn.Conv(4, (2, 5), kernel_init=nn.initializers.glorot_uniform())
    chex.assert_trees_all_equal(params, theirs.init(jax.random.key(1), x))
    params["params"]["bias"] = jnp.arange(4.0)

    def told(net):
        loss = lambda params, x: jnp.sum(jnp.tanh(net.apply(params, x)))
        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))(params, x)

    chex.assert_trees_all_close(told(PlaneConv(4)), told(theirs), rtol=1e-4, atol=1e-5)


def test_the_larger_of_every_two_samples():
    x = jnp.array([1.0, 3.0, 2.0, 0.0, -5.0]).reshape(1, 1, 5, 1)
    np.testing.assert_array_equal(max_pool(x, 2, rest=True).ravel(), [3, 2, -5])


@jax.jit
def moments(windows, real):
    """Returns the moving averages of the first norm after one training step."""
    net = ConvClassifier(2, filters=(2,), hidden=())
    variables = net.init(jax.random.key(0), windows)
    _, updated = net.apply(
        variables, windows, jax.random.key(1), 0.0, real, mutable=["batch_stats"]
    )
    return updated["batch_stats"]["BatchNorm_0"]


@pytest.mark.slow
def test_rows_that_do_not_count_leave_the_averages_alone():
    windows = jax.random.normal(jax.random.key(2), (4, 8, 1))
    strange = windows.at[2:].add(100.0)
    want = moments(windows[:2], jnp.ones(2, bool))
    got = moments(strange, jnp.arange(4) < 2)
    chex.assert_trees_all_close(got, want, rtol=1e-5)
    assert np.any(moments(strange, None)["mean"] > 2 * want["mean"])
    none = moments(windows, jnp.zeros(4, bool))
    assert all(np.isfinite(leaf).all() for leaf in none.values())


@pytest.mark.parametrize(("kind", "rate"), [("Conv", 0.25), ("Dense", 0.5)])
def test_published_dropout(kind, rate):
    sizes = ((3,), ()) if kind == "Conv" else ((), (3,))
    net = ConvClassifier(1, *sizes)
    windows = jnp.ones((2000, 2, 1))
    variables = jax.jit(net.init)(jax.random.key(0), windows)
    params = variables["params"]
    # The context of a sample must not distinguish it from the others.
    if kind == "Conv":
        kernel = params["PlaneConv_0"]["kernel"]
        params["PlaneConv_0"]["kernel"] = jnp.zeros_like(kernel)
    # All are equal in the batch, so normalization gives 0. A bias of 1 makes them 1,
    # and the logit is the first of them.
    params["BatchNorm_0"]["bias"] = jnp.ones(3)
    last = sorted(name for name in params if name.startswith("Dense"))[-1]
    params[last]["kernel"] = jnp.zeros_like(params[last]["kernel"]).at[0, 0].set(1.0)
    train = jax.jit(lambda *given: net.apply(*given, mutable=["batch_stats"])[0])
    logits = train(variables, windows, jax.random.key(1), 0.5)
    # Dropped or rescaled; 2000 draws at 0.25 have a standard deviation of 0.01.
    np.testing.assert_allclose(np.unique(logits), [0, 1 / (1 - rate)], atol=1e-3)
    assert np.mean(logits < 0.5) == pytest.approx(rate, abs=0.05)


def test_prediction_drops_nothing_and_is_by_moving_averages():
    windows, net = frequencies(64)[0], fitted("conv")
    averages = net.params["batch_stats"]  # They began at 0 and at 1.
    assert all(np.all(layer["mean"] != 0) for layer in averages.values())
    assert all(np.all(layer["var"] != 1) for layer in averages.values())
    # The result does not depend on the rest of the batch.
    alone = fit.predict_logits(net, windows[:1])
    together = fit.predict_logits(net, windows)[:1]
    np.testing.assert_allclose(together, alone, rtol=1e-4)


@pytest.mark.slow
def test_moving_averages_forget_their_start_within_100_steps():
    net = SMALL["conv"]
    windows, _ = frequencies(64)
    variables = net.init(jax.random.key(0), windows)

    @jax.jit
    def step(averages):
        out = {"params": variables["params"], **averages}
        key = jax.random.key(1)
        return net.apply(out, windows + 3, key, 0.0, mutable=["batch_stats"])

    averages = {"batch_stats": variables["batch_stats"]}
    for _ in range(100):
        trained, averages = step(averages)
    told = net.apply({"params": variables["params"], **averages}, windows + 3)
    np.testing.assert_allclose(told, trained, atol=0.02)
