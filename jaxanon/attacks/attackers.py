"""Attackers: classifiers trained on windows or on features of windows."""

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from jaxanon.attacks.attacker_data import blocks
from jaxanon.edge.forest import LEAST, features
from jaxanon.models import fit
from jaxanon.models.classifiers import ConvClassifier, RecurrentClassifier

TOGETHER = 16  # Maximum sets per program, because activations use memory.


def fit_networks(
    keys,
    windows: Sequence,
    labels: Sequence,
    num_classes: Sequence[int],
    *,
    net: Any = None,
    steps: int = 1000,
    hold_back: bool = True,
) -> list[Callable]:
    """Trains one network per set; sets of similar size share one program.

    Sizes within a program differ by less than a factor of 2, which limits padding.

    Args:
      keys: typed PRNG keys, ``[sets]``.
      windows: per set ``float[N_i, time, channels]``, standardized and, within each
        class, in order of time. Sets that share windows must pass the same array.
      labels: per set ``int[N_i]``.
      num_classes: number of classes per set.
      net, steps: module and approximate number of steps. See
        ``models.fit.fit_classifier``.
      hold_back: whether to choose the epoch on validation blocks
        (``attacker_data.blocks``). Otherwise the last epoch is used.

    Returns:
      Per set a function from ``float[M, time, channels]`` to log-probabilities,
      ``float32[M, num_classes]``.

    Raises:
      ValueError: see ``models.fit.fit_many``.
    """
    labels = [np.asarray(each) for each in labels]
    infer_fns: dict[int, Callable] = {}
    for sets in _similar_sizes([len(each) for each in labels]):
        set_labels = [labels[index] for index in sets]
        fitted = fit.fit_many(
            keys[np.array(sets)],
            net=net,
            steps=steps,
            num_classes=[num_classes[index] for index in sets],
            **_stacked([windows[index] for index in sets], set_labels, hold_back),
        )
        for position, index in enumerate(sets):
            infer_fns[index] = _infer_fn(fitted, position)
    return [infer_fns[index] for index in range(len(labels))]


def _similar_sizes(sizes):
    """Yields lists of indices of sets that train together."""
    by_size: dict[int, list[int]] = {}
    for index, size in enumerate(sizes):
        by_size.setdefault(int(size).bit_length(), []).append(index)
    for sets in by_size.values():
        for start in range(0, len(sets), TOGETHER):
            yield sets[start : start + TOGETHER]


def _stacked(windows, labels, hold_back):
    """Returns the arrays of ``fit_many``: shared or padded windows, with masks."""
    most = max(map(len, labels))
    shape = len(labels), most
    if all(each is windows[0] for each in windows):
        stacked = np.asarray(windows[0], np.float32)
    else:
        stacked = np.zeros((*shape, *windows[0].shape[1:]), np.float32)
    padded, mask, valid = (np.zeros(shape, kind) for kind in (int, bool, bool))
    for index, known in enumerate(labels):
        if stacked.ndim == 4:
            stacked[index, : len(known)] = windows[index]
        padded[index, : len(known)] = known
        mask[index, : len(known)] = True
        valid[index, : len(known)] = hold_back & blocks(known)
    return {"windows": stacked, "labels": padded, "mask": mask, "valid": valid}


def _infer_fn(fitted, position):
    fields = jax.tree.map(lambda leaf: leaf[position], tuple(fitted[1:]))
    params, classes, *rest = fields
    one = fit.FittedClassifier(fitted.net, params, int(classes), *rest)

    def infer(windows):
        logits = fit.predict_logits(one, windows)
        return logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)

    return infer


MOST = {"svm": 4000}  # Maximum training windows; more are subsampled at random.

