"""The words of the command that runs, for commands that start themselves again."""

import contextvars

words: contextvars.ContextVar[list[str]] = contextvars.ContextVar("words")
