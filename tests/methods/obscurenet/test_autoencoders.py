"""Tests of per-class models: training data, and the model used for each window."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import datasets, methods
from jaxanon.core import run as core_run
from jaxanon.methods.obscurenet import autoencoders
from jaxanon.training import trainer

pytestmark = pytest.mark.slow

TINY = {
    "latent_dim": 3,
    "batch_size": 16,
    "classifier_batch_size": 8,
    "hidden_sizes": (),
}


def _standard(data, windows):
    mean, std = (np.float32(x) for x in (data.spec.mean, data.spec.std))
    return (windows - mean) / std


def _seen(run, data, windows):
    """Returns the run's predicted classes."""
    found = autoencoders.predict(data.spec, run.state.params, _standard(data, windows))
    return {name: np.asarray(each) for name, each in found.items()}


@pytest.fixture(scope="module")
def run(data):
    method = methods.attribute_vae(data.spec, **TINY, anonymization="deterministic")
    return trainer.train(method, data, epochs=3, progress=False)


def test_a_model_learns_from_windows_of_its_class_alone(data):
    method = methods.cae(data.spec, **TINY)
    clients = datasets.by_client(data.train)
    second = (clients.labels["activity"] == 1)[..., None, None]
    other = clients._replace(windows=np.where(second, 9, clients.windows))
    state, update = method.init(jax.random.key(0)), jax.jit(method.update)
    one, _ = update(jax.random.key(1), state, method.prepare(clients))
    two, _ = update(jax.random.key(1), state, method.prepare(other))
    for group in ("encoder", "decoder"):
        for old, new in zip(
            *map(jax.tree.leaves, (one.params[group], two.params[group])), strict=True
        ):
            differ = jnp.any(old != new, axis=tuple(range(1, old.ndim)))
            np.testing.assert_array_equal(differ, [False, True, False])


def test_class_means_are_those_of_the_last_round(run, data):
    """The means match the checkpoint's parameters, over all windows."""
    method, params = run.method, run.state.params
    assert int(run.state.round) == 3 * method.schedule.rounds_per_epoch(
        method.prepare(datasets.by_client(data.train))
    )
    windows, labels = _standard(data, data.train.windows), data.train.labels
    flat = np.swapaxes(windows, 1, 2).reshape(len(windows), -1)
    layer = params["encoder"]["MultiLayer_0"]["Dense_0"]
    for activity in range(3):
        kernel, bias = layer["kernel"][activity], layer["bias"][activity]
        z = (flat @ np.float64(kernel) + np.float64(bias)[None])[:, :3]
        own = labels["activity"] == activity
        means = [z[own & (labels["gender"] == gender)].mean(0) for gender in (0, 1)]
        np.testing.assert_allclose(
            params["means"][activity, 0] + z[own].mean(0)[None],
            means,
            rtol=1e-3,
            atol=1e-4,
        )


def test_a_latent_moves_between_the_means_of_its_predicted_classes(run, data):
    windows = data.test.windows[:30]
    seen = _seen(run, data, windows)
    assert all(len(np.unique(each)) > 1 for each in seen.values())
    params = run.state.params
    still = dataclasses.replace(
        run,
        state=run.state._replace(
            params=params | {"means": jnp.zeros_like(params["means"])}
        ),
    )
    key = jax.random.key(5)
    moved = run.anonymize(key, windows) - still.anonymize(key, windows)
    # With a one-layer decoder, the change is the shift times its weights.
    means, kernels = params["means"], params["decoder"]["MultiLayer_0"]["Dense_0"]
    for window, activity, gender in zip(
        moved, seen["activity"], seen["gender"], strict=True
    ):
        move = means[activity, 0, 1 - gender] - means[activity, 0, gender]
        flat = np.asarray(move) @ np.asarray(kernels["kernel"][activity])
        expected = flat.reshape(2, 16).T * np.float32(data.spec.std)
        np.testing.assert_allclose(window, expected, rtol=1e-3, atol=1e-4)


