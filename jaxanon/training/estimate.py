"""The expected duration of a training, measured before it begins."""

import time

import jax
import jax.numpy as jnp

from jaxanon.core import registry
from jaxanon.training import placement, progress

MIN_ROUNDS = 200  # Shorter trainings end before an estimate helps.


def announce(loop, state, key, rounds: int, *, show: bool) -> None:
    """Prints the expected minutes, and what shortens them.

    Runs two rounds on a copy of the state, which is then dropped: the first compiles
    the program that training uses, the second is timed. Training itself is unchanged.

    Args:
      loop: ``Loop`` of the training.
      state: the state to train, placed for ``loop.devices.call``; it stays valid.
      key: the run's key, placed for ``loop.devices.call``.
      rounds: the number of rounds left.
      show: whether to print; otherwise nothing runs.
    """
    if not show or rounds < MIN_ROUNDS or loop.method.place is not None:
        return
    progress.note("Compiling, then timing a round ...", show=True)
    copy = jax.tree.map(jnp.copy, state)
    for _ in range(2):
        start = time.monotonic()
        copy, *_ = loop.devices.call(key, copy, loop.devices.data, 1)
        jax.block_until_ready(copy)
        seconds = time.monotonic() - start
    progress.note(in_words(loop.method, rounds, rounds * seconds), show=True)


def in_words(method, rounds: int, seconds: float) -> str:
    """The announcement.

    Example:
      >>> import jaxanon as ja
      >>> method = ja.methods.obscurenet(ja.load("smartwatch").spec)
      >>> print(in_words(method, 3000, 240).partition(". ")[0][:52])
      Training takes about 4 minutes on this device: 3,000
    """
    minutes = seconds / 60
    length = f"{minutes:.0f} minutes" if minutes >= 1.5 else f"{seconds:.0f} seconds"
    unit = method.schedule.round_name
    told = f"Training takes about {length} on this device: {rounds:,} {unit}s."
    return told + _shorter(method)


def _shorter(method):
    ways = ["fewer epochs"]
    epochs = registry.default_epochs(method.name, method.recipe)
    if _has_fast(method) and method.recipe != "fast":
        fast = registry.default_epochs(method.name, "fast")
        ways.append(f"recipe fast ({fast} epochs in place of {epochs})")
    if jax.default_backend() == "cpu":
        ways.append("a GPU")
        if method.stages is not None and placement.num_devices() > 1:
            ways.append(f"num_devices up to {placement.num_devices()}")
    return f" Shorter: {', '.join(ways)}."


def _has_fast(method):
    try:
        return "fast" in registry.entry(method.name).recipes
    except ValueError:  # A method that is not registered.
        return False
