"""Tests of learners: training, resuming and prediction with personal models."""

import dataclasses

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxanon as ja
from jaxanon import datasets, learners
from jaxanon import federated as algorithms
from jaxanon.datasets import spec as datasets_spec
from jaxanon.evaluation import federated, newcomers
from jaxanon.learners.learner import population_of
from jaxanon.training import run_folder, trainer

ALL = pytest.mark.parametrize("name", learners.NAMES)


@pytest.mark.slow
@ALL
def test_every_learner_trains_and_tells_how_its_clients_predict(name, trained, data):
    run = trained(name)
    assert len(run.history) == 2 and np.isfinite(run.history[-1]["losses"]["loss"])
    report = ja.evaluate(run, data)
    assert [row["subject"] for row in report["clients"]] == list("01234")
    accuracies = [row["accuracy"] for row in report["clients"]]
    assert report["mean"]["accuracy"] == pytest.approx(np.mean(accuracies))
    assert report["std"]["accuracy"] == pytest.approx(np.std(accuracies))
    assert accuracies[int(report["worst"])] == min(accuracies)
    told = federated.predictions(run, data)
    share = np.mean(told == data.test.labels["activity"])
    assert report["pooled"]["accuracy"] == pytest.approx(share)
    layers = jax.tree.leaves(run.method.predict.network.init(jax.random.key(0)))
    size = 4 * sum(leaf.size for leaf in layers)
    alone = dict.fromkeys(("centralized", "centralized_clustering", "localized"), 0)
    factor = {**alone, "scaffold": 2}.get(name, 1)
    if name in ("fedper", "fedrep"):
        factor = (16 * 2 * 6 + 6) * 4 / size
    if name in ("fedmask", "ldp_fl"):  # One bit per weight.
        factor = 1 / 32
    if name == "atlas":  # All layers, and a score for each of two.
        factor = (size + 8) / size
    if name == "dp_fedavg":  # And the clip norm.
        factor = (size + 4) / size
    assert report["traffic"]["up"] == pytest.approx(factor * size)


@pytest.mark.parametrize(
    "name", ["atlas", "clusterfl", "ditto", "fedavg", "fedsgd_ldp", "scaffold"]
)
def test_a_run_that_is_resumed_ends_in_the_same_bits(name, trained, tmp_path):
    straight = trained(name, epochs=3)
    trained(name, epochs=1, output_dir=tmp_path / name)
    resumed = trained(name, epochs=3, output_dir=tmp_path / name, resume=True)
    chex.assert_trees_all_equal(straight.state, resumed.state)
    found = run_folder.open_run(tmp_path / name)
    chex.assert_trees_all_equal(straight.state, found.state)
    assert found.method.name == name and len(found.history) == 3


def test_clients_predict_with_models_of_their_own(trained, data):
    """Client c's personal model predicts class c % 3 for every window."""
    run = trained("localized", epochs=1)
    own = jax.tree.map(jnp.zeros_like, run.state.own)
    bias = own["dense_2"]["bias"]
    own["dense_2"]["bias"] = bias.at[jnp.arange(5), jnp.arange(5) % 3].set(1.0)
    run = type(run)(
        run.method,
        run.state._replace(own=own),
        *(run.spec, run.folder, run.history, run.config),
    )
    want = data.test.labels["subject"] % 3
    np.testing.assert_array_equal(federated.predictions(run, data), want)


def test_populations_are_standardised_and_every_subject_has_its_place(data):
    some = data.train.labels["subject"] != 2
    rows = datasets_spec.take(data.train, some)
    found = population_of(data.spec, datasets.by_client(rows))
    assert found.mask.shape[0] == 5 and not found.mask[2].any()
    assert not found.rows["x"][2].any()
    own = data.train.windows[data.train.labels["subject"] == 3]
    standard = (own - np.float32(data.spec.mean)) / np.float32(data.spec.std)
    np.testing.assert_allclose(found.rows["x"][3, : len(own)], standard, rtol=1e-5)
    activity = data.train.labels["activity"][data.train.labels["subject"] == 3]
    np.testing.assert_array_equal(found.rows["y"][3, : len(own)], activity)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["clusterfl", "fedavg", "ditto", "pfedme"])
def test_a_client_that_has_just_joined_predicts_with_what_is_shared(name, small, data):
    some = data.train.labels["subject"] != 4
    rest = data._replace(train=datasets_spec.take(data.train, some))
    run = trainer.train(small(name), rest, epochs=1, progress=False)
    report = ja.evaluate(run, rest)
    assert [row["new"] for row in report["clients"]] == [False] * 4 + [True]
    own = [row["accuracy"] for row in report["clients"]]
    assert report["new_clients"] == own[4]
    assert report["mean"]["accuracy"] == pytest.approx(np.mean(own[:4]))
    x = data.test.windows[data.test.labels["subject"] == 4]
    x = (x - np.float32(data.spec.mean)) / np.float32(data.spec.std)
    shared = jnp.argmax(run.method.predict.network.apply(run.state.params, x), axis=1)
    told = federated.predictions(run, rest)[data.test.labels["subject"] == 4]
    np.testing.assert_array_equal(told, shared)


def test_the_centralized_model_sees_all_windows(small, data):
    learner = small("centralized")
    prepared = learner.prepare(datasets.by_client(data.train))
    assert prepared.mask.shape[0] == 1 and prepared.mask.sum() == len(
        data.train.windows
    )


