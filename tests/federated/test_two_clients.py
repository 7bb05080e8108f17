"""Two clients, at 4 and at 0, by hand: algorithms with one model or shared layers.

The loss is half the squared distance to the client's number. Every step moves halfway,
and all values begin at 0.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import federated
from jaxanon.federated import Steps

ONE = Steps(num_steps=1)


def ran(make, num_rounds, of_layers=False, **options):
    """Returns ``(params, own)`` after rounds, for a number or layers that add up."""
    if of_layers:
        start = lambda key: {"base": jnp.zeros(()), "head": jnp.zeros(())}
        loss = lambda p, x, key: 0.5 * (p["base"] + p["head"] - x) ** 2
        options |= {"personal_layers": ("head",)}
    else:
        start = lambda key: jnp.zeros(())
        loss = lambda w, x, key: 0.5 * (w - x) ** 2
    algorithm = make(start, loss, **options)
    state = algorithm.init(jax.random.key(0), learning_rate=0.5)
    clients = federated.stack([jnp.array([4.0]), jnp.array([0.0])])
    key = jax.random.key(1)
    state, _ = federated.simulate(algorithm, key, state, clients, num_rounds)
    return state.params, getattr(state, "own", None)


@pytest.mark.parametrize(("num_rounds", "want"), [(1, 1.0), (2, 1.5)])
def test_fedavg(num_rounds, want):
    """To 2 and 0, whose mean is 1; from there to 2.5 and 0.5."""
    params, _ = ran(federated.fedavg, num_rounds, steps=ONE)
    assert params == want


def test_fedavg_of_all_rows_in_one_place():
    """Gradients -4 and 0 are -2 on average, then -3 and 1 are -1."""
    algorithm = federated.fedavg(
        lambda key: jnp.zeros(()),
        lambda w, x, key: 0.5 * (w - x) ** 2,
        steps=federated.Steps(num_steps=2),
    )
    state = algorithm.init(jax.random.key(0), learning_rate=0.5)
    everything = federated.stack([jnp.array([4.0, 0.0])])
    state, _ = algorithm.update(jax.random.key(1), state, everything)
    assert state.params == 1.5


def test_localized():
    """One client reaches 2, then 3; the other does not move; nothing is shared."""
    params, own = ran(
        lambda *args, **more: federated.localized(*args, steps=ONE, **more),
        2,
        num_clients=2,
    )
    assert params is None
    np.testing.assert_array_equal(own, [3.0, 0.0])


def test_fedper():
    """Both layers move at once: to 2 and 2, and 0 and 0; the base's mean is 1.

    Then one is off by 4 - 1 - 2 = 1 and the other by -1, and half of that goes into
    each layer. Bases are 1.5 and 0.5, heads 2.5 and -0.5.
    """
    make = lambda *args, **more: federated.fedper(*args, steps=ONE, **more)
    params, own = ran(make, 2, of_layers=True, num_clients=2)
    assert params["base"] == 1.0
    np.testing.assert_array_equal(own["head"], [2.5, -0.5])


def test_fedrep():
    """The head moves first, to 2, which leaves 2 to the base: 1.

    The bases' mean is 0.5.

    Then heads are off by 1.5 and -0.5: 2.75 and -0.25; bases by 0.75 and -0.25: 0.875
    and 0.375.
    """
    make = lambda *args, **more: federated.fedrep(
        *args, steps=ONE, personal_steps=ONE, **more
    )
    params, own = ran(make, 2, of_layers=True, num_clients=2)
    assert params["base"] == 0.625
    np.testing.assert_array_equal(own["head"], [2.75, -0.25])