MODELS = {
    "forest": lambda seed: RandomForestClassifier(
        100, min_samples_leaf=2, class_weight="balanced", n_jobs=-1, random_state=seed
    ),
    # HistGradientBoosting's threads spin for minutes on a busy machine.
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
    """Trains one scikit-learn model per set, one after another.

    Args:
      keys: typed PRNG keys, ``[sets]``.
      windows: per set ``float[N_i, time, channels]``, standardized.
      labels: per set ``int[N_i]``. Only classes that occur are predicted.
      num_classes: number of classes per set.
      name: a name of ``MODELS``.
      hold_back: unused, because these models do not stop early.

    Returns:
      Per set a function from ``float[M, time, channels]`` to log-probabilities,
      ``float32[M, num_classes]``. The support vector machine returns normalized
      margins instead.
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

    def infer(windows):
        evidence = np.full((len(windows), num_classes), np.log(LEAST), np.float32)
        if model is None:
            evidence[:, classes] = 0.0
        elif len(windows):
            scores = log_shares(model, features(windows))
            evidence[:, classes] = np.maximum(scores, np.log(LEAST))
        return evidence

    return infer


def _weights(name, labels) -> dict[str, Any]:
    """Returns balanced sample weights for models without ``class_weight``."""
    if name != "boosting":
        return {}
    classes, index, counts = np.unique(labels, return_inverse=True, return_counts=True)
    return {"sample_weight": len(labels) / (len(classes) * counts[index])}


def log_shares(model, rows) -> np.ndarray:
    """Returns a scikit-learn model's evidence for each class of rows of features.

    Args:
      model: fitted model with ``predict_proba`` or ``decision_function``.
      rows: ``float[M, features]``.

    Returns:
      ``float[M, classes]`` in the order of ``model.classes_``. These are
      log-probabilities (minus infinity for probability 0) or normalized margins; a
      binary margin is split in halves.
    """
    if hasattr(model, "predict_proba"):
        with np.errstate(divide="ignore"):
            return np.log(model.predict_proba(rows))
    margins = model.decision_function(rows)
    if margins.ndim == 1:
        margins = np.stack([-margins / 2, margins / 2], axis=1)
    return margins - np.logaddexp.reduce(margins, axis=1, keepdims=True)


class Attacker(NamedTuple):
    """A type of classifier that can be trained on many sets of windows at once.

    ``fit_sets(keys, windows, labels, num_classes, hold_back=True)`` takes sequences
    with one entry per set and returns one function ``infer`` per set. Windows are
    ``float[N_i, time, channels]``, standardized and, within each class, in order of
    time; labels are ``int[N_i]``. ``infer(windows) -> float32[M, num_classes]`` returns
    evidence for each class: log-probabilities, or scores in their place. The class with
    the largest evidence is the prediction. With ``hold_back``, attackers that train in
    epochs stop early, based on validation windows.
    """

    name: str
    fit_sets: Callable

    def fit(self, key, windows, labels, num_classes: int, *, hold_back: bool = True):
        """Trains on a single set; arguments and result as in ``fit_sets``.

        Example:
          >>> import jax, numpy
          >>> labels = numpy.arange(40) % 2
          >>> windows = labels[:, None, None] * numpy.ones((1, 4, 1))
          >>> infer = get("tree").fit(jax.random.key(0), windows, labels, 2)
          >>> infer(windows[:2]).argmax(1)
          array([0, 1])
        """
        sets = (key[None], [windows], [labels], [num_classes])
        return self.fit_sets(*sets, hold_back=hold_back)[0]


_NETWORKS = {
    "mlp": {},
    # A step costs ten times the others'. On 3,000 raw windows of MotionSense, its
    # accuracy on gender is 92 % after 300 steps and 94 % after 600.
    "cnn": {"net": ConvClassifier(2), "steps": 600},
    "lstm": {"net": RecurrentClassifier(2)},
}


def _fit_sets(name):
    if name in MODELS:
        return functools.partial(fit_models, name=name)
    return functools.partial(fit_networks, **_NETWORKS[name])


# The position of an attacker determines its keys, so append new ones.
_NAMES = ("forest", "mlp", "cnn", "lstm", "boosting", "logistic", "tree", "svm")

ATTACKERS = {name: Attacker(name, _fit_sets(name)) for name in _NAMES}


def number(name: str) -> int:
    """Returns the position of an attacker, from which its keys derive.

    Example:
      >>> number("forest"), number("mlp")
      (0, 1)
    """
    return _NAMES.index(get(name).name)


def get(name: str) -> Attacker:
    """Returns the attacker of a name; raises ValueError if there is none.

    ``"mlp"``, ``"cnn"`` and ``"lstm"`` are the networks of ``models.classifiers``, with
    early stopping on their own validation blocks. The others are scikit-learn models on
    ``features``: ``"forest"`` (100 trees), ``"boosting"`` (100 trees of depth 3, on
    half of the windows each), ``"logistic"``, ``"tree"`` and ``"svm"`` (RBF, at most
    4,000 windows). All use balanced class weights.

    Example:
      >>> get("mlp").name
      'mlp'

    References:
      Boutet et al., DySan, AsiaCCS 2021, section 5.1, uses all of these except
      ``"svm"``, for which see ``self_train``. ``"cnn"`` is the program released for
      Yang and Ardakanian, Blinder, ACM TOSN 2023, section 7.2.1, whose text has one
      convolution more.
    """
    if name not in ATTACKERS:
        raise ValueError(f"attackers must be among {sorted(ATTACKERS)}, got {name!r}.")
    return ATTACKERS[name]
