"""Tests of MSDA: the autoencoder's loss, and the training phases."""

import jax
import numpy as np
import pytest

from jaxanon import datasets
from jaxanon.methods.common.pool import draw_weighed, weigh
from jaxanon.methods.malekzadeh.anonymizing import msda
from jaxanon.models.losses import confusion
from jaxanon.training import trainer

SMALL = {
    "filters": 6,
    "classifier_filters": 6,
    "classifier_hidden_sizes": (12,),
    "batch_size": 48,
}
MODEL, READERS = ("encoder", "decoder"), ("readers",)


def test_msda_rebuilds_first_then_all_play(given_to_central, active_groups):
    components = given_to_central("msda", **SMALL, warm_up=2)["components"]
    assert active_groups(components, 4) == [[MODEL]] * 2 + [[READERS, MODEL]] * 2
    components = given_to_central("msda", **SMALL, turn=2)["components"]
    taken = active_groups(components, 6)
    assert taken == [[MODEL]] + [[READERS]] * 2 + [[MODEL]] * 2 + [[READERS]]


def _given(built, data):
    """Returns parameters and a batch for a component's loss."""
    params = jax.jit(built["init_fn"])(jax.random.key(0))
    prepared = weigh(data.spec, datasets.by_client(data.train))
    return params, draw_weighed(jax.random.key(1), prepared, 20)


def test_the_three_terms_and_their_weights(given_to_central, data):
    built = given_to_central("msda", **SMALL)
    params, batch = _given(built, data)
    component = built["components"][-1]
    weights = {"distortion": 0.3, "confusion": 0.7, "utility": 1.9, "weight_decay": 0.0}
    nets = built["init_fn"].__self__

    @jax.jit
    def found(key):
        loss = lambda weights: component.loss_fn(key, params, weights, batch, None)
        total, (info, _) = loss(weights)
        more, _ = loss(weights | {"weight_decay": 1.0})
        latents, safe, _ = nets.rewrite(params, batch.windows, train=True)
        read = [logits for _, logits in nets.read(params, latents, safe, key)]
        return total, more, info, safe, read

    total, more, info, safe, (activity, gender, latent) = found(jax.random.key(2))
    expected = 0.3 * info["change"] + 0.7 * info["gender confusion"]
    expected += 1.9 * info["activity loss"]
    np.testing.assert_allclose(total, expected, rtol=1e-5)
    # Recomputes the terms from the outputs and the classifiers' logits.
    np.testing.assert_allclose(
        info["change"], np.mean((safe - batch.windows) ** 2), rtol=1e-4
    )
    both = [confusion(logits, batch.labels["gender"]) for logits in (gender, latent)]
    np.testing.assert_allclose(info["gender confusion"], sum(both), rtol=1e-5)
    own = np.take_along_axis(
        np.asarray(jax.nn.log_softmax(activity)),
        np.asarray(batch.labels["activity"])[:, None],
        axis=1,
    )
    np.testing.assert_allclose(info["activity loss"], -own.mean(), rtol=1e-4)
    leaves = jax.tree_util.tree_leaves_with_path({n: params[n] for n in MODEL})
    squares = [
        np.sum(leaf**2)
        for path, leaf in leaves
        if path[-1].key == "kernel" and leaf.shape[-1] == SMALL["filters"]
    ]
    np.testing.assert_allclose(more - total, sum(squares), rtol=1e-4)


def test_readers_of_latents_learn_from_what_the_encoder_makes(given_to_central, data):
    built = given_to_central("msda", **SMALL, latent_hidden_sizes=(12,))
    params, batch = _given(built, data)
    reading = built["components"][1]
    assert reading.groups == READERS

    @jax.jit
    def loss(readers, encoder):
        own = params | {"readers": readers, "encoder": encoder}
        return reading.loss_fn(
            jax.random.key(2), own, {"weight_decay": 0.0}, batch, None
        )[0]

    readers, encoder = params["readers"], params["encoder"]
    step = jax.jit(jax.grad(loss))(readers, encoder)
    for path, leaf in jax.tree_util.tree_leaves_with_path(step["latents"]):
        assert np.any(leaf), path  # Kernels with zero inputs do not move.
    # With constant window classifiers, only the latent classifiers matter.
    nothing = jax.tree.map(np.zeros_like, readers["windows"])
    deaf = readers | {"windows": nothing}
    other = jax.tree.map(lambda leaf: leaf / 2, encoder)
    assert abs(loss(deaf, encoder) - loss(deaf, other)) > 1e-3
    mute = jax.tree.map(np.zeros_like, readers)
    np.testing.assert_allclose(loss(mute, encoder), loss(mute, other), rtol=1e-6)


@pytest.mark.slow
def test_a_run_in_released_form(data):
    settings = SMALL | {
        "variant": "official",
        "latent_hidden_sizes": (12,),
        "warm_up": 0,
    }
    method = msda(data.spec, **settings)
    run = trainer.train(method, data, epochs=1, progress=False)
    losses = run.history[-1]["losses"]
    # Even odds give -2 log(1 - 1/2) for each of the window and latent classifiers.
    assert abs(losses["gender confusion"] - 4 * np.log(2)) < 1.5
    windows = data.test.windows
    shown = run.anonymize(jax.random.key(2), windows)
    assert shown.shape == windows.shape and shown.dtype == np.float32
    # The result depends on neither the following windows nor the key.
    np.testing.assert_allclose(
        run.anonymize(jax.random.key(3), windows[:5]), shown[:5], rtol=1e-4
    )


def test_weights_make_classes_count_the_same(data):
    clients = datasets.by_client(data.train)
    found = weigh(data.spec, clients, kept=(0, 2))
    batch = draw_weighed(jax.random.key(0), found, 64)
    labels = np.asarray(found.pool.labels["activity"])
    each = np.asarray(found.weights["activity"])[labels]
    totals = [each[labels == number].sum() for number in range(3)]
    np.testing.assert_allclose(totals[0], totals[2], rtol=1e-5)
    assert totals[1] == 0 and totals[0] > 0
    np.testing.assert_array_equal(
        batch.weights["gender"], found.weights["gender"][batch.labels["gender"]]
    )
