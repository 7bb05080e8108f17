"""ClusterFL: personal models, regularised towards clients with similar outputs."""

from typing import Any, NamedTuple, Unpack

import jax
import jax.numpy as jnp

from jaxanon.federated.engine import layout as layouts
from jaxanon.federated.engine.algorithm import (
    FederatedAlgorithm,
    RoundConfig,
    RoundOptions,
    Steps,
    built_once,
)
from jaxanon.federated.engine.personal import (
    PersonalState,
    Reply,
    choose_model,
    personal,
    replace_params,
    train,
)
from jaxanon.kernels.checks import known, one_of, whole

VARIANTS = ("corrected", "official")


class ClusterFLState(NamedTuple):
    """A client's model, and the server's reply to it."""

    model: Any  # last model that it sent
    pull: Any  # like the model: dual terms of its clusters
    nearness: jax.Array  # float[], sum of squares of its memberships
    seen: jax.Array  # bool[], whether it has sent a model


class Clusters(NamedTuple):
    """State of the server for k clusters of clients."""

    members: jax.Array  # float[clients, k], F; columns of norm 1 or 0
    centres: Any  # leaves [k, ...], Ω
    duals: Any  # leaves [k, ...], U
    probe: Any  # rows on which models are compared; None with given members


@built_once
def clusterfl(
    init_fn,
    loss_fn,
    *,
    steps: Steps,
    num_clients: int,
    num_clusters: int,
    outputs_fn=None,
    probe_fn=None,
    numbers: bool = False,
    members=None,
    every: int = 3,
    variant: str = "corrected",
    **options: Unpack[RoundOptions],
) -> FederatedAlgorithm:
    """Builds ClusterFL: personal models trained with ADMM over learnt clusters.

    It minimises the clients' losses plus α Σ ‖w_i‖² - β ‖FᵀW‖². F holds scaled cluster
    memberships; with α > β the penalty draws a model to the mean of its cluster.
    Clients send their models. The server updates Ω = (ρ FᵀW - U)/(ρ - 2β) and
    U += ρ (Ω - FᵀW). Every few rounds it recomputes F from divergences between the
    models' outputs on probe rows (see ``memberships``). The server sees every model but
    no client rows.

    ``init(key, learning_rate=0.1, alpha=1e-3, beta=5e-4, rho=4e-3, temperature=6.0)``.
    ``info`` has ``"loss"`` without the penalty, and ``"bytes_up"`` and ``"bytes_down"``
    of a client: its model and ``pull``, of the same size.

    With form "corrected" a client descends the augmented Lagrangian with the other
    models fixed. Its direction is the gradient of the loss plus 2αw - Σ_j F_ij (U_j + ρ
    (Ω_j - (FᵀW)_j)) plus ρ ‖F_i‖² times its change in the round. Form "official"
    follows the authors' program with 2(α + ρ ‖F_i‖²/2) w + Σ_j F_ij (U_j + ρ Ω_j). Its
    opposite sign pushes away from the cluster, and it omits the other clients, so it
    converges to another point. ρ must be above 4β. At 4β, the published value (ρ =
    2e-3), the duals oscillate, and below 2β they diverge.

    Args:
      init_fn: ``key -> params``, the start of all models.
      loss_fn: see ``fedprox``.
      steps: ``Steps`` of a client in a round.
      num_clients: number of clients in the population.
      num_clusters: k >= 1, columns of F.
      outputs_fn: ``(params, rows) -> float[q, classes]``. Returns logits for the probe
        rows.
      probe_fn: ``key -> rows``. Returns public probe rows, drawn once in ``init``.
      numbers: whether outputs are numbers instead of logits. See ``divergences``.
      members: ``float[clients, k]``, >= 0. F up to the norm of its columns, for known
        clusters. It replaces outputs and probe.
      every: rounds between updates of F, >= 1; the first update follows round 1.
      variant: one of ``VARIANTS``.
      **options: see ``RoundOptions``. Its weights apply to the mean
        ``params``.

    Returns:
      ``FederatedAlgorithm`` with a ``PersonalState``; ``own`` is ``ClusterFLState``,
      ``server`` is ``Clusters``, and ``params`` is the mean over the last cohort, with
      which clients without rows predict.

    Raises:
      ValueError: for an unknown form, invalid ``members`` (another shape, negative or
        not finite), or unless exactly one of members and outputs is given. Also the
        conditions of ``Steps``, ``RoundConfig`` and ``personal``. From ``init``, for a
        ρ on the host that is not above 2β.

    Example:
      Two clients in one cluster have models 2 and 0 after a round, so FᵀW = √2. With
      α = 0, β = 1/8 and ρ = 1: Ω = 4/3 √2, U = √2 / 3, and ``pull`` is 2/3 for both.

      >>> from jaxanon.federated import stack
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> algorithm = clusterfl(
      ...     lambda key: jnp.zeros(()), square,
      ...     steps=Steps(num_steps=1), num_clients=2,
      ...     num_clusters=1, members=jnp.ones((2, 1)))
      >>> state = algorithm.init(
      ...     jax.random.key(0), learning_rate=0.5, alpha=0.0, beta=0.125, rho=1.0)
      >>> clients = stack([jnp.array([4.0]), jnp.array([0.0])])
      >>> state, _ = algorithm.update(jax.random.key(1), state, clients)
      >>> state.own.model, state.own.pull.round(4)
      (Array([2., 0.], dtype=float32), Array([0.6667, 0.6667], dtype=float32))

    References:
      Ouyang et al., ClusterFL: a similarity-aware federated learning system for human
      activity recognition, MobiSys 2021, without dropping clients; Zhou, Chen
      and Ye, Clustered multi-task learning via alternating structure optimization,
      NeurIPS 2011, for the penalty.
    """
    one_of("variant", variant, VARIANTS)
    whole("num_clusters", num_clusters, least=1)
    whole("every", every, least=1)
    given = _checked(members, num_clients, num_clusters, outputs_fn, probe_fn)
    of_probe: Any = outputs_fn

    def init(key):
        params_key, probe_key = jax.random.split(key)
        params = init_fn(params_key)
        zeros = jax.tree.map(jnp.zeros_like, params)
        of_clusters = lambda: jax.tree.map(
            lambda w: jnp.zeros((num_clusters, *w.shape), w.dtype), params
        )
        kept = ClusterFLState(params, zeros, jnp.zeros(()), jnp.array(False))
        probe = None if probe_fn is None else probe_fn(probe_key)
        nobody = jnp.zeros((num_clients, num_clusters))
        return params, kept, Clusters(nobody, of_clusters(), of_clusters(), probe)

    def client(client):
        hyper, own, start = client.hyper, client.own, client.own.model
        sign = 1 if variant == "corrected" else -1

        def direction(w, grads):
            away = w
            if variant == "corrected":
                away = jax.tree.map(jnp.subtract, w, start)
            near = hyper["rho"] * own.nearness
            return jax.tree.map(
                lambda w, g, a, pull: (
                    g + 2 * hyper["alpha"] * w - sign * pull + near * a
                ),
                *(w, grads, away, own.pull),
            )

        model, losses = train(client, loss_fn, start, steps, direction_fn=direction)
        size = float(layouts.num_bytes(model))
        info = {"loss": jnp.mean(losses), "bytes_up": size, "bytes_down": size}
        kept = own._replace(model=model, seen=jnp.array(True))
        return Reply(model, kept, jax.tree.map(jnp.asarray, info))

    def found(state: PersonalState):
        """Computes memberships from the current outputs of the clients' models."""
        own, probe = state.own, state.server.probe
        outputs = jax.vmap(lambda model: of_probe(model, probe))(own.model)
        apart = divergences(outputs, state.hyper["temperature"], numbers=numbers)
        kept = memberships(apart, own.seen, num_clusters)
        return kept.astype(state.server.members.dtype)

    def server(state: PersonalState, mean, share):
        state = replace_params(state, mean, share)
        own, clusters, hyper = state.own, state.server, state.hyper
        beta, rho = hyper["beta"], hyper["rho"]
        if given is None:
            members = jax.lax.cond(
                state.round % every == 0, found, lambda _: clusters.members, state
            )
        else:
            members = _of_length_1(jnp.where(own.seen[:, None], given, 0))
        over_clients = lambda w: jnp.tensordot(members.T, w, axes=1).astype(w.dtype)
        sums = jax.tree.map(over_clients, own.model)
        centres = jax.tree.map(
            lambda x, u: (rho * x - u) / (rho - 2 * beta), sums, clusters.duals
        )
        duals = jax.tree.map(
            lambda u, c, x: u + rho * (c - x), clusters.duals, centres, sums
        )
        lacks = centres
        if variant == "corrected":
            lacks = jax.tree.map(jnp.subtract, centres, sums)
        of_client = lambda u, c: jnp.tensordot(members, u + rho * c, axes=1)
        as_before = lambda old, new: new.astype(old.dtype)
        pull = jax.tree.map(of_client, duals, lacks)
        own = own._replace(
            pull=jax.tree.map(as_before, own.pull, pull),
            nearness=jnp.sum(members**2, axis=1),
        )
        server = clusters._replace(
            members=members,
            centres=jax.tree.map(as_before, clusters.centres, centres),
            duals=jax.tree.map(as_before, clusters.duals, duals),
        )
        return state._replace(own=own, server=server)

    def model(client):
        return choose_model(client._replace(own=client.own.model))

    made = personal(
        init,
        client,
        server,
        model,
        num_clients=num_clients,
        hyper={
            **{"learning_rate": 0.1, "alpha": 1e-3, "beta": 5e-4, "rho": 4e-3},
            "temperature": 6.0,
        },
        rounds=RoundConfig(**options).reject("clusterfl", "server_optimizer"),
    )

    def checked_init(key, **values):
        beta, rho = (
            known(values.get(n, d)) for n, d in (("beta", 5e-4), ("rho", 4e-3))
        )
        if beta is not None and rho is not None and not rho > 2 * beta:
            raise ValueError(
                f"rho must be > 2 beta, {2 * beta:g}, got {rho!r}; below it the "
                "server's problem has no minimum. Values above 4 beta are recommended."
            )
        return made.init(key, **values)

    init_new_client = lambda state, own: own._replace(model=state.params)
    return made._replace(init=checked_init, init_new_client=init_new_client)


