"""Samples for a CSV outlet, and the rows of the file that it writes."""

import csv
import types

import numpy as np

from jaxanon.edge.types import Block

SIGNATURE = types.SimpleNamespace(
    channels=("acc x", "acc, y"), units=("g", "m/s²"), rate_hz=50.0
)
NUMBERS = np.random.default_rng(0).normal(size=(500, 2)).astype(np.float32)


def block(first, count):
    """Returns samples ``first`` to ``first + count`` of NUMBERS, at 50 Hz from 0 s."""
    part = NUMBERS[first : first + count]
    return Block(first / 50, 50.0, part, "", (first + count) / 50)


def read(path):
    """Reads rows as (sample index, gap, numbers or None); every row must be whole."""
    text = path.read_bytes().decode()
    assert text.endswith("\n")
    head, *found = csv.reader(text.splitlines()[1:])
    assert head == ["time", "gap", "acc x [g]", "acc, y [m/s²]"]
    assert {len(row) for row in found} <= {4}
    return [
        (round(float(time) * 50), gap, None if gap else np.float32(numbers).tolist())
        for time, gap, *numbers in found
    ]
