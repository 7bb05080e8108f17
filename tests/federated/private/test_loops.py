"""FedSGD-LDP, LDP-FL and DP-FedAvg against their loops, in float64."""

import chex
import jax
import pytest

from jaxanon import federated
from jaxanon.federated import PoissonSampling, Steps
from jaxanon.federated.private import reference as loops

pytestmark = pytest.mark.slow

CLOSE = {"rtol": 1e-9, "atol": 1e-11}
OPTIONS = {"num_steps": 2, "batch_size": 2}


def losses(params, batch, key):
    """Returns the other files' network without its random noise."""
    hidden = jax.numpy.tanh(batch["x"] @ params["base"]["w"])
    return (hidden @ params["head"]["v"] - batch["y"]) ** 2


def ran(algorithm, clients, num_rounds=2, **hyper):
    state = algorithm.init(jax.random.key(0), **hyper)
    return federated.simulate(algorithm, jax.random.key(1), state, clients, num_rounds)[
        0
    ]


def test_fedsgd_ldp_agrees(start, population):
    """Batches take some of 5, 2 and 7 rows; norms of 0.4 clip most of them."""
    hyper = {"learning_rate": 0.2, "clip_norm": 0.4, "noise_multiplier": 0.7}
    with jax.enable_x64(True):
        algorithm = federated.fedsgd_ldp(
            start,
            losses,
            lots=PoissonSampling(
                sampling_probability=0.5, expected_batch_size=3.0, max_examples=7
            ),
            steps=federated.Steps(num_steps=3),
            num_clients=3,
        )
        want = loops.fedsgd_ldp(
            *(jax.random.key(1), start(jax.random.key(0)), jax.jit(losses)),
            *(population(), 2),
            sampling_probability=0.5,
            lot_size=3.0,
            num_steps=3,
            **hyper,
        )
        found = ran(algorithm, population(), **hyper)
        chex.assert_trees_all_close(found.params, want, **CLOSE)


@pytest.mark.parametrize("cut_mean", [True, False])
def test_ldp_fl_agrees(cut_mean, start, network, population):
    """Weights reach the ends of their ranges, and epsilon makes either value likely."""
    radii = {"base": 0.6, "head": 0.9}
    with jax.enable_x64(True):
        algorithm = federated.ldp_fl(
            start,
            network,
            steps=Steps(**OPTIONS),
            radii=radii,
            num_clients=3,
            cut_mean=cut_mean,
            weighting="clients",
        )
        hyper = {"learning_rate": 0.2, "weight_epsilon": 1.3}
        want = loops.ldp_fl(
            *(jax.random.key(1), start(jax.random.key(0)), jax.jit(network)),
            *(population(), 2, OPTIONS),
            radii=radii,
            cut_mean=cut_mean,
            **hyper,
        )
        found = ran(algorithm, population(), **hyper)
        # Its odds stay a millionth below their bound.
        chex.assert_trees_all_close(found.params, want, rtol=3e-6)


def test_dp_fedavg_agrees(start, network, population):
    """Six clients, one without rows; about half take part, and the clip norm adapts."""
    hyper = {
        **{"learning_rate": 0.2, "server_learning_rate": 0.8, "noise_multiplier": 0.6},
        **{"clip_norm": 0.5, "quantile": 0.7, "norm_learning_rate": 0.3},
    }
    with jax.enable_x64(True):
        clients = population((5, 2, 7, 3, 4, 1))
        clients = clients._replace(mask=clients.mask.at[4].set(False))
        algorithm = federated.dp_fedavg(
            start,
            network,
            steps=Steps(**OPTIONS),
            cohorts=PoissonSampling(
                sampling_probability=0.6, expected_batch_size=3.6, max_examples=6
            ),
            count_stddev=0.9,
        )
        want, norm = loops.dp_fedavg(
            *(jax.random.key(1), start(jax.random.key(0)), jax.jit(network)),
            *(clients, 4, OPTIONS),
            sampling_probability=0.6,
            cohort=3.6,
            count_stddev=0.9,
            **hyper,
        )
        found = ran(algorithm, clients, num_rounds=4, **hyper)
        chex.assert_trees_all_close(found.params, want, **CLOSE)
        assert float(found.server) == pytest.approx(norm, rel=1e-9)
        assert norm != pytest.approx(0.5, rel=0.01)