def test_a_window_goes_through_the_model_of_its_predicted_class(run, data):
    # Decoders that return the index of their model.
    silent = jax.tree.map(jnp.zeros_like, run.state.params["decoder"])
    biases = jnp.arange(3.0)[:, None] + jnp.zeros((1, 32))
    silent["MultiLayer_0"]["Dense_0"]["bias"] = biases
    state = run.state._replace(params=run.state.params | {"decoder": silent})
    numbered = dataclasses.replace(run, state=state)
    windows = data.test.windows
    safe = numbered.anonymize(jax.random.key(1), windows)
    assert safe.shape == windows.shape and safe.dtype == np.float32
    # In physical units, 0 is the training mean, 1 one standard deviation above.
    activity = _seen(run, data, windows)["activity"]
    np.testing.assert_allclose(
        _standard(data, safe), np.zeros((1, 16, 2)) + activity[:, None, None], atol=1e-4
    )


def test_a_trained_state_serves_every_manipulation(data):
    like = lambda kind: jax.eval_shape(
        methods.cvae(data.spec, **TINY, anonymization=kind).init, jax.random.key(0)
    )
    assert like("stochastic") == like("deterministic") == like("probabilistic")


def test_the_decoder_is_told_the_shown_class(data):
    method = methods.cae(data.spec, **TINY, anonymization="deterministic")
    state = method.init(jax.random.key(0))
    run = core_run.Run(method, state, data.spec, None, [], {})
    windows = data.test.windows[:20]
    seen = _seen(run, data, windows)
    safe = run.anonymize(jax.random.key(1), windows)
    flat = np.swapaxes(_standard(data, windows), 1, 2).reshape(20, -1)
    params = jax.tree.map(np.asarray, state.params)
    encoder, decoder = (
        params[group]["MultiLayer_0"]["Dense_0"] for group in ("encoder", "decoder")
    )
    for index in range(20):
        activity, shown = seen["activity"][index], 1 - seen["gender"][index]
        code = flat[index] @ encoder["kernel"][activity] + encoder["bias"][activity]
        told = np.concatenate([code, np.eye(2)[shown]])
        row = told @ decoder["kernel"][activity] + decoder["bias"][activity]
        np.testing.assert_allclose(
            _standard(data, safe[index]), row.reshape(2, 16).T, rtol=1e-3, atol=1e-4
        )


