"""Audits of noise that hides clients: one set of rows, or another in its place."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxanon.audit import known_layers
from jaxanon.kernels.checks import one_of


def _sums(before, after):
    """How far each layer went, its numbers added up."""
    ways = jax.tree.map(lambda new, old: jnp.sum(new - old), after, before)
    return jax.tree.leaves(ways)


def _of_layers(before, after, message, client):
    known, flags = known_layers(before.params, message)
    told = _sums(before.params, known) + [flags[name] for name in sorted(flags)]
    return told + [leaf[client] for leaf in jax.tree.leaves(after.own.logits)]


# ``(before, after, message, client) -> list of numbers``.
SEEN = {
    "params": lambda before, after, message, client: _sums(before.params, message),
    "layers": _of_layers,
    "released": lambda before, after, message, client: [
        *_sums(before.params, after.params),
        *jax.tree.leaves(after.server),
    ],
}


def client_observer(
    algorithm,
    state: Any,
    worlds,
    *,
    num_rounds: int,
    sees: str = "params",
    client: int = 0,
) -> Callable:
    """What somebody makes of a client that has one set of rows, or another, or none.

    For ``attacks.shadow``, as ``observer``: a "member" is a run on the second of two
    populations. In every round he takes, of each layer, the sum of what its numbers
    went by: the best there is where rows pull all of them alike, as those should who
    are to be told apart. He sees

    - ``"params"``, the client's trained layers (LDP-FL, FedSGD-LDP);
    - ``"layers"``, those it sends, which they are, and scores that are released by
      themselves (Atlas);
    - ``"released"``, no client's message, but what the server makes of all of them: its
      parameters, and its clip norm (DP-FedAvg).

    Args:
      algorithm: ``FederatedAlgorithm``, or a learner.
      state: of ``algorithm.init``, from which all runs begin; public.
      worlds: two ``Population`` of the same shapes, alike but for one client.
      num_rounds: that he watches.
      sees: one of ``SEEN``.
      client: whose messages.

    Raises:
      ValueError: for another word, or a client that there is not.

    Example:
      One weight at either end of its range, sent as one of two values with ε = 1:

      >>> from jaxanon.audit import audit
      >>> from jaxanon.federated import Steps, ldp_fl, stack
      >>> loss = lambda p, x, key: p["w"] * x
      >>> algorithm = ldp_fl(lambda key: {"w": jnp.zeros(())}, loss,
      ...                    Steps(num_steps=1), radii=1.0, num_clients=1)
      >>> state = algorithm.init(jax.random.key(0), step_size=1.0, weight_epsilon=1.0)
      >>> worlds = [stack([jnp.array([x])]) for x in (-9.0, 9.0)]
      >>> see = client_observer(algorithm, state, worlds, num_rounds=1)
      >>> found = audit(jax.random.key(1), see, 1, 4000, delta=1e-5, spread="pooled")
      >>> 0.7 < found["seen"].epsilon < 1.0
      True

    References:
      As ``jaxanon.audit.audit``.
    """
    one_of("sees", sees, sorted(SEEN))
    if not 0 <= client < len(worlds[0].mask):
        raise ValueError(
            f"client must be in [0, {len(worlds[0].mask)}), got {client!r}."
        )

    def observe(key, example, member):
        del example  # There is one pair of worlds.
        clients = jax.tree.map(lambda a, b: jnp.where(member, b, a), *worlds)

        def one_round(before, _):
            message = None
            if sees != "released":
                message, _ = algorithm.sent(key, before, clients, client)
            after, _ = algorithm.update(key, before, clients)
            told = SEEN[sees](before, after, message, client)
            return after, jnp.stack([jnp.asarray(x, jnp.float32) for x in told])

        _, seen = jax.lax.scan(one_round, state, length=num_rounds)
        return {"seen": seen.ravel()}

    return observe
