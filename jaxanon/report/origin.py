"""Footer of a report: version, date, command and duration."""

import datetime
from typing import NamedTuple

from jaxanon import __version__
from jaxanon.core import command_line


class Footer(NamedTuple):
    """Origin of a report."""

    version: str
    date: str  # UTC
    command: str
    duration_s: float | None = None


def footer(duration_s: float | None = None, *, now=None) -> Footer:
    """Returns the footer of a report that is written now.

    Args:
      duration_s: duration of the evaluation in seconds; None leaves it out.
      now: ``datetime`` with a time zone; None is the current time.

    Example:
      >>> day = datetime.datetime(2030, 1, 2, 3, 4, tzinfo=datetime.UTC)
      >>> footer(90, now=day)[1:]
      ('2030-01-02 03:04 UTC', 'jaxanon in Python', 90)
    """
    now = datetime.datetime.now(datetime.UTC) if now is None else now
    date = now.astimezone(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    return Footer(__version__, date, command_line.command(), duration_s)


def duration(seconds: float) -> str:
    """Formats a duration.

    Example:
      >>> duration(7.25), duration(754)
      ('7.2 s', '12 min 34 s')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"
