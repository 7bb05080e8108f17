"""Variants of FedAvg against loops over the published pseudo-code, and closed forms."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxanon import federated as fed
from jaxanon import kernels
from jaxanon.federated.averaging import reference_variants as loops
from jaxanon.federated.averaging.hierarchical import HierarchicalState
from jaxanon.federated.engine.cohort import keyed_permutation
from jaxanon.federated.private.dp_ftrl import pass_keys, tree_noise

OPTIONS = {"num_steps": 3, "batch_size": 2}
STEPS = fed.Steps(**OPTIONS)
CLOSE = {"rtol": 1e-9, "atol": 1e-11}
KEY, ROUNDS = jax.random.key(1), 3
SQUARE = lambda w, x, key: 0.5 * (w - x) ** 2
ZERO = lambda key: jnp.zeros(())


@pytest.fixture
def against(network, start, population):
    """Runs an algorithm and its loops in float64; returns the final state."""

    def run(algorithm_fn, loops_fn, hyper, clients=None, num_rounds=ROUNDS):
        with jax.enable_x64(True):
            clients = clients or population()
            algorithm = algorithm_fn(start, network)
            state = algorithm.init(jax.random.key(0), **hyper)
            update = jax.jit(algorithm.update)
            for _ in range(num_rounds):
                state, info = update(KEY, state, clients)
            begun = start(jax.random.key(0))
            want = loops_fn(KEY, begun, jax.jit(network), clients, num_rounds)
            got = state.params
            if isinstance(want, tuple):
                want, got = want[0], got
            chex.assert_trees_all_close(got, want, **CLOSE)
            return state, info

    return run


@pytest.mark.parametrize("rule", ["adam", "yogi", "adagrad"])
def test_fedopt_is_its_pseudo_code(rule, against):
    rates = {"server_learning_rate": 0.3, "b1": 0.8, "b2": 0.9, "tau": 0.05}
    make = getattr(fed, f"fed{rule}")
    against(
        lambda start, network: make(start, network, steps=STEPS, **rates),
        lambda *args: loops.fedopt(rule, *args, OPTIONS, learning_rate=0.1, **rates),
        {"learning_rate": 0.1},
    )


def test_fednova_is_its_pseudo_code(against):
    settings = {"num_epochs": 2, "batch_size": 2}
    sgd = functools.partial(optax.sgd, momentum=0.7)
    against(
        lambda start, network: fed.fednova(
            start, network, steps=fed.Steps(**settings), client_optimizer=sgd
        ),
        functools.partial(loops.fednova, learning_rate=0.05, momentum=0.7, **settings),
        {"learning_rate": 0.05},
    )


def test_feddyn_is_its_pseudo_code(against):
    hyper = {"learning_rate": 0.1, "alpha": 0.3}
    against(
        lambda start, network: fed.feddyn(start, network, steps=STEPS, num_clients=3),
        lambda *args: loops.feddyn(*args, OPTIONS, **hyper),
        hyper,
    )


@pytest.mark.parametrize("lite", [False, True])
def test_mime_is_its_pseudo_code(lite, against):
    hyper = {"learning_rate": 0.1, "momentum": 0.8}
    against(
        lambda start, network: fed.mime(
            start, network, steps=STEPS, num_clients=3, lite=lite
        ),
        lambda *args: loops.mime(*args, OPTIONS, lite=lite, **hyper),
        hyper,
    )


def test_fedbuff_is_its_pseudo_code(against):
    """Staleness is drawn from a client's key, and cannot reach before the start."""
    hyper = {"learning_rate": 0.1, "server_learning_rate": 0.7}

    def drawn(t, client):
        _, client_key = jax.random.split(jax.random.fold_in(KEY, t))
        own_key, _ = jax.random.split(jax.random.fold_in(client_key, client))
        return int(jax.random.randint(own_key, (), 0, 3, jnp.int32))

    staleness = [[drawn(t, c) for c in range(3)] for t in range(5)]
    assert {0, 1, 2} == {s for each in staleness for s in each}
    _, info = against(
        lambda start, network: fed.fedbuff(
            *(start, network),
            **{"steps": STEPS, "num_clients": 3, "buffer_size": 3, "max_staleness": 2},
        ),
        lambda *args: loops.fedbuff(*args, OPTIONS, staleness=staleness, **hyper),
        hyper,
        num_rounds=5,
    )
    assert float(info["staleness"]) == pytest.approx(np.mean(staleness[-1]))


