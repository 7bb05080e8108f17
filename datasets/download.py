"""Files fetched from a data set's public home, whole or not at all."""

import os
import shutil
import urllib.error
import urllib.request
from pathlib import Path

TIMEOUT_S = 30


def fetch(url: str, target: Path, remedy: str) -> Path:
    """Downloads ``url`` to ``target`` unless it is there already.

    An interrupted download leaves only ``<target>.part``.

    Raises:
      FileNotFoundError: if it cannot be had; ends with ``remedy``.
    """
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
            with part.open("wb") as file:
                shutil.copyfileobj(answer, file)
            wanted = answer.headers.get("Content-Length")
        if wanted is not None and part.stat().st_size != int(wanted):
            raise OSError(f"{part.stat().st_size} of {wanted} bytes came")
    except (OSError, urllib.error.URLError) as error:
        part.unlink(missing_ok=True)
        raise FileNotFoundError(f"downloading {url} failed ({error}); {remedy}") from (
            error
        )
    os.replace(part, target)
    return target
