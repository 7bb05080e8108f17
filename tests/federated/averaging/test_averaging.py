"""FedSGD and FedAvg against plain loops, closed forms, padding and recompilation."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxanon import federated
from jaxanon.federated import Layout, Population, Steps, fedavg, fedsgd
from jaxanon.federated.averaging import reference


def _network(params, batch, key):
    hidden = jnp.tanh(batch["x"] @ params["w"] + params["b"][None])
    noise = 0.1 * jax.random.normal(key, params["v"].shape, params["v"].dtype)
    return (hidden @ (params["v"] + noise) - batch["y"]) ** 2


def _params(key):
    keys = jax.random.split(key, 2)
    dtype = jnp.result_type(float)
    return {
        "w": jax.random.normal(keys[0], (3, 4), dtype),
        "b": jnp.zeros(4, dtype),
        "v": jax.random.normal(keys[1], (4,), dtype),
    }


def _clients(sizes=(5, 2, 7, 3)):
    rng = np.random.default_rng(0)
    dtype = jnp.result_type(float)
    return federated.stack(
        [
            {
                "x": rng.normal(size=(n, 3)).astype(dtype),
                "y": rng.normal(size=n).astype(dtype),
            }
            for n in sizes
        ]
    )


def _padded(clients, num_clients=2, rows=3, fill=9.0):
    """Returns the same population padded with more clients and rows."""
    grow = lambda leaf, value: jnp.pad(
        leaf,
        [(0, num_clients), (0, rows)] + [(0, 0)] * (leaf.ndim - 2),
        constant_values=value,
    )
    filled = jax.tree.map(lambda leaf: grow(leaf, fill), clients.rows)
    return Population(filled, grow(clients.mask, False))


def _run(algorithm, clients, num_rounds, key=1, **hyper):
    state = algorithm.init(jax.random.key(0), **hyper)
    return federated.simulate(
        algorithm, jax.random.key(key), state, clients, num_rounds
    )


@functools.cache
def _loops_of_fedavg():
    return reference.fedavg(
        jax.random.key(1),
        _params(jax.random.key(0)),
        jax.jit(_network),
        _clients(),
        3,
        optax.sgd(0.7, momentum=0.9),
        cohort_size=3,
        learning_rate=0.05,
        num_steps=4,
        batch_size=3,
    )


@pytest.mark.slow
def test_fedsgd_agrees_with_the_loops_in_float64():
    with jax.enable_x64(True):
        clients, optimizer = _clients(), optax.adam(0.1)
        algorithm = fedsgd(
            *(_params, _network),
            **{"server_optimizer": optimizer, "cohort_size": 3},
            layout=Layout(chunk_size=1),
        )
        state, _ = _run(algorithm, clients, 4)
        expected = reference.fedsgd(
            *(jax.random.key(1), _params(jax.random.key(0)), jax.jit(_network)),
            *(clients, 4, optimizer),
            cohort_size=3,
        )
        chex.assert_trees_all_close(state.params, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [None, 1, 2])
def test_fedavg_agrees_with_the_loops_in_float64(chunk):
    with jax.enable_x64(True):
        clients, optimizer = _clients(), optax.sgd(0.7, momentum=0.9)
        algorithm = fedavg(
            _params,
            _network,
            steps=Steps(num_steps=4, batch_size=3),
            server_optimizer=optimizer,
            cohort_size=3,
            layout=Layout(chunk_size=chunk, unroll=2),
        )
        state, _ = _run(algorithm, clients, 3, learning_rate=0.05)
        expected = _loops_of_fedavg()
        chex.assert_trees_all_close(state.params, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.slow
def test_one_full_batch_step_of_fedavg_is_fedsgd():
    quiet = lambda params, batch, key: _network(params, batch, jax.random.key(0))
    common = dict(cohort_size=2, weighting="clients")
    average = fedavg(_params, quiet, steps=Steps(num_steps=1), **common)
    gradient = fedsgd(_params, quiet, server_optimizer=optax.sgd(0.05), **common)
    one, _ = _run(average, _clients(), 3, learning_rate=0.05)
    other, _ = _run(gradient, _clients(), 3)
    chex.assert_trees_all_close(one.params, other.params, rtol=1e-4, atol=1e-6)


def test_quadratic_has_the_closed_form():
    # Loss (w - c)^2 / 2: a step of size a keeps (1 - a) of the distance to the
    # client's mean, so k steps leave c + (1 - a)^k (w - c); the mean over clients by
    # rows moves w to c_bar + (1 - a)^k (w - c_bar).
    square = lambda w, x, key: 0.5 * (w - x) ** 2
    clients = federated.stack([np.array([1.0, 3.0]), np.array([5.0])])
    algorithm = fedavg(lambda key: jnp.float32(0), square, steps=Steps(num_steps=3))
    state, info = _run(algorithm, clients, 2, learning_rate=0.5)
    by_rows = (2 * 2 + 1 * 5) / 3
    np.testing.assert_allclose(state.params, by_rows * (1 - 0.5**6), rtol=1e-6)
    algorithm = fedavg(
        lambda key: jnp.float32(0),
        square,
        steps=Steps(num_steps=3),
        weighting="clients",
    )
    state, info = _run(algorithm, clients, 2, learning_rate=0.5)
    np.testing.assert_allclose(state.params, (2 + 5) / 2 * (1 - 0.5**6), rtol=1e-6)
    assert info["loss"].shape == (2,)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "weighting"), [("sgd", "clients"), ("avg", "rows")])
def test_padded_clients_and_rows_change_nothing(kind, weighting):
    layout = Layout(chunk_size=1)
    if kind == "sgd":
        algorithm = fedsgd(_params, _network, weighting=weighting, layout=layout)
    else:
        algorithm = fedavg(
            _params,
            _network,
            steps=Steps(num_steps=3, batch_size=2),
            weighting=weighting,
            layout=layout,
        )
    plain, plain_info = _run(algorithm, _clients(), 3)
    padded, padded_info = _run(algorithm, _padded(_clients()), 3)
    close = dict(rtol=1e-5, atol=1e-6)  # Longer sums round differently.
    chex.assert_trees_all_close(plain.params, padded.params, **close)
    chex.assert_trees_all_close(plain_info, padded_info, **close)


@pytest.mark.slow
def test_seeds_and_hyper_parameters_are_one_more_axis_and_compile_nothing():
    optimizer = optax.inject_hyperparams(optax.adam)(learning_rate=0.1)
    algorithm = fedavg(
        _params,
        _network,
        steps=Steps(num_steps=2, batch_size=2),
        server_optimizer=optimizer,
    )
    clients = _clients()

    def run(seed, learning_rate, server_rate):
        state = algorithm.init(jax.random.key(seed), learning_rate=learning_rate)
        state.opt_state.hyperparams["learning_rate"] = server_rate
        return algorithm.update(jax.random.key(seed + 10), state, clients)[0].params

    given = [(0, 0.1, 0.1), (1, 0.3, 0.1), (1, 0.3, 0.4)]
    single = jax.jit(chex.assert_max_traces(run, n=1))
    together = jax.jit(jax.vmap(run))(*map(jnp.array, zip(*given, strict=True)))
    alone = jax.tree.map(lambda *a: np.stack(a), *(single(*each) for each in given))
    chex.assert_trees_all_close(together, alone, rtol=1e-4)
    assert len({*alone["w"][:, 0, 0].tolist()}) == 3


def test_says_what_was_wrong():
    with pytest.raises(ValueError, match=r"weighting must be one of.*got 'size'"):
        fedsgd(_params, _network, weighting="size")
    with pytest.raises(ValueError, match="num_steps must be >= 1, got 0"):
        fedavg(_params, _network, steps=Steps(num_steps=0))
    with pytest.raises(ValueError, match="batch_size must be >= 1, got 0; None takes"):
        fedavg(_params, _network, steps=Steps(num_steps=1, batch_size=0))
    with pytest.raises(TypeError, match=r"num_steps must be whole, got 2\.5"):
        fedavg(_params, _network, steps=Steps(num_steps=2.5))
    with pytest.raises(TypeError, match=r"\['learning_rate'\], got \['lr'\]"):
        fedavg(_params, _network, steps=Steps(num_steps=1)).init(
            jax.random.key(0), lr=1.0
        )
    with pytest.raises(ValueError, match=r"cohort_size must be .* got 5"):
        _run(fedsgd(_params, _network, cohort_size=5), _clients(), 1)
