"""The formula that scales Blinder's training to the size of the data.

``python bench recipes`` measures the result in ``bench/results/recipes.json``.
"""

import math

# Windows that a round grades, over all clients together: 24 clients with 7 each.
ROUND_WINDOWS = 168

REFERENCE_VALUES = 256  # in a window: MotionSense's preset mag4

MAX_CLIENTS = 24  # per round

# Bounds of the number of rounds, so that discriminators have time to learn from few
# windows and training ends for many.
MIN_ROUNDS, MAX_ROUNDS = 600, 10_000

EPOCHS = 20  # per training


def cohort_size(clients: int) -> int:
    """Returns the clients per round: all clients, at most ``MAX_CLIENTS``.

    Example:
      >>> cohort_size(7), cohort_size(1000)
      (7, 24)
    """
    return min(clients, MAX_CLIENTS)


def query_size(clients: int) -> int:
    """Returns the query windows per client and round.

    The clients of a round contribute about ``ROUND_WINDOWS`` in total, so learning
    rates and decays suit any number of clients.

    Example:
      >>> query_size(1), query_size(10), query_size(24), query_size(1000)
      (64, 17, 7, 7)
    """
    return min(64, max(1, round(ROUND_WINDOWS / cohort_size(clients))))


def extra_size(clients: int) -> int:
    """Returns the extra windows per client and round for the classifiers.

    Example:
      >>> extra_size(10), extra_size(24)
      (34, 14)
    """
    return 2 * query_size(clients)


def kl_scale(values: int) -> float:
    """Returns the factor of the KL divergence's weight, 1 at ``REFERENCE_VALUES``.

    The squared error is a sum over a window. Scaling the divergence alike keeps their
    balance, so large windows get no weaker regularization.

    Args:
      values: number of values in a window, time times channels.

    Example:
      >>> kl_scale(128 * 2), kl_scale(128 * 6)
      (1.0, 3.0)

    References:
      Higgins et al., beta-VAE, ICLR 2017 (the normalised beta).
    """
    return values / REFERENCE_VALUES


def rounds(windows: int, classes: int) -> int:
    """Returns the total number of training rounds.

    The rounds grow with the square root of the number of windows, so training visits
    each window of a small data set more often. They also grow with the square root of
    the number of public classes.

    Args:
      windows: number of training windows.
      classes: number of public classes.

    Example:
      >>> [rounds(windows, 4) for windows in (500, 8000, 60_000, 500_000)]
      [600, 894, 2449, 7071]
    """
    wanted = 5 * math.sqrt(windows * classes)
    return round(min(max(wanted, MIN_ROUNDS), MAX_ROUNDS))


def rounds_per_epoch(windows: int, classes: int) -> int:
    """Returns the rounds per epoch, for ``EPOCHS`` epochs.

    Example:
      >>> rounds_per_epoch(60_000, 4)
      122
    """
    return max(1, round(rounds(windows, classes) / EPOCHS))
