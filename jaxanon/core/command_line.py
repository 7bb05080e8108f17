"""Words of the running command, for reports and further processes."""

import contextvars
import shlex
from collections.abc import Sequence

# Words after ``jaxanon``; None outside the command line.
words: contextvars.ContextVar[Sequence[str] | None] = contextvars.ContextVar(
    "words", default=None
)


def command() -> str:
    """Returns the running command for a shell, or ``"jaxanon in Python"``.

    Example:
      >>> command()
      'jaxanon in Python'
      >>> token = words.set(["evaluate", "my run"])
      >>> command()
      "jaxanon evaluate 'my run'"
      >>> words.reset(token)
    """
    given = words.get()
    return "jaxanon in Python" if given is None else shlex.join(["jaxanon", *given])
