"""Joint noise multiplier of layers with separate noise, as in Atlas."""

import math
from collections.abc import Sequence

from jaxanon.kernels.bounds import finite
from jaxanon.kernels.checks import as_numpy, host_number, one_of

READINGS = ("A", "B", "C", "claimed")


def noise_multiplier_of_layers(
    noise_multipliers: Sequence[float],
    scores: Sequence[float] | None = None,
    *,
    reading: str = "A",
) -> float:
    """Returns the z* of one Gaussian mechanism with the privacy of all layers.

    Layer m is clipped to C_m and gets independent noise with multiplier z_m. Divide
    each layer by the standard deviation of its noise: then all layers form one vector
    with unit noise. Its L2 sensitivity is the root of the summed squares of each
    layer's sensitivity over its noise, which is 1 / z*. The clip norms cancel.

    The effect of the importance scores E_m depends on the interpretation of Atlas's
    equations 3.5 to 3.8:

    - "A": scores multiply sum and noise, like a learning rate; z* is unchanged.
    - "B": scores multiply only the sum; the sensitivity of layer m is E_m C_m.
    - "C": scores multiply only the noise, σ_m = E_m z_m C_m, as the text says. For
      E_m < 1 this is less noise than equation 3.9 assumes.
    - "claimed": equation 3.9 in all cases, which is correct only for "A".

    All interpretations treat the scores as public. Scores learned from private data
    need their own privacy budget, or must be computed from released values.

    Args:
      noise_multipliers: z_m > 0, one for each layer.
      scores: E_m in (0, 1], one for each layer; None is all ones.
      reading: one of "A", "B", "C", "claimed".

    Returns:
      z* > 0, for the accountant.

    Raises:
      ValueError: if a number is out of range, lengths differ, or the interpretation is
        unknown.

    Example:
      >>> scores = (0.9, 0.5, 0.7, 0.3)
      >>> for reading in READINGS:
      ...     print(reading, round(noise_multiplier_of_layers(
      ...         [2.0] * 4, scores, reading=reading), 4))
      A 1.0
      B 1.5617
      C 0.4664
      claimed 1.0

    References:
      Atlas, equations 3.4 to 3.9; McMahan, Andrew et al., A general approach to adding
      differential privacy to iterative training procedures, arXiv 1812.06210, for
      per-layer clip norms and noise.
    """
    one_of("reading", reading, READINGS)
    if not isinstance(noise_multipliers, list | tuple):
        noise_multipliers = (
            as_numpy("noise_multipliers", noise_multipliers).ravel().tolist()
        )
    host_number(
        **{f"noise_multipliers[{i}]": z for i, z in enumerate(noise_multipliers)}
    )
    multipliers = [float(z) for z in noise_multipliers]
    if not multipliers:
        raise ValueError("noise_multipliers must have at least 1 entry, got 0.")
    for z in multipliers:
        finite(zero=False, noise_multiplier=z)
    scores = [1.0] * len(multipliers) if scores is None else scores
    if not isinstance(scores, list | tuple):
        scores = as_numpy("scores", scores).ravel().tolist()
    host_number(**{f"scores[{i}]": score for i, score in enumerate(scores)})
    if len(scores) != len(multipliers):
        raise ValueError(
            f"scores must have {len(multipliers)} entries, one for each noise "
            f"multiplier, got {len(scores)}."
        )
    for score in scores:
        if not 0 < score <= 1:
            raise ValueError(f"scores must be in (0, 1], got {score!r}.")
    sensitivity_fn = {
        "A": lambda z, score: 1 / z,
        "B": lambda z, score: score / z,
        "C": lambda z, score: 1 / (score * z),
        "claimed": lambda z, score: 1 / z,
    }[reading]
    return 1 / math.hypot(*map(sensitivity_fn, multipliers, scores))


def layer_noise_multipliers(
    joint: float, weights: Sequence[float]
) -> tuple[float, ...]:
    """Returns per-layer noise multipliers for a joint noise multiplier.

    Args:
      joint: joint noise multiplier z* > 0.
      weights: weight > 0 of each layer, to which z_m is proportional.

    Returns:
      z_m > 0, one for each layer.

    Raises:
      ValueError: if a number is out of range.

    Example:
      >>> layer_noise_multipliers(1.0, [1.0] * 4)
      (2.0, 2.0, 2.0, 2.0)
      >>> round(noise_multiplier_of_layers(layer_noise_multipliers(0.5, (1.0, 2.0))), 6)
      0.5
    """
    finite(zero=False, joint=joint)
    scale = joint / noise_multiplier_of_layers(weights)
    return tuple(scale * float(weight) for weight in weights)
