"""Privacy ledger of a run: the budget spent so far, stored with the checkpoints."""

import json
import os
import pathlib

from jaxanon.datasets import writing
from jaxanon.privacy.guarantee import Guarantee, PerWeight

FILE = "privacy.json"

_DAMAGED = (
    *(ArithmeticError, AttributeError, KeyError),
    *(RecursionError, TypeError, ValueError),
)


def of_run(method, state) -> Guarantee | PerWeight | None:
    """Returns the guarantee of a run's trained noise multiplier; None without noise.

    Args:
      method: ``Method``.
      state: training state of the method.
    """
    guarantee = method.guarantee
    if guarantee is None:
        return None
    return guarantee.trained_with(state)


def write(
    folder: str | os.PathLike, method, state, *, asked: int, accountant: str = "pld"
) -> None:
    """Writes ``privacy.json`` if the method has a guarantee.

    Args:
      folder: folder of the run.
      method: ``Method``.
      state: training state of the method.
      asked: requested rounds.
      accountant: "rdp" (fast) or "pld" (a smaller bound).
    """
    done = int(state.round)
    report = privacy_report(method, state, done, accountant)
    if report is not None:
        write_rounds(folder, report, done=done, begun=done, asked=asked)


def privacy_report(method, state, spent: int, accountant: str = "pld") -> dict | None:
    """Returns the report of a guarantee after some rounds; None without one.

    Args:
      method: ``Method``.
      state: training state of the method.
      spent: number of rounds.
      accountant: accountant; "pld" is used if "rdp" cannot bound the sampling.
    """
    guarantee = of_run(method, state)
    if guarantee is None:
        return None
    try:
        return guarantee.report(spent, accountant)
    except ValueError:
        return guarantee.report(spent)


def write_rounds(
    folder: str | os.PathLike, report: dict, *, done, begun, asked
) -> None:
    """Writes ``privacy.json`` with the report and numbers of rounds.

    Args:
      folder: folder of the run.
      report: result of ``privacy_report``.
      done: completed rounds of the state.
      begun: rounds that clients were invited to. They count as spent even if they
        failed.
      asked: total number of rounds requested.
    """
    failed = {"begun": begun} if begun > done else {}
    write_report(folder, report | {"rounds": {"done": done, **failed, "asked": asked}})


def rounds_spent(folder: str | os.PathLike | None, state) -> int:
    """Returns the number of rounds that spent budget, including failed rounds.

    Args:
      folder: folder of the run; failed rounds are unknown for None or without
        ``privacy.json``.
      state: training state of the method.

    Raises:
      ValueError: if ``privacy.json`` is damaged.
    """
    rounds = {} if folder is None else _rounds(folder)
    # The file is written before the checkpoint, which a kill may have prevented.
    return max(int(state.round), rounds.get("done", 0), rounds.get("begun", 0))


def check_not_served(folder: str | os.PathLike) -> None:
    """Raises ValueError for a run with failed rounds of a server.

    A local continuation would not count those rounds.

    Args:
      folder: folder of the run, which may not exist yet.
    """
    rounds = _rounds(folder)
    if "begun" in rounds:
        raise ValueError(
            f"the run in {folder} must be resumed by `jaxanon server --resume`, which "
            f"counts failed rounds: clients were invited to {rounds['begun']} rounds, "
            f"and {rounds.get('done', 0)} are done."
        )


def _rounds(folder):
    """Returns the numbers of rounds in ``privacy.json``; empty without the file."""
    if not (pathlib.Path(folder) / FILE).is_file():
        return {}
    return read(folder).get("rounds", {})


def write_report(folder: str | os.PathLike, report: dict) -> None:
    """Writes a guarantee's report to ``privacy.json``.

    Args:
      folder: folder of the run.
      report: result of a guarantee's ``report``.
    """
    path = pathlib.Path(folder) / FILE
    writing.write(path, json.dumps(report, indent=1) + "\n")


def read(folder: str | os.PathLike) -> dict:
    """Reads ``privacy.json`` of a run.

    Args:
      folder: folder of the run.

    Raises:
      FileNotFoundError: if the file is missing, because the run has no noise or no
        checkpoint.
      ValueError: if the file is damaged.
    """
    path = pathlib.Path(folder) / FILE
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{folder} does not exist; give the folder of a run.")
    if not path.is_file():
        raise FileNotFoundError(
            f"{folder} has no {FILE}: the run trains without noise, or was interrupted "
            "before its first checkpoint; if so, continue it with --resume."
        )
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        rounds = {name: int(value) for name, value in report.get("rounds", {}).items()}
        counts = {"rounds": rounds} if rounds else {}
        return report | {"epsilon": float(report["epsilon"])} | counts
    except _DAMAGED as error:
        raise ValueError(
            f"{path} is damaged ({error}); delete it, and `jaxanon evaluate` "
            "recomputes it from the checkpoint. That omits failed rounds of `jaxanon "
            "server`."
        ) from error
