"""FedAdagrad, FedYogi and FedAdam: FedAvg with an adaptive server."""

from typing import NamedTuple, Unpack

import jax
import jax.numpy as jnp
import optax

from jaxanon.federated.averaging.fedavg import fedavg
from jaxanon.federated.engine.algorithm import (
    FederatedAlgorithm,
    RoundOptions,
    Steps,
    built_once,
)
from jaxanon.kernels.bounds import NOT_NEGATIVE, POSITIVE, Range
from jaxanon.kernels.checks import known

SECOND_MOMENTS = {
    "adagrad": lambda v, square, b2: v + square,
    "yogi": lambda v, square, b2: v - (1 - b2) * square * jnp.sign(v - square),
    "adam": lambda v, square, b2: b2 * v + (1 - b2) * square,
}


class MomentState(NamedTuple):
    """Moments of the mean change."""

    first: optax.Params
    second: optax.Params


def adaptive(rule: str, learning_rate, b1=0.9, b2=0.99, tau=1e-3):
    """Returns the server step of adaptive federated optimization.

    Its moments are not corrected for their start, unlike those of ``optax.adam``, and
    the second moment starts at ``tau**2``.

    Args:
      rule: a key of ``SECOND_MOMENTS``.
      learning_rate: η >= 0, server learning rate.
      b1: decay of the first moment, in [0, 1).
      b2: decay of the second moment, in [0, 1); not used by Adagrad.
      tau: τ > 0, added to the root of the second moment.

    Returns:
      ``optax.GradientTransformation``.

    Raises:
      ValueError: for a number out of range.

    Example:
      >>> step = adaptive("adam", 1.0, b1=0.0, b2=0.0, tau=1.0)
      >>> float(step.update(jnp.array(3.0), step.init(jnp.array(0.0)))[0])
      -0.75
    """
    ranges = {
        "learning_rate": (learning_rate, NOT_NEGATIVE),
        "b1": (b1, Range(at_least=0, below=1)),
        "b2": (b2, Range(at_least=0, below=1)),
        "tau": (tau, POSITIVE),
    }
    for name, (value, range_) in ranges.items():
        if known(value) is not None and not range_.holds(value):
            raise ValueError(f"{name} must be {range_.finite_words}, got {value!r}.")
    moment = SECOND_MOMENTS[rule]

    def init(params):
        fill = lambda value: jax.tree.map(lambda w: jnp.full_like(w, value), params)
        return MomentState(fill(0), fill(tau**2))

    def update(updates, state, params=None):
        first = jax.tree.map(lambda m, d: b1 * m + (1 - b1) * d, state.first, updates)
        second = jax.tree.map(lambda v, d: moment(v, d**2, b2), state.second, updates)
        step = lambda m, v: -learning_rate * m / (jnp.sqrt(v) + tau)
        return jax.tree.map(step, first, second), MomentState(first, second)

    return optax.GradientTransformation(init, update)


def _fedopt(
    rule,
    init_fn,
    loss_fn,
    *,
    steps: Steps,
    server_learning_rate=0.1,
    b1=0.9,
    b2=0.99,
    tau=1e-3,
    **options: Unpack[RoundOptions],
) -> FederatedAlgorithm:
    if "server_optimizer" in options:
        raise TypeError(
            f"server_optimizer must not be given to fed{rule}, which is one; use "
            "fedavg(server_optimizer=...)."
        )
    server = adaptive(rule, server_learning_rate, b1, b2, tau)
    return fedavg(init_fn, loss_fn, steps=steps, server_optimizer=server, **options)


@built_once
def fedadam(init_fn, loss_fn, *, steps: Steps, **settings) -> FederatedAlgorithm:
    """Builds FedAdam: FedAvg whose server takes Adam steps on the mean change.

    ``init(key, learning_rate=0.1)``, the client learning rate; see ``fedavg``. The
    published tuning tries ``server_learning_rate`` and ``tau`` on logarithmic grids.

    Args:
      init_fn, loss_fn: see ``fedavg``.
      steps: ``Steps`` of a client in a round.
      **settings: ``server_learning_rate=0.1``, ``b1=0.9``, ``b2=0.99`` and
        ``tau=1e-3`` of ``adaptive``, and the options of ``fedavg``.

    Raises:
      TypeError: for a ``server_optimizer``; also the conditions of ``fedavg``.
      ValueError: for a number out of range; also the conditions of ``fedavg``.

    Example:
      >>> from jaxanon.federated import stack
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> algorithm = fedadam(
      ...     lambda key: jnp.zeros(()), square, steps=Steps(num_steps=1),
      ...     server_learning_rate=1.0, b1=0.0, b2=0.0, tau=2.0)
      >>> state = algorithm.init(jax.random.key(0), learning_rate=0.5)
      >>> clients = stack([jnp.array([4.0])])
      >>> algorithm.update(jax.random.key(1), state, clients)[0].params
      Array(0.5, dtype=float32)

    References:
      Reddi et al., Adaptive federated optimization, ICLR 2021, algorithm 2.
    """
    return _fedopt("adam", init_fn, loss_fn, steps=steps, **settings)


@built_once
def fedyogi(init_fn, loss_fn, *, steps: Steps, **settings) -> FederatedAlgorithm:
    """Builds FedYogi, whose second moment changes by at most ``1 - b2`` of a square.

    Arguments, state and source are those of ``fedadam``.

    Example:
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> algorithm = fedyogi(
      ...     lambda key: jnp.zeros(()), square, steps=Steps(num_steps=1), b1=0.0)
      >>> float(algorithm.init(jax.random.key(0)).hyper["learning_rate"]) > 0
      True
    """
    return _fedopt("yogi", init_fn, loss_fn, steps=steps, **settings)


@built_once
def fedadagrad(init_fn, loss_fn, *, steps: Steps, **settings) -> FederatedAlgorithm:
    """Builds FedAdagrad, whose second moment is a sum of squares.

    Arguments, state and source are those of ``fedadam``; ``b2`` has no effect.

    Example:
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> algorithm = fedadagrad(
      ...     lambda key: jnp.zeros(()), square, steps=Steps(num_steps=1), b1=0.0)
      >>> float(algorithm.init(jax.random.key(0)).hyper["learning_rate"]) > 0
      True
    """
    return _fedopt("adagrad", init_fn, loss_fn, steps=steps, **settings)
