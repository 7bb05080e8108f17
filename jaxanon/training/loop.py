"""Training loop over a run's rounds, with checkpoints and metrics."""

import contextlib
import dataclasses
import math
import os
import time

import jax

from jaxanon.core.method import DevicePlacement, Method
from jaxanon.privacy import ledger
from jaxanon.training import (
    checkpoint,
    estimate,
    metrics_log,
    placement,
    processes,
    progress,
)

ROUNDS_PER_CALL = 50


@dataclasses.dataclass(frozen=True)
class Loop:
    """Arguments that are constant over all calls of the training program."""

    method: Method
    key: jax.Array
    devices: DevicePlacement
    output_dir: str | os.PathLike | None
    saved: checkpoint.Checkpoints | None
    epochs: int
    per_epoch: int  # rounds per epoch
    work: int  # work of a round, in the method's unit
    checkpoint_s: float


def run(loop: Loop, state, history: list, show: bool, watch):
    """Trains all remaining rounds, appends a row per call to ``history``.

    Returns:
      The final state.

    Raises:
      FloatingPointError: if a loss or the square of a parameter is not finite.
      ProcessLost: if one of several processes is lost.
    """
    method = loop.method
    total = loop.epochs * loop.per_epoch
    done, last_save = int(state.round), time.monotonic()
    hyper = [*state.hyper]
    state, key = loop.devices.place(state), loop.devices.place(loop.key)
    if watch is None and not processes.several():
        estimate.announce(loop, state, key, total - done, show=show)
    with progress.rounds(
        total,
        done,
        show=show,
        epochs=loop.epochs,
        unit=method.schedule.round_name,
        legend=progress.LEGEND,
    ) as report:
        while done < total:
            num = rounds_of_call(done, loop.per_epoch)
            where = f"after round {done}; {_describe_checkpoint(loop)}"
            with (
                watch.tracing() if watch else contextlib.nullcontext(),
                processes.raise_on_lost_process(where),
            ):
                start = time.monotonic()
                state, info, bad = loop.devices.call(key, state, loop.devices.data, num)
                info = {name: float(value) for name, value in info.items()}
                duration_s = time.monotonic() - start
            done += num
            if watch:
                watch.record_call(num, duration_s, done)
            _check_finite(info, int(bad), num, done - num, loop, hyper)
            work = num * loop.work
            row = progress.row(method, done, loop.per_epoch, info, duration_s, work)
            history.append(row)
            if method.schedule.check_history is not None:
                method.schedule.check_history(history, ended=done == total)
            if loop.saved is not None and loop.output_dir is not None:
                metrics_log.append(loop.output_dir, row)
                if done == total or time.monotonic() - last_save >= loop.checkpoint_s:
                    # The ledger first: it must never report less than was spent.
                    whole = loop.devices.collect(state)
                    ledger.write(
                        loop.output_dir, method, whole, asked=total, accountant="rdp"
                    )
                    loop.saved.save(whole)
                    last_save = time.monotonic()
            report(row)
    return placement.to_host(loop.devices.collect(state))


def rounds_of_call(done: int, per_epoch: int) -> int:
    """Returns the number of rounds of the next call, which never spans two epochs.

    Example:
      >>> [rounds_of_call(done, 120) for done in (0, 100)]
      [50, 20]
    """
    return min(ROUNDS_PER_CALL, per_epoch - done % per_epoch)


def _describe_checkpoint(loop):
    """Returns a phrase about the last checkpoint on disk."""
    if not processes.first():
        return "the first process has the last checkpoint"
    if loop.saved is None:
        return "the run saves no checkpoints"
    return f"the last checkpoint is of round {max(loop.saved.rounds(), default=0)}"


def _check_finite(info, bad, num, before, loop, hyper):
    names = [name for name, value in info.items() if not math.isfinite(value)]
    if names or bad < num:
        subject = f"the loss {names[0]!r}" if names else "the squared parameters"
        rounds = loop.saved.rounds() if loop.saved else []
        last = f" The checkpoint of round {max(rounds, default=0)} is in "
        last += f"{loop.output_dir}."
        raise FloatingPointError(
            f"{subject} must stay finite, got NaN or infinity in round "
            f"{before + min(bad + 1, num)}; "
            f"{metrics_log.remedy(hyper)}.{last if rounds else ''}"
        )
