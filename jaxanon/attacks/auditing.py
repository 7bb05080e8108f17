"""Audits: what canaries and messages of a training prove about its ε."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon import federated, metrics
from jaxanon.attacks import membership
from jaxanon.kernels.checks import one_of


class Canaries(NamedTuple):
    """What an onlooker guessed of one run, and what it proves."""

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
    """Runs once with some canaries, each in by a fair coin, and guesses which.

    One training in place of thousands, where there is room for many canaries that
    hardly touch one another, such as examples with orthogonal gradients. It proves
    less than ``shadow`` and ``infer_members`` do: all it has are shares of coins.

    Args:
      key: typed PRNG key, of the coins and of the run.
      observe: ``(key, inside) -> float[canaries]``, evidence that each was in a run
        with those of ``inside``, ``bool[canaries]``; from nothing but what the run
        released. Traced once.
      num_canaries: at least 1.
      guesses, delta, confidence: as ``guess_canaries`` takes them.

    Returns:
      ``Canaries``.

    Raises:
      ValueError: for a number below 1, and as ``guess_canaries``.

    Example:
      Bits that are flipped with probability 1 / (1 + e^2), released as they are then:

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
    """Says "in" of the canaries with most evidence, "out" of those with least.

    Of the others nothing is said: a guess that is not sure spoils the share of those
    that are right. For the bound to hold, the coins must be fair and nobody's to see,
    each canary a neighbour's difference (in the run or not in it), and ``guesses``
    chosen before the run.

    Args:
      evidence: ``float[canaries]`` that a canary was in.
      inside: ``bool[canaries]``, whether it was.
      guesses: how many, half of them "in"; from 1 to all.
      delta: δ at which ε is bounded.
      confidence: of the bound.

    Returns:
      ``Canaries``, whose ``epsilon`` is that of ``metrics.epsilon_of_guesses``.

    Raises:
      ValueError: for other shapes, NaN, a number of guesses out of range, and as
        ``metrics.epsilon_of_guesses``.

    Example:
      >>> seen = np.array([0.9, 0.1, 0.4, -3.0])
      >>> guess_canaries(seen, np.array([1, 1, 0, 0]), guesses=2, delta=0.0)
      Canaries(right=2, guesses=2, epsilon=0.0)

    References:
      As ``one_run``, section 5.
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
            f"guesses must be in [1, {len(evidence)}], of so many canaries, got "
            f"{guesses!r}."
        )
    order = np.argsort(evidence, kind="stable")
    low = guesses // 2
    out, into = order[:low], order[len(order) - (guesses - low) :]
    right = int((~inside[out]).sum() + inside[into].sum())
    bound = metrics.epsilon_of_guesses(
        right, guesses, len(evidence), delta, confidence=confidence
    )
    return Canaries(right, guesses, bound)


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
      algorithm: ``FederatedAlgorithm`` with ``sent``, such as a learner's.
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
      >>> algorithm = federated.fedavg(
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
        _, seen = federated.simulate_observed(
            algorithm, run_key, state, clients._replace(mask=mask), num_rounds, whose
        )

        def of_round(before, message):
            params, flags = read(before, message)
            mean = lambda params: jnp.mean(loss_fn(params, own, loss_key))
            moved = jax.tree.map(jnp.subtract, before, params)
            told = membership.alignments(moved, jax.grad(mean)(before))
            sent = jnp.array([flags[name] for name in sorted(flags)], jnp.float32)
            found = {"updates": jnp.concatenate([told, sent])}
            if apply_fn is not None:
                logits = apply_fn(params, own["x"])[0]
                found["outputs"] = membership.log_odds(logits, own["y"][0])[None]
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
) -> dict[str, membership.Membership]:
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

      >>> from jaxanon.federated import PoissonSampling, fedsgd_ldp, stack
      >>> every = PoissonSampling(sampling_probability=1.0, size=1.0, records=2)
      >>> loss = lambda p, x, key: p["w"] * x
      >>> algorithm = fedsgd_ldp(lambda key: {"w": jnp.zeros(())}, loss, lots=every,
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
    seen = membership.shadow(key, observe, num_examples, runs, chunk=chunk)
    options = {"delta": delta, "spread": spread, "confidence": confidence}
    return {name: membership.infer_members(x, **options) for name, x in seen.items()}


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
      algorithm: ``FederatedAlgorithm``, such as a learner's.
      state: of ``algorithm.init``, from which all runs begin; public.
      worlds: two ``Population`` of the same shapes, alike but for one client.
      num_rounds: that he watches.
      sees: one of ``SEEN``.
      client: whose messages.

    Raises:
      ValueError: for another word, or a client that there is not.

    Example:
      One weight at either end of its range, sent as one of two values with ε = 1:

      >>> from jaxanon.attacks.auditing import audit
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
      As ``jaxanon.attacks.auditing.audit``.
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
                message, _ = algorithm.message(key, before, clients, client)
            after, _ = algorithm.update(key, before, clients)
            told = SEEN[sees](before, after, message, client)
            return after, jnp.stack([jnp.asarray(x, jnp.float32) for x in told])

        _, seen = jax.lax.scan(one_round, state, length=num_rounds)
        return {"seen": seen.ravel()}

    return observe
