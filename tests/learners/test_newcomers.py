"""Tests of new clients of a trained run: fine-tuning windows and results."""

import dataclasses

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxanon as ja
from jaxanon import datasets, methods
from jaxanon import federated as algorithms
from jaxanon.datasets import Windows
from jaxanon.datasets import spec as datasets_spec
from jaxanon.evaluation import federated, newcomers
from jaxanon.learners.learner import population_of
from jaxanon.training import trainer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def apart(data):
    """Returns ``data`` in which subjects 3 and 4 are new and have only test windows."""
    old = data.train.labels["subject"] < 3
    new = data.test.labels["subject"] >= 3
    take = datasets_spec.take
    train, test = take(data.train, old), take(data.test, new)
    return data._replace(train=train, test=test)


@pytest.fixture(scope="session")
def fresh(data, apart):
    """Returns the new subjects' fine-tuning and test windows."""
    later = datasets_spec.take(data.train, data.train.labels["subject"] >= 3)
    return apart._replace(train=later)


@pytest.fixture(scope="session")
def run_of(small, apart):
    """Returns ``name -> Run`` trained by three subjects."""
    return lambda name, **settings: trainer.train(
        small(name, **settings), apart, epochs=2, progress=False
    )


def test_newcomers_begin_as_all_began_and_see_nothing_that_others_keep(run_of, fresh):
    run = run_of("localized")
    gone = jax.tree.map(lambda leaf: jnp.full_like(leaf, jnp.nan), run.state.own)
    run = dataclasses.replace(run, state=run.state._replace(own=gone))
    told = federated.predictions(newcomers.join(run, fresh, num_rounds=0), fresh)
    init_key, _ = jax.random.split(jax.random.key(0))  # From a run with seed 0.
    first = jax.tree.map(lambda leaf: leaf[0], run.method.init(init_key).own)
    x = (fresh.test.windows - np.float32(run.spec.mean)) / np.float32(run.spec.std)
    want = jnp.argmax(run.method.predict.network.apply(first, x), axis=1)
    np.testing.assert_array_equal(told, want)


def test_a_newcomers_model_is_that_of_their_own_windows(run_of, fresh):
    """Compares with ``federated.join`` on windows standardised in the same way."""
    run = run_of("fedper")
    before = jax.tree.map(jnp.copy, run.state)
    told = federated.predictions(
        newcomers.join(run, fresh, num_rounds=3), fresh, seed=7
    )
    chex.assert_trees_all_equal(before, run.state)
    init_key, _ = jax.random.split(jax.random.key(0))
    own = jax.tree.map(lambda leaf: leaf[0], run.method.init(init_key).own)
    found = population_of(run.spec, datasets.by_client(fresh.train))
    x = (fresh.test.windows - np.float32(run.spec.mean)) / np.float32(run.spec.std)
    for subject in (3, 4):
        layers = algorithms.personalize_new_client(
            run.method.federation.algorithm,
            jax.random.fold_in(jax.random.key(7), subject),
            *(run.state, own),
            jax.tree.map(lambda leaf, s=subject: leaf[s], found.rows),
            found.mask[subject],
            3,
        )
        chex.assert_trees_all_equal(layers["dense_1"], run.state.params["dense_1"])
        theirs = fresh.test.labels["subject"] == subject
        want = jnp.argmax(run.method.predict.network.apply(layers, x[theirs]), axis=1)
        np.testing.assert_array_equal(told[theirs], want)


def test_where_nobody_trained_the_page_says_how_to_join(run_of, apart, tmp_path):
    report = ja.evaluate(run_of("fedavg"), apart, output_dir=tmp_path)
    assert report["new_clients"] == report["mean"]["accuracy"]
    page = " ".join((tmp_path / "report.html").read_text().split())
    assert "No client has training windows. `jaxanon personalize`" in page


@pytest.mark.parametrize("name", ["atlas", "fedavg", "fedsgd_ldp", "localized"])
def test_who_joins_is_evaluated_as_clients_are(name, run_of, fresh, tmp_path):
    run = run_of(name)
    joined = newcomers.join(run, fresh, num_rounds=30)
    report = ja.evaluate(joined, fresh, output_dir=tmp_path)
    assert [row["subject"] for row in report["clients"]] == ["3", "4"]
    assert not any(row["new"] for row in report["clients"])
    assert report["dataset"]["rounds_alone"] == 30 and report["traffic"]["up"] == 0.0
    assert (report["privacy"] is None) == (name in ("fedavg", "localized"))
    assert (tmp_path / "report.html").is_file()
    if name in ("fedavg", "fedsgd_ldp"):  # This learner has no personal layers.
        x = (fresh.test.windows - np.float32(run.spec.mean)) / np.float32(run.spec.std)
        want = jnp.argmax(run.method.predict.network.apply(run.state.params, x), axis=1)
        np.testing.assert_array_equal(federated.predictions(joined, fresh), want)
    else:  # They learn from their own windows.
        assert report["mean"]["accuracy"] > 0.55


