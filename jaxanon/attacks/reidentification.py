"""Re-identification: the attacker who trains on the anonymizer's own output."""

from collections.abc import Callable

import jax
import numpy as np

from jaxanon.attacks import attackers, shares


def reidentify(
    key,
    attacker: str,
    anonymize: Callable,
    windows,
    labels,
    num_classes: int,
    safe_test,
    *,
    share: float = 0.2,
    attribute: str = "labels",
) -> np.ndarray:
    """What a retrained attacker reads out of anonymized test windows.

    He owns the anonymizer (it is on every device), a share of the *training* windows
    and their labels. He anonymizes those, trains on the output with early stopping on
    a part that he holds back, and reads *all* anonymized test windows.

    Args:
      key: typed PRNG key: which windows he knows, their anonymization, his training.
      attacker: a name of ``attackers.ATTACKERS``.
      anonymize: ``(key, windows) -> float[N, time, channels]``, standardised.
      windows: training windows, in whatever units ``anonymize`` takes.
      labels: ``int[N]`` of the attribute under attack.
      num_classes: number of its classes.
      safe_test: ``float[M, time, channels]``, anonymized test windows, standardised.
      share: of each class's training windows that he knows, in (0, 1].
      attribute: name of the attribute, for messages.

    Returns:
      ``int[M]``, his guesses.

    Raises:
      ValueError: for an unknown attacker, and as ``shares.pick``.

    Example:
      An anonymizer that flips the sign fools nobody who may run it himself.

      >>> labels = np.arange(200) % 2
      >>> windows = np.float32(2 * labels - 1).repeat(8).reshape(200, 8, 1)
      >>> guesses = reidentify(
      ...     jax.random.key(0), "forest", lambda key, windows: -windows,
      ...     windows, labels, 2, -windows)
      >>> float(np.mean(guesses == labels))
      1.0

    References:
      Hajihassani, Ardakanian, Khazaei, ObscureNet, IoTDI 2021, section on
      re-identification; here scored on windows that he did not train on.
    """
    kind = attackers.get(attacker)
    pick_key, safe_key, fit_key = jax.random.split(key, 3)
    known = shares.pick(pick_key, labels, share, attribute)
    seen = anonymize(safe_key, windows[known])
    predict = kind.fit(fit_key, seen, np.asarray(labels)[known], num_classes)
    return predict(safe_test)