def test_hierarchical_averaging_is_its_pseudo_code(against, start, network, population):
    groups, settings = [0, 1, 0], {"learning_rate": 0.1, "every": 2}
    state, _ = against(
        lambda start, network: fed.hierarchical(
            start, network, steps=STEPS, groups=groups, rounds_per_average=2
        ),
        lambda *args: loops.hierarchical(*args, OPTIONS, groups=groups, **settings),
        {"learning_rate": 0.1},
    )
    with jax.enable_x64(True):
        _, edges = loops.hierarchical(
            *(KEY, start(jax.random.key(0)), jax.jit(network), population(), ROUNDS),
            *(OPTIONS,),
            groups=groups,
            **settings,
        )
        stacked = jax.tree.map(lambda *x: np.stack(x), edges[0], edges[1])
        chex.assert_trees_all_close(state.server.models, stacked, **CLOSE)
    assert isinstance(state.server, HierarchicalState)


def test_a_group_absent_from_the_last_round_keeps_its_weight():
    """One of two clients, at 4 and 8, joins each round; every step goes all the way."""
    algorithm = fed.hierarchical(
        ZERO,
        SQUARE,
        steps=fed.Steps(num_steps=1),
        groups=[0, 1],
        rounds_per_average=2,
        cohort_size=1,
    )
    state = algorithm.init(jax.random.key(0), learning_rate=1.0)
    clients = fed.stack([jnp.array([4.0]), jnp.array([8.0])])

    def two(key):
        first, second = jax.random.split(key)
        half, _ = algorithm.update(first, state, clients)
        after, _ = algorithm.update(second, half, clients)
        return half.server.weights, after.server.weights, after.params

    half, after, params = jax.vmap(two)(jax.random.split(jax.random.key(1), 16))
    np.testing.assert_array_equal(np.sort(half, axis=1), [[0, 1]] * 16)
    assert not after.any()
    assert {4.0, 6.0, 8.0} == set(params.tolist())  # Once each, or twice the same.


def test_hierarchical_averaging_in_every_round_is_fedavg():
    clients = fed.stack([jnp.array([4.0, 2.0]), jnp.array([-1.0]), jnp.array([3.0])])
    plain = fed.fedavg(ZERO, SQUARE, steps=STEPS)
    tree = fed.hierarchical(
        ZERO, SQUARE, steps=STEPS, groups=[1, 0, 1], rounds_per_average=1
    )
    found = [
        algorithm.update(KEY, algorithm.init(KEY, learning_rate=0.1), clients)[0].params
        for algorithm in (plain, tree)
    ]
    np.testing.assert_allclose(*found, rtol=1e-6)


def _median(moves):
    return jax.tree.map(lambda *x: jnp.median(jnp.stack(x), axis=0), *moves)


def _trimmed(moves):
    return jax.tree.map(lambda *x: jnp.mean(jnp.sort(jnp.stack(x), 0)[1:-1], 0), *moves)


def _krum(moves):
    """One Byzantine client: a score is the sum of the two smallest distances."""
    flat = [np.asarray(jax.flatten_util.ravel_pytree(move)[0]) for move in moves]
    apart = [[np.sum((a - b) ** 2) for b in flat] for a in flat]
    scores = [sum(sorted(row)[1:3]) for row in apart]  # Without the client itself.
    return moves[int(np.argmin(scores))]


ROBUST = {
    "median": (kernels.coordinate_median, _median),
    "trimmed": (functools.partial(kernels.trimmed_mean, num_trimmed=1), _trimmed),
    "krum": (lambda moves, mask: kernels.krum(moves, 1, mask=mask)[0], _krum),
}


@pytest.mark.parametrize("name", sorted(ROBUST))
def test_robust_aggregation_replaces_the_mean(name, against, population):
    aggregator, fn = ROBUST[name]
    with jax.enable_x64(True):
        clients = population((5, 2, 7, 3, 4))
    against(
        lambda start, network: fed.fedavg(
            start, network, steps=STEPS, aggregator=aggregator
        ),
        lambda *args: loops.robust(*args, OPTIONS, learning_rate=0.1, fn=fn),
        {"learning_rate": 0.1},
        clients,
        num_rounds=2,
    )


