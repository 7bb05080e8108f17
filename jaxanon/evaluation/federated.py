"""What clients' predictions are worth: each client's own, and all of them together."""

import json
import os
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon import __version__, datasets, federated, metrics, report
from jaxanon.core import checks
from jaxanon.core.programs import single
from jaxanon.datasets import Data
from jaxanon.evaluation import checks as evaluation_checks
from jaxanon.federated.engine import layout
from jaxanon.federated.private.shuffling import share_linked
from jaxanon.privacy import ledger
from jaxanon.training import profiling, run_folder

ABOUT = "subject", "windows", "new"  # What a client's row has beside scores.

EXAMPLE = 168  # Windows of one client that a report draws: a week of hours.


def classified(data: Data, told) -> dict:
    """Scores of predicted classes of ``data.test``.

    Args:
      data: whose public attribute has classes.
      told: ``int[N]``, the class predicted of each test window.

    Returns:
      ``clients``, ``mean``, ``std``, ``median``, ``worst``, ``new_clients`` and
      ``pooled``, as ``jaxanon.evaluation.evaluate`` describes them, by ``accuracy`` and
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


@single
def predictions(run, data: Data, *, seed: int = 0) -> np.ndarray:
    """What each test window's own client predicts.

    A client without training windows has just joined: it predicts with what is shared,
    and with layers or models of its own that nothing taught yet.

    Args:
      run: of a learner, trained on ``data``.
      data: of ``jaxanon.load``.
      seed: of what clients draw as they fit a model to their windows.

    Returns:
      ``int32[N]``, classes of the public attribute of ``data.test``; of one that is a
      target ``float32[N]``, in its unit.
    """
    learner, spec, target = run.method, run.spec, run.spec.target
    prepared = learner.prepare(datasets.by_client(data.train))
    clients = datasets.by_client(data.test)
    x = (clients.windows - np.float32(spec.mean)) / np.float32(spec.std)
    subjects = jnp.asarray(np.asarray(clients.labels["subject"])[:, 0])
    root = jax.random.key(seed)

    @jax.jit
    def all_of_them(key, state, prepared, x, subjects):
        def of_client(client):
            windows, subject = client
            own_key = jax.random.fold_in(key, subject)
            layers = learner.predict.model(own_key, state, prepared, subject)
            outputs = learner.predict.network.apply(layers, windows)
            if target is None:
                return jnp.argmax(outputs, axis=1)
            return outputs[:, 0] * target.std + target.mean

        return jax.lax.map(of_client, (x, subjects))

    told = np.asarray(all_of_them(root, run.state, prepared, x, subjects))
    kind = np.int32 if target is None else np.float32
    found = np.empty(len(data.test.windows), kind)
    # by_client keeps each subject's windows in their order.
    for row, subject in enumerate(np.asarray(subjects)):
        own = np.flatnonzero(data.test.labels["subject"] == subject)
        found[own] = told[row, : len(own)]
    return found


@single
def evaluate(
    run,
    data: Data,
    *,
    seed: int = 0,
    output_dir: str | os.PathLike | None = None,
    progress: Callable | None = None,
) -> dict:
    """What clients of a learner predict of their own test windows.

    Args:
      run: of a learner.
      data: of ``jaxanon.load``, that it was trained on.
      seed: as in ``predictions``.
      output_dir: folder for ``report.json``, ``report.html`` and the figure; None is
        ``run.folder``, and nothing is written if that is None.
      progress: called as ``progress(done, total, what)``.

    Returns:
      A dict fit for strict JSON: ``clients`` (by subject: windows, scores), ``mean``,
      ``std`` and ``median`` of their accuracy and macro F1 (over clients that trained,
      or all where none did; each counts alike), ``worst`` of those, ``new_clients``
      (mean accuracy of the others, or None), ``pooled`` (scores of all windows
      together), ``traffic`` (bytes of a client in a round, both ways), ``shuffled``
      (see there), ``privacy`` (None without noise), ``method``, ``dataset``, ``seed``.
      Of a target the scores are R² in place of accuracy, MAE and RMSE, as
      ``jaxanon.metrics`` defines them, and there are ``unit``, ``baselines`` and
      ``example`` besides: see ``jaxanon.evaluation.federated.regressed``.

    Raises:
      TypeError: for a seed that is no whole number.
      ValueError: for data without test windows, or out of range, or of another split
        than the run was trained on, for a seed beyond 32 bits, and for a
        ``privacy.json`` that is damaged.
    """
    checks.seed(seed)
    if "rounds_alone" not in run.config["data"]:  # Newcomers' own, of any split.
        evaluation_checks.check_split(run, data)
    spec = run.spec
    windows = checks.windows(data.test.windows, spec.time, spec.channels)
    if not len(windows):
        raise ValueError("data.test must hold a window at least, got none.")
    known = run.config["data"].get("rounds_spent")  # Of whom newcomers join.
    spent = ledger.rounds_spent(run.folder, run.state) if known is None else known
    if progress is not None:
        progress(0, 1, "predictions of every client")
    score = classified if spec.target is None else regressed
    told = predictions(run, data, seed=seed)
    scores = score(data._replace(spec=spec), told)
    guarantee = ledger.of_run(run.method, run.state)
    made = {
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
    made = json.loads(json.dumps(made, allow_nan=False))
    folder = run.folder if output_dir is None else output_dir
    if folder is not None:
        report.write_learned(folder, made)
    return made


def shuffled(run, data: Data, *, seed: int = 0) -> dict | None:
    """Whose layers a server tells that gets them one by one, at random times.

    Two more rounds are gone through, of which nothing is kept; the server, who knows
    what it had sent out, says which message of the second is from whom of the first.

    Args:
      run: of a learner, trained on ``data``.
      data: of ``jaxanon.load``.
      seed: of those rounds, and of when layers are sent.

    Returns:
      ``slots``, ``linked`` and ``guessing``, the share of messages put to the right
      client and that of guessing, or None where no two rounds had a layer in common;
      None where layers are not sent so, and of newcomers, who send nothing.
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
    shares = [None if np.isnan(x) else x for x in share_linked(*rounds)]
    return {"slots": slots, "linked": shares[0], "guessing": shares[1]}


def traffic(run) -> dict:
    """Bytes that a client sends and gets in a round, on average.

    Of learners that choose what they send, as the last rounds did; of the others the
    parameters that are shared, both ways: twice for controls, none of whoever trains
    alone, and of whoever trains in one place the windows are not counted. Newcomers
    send nothing, and get what is shared.
    """
    new = "rounds_alone" in run.config["data"]
    last = run.history[-1]["losses"] if run.history else {}
    if "bytes_up" in last and not new:
        return {"up": last["bytes_up"], "down": last["bytes_down"]}
    if run.method.name.startswith("centralized"):
        return {"up": 0.0, "down": 0.0}
    server = getattr(run.state, "server", None)
    size = float(layout.num_bytes((run.state.params, server)))
    return {"up": 0.0 if new else size, "down": size}
