"""Trains a method: many rounds per call, resumable, watched."""

import contextlib
import dataclasses
import json
import math
import pathlib
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxanon import (
    __version__,
    checkpoint,
    checks,
    datasets,
    learners,
    ledger,
    methods,
    profiling,
    progress,
)
from jaxanon.learners.guarantee import paid_for
from jaxanon.methods.method import check_hyper, check_measured, warn_of_epochs
from jaxanon.methods.rounds import rounds_program
from jaxanon.run import Run

ROUNDS_PER_CALL = 50
CHECKPOINT_S = 5.0  # Seconds between checkpoints, at the ends of calls.


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
) -> Run:
    """Trains ``method`` on the training windows of ``data``, federated by subject.

    A run that was killed at any moment and resumed ends in the same bits as one that
    was not.

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

    Returns:
      ``Run``.

    Raises:
      FileExistsError: if ``out`` holds a run and ``resume`` is False.
      ValueError: if the run in ``out`` is another one or went further than ``epochs``,
        if its checkpoints are damaged, for epochs below 1, for a method made for
        another spec, for windows that are not finite, for labels and
        hyper-parameters out of range; if the method finds that going on is of no use.
      TypeError: for a seed or epochs that is no whole number.
      NotADirectoryError: if ``profile`` is a file.
      FloatingPointError: if a loss, or the square of a parameter, is no longer finite;
        the last checkpoint before it stays.

    Example:
      >>> import jaxanon as ja
      >>> data = ja.load("smartwatch", public="exercise", private=["side"])
      >>> method = ja.methods.blinder(data.spec, hidden=(16,), latent=4, per_class=4)
      >>> run = train(method, data, epochs=1, progress=False)
      >>> run.anonymize(jax.random.key(1), data.test.windows[:3]).shape
      (3, 128, 6)
    """
    checks.whole(epochs=epochs, seed=seed)
    checks.positive(epochs=epochs)
    epochs, seed = int(epochs), int(seed)
    epochs = paid_for(method, epochs)
    warn_of_epochs(method, epochs)
    check_data(method, data)
    hyper = dict(hyper or {})
    check_hyper(method, hyper)
    watch = None if profile is None else profiling.Watch(profile)
    prepared = method.prepare(datasets.by_client(data.train))
    init_key, run_key = jax.random.split(jax.random.key(seed))
    # Copied, for a round gives the state's buffers away and some may be the caller's.
    state = jax.tree.map(jnp.copy, method.init(init_key, **hyper))
    config = describe(method, data, state, epochs=epochs, seed=seed)
    total = epochs * method.rounds_per_epoch(prepared)
    history, saved, folder = [], None, None
    if out is not None:
        folder = pathlib.Path(out)
        if resume:
            checkpoint.not_past(out, total, epochs)
        checkpoint.claim(out, config, resume=resume)
        if on_claim is not None:
            on_claim()
        saved = checkpoint.Checkpoints(out)
        state = saved.restore(state) or state
        saved.forget_after(int(state.round))
        history = checkpoint.read_metrics(out, int(state.round))
        checkpoint.write_metrics(out, history)
    loop = _Loop(method, run_key, prepared, out, saved, epochs, checkpoint_s)
    try:
        with profiling.listening(watch):
            state = _rounds(loop, state, history, progress, watch)
    finally:
        if saved is not None:
            saved.close()
    if folder is not None:
        ledger.write(folder, method, state, asked=total)
    if watch is not None:
        watch.write(folder)
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


