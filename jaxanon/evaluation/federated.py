"""Evaluation of learners: predictions by client, and over all windows."""

import json
import os
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon import __version__, datasets, federated, metrics, report
from jaxanon.core import checks
from jaxanon.core.programs import single
from jaxanon.datasets import Data
from jaxanon.evaluation import checks as evaluation_checks
from jaxanon.evaluation import intervals
from jaxanon.federated.engine import layout
from jaxanon.federated.private.shuffling import share_linked
from jaxanon.privacy import ledger
from jaxanon.training import profiling, run_folder

ABOUT = "subject", "windows", "new"  # Keys of a client's row that are not scores.

EXAMPLE = 168  # Windows of one client in the report's figure: a week of hours.


def classified(data: Data, predicted) -> dict:
    """Scores predicted classes of ``data.test``.

    Args:
      data: data set whose public attribute has classes.
      predicted: ``int[N]``, predicted class of each test window.

    Returns:
      ``clients``, ``mean``, ``std``, ``median``, ``interval``, ``worst``,
      ``new_clients`` and ``pooled`` (see ``evaluate``), by ``accuracy`` and
      ``macro_f1``.
    """
    spec = data.spec
    classes, labels = spec.classes[spec.public], data.test.labels[spec.public]

    def score(rows):
        scores = metrics.scores(labels[rows], predicted[rows], classes)
        return {name: scores[name] for name in ("accuracy", "macro_f1")}

    return {
        **_of_clients(data, score),
        "pooled": metrics.scores(labels, predicted, classes),
    }


def regressed(data: Data, predicted) -> dict:
    """Scores predicted numbers of ``data.test``, and baselines without a model.

    Args:
      data: data set whose public attribute is a target.
      predicted: ``float[N]``, prediction for each test window, in the target's unit.

    Returns:
      The keys of ``classified``, by ``r2``, ``mae`` and ``rmse`` (both in ``unit``).
      Further keys are ``unit``; ``baselines``, by name, without ``clients``; and
      ``example``, the last predictions of the client with the median R².
    """
    spec = data.spec
    truth = data.test.labels[spec.public]

    def scored(values):
        score = lambda rows: metrics.errors(truth[rows], values[rows])
        return {**_of_clients(data, score), "pooled": metrics.errors(truth, values)}

    scores = scored(predicted)
    baselines = {name: scored(values) for name, values in baselines_of(data).items()}
    for rows in baselines.values():
        del rows["clients"]
    return {
        **scores,
        "unit": _target(spec).unit,
        "baselines": baselines,
        "example": _example(data, predicted, scores["clients"]),
    }