def test_newcomers_may_be_of_another_data_set(run_of, fresh):
    names = {"subject": ("anna", "bo")}
    spec = dataclasses.replace(fresh.spec, classes=fresh.spec.classes | names)

    def renamed(windows):
        subject = (windows.labels["subject"] - 3).astype(np.int32)
        return Windows(windows.windows, windows.labels | {"subject": subject})

    train, test = renamed(fresh.train), renamed(fresh.test)
    other = fresh._replace(spec=spec, train=train, test=test)
    report = ja.evaluate(newcomers.join(run_of("ditto"), other), other)
    assert [row["subject"] for row in report["clients"]] == ["anna", "bo"]


def streams(steps, kinds, subjects):
    """Returns windows of 4 samples, cut from one stream at these steps."""
    stream = np.arange(100.0, dtype=np.float32)[:, None]
    windows = np.stack([stream[i : i + 4] for i in steps])
    labels = {"activity": np.int32(kinds), "subject": np.int32(subjects)}
    return Windows(windows, labels)


def test_the_first_of_every_class_are_fitted_on_and_those_that_overlap_left_out(data):
    test = streams(range(18), [0] * 12 + [1] * 6, [4] * 16 + [1] * 2)
    train = streams([50], [0], [1])
    fresh = newcomers.parted(data._replace(train=train, test=test), 0.4, gap=2)
    # Windows 0 to 11 and 12 to 15 are of subject 4; subject 1 is not new.
    assert fresh.train.windows[:, 0, 0].tolist() == [0, 1, 2, 3, 4, 12, 13]
    assert fresh.test.windows[:, 0, 0].tolist() == [7, 8, 9, 10, 11]
    # A window and those that start in it: three after each, and three before 12, which
    # has another class and is used for fine-tuning.
    found = newcomers.parted(data._replace(train=train, test=test), 0.4)
    assert found.test.windows[:, 0, 0].tolist() == [8]
    numbers = test.labels | {"activity": np.linspace(0.0, 1.0, 18)}
    one = data._replace(train=train, test=Windows(test.windows, numbers))
    assert newcomers.parted(one, 0.4).test.windows[:, 0, 0].tolist() == [*range(9, 16)]


@pytest.mark.parametrize(
    ("steps", "overlap"),
    [((0, 1, 2), 3), ((0, 20, 22), 1), ((0, 20, 23), 0), ((0, 4, 8), 0), ((5,), 0)],
)
def test_overlap_is_found_by_the_samples(steps, overlap):
    assert newcomers.overlap(streams(steps, [0] * len(steps), steps)) == overlap


def test_a_constant_stretch_is_no_overlap():
    still = Windows(np.zeros((3, 4, 1), np.float32), {})
    assert newcomers.overlap(still) == 0


def test_says_what_was_wrong(run_of, data, apart, fresh):
    with pytest.raises(ValueError, match=r"share must be in \(0, 1\), got 1.0"):
        newcomers.parted(apart, 1.0)
    with pytest.raises(
        ValueError, match="data.test must include subjects without training"
    ):
        newcomers.parted(data, 0.5)
    with pytest.raises(ValueError, match="with 20 and 0 windows and a gap of 99"):
        newcomers.parted(apart, 0.7, gap=99)
    run = run_of("localized")
    with pytest.raises(ValueError, match="num_rounds must be >= 0, got -1"):
        newcomers.join(run, fresh, num_rounds=-1)
    other = dataclasses.replace(data.spec, time=8)
    with pytest.raises(ValueError, match="data.spec.time must be .* as in the run"):
        newcomers.join(run, fresh._replace(spec=other))
    names = data.spec.classes | {"activity": ("a", "b", "d")}
    other = dataclasses.replace(data.spec, classes=names)
    with pytest.raises(ValueError, match="data.spec.classes.* must be .* as in"):
        newcomers.join(run, fresh._replace(spec=other))
    blinder = methods.build("blinder", data.spec)
    with pytest.raises(TypeError, match="run must be of a learner, got blinder"):
        newcomers.join(dataclasses.replace(run, method=blinder), fresh)
