"""Programs that the clipped gradient sum supports, and transformations around it."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from jax.sharding import PartitionSpec as P

from jaxanon import kernels
from jaxanon.kernels import ghost
from jaxanon.kernels.ghost import cases, reference

pytestmark = pytest.mark.slow


def names_without_factors(loss_fn, params, batch):
    """Returns paths of the leaves that fall back, with slashes."""
    names = ghost.leaves_without_factors(loss_fn, params, batch)
    return {name.strip("[']").replace("']['", "/") for name in names}


class Grouped(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Conv(6, (3,), feature_group_count=2, use_bias=False)(x)


class Dense(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Conv(4, (3,), strides=(2,), use_bias=False, name="conv")(x)
        x = nn.ConvTranspose(4, (3,), use_bias=False, name="transposed")(x)
        x = nn.DenseGeneral((2, 2), use_bias=False, name="general")(x)
        x = nn.Dense(3, use_bias=False, dtype=jnp.bfloat16, name="half")(x)
        x = nn.remat(nn.Dense)(3, name="saved")(x)
        return nn.LayerNorm(name="norm")(x)


class Words(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Embed(9, 4, name="embed")((x[..., 0] > 0).astype(jnp.int32))


@pytest.mark.parametrize(
    ("module", "dense"),
    [
        (Dense(), {"saved/bias", "norm/scale", "norm/bias"}),
        (Grouped(), {"Conv_0/kernel"}),
        (Words(), {"embed/embedding"}),
        (nn.RNN(nn.OptimizedLSTMCell(3)), None),
    ],
)
def test_flax_layers_are_what_the_docstring_says(module, dense):
    x = jax.ShapeDtypeStruct((2, 8, 4), jnp.float32)
    params = jax.eval_shape(module.init, jax.random.key(0), x)["params"]

    def loss_fn(params, x):
        y = module.apply({"params": params}, x)
        return jnp.sum(y.reshape(len(y), -1).astype(jnp.float32), axis=1)

    found = names_without_factors(loss_fn, params, x)
    everything = names_without_factors(lambda params, x: jnp.zeros(len(x)), params, x)
    assert found == (everything if dense is None else dense)


def nested(params, x):
    """Applies one jitted layer twice, under ``checkpoint``, ``vmap`` and ``scan``."""
    layer = jax.jit(lambda w, x: jnp.sin(x @ w))
    y = layer(params["w"], layer(params["w"], x))
    y = jax.checkpoint(lambda w, y: jnp.tanh(y @ w))(params["saved"], y)
    y = jax.vmap(lambda row: params["left"] @ row)(y)
    step = lambda y, _: (jnp.cos(y @ params["w"].astype(jnp.float32)), None)
    y, _ = jax.lax.scan(step, y, length=3)
    y = y + y @ params["w"].astype(jnp.int32).astype(jnp.float32)  # No gradient.
    y = y + params["bias"][None]
    return jnp.sum(y**2, axis=1) + jnp.sum(jax.lax.stop_gradient(params["saved"]))


def nested_problem(batch=()):
    keys = jax.random.split(jax.random.key(0), 5)
    draw = lambda key, *shape: jax.random.normal(key, shape) / 2
    params = {
        "w": draw(keys[0], 4, 4),
        "saved": draw(keys[1], 4, 3),
        "left": draw(keys[2], 4, 3),
        "bias": draw(keys[4], 4),
    }
    return params, draw(keys[3], *batch, 5, 4)


def test_sees_through_calls_and_loops():
    params, batch = nested_problem()
    assert names_without_factors(nested, params, batch) == {"bias"}
    _, trees = reference.gradients(nested, params, batch)
    real = np.ones(5, bool)
    _, norms = reference.clipped_gradient_sum(trees, 1.0, real)
    bound = float(np.median(norms))  # Some are clipped and others are not.
    expected, _ = reference.clipped_gradient_sum(trees, bound, real)
    run = lambda *args: ghost.clipped_gradient_sum(nested, *args)
    total, info = jax.jit(run)(params, batch, bound)
    chex.assert_trees_all_close(
        (total.value, info.norms), (expected, norms), rtol=1e-4, atol=1e-6
    )


def test_maps_over_clients_shards_and_compiles_once(traced_once, over_a_mesh):
    params, batches = nested_problem((2,))
    bounds = jnp.array([0.3, 0.8])

    def one(params, batch, bound):
        total, info = ghost.clipped_gradient_sum(nested, params, batch, bound)
        return total.value, info.norms

    alone = jax.jit(traced_once(one))
    expected = [alone(params, *rest) for rest in zip(batches, bounds, strict=True)]
    expected = jax.tree.map(lambda *leaves: jnp.stack(leaves), *expected)
    mapped = jax.vmap(one, (None, 0, 0))
    chex.assert_trees_all_close(
        jax.jit(mapped)(params, batches, bounds), expected, rtol=1e-4, atol=1e-6
    )
    sharded = over_a_mesh(mapped, in_specs=(P(), P("clients"), P("clients")))
    got = sharded(params, batches, bounds)
    chex.assert_trees_all_close(got, expected, rtol=1e-4, atol=1e-6)


def test_shards_do_not_mix_their_examples():
    # The gradient of a variable that all shards share would be summed before clipping.
    params, batch = nested_problem()
    auto = (jax.sharding.AxisType.Auto,)  # The default is Explicit since JAX 0.12.
    mesh = jax.sharding.AbstractMesh((5,), ("clients",), axis_types=auto)
    run = jax.shard_map(
        lambda *args: ghost.clipped_gradient_sum(nested, *args, 1.0)[0].value,
        mesh=mesh,
        in_specs=(P(), P("clients")),
        out_specs=jax.tree.map(lambda leaf: P(*["clients"][: leaf.ndim]), params),
    )
    assert "psum" not in str(jax.make_jaxpr(run)(params, batch))


def test_gradients_of_wide_layers_are_never_made():
    # 32 gradients of 256 x 128 would be 4 MB; activations are 50 KB.
    loss_fn = lambda w, x: jnp.sum(jnp.sin(x @ w), axis=1)
    shapes = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((256, 128),) * 2]
    batch = jax.ShapeDtypeStruct((32, 256), jnp.float32)
    run = lambda w, x: ghost.clipped_gradient_sum(loss_fn, w, x, 1.0)
    memory = jax.jit(run).lower(shapes[0], batch).compile().memory_analysis()
    assert memory.temp_size_in_bytes < 500_000


def lstm_problem():
    case = cases.CASES["lstm"]
    params, x = cases.problem(case, jax.random.key(5), 3, jnp.float64)
    return x, params["kernel"], params["recurrent"], params["bias"]


def test_lstm_and_its_gradients_are_those_of_the_loops():
    with jax.enable_x64():
        args = lstm_problem()
        tilt = jnp.cos(jnp.arange(3 * 6 * 4.0)).reshape(3, 6, 4)

        def both(function):
            loss = lambda *args: jnp.sum(tilt * function(*args))
            run = lambda *args: (
                function(*args),
                jax.grad(loss, (0, 1, 2, 3))(*args),
            )
            return jax.jit(run)(*args)

        got, expected = both(ghost.lstm), both(reference.lstm)
        chex.assert_trees_all_close(got, expected, rtol=1e-10, atol=1e-13)


def test_lstm_takes_half_precision_and_kernels_with_factors():
    with jax.enable_x64():
        x, kernel, recurrent, bias = lstm_problem()
        half = [a.astype(jnp.bfloat16) for a in (x, kernel, recurrent)]
        # A bias in higher precision raises the states' precision.
        mixed = ghost.lstm(*half, bias.astype(jnp.float32))
        assert mixed.dtype == jnp.float32
        expected = ghost.lstm(x, kernel, recurrent, bias)
        chex.assert_trees_all_close(mixed, expected.astype(jnp.float32), atol=0.05)
        change = kernels.Factors(jnp.ones((1, 3)), 0.1 * jnp.ones((1, 16)))
        factored = kernels.FactoredKernel(kernel + 0.1, change)
        got = ghost.lstm(x, factored, recurrent, bias)
        chex.assert_trees_all_close(got, expected, rtol=1e-10, atol=1e-13)


def test_lstm_says_what_was_wrong():
    ones = jnp.ones
    with pytest.raises(ValueError, match=r"\[batch, time >= 1, d_in\].*\(2, 3\), \(3"):
        ghost.lstm(ones((2, 3)), ones((3, 4)), ones((1, 4)), ones(4))
    with pytest.raises(ValueError, match=r"and \[4 n\], got .*\(5,\)"):
        ghost.lstm(ones((1, 2, 3)), ones((3, 4)), ones((1, 4)), ones(5))
