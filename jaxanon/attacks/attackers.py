"""The attackers: classifiers of standardised windows, one behind each name."""

import functools
from collections.abc import Callable
from typing import NamedTuple

from jaxanon.attacks.classical import MODELS, fit_models
from jaxanon.attacks.neural import fit_networks
from jaxanon.models.attack_networks import ConvClassifier, RecurrentClassifier


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

    ``"mlp"`` is the network of ``models.classifier``, ``"cnn"`` and ``"lstm"`` those of
    ``models.attack_networks``, all with early stopping on validation blocks of their
    own; ``"forest"`` (100 trees), ``"boosting"`` (100 trees of depth 3, each on half of
    the windows), ``"logistic"``, ``"tree"`` and ``"svm"`` (radial basis functions, at
    most 4,000 windows) are scikit-learn's, on ``features``. All of them weigh classes
    by majority over count, or alike.

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
