"""What a report says of its data and its method, and which windows it shows."""

import dataclasses
import json
from typing import NamedTuple

import numpy as np


class Examples(NamedTuple):
    """One test window per public class, before and after, in physical units."""

    names: tuple[str, ...]  # of the classes, as many as there are windows
    raw: np.ndarray  # float[classes, time, channels]
    safe: np.ndarray  # float[classes, time, channels]


def choose_examples(data, safe) -> Examples:
    """The middle test window of every public class that occurs.

    Args:
      data: ``Data``.
      safe: ``float[M, time, channels]``, anonymized test windows, standardised.
    """
    spec, _, test = data
    labels = np.asarray(test.labels[spec.public])
    rows = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    middle = np.array([own[len(own) // 2] for own in rows])
    names = tuple(spec.classes[spec.public][label] for label in np.unique(labels))
    physical = safe[middle] * np.float32(spec.std) + np.float32(spec.mean)
    return Examples(names, np.asarray(test.windows)[middle], physical)


def describe_data(data) -> dict:
    """The data's spec and sizes, ready for JSON."""
    spec, train, test = data
    known = set(np.asarray(train.labels["subject"]).tolist())
    tested = set(np.asarray(test.labels["subject"]).tolist())
    return {
        **json.loads(spec.to_json()),
        "train_windows": len(train.windows),
        "test_windows": len(test.windows),
        "train_subjects": len(known),
        "test_subjects": len(tested),
        "test_subjects_in_training": len(tested & known),
    }


def describe_method(run) -> dict | None:
    """Name and configuration of the run's method, ready for JSON; None without one.

    And ``rounds``, that it had trained for; None of what has no state.
    """
    method = getattr(run, "method", None)
    if method is None:
        return None
    config = method.config
    if dataclasses.is_dataclass(config) and not isinstance(config, type):
        config = dataclasses.asdict(config)
    done = getattr(getattr(run, "state", None), "round", None)
    return {
        "name": method.name,
        "config": json.loads(json.dumps(config, default=str)),
        "rounds": None if done is None else int(done),
    }
