"""Releases with a privacy guarantee: epsilon, clipping and budget."""

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
    """Returns a new typed PRNG key with 64 bits of the system's entropy.

    An attacker who can draw the noise again can subtract it. ``jax.random.key(seed)``
    has only 32 bits unless x64 is enabled, which a machine can enumerate.

    Example:
      >>> secret_key() == secret_key()
      Array(False, dtype=bool)
    """
    bits = np.frombuffer(secrets.token_bytes(8), np.uint32)
    return jax.random.wrap_key_data(jnp.asarray(bits), impl="threefry2x32")


def epsilon_of(run: Run) -> float | None:
    """Returns the ε of each released window, or None without a guarantee.

    Args:
      run: ``Run``, returned by ``train`` or ``open_run``.
    """
    release = run.method.release
    return None if release is None else release.epsilon


def with_epsilon(run: Run, epsilon: float | None = None) -> Run:
    """Returns a run that releases windows with another ε, without retraining.

    Args:
      run: ``Run`` of DEEProtect.
      epsilon: ε of each window, > 0; None keeps the trained value.

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
    """Returns a description of the windows that a release makes indistinguishable.

    Args:
      run: ``Run`` of a method with the capability ``release``, such as DEEProtect.

    Raises:
      ValueError: if the run's releases or its state have no guarantee.
    """
    return _guaranteed(run)[0].neighbours(run.state)


def _guaranteed(run) -> tuple[Release, float]:
    """Returns a run's release and its ε; raises ValueError if it has none."""
    release = run.method.release
    if release is None or release.epsilon is None:
        raise ValueError(
            f"epsilon must come from a run with a guarantee, got a run of "
            f"{run.method.name} without one; train deeprotect with a mechanism other "
            "than none."
        )
    return release, release.epsilon


def open_budget(
    run: Run, path: str | os.PathLike, total: float | None = None
) -> Budget:
    """Opens or creates the budget file of a run's releases.

    Args:
      run: ``Run`` of DEEProtect.
      path: path of the budget file.
      total: total ε of the stream; for an existing file the same value, or None.

    Raises:
      ValueError: if the run has no guarantee, or the file is of another budget.
      FileNotFoundError: if a known budget file is missing.
      TimeoutError: if another process holds the file for a minute.
    """
    return Budget(path, total, neighbours(run), wait_s=60.0)


def release(
    run: Run, key, windows, budget: Budget, *, progress=None
) -> tuple[np.ndarray, list[str]]:
    """Anonymizes windows and charges them to a budget.

    The charge follows the computation, so failed windows cost nothing. A process killed
    after the charge has spent it without releasing the windows.

    Args:
      run: ``Run`` of DEEProtect.
      key: secret typed PRNG key, a new one for every release.
      windows: ``float[N, time, channels]``, as for ``Run.anonymize``.
      budget: ``Budget`` from ``open_budget``.
      progress: callback of ``Run.anonymize``.

    Returns:
      ``(safe, statements)``: the windows, and sentences about the cost.

    Raises:
      ValueError: if the run has no guarantee, the budget is of other neighbours, or
        windows are invalid.
      TypeError: if key or windows have the wrong type.
      jaxanon.edge.Exhausted: if the budget is too small; nothing is charged.
      FileNotFoundError: if the budget file is missing.
      TimeoutError: if another process holds the budget file.
    """
    budget.check_neighbours(neighbours(run))
    _, epsilon = _guaranteed(run)
    budget.check(epsilon, len(np.atleast_1d(windows)))  # Fail before the computation.
    safe = run.anonymize(key, windows, progress=progress)
    left = budget.charge(epsilon, len(safe))
    spent = f"{budget.epsilon - left:g} of {budget.epsilon:g} is spent in {budget.path}"
    return safe, [*describe_release(run, windows), f"{spent}, {left:g} is left."]


def headline(run, windows) -> list[str]:
    """Returns a report's opening lines about a release; empty without one."""
    if not isinstance(run, Run) or run.method.release is None:
        return []
    statement, *rest = describe_release(run, windows)
    claim = statement.startswith("epsilon")
    return [f"Guarantee: {statement}" if claim else statement, *rest]


def describe_stream(
    run: Run, hop: int | None = None, *, known_seed: bool = False
) -> list[str]:
    """Returns sentences about the guarantee of a stream of overlapping windows.

    Args:
      run: any ``Run``; the list is empty if the method has no release.
      hop: samples between the starts of windows; None is half a window.
      known_seed: whether the noise can be drawn again and subtracted.
    """
    release, spec = run.method.release, run.spec
    if release is None:
        return []
    if release.epsilon is None or known_seed:
        return describe_release(run, None, known_seed=known_seed)
    hop = max(1, spec.time // 2) if hop is None else hop
    hour = epsilon_per_hour(release.epsilon, hop / spec.rate_hz)
    return [
        f"{release.before}epsilon {release.epsilon:g} for each window of "
        f"{spec.time / spec.rate_hz:g} s, between {neighbours(run)}; a window begins "
        f"every {hop / spec.rate_hz:g} s, so an hour has epsilon {hour:g}"
        f"{release.after}."
    ]


def describe_release(run: Run, windows, *, known_seed: bool = False) -> list[str]:
    """Returns sentences about a release's guarantee and clipping.

    Args:
      run: any ``Run``; the list is empty if the method has no release.
      windows: input windows of the release.
      known_seed: whether the noise can be drawn again and subtracted.
    """
    release, spec = run.method.release, run.spec
    if release is None:
        return []
    if release.epsilon is None or known_seed:
        why = "noise of a known seed can be subtracted" if known_seed else "no noise"
        return [f"No guarantee: {why}."]
    seconds = spec.time / spec.rate_hz
    hour = epsilon_per_hour(release.epsilon, seconds)
    return [
        f"{release.before}epsilon {release.epsilon:g} for each window of {seconds:g} "
        f"s, between {neighbours(run)}; {hour:g} for an hour of windows that do not "
        f"overlap{release.after}.",
        f"{release.clipped(windows)}.",
    ]
