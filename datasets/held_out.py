"""Test people of a split by subject: their names, and the classes they must have."""

import dataclasses
import warnings
from collections.abc import Collection, Sequence

import numpy as np

from jaxanon.datasets.choices import nearest
from jaxanon.datasets.spec import Data, Spec, Windows, attributes, take
from jaxanon.datasets.targets import moments

SHOWN = 12  # Names in a message.


class OneClass(ValueError):
    """Raised for test people who have one class of an attribute to score."""


def select(test_people: Sequence[str], people: Sequence[str]) -> np.ndarray:
    """Returns the indices of named people, ascending.

    Args:
      test_people: names of the test people.
      people: names of all people, ``spec.classes["subject"]``.

    Raises:
      TypeError: if ``test_people`` is a single text.
      ValueError: if it is empty, has an unknown name or names all people.

    Example:
      >>> select(["cid", "ann"], ["ann", "bob", "cid"])
      array([0, 2])
    """
    if isinstance(test_people, str):
        raise TypeError(
            f"test_people must be a list of names, got {test_people!r}; use "
            f"[{test_people!r}]."
        )
    names = list(dict.fromkeys(map(str, test_people)))
    if not names:
        raise ValueError(
            "test_people (--test-people) must name at least one person, got none; omit "
            "it to draw test people."
        )
    if unknown := [name for name in names if name not in people]:
        raise ValueError(
            f"test_people (--test-people) must name people of the data, {shown(people)}"
            f", got {unknown[0]!r}.{nearest(unknown[0], people)}"
        )
    if len(names) == len(people):
        raise ValueError(
            "test_people (--test-people) must leave at least one person for training, "
            f"got all {len(people)}; name fewer."
        )
    return np.sort([list(people).index(name) for name in names])


def shown(names: Sequence[str]) -> str:
    """Returns names in brackets, the first few of many.

    Example:
      >>> shown(["ann", "bob"])
      "['ann', 'bob']"
    """
    listed = ", ".join(map(repr, names[:SHOWN]))
    more = f", and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"[{listed}{more}]"


def tested_people(data: Data) -> list[str]:
    """Returns the names of the people with test windows.

    Args:
      data: ``Data`` with any split.
    """
    people = data.spec.classes["subject"]
    return [people[index] for index in np.unique(data.test.labels["subject"])]


def check_test_classes(data: Data, chosen: Collection[str]) -> None:
    """Checks that the test windows have two classes of each attribute to score.

    One class is an error if the attribute was chosen, the split is by subject, and
    other test people would have more classes. Otherwise it is a warning.

    Args:
      data: ``Data`` as ``load`` returns it. The public and private attributes are
        checked, except the subject.
      chosen: attributes that the caller or a file chose; the others are defaults of a
        data set.

    Raises:
      OneClass: see above.
    """
    spec = data.spec
    for name in attributes(spec):
        if name == "subject" or name in spec.targets:
            continue
        present = np.unique(data.test.labels[name])
        if len(present) > 1:
            continue
        people = tested_people(data)
        who = f"the test people {shown(people)}" if len(people) > 1 else people[0]
        found = (
            f"the test windows must have at least two classes of {name!r} to score it, "
            f"but all of {who} are {spec.classes[name][present[0]]!r}"
        )
        remedy = "record more people, or choose another split (--split)"
        others = _others_have_more(data, name)
        if others and spec.split == "subject":
            remedy = (
                "choose other test people by name (test_people, --test-people) or by "
                "seed (--split-seed)"
            )
        elif others:
            remedy = "test on new people (--split subject, --test-people)"
        if others and spec.split == "subject" and name in chosen:
            raise OneClass(f"{found}; {remedy}.")
        warnings.warn(
            f"{found}; {name!r} will not be measured. To measure it, {remedy}.",
            UserWarning,
            stacklevel=3,
        )


def _others_have_more(data, name):
    """Returns whether any test people have two classes and leave a training person."""
    subjects = np.concatenate([side.labels["subject"] for side in data[1:]])
    labels = np.concatenate([side.labels[name] for side in data[1:]])
    pairs = np.unique(np.stack([subjects, labels]), axis=1)
    _, counts = np.unique(pairs[0], return_counts=True)
    classes = len(np.unique(labels))
    return classes > 1 and (len(counts) > 2 or (len(counts) == 2 and counts.max() > 1))


def both_sides(data: Data) -> Windows:
    """Returns the training windows, then the test windows."""
    train, test = data.train, data.test
    join = lambda name: np.concatenate([train.labels[name], test.labels[name]])
    labels = {name: join(name) for name in train.labels}
    return Windows(np.concatenate([train.windows, test.windows]), labels)


def leave_out(spec: Spec, everyone: Windows, person: int, count: int) -> Data:
    """Returns data that test on one person and train on all others.

    Windows and targets are shifted and scaled, so that ``standardise`` by ``spec`` has
    the effect of standardizing by this training side. A method that is built from
    ``spec`` therefore never sees the statistics of the left-out person.

    Args:
      spec: spec of the data set.
      everyone: windows of all people, in order of time for each person.
      person: index of the left-out person.
      count: number of training windows, at least those of the others. If they have
        fewer, evenly spaced ones occur twice or more.

    Example:
      >>> from jaxanon.datasets import load
      >>> data = load("smartwatch")
      >>> fold = leave_out(data.spec, both_sides(data), 3, 4000)
      >>> len(fold.train.windows), set(fold.test.labels["subject"].tolist())
      (4000, {3})
    """
    own = everyone.labels["subject"] == person
    test, others = np.flatnonzero(own), np.flatnonzero(~own)
    fitted = others  # Statistics count each window once.
    others = others[np.arange(count) * len(others) // count]
    windows, labels = everyone.windows, dict(everyone.labels)
    if not spec.tokens:
        mean = windows[fitted].mean(axis=(0, 1), dtype=np.float64)
        std = windows[fitted].std(axis=(0, 1), dtype=np.float64)
        windows = _restated(windows, mean, std, np.array(spec.mean), np.array(spec.std))
    for name, target in spec.targets.items():
        mean, std = moments(labels[name][fitted])
        labels[name] = _restated(labels[name], mean, std, target.mean, target.std)
    restated = Windows(windows, labels)
    return Data(
        dataclasses.replace(spec, split="subject"),
        take(restated, others),
        take(restated, test),
    )


def _restated(values, mean, std, new_mean, new_std):
    """Returns values with another mean and standard deviation; constants stay 0."""
    scale = np.where(std > 0, new_std / np.where(std > 0, std, 1), 1)
    return ((values - mean) * scale + new_mean).astype(np.float32)
