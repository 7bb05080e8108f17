"""New clients after training: two of them, by hand, under every learner."""

import chex
import jax
import jax.numpy as jnp
import pytest

from jaxanon import federated
from jaxanon.federated import PoissonSampling, Steps

ONE, ZERO = Steps(num_steps=1), jnp.zeros(())
square = lambda w, x, key: 0.5 * (w - x) ** 2
layered = lambda p, x, key: 0.5 * (p["w"] + p["v"] - x) ** 2
zero = lambda key: ZERO
zeros = lambda key: {"w": ZERO, "v": ZERO}


def joined(algorithm, shared, num_rounds, row=8.0, real=True, **hyper):
    """Returns the models of a new client with row 8, or another, among others."""
    state = algorithm.init(jax.random.key(0), learning_rate=0.5, **hyper)
    own = jax.tree.map(lambda leaf: leaf[0], state.own)
    # The states of existing clients are private: NaN shows any access by a new client.
    theirs = lambda leaf: jnp.full_like(leaf, True if leaf.dtype == bool else jnp.nan)
    state = state._replace(own=jax.tree.map(theirs, state.own))
    if shared is not None:
        state = state._replace(params=shared)
    before = jax.tree.map(jnp.copy, state)
    found = federated.personalize_new_client(
        *(algorithm, jax.random.key(1), state, own),
        *(jnp.array([row, 99.0]), jnp.array([real, False]), num_rounds),
    )
    chex.assert_trees_all_equal(before, state)
    return jax.tree.map(float, found)


@pytest.mark.parametrize(("row", "model"), [(8.0, 6.0), (4.0, 3.0)])
def test_localized_begins_from_scratch(row, model):
    algorithm = federated.localized(zero, square, steps=ONE, num_clients=5)
    assert joined(algorithm, None, 2, row) == model  # Halfway, twice.


@pytest.mark.parametrize(("row", "own"), [(8.0, 3.75), (4.0, 0.75)])
def test_layers_of_their_own_follow_shared_ones_that_rest(row, own):
    """3 is shared and fixed: from 0, v moves halfway to row - 3, twice."""
    for make, more in (
        (federated.fedper, {}),
        (federated.fedrep, {"personal_steps": ONE}),
    ):
        algorithm = make(
            zeros, layered, steps=ONE, personal_layers=("v",), num_clients=5, **more
        )
        found = joined(algorithm, {"w": jnp.array(3.0)}, 2, row)
        assert found == {"w": 3.0, "v": own}


@pytest.mark.parametrize(("row", "model"), [(8.0, 5.0), (4.0, 3.0)])
def test_models_near_the_shared_one_begin_with_it(row, model):
    ditto = federated.ditto(zero, square, steps=ONE, personal_steps=ONE, num_clients=5)
    # From 2, halfway; the proximal term of round 2 holds back the whole distance.
    assert joined(ditto, jnp.array(2.0), 1, row, proximal_weight=1.0) == model
    assert joined(ditto, jnp.array(2.0), 2, row, proximal_weight=1.0) == model
    near = federated.pfedme(zero, square, steps=ONE, personal_steps=1, num_clients=5)
    assert joined(near, jnp.array(2.0), 1, row, proximal_weight=2.0) == model
    for algorithm in (ditto, near):
        assert joined(algorithm, jnp.array(2.0), 0, row) == 2.0
        assert joined(algorithm, jnp.array(2.0), 1, row, real=False) == 2.0


def test_groups_that_others_found_give_what_all_share_to_begin_with():
    """From 2 halfway to 8, without the pull of a cluster that it does not belong to."""
    cluster = federated.clusterfl(
        zero, square, steps=ONE, num_clients=5, num_clusters=1, members=jnp.ones((5, 1))
    )
    of_one = lambda key: {"w": ZERO}
    alone = lambda p, x, key: square(p["w"], x, key)
    dl = federated.feddl(of_one, alone, steps=ONE, layers=("w",), num_clients=5)
    for num_rounds, model in ((0, 2.0), (1, 5.0), (2, 6.5)):
        found = joined(cluster, jnp.array(2.0), num_rounds, alpha=0.0)
        assert found == pytest.approx(model)
        assert joined(dl, {"w": jnp.array(2.0)}, num_rounds) == {"w": model}


def test_of_groups_in_one_place_they_get_the_model_of_most():
    algorithm = federated.centralized_clustering(
        zero, square, steps=ONE, num_clients=3, num_clusters=2
    )
    state = algorithm.init(jax.random.key(0))._replace(
        params=jnp.array([1.0, 7.0]), own=jnp.array([1, 0, 1])
    )
    row = jnp.array([8.0]), jnp.array([True])
    for num_rounds in (0, 2):
        found = federated.personalize_new_client(
            *(algorithm, jax.random.key(1), state, jnp.int32(0), *row, num_rounds)
        )
        assert found == 7.0


@pytest.mark.parametrize(("row", "model"), [(8.0, 5.0), (4.0, 3.0)])
def test_one_step_adapts_a_meta_learned_model(row, model):
    algorithm = federated.per_fedavg(zero, square, steps=ONE, num_clients=5)
    for rounds in (0, 3):
        found = joined(
            algorithm, jnp.array(2.0), rounds, row, adaptation_learning_rate=0.5
        )
        assert found == model


@pytest.mark.parametrize("guarantee", ["example", "client", None])
def test_atlas_keeps_the_layer_that_its_own_masks_give_away(guarantee):
    """3 and 1 are shared, only senders add noise, and w has the larger slope.

    From 3 + 1 each moves half of the distance 4, and v's 3 stays. From 3 + 3 each moves
    half of 2, and v's 4 stays. Local fine-tuning takes a quarter of the distance from 3
    + 4.
    """
    lots = PoissonSampling(
        sampling_probability=0.5, expected_batch_size=1.0, max_examples=2
    )
    algorithm = federated.atlas(
        zeros,
        layered,
        steps=ONE,
        num_clients=5,
        lots=lots if guarantee == "example" else None,
        privacy_unit=guarantee or "example",
        scores="released" if guarantee else "privatised",
        max_layers=1,
        finetune_steps=ONE,
    )
    shared = {"w": jnp.array(3.0), "v": jnp.array(1.0)}
    hyper = {"clip_norm": 0.1, "finetune_learning_rate": 0.25}
    assert joined(algorithm, shared, 2, **hyper) == {"w": 3.25, "v": 4.25}
    # Without a round: a quarter of the distance from 3 + 1.
    assert joined(algorithm, shared, 0, **hyper) == {"w": 4.0, "v": 2.0}
    # Without a window: the shared values.
    assert joined(algorithm, shared, 2, real=False, **hyper) == {"w": 3.0, "v": 1.0}


def test_without_anything_of_their_own_they_take_what_is_shared():
    algorithm = federated.fedavg(zero, square, steps=federated.Steps(num_steps=1))
    state = algorithm.init(jax.random.key(0))
    rows, mask = jnp.array([8.0]), jnp.ones(1, bool)
    found = federated.personalize_new_client(
        algorithm, jax.random.key(1), state, None, rows, mask, 3
    )
    assert found == 0.0
    with pytest.raises(ValueError, match="num_rounds must be >= 0, got -1"):
        federated.personalize_new_client(
            algorithm, jax.random.key(1), state, None, rows, mask, -1
        )
