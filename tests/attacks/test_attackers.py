"""Attackers: all find existing information, and none finds absent information."""

import jax
import numpy as np
import pytest
from sklearn import ensemble, linear_model, svm, tree
from sklearn.pipeline import Pipeline

from jaxanon.attacks import ATTACKERS, attackers
from jaxanon.attacks.attackers import features
from jaxanon.models import fit as models_fit
from jaxanon.models.classifiers import ConvClassifier, RecurrentClassifier

EACH = pytest.mark.parametrize("name", sorted(ATTACKERS))


@pytest.fixture(scope="module", autouse=True)
def small_networks():
    """Makes the networks small; their own tests use the full size."""
    small = pytest.MonkeyPatch()
    whole = models_fit.fit_many

    def fit_many(*given, net=None, **options):
        if net is None:
            options["hidden"] = (32,)
        elif hasattr(net, "filters"):
            net = net.clone(filters=(4, 4), hidden=(8,))
        else:
            net = net.clone(features=8, hidden=8)
        options["hyper"] = models_fit.Hyper(1e-2)
        return whole(*given, net=net, epochs=20, **options)

    small.setattr(models_fit, "fit_many", fit_many)
    yield
    small.undo()


def waves(rows, seed, told=True):
    """Returns two classes that differ only in frequency, at random phase."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(2, size=rows)
    time = np.arange(16) / 16
    cycles = 2 + 3 * labels[:, None] if told else 2
    phase = 2 * np.pi * rng.uniform(size=(rows, 1))
    windows = np.sin(2 * np.pi * cycles * time + phase)
    return np.float32(windows[..., None] + 0.1 * rng.normal(size=(rows, 16, 1))), labels


@pytest.fixture(scope="module")
def fitted():
    """Returns each attacker fitted to two sets.

    Informative and uninformative windows.
    """
    keys = jax.random.split(jax.random.key(0), 2)
    windows, labels = zip(waves(200, 0), waves(200, 0, told=False), strict=True)
    return {
        name: ATTACKERS[name].fit_sets(keys, windows, labels, [2, 2])
        for name in ATTACKERS
    }


KINDS = {
    "boosting": ensemble.GradientBoostingClassifier,
    "cnn": ConvClassifier,
    "forest": ensemble.RandomForestClassifier,
    "logistic": linear_model.LogisticRegression,
    "lstm": RecurrentClassifier,
    "mlp": type(None),  # fit_many trains only the perceptron.
    "svm": svm.SVC,
    "tree": tree.DecisionTreeClassifier,
}


class About(Exception):
    """Exception raised in place of training, with the arguments of the training."""


@EACH
def test_a_name_is_that_of_what_trains(name, monkeypatch):
    def stop(*given, net=None, **options):
        raise About(net)

    def fit_model(model, *given, **options):
        raise About(getattr(model, "steps", [("", model)])[-1][1])

    monkeypatch.setattr(models_fit, "fit_many", stop)
    for kind in (*KINDS.values(), Pipeline):
        if hasattr(kind, "fit"):
            monkeypatch.setattr(kind, "fit", fit_model)
    with pytest.raises(About) as caught:
        attackers.get(name).fit(jax.random.key(0), *waves(20, 0), 2)
    assert type(caught.value.args[0]) is KINDS[name]
    assert set(KINDS) == set(ATTACKERS)


@pytest.mark.slow
@EACH
@pytest.mark.parametrize(("told", "low", "high"), [(True, 0.9, 1.0), (False, 0.4, 0.6)])
def test_finds_what_is_there_and_only_that(fitted, name, told, low, high):
    read = fitted[name][0 if told else 1]
    windows, labels = waves(400, 1, told)
    evidence = read(windows)
    assert evidence.shape == (400, 2) and evidence.dtype == np.float32
    # The accuracy over 400 windows at chance level has a standard deviation of 0.025.
    assert low <= np.mean(evidence.argmax(1) == labels) <= high
    assert read(windows[:0]).shape == (0, 2)


@EACH
def test_evidence_is_like_log_probabilities(fitted, name):
    evidence = fitted[name][0](waves(50, 2)[0])
    assert np.isfinite(evidence).all() and evidence.max() <= 1e-6
    # They sum to 1, except for those below 0.001, which count as 0.001.
    np.testing.assert_allclose(np.exp(evidence).sum(1), 1, atol=2e-3)


@pytest.mark.parametrize("name", ["forest", "mlp"])
def test_the_key_decides(name):
    windows = waves(60, 1, told=False)[0]
    fit = lambda seed: attackers.get(name).fit(
        jax.random.key(seed), *waves(100, 0, told=False), 2
    )
    one, again, other = (fit(seed)(windows) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert np.any(one != other)


@pytest.mark.parametrize("name", ["logistic", "svm", "tree"])
def test_a_class_that_was_never_seen_is_never_said(name):
    windows, labels = waves(60, 0)
    key = jax.random.key(0)
    evidence = attackers.get(name).fit(key, windows, 2 * labels, 4)(windows)
    assert evidence.shape == (60, 4)
    assert set(evidence.argmax(1)) == {0, 2}
    np.testing.assert_allclose(evidence[:, [1, 3]], np.log(1e-3), rtol=1e-6)
    # With a single class, that class is predicted.
    alone = attackers.get(name).fit(key, windows, np.full(60, 3), 4)(windows)
    assert set(alone.argmax(1)) == {3}


@pytest.mark.slow
def test_networks_train_together_and_apart_alike():
    sets = [waves(90, 0), waves(100, 1), waves(30, 2)]
    windows, labels = zip(*sets, strict=True)
    keys = jax.random.split(jax.random.key(0), 3)
    programs = []
    whole = models_fit.fit_many

    def spy(keys, **options):
        programs.append(len(keys))
        return whole(keys, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models_fit, "fit_many", spy)
        reads = ATTACKERS["mlp"].fit_sets(keys, windows, labels, [2, 2, 2])
    # 90 and 100 windows train together; 30 would be mostly padding.
    assert sorted(programs) == [1, 2]
    key = jax.random.split(jax.random.key(0), 3)[2]
    alone = ATTACKERS["mlp"].fit(key, windows[2], labels[2], 2)
    unseen, truth = waves(50, 9)
    np.testing.assert_allclose(reads[2](unseen), alone(unseen), atol=1e-4)
    assert all(np.mean(read(unseen).argmax(1) == truth) > 0.9 for read in reads[:2])


def test_windows_that_sets_share_are_kept_once():
    windows, labels = waves(40, 0)
    shared = attackers._stacked([windows, windows], [labels, 1 - labels], False)
    assert shared["windows"].shape == (40, 16, 1) and not shared["valid"].any()
    own = attackers._stacked([windows, windows[:30]], [labels, labels[:30]], True)
    assert own["windows"].shape == (2, 40, 16, 1)
    np.testing.assert_array_equal(own["mask"].sum(1), [40, 30])
    assert own["valid"].any(1).all() and not (own["valid"] & ~own["mask"]).any()


@pytest.mark.parametrize("name", ["boosting", "forest", "logistic", "svm"])
def test_a_rare_class_weighs_as_much_as_a_frequent_one(name):
    # Overlapping levels, one in 16 of class 1: unweighted, class 0 would win the
    # middle.
    rng = np.random.default_rng(0)
    labels = np.int32(np.arange(960) % 16 == 0)
    windows = labels[:, None, None] + 0.4 * rng.normal(size=(960, 1, 1))
    windows = np.float32(windows * np.ones((1, 2, 1)))
    read = attackers.get(name).fit(jax.random.key(0), windows, labels, 2)
    middle = np.linspace(0.55, 0.95, 41, dtype=np.float32)[:, None, None]
    assert np.mean(read(middle * np.ones((1, 2, 1), np.float32)).argmax(1)) > 0.5


def test_a_support_vector_machine_learns_a_part(monkeypatch):
    windows, labels = waves(60, 0)
    key, seen = jax.random.key(0), []
    monkeypatch.setitem(attackers.MOST, "svm", 20)
    whole = attackers.features
    note = lambda windows: seen.append(len(windows)) or whole(windows)
    monkeypatch.setattr(attackers, "features", note)
    attackers.get("svm").fit(key, windows, labels, 2)
    assert seen == [20]


def test_features_by_hand():
    window = np.array([1.0, 3.0, 1.0, 3.0]).reshape(1, 4, 1)
    # The window; mean 2, std 1, minimum 1, maximum 3, step 2. In the spectrum (without
    # the mean) frequency 1 is empty and frequency 2 is |1-3+1-3| / 4.
    want = [1, 3, 1, 3, 2, 1, 1, 3, 2, 0, 1]
    np.testing.assert_allclose(features(window), [want], atol=1e-6)


def test_an_unknown_name_is_refused():
    message = r"attackers must be among \['boosting', .*'tree'\], got 'oracle'"
    with pytest.raises(ValueError, match=message):
        attackers.get("oracle")
