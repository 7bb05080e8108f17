"""Atlas clips examples and clients, and releases scores."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import federated, kernels
from jaxanon.federated import Layout, PoissonSampling, Steps
from jaxanon.federated.engine import personal
from jaxanon.federated.private import atlas_noise
from jaxanon.federated.private import reference_atlas as reference
from jaxanon.federated.private.atlas_noise import (
    CLIPPINGS,
    layer_multipliers,
    layer_norms,
)
from jaxanon.privacy import noise_multiplier_of_layers

pytestmark = pytest.mark.slow

ZERO = jnp.zeros(())
SCORES = {"a": 0.9, "b": 0.5, "c": 0.7, "d": 0.3}
HYPER = {
    **{"learning_rate": 0.1, "mask_learning_rate": 3.0, "threshold": 0.5},
    **{"first_score": 0.6, "clip_norm": 2.0, "score_norm": 0.4},
}
SILENT = {"noise_multiplier": 0.0, "score_multiplier": 0.0}


@pytest.fixture(scope="module")
def held_to(network, start, population):
    """Runs both in float64 without noise; returns the final flags of the clients."""
    # The NumPy loops have no key to draw from.
    quiet = lambda params, batch, key: network(params, batch, jax.random.key(0))

    def held_to(reference_fn, guarantee, max_norm=2.0, num_rounds=3, **settings):
        hyper = HYPER | {"clip_norm": max_norm}
        with jax.enable_x64(True):
            clients = population()
            lots = {
                "lots": PoissonSampling(
                    sampling_probability=1.0, expected_batch_size=4.0, max_examples=7
                )
            }
            algorithm = federated.atlas(
                start,
                quiet,
                steps=Steps(num_steps=2),
                num_clients=3,
                privacy_unit=guarantee,
                weighting="clients",
                layout=Layout(chunk_size=1),
                **(lots if guarantee == "example" else {}),
                **settings,
            )
            state = algorithm.init(jax.random.key(0), **hyper, **SILENT)
            state, _ = federated.simulate(
                algorithm, jax.random.key(1), state, clients, num_rounds
            )
            more = {"lot_size": 4.0} if guarantee == "example" else {}
            begun = jax.tree.map(np.asarray, start(jax.random.key(0)))
            params, own, masks, scores = reference_fn(
                *(begun, jax.jit(quiet), clients, num_rounds),
                num_steps=2,
                **more,
                **settings,
                **hyper,
            )
            close = {"rtol": 1e-9, "atol": 1e-11}
            chex.assert_trees_all_close(state.params, params, **close)
            stacked = lambda trees: jax.tree.map(lambda *x: jnp.stack(x), *trees)
            chex.assert_trees_all_close(state.own.params, stacked(own), **close)
            begun = jax.tree.map(lambda e: e + np.log(0.6 / 0.4), state.own.masks)
            chex.assert_trees_all_close(begun, stacked(masks), **close)
            if settings["scores"] == "released":
                since = {m: x + np.log(0.6 / 0.4) for m, x in state.own.logits.items()}
                told = atlas_noise.of_logits(since)
                chex.assert_trees_all_close(told, stacked(scores), **close)
            return np.stack([state.own.shared[m] for m in state.own.shared])

    return held_to


@pytest.mark.parametrize(
    ("reading", "clipping", "scores"),
    [
        ("A", "even", "released"),
        ("B", "scores", "privatised"),
    ],
)
def test_clipped_examples_agree_with_the_loops_in_float64(
    reading, clipping, scores, held_to
):
    flags = held_to(
        *(reference.of_examples, "example"),
        **{"noise_interpretation": reading, "clipping": clipping, "scores": scores},
    )
    assert 0 < flags.mean() < 1


@pytest.mark.parametrize(
    ("reading", "clipping", "scores"),
    [
        ("rescaled", "scores", "released"),
        ("A", "even", "privatised"),
        ("B", "scores", "hidden"),
    ],
)
def test_clipped_updates_agree_with_the_loops_in_float64(
    reading, clipping, scores, held_to
):
    flags = held_to(
        *(reference.of_clients, "client", 0.3),
        **{"noise_interpretation": reading, "clipping": clipping, "scores": scores},
    )
    assert 0 < flags.mean() < 1


def test_two_clients_scores_by_hand():
    """Weights of 1 at masks of 0.5: slopes x / 4 per layer, four clipped to 1."""
    ones = lambda key: dict.fromkeys("abcd", jnp.ones(()))
    loss = lambda p, x, key: x * sum(p.values())
    algorithm = federated.atlas(
        ones,
        loss,
        steps=Steps(num_steps=1),
        num_clients=2,
        lots=PoissonSampling(
            sampling_probability=1.0, expected_batch_size=2.0, max_examples=2
        ),
        scores="released",
    )
    hyper = {"learning_rate": 0.0, "mask_learning_rate": 0.5, "first_score": 0.5}
    state = algorithm.init(
        jax.random.key(0), threshold=0.45, **hyper, **SILENT, score_norm=1.0
    )
    clients = federated.stack([jnp.array([8.0, 1.0]), jnp.array([-4.0])])
    update = jax.jit(algorithm.update)
    state, info = update(jax.random.key(1), state, clients)
    # 8 / 4 is clipped to 1 / √4, 1 / 4 is not, -4 / 4 is: 0.75 and -0.5, times 0.5 / 2.
    for name in "abcd":
        np.testing.assert_allclose(state.own.logits[name], [-0.1875, 0.125], rtol=1e-5)
    # Logits of -0.1875 make scores of 0.453, which is above the threshold still.
    assert info["layers"] == 4.0 and state.own.shared["a"].all()
    state, info = update(jax.random.key(1), state, clients)
    np.testing.assert_array_equal(state.own.shared["a"], [False, True])
    assert info["layers"] == 2.0 and info["bytes_up"] == 4 * 2 + 4 * 4


@pytest.mark.parametrize("clipping", CLIPPINGS)
@pytest.mark.parametrize(
    ("reading", "worth"), [("rescaled", 1.5), ("A", 1.5), ("C", 1.5 * 0.4664)]
)
def test_clip_norms_have_no_part_in_what_noise_is_worth(clipping, reading, worth):
    """Computes z* of clip norms and noise; the interpretations' multipliers are 2."""
    scores = {name: jnp.float32(x) for name, x in SCORES.items()}
    norms = layer_norms(3.0, scores, clipping)
    assert sum(float(x) ** 2 for x in norms.values()) == pytest.approx(9.0)
    if clipping == "scores":
        ratios = [float(norms[name]) / SCORES[name] for name in SCORES]
        np.testing.assert_allclose(ratios, ratios[0], rtol=1e-6)
    multipliers = layer_multipliers(1.5, scores, reading)
    found = kernels.joint_noise_multiplier(
        norms, kernels.noise_stddevs(norms, multipliers)
    )
    assert float(found) == pytest.approx(worth, rel=1e-4)
    told = noise_multiplier_of_layers([float(multipliers[name]) for name in SCORES])
    assert told == pytest.approx(worth, rel=1e-4)


