"""Tests of DySan's online phase: model outputs by hand, scores and choices."""

import jax
import numpy as np
import pytest
import toy

from jaxanon import datasets, methods
from jaxanon.methods.dysan import online_selection, sanitizers

SMALL = {
    "filters": (4, 6),
    "hidden_sizes": (8, 4),
    "predictor_filters": (8,),
    "discriminator_filters": 6,
    "classifier_hidden_sizes": 8,
    "batch_size": 32,
}


@pytest.fixture(scope="module")
def data():
    return toy.data()


@pytest.mark.parametrize("standardized", [True, False])
def test_each_model_is_tried_by_its_own_networks(data, standardized):
    spec = data.spec
    method = methods.dysan(spec, **SMALL, standardized=standardized)
    prepared = method.prepare(datasets.by_client(data.train))
    update = jax.jit(method.update)
    states = []
    for seed in range(2):
        # One round, so that the running averages differ from their initial values.
        start = method.init(jax.random.key(seed))
        states.append(update(jax.random.key(10 + seed), start, prepared)[0])
    windows, public = data.test.windows[:6], data.test.labels["activity"][:6]
    tried = online_selection.trier(method, states)(jax.random.key(3), windows, public)
    assert tried.windows.shape == (2, *windows.shape)
    nets = sanitizers.networks(spec, method.config)
    mean, std = (np.float32(x) for x in (spec.mean, spec.std))
    for number, state in enumerate(states):
        # The method itself gives the same windows for the same key.
        own = jax.random.split(jax.random.key(3), 2)[number]
        shown = np.asarray(jax.jit(method.anonymize)(own, state, windows))
        np.testing.assert_allclose(tried.windows[number], shown, rtol=1e-4, atol=1e-4)
        inside = (shown - mean) / std if standardized else shown
        read = jax.jit(nets.predict)(state.params, inside)[0]
        np.testing.assert_array_equal(tried.public[number], np.argmax(read, 1))
        read = jax.jit(nets.discriminate)(state.params, inside, public)[0]
        read = np.argmax(read["gender"], 1)
        np.testing.assert_array_equal(tried.private[number, 0], read)
    with pytest.raises(ValueError, match="at least one trained model"):
        online_selection.trier(method, [])


def test_large_weights_in_half_precision_change_windows_little(data, monkeypatch):
    method = methods.dysan(data.spec, **SMALL)
    state = method.init(jax.random.key(0))
    windows, public = data.test.windows[:6], data.test.labels["activity"][:6]
    key, std = lambda: jax.random.key(3), np.float32(data.spec.std)
    whole = online_selection.trier(method, [state])(key(), windows, public).windows
    monkeypatch.setattr(online_selection, "LARGE", 1)
    halved = online_selection.trier(method, [state])(key(), windows, public).windows
    moved = np.abs(halved - whole) / std
    assert 0 < moved.max() < 5e-3

    # Weights outside the range of half precision stay unchanged.
    huge = jax.tree.map(lambda leaf: leaf * 1e6, state.params["predictor"])
    state = state._replace(params=state.params | {"predictor": huge})
    again = online_selection.trier(method, [state])(key(), windows, public)
    read = jax.jit(sanitizers.networks(data.spec, method.config).predict)(
        state.params, standardized(data.spec, again.windows[0])
    )[0]
    assert np.isfinite(read).all()
    np.testing.assert_array_equal(again.public[0], np.argmax(read, 1))


def standardized(spec, windows):
    return (windows - np.float32(spec.mean)) / np.float32(spec.std)


def _tried(public, private):
    public = np.asarray(public)
    return online_selection.Tried(
        np.zeros((*public.shape, 1, 1)), public, np.asarray(private)
    )


