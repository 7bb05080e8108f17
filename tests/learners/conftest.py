"""The synthetic dataset of the methods' tests, and learners that train quickly."""

import pytest
import toy

from jaxanon import learners
from jaxanon.training import trainer

SMALL = {"model": "mlp", "hidden_sizes": (6,), "local_steps": 2, "batch_size": 4}
SHARED, NOISY = {"shared_layers": 1}, {"max_examples": 64, "max_rounds": 3}
BUDGET = {"max_rounds": 3}
OWN = {
    **{"fedper": SHARED, "fedrep": SHARED, "atlas": NOISY, "fedsgd_ldp": NOISY},
    **{"dp_fedavg": BUDGET, "ldp_fl": BUDGET},
    "clusterfl": {"clusters": 2, "probe": 8},
    "centralized_clustering": {"clusters": 2, "alone": 1},
}


@pytest.fixture(scope="session")
def data():
    """Returns five subjects' windows of three activities and two genders."""
    return toy.data()


@pytest.fixture(scope="session")
def small(data):
    """Returns ``(name, **settings) -> Method`` with a small network."""
    return lambda name, **settings: learners.build(
        name, data.spec, **SMALL | OWN.get(name, {}) | settings
    )


@pytest.fixture(scope="session")
def trained(data, small):
    """Returns ``(name, epochs=2, output_dir=None, **settings) -> Run``."""

    def trained(name, epochs=2, output_dir=None, resume=False, **settings):
        learner = small(name, **settings)
        options = {"epochs": epochs, "output_dir": output_dir, "resume": resume}
        return trainer.train(learner, data, progress=False, **options)

    return trained