def test_a_liar_moves_the_mean_and_not_the_median():
    """Clients at 1, 2 and 10^6, and one without rows, which has no say."""
    rows = jnp.array([[1.0], [2.0], [1e6], [-1e6]])
    clients = fed.Population(rows, jnp.array([[True], [True], [True], [False]]))
    one = fed.Steps(num_steps=1)
    found = {}
    for name, aggregator in (("mean", None), ("median", kernels.coordinate_median)):
        algorithm = fed.fedavg(ZERO, SQUARE, steps=one, aggregator=aggregator)
        state = algorithm.init(jax.random.key(0), learning_rate=1.0)
        devices = fed.shard(algorithm, [jax.devices()[0]] * 2)
        spread, _ = devices.update(KEY, state, devices.shard_clients(clients))
        state, _ = algorithm.update(KEY, state, clients)
        np.testing.assert_allclose(spread.params, state.params, rtol=1e-6)
        found[name] = float(state.params)
    assert found["median"] == 2.0 and found["mean"] > 3e5


@pytest.mark.parametrize(
    ("kind", "level", "compressor", "num_bytes"),
    [
        # 20 numbers of 5 possible values: 3 bits each.
        ("qsgd", 2, fed.qsgd(2), 4 + 8),
        ("top_k", 5, fed.top_k(0.25), 5 * 12),  # In float64.
        ("sign", None, fed.sign(), 4 + 3),
    ],
)
def test_compression_is_the_loop_over_numbers(
    kind, level, compressor, num_bytes, against
):
    _, info = against(
        lambda start, network: fed.fedavg(
            start, network, steps=STEPS, compressor=compressor
        ),
        lambda *args: loops.compressed(
            *args, OPTIONS, learning_rate=0.1, kind=kind, level=level
        ),
        {"learning_rate": 0.1},
        num_rounds=2,
    )
    assert float(info["bytes_up"]) == num_bytes


def test_qsgd_is_unbiased_in_half_precision():
    """The small number rounds up once in 200; bfloat16 draws would do so twice."""
    values = jnp.array([1.0, 0.005], jnp.bfloat16)
    keys = jax.random.split(jax.random.key(0), 40_000)
    draws = jax.vmap(lambda key: fed.qsgd(1)(key, values)[0])(keys)
    share = np.mean(np.asarray(draws[:, 1], np.float32) > 0)
    assert draws.dtype == jnp.bfloat16
    assert abs(share - 0.005) < 4.5 * (0.005 / 40_000) ** 0.5


def test_qsgd_is_unbiased_and_other_compression_is_not():
    """The mean of 4,000 draws is within 5 standard errors; rounding down is not."""
    values, num = jnp.array([0.3, -0.7, 0.05, 0.0]), 4000
    keys = jax.random.split(jax.random.key(3), num)
    draws = jax.vmap(lambda key: fed.qsgd(2)(key, values)[0])(keys)
    error = np.std(draws, axis=0) / np.sqrt(num)
    assert (np.abs(np.mean(draws, axis=0) - values) <= 5 * error + 1e-6).all()
    norm = np.linalg.norm(values)
    down = np.sign(values) * np.floor(np.abs(values) / norm * 2) / 2 * norm
    assert (np.abs(down - values) > 5 * error)[:3].all()


def test_fedbn_is_its_pseudo_code(against, start, network, population):
    """The network's head plays the part of the normalisation layer."""
    with jax.enable_x64(True):
        algorithm = fed.fedbn(
            start, network, steps=STEPS, num_clients=3, personal_layers=("head",)
        )
        state = algorithm.init(jax.random.key(0), learning_rate=0.1)
        for _ in range(ROUNDS):
            state, _ = jax.jit(algorithm.update)(KEY, state, population())
        models = loops.fedbn(
            *(KEY, start(jax.random.key(0)), jax.jit(network), population(), ROUNDS),
            *(OPTIONS,),
            learning_rate=0.1,
            norms=("head",),
        )
        chex.assert_trees_all_close(state.params["base"], models[0]["base"], **CLOSE)
        heads = jax.tree.map(lambda *x: np.stack(x), *[m["head"] for m in models])
        chex.assert_trees_all_close(state.own["head"], heads, **CLOSE)


