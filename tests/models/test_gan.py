"""Generators and discriminators: shapes and dependencies of their outputs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon.models.gan import Critic, Generator, Recurrent


def run(net, *inputs):
    variables = net.init(jax.random.key(0), *inputs)
    return np.asarray(net.apply(variables, *inputs))


@pytest.mark.parametrize("time", [7, 16, 17])
def test_windows_of_any_length(time):
    noise = jax.random.normal(jax.random.key(1), (3, 4))
    net = Generator(time, (False, True), 2, widths=(8, 4))
    made = run(net, noise, jnp.array([0, 0, 1]))
    assert made.shape == (3, time, 2)
    assert (np.abs(made[..., 1]) < 1).all()
    assert run(Critic(2, (4, 8)), jnp.array(made), jnp.array([0, 0, 1])).shape == (3,)


def test_the_class_is_heard_and_bits_alone_are_bounded():
    noise = 50 * jnp.ones((2, 4))
    made = run(Generator(16, (False, True), 2, widths=(8,)), noise, jnp.array([0, 1]))
    assert np.abs(made[0] - made[1]).max() > 1e-3
    assert np.abs(made[..., 0]).max() > 1 >= np.abs(made[..., 1]).max()
    windows = jnp.ones((2, 9, 3))
    scores = run(Critic(2, (4,)), windows, jnp.array([0, 1]))
    assert scores[0] != scores[1]


def test_a_gated_unit_by_hand():
    """The reset gate is applied after the product with the hidden state."""
    net, x = Recurrent((3,), 3), jax.random.normal(jax.random.key(2), (2, 4, 2))
    variables = net.init(jax.random.key(3), x)
    cell = jax.tree.map(np.asarray, variables["params"]["layer_0"])
    dense = jax.tree.map(np.asarray, variables["params"]["dense"])
    gate = lambda name, x: x @ cell[name]["kernel"] + cell[name].get("bias", 0)
    sigmoid = lambda x: 1 / (1 + np.exp(-x))
    state, said = np.zeros((2, 3)), []
    for now in np.moveaxis(np.asarray(x), 1, 0):
        reset = sigmoid(gate("ir", now) + gate("hr", state))
        keep = sigmoid(gate("iz", now) + gate("hz", state))
        new = np.tanh(gate("in", now) + reset * gate("hn", state))
        state = (1 - keep) * new + keep * state
        said.append(sigmoid(state @ dense["kernel"] + dense["bias"]))
    found = np.asarray(net.apply(variables, x))
    np.testing.assert_allclose(found, np.stack(said, axis=1), atol=1e-5)