def open_run(folder) -> Run:
    """The run that ``folder`` holds, at its last checkpoint.

    Raises:
      FileNotFoundError: if there is no run in ``folder``, or it has no checkpoint yet.
      ValueError: if the run is damaged, or of another architecture than this version
        of jaxanon builds from its settings.
    """
    folder = pathlib.Path(folder)
    config = checkpoint.read_config(folder, of_windows=True)
    spec = datasets.Spec.from_json(json.dumps(config["spec"]))
    builders = learners if config["method"] in learners.NAMES else methods
    method = builders.build(config["method"], spec, **_as_built(config["settings"]))
    like = jax.eval_shape(method.init, jax.random.key(config["seed"]))
    state = checkpoint.restored(folder, config, like)
    history = checkpoint.read_metrics(folder, int(state.round))
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
    config = {
        "version": __version__,
        "method": method.name,
        "settings": dataclasses.asdict(method.config),
        "hyper": {name: float(value) for name, value in state.hyper.items()},
        "seed": seed,
        "epochs": epochs,
        "data": {
            "name": spec.name,
            "preset": spec.preset,
            "public": spec.public,
            "private": spec.private,
            "split": spec.split,
            "fingerprint": fingerprint(data),
        },
        "spec": json.loads(spec.to_json()),
        "architecture": checkpoint.architecture(state),
    }
    return json.loads(json.dumps(config))


@dataclasses.dataclass(frozen=True)
class _Loop:
    """What stays the same from call to call."""

    method: methods.Method
    key: jax.Array
    prepared: object
    out: object
    saved: checkpoint.Checkpoints | None
    epochs: int
    checkpoint_s: float


def _as_built(settings):
    """JSON's lists as the tuples they were."""
    as_tuple = lambda value: tuple(value) if isinstance(value, list) else value
    return {name: as_tuple(value) for name, value in settings.items()}


def _rounds(loop, state, history, show, watch):
    method = loop.method
    per_epoch = method.rounds_per_epoch(loop.prepared)
    total = loop.epochs * per_epoch
    call = rounds_program(method.update)
    work = method.work_per_round(loop.prepared)
    done, last_save = int(state.round), time.monotonic()
    with progress.rounds(total, done, show=show, epochs=loop.epochs) as tell:
        while done < total:
            num = rounds_of_call(done, per_epoch)
            with watch.tracing() if watch else contextlib.nullcontext():
                start = time.monotonic()
                state, info, bad = call(loop.key, state, loop.prepared, num)
                info = {name: float(value) for name, value in info.items()}
                seconds = time.monotonic() - start
            done += num
            if watch:
                watch.called(num, seconds, done)
            _finite(info, int(bad), num, done - num, loop, state.hyper)
            if check_info := getattr(method, "check_info", None):  # No Learner has it.
                check_info(info)
            row = {
                "round": done,
                "epoch": done / per_epoch,
                "losses": info,
                "seconds": seconds,
                progress.rate_of(method): num * work / seconds,
            }
            history.append(row)
            if loop.saved is not None:
                checkpoint.append_metrics(loop.out, row)
                if done == total or time.monotonic() - last_save >= loop.checkpoint_s:
                    # Before the checkpoint: never less is told than was spent.
                    ledger.write(loop.out, method, state, asked=total, accountant="rdp")
                    loop.saved.save(state)
                    last_save = time.monotonic()
            tell(row)
    return state


def rounds_of_call(done: int, per_epoch: int) -> int:
    """Rounds of the call after ``done``, which ends with its epoch: they may be long.

    Example:
      >>> [rounds_of_call(done, 120) for done in (0, 100)]
      [50, 20]
    """
    return min(ROUNDS_PER_CALL, per_epoch - done % per_epoch)


def _finite(info, bad, num, before, loop, hyper):
    names = [name for name, value in info.items() if not math.isfinite(value)]
    if names or bad < num:
        what = f"the loss {names[0]!r} is" if names else "the parameters' squares are"
        rounds = loop.saved.rounds() if loop.saved else []
        lengths = [name for name in hyper if name.endswith("step_size")]
        last = f" The checkpoint of round {max(rounds, default=0)} is in {loop.out}."
        raise FloatingPointError(
            f"{what} no longer finite in round {before + min(bad + 1, num)}; "
            f"lower {' or '.join(lengths)}.{last if rounds else ''}"
        )