@pytest.mark.parametrize("kind", ["cnn", "lstm", "mlp"])
def test_networks_of_every_kind(kind, data):
    learner = learners.build(
        "fedavg",
        data.spec,
        model=kind,
        lstm_features=(4, 3),
        filters=(4,),
        hidden_sizes=(5,),
    )
    layers = learner.predict.network.init(jax.random.key(0))
    assert sorted(layers) == sorted(learner.predict.network.layers)
    first = {"cnn": ("conv_1",), "lstm": ("lstm_1", "lstm_2"), "mlp": ()}[kind]
    assert learner.predict.network.layers == (*first, "dense_1", "dense_2")
    windows = jax.random.normal(jax.random.key(1), (2, 16, 2))
    out = learner.predict.network.apply(layers, windows)
    assert out.shape == (2, 3)
    # Rows do not mix.
    alone = learner.predict.network.apply(layers, windows[1:])
    chex.assert_trees_all_close(out[1:], alone, rtol=1e-5)
    assert jnp.abs(out[0] - out[1]).max() > 1e-4


def test_a_convolution_is_one(data):
    """Compares with NumPy's correlation, also at the borders."""
    learner = learners.build("fedavg", data.spec, filters=(1,), hidden_sizes=(1,))
    layers = learner.predict.network.init(jax.random.key(0))
    layers = jax.tree.map(jnp.zeros_like, layers)
    kernel = np.arange(1.0, 11.0).reshape(5, 2)  # Five samples of two channels.
    layers["conv_1"]["kernel"] = jnp.array(kernel.reshape(10, 1), jnp.float32)
    place = 3  # The one of the 8 halves with samples 6 and 7.
    layers["dense_1"]["kernel"] = jnp.zeros((8, 1)).at[place].set(1.0)
    layers["dense_2"]["kernel"] = jnp.ones((1, 3))
    window = np.random.default_rng(0).uniform(size=(16, 2))
    told = learner.predict.network.apply(layers, jnp.array(window[None], jnp.float32))
    padded = np.pad(window, ((2, 2), (0, 0)))
    by_hand = [np.sum(padded[t : t + 5] * kernel) for t in (6, 7)]
    np.testing.assert_allclose(told[0], np.mean(by_hand), rtol=1e-5)


def test_says_what_was_wrong(small, trained, data):
    with pytest.raises(TypeError, match="no 'shared'; it has .* mean 'shared_layers'"):
        learners.build("fedper", data.spec, shared=1)
    with pytest.raises(ValueError, match="must be one of .* mean 'fedsgd_ldp'.$"):
        learners.build("FedSGD-LDP", data.spec)
    with pytest.raises(ValueError, match="got 'x'.$"):
        learners.build("x", data.spec)
    with pytest.raises(ValueError, match="shared_layers must be at most 2, the layers"):
        small("fedper", shared_layers=3)
    with pytest.raises(
        ValueError, match="filters must have at least one layer for cnn"
    ):
        small("fedavg", model="cnn", filters=())
    with pytest.raises(ValueError, match="first_score must be above the threshold"):
        small("atlas", threshold=0.6)
    with pytest.raises(
        ValueError, match="must be None for fedavg, which does not anonymize"
    ):
        ja.evaluate(trained("fedavg", epochs=1), data, attacks=("cnn",))
    with pytest.raises(TypeError, match="fedavg cannot anonymize"):
        trained("fedavg", epochs=1).anonymize(jax.random.key(0), data.test.windows[:2])


def test_what_a_learner_s_clients_send_can_be_observed(small, data):
    learner = small("fedsgd_ldp")
    population = learner.prepare(datasets.by_client(data.train))
    state = learner.init(jax.random.key(0))
    algorithm = learner.federation.algorithm
    args = (algorithm, jax.random.key(1), state, population, 2)
    _, mean = algorithms.simulate_observed(*args)
    _, own = algorithms.simulate_observed(*args, client=3)
    chex.assert_trees_all_equal_shapes(own, mean)
    assert own.weight.tolist() == [1.0, 1.0] and mean.weight.tolist() == [5.0, 5.0]
    second = jax.tree.map(lambda leaf: leaf[1], mean.before)
    first = jax.tree.map(lambda leaf: leaf[0], mean.message)
    chex.assert_trees_all_close(second, first, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_another_split_is_no_test_of_a_run(small, data):
    """Rejects another split, whose test subjects may have trained the run."""
    run = trainer.train(small("fedavg"), data, epochs=1, progress=False)
    mean = tuple(x + 0.25 for x in data.spec.mean)
    other = data._replace(
        spec=dataclasses.replace(data.spec, mean=mean, split="subject")
    )
    with pytest.raises(ValueError, match="data must be the split that the run"):
        ja.evaluate(run, other)
    assert ja.evaluate(newcomers.join(run, other), other)["method"]["rounds"] > 0
    fewer = data._replace(test=datasets_spec.take(data.test, slice(0, 20)))
    told = ja.evaluate(run, fewer)["dataset"]
    assert told["fingerprint"] == run_folder.fingerprint(fewer)
    assert told["fingerprint"] != run.config["data"]["fingerprint"]
    with pytest.raises(ValueError, match="seed must be between 0 and"):
        ja.evaluate(run, data, seed=-1)


def test_padding_between_pooled_rows_changes_nothing(small, data):
    """Checks that padding between pooled rows has no effect."""
    learner = small("centralized")
    prepared = learner.prepare(datasets.by_client(data.train))
    order = np.argsort(~np.asarray(prepared.mask[0]), kind="stable")
    packed = jax.tree.map(lambda leaf: leaf[:, order], prepared)
    state = learner.init(jax.random.key(0))
    found = [
        learner.update(jax.random.key(1), state, each)[0] for each in (prepared, packed)
    ]
    chex.assert_trees_all_close(*(each.params for each in found), atol=1e-6)
