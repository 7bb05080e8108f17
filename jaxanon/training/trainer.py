"""Training of a method: many rounds per call, with checkpoints and resuming."""

import contextlib
import dataclasses
import pathlib
from collections.abc import Callable

import jax

from jaxanon import datasets
from jaxanon.core import checks
from jaxanon.core.compilation_cache import keep_compiled_programs
from jaxanon.core.method import check_hyper, check_measured, warn_of_epochs
from jaxanon.core.programs import single
from jaxanon.core.registry import default_epochs
from jaxanon.core.run import Run
from jaxanon.kernels.checks import whole
from jaxanon.privacy import ledger
from jaxanon.privacy.guarantee import epochs_within_budget
from jaxanon.training import (
    checkpoint,
    metrics_log,
    placement,
    processes,
    profiling,
    run_folder,
)
from jaxanon.training import loop as training_loop
from jaxanon.training.run_folder import check_not_past, describe

CHECKPOINT_S = 5.0  # Minimum seconds between checkpoints.


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
    """Trains ``method`` on the training windows of ``data``.

    Federated methods treat each subject as a client; other methods learn from all
    windows centrally.

    Compiled programs stay in the user's cache folder for later runs, unless
    ``JAX_COMPILATION_CACHE_DIR`` names another folder or is empty.

    Killing and resuming a run does not change its result, bit for bit. Training warns
    of transient loss spikes.

    Args:
      method: ``Method``, such as ``jaxanon.methods.blinder(data.spec)``. A learner with
        a privacy guarantee stops when its budget is spent.
      data: ``jaxanon.datasets.Data``; for a controller such as ``pfdrl`` its own type,
        such as ``jaxanon.energy.Homes``.
      epochs: number of passes of ``schedule.rounds_per_epoch`` rounds, at least 1.
        ``None`` takes the number from the settings, or from the method's recipe. A
        finished run can be resumed with more epochs.
      seed: random seed, a Python int.
      output_dir: folder for settings, checkpoints and metrics; ``None`` saves nothing.
      resume: whether to continue the run in ``output_dir``, if one exists.
      progress: whether to show a progress bar, or lines without a terminal.
      hyper: hyper-parameters that override the method's defaults; see its config.
      checkpoint_s: minimum number of seconds between checkpoints.
      on_claim: function called when ``output_dir`` is claimed, before the first round.
      profile: folder for JAX's trace of the second call of the training program (at
        most 50 rounds) and for ``costs.json``: compile time, time per round, memory.
        ``output_dir`` gets a copy of ``costs.json``. None disables profiling.
      num_devices: number of devices that share the clients of a round; on a CPU, cores.
        None is one device, or all devices of several processes (``processes.join``).
        It changes no result beyond rounding.

    Returns:
      ``Run``.

    Raises:
      FileExistsError: if ``out`` holds a run and ``resume`` is False, or holds other
        files, or another process writes it.
      ValueError: if the run in ``out`` has other settings, more rounds than ``epochs``
        or damaged checkpoints; if method and data do not match; if windows are not
        finite; if epochs, devices, labels or hyper-parameters are out of range; if an
        attribute of an anonymizer has a class with one window; if several processes
        would train different runs; or if the method finds further training useless.
      TypeError: if seed or epochs is not a whole number.
      ProcessLost: if one of several processes is lost.
      NotADirectoryError: if ``profile`` is a file.
      FloatingPointError: if a loss or the square of a parameter is no longer finite;
        the last checkpoint before remains.

    Example:
      >>> import jaxanon as ja
      >>> data = ja.load("smartwatch", public="exercise", private=["side"])
      >>> method = ja.methods.deeprotect(data.spec, hidden_sizes=(8, 4))
      >>> run = train(method, data, epochs=1, progress=False)
      >>> run.anonymize(jax.random.key(1), data.test.windows[:3]).shape
      (3, 128, 6)
    """
    epochs = epochs_of(method, epochs)
    checks.seed(seed)
    epochs, seed = whole("epochs", epochs, least=1), int(seed)
    if output_dir is not None and not processes.several():
        run_folder.check_available(
            output_dir, resume=resume
        )  # Before anything compiles.
    epochs = epochs_within_budget(method, epochs, stacklevel=3)
    check_data(method, data)
    placement.check_devices(method, num_devices)
    hyper = dict(hyper or {})
    check_hyper(method, hyper)
    profiled = profile is not None and processes.first()
    watch = profiling.ProfileTimer(profile) if profiled else None
    keep_compiled_programs()
    own_data = method.own_data is not None
    prepared = method.prepare(data if own_data else datasets.by_client(data.train))
    per_epoch = method.schedule.rounds_per_epoch(prepared)
    warn_of_epochs(method, epochs, per_epoch)
    work = method.schedule.work_per_round(prepared)
    placed = placement.place_rounds(method, prepared, num_devices)
    del prepared  # Free this copy if the data was moved to other devices.
    init_key, run_key = jax.random.split(jax.random.key(seed))
    # Copy: a round donates the buffers of the state, some of which the caller may hold.
    state = jax.device_put(method.init(init_key, **hyper), may_alias=False)
    config = describe(method, data, state, epochs=epochs, seed=seed)
    with processes.raise_on_lost_process("before the first round"):
        processes.check_alike(config)
    total = epochs * per_epoch
    folder = (
        pathlib.Path(output_dir)
        if output_dir is not None and processes.first()
        else None
    )

    held = contextlib.ExitStack()

    def open_or_resume():
        if folder is None:
            return None, state, []
        held.enter_context(checkpoint.lock_folder(folder))
        if resume:
            ledger.check_not_served(folder)
        not_too_far = lambda: check_not_past(output_dir, total, epochs)
        run_folder.claim(output_dir, config, resume=resume, check=not_too_far)
        if on_claim is not None:
            on_claim()
        saved = held.enter_context(
            contextlib.closing(checkpoint.Checkpoints(output_dir))
        )
        found = saved.restore(state) or state
        return saved, found, saved.truncate_after(int(found.round))

    with held:
        with processes.raise_on_lost_process("before the first round"):
            result = processes.run_on_first(open_or_resume)
            saved, state, history = result or (None, state, [])
            state = processes.broadcast_from_first(state)
        before = len(history)  # Rows whose spikes an earlier call warned of.
        loop = training_loop.Loop(
            method=method,
            key=run_key,
            devices=placed,
            output_dir=output_dir,
            saved=saved,
            epochs=epochs,
            per_epoch=per_epoch,
            work=work,
            checkpoint_s=checkpoint_s,
        )
        show = progress and processes.first()
        with profiling.listen(watch):
            state = training_loop.run(loop, state, history, show, watch)
        if folder is not None:
            ledger.write(folder, method, state, asked=total)
        if watch is not None:
            watch.write(folder)
    metrics_log.warn(history[before:], state.hyper, stacklevel=3)
    return Run(method, state, data.spec, folder, history, config)


def epochs_of(method, epochs):
    """Returns the epochs to train; raises ValueError if the settings fix others."""
    fixed = method.schedule.epochs
    if epochs is None:
        return default_epochs(method.name, method.recipe) if fixed is None else fixed
    if fixed is not None and epochs != fixed:
        raise ValueError(
            f"epochs must be {fixed}, as in the settings of {method.name}, got "
            f"{epochs!r}; change the settings."
        )
    return epochs


def check_data(method, data) -> None:
    """Raises ValueError unless data fits the method and its windows are valid."""
    if type(method.spec) is not type(data.spec):
        raise ValueError(
            f"data must have a {type(method.spec).__name__} for {method.name}, got a "
            f"{type(data.spec).__name__}; load other data."
        )
    if method.spec != data.spec:
        fields = [field.name for field in dataclasses.fields(data.spec)]
        differ = lambda name: getattr(method.spec, name) != getattr(data.spec, name)
        raise ValueError(
            f"method must be built from data.spec, got a spec with other "
            f"{[*filter(differ, fields)]}; build the method from data.spec."
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
