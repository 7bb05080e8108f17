"""Messages between agents: which are lost, which are late, what is there to read."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.kernels.checks import whole
from jaxanon.kernels.setting_checks import of_kinds


@dataclasses.dataclass(frozen=True, kw_only=True)
class Messages:
    """What becomes of a message, independently for every link and round.

    Attributes:
      lost: probability that it never arrives.
      late: probability that it arrives a round later.
      max_age: rounds that an agent goes on with the last message that arrived, at least
        1 where some are late. Beyond that, or where none ever came, it takes its own
        layers in the place of others'.

    Raises:
      TypeError: for a probability that is no number, an age that is no whole one.
      ValueError: for probabilities that are none, a negative age, or one that no late
        message can have.

    Example:
      >>> Messages(lost=0.1, max_age=2)
      Messages(lost=0.1, late=0.0, max_age=2)
    """

    lost: float = 0.0
    late: float = 0.0
    max_age: int = 0

    def __post_init__(self):
        of_kinds(self)
        if not (self.lost >= 0 and self.late >= 0 and self.lost + self.late <= 1):
            raise ValueError(
                f"lost and late must be probabilities of at most 1 together, got "
                f"{self.lost!r} and {self.late!r}."
            )
        whole("max_age", self.max_age, least=0)
        if self.late and not self.max_age:
            raise ValueError(
                f"max_age must be >= 1 where messages are late ({self.late!r}), for "
                "they are a round old when they arrive, got 0; raise it, or count them "
                "as lost."
            )


class Mailbox(NamedTuple):
    """What was broadcast lately, and what of it each agent has."""

    round: jax.Array  # int32[]; broadcasts done
    sent: Any  # [max_age, agents, ...]; the latest first
    age: jax.Array  # int32[agents, agents]; of what the row's agent has of the column's
    under_way: jax.Array  # bool[agents, agents]; the latest arrives with the next


def fates(key, agents, messages: Messages):
    """Which of a round's messages are in time, and which come a round later.

    Args:
      key: typed PRNG key, the round's own.
      agents: how many, a Python int >= 1; or ``int[agents]``, their numbers. A fate is
        drawn by the numbers of the two: some agents of a whole have, among themselves,
        the fates that they have in it.
      messages: ``Messages``.

    Returns:
      Two ``bool[agents, agents]``, row the receiver; nobody is late to oneself.

    Example:
      >>> in_time, late = fates(jax.random.key(0), 2, Messages(lost=1.0))
      >>> in_time
      Array([[ True, False],
             [False,  True]], dtype=bool)
    """
    if isinstance(agents, int):
        agents = jnp.arange(whole("agents", agents, least=1))
    count, lost = len(agents), messages.lost
    beyond = lost + messages.late
    if not beyond:
        return jnp.ones((count, count), bool), jnp.zeros((count, count), bool)

    def draw(receiver, sender):
        own_key = jax.random.fold_in(jax.random.fold_in(key, receiver), sender)
        return jax.random.uniform(own_key)

    draws = jax.vmap(lambda number: jax.vmap(draw, (None, 0))(number, agents))(agents)
    oneself = jnp.eye(count, dtype=bool)
    late = (draws >= lost) & (draws < beyond) & ~oneself
    return (draws >= beyond) | oneself, late
