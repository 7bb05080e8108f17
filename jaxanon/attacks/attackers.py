"""The attackers: classifiers of standardised windows, one behind each name."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
from sklearn.ensemble import RandomForestClassifier

from jaxanon.attacks.shares import blocks
from jaxanon.models import fit


class Attacker(NamedTuple):
    """``fit(key, windows, labels, num_classes) -> predict``.

    Windows are ``float[N, time, channels]``, standardised and, within each class, in
    order of time; labels are ``int[N]``; ``predict(windows) -> int[M]``.
    """

    name: str
    fit: Callable


def _fit_mlp(key, windows, labels, num_classes):
    valid = blocks(labels)
    fitted = fit.fit_classifier(key, windows, labels, num_classes, valid=valid)
    return lambda windows: fit.predict(fitted, windows)


def features(windows) -> np.ndarray:
    """What the forest sees: the window itself and statistics free of its phase.

    Per channel: mean, standard deviation, least, greatest, mean absolute step, and
    the magnitudes of the 16 lowest frequencies (fewer if the window is short).

    Args:
      windows: ``float[N, time, channels]``, time at least 2.

    Returns:
      ``float32[N, features]``.
    """
    windows = np.asarray(windows, np.float32)
    centre = windows.mean(1)
    steps = np.abs(np.diff(windows, axis=1)).mean(1)
    spectrum = np.abs(np.fft.rfft(windows, axis=1))[:, 1:17] / windows.shape[1]
    parts = (centre, windows.std(1), windows.min(1), windows.max(1), steps)
    flat = [part.reshape(len(windows), -1) for part in (windows, *parts, spectrum)]
    return np.concatenate(flat, axis=1, dtype=np.float32)


def _fit_forest(key, windows, labels, num_classes):
    del num_classes  # A class that it never saw it never says.
    seed = int(jax.random.bits(key, dtype=np.uint32))
    forest = RandomForestClassifier(
        100, min_samples_leaf=2, class_weight="balanced", n_jobs=-1, random_state=seed
    )
    forest.fit(features(windows), np.asarray(labels))

    def predict(windows):
        if not len(windows):
            return np.zeros(0, np.int32)
        return forest.predict(features(windows)).astype(np.int32)

    return predict


ATTACKERS = {
    "forest": Attacker("forest", _fit_forest),
    "mlp": Attacker("mlp", _fit_mlp),
}


def get(name: str) -> Attacker:
    """The attacker of that name; ValueError that lists the names if there is none.

    ``"mlp"`` is the network of ``models.classifier`` with early stopping on its own
    validation blocks, ``"forest"`` scikit-learn's random forest of 100 trees on
    ``features``.

    Example:
      >>> get("mlp").name
      'mlp'
    """
    if name not in ATTACKERS:
        raise ValueError(f"attackers must be among {sorted(ATTACKERS)}, got {name!r}.")
    return ATTACKERS[name]
