"""Optax on either side, passes over rows, and parameters of other libraries."""

import inspect

import chex
import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from jaxanon import federated as fed

TWO = fed.Steps(num_steps=2)
SQUARE = lambda w, x, key: 0.5 * (w - x) ** 2
ZERO = lambda key: jnp.zeros(())
# Algorithms without local steps, or without a shared model.
WITHOUT = {
    "fedsgd": {"steps", "client_optimizer"},
    "centralized_clustering": {"cohort_size", "server_optimizer"},
    "dp_fedavg": {"cohort_size"},  # Poisson sampling.
}


def clients():
    return fed.stack([jnp.array([4.0, 2.0, 6.0]), jnp.array([-1.0])])


def ran(make, num_rounds=1, data=None, hyper=None, **settings):
    algorithm = make(ZERO, SQUARE, **settings)
    state = algorithm.init(jax.random.key(0), **(hyper or {}))
    data = clients() if data is None else data
    for _ in range(num_rounds):
        state, info = algorithm.update(jax.random.key(1), state, data)
    return state, info


NAMES = [
    *("atlas", "centralized_clustering", "clusterfl", "ditto", "dp_fedavg", "fedavg"),
    *("feddl", "fedmask", "fedper", "fedprox", "fedrep", "fedsgd", "fedsgd_ldp"),
    *("ldp_fl", "localized", "per_fedavg", "pfedme", "scaffold"),
]


@pytest.mark.parametrize("name", NAMES)
def test_every_algorithm_has_the_same_first_arguments(name):
    parameters = inspect.signature(getattr(fed, name)).parameters
    first, second, *rest = parameters.values()
    assert (first.name, second.name) == ("init_fn", "loss_fn")
    kinds = {p.kind for p in rest}
    assert kinds <= {inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD}
    names = {p.name for p in rest}
    if "options" in names:
        names |= set(fed.RoundOptions.__annotations__)
    wanted = {"steps", "cohort_size", "client_optimizer", "server_optimizer", "layout"}
    assert wanted - names == WITHOUT.get(name, set())


def by_hand(optimizer, x, num_steps):
    """Full-batch steps of an Optax optimizer on the mean loss, in a Python loop."""
    w, state = jnp.zeros(()), optimizer.init(jnp.zeros(()))
    for _ in range(num_steps):
        updates, state = optimizer.update(w - jnp.mean(x), state, w)
        w = optax.apply_updates(w, updates)
    return w


@pytest.mark.parametrize("make", [fed.fedavg, fed.fedprox, fed.scaffold])
def test_clients_take_the_steps_of_their_optimizer(make):
    more = {} if make is fed.fedavg else {"num_clients": 2}
    hyper = {"proximal_mu": 0.0} if make is fed.fedprox else {}
    adam = optax.adam(0.5)
    settings = {"steps": TWO, "weighting": "clients", "client_optimizer": adam}
    state, _ = ran(make, hyper=hyper, **settings, **more)
    each = [by_hand(adam, jnp.array(x), 2) for x in ([4.0, 2.0, 6.0], [-1.0])]
    np.testing.assert_allclose(state.params, np.mean(each), rtol=1e-5)
    assert "learning_rate" not in state.hyper
    with pytest.raises(TypeError, match="learning_rate"):
        ran(make, hyper={"learning_rate": 0.1}, **settings, **more)


def test_a_function_gets_the_learning_rate_and_does_not_recompile():
    algorithm = fed.fedavg(ZERO, SQUARE, steps=TWO, client_optimizer=optax.adam)
    update = jax.jit(chex.assert_max_traces(algorithm.update, n=1))
    one = fed.stack([jnp.array([4.0])])
    for rate in (0.5, 0.25):
        state = algorithm.init(jax.random.key(0), learning_rate=rate)
        state, _ = update(jax.random.key(1), state, one)
        want = by_hand(optax.adam(rate), jnp.array([4.0]), 2)
        np.testing.assert_allclose(state.params, want, rtol=1e-5)


