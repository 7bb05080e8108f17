"""Atomic downloads of a data set's original files."""

import contextlib
import contextvars
import shutil
import urllib.error
import urllib.request
from pathlib import Path

from jaxanon.datasets import writing

TIMEOUT_S = 30
_ALLOWED = contextvars.ContextVar("downloads allowed", default=True)


class NotFetched(FileNotFoundError):
    """Raised if a file is missing and downloads are disabled."""


@contextlib.contextmanager
def disabled():
    """Makes ``fetch`` raise ``NotFetched`` instead of downloading, in a context."""
    before = _ALLOWED.set(False)
    try:
        yield
    finally:
        _ALLOWED.reset(before)


def fetch(url: str, target: Path, remedy: str) -> Path:
    """Downloads ``url`` to ``target`` unless ``target`` exists.

    Raises:
      FileNotFoundError: if the download fails; the message ends with ``remedy``.
      NotFetched: if ``target`` is missing and downloads are ``disabled``.
    """
    if target.exists():
        return target
    if not _ALLOWED.get():
        raise NotFetched(f"{url} has not been downloaded yet; {remedy}")
    try:
        with (
            urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer,
            writing.replacing(target) as file,
        ):
            shutil.copyfileobj(answer, file)
            expected = answer.headers.get("Content-Length")
            if expected is not None and file.tell() != int(expected):
                message = f"received {file.tell()} of {expected} bytes"
                content = (str(target), answer.headers)
                raise urllib.error.ContentTooShortError(message, content)
    except OSError as error:  # Includes the errors of urllib.
        raise FileNotFoundError(f"downloading {url} failed ({error}); {remedy}") from (
            error
        )
    return target
