"""Which ε is worth naming."""

import warnings

WEAK = 10.0


def warn_of_epsilon(epsilon: float) -> None:
    """Warns of an ε that promises next to nothing, above 10.

    By definition whatever is seen may then be e^10 = 22,000 times as likely with a
    record as without it. "How to DP-fy ML" takes an ε of up to 10 for a reasonable
    guarantee and calls what is above weak or none: noise may still help there, and
    attacks (``jaxanon.audit``) say how much, but ε does not.

    Args:
      epsilon: ε > 0 of a whole training.

    Example:
      >>> warn_of_epsilon(8.0)

    References:
      Ponomareva et al., How to DP-fy ML: a practical guide to machine learning with
      differential privacy, JAIR 2023 (arXiv 2303.00654), tiers of ε.
    """
    if epsilon > WEAK:
        warnings.warn(
            f"epsilon {epsilon:g} is above {WEAK:g}, and promises next to nothing; "
            "spend less, by fewer rounds or steps, or smaller samples, or see what "
            "attacks find.",
            UserWarning,
            stacklevel=2,
        )
