"""Files fetched from a data set's public home, whole or not at all."""

import shutil
import urllib.error
import urllib.request
from pathlib import Path

from jaxanon.datasets import writing

TIMEOUT_S = 30


def fetch(url: str, target: Path, remedy: str) -> Path:
    """Downloads ``url`` to ``target`` unless it is there already.

    Raises:
      FileNotFoundError: if it cannot be had; ends with ``remedy``.
    """
    if target.exists():
        return target
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
    except (OSError, urllib.error.URLError) as error:
        raise FileNotFoundError(f"downloading {url} failed ({error}); {remedy}") from (
            error
        )
    return target
