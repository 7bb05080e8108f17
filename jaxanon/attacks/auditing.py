"""Audits: lower bounds on a training's ε from canaries and messages."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon import federated, metrics
from jaxanon.attacks import membership
from jaxanon.kernels.checks import one_of


class Canaries(NamedTuple):
    """Guesses about the canaries of one run, and the bound that they prove."""

    right: int
    guesses: int
    epsilon: float  # lower bound


def one_run(
    key,
    observe: Callable,
    num_canaries: int,
    *,
    guesses: int,
    delta: float,
    confidence: float = 0.95,
) -> Canaries:
    """Runs once with a random half of the canaries and guesses which were included.

    One training replaces thousands if there are many canaries that hardly affect one
    another, such as examples with orthogonal gradients. Its bound is weaker than that
    of ``shadow`` and ``infer_members``.

    Args:
      key: typed PRNG key of the coins and of the run.
      observe: ``(key, inside) -> float[canaries]``, evidence for each canary from the
        released results of a run. The run includes the canaries in ``inside``,
        ``bool[canaries]``. Traced once.
      num_canaries: number of canaries, at least 1.
      guesses, delta, confidence: see ``guess_canaries``.

    Returns:
      ``Canaries``.

    Raises:
      ValueError: if a number is below 1; see also ``guess_canaries``.

    Example:
      Randomized response on bits, with flip probability 1 / (1 + e^2):

      >>> def flipped(key, inside):
      ...     kept = jax.random.bernoulli(key, jax.nn.sigmoid(2.0), inside.shape)
      ...     return 1.0 * (kept == inside)
      >>> found = one_run(jax.random.key(0), flipped, 4000, guesses=2000, delta=0.0)
      >>> 1.7 < found.epsilon <= 2.0
      True

    References:
      Steinke, Nasr and Jagielski, Privacy auditing with one (1) training run, NeurIPS
      2023, algorithm 1.
    """
    if num_canaries < 1:
        raise ValueError(f"num_canaries must be >= 1, got {num_canaries!r}.")
    coin_key, run_key = jax.random.split(key)
    inside = jax.random.bernoulli(coin_key, shape=(num_canaries,))
    evidence = jax.jit(observe)(run_key, inside)
    options = {"guesses": guesses, "delta": delta, "confidence": confidence}
    return guess_canaries(evidence, inside, **options)


def guess_canaries(
    evidence, inside, *, guesses: int, delta: float, confidence: float = 0.95
) -> Canaries:
    """Guesses "in" for canaries with the most evidence, "out" for those with the least.

    Canaries in between are not guessed, because uncertain guesses lower the fraction of
    right ones. The bound requires that the coins are fair and secret, that each canary
    is one unit of the neighboring relation, and that ``guesses`` is chosen before the
    run.

    Args:
      evidence: ``float[canaries]``, evidence that each canary was included.
      inside: ``bool[canaries]``, whether it was.
      guesses: number of guesses, half of them "in"; from 1 to all.
      delta: δ at which ε is bounded.
      confidence: confidence of the bound.

    Returns:
      ``Canaries``, with ``epsilon`` from ``metrics.epsilon_from_guesses``.

    Raises:
      ValueError: if shapes differ, evidence is NaN, or ``guesses`` is out of range; see
        also ``metrics.epsilon_from_guesses``.

    Example:
      >>> seen = np.array([0.9, 0.1, 0.4, -3.0])
      >>> guess_canaries(seen, np.array([1, 1, 0, 0]), guesses=2, delta=0.0)
      Canaries(right=2, guesses=2, epsilon=0.0)

    References:
      Section 5 of the reference of ``one_run``.
    """
    evidence, inside = np.asarray(evidence, np.float64), np.asarray(inside, bool)
    if evidence.ndim != 1 or evidence.shape != inside.shape:
        raise ValueError(
            "evidence and inside must be [canaries], got shapes "
            f"{evidence.shape} and {inside.shape}."
        )
    if np.isnan(evidence).any():
        raise ValueError("evidence must be numbers, got NaN; did the run diverge?")
    if not 1 <= guesses <= len(evidence):
        raise ValueError(
            f"guesses must be in [1, {len(evidence)}], the number of canaries, got "
            f"{guesses!r}."
        )
    order = np.argsort(evidence, kind="stable")
    low = guesses // 2
    out, into = order[:low], order[len(order) - (guesses - low) :]
    right = int((~inside[out]).sum() + inside[into].sum())
    bound = metrics.epsilon_from_guesses(
        right, guesses, len(evidence), delta, confidence=confidence
    )
    return Canaries(right, guesses, bound)


VIEWS = ("each", "mean")


def known_layers(before, message):
    """Returns the layers that an Atlas message reveals, and the flags of sent layers.

    Layers that were not sent keep the server's values. In a mean over clients, flags
    are the fractions of clients that sent a layer, and layers are means over those.
    """
    sent, flags = message
    keep = lambda name: (
        lambda new, old: jnp.where(
            flags[name] > 0, new / jnp.where(flags[name] > 0, flags[name], 1), old
        )
    )
    layer = lambda name: jax.tree.map(keep(name), sent[name], before[name])
    return {name: layer(name) for name in before}, flags


# ``(before, message) -> (the client's params as revealed by the message, flags)``.
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
    """Builds the view of an attacker that reads messages, for one client's row.

    The result is an ``observe`` function for ``attacks.shadow``: ``(key, example,
    member) -> dict of float[statistics]``. It simulates ``num_rounds`` rounds with or
    without the client's row ``rows[example]``; all other rows stay. Each round, it
    compares the message with the parameters that the server had sent out, at which it
    computes the example's gradient:

    - ``"updates"``: how far each layer moved along the gradient, and which layers were
      sent;
    - ``"outputs"``, with ``apply_fn``: log-odds of the example's class under the
      revealed model.

    The client's weight is not used, because a weight that counts rows would reveal
    membership immediately.

    Args:
      algorithm: ``FederatedAlgorithm`` with ``sent``, such as a learner's.
      loss_fn: ``(params, batch, key) -> float[B]``, with a dict of layers.
      state: public state from ``algorithm.init`` with which all runs start.
      clients: ``Population`` of the algorithm.
      client: index of the client under attack.
      rows: ``int[examples]``, indices of real rows of that client.
      num_rounds: number of observed rounds.
      messages: one of ``MESSAGES``, the type of the algorithm's messages: "params",
        "moves" (FedAvg; gradients of FedSGD) or "layers" (Atlas).
      view: "each" shows the client's own messages, as to the server. "mean" shows only
        the weighted mean over the cohort.
      apply_fn: ``(params, x) -> float[B, classes]``, for rows ``{"x": ..., "y": ...}``.

    Raises:
      ValueError: if ``messages``, ``view`` or ``client`` is invalid, or a row is not
        the client's.

    Example:
      >>> from jaxanon.federated import stack
      >>> loss = lambda p, x, key: 0.5 * (p["w"] - x) ** 2
      >>> algorithm = federated.fedavg(
      ...     lambda key: {"w": jnp.zeros(())}, loss,
      ...     steps=federated.Steps(num_steps=1))
      >>> state = algorithm.init(jax.random.key(0), learning_rate=1.0)
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
    real_rows = {int(row) for row in np.flatnonzero(real[client])}
    missing = [int(row) for row in rows if int(row) not in real_rows]
    if missing:
        raise ValueError(
            f"client {client} has no rows {missing}; choose existing rows."
        )
    rows = jnp.asarray(rows)
    reveal, viewed = MESSAGES[messages], client if view == "each" else None

    def observe(key, example, member):
        row = rows[example]
        batch = jax.tree.map(lambda leaf: leaf[client, row][None], clients.rows)
        mask = clients.mask.at[client, row].set(member)
        run_key, loss_key = jax.random.split(key)
        _, seen = federated.simulate_observed(
            algorithm, run_key, state, clients._replace(mask=mask), num_rounds, viewed
        )

        def one_round(before, message):
            params, flags = reveal(before, message)
            mean = lambda params: jnp.mean(loss_fn(params, batch, loss_key))
            moved = jax.tree.map(jnp.subtract, before, params)
            aligned = membership.alignments(moved, jax.grad(mean)(before))
            sent = jnp.array([flags[name] for name in sorted(flags)], jnp.float32)
            statistics = {"updates": jnp.concatenate([aligned, sent])}
            if apply_fn is not None:
                logits = apply_fn(params, batch["x"])[0]
                outputs = membership.log_odds(logits, batch["y"][0])[None]
                statistics["outputs"] = outputs
            return statistics

        statistics = jax.vmap(one_round)(seen.before, seen.message)
        return jax.tree.map(jnp.ravel, statistics)

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
) -> dict[str, membership.Membership]:
    """Infers members from each observed statistic separately.

    Args:
      key: typed PRNG key.
      observe: function from ``observer``.
      num_examples: number of the observer's rows.
      runs: number of runs per example and side. Half of them are used for learning.
      delta, spread, confidence: see ``attacks.infer_members``.
      chunk: see ``attacks.shadow``.

    Returns:
      ``attacks.Membership`` by name of the statistic.

    Raises:
      ValueError: see ``attacks.infer_members`` and ``attacks.shadow``.

    Example:
      One clipped gradient with noise multiplier 1, sent once, has ε = 3.1 at δ = 0.001.
      2,000 runs prove a part of it; without noise, members are fully distinguished.

      >>> from jaxanon.federated import PoissonSampling, Steps, fedsgd_ldp, stack
      >>> every = PoissonSampling(
      ...     sampling_probability=1.0, expected_batch_size=1.0, max_examples=2)
      >>> loss = lambda p, x, key: p["w"] * x
      >>> algorithm = fedsgd_ldp(lambda key: {"w": jnp.zeros(())}, loss, lots=every,
      ...                        steps=Steps(num_steps=1), num_clients=1)
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
    seen = membership.shadow(key, observe, num_examples, runs, chunk=chunk)
    options = {"delta": delta, "spread": spread, "confidence": confidence}
    return {name: membership.infer_members(x, **options) for name, x in seen.items()}


def _sums(before, after):
    """Returns the sum of each layer's change."""
    changes = jax.tree.map(lambda new, old: jnp.sum(new - old), after, before)
    return jax.tree.leaves(changes)