def test_the_decoder_may_be_told_a_vector_of_weights(data):
    method = methods.cae(data.spec, **TINY, anonymization="vector")
    params = method.init(jax.random.key(0)).params
    windows = np.tile(data.test.windows, (2000 // len(data.test.windows), 1, 1))
    state = methods.cae(data.spec, **TINY).init(jax.random.key(0))
    run = core_run.Run(method, state, data.spec, None, [], {})
    safe = _standard(data, run.anonymize(jax.random.key(1), windows))
    # With a one-layer decoder, the output of a vector lies between those of classes.
    seen = _seen(run, data, windows)["activity"]
    by_class = []
    for gender in (0, 1):
        silent = jax.tree.map(jnp.zeros_like, params["decoder"])
        kernel = params["decoder"]["MultiLayer_0"]["Dense_0"]["kernel"]
        told = jnp.zeros_like(kernel).at[:, 3 + gender].set(1.0)
        silent["MultiLayer_0"]["Dense_0"]["kernel"] = told
        only = state._replace(params=params | {"decoder": silent})
        one = dataclasses.replace(run, state=only)
        by_class.append(_standard(data, one.anonymize(jax.random.key(1), windows)))
    first, second = (each[:, 0, 0] for each in by_class)
    np.testing.assert_allclose(first + second, 1, atol=1e-4)
    np.testing.assert_allclose([first.mean(), first.std()], [0.5, 12**-0.5], atol=0.03)
    kernel = np.asarray(params["decoder"]["MultiLayer_0"]["Dense_0"]["kernel"])
    flat = np.swapaxes(_standard(data, windows), 1, 2).reshape(len(windows), -1)
    encoder = jax.tree.map(np.asarray, params["encoder"]["MultiLayer_0"]["Dense_0"])
    bias = np.asarray(params["decoder"]["MultiLayer_0"]["Dense_0"]["bias"])
    for index in range(10):
        own = seen[index]
        code = flat[index] @ encoder["kernel"][own] + encoder["bias"][own]
        told = np.concatenate([code, [first[index], second[index]]])
        row = told @ kernel[own] + bias[own]
        expected = row.reshape(2, 16).T
        np.testing.assert_allclose(safe[index], expected, rtol=1e-3, atol=1e-3)


def test_a_vector_is_refused_where_no_decoder_is_told(data):
    for build in (methods.attribute_vae, methods.general_vae):
        with pytest.raises(ValueError, match=r"whose decoder has no class input"):
            build(data.spec, **TINY, anonymization="vector")


def test_by_the_released_slip_all_move_by_the_last_class_s_means(run, data):
    slipped = methods.attribute_vae(
        data.spec, **TINY, anonymization="deterministic", means_of="last"
    )
    means = run.state.params["means"]
    lasts = jnp.broadcast_to(means[-1:], means.shape)
    by_hand = run.state._replace(params=run.state.params | {"means": lasts})
    windows, key = data.test.windows[:30], jax.random.key(5)
    slip = dataclasses.replace(run, method=slipped).anonymize(key, windows)
    expected = dataclasses.replace(run, state=by_hand).anonymize(key, windows)
    np.testing.assert_allclose(slip, expected, rtol=1e-4, atol=1e-4)
    others = _seen(run, data, windows)["activity"] != 2
    differ = np.any(slip != run.anonymize(key, windows), axis=(1, 2))
    np.testing.assert_array_equal(differ, others)


def test_several_private_attributes_at_once(data):
    spec = dataclasses.replace(data.spec, private=("gender", "subject"))
    for build in (methods.obscurenet, methods.attribute_vae, methods.general_vae):
        method = build(spec, **TINY)
        clients = datasets.by_client(data.train)
        state = jax.eval_shape(method.init, jax.random.key(0))
        after, _ = jax.eval_shape(
            method.update, jax.random.key(1), state, method.prepare(clients)
        )
        assert jax.tree.map(jnp.shape, after) == jax.tree.map(jnp.shape, state)
        safe = jax.eval_shape(
            method.anonymize, jax.random.key(2), state, data.test.windows[:4]
        )
        assert safe.shape == (4, 16, 2)
        if build is methods.obscurenet:
            width = state.params["decoder"]["MultiLayer_0"]["Dense_0"]["kernel"].shape
            assert width[1] == 3 + 2 + 5
            assert len(state.params["readers"]) == 2
        else:
            assert state.params["means"].shape[-2:] == (2 + 5, 3)


def test_a_round_is_a_batch_of_every_model(data):
    method = methods.cae(data.spec, **TINY)
    prepared = method.prepare(datasets.by_client(data.train))
    most = int(prepared.counts.max())
    assert method.schedule.rounds_per_epoch(prepared) == round(most / 16)
    assert (method.schedule.work_per_round(prepared), method.schedule.unit) == (
        3 * 16,
        "windows",
    )


@pytest.mark.parametrize("count", [0, 1])
def test_a_class_of_too_few_windows_is_refused_where_it_has_a_model(data, count):
    clients = datasets.by_client(data.train)
    public = np.array(clients.labels["activity"])
    rare = np.flatnonzero(clients.mask & (public == 1))
    public.flat[rare[count:]] = 0
    lacking = clients._replace(labels=clients.labels | {"activity": public})
    with pytest.raises(ValueError, match="at least two training windows"):
        methods.cvae(data.spec, **TINY).prepare(lacking)
    methods.general_vae(data.spec, **TINY).prepare(lacking)
