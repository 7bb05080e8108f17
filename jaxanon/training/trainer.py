"""Trains a method: many rounds per call, resumable, watched."""

import contextlib
import dataclasses
import pathlib
from collections.abc import Callable

import jax

from jaxanon import datasets
from jaxanon.core import checks
from jaxanon.core.method import check_hyper, check_measured, warn_of_epochs
from jaxanon.core.programs import single
from jaxanon.core.registry import default_epochs
from jaxanon.core.run import Run
from jaxanon.kernels.checks import whole
from jaxanon.privacy import ledger
from jaxanon.privacy.guarantee import paid_for
from jaxanon.training import (
    checkpoint,
    metrics_log,
    placement,
    processes,
    profiling,
    run_folder,
)
from jaxanon.training import loop as training_loop
from jaxanon.training.run_folder import describe, not_past

CHECKPOINT_S = 5.0  # Seconds between checkpoints, at the ends of calls.


@single
def train(
    method,
    data,
    *,
    epochs: int | None = None,
    seed: int = 0,
    output_dir=None,
    resume: bool = False,
    progress: bool = True,
    hyper: dict | None = None,
    checkpoint_s: float = CHECKPOINT_S,
    on_claim: Callable[[], None] | None = None,
    profile=None,
    num_devices: int | None = None,
) -> Run:
    """Trains ``method`` on the training windows of ``data``: over clients, or together.

    Each subject is a client of a federated method; others learn from all windows in one
    place.

    A run that was killed at any moment and resumed ends in the same bits as one that
    was not. A loss that leapt to a thousand times all that it was before is warned of.

    Args:
      method: a ``Method``, such as ``jaxanon.methods.blinder(data.spec)``. A learner
        with a privacy guarantee stops where its budget ends.
      data: ``jaxanon.datasets.Data``; of a controller such as ``pfdrl`` its own, such
        as ``jaxanon.energy.Homes``.
      epochs: passes of ``schedule.rounds_per_epoch`` rounds, at least 1; ``None`` is
        ``jaxanon.core.registry.default_epochs``, or what the settings say. A finished
        run may be resumed with more.
      seed: of everything random, a Python int.
      output_dir: folder for settings, checkpoints and metrics; ``None`` keeps nothing.
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
        else, or if another process writes it.
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
    epochs = epochs_of(method, epochs)
    checks.seed(seed)
    epochs, seed = whole("epochs", epochs, least=1), int(seed)
    if output_dir is not None and not processes.several():
        run_folder.refuse_taken(output_dir, resume=resume)  # Before anything compiles.
    epochs = paid_for(method, epochs, stacklevel=3)
    check_data(method, data)
    placement.check_devices(method, num_devices)
    hyper = dict(hyper or {})
    check_hyper(method, hyper)
    watched = profile is not None and processes.first()
    watch = profiling.ProfileTimer(profile) if watched else None
    own = method.own_data is not None
    prepared = method.prepare(data if own else datasets.by_client(data.train))
    per_epoch = method.schedule.rounds_per_epoch(prepared)
    warn_of_epochs(method, epochs, per_epoch)
    work = method.schedule.work_per_round(prepared)
    spread = placement.spread(method, prepared, num_devices)
    del prepared  # Where it was spread out, this copy is nobody's.
    init_key, run_key = jax.random.split(jax.random.key(seed))
    # Copied, for a round gives the state's buffers away and some may be the caller's.
    state = jax.device_put(method.init(init_key, **hyper), may_alias=False)
    config = describe(method, data, state, epochs=epochs, seed=seed)
    with processes.told_when_lost("before the first round"):
        processes.check_alike(config)
    total = epochs * per_epoch
    folder = (
        pathlib.Path(output_dir)
        if output_dir is not None and processes.first()
        else None
    )

    held = contextlib.ExitStack()

    def opened():
        if folder is None:
            return None, state, []
        held.enter_context(checkpoint.alone(folder))
        if resume:
            ledger.refuse_served(folder)
        not_too_far = lambda: not_past(output_dir, total, epochs)
        run_folder.claim(output_dir, config, resume=resume, check=not_too_far)
        if on_claim is not None:
            on_claim()
        saved = held.enter_context(
            contextlib.closing(checkpoint.Checkpoints(output_dir))
        )
        found = saved.restore(state) or state
        return saved, found, saved.go_on(int(found.round))

    with held:
        with processes.told_when_lost("before the first round"):
            saved, state, history = processes.by_first(opened) or (None, state, [])
            state = processes.as_first_has(state)
        before = len(history)  # What a run that goes on was warned of then.
        loop = training_loop.Loop(
            method=method,
            key=run_key,
            spread=spread,
            output_dir=output_dir,
            saved=saved,
            epochs=epochs,
            per_epoch=per_epoch,
            work=work,
            checkpoint_s=checkpoint_s,
        )
        show = progress and processes.first()
        with profiling.listening(watch):
            state = training_loop.run(loop, state, history, show, watch)
        if folder is not None:
            ledger.write(folder, method, state, asked=total)
        if watch is not None:
            watch.write(folder)
    metrics_log.warn(history[before:], state.hyper, stacklevel=3)
    return Run(method, state, data.spec, folder, history, config)


def epochs_of(method, epochs):
    """Epochs to train for; ValueError for others than the settings ask for."""
    wanted = method.schedule.epochs
    if epochs is None:
        return default_epochs(method.name) if wanted is None else wanted
    if wanted is not None and epochs != wanted:
        raise ValueError(
            f"epochs must be {wanted}, as the settings of {method.name} say, got "
            f"{epochs!r}; change the settings."
        )
    return epochs


def check_data(method, data) -> None:
    """ValueError unless a method was made for data, and its windows can be used."""
    if type(method.spec) is not type(data.spec):
        raise ValueError(
            f"data must have a {type(method.spec).__name__}, for which {method.name} "
            f"was made, got a {type(data.spec).__name__}; load other data."
        )
    if method.spec != data.spec:
        fields = [field.name for field in dataclasses.fields(data.spec)]
        differ = lambda name: getattr(method.spec, name) != getattr(data.spec, name)
        raise ValueError(
            f"method was made for another data set: {[*filter(differ, fields)]} of its "
            "spec differ from data.spec; make it from data.spec."
        )
    if method.own_data is not None:
        method.own_data.check(data)
        return
    spec, (windows, labels) = data.spec, data.train
    check_measured(method)
    checks.windows(windows, spec.time, spec.channels)
    for name, classes in spec.classes.items():
        checks.labels(name, labels[name], len(windows), classes)
    for name in spec.targets:
        checks.numbers(name, labels[name], len(windows))
    if method.anonymize is not None:
        for name in (spec.public, *spec.private):
            checks.no_lone(name, labels[name], spec.classes[name])
