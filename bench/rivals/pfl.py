"""Runs Apple's pfl on federated's work: WORK OUT ROUNDS."""

import importlib.metadata
import sys

import numpy as np
import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam import NNTrainHyperParams
from pfl.internal.ops import get_ops
from pfl.metrics import Metrics
from pfl.model.pytorch import PyTorchModel

from federated import work as fed_work
from rivals import torch_autoencoder


class Net(torch_autoencoder.Net):
    """The network with the methods that pfl requires."""

    def loss(self, x):
        """Returns the mean squared error."""
        return torch_autoencoder.loss(self, x)

    def metrics(self, x):
        """Returns no metrics."""
        return {}


class Lap(TrainingProcessCallback):
    """Callback that reports every round to ``Laps``."""

    def __init__(self, laps):
        self.laps = laps

    def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):
        """Records the end of a round."""
        self.laps.lap(model.pytorch_model.layers)
        return False, Metrics()


def main():
    """Runs pfl's FedAvg and simulation, in one process or under torchrun."""
    np.random.seed(0)
    work = fed_work.load(sys.argv[1])
    laps = fed_work.Laps(sys.argv[2], int(sys.argv[3]))
    sizes = work.sizes
    # pfl stops at the end of a client's rows, so they are repeated.
    rows = torch.tensor(work.rows[:, fed_work.visited(sizes).reshape(-1)])
    users = {str(number): Dataset((own,)) for number, own in enumerate(rows)}
    sampler = get_user_sampler("minimize_reuse", list(users))
    data = FederatedDataset(users.__getitem__, sampler)
    net = Net(work.layers)
    model = PyTorchModel(
        net, torch.optim.SGD, torch.optim.SGD(net.parameters(), lr=1.0)
    )
    FederatedAveraging().run(
        NNAlgorithmParams(
            central_num_iterations=laps.total,
            evaluation_frequency=10**6,
            train_cohort_size=sizes.clients,
            val_cohort_size=0,
        ),
        SimulatedBackend(data, data),
        model,
        NNTrainHyperParams(
            local_batch_size=sizes.batch,
            local_num_epochs=None,
            local_num_steps=sizes.steps,
            local_learning_rate=sizes.learning_rate,
        ),
        callbacks=[Lap(laps)],
        send_metrics_to_platform=False,
    )
    if get_ops().distributed.global_rank == 0:
        laps.save(pfl=importlib.metadata.version("pfl"), torch=torch.__version__)
