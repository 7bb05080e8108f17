"""What clients' predictions are worth: each client's own, and all of them together."""

import numpy as np

from jaxanon import metrics
from jaxanon.datasets import Data

ABOUT = "subject", "windows", "new"  # What a client's row has beside scores.
EXAMPLE = 168  # Windows of one client that a report draws: a week of hours.


def classified(data: Data, told) -> dict:
    """Scores of predicted classes of ``data.test``.

    Args:
      data: whose public attribute has classes.
      told: ``int[N]``, the class predicted of each test window.

    Returns:
      ``clients``, ``mean``, ``std``, ``median``, ``worst``, ``new_clients`` and
      ``pooled``, as ``jaxanon.learned.evaluate`` describes them, by ``accuracy`` and
      ``macro_f1``.
    """
    spec = data.spec
    classes, labels = spec.classes[spec.public], data.test.labels[spec.public]

    def score(own):
        found = metrics.scores(labels[own], told[own], classes)
        return {name: found[name] for name in ("accuracy", "macro_f1")}

    return {
        **_of_clients(data, score),
        "pooled": metrics.scores(labels, told, classes),
    }


def regressed(data: Data, told) -> dict:
    """Scores of predicted numbers of ``data.test``, beside predictions without a model.

    Args:
      data: whose public attribute is a target.
      told: ``float[N]``, predicted of each test window, in the target's unit.

    Returns:
      As ``classified``, by ``r2``, ``mae`` and ``rmse`` (both in ``unit``); and
      ``unit``, ``baselines`` (by name as the whole, less ``clients``) and ``example``,
      the last predictions (``told``) of the client whose R² is the median.
    """
    spec = data.spec
    truth = data.test.labels[spec.public]

    def scored(told):
        score = lambda own: metrics.errors(truth[own], told[own])
        return {**_of_clients(data, score), "pooled": metrics.errors(truth, told)}

    found = scored(told)
    baselines = {name: scored(values) for name, values in baselines_of(data).items()}
    for rows in baselines.values():
        del rows["clients"]
    return {
        **found,
        "unit": _target(spec).unit,
        "baselines": baselines,
        "example": _example(data, told, found["clients"]),
    }


def baselines_of(data: Data) -> dict[str, np.ndarray]:
    """Predictions that need no model, ``float[N]`` in the target's unit, by name.

    ``mean`` is the mean of the client's own training windows, or of everybody's where
    it has none. ``persistence`` takes what was for what will be: of a target that
    goes on with a channel it is the mean of that channel's last ``samples`` (all, if
    the window has fewer); of other targets there is none.

    Args:
      data: whose public attribute is a target.

    Raises:
      ValueError: for one that has classes.

    Example:
      >>> from jaxanon.datasets import Spec, Windows
      >>> from jaxanon.datasets.targets import Target
      >>> watts = Target(unit="W", mean=5.0, std=1.0, channel="power", samples=2)
      >>> spec = Spec(
      ...     name="toy", preset="p", channels=("power",), units=("W",), rate_hz=1.0,
      ...     time=3, public="next", private=("subject",), mean=(0.0,), std=(1.0,),
      ...     classes={"subject": ("1", "2")}, split="given", targets={"next": watts})
      >>> windows = np.array([[[1.0], [2.0], [4.0]]])
      >>> one = {"next": np.array([7.0]), "subject": np.array([0])}
      >>> baselines_of(Data(spec, Windows(windows, one), Windows(windows, one)))
      {'mean': array([7.]), 'persistence': array([3.])}
    """
    spec, train, test = data
    target = _target(spec)
    means = np.full(len(spec.classes["subject"]), target.mean)
    for subject in np.unique(train.labels["subject"]):
        own = train.labels["subject"] == subject
        means[subject] = train.labels[spec.public][own].mean(dtype=np.float64)
    found = {"mean": means[test.labels["subject"]]}
    if target.channel:
        channel = spec.channels.index(target.channel)
        last = test.windows[:, -target.samples :, channel]
        found["persistence"] = last.mean(axis=1, dtype=np.float64)
    return found


def _target(spec):
    if spec.target is None:
        raise ValueError(
            f"{spec.public!r} has classes and is no number to predict; score it by "
            "classified."
        )
    return spec.target


def _of_clients(data, score_fn):
    """Rows of every client, and their mean, deviation and worst by the first score."""
    subjects, trained = data.test.labels["subject"], data.train.labels["subject"]
    rows = []
    for subject in np.unique(subjects):
        own = subjects == subject
        new = not bool(np.any(trained == subject))
        about = data.spec.classes["subject"][subject], int(own.sum()), new
        rows.append(dict(zip(ABOUT, about, strict=True)) | score_fn(own))
    names = [name for name in rows[0] if name not in ABOUT]
    old = [row for row in rows if not row["new"]] or rows
    each = {name: np.array([row[name] for row in old]) for name in names}
    fresh = [row[names[0]] for row in rows if row["new"]]
    return {
        "clients": rows,
        "mean": {name: float(values.mean()) for name, values in each.items()},
        "std": {name: float(values.std()) for name, values in each.items()},
        "median": {name: float(np.median(values)) for name, values in each.items()},
        "worst": min(old, key=lambda row: row[names[0]])["subject"],
        "new_clients": float(np.mean(fresh)) if fresh else None,
    }


def _example(data, told, rows):
    """The last test windows of the client in the middle."""
    spec, test = data.spec, data.test
    middle = sorted(rows, key=lambda row: row["r2"])[len(rows) // 2]["subject"]
    own = test.labels["subject"] == spec.classes["subject"].index(middle)
    last = lambda values: np.asarray(values[own][-EXAMPLE:], np.float64).tolist()
    return {
        "subject": middle,
        "truth": last(test.labels[spec.public]),
        "told": last(told),
    }
