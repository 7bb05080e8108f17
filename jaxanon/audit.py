"""Audits of federated algorithms: what the server can tell of a client's examples."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon import attacks, federated
from jaxanon.kernels.checks import one_of

VIEWS = ("each", "mean")


def known_layers(before, message):
    """Of Atlas: what was sent, and for the rest what the server has.

    Of a mean over clients the flags are shares of those who sent a layer, of whom alone
    it is the mean.
    """
    sent, flags = message
    keep = lambda name: (
        lambda new, old: jnp.where(
            flags[name] > 0, new / jnp.where(flags[name] > 0, flags[name], 1), old
        )
    )
    of = lambda name: jax.tree.map(keep(name), sent[name], before[name])
    return {name: of(name) for name in before}, flags


# ``(before, message) -> (params that the client is known to have, flags)``.
MESSAGES = {
    "params": lambda before, message: (message, {}),
    "moves": lambda before, message: (
        jax.tree.map(jnp.subtract, before, message),
        {},
    ),
    "layers": known_layers,
}


def observer(
    algorithm,
    loss_fn: Callable,
    state: Any,
    clients,
    *,
    client: int,
    rows,
    num_rounds: int,
    messages: str = "params",
    view: str = "each",
    apply_fn: Callable | None = None,
) -> Callable:
    """What somebody who reads what clients send makes of one client's row.

    For ``attacks.shadow``: ``(key, example, member) -> dict of float[statistics]`` runs
    ``num_rounds`` rounds with row ``rows[example]`` of the client or without it, all
    others as they are, which is what "an example more or less" means. In every round he
    compares what came back with what the server had sent out, at which he takes the
    example's gradient:

    - ``"updates"``: how far each layer moved along that gradient, and which layers were
      sent at all;
    - ``"outputs"``, with ``apply_fn``: log-odds that the model which was sent gives to
      the example's class.

    What the client weighs is left out: where it counts rows, it tells at once whether
    there was one more, to whoever knows all others.

    Args:
      algorithm: ``FederatedAlgorithm`` with ``sent``, or a learner.
      loss_fn: ``(params, batch, key) -> float[B]``, with a dict of layers.
      state: of ``algorithm.init``, from which all runs begin; public.
      clients: ``Population`` of the algorithm.
      client: whose rows are in question.
      rows: ``int[examples]``, real rows of that client.
      num_rounds: rounds that he watches.
      messages: one of ``MESSAGES``, by what the algorithm's clients send: "params",
        "moves" (FedAvg; of FedSGD gradients) or "layers" (Atlas).
      view: "each", he has that client's own messages, as the server does; "mean", the
        weighted mean over the cohort alone.
      apply_fn: ``(params, x) -> float[B, classes]``, of rows ``{"x": ..., "y": ...}``.

    Raises:
      ValueError: for other messages or another view, a client that there is not, and
        rows that are not the client's.

    Example:
      >>> from jaxanon.federated import stack
      >>> loss = lambda p, x, key: 0.5 * (p["w"] - x) ** 2
      >>> algorithm = federated.fed_avg(
      ...     lambda key: {"w": jnp.zeros(())}, loss, num_steps=1)
      >>> state = algorithm.init(jax.random.key(0), step_size=1.0)
      >>> clients = stack([jnp.array([2.0, 8.0]), jnp.array([0.0])])
      >>> see = observer(algorithm, loss, state, clients, client=0, rows=[1],
      ...                num_rounds=1, messages="moves")
      >>> see(jax.random.key(1), 0, True)["updates"]  # It moved to 5, against -8.
      Array([5.], dtype=float32)
      >>> see(jax.random.key(1), 0, False)["updates"]
      Array([2.], dtype=float32)

    References:
      Nasr, Shokri and Houmansadr, Comprehensive privacy analysis of deep learning, S&P
      2019; Carlini et al., S&P 2022.
    """
    one_of("messages", messages, sorted(MESSAGES))
    one_of("view", view, VIEWS)
    real, rows = np.asarray(clients.mask), np.asarray(rows)
    if not 0 <= client < len(real):
        raise ValueError(f"client must be in [0, {len(real)}), got {client!r}.")
    there = {int(row) for row in np.flatnonzero(real[client])}
    missing = [int(row) for row in rows if int(row) not in there]
    if missing:
        raise ValueError(
            f"client {client} has no rows {missing}; take some of its own."
        )
    rows = jnp.asarray(rows)
    read, whose = MESSAGES[messages], client if view == "each" else None

    def observe(key, example, member):
        row = rows[example]
        own = jax.tree.map(lambda leaf: leaf[client, row][None], clients.rows)
        mask = clients.mask.at[client, row].set(member)
        run_key, loss_key = jax.random.split(key)
        _, seen = federated.observed(
            algorithm, run_key, state, clients._replace(mask=mask), num_rounds, whose
        )

        def of_round(before, message):
            params, flags = read(before, message)
            mean = lambda params: jnp.mean(loss_fn(params, own, loss_key))
            moved = jax.tree.map(jnp.subtract, before, params)
            told = attacks.alignments(moved, jax.grad(mean)(before))
            sent = jnp.array([flags[name] for name in sorted(flags)], jnp.float32)
            found = {"updates": jnp.concatenate([told, sent])}
            if apply_fn is not None:
                logits = apply_fn(params, own["x"])[0]
                found["outputs"] = attacks.log_odds(logits, own["y"][0])[None]
            return found

        found = jax.vmap(of_round)(seen.before, seen.message)
        return jax.tree.map(jnp.ravel, found)

    return observe


def audit(
    key,
    observe: Callable,
    num_examples: int,
    runs: int,
    *,
    delta: float,
    spread: str = "own",
    confidence: float = 0.95,
    chunk: int | None = None,
) -> dict[str, attacks.Membership]:
    """Tells members by everything that was observed, each statistic by itself.

    Args:
      key: typed PRNG key.
      observe: of ``observer``.
      num_examples: of its rows.
      runs: of each example and side; half of them teach, half are told.
      delta, spread, confidence: as ``attacks.infer_members`` takes them.
      chunk: as ``attacks.shadow`` takes it.

    Returns:
      ``attacks.Membership`` by name of the statistics.

    Raises:
      ValueError: as those two.

    Example:
      A sum of one clipped gradient and as much noise, sent once, is worth ε = 3.1 at
      δ = 0.001, of which 2,000 runs prove a part; without noise they are told apart.

      >>> from jaxanon.federated import Lots, fed_sgd_ldp, stack
      >>> every = Lots(sampling_probability=1.0, size=1.0, records=2)
      >>> loss = lambda p, x, key: p["w"] * x
      >>> algorithm = fed_sgd_ldp(lambda key: {"w": jnp.zeros(())}, loss, lots=every,
      ...                         num_steps=1, num_clients=1)
      >>> clients = stack([jnp.array([0.0, 9.0])])
      >>> for multiplier in (1.0, 0.0):
      ...     state = algorithm.init(jax.random.key(0), noise_multiplier=multiplier)
      ...     see = observer(algorithm, loss, state, clients, client=0, rows=[1],
      ...                    num_rounds=1)
      ...     found = audit(jax.random.key(1), see, 1, 2000, delta=1e-3)["updates"]
      ...     print(1 < found.epsilon < 3.1, found.auc > 0.99)
      True False
      False True

    References:
      Jagielski, Ullman and Oprea, Auditing differentially private machine learning,
      NeurIPS 2020; Nasr et al., Tight auditing of differentially private machine
      learning, USENIX Security 2023.
    """
    seen = attacks.shadow(key, observe, num_examples, runs, chunk=chunk)
    options = {"delta": delta, "spread": spread, "confidence": confidence}
    return {name: attacks.infer_members(x, **options) for name, x in seen.items()}