def _layer_statistics(before, after, message, client):
    known, flags = known_layers(before.params, message)
    sums = _sums(before.params, known) + [flags[name] for name in sorted(flags)]
    return sums + [leaf[client] for leaf in jax.tree.leaves(after.own.logits)]


# ``(before, after, message, client) -> list of numbers``.
SEEN = {
    "params": lambda before, after, message, client: _sums(before.params, message),
    "layers": _layer_statistics,
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
    """Builds the view of an attacker that distinguishes two versions of one client.

    The result is an ``observe`` function for ``attacks.shadow``, as from ``observer``.
    A "member" is a run on the second of two populations. The statistic of a layer in a
    round is the sum of its changes, which is optimal if the rows move all its numbers
    equally. ``sees`` selects the view:

    - ``"params"``: the client's trained layers (LDP-FL, FedSGD-LDP);
    - ``"layers"``: the layers that it sends, which ones they are, and separately
      released scores (Atlas);
    - ``"released"``: the server's aggregate parameters and clip norm, but no client's
      message (DP-FedAvg).

    Args:
      algorithm: ``FederatedAlgorithm``, such as a learner's.
      state: public state from ``algorithm.init`` with which all runs start.
      worlds: two ``Population`` of the same shapes that differ in one client.
      num_rounds: number of observed rounds.
      sees: one of ``SEEN``.
      client: index of the client.

    Raises:
      ValueError: if ``sees`` or ``client`` is invalid.

    Example:
      One weight at either end of its range, randomized to two values with ε = 1:

      >>> from jaxanon.attacks.auditing import audit
      >>> from jaxanon.federated import Steps, ldp_fl, stack
      >>> loss = lambda p, x, key: p["w"] * x
      >>> algorithm = ldp_fl(lambda key: {"w": jnp.zeros(())}, loss,
      ...                    steps=Steps(num_steps=1), radii=1.0, num_clients=1)
      >>> state = algorithm.init(jax.random.key(0), learning_rate=1.0,
      ...                        weight_epsilon=1.0)
      >>> worlds = [stack([jnp.array([x])]) for x in (-9.0, 9.0)]
      >>> see = client_observer(algorithm, state, worlds, num_rounds=1)
      >>> found = audit(jax.random.key(1), see, 1, 4000, delta=1e-5, spread="pooled")
      >>> 0.7 < found["seen"].epsilon < 1.0
      True

    References:
      See ``jaxanon.attacks.auditing.audit``.
    """
    one_of("sees", sees, sorted(SEEN))
    if not 0 <= client < len(worlds[0].mask):
        raise ValueError(
            f"client must be in [0, {len(worlds[0].mask)}), got {client!r}."
        )

    def observe(key, example, member):
        del example  # There is only one pair of worlds.
        clients = jax.tree.map(lambda a, b: jnp.where(member, b, a), *worlds)

        def one_round(before, _):
            message = None
            if sees != "released":
                message, _ = algorithm.message(key, before, clients, client)
            after, _ = algorithm.update(key, before, clients)
            seen = SEEN[sees](before, after, message, client)
            return after, jnp.stack([jnp.asarray(x, jnp.float32) for x in seen])

        _, seen = jax.lax.scan(one_round, state, length=num_rounds)
        return {"seen": seen.ravel()}

    return observe
