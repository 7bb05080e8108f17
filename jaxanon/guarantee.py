"""Releases with a guarantee: their ε, what was clipped for it, and its budget."""

import dataclasses
import os
import pathlib
import secrets

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon import budget
from jaxanon.methods import build
from jaxanon.methods.deeprotect_range import outside
from jaxanon.privacy import per_hour
from jaxanon.run import Run


def secret_key() -> jax.Array:
    """A typed PRNG key of 64 bits from the system's entropy, another at every call.

    Noise hides nothing from whoever can draw it again. ``jax.random.key`` of a whole
    number has 32 bits unless 64 are switched on, which a machine goes through.

    Example:
      >>> secret_key() == secret_key()
      Array(False, dtype=bool)
    """
    bits = np.frombuffer(secrets.token_bytes(8), np.uint32)
    return jax.random.wrap_key_data(jnp.asarray(bits), impl="threefry2x32")


def epsilon_of(run: Run) -> float | None:
    """The ε of each window that a run releases; None where it guarantees nothing.

    Args:
      run: of ``train`` or ``open_run``.
    """
    config = run.method.config
    if getattr(config, "mechanism", "none") == "none":
        return None
    return config.epsilon


def with_epsilon(run: Run, epsilon: float | None = None) -> Run:
    """The run, releasing windows with another ε; nothing is trained anew.

    Args:
      run: of DEEProtect.
      epsilon: of each window, > 0; None: as it was trained.

    Raises:
      ValueError: if the run's releases have no ε, or ``epsilon`` is not > 0 and finite.
    """
    if epsilon_of(run) is None:
        raise ValueError(
            f"{run.method.name} gives no guarantee that an epsilon could be of; train "
            "deeprotect, with a mechanism other than none."
        )
    if epsilon is None:
        return run
    config = dataclasses.asdict(run.method.config) | {"epsilon": epsilon}
    return dataclasses.replace(run, method=build(run.method.name, run.spec, **config))


def open_budget(path: str | os.PathLike, total: float) -> budget.Ledger:
    """A budget in a file: a new one, or the one that is there.

    Raises:
      ValueError: if the file's total is another, or it holds no budget.
    """
    if not pathlib.Path(path).exists():
        return budget.create(path, total)
    ledger = budget.read(path)
    if ledger.total != total:
        raise ValueError(
            f"{path} has a budget of {ledger.total:g}, not {total:g}, and keeps it; "
            "leave --budget-total out, or name another file for another stream."
        )
    return ledger


def release(run: Run, key, windows, path) -> tuple[np.ndarray, list[str]]:
    """Windows that may leave, once a budget has paid for them.

    They are made first and paid for then, so that windows which could not be made cost
    nothing; whoever is killed in between has paid for what did not leave.

    Args:
      run: of DEEProtect.
      key: typed PRNG key, another one for every release.
      windows: ``float[N, time, channels]``, as ``Run.anonymize`` takes them.
      path: of ``jaxanon.budget``.

    Returns:
      ``(safe, told)``: the windows, and sentences that say what they cost.

    Raises:
      ValueError, TypeError: as ``with_epsilon`` and ``Run.anonymize``.
      jaxanon.budget.Spent: if too little is left; nothing is taken from it.
      FileNotFoundError: if there is no such budget.
    """
    epsilon = with_epsilon(run).method.config.epsilon
    safe = run.anonymize(key, windows)
    ledger = budget.spend(path, epsilon, len(safe))
    left = f"{ledger.spent:g} of {ledger.total:g} is spent in {path}"
    return safe, [*told(run, windows), f"{left}, {ledger.left:g} is left."]


def told(run: Run, windows) -> list[str]:
    """What a release guarantees and what it clipped, in sentences; none without an ε.

    Args:
      run: any.
      windows: what it was given.
    """
    epsilon = epsilon_of(run)
    if epsilon is None:
        return []
    config, spec = run.method.config, run.spec
    seconds = spec.time / spec.rate_hz
    hour = per_hour(epsilon, seconds)
    whom = {
        "everything": "any two windows",
        "named": "windows that differ along what tells " + ", ".join(spec.private),
    }[config.mode]
    numbers, count = outside(config, windows)
    return [
        f"epsilon {epsilon:g} for each window of {seconds:g} s, between {whom}; "
        f"{hour:g} for an hour of windows that do not overlap.",
        f"{numbers} numbers of {count} windows were outside the public range "
        f"{config.low} to {config.high}, and clipped to it.",
    ]
