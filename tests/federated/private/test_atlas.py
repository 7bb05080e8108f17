"""Atlas without noise: its loops, and its equations by hand."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import federated
from jaxanon.federated import Layout, PoissonSampling, Steps
from jaxanon.federated.engine import importance
from jaxanon.federated.private.reference_atlas import atlas as loops

pytestmark = pytest.mark.slow

OPTIONS = {"num_steps": 2, "batch_size": 2}
HYPER = {"learning_rate": 0.1, "mask_learning_rate": 2.0, "threshold": 0.58}
ZERO = jnp.zeros(())
LOTS = PoissonSampling(
    sampling_probability=1.0, expected_batch_size=1.0, max_examples=2
)


def test_agrees_with_the_loops_in_float64(network, start, population):
    with jax.enable_x64(True):
        clients = population()
        algorithm = federated.atlas(
            start,
            network,
            steps=Steps(**OPTIONS),
            num_clients=3,
            weighting="clients",
            layout=Layout(chunk_size=2),
        )
        state = algorithm.init(jax.random.key(0), **HYPER, first_score=0.6)
        state, _ = federated.simulate(algorithm, jax.random.key(1), state, clients, 3)
        params, own, masks, shared = loops(
            *(jax.random.key(1), start(jax.random.key(0)), jax.jit(network), clients),
            *(3, OPTIONS),
            **HYPER,
            first_score=0.6,
        )
        assert len({*(flag for each in shared for flag in each.values())}) == 2
        close = {"rtol": 1e-9, "atol": 1e-11}
        chex.assert_trees_all_close(state.params, params, **close)
        stacked = lambda trees: jax.tree.map(lambda *x: jnp.stack(x), *trees)
        chex.assert_trees_all_close(state.own.params, stacked(own), **close)
        begun = jax.tree.map(lambda e: e + np.log(0.6 / 0.4), state.own.masks)
        chex.assert_trees_all_close(begun, stacked(masks), **close)
        flags = stacked([{n: jnp.array(x) for n, x in each.items()} for each in shared])
        chex.assert_trees_all_equal(state.own.shared, flags)


def resting(num_clients, **more):
    """Returns Atlas of scalar layers with a learning rate of 0, and its first state."""
    loss = lambda p, x, key: 0 * x * sum(p.values())
    zeros = lambda key: dict.fromkeys("abcd", ZERO)
    algorithm = federated.atlas(
        zeros, loss, steps=Steps(num_steps=1), num_clients=num_clients, **more
    )
    return algorithm, algorithm.init(jax.random.key(0), learning_rate=0.0)


def test_layers_are_averaged_over_their_senders():
    """Equation 3.10, of clients i, j and k with layers a b d, a c, a b c."""
    algorithm, state = resting(3)
    given = {name: jnp.arange(3.0) + 10 * place for place, name in enumerate("abcd")}
    sends = {"a": (1, 1, 1), "b": (1, 0, 1), "c": (0, 1, 1), "d": (1, 0, 0)}
    low = {name: jnp.array([0.0 if x else -9.0 for x in sends[name]]) for name in sends}
    own = state.own._replace(
        params=given,
        masks=low,
        shared={name: jnp.zeros(3, bool) for name in given},
    )
    clients = federated.stack([jnp.ones(n) for n in (1, 2, 3)])
    update = jax.jit(algorithm.update)
    state, info = update(jax.random.key(0), state._replace(own=own), clients)
    told = {name: float(x) for name, x in state.params.items()}
    assert told == pytest.approx({"a": 1.0, "b": 11.0, "c": 21.5, "d": 30.0})
    assert info["layers"] == pytest.approx((3 + 2 + 3) / 3)
    # Layers of 4 bytes, and a score of 4 bytes for each of the four.
    assert info["bytes_up"] == pytest.approx(4 * 8 / 3 + 16)
    # Client j sends a and c, keeps b and d, and so predicts with an unmasked b.
    seen = algorithm.model(
        jax.random.key(0), state, jnp.int32(1), jnp.ones(1), jnp.ones(1, bool)
    )
    told = {name: float(x) for name, x in seen.items()}
    assert told == pytest.approx({"a": 1.0, "b": 0.0, "c": 21.5, "d": 0.0})


def test_a_layer_that_nobody_sends_keeps_what_it_had():
    algorithm, state = resting(2)
    masks = state.own.masks | {"d": jnp.full(2, -9.0)}
    params = state.params | {"d": jnp.array(5.0)}
    state = state._replace(own=state.own._replace(masks=masks), params=params)
    clients = federated.stack([jnp.ones(1)] * 2)
    after, _ = jax.jit(algorithm.update)(jax.random.key(0), state, clients)
    assert after.params["d"] == 5.0 and not after.own.shared["d"].any()


def test_sending_every_layer_hides_which_are_shared():
    algorithm, state = resting(2, send_every_layer=True, max_layers=1)
    clients = federated.stack([jnp.ones(1)] * 2)
    after, info = jax.jit(algorithm.update)(jax.random.key(0), state, clients)
    assert info["bytes_up"] == 4 * 4 + 16 and info["bytes_down"] == 16
    assert info["layers"] == 1.0 and after.own.shared["a"].all()


def test_gradients_are_those_of_the_masked_loss(network, start):
    params = start(jax.random.key(0))
    keys = jax.random.split(jax.random.key(1), 2)
    masks = jax.tree.map(lambda w: jnp.sin(7 * w), params)
    rows = {"x": jax.random.normal(keys[0], (4, 3)), "y": jnp.ones(4)}

    def loss(params, masks):
        weights = importance.apply_masks(params, masks, 0.5)
        return jnp.mean(network(weights, rows, jax.random.key(3)))

    want = jax.jit(jax.grad(loss, argnums=(0, 1)))(params, masks)
    at = lambda weights: jnp.mean(network(weights, rows, jax.random.key(3)))
    inner = jax.jit(jax.grad(at))(importance.apply_masks(params, masks, 0.5))
    got = importance.gradients(inner, params, masks, 0.5)
    chex.assert_trees_all_close(got, want, rtol=1e-5)
    kept = importance.binarise(masks["base"]["w"], 0.5)
    assert 0 < kept.mean() < 1 and set(np.unique(kept)) == {0.0, 1.0}


def test_a_client_fits_its_model_to_its_rows_and_tells_nobody():
    square = lambda p, x, key: 0.5 * (p["w"] - x) ** 2
    build = lambda own: federated.atlas(
        lambda key: {"w": ZERO},
        square,
        steps=Steps(num_steps=1),
        num_clients=1,
        finetune_steps=own,
    )
    one, clients = Steps(num_steps=1), federated.stack([jnp.array([4.0])])
    hyper = {"learning_rate": 0.25, "finetune_learning_rate": 0.5}
    state = build(one).init(jax.random.key(0), **hyper)
    seen = lambda own, state: build(own).model(
        jax.random.key(0), state, jnp.int32(0), clients.rows[0], clients.mask[0]
    )["w"]
    assert seen(None, state) == 0.0 and seen(one, state) == 2.0
    after, again = (
        jax.jit(build(own).update)(jax.random.key(1), state, clients)[0]
        for own in (one, None)
    )
    chex.assert_trees_all_equal(after, again)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"noise_interpretation": "D"}, "noise_interpretation must be one of"),
        ({"scores": "secret"}, "scores must be one of"),
        ({"scores": "public"}, "public_scores must be given if and only if"),
        ({"public_scores": {"w": 0.5}}, "public_scores must be given if and only if"),
        (
            {"scores": "public", "public_scores": {"w": 0.0}},
            r"public_scores must be in \(0, 1\], got 0.0 for 'w'",
        ),
        (
            {"scores": "public", "public_scores": {"v": 0.5}},
            r"the layers \['w'\], got \['v'\]",
        ),
        ({"privacy_unit": "server"}, "privacy_unit must be one of"),
        ({"max_layers": 0}, "max_layers must be .*1.*got 0"),
        ({"clipping": "odd"}, "clipping must be one of"),
        ({"scores": "hidden"}, "privacy_unit must be 'client' with scores='hidden'"),
        ({"scores": "released"}, "lots must be given with scores="),
        (
            {"privacy_unit": "client", "lots": LOTS},
            "lots must be None with privacy_unit=",
        ),
    ],
)
def test_says_what_was_wrong(settings, message):
    with pytest.raises(ValueError, match=message):
        federated.atlas(
            lambda key: {"w": ZERO},
            lambda p, x, key: p["w"] * x,
            steps=Steps(num_steps=1),
            num_clients=1,
            **settings,
        ).init(jax.random.key(0))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"clip_norm": 0.0}, "clip_norm must be finite and > 0, got 0.0"),
        ({"score_norm": -1.0}, "score_norm must be finite and > 0, got -1.0"),
        ({"noise_multiplier": -1.0}, "noise_multiplier must be finite and >= 0"),
        ({"score_multiplier": float("nan")}, "score_multiplier must be finite and >="),
        ({"threshold": 1.5}, r"threshold must be in \[0, 1\], got 1.5"),
        ({"first_score": 1.0}, r"first_score must be in \(0, 1\), got 1.0"),
    ],
)
def test_hyper_parameters_out_of_range_are_refused(values, message):
    algorithm = federated.atlas(
        lambda key: {"w": ZERO},
        lambda p, x, key: p["w"] * x,
        steps=Steps(num_steps=1),
        num_clients=1,
    )
    with pytest.raises(ValueError, match=message):
        algorithm.init(jax.random.key(0), **values)


@pytest.mark.parametrize("guarantee", ["example", "client"])
def test_a_client_without_rows_sends_no_layer_and_keeps_what_it_had(guarantee):
    algorithm = federated.atlas(
        lambda key: {"w": ZERO, "v": jnp.ones(())},
        lambda p, x, key: -x * (p["w"] + p["v"]),
        steps=Steps(num_steps=1),
        num_clients=2,
        privacy_unit=guarantee,
        lots=LOTS if guarantee == "example" else None,
    )
    hyper = {"learning_rate": 1.0, "clip_norm": 2**0.5, "noise_multiplier": 0.0}
    state = algorithm.init(jax.random.key(0), **hyper)
    clients = federated.stack([jnp.array([4.0]), jnp.array([4.0])])
    empty = clients._replace(mask=jnp.array([[True], [False]]))
    update = jax.jit(algorithm.update)
    after, info = update(jax.random.key(1), state, empty)
    # A whole clipped step of 1, not halved by an absent client.
    assert float(after.params["w"]) == pytest.approx(1.0)
    assert float(after.params["v"]) == pytest.approx(2.0)
    assert info["layers"] == 2.0
    of_second = lambda tree: jax.tree.map(lambda leaf: leaf[1], tree)
    chex.assert_trees_all_equal(of_second(after.own), of_second(state.own))
    nobody = clients._replace(mask=jnp.zeros((2, 1), bool))
    after, _ = update(jax.random.key(1), state, nobody)
    chex.assert_trees_all_equal(after.params, state.params)