def _checked(members, num_clients, num_clusters, outputs_fn, probe_fn):
    """Returns given memberships as an array, or None if they are learnt."""
    if (members is None) == (outputs_fn is None or probe_fn is None):
        raise ValueError(
            "either members or both outputs_fn and probe_fn must be given, got "
            f"{'neither' if members is None else 'both'}; use members for known "
            "clusters."
        )
    if members is None:
        return None
    members = jnp.asarray(members, jnp.result_type(float))
    if members.shape != (num_clients, num_clusters):
        raise ValueError(
            f"members must be float[{num_clients}, {num_clusters}], clients by "
            f"clusters, got shape {members.shape}."
        )
    if not (jnp.isfinite(members) & (members >= 0)).all():
        raise ValueError(
            f"members must be finite and >= 0, got {members.min()} to "
            f"{members.max()}; use 0 for clients outside a cluster."
        )
    return members


def _of_length_1(columns):
    norms = jnp.sqrt(jnp.sum(columns**2, axis=0))
    return columns / jnp.where(norms > 0, norms, 1)[None, :]


def divergences(outputs, temperature, *, numbers: bool = False):
    """Computes Kullback-Leibler divergences of clients' outputs on the same rows.

    Args:
      outputs: ``float[clients, q, classes]``, logits for q rows, or numbers.
      temperature: T > 0, divisor of the logits; may be traced.
      numbers: whether outputs are means of Gaussians with standard deviation T instead
        of logits.

    Returns:
      ``float[clients, clients]`` in nats, the mean over rows of KL(i, j). The diagonal
      is 0 up to rounding.

    Example:
      >>> logits = jnp.log(jnp.array([[[0.5, 0.5]], [[0.25, 0.75]]]))
      >>> found = divergences(logits, 1.0)  # ln 2 / √3 and ln 3 3/4 - ln 2.
      >>> round(float(found[0, 1]), 4), round(float(found[1, 0]), 4)
      (0.1438, 0.1308)

    References:
      Ouyang et al., ClusterFL, MobiSys 2021, with T = 6.
    """
    num, rows = outputs.shape[:2]
    # Differences of pairs; inner products of alike clients would cancel.
    if numbers:
        flat = outputs.reshape(num, -1)
        apart = lambda one: jnp.sum(((one[None] - flat) / temperature) ** 2, axis=1) / 2
    else:
        flat = jax.nn.log_softmax(outputs / temperature, axis=-1).reshape(num, -1)
        apart = lambda one: jnp.sum(jnp.exp(one)[None] * (one[None] - flat), axis=1)
    return jax.lax.map(apart, flat) / rows


