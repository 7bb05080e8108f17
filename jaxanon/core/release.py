"""Releases with a guarantee: their ε, what was clipped for it, and its budget."""

import dataclasses
import os
import secrets

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.core import registry
from jaxanon.core.method import Release
from jaxanon.core.run import Run
from jaxanon.edge.budget import Budget
from jaxanon.privacy import epsilon_per_hour


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
    release = run.method.release
    return None if release is None else release.epsilon


def with_epsilon(run: Run, epsilon: float | None = None) -> Run:
    """The run, releasing windows with another ε; nothing is trained anew.

    Args:
      run: of DEEProtect.
      epsilon: of each window, > 0; None: as it was trained.

    Raises:
      ValueError: if the run's releases have no ε, or ``epsilon`` is not > 0 and finite.
    """
    _guaranteed(run)
    if epsilon is None:
        return run
    config = dataclasses.replace(run.method.config, epsilon=epsilon)
    method = registry.rebuild(run.method.name, run.spec, config, run.method.recipe)
    return dataclasses.replace(run, method=method)


def neighbours(run: Run) -> str:
    """Returns the windows that a run's releases do not distinguish, in words.

    Args:
      run: of a method with the capability ``release``, such as DEEProtect.

    Raises:
      ValueError: as ``with_epsilon``, and if the state guarantees nothing.
    """
    return _guaranteed(run)[0].neighbours(run.state)


def _guaranteed(run) -> tuple[Release, float]:
    """A run's release and its ε; ValueError if it has none."""
    release = run.method.release
    if release is None or release.epsilon is None:
        raise ValueError(
            f"{run.method.name} gives no guarantee, as it was trained, and so has no "
            "epsilon; train deeprotect, with a mechanism other than none."
        )
    return release, release.epsilon


def open_budget(
    run: Run, path: str | os.PathLike, total: float | None = None
) -> Budget:
    """A budget in a file for a run's releases: a new one, or the one that is there.

    Args:
      run: of DEEProtect.
      path: of the file.
      total: ε that the stream may cost in all; of a file that is there, what it was
        made with, or None.

    Raises:
      ValueError, FileNotFoundError, TimeoutError: as ``jaxanon.edge.Budget``, which
        waits for a minute here; and as ``neighbours``.
    """
    return Budget(path, total, neighbours(run), wait_s=60.0)


def release(run: Run, key, windows, budget: Budget) -> tuple[np.ndarray, list[str]]:
    """Windows that may leave, once a budget has paid for them.

    They are made first and paid for then, so that windows which could not be made cost
    nothing; whoever is killed after paying has paid for what did not leave.

    Args:
      run: of DEEProtect.
      key: typed PRNG key that nobody knows, another one for every release.
      windows: ``float[N, time, channels]``, as ``Run.anonymize`` takes them.
      budget: of ``open_budget``.

    Returns:
      ``(safe, told)``: the windows, and sentences that say what they cost.

    Raises:
      ValueError, TypeError: as ``neighbours``, ``Budget.charge`` and
        ``Run.anonymize``.
      jaxanon.edge.Exhausted: if too little is left; nothing is taken from it.
      FileNotFoundError, TimeoutError: as ``Budget.charge``.
    """
    budget.check_neighbours(neighbours(run))
    _, epsilon = _guaranteed(run)
    budget.check(epsilon, len(np.atleast_1d(windows)))  # Before there is work to lose.
    safe = run.anonymize(key, windows)
    left = budget.charge(epsilon, len(safe))
    spent = f"{budget.epsilon - left:g} of {budget.epsilon:g} is spent in {budget.path}"
    return safe, [*told(run, windows), f"{spent}, {left:g} is left."]


def headline(run, windows) -> list[str]:
    """Returns what a report says first of a run's release; nothing without one."""
    if not isinstance(run, Run) or run.method.release is None:
        return []
    what, *rest = told(run, windows)
    claim = what.startswith("epsilon")
    return [f"Guarantee: {what}" if claim else what, *rest]


def told(run: Run, windows, *, known_seed: bool = False) -> list[str]:
    """What a release guarantees and what it clipped, in sentences.

    Args:
      run: any; of one that never guarantees anything nothing is said.
      windows: what it was given.
      known_seed: whether its noise can be drawn again, and so taken off.
    """
    release, spec = run.method.release, run.spec
    if release is None:
        return []
    if release.epsilon is None or known_seed:
        why = "the noise of a known seed can be taken off" if known_seed else "no noise"
        return [f"No guarantee: {why}."]
    seconds = spec.time / spec.rate_hz
    hour = epsilon_per_hour(release.epsilon, seconds)
    return [
        f"{release.before}epsilon {release.epsilon:g} for each window of {seconds:g} "
        f"s, between {neighbours(run)}; {hour:g} for an hour of windows that do not "
        f"overlap{release.after}.",
        f"{release.clipped(windows)}.",
    ]
