"""Local fine-tuning of a trained anonymizer on one client's windows."""

import jax
import jax.numpy as jnp

from jaxanon.core.programs import rounds_program


def personalise(method, key, state, clients, *, num_rounds: int = 80):
    """Fine-tunes ``state`` on the windows of ``clients`` only.

    Runs ``method.update`` with a cohort of one client, from the shared parameters and
    with a new optimizer state. No data or update leaves the client. A method with
    training phases runs its last phase.

    Args:
      method: ``Method``.
      key: typed PRNG key.
      state: trained state; it is not modified.
      clients: ``jaxanon.datasets.Clients`` with the client's labelled windows.
      num_rounds: number of local rounds, at least 1 (paper: 80).

    Returns:
      ``(state, info)``: the client's personal state, and the losses averaged over the
      rounds.

    Raises:
      ValueError: if ``num_rounds`` is below 1, or the windows do not fit the method.

    Example:
      >>> from jaxanon import datasets, methods
      >>> data = datasets.load("smartwatch")
      >>> small = {"hidden_sizes": (8,), "latent_dim": 2, "samples_per_class": 4}
      >>> quick = {"discriminator_steps": 0, "guided": False}
      >>> method = methods.blinder(data.spec, **small, **quick)
      >>> state = method.init(jax.random.key(0))
      >>> alone = jax.tree.map(lambda rows: rows[:1], datasets.by_client(data.train))
      >>> personal, info = personalise(
      ...     method, jax.random.key(1), state, alone, num_rounds=2)
      >>> int(personal.round)
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
    personal = state._replace(round=first, opt_state=zeros, params=params)
    # The rounds donate the buffers of their state.
    personal = jax.tree.map(jnp.copy, personal)
    rounds = rounds_program(method.update)
    personal, info, _ = rounds(key, personal, data, num_rounds)
    return personal, info
