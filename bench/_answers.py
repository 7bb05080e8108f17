"""Answers that a benchmark keeps, so that it can go on where it was stopped."""

import json

from jaxanon import checkpoint


def keep(path, found):
    """Writes what was found as JSON, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    checkpoint.write_atomically(path, json.dumps(found))
