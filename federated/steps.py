"""What clients do in a round, and who they are."""

import dataclasses

from jaxanon.federated.algorithm import weigher
from jaxanon.federated.layout import Layout
from jaxanon.kernels.checks import whole
from jaxanon.kernels.setting_checks import at_least, of_kinds


@dataclasses.dataclass(frozen=True, kw_only=True)
class Steps:
    """A client's steps of gradient descent in a round.

    Attributes:
      num_steps: >= 1.
      batch_size: rows of a step, >= 1; None is all of a client's.
      shuffle: rows in a fresh random order each round, or as they stand.

    Raises:
      TypeError: for a number that is not whole, or a ``shuffle`` that is no bool.
      ValueError: for a number below 1.

    Example:
      >>> Steps(num_steps=5, batch_size=16)
      Steps(num_steps=5, batch_size=16, shuffle=True)
    """

    num_steps: int
    batch_size: int | None = None
    shuffle: bool = True

    def __post_init__(self):
        of_kinds(self)
        at_least(1, num_steps=self.num_steps)
        if self.batch_size is not None and self.batch_size < 1:
            raise ValueError(
                f"batch_size must be >= 1, or None for all rows, got "
                f"{self.batch_size!r}."
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rounds:
    """Who takes part in a round, and what it counts for.

    Attributes:
      cohort_size: clients per round, without replacement; None is all of them.
      rounds_per_cohort: rounds that a cohort stays together.
      weighting: ``"rows"`` weighs a client by its real rows, ``"clients"`` all alike.
      layout: a ``Layout``; None is ``default_layout``. Changes no result.

    Raises:
      TypeError: for a number that is not whole.
      ValueError: for a number below 1, or an unknown weighting.

    Example:
      >>> Rounds(cohort_size=10).weighting
      'rows'
    """

    cohort_size: int | None = None
    rounds_per_cohort: int = 1
    weighting: str = "rows"
    layout: Layout | None = None

    def __post_init__(self):
        whole("rounds_per_cohort", self.rounds_per_cohort, least=1)
        if self.cohort_size is not None:
            whole("cohort_size", self.cohort_size, least=1)
        weigher(self.weighting)