@pytest.mark.parametrize("name", ["fedprox", "ditto", "scaffold"])
def test_a_server_optimizer_takes_the_change_of_the_shared_model(name):
    """SGD of rate 1 is the plain update, and momentum repeats a part of the last."""
    make = getattr(fed, name)
    more = {"steps": TWO, "num_clients": 2}
    if name == "ditto":
        more["personal_steps"] = TWO
    plain, _ = ran(make, 2, **more)
    same, _ = ran(make, 2, server_optimizer=optax.sgd(1.0), **more)
    np.testing.assert_allclose(same.params, plain.params, rtol=1e-6)
    first, _ = ran(make, 1, **more)
    moving, _ = ran(make, 1, server_optimizer=optax.sgd(1.0, momentum=0.9), **more)
    np.testing.assert_allclose(moving.params, first.params, rtol=1e-6)
    moved, _ = ran(make, 2, server_optimizer=optax.sgd(1.0, momentum=0.9), **more)
    if name != "scaffold":  # Its controls also move in round 2.
        again, _ = ran(make, 1, data=clients(), **more)
        assert moved.params > plain.params > again.params > 0


def test_private_steps_take_the_steps_of_their_optimizer():
    """Without noise or clipping, on all rows, they are plain steps."""
    lots = fed.PoissonSampling(
        sampling_probability=1.0, expected_batch_size=1.0, max_examples=1
    )
    algorithm = fed.fedsgd_ldp(
        *(ZERO, SQUARE),
        **{"steps": TWO, "lots": lots, "num_clients": 1},
        client_optimizer=optax.adam(0.5),
    )
    state = algorithm.init(jax.random.key(0), clip_norm=100.0, noise_multiplier=0.0)
    one = fed.stack([jnp.array([4.0])])
    state, _ = algorithm.update(jax.random.key(1), state, one)
    want = by_hand(optax.adam(0.5), jnp.array([4.0]), 2)
    np.testing.assert_allclose(state.params, want, rtol=1e-5)


@pytest.mark.parametrize("side", ["client_optimizer", "server_optimizer"])
def test_dp_fedavg_takes_optimizers(side):
    """One client, no clipping and almost no noise."""
    every = fed.PoissonSampling(
        sampling_probability=1.0, expected_batch_size=1.0, max_examples=1
    )
    hyper = {"clip_norm": 100.0, "noise_multiplier": 1e-6}
    if side == "server_optimizer":
        hyper["learning_rate"] = 0.5
    state, _ = ran(
        *(fed.dp_fedavg, 1, fed.stack([jnp.array([4.0])]), hyper),
        **{"steps": TWO, "cohorts": every, "count_stddev": 1e-5},
        **{side: optax.adam(0.5)},
    )
    want = by_hand(optax.adam(0.5), jnp.array([4.0]), 2)
    if side == "server_optimizer":
        want = 0.5  # The first step of Adam has the length of its rate.
    np.testing.assert_allclose(state.params, want, rtol=1e-3)


def test_a_client_visits_its_rows_as_often_as_it_has_epochs():
    """Three rows in batches of two: 2 epochs visit 6 rows in 3 steps, one row in 1.

    With the loss w x, a step descends the mean of its rows: (4 + 2 + 6 + 4 + 2 + 6) / 2
    for the first client. The second has one row: -1, twice.
    """
    linear = lambda w, x, key: w * x
    steps = fed.Steps(num_epochs=2, batch_size=2, shuffle=False)
    for pad in (0, 2):
        data = clients()
        data = jax.tree.map(lambda leaf, n=pad: jnp.pad(leaf, [(0, 0), (0, n)]), data)
        algorithm = fed.localized(ZERO, linear, steps=steps, num_clients=2)
        state = algorithm.init(jax.random.key(0), learning_rate=1.0)
        state, _ = algorithm.update(jax.random.key(1), state, data)
        np.testing.assert_allclose(state.own, [-12.0, 2.0])
    assert steps.most(3) == 3
    assert [int(steps.count(jnp.arange(5) < n)) for n in range(4)] == [0, 2, 2, 3]
    # The last batch of 3 epochs of 3 rows has one row only.
    steps = fed.Steps(num_epochs=3, batch_size=2, shuffle=False)
    algorithm = fed.fedavg(ZERO, linear, steps=steps)
    state = algorithm.init(jax.random.key(0), learning_rate=1.0)
    one = fed.stack([jnp.array([4.0, 2.0, 6.0])])
    state, _ = algorithm.update(jax.random.key(1), state, one)
    np.testing.assert_allclose(state.params, -(3 + 5 + 4 + 3 + 6.0))


