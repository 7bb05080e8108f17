"""The loop over a run's rounds: calls, checkpoints, lines of metrics."""

import contextlib
import dataclasses
import math
import os
import time

import jax

from jaxanon.core.method import DevicePlacement, Method
from jaxanon.privacy import ledger
from jaxanon.training import checkpoint, metrics_log, placement, processes, progress

ROUNDS_PER_CALL = 50


@dataclasses.dataclass(frozen=True)
class Loop:
    """What stays the same from call to call."""

    method: Method
    key: jax.Array
    spread: DevicePlacement
    output_dir: str | os.PathLike | None
    saved: checkpoint.Checkpoints | None
    epochs: int
    per_epoch: int  # rounds
    work: int  # of a round
    checkpoint_s: float


def run(loop: Loop, state, history: list, show: bool, watch):
    """The state after all rounds; ``history`` gets a row for each call.

    Raises:
      FloatingPointError: as ``training.train``.
      ProcessLost: if there were several processes, and one is gone.
    """
    method = loop.method
    total = loop.epochs * loop.per_epoch
    done, last_save = int(state.round), time.monotonic()
    hyper = [*state.hyper]
    state, key = loop.spread.put(state), loop.spread.put(loop.key)
    with progress.rounds(
        total,
        done,
        show=show,
        epochs=loop.epochs,
        unit=method.schedule.round_name,
        legend=progress.LEGEND,
    ) as tell:
        while done < total:
            num = rounds_of_call(done, loop.per_epoch)
            with (
                watch.tracing() if watch else contextlib.nullcontext(),
                processes.told_when_lost(f"after round {done}; {_kept(loop)}"),
            ):
                start = time.monotonic()
                state, info, bad = loop.spread.call(key, state, loop.spread.data, num)
                info = {name: float(value) for name, value in info.items()}
                seconds = time.monotonic() - start
            done += num
            if watch:
                watch.called(num, seconds, done)
            _refuse_broken(info, int(bad), num, done - num, loop, hyper)
            work = num * loop.work
            row = progress.row(method, done, loop.per_epoch, info, seconds, work)
            history.append(row)
            if method.schedule.check_history is not None:
                method.schedule.check_history(history, ended=done == total)
            if loop.saved is not None and loop.output_dir is not None:
                metrics_log.append(loop.output_dir, row)
                if done == total or time.monotonic() - last_save >= loop.checkpoint_s:
                    # Before the checkpoint: never less is told than was spent.
                    whole = loop.spread.collect(state)
                    ledger.write(
                        loop.output_dir, method, whole, asked=total, accountant="rdp"
                    )
                    loop.saved.save(whole)
                    last_save = time.monotonic()
            tell(row)
    return placement.to_host(loop.spread.collect(state))


def rounds_of_call(done: int, per_epoch: int) -> int:
    """Rounds of the call after ``done``, which ends with its epoch: they may be long.

    Example:
      >>> [rounds_of_call(done, 120) for done in (0, 100)]
      [50, 20]
    """
    return min(ROUNDS_PER_CALL, per_epoch - done % per_epoch)


def _kept(loop):
    """What is on disk, in words."""
    if not processes.first():
        return "the first process keeps the last checkpoint"
    if loop.saved is None:
        return "no checkpoint was asked for"
    return f"the checkpoint of round {max(loop.saved.rounds(), default=0)} is kept"


def _refuse_broken(info, bad, num, before, loop, hyper):
    names = [name for name, value in info.items() if not math.isfinite(value)]
    if names or bad < num:
        what = f"the loss {names[0]!r} is" if names else "the parameters' squares are"
        rounds = loop.saved.rounds() if loop.saved else []
        last = f" The checkpoint of round {max(rounds, default=0)} is in "
        last += f"{loop.output_dir}."
        raise FloatingPointError(
            f"{what} no longer finite in round {before + min(bad + 1, num)}; "
            f"{metrics_log.remedy(hyper)}.{last if rounds else ''}"
        )