def baselines_of(data: Data) -> dict[str, np.ndarray]:
    """Returns predictions without a model, ``float[N]`` in the target's unit, by name.

    ``mean`` is the mean of the client's training windows, or of all training windows if
    it has none. ``persistence`` exists if the target continues a channel. It is the
    mean of the last ``samples`` of that channel, or of all if the window has fewer.

    Args:
      data: data set whose public attribute is a target.

    Raises:
      ValueError: if the public attribute has classes.

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
        rows = train.labels["subject"] == subject
        means[subject] = train.labels[spec.public][rows].mean(dtype=np.float64)
    baselines = {"mean": means[test.labels["subject"]]}
    if target.channel:
        channel = spec.channels.index(target.channel)
        last = test.windows[:, -target.samples :, channel]
        baselines["persistence"] = last.mean(axis=1, dtype=np.float64)
    return baselines


def _target(spec):
    if spec.target is None:
        raise ValueError(
            f"the public attribute must be a number, got {spec.public!r} with classes; "
            "use classified."
        )
    return spec.target


def _of_clients(data, score_fn):
    """Rows of every client, and statistics over clients."""
    subjects, trained = data.test.labels["subject"], data.train.labels["subject"]
    rows = []
    for subject in np.unique(subjects):
        selected = subjects == subject
        new = not bool(np.any(trained == subject))
        about = data.spec.classes["subject"][subject], int(selected.sum()), new
        rows.append(dict(zip(ABOUT, about, strict=True)) | score_fn(selected))
    names = [name for name in rows[0] if name not in ABOUT]
    old = [row for row in rows if not row["new"]] or rows
    each = {name: np.array([row[name] for row in old]) for name in names}
    fresh = [row[names[0]] for row in rows if row["new"]]
    first = each[names[0]]
    interval = None
    if len(first) >= intervals.MIN_PERSONS:
        bounds = (0.0 if names[0] == "accuracy" else -np.inf, 1.0)
        interval = intervals.student(first.mean(), first, bounds=bounds)
    return {
        "clients": rows,
        "mean": {name: float(values.mean()) for name, values in each.items()},
        "std": {name: float(values.std()) for name, values in each.items()},
        "median": {name: float(np.median(values)) for name, values in each.items()},
        "interval": interval,
        "worst": min(old, key=lambda row: row[names[0]])["subject"],
        "new_clients": float(np.mean(fresh)) if fresh else None,
    }


def _example(data, predicted, rows):
    """The last test windows of the client with the median R²."""
    spec, test = data.spec, data.test
    middle = sorted(rows, key=lambda row: row["r2"])[len(rows) // 2]["subject"]
    selected = test.labels["subject"] == spec.classes["subject"].index(middle)
    last = lambda values: np.asarray(values[selected][-EXAMPLE:], np.float64).tolist()
    return {
        "subject": middle,
        "truth": last(test.labels[spec.public]),
        "predicted": last(predicted),
    }


@single
def predictions(run, data: Data, *, seed: int = 0) -> np.ndarray:
    """Predicts each test window with the model of its client.

    A client without training windows predicts with the shared layers and with untrained
    personal layers.

    Args:
      run: run of a learner, trained on ``data``.
      data: data set, as ``jaxanon.load`` returns it.
      seed: random seed of clients that fit a model to their windows.

    Returns:
      ``int32[N]``, classes of the public attribute of ``data.test``, or ``float32[N]``
      in the unit of a target.
    """
    learner, spec, target = run.method, run.spec, run.spec.target
    prepared = learner.prepare(datasets.by_client(data.train))
    clients = datasets.by_client(data.test)
    x = (clients.windows - np.float32(spec.mean)) / np.float32(spec.std)
    subjects = jnp.asarray(np.asarray(clients.labels["subject"])[:, 0])
    root = jax.random.key(seed)

    @jax.jit
    def predict_all(key, state, prepared, x, subjects):
        def predict_client(client):
            windows, subject = client
            client_key = jax.random.fold_in(key, subject)
            layers = learner.predict.model(client_key, state, prepared, subject)
            outputs = learner.predict.network.apply(layers, windows)
            if target is None:
                return jnp.argmax(outputs, axis=1)
            return outputs[:, 0] * target.std + target.mean

        return jax.lax.map(predict_client, (x, subjects))

    outputs = np.asarray(predict_all(root, run.state, prepared, x, subjects))
    kind = np.int32 if target is None else np.float32
    predicted = np.empty(len(data.test.windows), kind)
    # by_client preserves the order of each subject's windows.
    for row, subject in enumerate(np.asarray(subjects)):
        rows = np.flatnonzero(data.test.labels["subject"] == subject)
        predicted[rows] = outputs[row, : len(rows)]
    return predicted


@single
def evaluate(
    run,
    data: Data,
    *,
    seed: int = 0,
    output_dir: str | os.PathLike | None = None,
    progress: Callable | None = None,
) -> dict:
    """Evaluates the predictions of a learner's clients on their test windows.

    Args:
      run: run of a learner.
      data: data set that the run was trained on.
      seed: random seed. See ``predictions``.
      output_dir: folder for ``report.json``, ``report.html`` and the figure. None is
        ``run.folder``, and without a folder nothing is written.
      progress: callback ``progress(done, total, what)``.

    Returns:
      A dict for strict JSON. ``clients`` holds windows and scores by subject;
      ``mean``, ``std``, ``median`` and ``interval`` (95 %, of mean accuracy or R²) are
      over clients with training windows, or over all if none has any. The client with
      the lowest score is ``worst``. ``new_clients`` is the mean accuracy of the other
      clients or None, and ``pooled`` the scores of all windows. ``traffic`` is in bytes
      per client and round. ``shuffled`` is described there; ``privacy`` is None without
      noise. For a target, the scores are R², MAE and RMSE (see ``regressed``).

    Raises:
      TypeError: if ``seed`` is not an integer.
      ValueError: if ``data`` has no test windows, is out of range or is another split;
        if ``seed`` exceeds 32 bits; if ``privacy.json`` is damaged.
    """
    began = time.monotonic()
    checks.seed(seed)
    if "rounds_alone" not in run.config["data"]:  # New clients may use any split.
        evaluation_checks.check_split(run, data)
    spec = run.spec
    windows = checks.windows(data.test.windows, spec.time, spec.channels)
    if not len(windows):
        raise ValueError(
            "data.test must hold at least one window, got none; choose another split."
        )
    known = run.config["data"].get("rounds_spent")  # Set for new clients.
    spent = ledger.rounds_spent(run.folder, run.state) if known is None else known
    if progress is not None:
        progress(0, 1, "predictions of every client")
    score = classified if spec.target is None else regressed
    predicted = predictions(run, data, seed=seed)
    scores = score(data._replace(spec=spec), predicted)
    guarantee = ledger.of_run(run.method, run.state)
    result = {
        "method": {
            "name": run.method.name,
            "settings": run.config["settings"],
            "rounds": int(run.state.round),
            "unfinished": run.unfinished,
            "version": __version__,
        },
        "dataset": run.config["data"] | {"fingerprint": run_folder.fingerprint(data)},
        "seed": seed,
        "attribute": spec.public,
        **scores,
        "traffic": traffic(run),
        "shuffled": shuffled(run, data, seed=seed),
        "privacy": guarantee and guarantee.report(spent),
        "costs": profiling.read(run.folder),
    }
    result = json.loads(json.dumps(result, allow_nan=False))
    folder = run.folder if output_dir is None else output_dir
    if folder is not None:
        footer = report.footer(time.monotonic() - began)
        report.write_learned(folder, result, footer)
    return result


def shuffled(run, data: Data, *, seed: int = 0) -> dict | None:
    """Links layers that arrive without names, at random times, to their clients.

    It simulates two more rounds and discards them. The server, which knows the layers
    that it sent, assigns messages of the second round to clients of the first.

    Args:
      run: run of a learner, trained on ``data``.
      data: data set, as ``jaxanon.load`` returns it.
      seed: random seed of those rounds and of the sending times.

    Returns:
      ``slots``, ``linked`` (fraction of messages assigned to the right client) and
      ``chance``, its chance level; both fractions are None if the rounds share no
      layer. None if layers are not sent one by one, and for new clients.
    """
    slots = getattr(run.method.config, "send_slots", 0)
    if not slots or "rounds_alone" in run.config["data"]:
        return None
    prepared = run.method.prepare(datasets.by_client(data.train))
    _, rounds = federated.simulate_observed_shuffled(
        *(run.method.federation.algorithm, jax.random.key(seed), run.state, prepared),
        num_rounds=2,
        num_slots=slots,
    )
    linked, chance = (None if np.isnan(x) else x for x in share_linked(*rounds))
    return {"slots": slots, "linked": linked, "chance": chance}


def traffic(run) -> dict:
    """Returns the mean bytes that a client sends and receives per round.

    Learners that choose layers report their last rounds. Others count the shared
    parameters both ways, twice with control variates. Training alone or in one place
    counts zero bytes. New clients only receive.
    """
    new = "rounds_alone" in run.config["data"]
    last = run.history[-1]["losses"] if run.history else {}
    if "bytes_up" in last and not new:
        return {"up": last["bytes_up"], "down": last["bytes_down"]}
    if run.method.name.startswith("centralized"):
        return {"up": 0.0, "down": 0.0}
    size = float(layout.num_bytes((run.state.params, run.state.server)))
    return {"up": 0.0 if new else size, "down": size}
