"""Answers that a benchmark keeps, so that it can go on where it was stopped."""

import json

from jaxanon.datasets import writing


def keep(path, found):
    """Writes what was found as JSON, whole or not at all."""
    writing.write(path, json.dumps(found))
