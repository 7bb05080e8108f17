"""Attackers: classifiers that an adversary trains on windows or on their features."""

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
from jaxanon.models import fit
from jaxanon.models.classifiers import ConvClassifier, RecurrentClassifier

TOGETHER = 16  # Sets that one program trains; their activations share the memory.


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
    """Trains one network per set, sets of about the same size in one program.

    Sets of other sizes would mostly be padding, so those in a program differ by less
    than a factor of 2.

    Args:
      keys: typed PRNG keys, ``[sets]``.
      windows: per set ``float[N_i, time, channels]``, standardised and, within each
        class, in order of time; the very same array for sets that share it.
      labels: per set ``int[N_i]``.
      num_classes: per set.
      net, steps: module to train and about how many steps, as
        ``models.fit.fit_classifier`` takes them.
      hold_back: whether the epoch is chosen by blocks of windows that do not train
        (``attacker_data.blocks``); else the last one is kept.

    Returns:
      Per set a function from ``float[M, time, channels]`` to ``float32[M,
      num_classes]``, log-probabilities.

    Raises:
      ValueError: as ``models.fit.fit_many``.
    """
    labels = [np.asarray(own) for own in labels]
    found: dict[int, Callable] = {}
    for sets in _alike([len(own) for own in labels]):
        own = [labels[index] for index in sets]
        fitted = fit.fit_many(
            keys[np.array(sets)],
            net=net,
            steps=steps,
            num_classes=[num_classes[index] for index in sets],
            **_stacked([windows[index] for index in sets], own, hold_back),
        )
        for place, index in enumerate(sets):
            found[index] = _reader(fitted, place)
    return [found[index] for index in range(len(labels))]


def _alike(sizes):
    """Numbers of the sets that train together, as lists."""
    by_size: dict[int, list[int]] = {}
    for index, size in enumerate(sizes):
        by_size.setdefault(int(size).bit_length(), []).append(index)
    for sets in by_size.values():
        for start in range(0, len(sets), TOGETHER):
            yield sets[start : start + TOGETHER]


def _stacked(windows, labels, hold_back):
    """The arrays of ``fit_many``: shared windows once, others filled up and masked."""
    most = max(map(len, labels))
    shape = len(labels), most
    if all(own is windows[0] for own in windows):
        stacked = np.asarray(windows[0], np.float32)
    else:
        stacked = np.zeros((*shape, *windows[0].shape[1:]), np.float32)
    marks, mask, valid = (np.zeros(shape, kind) for kind in (int, bool, bool))
    for index, own in enumerate(labels):
        if stacked.ndim == 4:
            stacked[index, : len(own)] = windows[index]
        marks[index, : len(own)] = own
        mask[index, : len(own)] = True
        valid[index, : len(own)] = hold_back & blocks(own)
    return {"windows": stacked, "labels": marks, "mask": mask, "valid": valid}


def _reader(fitted, place):
    params, classes, *told = jax.tree.map(lambda leaf: leaf[place], tuple(fitted[1:]))
    one = fit.FittedClassifier(fitted.net, params, int(classes), *told)

    def read(windows):
        logits = fit.predict_logits(one, windows)
        return logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)

    return read


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


def features(windows) -> np.ndarray:
    """The window itself and statistics free of its phase.

    Per channel: mean, standard deviation, least, greatest, mean absolute step, and
    the magnitudes of the 16 lowest frequencies (fewer if the window is short).

    Args:
      windows: ``float[N, time, channels]``, time at least 2.

    Returns:
      ``float32[N, features]``.

    Example:
      >>> features(np.zeros((3, 128, 2))).shape  # 128 + 5 + 16 per channel
      (3, 298)
    """
    windows = np.asarray(windows, np.float32)
    centre = windows.mean(1)
    steps = np.abs(np.diff(windows, axis=1)).mean(1)
    spectrum = np.abs(np.fft.rfft(windows, axis=1))[:, 1:17] / windows.shape[1]
    parts = (centre, windows.std(1), windows.min(1), windows.max(1), steps)
    flat = [part.reshape(len(windows), -1) for part in (windows, *parts, spectrum)]
    return np.concatenate(flat, axis=1, dtype=np.float32)


class Attacker(NamedTuple):
    """A family of classifiers, trained on many sets of windows at once.

    ``fit_sets(keys, windows, labels, num_classes, hold_back=True)`` takes a sequence of
    each, one entry per set, and returns as many functions ``read``. Windows are
    ``float[N_i, time, channels]``, standardised and, within each class, in order of
    time; labels are ``int[N_i]``. ``read(windows) -> float32[M, num_classes]`` is the
    evidence for each class: log-probabilities, or what stands for them; the largest is
    the guess. With ``hold_back`` an attacker that trains in epochs stops early, by
    windows that it does not train on.
    """

    name: str
    fit_sets: Callable

    def fit(self, key, windows, labels, num_classes: int, *, hold_back: bool = True):
        """Trains one; arguments and result as of ``fit_sets``, for a single set.

        Example:
          >>> import jax, numpy
          >>> labels = numpy.arange(40) % 2
          >>> windows = labels[:, None, None] * numpy.ones((1, 4, 1))
          >>> read = get("tree").fit(jax.random.key(0), windows, labels, 2)
          >>> read(windows[:2]).argmax(1)
          array([0, 1])
        """
        sets = (key[None], [windows], [labels], [num_classes])
        return self.fit_sets(*sets, hold_back=hold_back)[0]


_NETWORKS = {
    "mlp": {},
    # Its steps cost ten times the others'; from 3,000 raw windows of MotionSense it
    # learns to read gender in 92 % after 300, in 94 % after 600.
    "cnn": {"net": ConvClassifier(2), "steps": 600},
    "lstm": {"net": RecurrentClassifier(2)},
}


def _fit_sets(name):
    if name in MODELS:
        return functools.partial(fit_models, name=name)
    return functools.partial(fit_networks, **_NETWORKS[name])


# An attacker's place draws its keys, so a new one comes last.
_NAMES = ("forest", "mlp", "cnn", "lstm", "boosting", "logistic", "tree", "svm")

ATTACKERS = {name: Attacker(name, _fit_sets(name)) for name in _NAMES}


def number(name: str) -> int:
    """A number for each attacker, to draw its keys by.

    Example:
      >>> number("forest"), number("mlp")
      (0, 1)
    """
    return _NAMES.index(get(name).name)


def get(name: str) -> Attacker:
    """The attacker of that name; ValueError that lists the names if there is none.

    ``"mlp"``, ``"cnn"`` and ``"lstm"`` are the networks of ``models.classifiers``, all
    with early stopping on validation blocks of their own; ``"forest"`` (100 trees),
    ``"boosting"`` (100 trees of depth 3, each on half of the windows), ``"logistic"``,
    ``"tree"`` and ``"svm"`` (radial basis functions, at most 4,000 windows) are
    scikit-learn's, on ``features``. All of them weigh classes by majority over count,
    or alike.

    Example:
      >>> get("mlp").name
      'mlp'

    References:
      Boutet et al., DySan, AsiaCCS 2021, section 5.1, tries all these kinds but
      ``"svm"``, for which see ``self_train``. ``"cnn"`` is what was released for Yang
      and Ardakanian, Blinder, ACM TOSN 2023, section 7.2.1, whose text has one
      convolution more.
    """
    if name not in ATTACKERS:
        raise ValueError(f"attackers must be among {sorted(ATTACKERS)}, got {name!r}.")
    return ATTACKERS[name]