@pytest.mark.parametrize("num_rounds", [2, 5])
def test_dp_ftrl_is_its_pseudo_code(num_rounds, against, population):
    """Two clients of five in each of two rounds of a pass, whose tree restarts."""
    hyper = {"learning_rate": 0.2, "noise_multiplier": 0.5, "clip_norm": 0.3}

    def order(turn):
        key, _ = pass_keys(KEY, turn)
        return keyed_permutation(key, jnp.arange(5, dtype=jnp.int32), 5).tolist()

    with jax.enable_x64(True):
        clients = population((5, 2, 7, 3, 4))

    def reference(key, params, *args):
        zeros = kernels.BoundedSum(jax.tree.map(jnp.zeros_like, params), 0.3)

        def noise(turn, level, number):
            _, noise_key = pass_keys(KEY, turn)
            key = jax.random.fold_in(jax.random.fold_in(noise_key, level), number)
            return kernels.add_noise_to_sum(key, zeros, 0.5)

        return loops.dp_ftrl(
            *(key, params, *args, OPTIONS),
            **{"learning_rate": 0.2, "clip_norm": 0.3, "cohort_size": 2},
            order_fn=order,
            noise_fn=noise,
        )

    against(
        lambda start, network: fed.dp_ftrl(
            start, network, steps=STEPS, cohort_size=2, num_clients=5
        ),
        *(reference, hyper, clients, num_rounds),
    )


def test_noise_of_a_tree_has_as_many_nodes_as_its_count_has_bits():
    """Variances are 1, 1, 2, 1 at counts 1 to 4; rounds 2 and 3 share a node."""
    zeros = kernels.BoundedSum(jnp.zeros(()), 2.0)
    keys = jax.random.split(jax.random.key(5), 4000)
    noise = lambda key, count: tree_noise(key, count, zeros, 0.5, max_rounds=4)
    draws = jax.vmap(jax.vmap(noise, (None, 0)), (0, None))(keys, jnp.arange(1, 5))
    covariance = np.cov(draws.T)
    want = [[1, 0, 0, 0], [0, 1, 1, 0], [0, 1, 2, 0], [0, 0, 0, 1]]
    np.testing.assert_allclose(covariance, want, atol=0.15)  # 5 standard errors.


def test_a_tree_costs_its_levels_in_every_pass():
    spend = lambda *args: fed.tree_gaussian(1.0, *args).steps
    # A pass of 4 rounds has nodes of 1, 2 and 4 rounds; one of 3 has nodes of 1 and 2.
    assert [spend(4, 4), spend(3, 3), spend(3, 4), spend(8, 4)] == [3, 2, 2, 6]
    assert spend(1, 1) == 1 and spend(9, 4) == 7


def fixed_point(algorithm, clients, num_rounds, **hyper):
    state = algorithm.init(jax.random.key(0), **hyper)
    state, _ = fed.simulate(algorithm, KEY, state, clients, num_rounds)
    return float(state.params)


def curved():
    """Losses ``a (w - c)^2 / 2`` with (a, c) of (1, 0) and (4, 5): the mean's is 4."""
    rows = {"a": jnp.array([[1.0], [4.0]]), "c": jnp.array([[0.0], [5.0]])}
    return fed.Population(rows, jnp.ones((2, 1), bool))


CURVED = lambda w, row, key: row["a"] * (w - row["c"]) ** 2 / 2


def test_feddyn_and_scaffold_reach_the_minimum_that_fedavg_misses():
    """With step 0.2, five steps keep k = 0.8^5 and 0.2^5 of a client's distance.

    FedAvg stops where (1 - k1) w = (1 - k2) (5 - w), far from the minimum of 4.
    """
    steps, clients = fed.Steps(num_steps=5), curved()
    make = {"steps": steps, "num_clients": 2}
    hyper = {"learning_rate": 0.2}
    pulls = 1 - 0.8**5, 1 - 0.2**5
    plain = fed.fedavg(ZERO, CURVED, steps=steps, weighting="clients")
    biased = 5 * pulls[1] / sum(pulls)
    found = fixed_point(plain, clients, 200, **hyper)
    np.testing.assert_allclose(found, biased, rtol=1e-5)
    assert abs(biased - 4) > 0.9
    for algorithm, more in (
        (fed.feddyn(ZERO, CURVED, **make), {"alpha": 0.5}),
        (fed.scaffold(ZERO, CURVED, **make), {}),
        (fed.mime(ZERO, CURVED, **make), {"momentum": 0.0}),
    ):
        found = fixed_point(algorithm, clients, 400, **hyper, **more)
        np.testing.assert_allclose(found, 4.0, rtol=1e-4)


