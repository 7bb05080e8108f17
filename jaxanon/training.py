"""Trains a method: many rounds per call, resumable, watched."""

import dataclasses
import json
import pathlib
from collections.abc import Callable

import jax

from jaxanon import (
    __version__,
    checkpoint,
    checks,
    datasets,
    leaps,
    learners,
    ledger,
    methods,
    metrics_file,
    processes,
    profiling,
    spreading,
    training_loop,
)
from jaxanon.datasets.sources import naming
from jaxanon.learners.guarantee import paid_for
from jaxanon.methods.method import check_hyper, check_measured, warn_of_epochs
from jaxanon.models.precision import single
from jaxanon.run import Run

CHECKPOINT_S = 5.0  # Seconds between checkpoints, at the ends of calls.


@single
def train(
    method,
    data,
    *,
    epochs: int = 20,
    seed: int = 0,
    out=None,
    resume: bool = False,
    progress: bool = True,
    hyper: dict | None = None,
    checkpoint_s: float = CHECKPOINT_S,
    on_claim: Callable[[], None] | None = None,
    profile=None,
    devices: int | None = None,
) -> Run:
    """Trains ``method`` on the training windows of ``data``: over clients, or together.

    Each subject is a client of a federated method; others learn from all windows in one
    place.

    A run that was killed at any moment and resumed ends in the same bits as one that
    was not. A loss that leapt to a thousand times all that it was before is warned of.

    Args:
      method: a ``Method``, e.g. ``jaxanon.methods.blinder(data.spec)``, or a
        ``Learner`` of ``jaxanon.learners.build``, which stops where its budget ends.
      data: ``jaxanon.datasets.Data``.
      epochs: passes of ``method.rounds_per_epoch`` rounds, at least 1. A finished run
        may be resumed with more.
      seed: of everything random, a Python int.
      out: folder for settings, checkpoints and metrics; ``None`` keeps nothing.
      resume: go on with the run in ``out``; where there is none, start it.
      progress: show a progress bar, or lines where there is no terminal.
      hyper: hyper-parameters in place of the method's defaults; see its config.
      checkpoint_s: least seconds between checkpoints.
      on_claim: called once ``out`` is this run's, before the first round.
      profile: folder for JAX's trace of the second call of the training program, of 50
        rounds at most, and for ``costs.json``, which ``out`` gets, too: time to
        compile, time of a round, memory. None watches nothing.
      devices: how many share the clients of each round; a CPU's are its cores. None is
        one, and all there are where ``processes.join`` made this process one of
        several. It changes no result beyond rounding.

    Returns:
      ``Run``.

    Raises:
      FileExistsError: if ``out`` holds a run and ``resume`` is False, or something
        else.
      ValueError: if the run in ``out`` is another one or went further than ``epochs``,
        if its checkpoints are damaged, for epochs below 1, for a method made for
        another spec, for windows that are not finite, for labels and
        hyper-parameters out of range, for a class that one window alone has, of what an
        anonymizer is to keep or hide; if the method finds that going on is of no use.
        For more devices than there are, or a method that one device has to train; for
        processes that would train different runs.
      TypeError: for a seed or epochs that is no whole number.
      ProcessLost: if one of several processes is gone.
      NotADirectoryError: if ``profile`` is a file.
      FloatingPointError: if a loss, or the square of a parameter, is no longer finite;
        the last checkpoint before it stays.

    Example:
      >>> import jaxanon as ja
      >>> data = ja.load("smartwatch", public="exercise", private=["side"])
      >>> method = ja.methods.deeprotect(data.spec, hidden=(8, 4))
      >>> run = train(method, data, epochs=1, progress=False)
      >>> run.anonymize(jax.random.key(1), data.test.windows[:3]).shape
      (3, 128, 6)
    """
    checks.whole(epochs=epochs)
    checks.seed(seed)
    checks.positive(epochs=epochs)
    epochs, seed = int(epochs), int(seed)
    if out is not None and not processes.several():
        checkpoint.refuse_taken(out, resume=resume)  # Before anything compiles.
    epochs = paid_for(method, epochs, stacklevel=3)
    check_data(method, data)
    spreading.check_devices(method, devices)
    hyper = dict(hyper or {})
    check_hyper(method, hyper)
    watched = profile is not None and processes.first()
    watch = profiling.Watch(profile) if watched else None
    prepared = method.prepare(datasets.by_client(data.train))
    per_epoch = method.rounds_per_epoch(prepared)
    warn_of_epochs(method, epochs, per_epoch)
    work = method.work_per_round(prepared)
    spread = spreading.spread(method, prepared, devices)
    del prepared  # Where it was spread out, this copy is nobody's.
    init_key, run_key = jax.random.split(jax.random.key(seed))
    # Copied, for a round gives the state's buffers away and some may be the caller's.
    state = jax.device_put(method.init(init_key, **hyper), may_alias=False)
    config = describe(method, data, state, epochs=epochs, seed=seed)
    with processes.told_when_lost("before the first round"):
        processes.check_alike(config)
    total = epochs * per_epoch
    folder = pathlib.Path(out) if out is not None and processes.first() else None

    def opened():
        if folder is None:
            return None, state, []
        if resume:
            ledger.refuse_served(folder)
        not_too_far = lambda: not_past(out, total, epochs)
        checkpoint.claim(out, config, resume=resume, check=not_too_far)
        if on_claim is not None:
            on_claim()
        saved = checkpoint.Checkpoints(out)
        found = saved.restore(state) or state
        return saved, found, saved.go_on(int(found.round))

    with processes.told_when_lost("before the first round"):
        saved, state, history = processes.by_first(opened) or (None, state, [])
        state = processes.as_first_has(state)
    before = len(history)  # What a run that goes on was warned of then.
    loop = training_loop.Loop(
        method=method,
        key=run_key,
        spread=spread,
        out=out,
        saved=saved,
        epochs=epochs,
        per_epoch=per_epoch,
        work=work,
        checkpoint_s=checkpoint_s,
    )
    show = progress and processes.first()
    try:
        with profiling.listening(watch):
            state = training_loop.run(loop, state, history, show, watch)
    finally:
        if saved is not None:
            saved.close()
    if folder is not None:
        ledger.write(folder, method, state, asked=total)
    if watch is not None:
        watch.write(folder)
    leaps.warn(history[before:], state.hyper, stacklevel=3)
    return Run(method, state, data.spec, folder, history, config)


