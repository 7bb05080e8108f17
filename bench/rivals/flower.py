"""Runs Flower's simulation on federated's work: WORK OUT ROUNDS."""

import os
import sys

os.environ["FLWR_TELEMETRY_ENABLED"] = "0"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import flwr
import ray
import torch
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

from federated import work as fed_work
from rivals import torch_autoencoder


def client_app(path) -> ClientApp:
    """Returns a client as in Flower's PyTorch quickstart."""
    app = ClientApp()

    @app.train()
    def train(message, context):
        torch.set_num_threads(1)  # One actor per core.
        work = fed_work.load_once(path)
        sizes = work.sizes
        net = torch_autoencoder.Net(work.layers)
        net.load_state_dict(message.content["arrays"].to_torch_state_dict())
        optimizer = torch.optim.SGD(net.parameters(), lr=sizes.learning_rate)
        rows = torch.tensor(work.rows[context.node_config["partition-id"]])
        for batch in fed_work.visited(sizes):
            optimizer.zero_grad()
            torch_autoencoder.loss(net, rows[batch]).backward()
            optimizer.step()
        metrics = MetricRecord({"num-examples": sizes.rows})
        content = {"arrays": ArrayRecord(net.state_dict()), "metrics": metrics}
        return Message(content=RecordDict(content), reply_to=message)

    return app


def main():
    """Runs Flower's FedAvg with a Ray actor per core."""
    path = os.path.abspath(sys.argv[1])
    work = fed_work.load(path)
    laps = fed_work.Laps(sys.argv[2], int(sys.argv[3]))
    server = ServerApp()

    @server.main()
    def run(grid, context):
        net = torch_autoencoder.Net(work.layers)

        def evaluate(number, arrays):
            def layers():
                net.load_state_dict(arrays.to_torch_state_dict())
                return net.layers()

            if number:  # Flower also calls it before the first round.
                laps.lap(layers)

        nodes = work.sizes.clients
        strategy = FedAvg(
            fraction_train=1.0,
            fraction_evaluate=0.0,
            min_train_nodes=nodes,
            min_available_nodes=nodes,
        )
        arrays = ArrayRecord(net.state_dict())
        strategy.start(grid, arrays, laps.total, evaluate_fn=evaluate)
        laps.save(flwr=flwr.__version__, ray=ray.__version__, torch=torch.__version__)

    run_simulation(
        server,
        client_app(path),
        num_supernodes=work.sizes.clients,
        backend_config={
            "init_args": {"num_cpus": os.cpu_count()},
            "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
        },
    )