def test_fednova_counts_a_client_once_where_fedavg_counts_its_steps():
    """Clients with one row at 0 and three at 4, in 2 and 6 steps of a small rate.

    The mean over rows is 3. FedAvg tends to (3 x 6 x 4) / (3 x 6 + 1 x 2) = 3.6, and
    FedNova stops where the normalised pulls are equal.
    """
    clients = fed.stack([jnp.array([0.0]), jnp.array([4.0, 4.0, 4.0])])
    steps = fed.Steps(num_epochs=2, batch_size=1)
    rate = 0.01
    kept = np.array([1 - (1 - rate) ** 2, 1 - (1 - rate) ** 6])
    rows = np.array([1, 3])
    normalised = rows * kept / (rate * np.array([2, 6]))
    found = fixed_point(
        fed.fednova(ZERO, SQUARE, steps=steps), clients, 300, learning_rate=rate
    )
    want = 4 * normalised[1] / normalised.sum()
    np.testing.assert_allclose(found, want, rtol=1e-4)
    assert abs(found - 3) < 0.02
    plain = fixed_point(
        fed.fedavg(ZERO, SQUARE, steps=steps), clients, 300, learning_rate=rate
    )
    want = 4 * (rows * kept)[1] / (rows * kept).sum()
    np.testing.assert_allclose(plain, want, rtol=1e-4)
    assert plain > 3.5


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("mime", {"num_clients": 3}),
        ("feddyn", {"num_clients": 3, "cohort_size": 2}),
        ("hierarchical", {"groups": [0, 1, 0], "rounds_per_average": 2}),
        ("fednova", {}),
    ],
)
def test_rounds_are_the_same_on_two_devices(name, more):
    """A round of MIME has two exchanges."""
    algorithm = getattr(fed, name)(ZERO, SQUARE, steps=STEPS, **more)
    clients = fed.stack([jnp.array([4.0, 2.0]), jnp.array([-1.0]), jnp.array([3.0])])
    state = spread = algorithm.init(jax.random.key(0))
    devices = fed.shard(algorithm, [jax.devices()[0]] * 2)
    placed = devices.shard_clients(clients)
    for _ in range(2):
        state, _ = algorithm.update(KEY, state, clients)
        spread, _ = devices.update(KEY, spread, placed)
    chex.assert_trees_all_close(spread, state, rtol=1e-5)
    assert state.round == 2 and state.params != 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fed.qsgd(0), "num_levels must be >= 1, got 0"),
        (lambda: fed.top_k(0.0), r"fraction must be in \(0, 1\], got 0.0"),
        (
            lambda: fed.fedadam(ZERO, SQUARE, steps=STEPS, tau=0.0),
            "tau must be finite and > 0, got 0.0",
        ),
        (
            lambda: fed.hierarchical(
                ZERO, SQUARE, steps=STEPS, groups=[0, -1], rounds_per_average=1
            ),
            "groups must be int",
        ),
        (
            lambda: fed.dp_ftrl(
                ZERO, SQUARE, steps=STEPS, cohort_size=3, num_clients=2
            ),
            r"cohort_size must be in \[1, 2\]",
        ),
    ],
)
def test_says_what_was_wrong(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_one_optimizer_or_cohort_is_enough():
    with pytest.raises(TypeError, match="server_optimizer must not be given to fedad"):
        fed.fedadam(ZERO, SQUARE, steps=STEPS, server_optimizer=optax.sgd(1.0))
    with pytest.raises(TypeError, match="cohort_size must not be given to fedbuff"):
        fed.fedbuff(
            *(ZERO, SQUARE),
            **{"steps": STEPS, "num_clients": 2, "buffer_size": 1, "max_staleness": 1},
            cohort_size=1,
        )
    robust = fed.fedavg(ZERO, SQUARE, steps=STEPS, aggregator=kernels.coordinate_median)
    with pytest.raises(ValueError, match="aggregator must be None on real devices"):
        robust.stages.merge(None, None, (((), {}), jnp.ones(())), None)