def test_the_loss_of_epochs_is_the_mean_over_a_clients_steps():
    """At a learning rate of 0, each step has the loss of its row."""
    steps = fed.Steps(num_epochs=1, batch_size=1)
    _, info = ran(
        fed.fedavg, steps=steps, weighting="clients", hyper={"learning_rate": 0.0}
    )
    want = np.mean([np.mean([8.0, 2.0, 18.0]), 0.5])
    np.testing.assert_allclose(info["loss"], want)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "num_steps or num_epochs must be given, got neither"),
        ({"num_steps": 1, "num_epochs": 1}, "must be given, got both"),
        ({"num_epochs": 0}, "num_epochs must be >= 1, got 0"),
    ],
)
def test_steps_say_what_was_wrong(settings, message):
    with pytest.raises(ValueError, match=message):
        fed.Steps(**settings)


def test_options_that_a_method_cannot_follow_are_refused():
    sgd = optax.sgd(0.1)
    with pytest.raises(ValueError, match="client_optimizer must be None for ldp_fl"):
        fed.ldp_fl(
            ZERO, SQUARE, steps=TWO, radii=1.0, num_clients=1, client_optimizer=sgd
        )
    with pytest.raises(ValueError, match="server_optimizer must be None for localized"):
        fed.localized(ZERO, SQUARE, steps=TWO, num_clients=1, server_optimizer=sgd)
    with pytest.raises(ValueError, match="must have num_steps for per_fedavg, got num"):
        fed.per_fedavg(ZERO, SQUARE, steps=fed.Steps(num_epochs=1), num_clients=1)
    algorithm = fed.fedavg(ZERO, SQUARE, steps=TWO)
    state = algorithm.init(jax.random.key(0))
    with pytest.raises(TypeError, match=r"got a list of 2; stack .* federated\.stack"):
        algorithm.update(jax.random.key(0), state, [jnp.ones(2), jnp.ones(1)])


def linen():
    net = nn.Sequential([nn.Dense(3), nn.tanh, nn.Dense(1)])
    return lambda key: net.init(key, jnp.zeros((1, 2))), net.apply


def flax_nnx():
    make = lambda rngs: nnx.Sequential(
        nnx.Linear(2, 3, rngs=rngs), jnp.tanh, nnx.Linear(3, 1, rngs=rngs)
    )
    graph = nnx.split(nnx.eval_shape(lambda: make(nnx.Rngs(0))), nnx.Param)[0]
    init = lambda key: nnx.state(make(nnx.Rngs(key)), nnx.Param)
    return init, lambda params, x: nnx.merge(graph, params)(x)


def equinox():
    make = lambda key: eqx.nn.MLP(2, 1, 3, 1, jnp.tanh, key=key)
    static = eqx.filter(make(jax.random.key(0)), eqx.is_inexact_array, inverse=True)
    init = lambda key: eqx.filter(make(key), eqx.is_inexact_array)
    return init, lambda params, x: jax.vmap(eqx.combine(params, static))(x)


def plain():
    init = lambda key: [jax.random.normal(key, (2, 3)), jnp.ones((3, 1))]
    return init, lambda params, x: jnp.tanh(x @ params[0]) @ params[1]


@pytest.mark.parametrize("library", [linen, flax_nnx, equinox, plain])
@pytest.mark.parametrize("name", ["fedavg", "scaffold"])
def test_models_of_any_library_learn(library, name):
    """One client with Adam reaches what an Optax loop on its rows reaches."""
    init, apply = library()
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6, 2)).astype(np.float32)
    loss = lambda params, batch, key: (apply(params, batch)[:, 0] - batch[:, 0]) ** 2
    optimizer = optax.adam(0.05)
    more = {} if name == "fedavg" else {"num_clients": 1}
    algorithm = getattr(fed, name)(
        *(init, loss), steps=TWO, client_optimizer=optimizer, **more
    )
    state = algorithm.init(jax.random.key(0))
    want, opt_state = state.params, optimizer.init(state.params)
    for _ in range(2):
        grads = jax.grad(lambda params: jnp.mean(loss(params, x, None)))(want)
        updates, opt_state = optimizer.update(grads, opt_state, want)
        want = optax.apply_updates(want, updates)
    state, _ = algorithm.update(jax.random.key(1), state, fed.stack([x]))
    chex.assert_trees_all_close(state.params, want, rtol=1e-4, atol=1e-6)


def test_a_whole_equinox_module_is_refused_with_the_remedy():
    init = lambda key: eqx.nn.MLP(2, 1, 3, 1, key=key)
    algorithm = fed.fedavg(init, SQUARE, steps=TWO)
    with pytest.raises(TypeError, match=r"activation; .*eqx\.filter\(module"):
        algorithm.init(jax.random.key(0))
