"""Tests of the subsets and learning rates in the comparison with Atlas."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxanon as ja
from jaxanon import datasets, learners
from jaxanon.datasets import Data, Spec, Windows


@pytest.fixture
def atlas(bench):
    return bench("atlas.command")


def test_what_diverged_goes_on_with_the_next_lower_learning_rate(atlas, bench):
    entry = bench("atlas.applications").ENTRIES["DP-FedAvg"]
    assert (entry.tuned, entry.scale) == ("server_learning_rate", 0.1)
    one = atlas.Bench.__new__(atlas.Bench)
    one.application = bench("atlas.applications").APPLICATIONS[0]
    grid = [0.002, 0.005, 0.01, 0.03, 0.1]
    np.testing.assert_allclose(one.learning_rates(entry), grid)
    assert one.lower(entry, 0.01) == pytest.approx(0.005)
    with pytest.raises(FloatingPointError, match="DP-FedAvg diverges at every"):
        one.lower(entry, 0.002)


def people(count):
    subject = np.repeat(np.arange(count), 4).astype(np.int32)
    x = np.arange(count * 4, dtype=np.float32)[:, None, None] * np.ones((1, 2, 1))
    act = np.tile([0, 0, 1, 1], count).astype(np.int32)
    windows = Windows(x.astype(np.float32), {"subject": subject, "act": act})
    names = {"act": ("sit", "walk"), "subject": tuple("abcdefgh"[:count])}
    spec = Spec(
        **{"name": "toy", "preset": "raw", "channels": ("x",), "units": ("g",)},
        **{"rate_hz": 1.0, "time": 2, "public": "act", "private": ("subject",)},
        **{"classes": names, "mean": (0.0,), "std": (1.0,), "split": "given"},
    )
    return Data(spec, windows, windows)


def test_some_people_are_a_data_set_of_their_own(bench):
    chosen = bench("atlas.data").of_people(people(4), np.array([1, 3]))
    assert chosen.spec.classes["subject"] == ("b", "d")
    assert chosen.train.labels["subject"].tolist() == [0] * 4 + [1] * 4
    # Windows 4 to 7 and 12 to 15.
    assert chosen.spec.mean == (9.5,) and chosen.spec.std[0] ** 2 == 17.25
    some = bench("atlas.data").some
    assert some(people(4), 9, 0).spec == people(4).spec
    assert len(some(people(4), 3, 0).spec.classes["subject"]) == 3


def test_learning_rates_are_chosen_on_the_last_of_every_class(bench):
    data = bench("atlas.data").fifth_apart(people(2))
    assert data.train.windows[:, 0, 0].tolist() == [0, 2, 4, 6]
    assert data.test.windows[:, 0, 0].tolist() == [1, 3, 5, 7]


def test_learning_rates_of_noisy_methods_are_chosen_for_each_budget_and_number(
    atlas, bench, tmp_path
):
    """A learning rate of 0.3 diverges, so larger ones are not tried."""
    applications = bench("atlas.applications")
    own, calls = object.__new__(atlas.Bench), []
    own.application, own.smoke = applications.APPLICATIONS[0], False
    own.data, own.folder, own.earlier = people(5), tmp_path, {}

    def train(entry, data, seed, learning_rate, more):
        everybody = len(np.unique(data.train.labels["subject"]))
        calls.append((entry.name, everybody, learning_rate, more))
        if learning_rate >= 0.3:
            raise FloatingPointError
        return learning_rate

    own.train, own.scores = train, lambda run, data: {"value": run}
    size = lambda name, *at: own.learning_rate(applications.ENTRIES[name], *at)
    assert size("Atlas, as claimed", 3, 0.5) == 0.1
    tried = [("Atlas", 3, each, {"epsilon": 0.5}) for each in (0.02, 0.05, 0.1, 0.3)]
    assert calls == tried
    assert size("Atlas", 3, 0.5) == 0.1 and len(calls) == 4  # It is saved.
    assert size("Atlas") == size("FedAvg", 3, 0.5) == 0.1
    assert {(name, n, *more) for name, n, _, more in calls[4:]} == {
        *(("Atlas", 5), ("FedAvg", 5))
    }
    kept = {path.name for path in (tmp_path / "tuned").iterdir()}
    assert kept == {"Atlas-3-0.5.json", "Atlas.json", "FedAvg.json"}
    assert bench("atlas.data").number_of_first(people(10)) == 7
    own.earlier = {("Atlas", 3, 4.0): 0.7}  # Other budgets are not in it.
    assert size("Atlas, as claimed", 3, 4.0) == 0.7 and size("Atlas", 3, 0.5) == 0.1


def test_earlier_rows_tell_learning_rates_by_what_they_were_tuned_for(bench):
    application = bench("atlas.applications").APPLICATIONS[0]
    of = {"application": application.name, "model": "cnn", "rounds": application.rounds}

    def row(question="methods", name="Atlas", **more):
        return (
            of
            | {"question": question, "name": name}
            | {"clients": 30, "tuned": 0.9}
            | more
        )

    rows = [
        row(name="Atlas, as claimed", tuned=0.1, epsilon=2.0),
        row("epsilon", "Atlas", tuned=0.2, epsilon=4.0),
        row("epsilon", "Atlas, as claimed", tuned=0.8, epsilon=4.0),
        row("clients", "FedSGD-LDP, last fit", tuned=0.3, epsilon=2.0, clients=5),
        row("joining", "Atlas", tuned=0.4, epsilon=2.0),
        row("epsilon", "LDP-FL", tuned=0.5, epsilon=4.0),
        # These rows give no learning rate for the requested runs.
        row("epsilon", "Atlas", tuned=None, epsilon=8.0),
        row(name="Ditto", rounds=1),
        row(name="FedPer", model="lstm"),
        row(name="FedRep", application="another"),
    ]
    given = rows, application, application.rounds
    assert bench("atlas.tuning").earlier_learning_rates(*given, first=21) == {
        ("Atlas", None, None): 0.1,
        ("Atlas", None, 4.0): 0.2,
        ("FedSGD-LDP", 5, None): 0.3,
        ("Atlas", 21, None): 0.4,
        ("LDP-FL", None, None): 0.5,
    }


def test_a_last_fit_is_steps_on_a_client_s_own_windows(bench):
    """One gradient step of a softmax regression from zeros, by hand."""
    data = people(2)
    linear = {"model": "mlp", "hidden_sizes": (), "batch_size": 8, "local_steps": 1}
    learner = learners.build("fedavg", data.spec, learning_rate=0.5, **linear)
    run = ja.train(learner, data, epochs=1, progress=False)
    zeros = jax.tree.map(jnp.zeros_like, run.state.params)
    run = dataclasses.replace(run, state=run.state._replace(params=zeros))
    prepared = learner.prepare(datasets.by_client(data.train))
    fitted = bench("atlas.data").fitted(run, 1, 0.1).method
    for client in range(2):
        layers = fitted.predict.model(jax.random.key(0), run.state, prepared, client)
        x = np.asarray(prepared.rows["x"])[client].reshape(4, 2)
        off = 0.5 - np.eye(2)[[0, 0, 1, 1]]
        found = {leaf.shape: leaf for leaf in jax.tree.leaves(layers)}
        np.testing.assert_allclose(found[2, 2], -0.1 * x.T @ off / 4, rtol=1e-4)
        np.testing.assert_allclose(found[2,], -0.1 * off.mean(axis=0), atol=1e-7)
