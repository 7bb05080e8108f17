"""Attackers of scikit-learn, on ``features`` of the windows."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from jaxanon.attacks.features import features

LEAST = 1e-3  # A probability below this counts as this: no window settles a matter.
MOST = {"svm": 4000}  # Windows that one learns from, drawn at random among more.

MODELS = {
    "forest": lambda seed: RandomForestClassifier(
        100, min_samples_leaf=2, class_weight="balanced", n_jobs=-1, random_state=seed
    ),
    # Not the one on histograms, whose threads spin for minutes on a busy machine.
    "boosting": lambda seed: GradientBoostingClassifier(
        n_estimators=100,
        learning_rate=0.1,
        max_depth=3,
        subsample=0.5,
        max_features="sqrt",
        random_state=seed,
    ),
    "logistic": lambda seed: make_pipeline(
        StandardScaler(), LogisticRegression(class_weight="balanced", max_iter=1000)
    ),
    "svm": lambda seed: make_pipeline(StandardScaler(), SVC(class_weight="balanced")),
    "tree": lambda seed: DecisionTreeClassifier(
        min_samples_leaf=2, class_weight="balanced", random_state=seed
    ),
}


def fit_models(
    keys,
    windows: Sequence,
    labels: Sequence,
    num_classes: Sequence[int],
    *,
    name: str,
    hold_back: bool = True,
) -> list[Callable]:
    """Trains one model per set, one after another.

    Args:
      keys: typed PRNG keys, ``[sets]``.
      windows: per set ``float[N_i, time, channels]``, standardised.
      labels: per set ``int[N_i]``. A class that does not occur is never said, and a
        model of a single class says nothing else.
      num_classes: per set.
      name: of ``MODELS``.
      hold_back: not used; these models do not stop early.

    Returns:
      Per set a function from ``float[M, time, channels]`` to ``float32[M,
      num_classes]``, log-probabilities; for the support vector machine, which has none,
      what its margins would be as such.
    """
    del hold_back
    sets = zip(keys, windows, labels, num_classes, strict=True)
    return [_fit(name, *one) for one in sets]


def _fit(name, key, windows, labels, num_classes):
    labels = np.asarray(labels)
    seed = int(jax.random.bits(key, dtype=np.uint32))
    if len(labels) > MOST.get(name, len(labels)):
        generator = np.random.default_rng(seed)
        rows = np.sort(generator.choice(len(labels), MOST[name], replace=False))
        windows, labels = windows[rows], labels[rows]
    classes = np.unique(labels)
    model = MODELS[name](seed) if len(classes) > 1 else None
    if model is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(features(windows), labels, **_weights(name, labels))

    def read(windows):
        told = np.full((len(windows), num_classes), np.log(LEAST), np.float32)
        if model is None:
            told[:, classes] = 0.0
        elif len(windows):
            said = log_shares(model, features(windows))
            told[:, classes] = np.maximum(said, np.log(LEAST))
        return told

    return read


def _weights(name, labels) -> dict[str, Any]:
    """Windows of every class together weigh the same, where a model cannot be told."""
    if name != "boosting":
        return {}
    classes, place, counts = np.unique(labels, return_inverse=True, return_counts=True)
    return {"sample_weight": len(labels) / (len(classes) * counts[place])}


def log_shares(model, rows) -> np.ndarray:
    """What a fitted model of scikit-learn says of rows of features.

    Args:
      model: with ``predict_proba`` or ``decision_function``.
      rows: ``float[M, features]``.

    Returns:
      ``float[M, classes]`` in the order of ``model.classes_``: log-probabilities (minus
      infinity where one is 0), or margins put in their place, those of two classes
      half to each.
    """
    if hasattr(model, "predict_proba"):
        with np.errstate(divide="ignore"):
            return np.log(model.predict_proba(rows))
    margins = model.decision_function(rows)
    if margins.ndim == 1:
        margins = np.stack([-margins / 2, margins / 2], axis=1)
    return margins - np.logaddexp.reduce(margins, axis=1, keepdims=True)