def check_data(method, data) -> None:
    """ValueError unless a method was made for data, and its windows can be used."""
    if method.spec != data.spec:
        fields = [field.name for field in dataclasses.fields(data.spec)]
        differ = lambda name: getattr(method.spec, name) != getattr(data.spec, name)
        raise ValueError(
            f"method was made for another data set: {[*filter(differ, fields)]} of its "
            "spec differ from data.spec; make it from data.spec."
        )
    spec, (windows, labels) = data.spec, data.train
    check_measured(method)
    checks.windows(windows, spec.time, spec.channels)
    for name, classes in spec.classes.items():
        checks.labels(name, labels[name], len(windows), classes)
    for name in spec.targets:
        checks.numbers(name, labels[name], len(windows))
    if hasattr(method, "anonymize"):
        for name in (spec.public, *spec.private):
            checks.no_lone(name, labels[name], spec.classes[name])


def not_past(folder, total: int, epochs: int) -> None:
    """ValueError if the run in a folder, if any, has done more rounds than so many."""
    kept = pathlib.Path(folder) / "checkpoints"
    names = [path.name for path in kept.iterdir()] if kept.is_dir() else []
    done = max((int(name) for name in names if name.isdigit()), default=0)
    if done > total:
        raise ValueError(
            f"epochs={epochs} is {total} rounds, and the run in {folder} has done "
            f"{done}; resume with more epochs, or train in another folder."
        )


def open_run(folder) -> Run:
    """The run that ``folder`` holds, at its last checkpoint.

    Raises:
      FileNotFoundError: if there is no run in ``folder``, or it has no checkpoint yet.
      ValueError: if the run is damaged, or of another architecture than this version
        of jaxanon builds from its settings.
    """
    folder = pathlib.Path(folder)
    config = checkpoint.read_config(folder, of_windows=True)
    with naming(str(folder / "config.json")):
        spec = datasets.Spec.from_json(json.dumps(config["spec"]))
        builders = learners if config["method"] in learners.NAMES else methods
        method = builders.build(config["method"], spec, **_as_built(config["settings"]))
        like = jax.eval_shape(method.init, jax.random.key(config["seed"]))
    state = checkpoint.restored(folder, config, like)
    history = metrics_file.read(folder, int(state.round))
    return Run(method, state, spec, folder, history, config)


def fingerprint(data) -> str:
    """A digest of all windows and labels, to tell whether data changed.

    Example:
      >>> data = datasets.load("smartwatch")
      >>> fingerprint(data) == fingerprint(datasets.load("smartwatch"))
      True
    """
    arrays = []
    for part in (data.train, data.test):
        arrays += [part.windows, *(part.labels[name] for name in sorted(part.labels))]
    return checkpoint.fingerprint(arrays)


def describe(method, data, state, *, epochs: int, seed: int) -> dict:
    """What ``config.json`` says of a run; all but ``epochs`` makes it this run."""
    spec = data.spec
    told = {
        "name": spec.name,
        "preset": spec.preset,
        "public": spec.public,
        "private": spec.private,
        "split": spec.split,
        "fingerprint": fingerprint(data),
    }
    if unseen := _unseen(method, data):
        told["unseen"] = unseen
    config = {
        "version": __version__,
        "method": method.name,
        "settings": dataclasses.asdict(method.config),
        "hyper": {name: float(value) for name, value in state.hyper.items()},
        "seed": seed,
        "epochs": epochs,
        "data": told,
        "spec": json.loads(spec.to_json()),
        "architecture": checkpoint.architecture(state),
    }
    return json.loads(json.dumps(config))


def _unseen(method, data) -> dict[str, list[str]]:
    """Classes without a training window, where windows of them may be asked for.

    Nothing where noise guards training: which classes there are would be told.
    """
    if not getattr(method, "sample", None) or getattr(method, "guarantee", None):
        return {}
    found = {}
    for name in (data.spec.public, *data.spec.private):
        there = set(data.train.labels[name].tolist())
        names = data.spec.classes[name]
        if lacking := [own for k, own in enumerate(names) if k not in there]:
            found[name] = lacking
    return found


def _as_built(settings):
    """JSON's lists as the tuples they were."""
    as_tuple = lambda value: tuple(value) if isinstance(value, list) else value
    return {name: as_tuple(value) for name, value in settings.items()}
