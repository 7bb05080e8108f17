"""Files fetched from a data set's public home, whole or not at all."""

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
    """A file would have had to be downloaded, and must not be."""


@contextlib.contextmanager
def none():
    """Within, what ``fetch`` would download raises ``NotFetched``."""
    before = _ALLOWED.set(False)
    try:
        yield
    finally:
        _ALLOWED.reset(before)


def fetch(url: str, target: Path, remedy: str) -> Path:
    """Downloads ``url`` to ``target`` unless it is there already.

    Raises:
      FileNotFoundError: if it cannot be had; ends with ``remedy``.
      NotFetched: within ``none``, if it is not there.
    """
    if target.exists():
        return target
    if not _ALLOWED.get():
        raise NotFetched(f"{url} was not downloaded yet; {remedy}")
    try:
        with (
            urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer,
            writing.replacing(target) as file,
        ):
            shutil.copyfileobj(answer, file)
            wanted = answer.headers.get("Content-Length")
            if wanted is not None and file.tell() != int(wanted):
                told = f"{file.tell()} of {wanted} bytes came"
                whole = (str(target), answer.headers)
                raise urllib.error.ContentTooShortError(told, whole)
    except OSError as error:  # Of urllib, too.
        raise FileNotFoundError(f"downloading {url} failed ({error}); {remedy}") from (
            error
        )
    return target
