"""A trained anonymizer, adapted to one client's own windows."""

import jax
import jax.numpy as jnp

from jaxanon.core.programs import rounds_program


def personalise(method, key, state, clients, *, num_rounds: int = 80):
    """Trains on from ``state`` on the windows of ``clients`` alone, on the device.

    The rounds are those of ``method.update`` with nobody else in the cohort, from the
    shared parameters and with a fresh optimizer; nothing leaves the client. A method
    that trains in phases is in its last one.

    Args:
      method: ``Method``.
      key: typed PRNG key.
      state: what training returned; it stays as it is.
      clients: ``jaxanon.datasets.Clients`` with the client's few labelled windows.
      num_rounds: local rounds, at least 1 (paper: 80).

    Returns:
      ``(state, info)``: the client's own state, to anonymize with, and the means of the
      losses over the rounds.

    Raises:
      ValueError: if ``num_rounds`` is below 1, or the windows do not fit the method.

    Example:
      >>> from jaxanon import datasets, methods
      >>> data = datasets.load("smartwatch")
      >>> small = {"hidden": (8,), "latent": 2, "per_class": 4, "shadows": False}
      >>> quick = {"second_order": False, "discriminator_steps": 0, "guided": False}
      >>> method = methods.blinder(data.spec, **small, **quick)
      >>> state = method.init(jax.random.key(0))
      >>> alone = jax.tree.map(lambda rows: rows[:1], datasets.by_client(data.train))
      >>> own, info = personalise(
      ...     method, jax.random.key(1), state, alone, num_rounds=2)
      >>> int(own.round)
      2

    References:
      Yang and Ardakanian, Blinder, ACM TOSN 2023, section 7.9.
    """
    if num_rounds < 1:
        raise ValueError(f"num_rounds must be >= 1, got {num_rounds!r}.")
    fresh = jax.eval_shape(method.init, key).opt_state
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), fresh)
    params = state.params if state.average is None else state.average
    data = method.prepare(clients)
    schedule = method.schedule
    first = (schedule.min_epochs - 1) * schedule.rounds_per_epoch(data)
    first = jnp.asarray(max(first, schedule.min_rounds), jnp.int32)
    own = state._replace(round=first, opt_state=zeros, params=params)
    # Copied, for the rounds give the buffers of their state away.
    own = jax.tree.map(jnp.copy, own)
    rounds = rounds_program(method.update)
    own, info, _ = rounds(key, own, data, num_rounds)
    return own, info
