"""No compiled factored program holds the weights of a layer once per client."""

import math
import re
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, PartitionSpec

from jaxanon import kernels
from jaxanon.kernels import varying
from jaxanon.models import blinder

pytestmark = pytest.mark.slow

CLIENTS, WIDTHS = 23, (67, 59, 61)  # Primes, so that sizes name their axes.
QUERY = 4


def loss(params, x):
    hidden = jnp.tanh(kernels.matmul(x, params["first"]) + params["bias"][None])
    return jnp.mean(jnp.square(kernels.matmul(hidden, params["second"])))


def parameters():
    inputs, hidden, outputs = WIDTHS
    shapes = {"first": (inputs, hidden), "bias": (hidden,), "second": (hidden, outputs)}
    return {name: jax.ShapeDtypeStruct(s, jnp.float32) for name, s in shapes.items()}


def rows(number):
    return jax.ShapeDtypeStruct((CLIENTS, number, WIDTHS[0]), jnp.float32)


class Program(NamedTuple):
    """A function of abstract arguments, and the floats that its clients compute."""

    fn: object
    args: tuple
    activations: int  # a client's floats: inputs and outputs of layers, and cotangents


def _meta(num_steps, chunk=None, second_order=True):
    one = lambda params, x: loss(params["net"], x)
    phases = [kernels.Phase(("net",), one, 0.1, num_steps)]
    objectives = [kernels.Objective(("net",), lambda p, x: (one(p, x), {}))]

    def gradient(params, support, query):
        return kernels.meta_gradient(
            *(phases, objectives, {"net": params}, support, query, jnp.ones(CLIENTS)),
            chunk=chunk,
            second_order=second_order,
        )

    return Program(
        gradient, (parameters(), rows(1), rows(QUERY)), _layers(num_steps + QUERY)
    )


def _layers(number):
    """Inputs, hidden units and outputs of rows, with the derivative of each."""
    return 2 * number * (sum(WIDTHS) + WIDTHS[1])


def _adapt(num_steps):
    def mean(params, support, query):
        def one(support, query):
            own = params
            for _ in range(num_steps):
                _, grads = kernels.value_and_grad(loss)(own, support)
                own = kernels.sgd_step(own, grads, 0.1)
            return loss(own, query)

        return jnp.mean(jax.vmap(one)(support, query))

    fn = jax.value_and_grad(mean)
    return Program(fn, (parameters(), rows(1), rows(QUERY)), _layers(num_steps + QUERY))


def _gradients(params, x):
    return jax.vmap(lambda x: kernels.value_and_grad(loss)(params, x)[1])(x)


def _products(params, x):
    grads = _gradients(params, x)
    left, right = (
        jax.tree.map(lambda leaf, at=at: jnp.expand_dims(leaf, at), grads)
        for at in (1, 0)
    )
    layers = ("first", "second")
    return sum(kernels.inner_product(left[name], right[name]) for name in layers)


def _mean_of_gradients(params, x):
    grads = _gradients(params, x)
    return kernels.weighted_sum(grads["first"], jnp.ones(CLIENTS) / CLIENTS)


def _blinder(guided):
    time, classes, hidden = 71, 2, (47,)
    nets = blinder.networks(
        *(time, 1, [classes]),
        latent=37,
        hidden=hidden,
        discriminator_hidden_sizes=(43,),
    )
    critics = (blinder.Critic(classes, (53,)),)
    scale = blinder.LossScale(1.0, 1.0, 1.0)

    def start():
        params = nets.init(jax.random.key(0), time, 1, classes)
        window = jnp.zeros((1, time, 1))
        known = [net.init(jax.random.key(1), window)["params"] for net in critics]
        return params | {"critics": known} if guided else params

    objective = blinder.joint_objective(nets, scale)
    if guided:
        classify = lambda params, windows: windows[:, :classes, 0]
        guide = blinder.GuideScale(1.0, 1.0)
        objective = blinder.guided_objective(nets, critics, classify, scale, guide)
    phases = blinder.phases(nets, scale, 0.1, discriminator_steps=2)

    def gradient(params, support, query):
        weights = jnp.ones(CLIENTS)
        return kernels.meta_gradient(
            phases, [objective], params, support, query, weights
        )

    def batch(number):
        of = lambda *shape: jax.ShapeDtypeStruct((CLIENTS, *shape), jnp.float32)
        hot, noise = of(number, classes), of(number, 37)
        return blinder.BlinderBatch(
            *(of(number, time, 1), hot, (hot,), of(number), noise, (hot,)),
            of(2 * number, 37),
            (hot,),
        )

    # Windows pass encoder, decoder and discriminators, some twice (shadows, targets).
    width = 2 * time + 2 * 2 * hidden[0] + 3 * 37 + 2 * 2 * classes + 2 * 43 + 2 * 53
    args = jax.eval_shape(start), batch(1), batch(QUERY)
    return Program(gradient, args, 2 * width * (3 + 2 * QUERY))


