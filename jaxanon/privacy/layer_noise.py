"""One noise multiplier for layers that have each their own: Atlas, and what is true."""

import math
from collections.abc import Sequence

from jaxanon.kernels.bounds import finite
from jaxanon.kernels.checks import one_of

READINGS = ("A", "B", "C", "claimed")


def noise_multiplier_of_layers(
    noise_multipliers: Sequence[float],
    scores: Sequence[float] | None = None,
    *,
    reading: str = "A",
) -> float:
    """The z* of one Gaussian mechanism that is as private as all layers together.

    Layer m is clipped to C_m and gets noise of its own. Scaled by that noise, all
    layers are one vector with unit noise that a record moves by the root of the summed
    squares of what it may move each layer by, over that layer's noise: 1 / z*. Clip
    norms cancel, and need not add up to anything.

    What the importance scores E_m do to it depends on how Atlas's equations 3.5 to 3.8
    are read:

    - "A", they multiply sum and noise: a step size after the fact, z* as without them;
    - "B", they multiply the sum and not the noise: a record moves layer m by E_m C_m;
    - "C", they multiply the noise and not the sum, σ_m = E_m z_m C_m, as the text says:
      less noise, where E_m < 1, than equation 3.9 counts on;
    - "claimed", that equation, whatever is done: true of "A" alone.

    All of them take the scores for public. Scores that are learned from private data
    have to be released with a budget of their own, or made from what was.

    Args:
      noise_multipliers: z_m > 0, one for each layer.
      scores: E_m in (0, 1], one for each layer; None is all ones.
      reading: one of "A", "B", "C", "claimed".

    Returns:
      z* > 0, to be accounted with.

    Raises:
      ValueError: for numbers out of their range, lists of other lengths, or another
        reading.

    Example:
      >>> scores = (0.9, 0.5, 0.7, 0.3)
      >>> for reading in READINGS:
      ...     print(reading, round(noise_multiplier_of_layers(
      ...         [2.0] * 4, scores, noise_interpretation=reading), 4))
      A 1.0
      B 1.5617
      C 0.4664
      claimed 1.0

    References:
      Atlas, equations 3.4 to 3.9; McMahan, Andrew et al., A general approach to adding
      differential privacy to iterative training procedures, arXiv 1812.06210, for
      layers with clip norms and noise of their own.
    """
    one_of("reading", reading, READINGS)
    multipliers = [float(z) for z in noise_multipliers]
    if not multipliers:
        raise ValueError("noise_multipliers must be of one layer at least, got none.")
    for z in multipliers:
        finite(zero=False, noise_multiplier=z)
    scores = [1.0] * len(multipliers) if scores is None else [float(e) for e in scores]
    if len(scores) != len(multipliers):
        raise ValueError(
            f"scores must be {len(multipliers)}, one for each noise multiplier, got "
            f"{len(scores)}."
        )
    for score in scores:
        if not 0 < score <= 1:
            raise ValueError(f"a score must be in (0, 1], got {score!r}.")
    moved = {
        "A": lambda z, score: 1 / z,
        "B": lambda z, score: score / z,
        "C": lambda z, score: 1 / (score * z),
        "claimed": lambda z, score: 1 / z,
    }[reading]
    return 1 / math.hypot(*map(moved, multipliers, scores))


def layer_noise_multipliers(
    joint: float, weights: Sequence[float]
) -> tuple[float, ...]:
    """Noise multipliers of layers whose joint one is given.

    Args:
      joint: z* > 0.
      weights: > 0, one for each layer; z_m is in proportion to them.

    Returns:
      z_m > 0, one for each layer.

    Raises:
      ValueError: for numbers out of their range.

    Example:
      >>> layer_noise_multipliers(1.0, [1.0] * 4)
      (2.0, 2.0, 2.0, 2.0)
      >>> round(noise_multiplier_of_layers(layer_noise_multipliers(0.5, (1.0, 2.0))), 6)
      0.5
    """
    finite(zero=False, joint=joint)
    scale = joint / noise_multiplier_of_layers(weights)
    return tuple(scale * float(weight) for weight in weights)