def test_scores_by_hand():
    # Five windows of public class 1 and private class 0. Model 0 predicts the activity
    # of 4 of 5 and the private class of all; model 1 that of 3 and of 2.
    tried = _tried(
        [[1, 1, 1, 1, 0], [1, 1, 1, 0, 0]], [[[0, 0, 0, 0, 0]], [[0, 0, 1, 1, 1]]]
    )
    zeros = np.zeros(5, int)
    found = online_selection.scores(tried, zeros, zeros + 1, zeros[None], [2])
    np.testing.assert_allclose(found[:, 0], [0.08 + 0.9 * 0.5, 0.06 + 0.9 * 0.9])
    found = online_selection.scores(
        tried, zeros, zeros + 1, zeros[None], [2], utility=0.8, privacy=0.2
    )
    np.testing.assert_allclose(found[:, 0], [0.64 + 0.2 * 0.5, 0.48 + 0.2 * 0.9])
    # With four classes, 2 of 5 is 0.15 from chance; each group has its own score.
    found = online_selection.scores(tried, [0, 0, 1, 1, 1], zeros + 1, zeros[None], [4])
    np.testing.assert_allclose(
        found[1], [0.1 + 0.9 * 0.25, 0.1 / 3 + 0.9 * 0.75], rtol=1e-9
    )


def test_several_private_attributes_count_alike():
    tried = _tried([[0, 0]], [[[0, 0], [1, 0]]])
    found = online_selection.scores(
        tried, [0, 0], [0, 0], np.zeros((2, 2), int), [2, 2]
    )
    np.testing.assert_allclose(found, [[0.1 + 0.9 * (0.5 + 1.0) / 2]])


def test_runs_never_cross_subjects():
    subject = np.repeat([4, 1, 4], [7, 6, 4])
    found = online_selection.runs(subject)
    assert found.tolist() == [2] * 5 + [3] * 2 + [0] * 5 + [1] + [3] * 3 + [4]
    for run in np.unique(found):
        assert len(np.unique(subject[found == run])) == 1


def test_a_run_is_rewritten_by_what_was_best_before_it():
    subject = np.repeat([0, 1], [15, 10])
    groups = online_selection.runs(subject)
    rng = np.random.default_rng(0)
    found = rng.uniform(size=(4, 5))
    choice = online_selection.choose(found, groups, subject, prior=[0.1, 0.2, 0.9, 0.3])
    best = found.argmax(0)
    # Runs 0 to 2 are of subject 0, runs 3 and 4 of subject 1; a first run uses the
    # prior.
    expected = [2, best[0], best[1], 2, best[3]]
    assert choice.tolist() == np.repeat(expected, 5).tolist()
    # The scores of a run do not affect the choice for it.
    other = found.copy()
    other[:, [2, 4]] = rng.uniform(size=(4, 2))
    np.testing.assert_array_equal(
        online_selection.choose(other, groups, subject, prior=[0.1, 0.2, 0.9, 0.3]),
        choice,
    )
    same = online_selection.choose(
        found, groups, subject, prior=np.zeros(4), same_run=True
    )
    assert same.tolist() == np.repeat(best, 5).tolist()


def test_of_equals_the_better_one_on_the_calibration():
    found = np.array([[0.3], [0.1 + 0.2], [0.2]])
    groups, subject = np.zeros(2, int), np.zeros(2, int)
    for prior, expected in [([0.5, 0.6, 0.9], 1), ([0.6, 0.5, 0.9], 0)]:
        choice = online_selection.choose(found, groups, subject, prior, same_run=True)
        assert choice.tolist() == [expected] * 2


def test_the_published_score_is_one_half_by_choice_alone():
    # 36 discriminators that are right in 9 of 10 windows: the score of the same run
    # reports less than two thirds, the score of the previous run the true value.
    rng = np.random.default_rng(1)
    right = rng.random((36, 1, 2000)) < 0.9
    tried = _tried(np.zeros((36, 2000), int), 1 - right.astype(int))
    subject = np.repeat(np.arange(20), 100)
    groups = online_selection.runs(subject)
    zeros = np.zeros(2000, int)
    found = online_selection.scores(tried, groups, zeros, zeros[None], [2])
    prior = np.zeros(36)
    told = lambda **options: right[
        online_selection.choose(found, groups, subject, prior, **options),
        0,
        np.arange(2000),
    ].mean()
    assert told(same_run=True) < 0.66
    assert abs(told() - 0.9) < 0.03


def test_the_forest_labels_raw_windows(data):
    spec = data.spec
    label = online_selection.labeller(
        jax.random.key(0), spec, data.train.windows, data.train.labels["activity"]
    )
    found = label(data.test.windows)
    assert found.dtype == np.int32
    assert np.mean(found == data.test.labels["activity"]) > 0.95
