"""A run's privacy ledger: what its noise has spent so far, beside its checkpoints."""

import json
import os
import pathlib

from jaxanon.datasets import writing
from jaxanon.learners.guarantee import Guarantee, PerWeight

FILE = "privacy.json"


def of_run(method, state) -> Guarantee | PerWeight | None:
    """The guarantee of a run's noise as it was trained with; None without noise.

    Args:
      method: ``Learner`` or ``Method``.
      state: of its training.
    """
    guarantee = getattr(method, "guarantee", None)
    if guarantee is None:
        return None
    return guarantee.trained_with(state)


def write(
    folder: str | os.PathLike,
    method,
    state,
    *,
    asked: int,
    accountant: str = "pld",
    begun: int = 0,
) -> None:
    """Writes ``privacy.json``, where there is a guarantee to write of.

    Args:
      folder: of the run.
      method, state: as ``of_run`` takes them.
      asked: rounds that the training was asked for.
      accountant: "rdp" while it goes on: quick, and above what "pld" finds.
      begun: rounds that clients were asked to answer, where those are more than were
        done: what they sent is spent, whatever became of it.
    """
    guarantee = of_run(method, state)
    if guarantee is not None:
        done = int(state.round)
        spent = max(done, begun)
        try:
            told = guarantee.told(spent, accountant)
        except ValueError:  # Rényi's divergences cannot tell of all lots.
            told = guarantee.told(spent)
        vain = {"begun": spent} if spent > done else {}
        keep(folder, told | {"rounds": {"done": done, **vain, "asked": asked}})


def begun(folder: str | os.PathLike | None, state) -> int:
    """Rounds that a run's noise was spent on: those done, and those begun in vain.

    Args:
      folder: of the run; None, or one without ``privacy.json``, tells of none in vain.
      state: of its training.

    Raises:
      ValueError: as ``read``.
    """
    done = int(state.round)
    if folder is None or not (pathlib.Path(folder) / FILE).is_file():
        return done
    return max(done, read(folder).get("rounds", {}).get("begun", done))


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
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} is damaged ({error}); delete it, and `jaxanon evaluate` reckons "
            "anew from the checkpoint."
        ) from error