@pytest.mark.parametrize("kind", ["lot", "client"])
def test_released_scores_have_noise_of_their_own(kind):
    """Jointly clipped to 0.3, with independent noise of twice that on each."""
    steps = 20_000
    keys = jax.random.split(jax.random.key(0), steps)
    hyper = {"score_norm": jnp.float32(0.3), "score_multiplier": jnp.float32(2.0)}
    zeros = {"a": ZERO, "b": ZERO}
    if kind == "client":
        wanted = {"a": jnp.float32(0.9), "b": jnp.float32(0.5)}
        one = lambda key: atlas_noise.by_a_client(key, wanted, zeros, hyper)
        length, means = 1.0, (0.3, 0.0)
    else:
        lots = PoissonSampling(
            sampling_probability=1.0, expected_batch_size=1.0, max_examples=1
        )
        loss = lambda p, x, key: -9.0 * x * p["a"]
        hyper |= {"mask_learning_rate": jnp.float32(0.5), "threshold": jnp.float32(0.0)}
        ones = {"a": jnp.ones(()), "b": jnp.ones(())}

        def one(key):
            rows, mask = jnp.ones(1), jnp.ones(1, bool)
            client = personal.Client(key, *3 * (None,), rows, mask, hyper)
            return atlas_noise.by_a_lot(
                loss, client, lots, 0, ones, jax.tree.map(jnp.zeros_like, ones), zeros
            )

        length, means = 0.5, (0.15, 0.0)
    found = jax.jit(jax.vmap(one))(keys)
    for name, mean in zip("ab", means, strict=True):
        spread = length * 0.6
        assert float(found[name].std()) == pytest.approx(spread, rel=0.03)
        error = spread / steps**0.5
        assert float(found[name].mean()) == pytest.approx(mean, abs=5 * error)
    assert abs(np.corrcoef(found["a"], found["b"])[0, 1]) < 5 / steps**0.5
