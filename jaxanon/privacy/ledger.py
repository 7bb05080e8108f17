"""A run's privacy ledger: what its noise has spent so far, beside its checkpoints."""

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
    """The guarantee of a run's noise as it was trained with; None without noise.

    Args:
      method: ``Method``.
      state: of its training.
    """
    guarantee = method.guarantee
    if guarantee is None:
        return None
    return guarantee.trained_with(state)


def write(
    folder: str | os.PathLike, method, state, *, asked: int, accountant: str = "pld"
) -> None:
    """Writes ``privacy.json``, where there is a guarantee to write of.

    Args:
      folder: of the run.
      method, state: as ``of_run`` takes them.
      asked: rounds that the training was asked for.
      accountant: "rdp" while it goes on: quick, and above what "pld" finds.
    """
    done = int(state.round)
    told = told_of(method, state, done, accountant)
    if told is not None:
        keep_rounds(folder, told, done=done, begun=done, asked=asked)


def told_of(method, state, spent: int, accountant: str = "pld") -> dict | None:
    """What a guarantee says of so many rounds; None without one.

    Args:
      method, state: as ``of_run`` takes them.
      spent: rounds.
      accountant: of ``write``; where Rényi's divergences cannot tell of all lots it is
        "pld".
    """
    guarantee = of_run(method, state)
    if guarantee is None:
        return None
    try:
        return guarantee.told(spent, accountant)
    except ValueError:
        return guarantee.told(spent)


def keep_rounds(folder: str | os.PathLike, told: dict, *, done, begun, asked) -> None:
    """Writes ``privacy.json`` of what is told, with numbers of rounds.

    Args:
      folder: of the run.
      told: of ``told_of``.
      done: rounds of the state.
      begun: rounds that clients were asked to answer, which are spent whatever became
        of them.
      asked: rounds that the training was asked for.
    """
    vain = {"begun": begun} if begun > done else {}
    keep(folder, told | {"rounds": {"done": done, **vain, "asked": asked}})


def begun(folder: str | os.PathLike | None, state) -> int:
    """Rounds that a run's noise was spent on: those done, and those begun in vain.

    Args:
      folder: of the run; None, or one without ``privacy.json``, tells of none in vain.
      state: of its training.

    Raises:
      ValueError: as ``read``.
    """
    rounds = {} if folder is None else _rounds(folder)
    # Written before the checkpoint, which may never have come.
    return max(int(state.round), rounds.get("done", 0), rounds.get("begun", 0))


def refuse_served(folder: str | os.PathLike) -> None:
    """ValueError for a run that clients answered rounds of in vain.

    Who goes on with it at one place would count none of them.

    Args:
      folder: of the run, which may not be there yet.
    """
    rounds = _rounds(folder)
    if "begun" in rounds:
        raise ValueError(
            f"clients were asked for {rounds['begun']} rounds of the run in {folder}, "
            f"of which {rounds.get('done', 0)} are done, and what they sent is spent; "
            "go on by jaxanon server --resume, which counts it."
        )


def _rounds(folder):
    """What ``privacy.json`` says of rounds; nothing where there is none."""
    if not (pathlib.Path(folder) / FILE).is_file():
        return {}
    return read(folder).get("rounds", {})


def keep(folder: str | os.PathLike, told: dict) -> None:
    """Writes ``privacy.json`` of what is told.

    Args:
      folder: of the run.
      told: of a guarantee.
    """
    path = pathlib.Path(folder) / FILE
    writing.write(path, json.dumps(told, indent=1) + "\n")


def read(folder: str | os.PathLike) -> dict:
    """What ``privacy.json`` of a run says.

    Args:
      folder: of the run.

    Raises:
      FileNotFoundError: if there is none: the run has no noise, or no checkpoint.
      ValueError: if it is damaged.
    """
    path = pathlib.Path(folder) / FILE
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{folder} does not exist; name the folder of a run.")
    if not path.is_file():
        raise FileNotFoundError(
            f"{folder} has no {FILE}: the run there trains without noise, or was "
            "interrupted before it wrote one; if so, go on with it by --resume."
        )
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        rounds = {name: int(value) for name, value in told.get("rounds", {}).items()}
        more = {"rounds": rounds} if rounds else {}
        return told | {"epsilon": float(told["epsilon"])} | more
    except _DAMAGED as error:
        raise ValueError(
            f"{path} is damaged ({error}); delete it, and `jaxanon evaluate` reckons "
            "anew from the checkpoint, without what clients of `jaxanon server` sent "
            "for rounds that failed."
        ) from error