def memberships(found, seen, num_clusters: int):
    """Computes cluster memberships from clipped principal components.

    The rows of ``found`` are centred and projected on the first principal axes. Each
    axis is oriented so that its largest component is positive. Components are clipped
    at 0, and columns are scaled to norm 1. With two groups, one is on the positive side
    of the first axis; the other forms a cluster only if another axis separates it.

    Args:
      found: ``float[clients, clients]``, result of ``divergences``.
      seen: ``bool[clients]``; other clients are ignored.
      num_clusters: number of columns, a Python int from 1 to the number of clients.

    Returns:
      ``float[clients, num_clusters]``, >= 0. Columns have norm 1, or 0 if clients
      differ along fewer axes.

    Raises:
      ValueError: for ``num_clusters`` out of range.

    Example:
      >>> apart = jnp.array([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
      >>> memberships(apart, jnp.ones(3, bool), 2).round(3)
      Array([[0., 0.],
             [0., 0.],
             [1., 0.]], dtype=float32)

    References:
      Ouyang et al., ClusterFL, MobiSys 2021.
    """
    num = whole("num_clusters", num_clusters, least=1)
    if num > len(found):
        raise ValueError(
            f"num_clusters must be <= {len(found)}, the number of clients, got "
            f"{num_clusters!r}."
        )
    both = seen[:, None] & seen[None, :]
    rows = jnp.where(both, found, 0)
    mean = jnp.sum(rows, axis=0) / jnp.maximum(jnp.sum(seen), 1)
    centred = jnp.where(both, rows - mean[None, :], 0)
    vectors, lengths, _ = jnp.linalg.svd(centred)
    vectors = vectors[:, :num]
    size = jnp.abs(vectors)
    # Among entries equal up to rounding, the first determines the sign.
    large = size >= 0.999 * jnp.max(size, axis=0)[None, :]
    turn = jnp.sign(jnp.take_along_axis(vectors, jnp.argmax(large, axis=0)[None], 0))
    kept = jnp.maximum(turn * vectors, 0)
    norms = jnp.sqrt(jnp.sum(kept**2, axis=0))
    rounding = 30 * jnp.finfo(lengths.dtype).eps * jnp.maximum(lengths[0], 1)
    real = lengths[:num] > rounding
    scaled = kept / jnp.where(norms > 0, norms, 1)[None, :]
    return jnp.where(real[None, :] & seen[:, None], scaled, 0)