PROGRAMS = {
    "meta-gradient": _meta(1),
    "meta-gradient of three steps": _meta(3),
    "first-order meta-gradient": _meta(1, second_order=False),
    "meta-gradient in chunks": _meta(1, chunk=11),
    "steps of one's own": _adapt(2),
    "products of gradients": Program(_products, (parameters(), rows(1)), _layers(1)),
    "mean of gradients": Program(
        _mean_of_gradients, (parameters(), rows(1)), _layers(1)
    ),
    "Blinder": _blinder(guided=False),
    "guided Blinder": _blinder(guided=True),
}


def copies(compiled, params, clients=(CLIENTS,)):
    """Returns the shapes in a program with an axis of clients and both of a matrix.

    Clients and widths are primes, so the size of an array identifies its axes in any
    order, and also where some are joined. Factors do not pay for a layer of a few
    classes.
    """
    matrices = {leaf.shape for leaf in jax.tree.leaves(params) if len(leaf.shape) == 2}
    matrices = {shape for shape in matrices if min(shape) > 2 * QUERY}
    shapes = set(re.findall(r"\b(?:f|bf)\d+\[([\d,]+)\]", compiled.as_text()))
    sizes = {shape: math.prod(map(int, shape.split(","))) for shape in shapes}
    return sorted(
        shape
        for shape, size in sizes.items()
        for matrix in matrices
        for number in clients
        if size % (number * math.prod(matrix)) == 0
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_program_holds_a_matrix_for_each_client(name):
    program = PROGRAMS[name]
    compiled = jax.jit(program.fn).lower(*program.args).compile()
    params = program.args[0]
    assert not copies(
        compiled, params, (CLIENTS, 11) if "chunk" in name else (CLIENTS,)
    )
    held = compiled.memory_analysis().temp_size_in_bytes / 4
    assert held <= 1.5 * program.activations * CLIENTS


def test_a_copy_for_each_client_is_found():
    def copied(params, x):
        own = jax.vmap(lambda x: params["first"] * jnp.sum(x))(x)
        return jnp.einsum("cio,cri->cro", jnp.sin(own), x)

    args = parameters(), rows(1)
    compiled = jax.jit(copied).lower(*args).compile()
    assert copies(compiled, args[0])


def test_the_gradient_of_replicated_weights_stays_on_its_shard():
    """Each shard has its own gradient, x; without the mark they would be summed."""
    mesh = jax.make_mesh((1,), ("clients",), axis_types=(AxisType.Auto,))
    clients, everywhere = PartitionSpec("clients"), PartitionSpec()

    def own(w, x):
        grad = jax.grad(lambda w: jnp.sum(w * x[0]))(varying.spread(w, x))
        return grad[None], jax.typeof(grad).manual_axis_type.varying == {"clients"}

    def through(w, x):
        """The mark passes gradients on: the sum over shards arrives at ``w``."""
        return jax.grad(
            lambda w: jax.lax.psum(jnp.sum(varying.spread(w, x) * x[0]), "clients")
        )(w)

    w, x = jnp.arange(3.0), jnp.asarray([[1.0, 2.0, 5.0]])
    kinds = []

    def traced(w, x):
        grad, varies = own(w, x)
        kinds.append(varies)
        return grad, through(w, x)

    shards = jax.shard_map(
        traced,
        mesh=mesh,
        in_specs=(everywhere, clients),
        out_specs=(clients, everywhere),
    )
    alone, summed = jax.jit(shards)(w, x)
    assert kinds == [True]
    np.testing.assert_array_equal(alone, x)
    np.testing.assert_array_equal(summed, x[0])
