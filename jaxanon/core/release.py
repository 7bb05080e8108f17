"""Releases with a guarantee: their ε, what was clipped for it, and its budget."""

import dataclasses
import os
import secrets
import zlib

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.core.run import Run
from jaxanon.edge.budget import ANY, Budget
from jaxanon.kernels import orthonormality_residual
from jaxanon.methods import build
from jaxanon.methods.deeprotect.config import outside
from jaxanon.methods.deeprotect.release import TOLERANCE
from jaxanon.privacy import per_hour

IDEALISED = "Idealised arithmetic, no guarantee in floating point"  # Of "span".


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
            f"{run.method.name} gives no guarantee, as it was trained, and so has no "
            "epsilon; train deeprotect, with a mechanism other than none."
        )
    if epsilon is None:
        return run
    config = dataclasses.asdict(run.method.config) | {"epsilon": epsilon}
    return dataclasses.replace(run, method=build(run.method.name, run.spec, **config))


def neighbours(run: Run) -> str:
    """Which windows a run's releases do not tell apart, in words.

    Args:
      run: of DEEProtect. In mode "named" the words end in a number of the directions,
        so that no two runs' budgets are taken for one.

    Raises:
      ValueError: as ``with_epsilon``, and if the weights' rows are not orthonormal or,
        in mode "named", no directions are known: nothing is guaranteed then.
    """
    config, params = with_epsilon(run).method.config, run.state.params
    layers = [params[name] for name in sorted(params) if name.startswith("layer")]
    worst = max(float(orthonormality_residual(layer.kernel)) for layer in layers)
    if not worst <= TOLERANCE:
        raise ValueError(
            f"the weights' rows are {worst:.1e} from orthonormal ones, and nothing is "
            f"guaranteed beyond {TOLERANCE:g}; train the run anew."
        )
    if config.mode == "everything":
        return ANY
    directions = np.asarray(params["named"].directions)
    if not np.any(directions):
        raise ValueError(
            "nothing tells the private attributes yet; train for an epoch at least."
        )
    number = zlib.crc32(directions.tobytes())
    hidden = ", ".join(run.spec.private)
    return f"windows that differ along what tells {hidden} ({number:08x})"


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
    epsilon = run.method.config.epsilon
    budget.check(epsilon, len(np.atleast_1d(windows)))  # Before there is work to lose.
    safe = run.anonymize(key, windows)
    left = budget.charge(epsilon, len(safe))
    spent = f"{budget.epsilon - left:g} of {budget.epsilon:g} is spent in {budget.path}"
    return safe, [*told(run, windows), f"{spent}, {left:g} is left."]


def headline(run, windows) -> list[str]:
    """The same of whatever was evaluated; nothing of what has no such settings."""
    config = getattr(getattr(run, "method", None), "config", None)
    if not hasattr(config, "mechanism"):
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
    config, spec = run.method.config, run.spec
    if not hasattr(config, "mechanism"):
        return []
    if epsilon_of(run) is None or known_seed:
        why = "the noise of a known seed can be taken off" if known_seed else "no noise"
        return [f"No guarantee: {why}."]
    epsilon, seconds = config.epsilon, spec.time / spec.rate_hz
    hour = per_hour(epsilon, seconds)
    numbers, count = outside(config, windows)
    reach = f"outside the public range {config.low} to {config.high}"
    clipped = f"no number was {reach}"
    if count:
        clipped = (
            f"{numbers} numbers of {count} windows were {reach}, and clipped to it"
        )
    if config.mode == "named" and count:
        clipped += "; what is said of neighbours is of windows after that"
    idealised = f"{IDEALISED}: " if config.mechanism == "span" else ""
    return [
        f"{idealised}epsilon {epsilon:g} for each window of {seconds:g} s, between "
        f"{neighbours(run)}; {hour:g} for an hour of windows that do not overlap"
        f"{_on_paper(config)}.",
        f"{clipped[0].upper()}{clipped[1:]}.",
    ]


def _on_paper(config):
    if config.mechanism in ("grid", "span"):
        return ""
    return "; on paper: only mechanism grid accounts for floating point"
