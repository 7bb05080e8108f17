"""Cost of a round by formula and by the compiler's counts."""

import itertools
import re
from typing import NamedTuple

import jax
import numpy as np

from federated import ours
from jaxanon import federated


class Round(NamedTuple):
    """A round of FedAvg with a dense network and identical client sizes."""

    clients: int  # size of the population
    cohort: int
    rows: int  # rows per client
    widths: tuple[int, ...]
    steps: int
    batch: int
    chunk: int  # clients that a device runs in parallel

    @property
    def weights(self) -> int:
        """Returns the number of weights, including biases."""
        return sum((a + 1) * b for a, b in itertools.pairwise(self.widths))


def operations(case: Round) -> int:
    """Returns the operations of products and of weight updates.

    A row costs two operations per weight forward and four backward, minus two for the
    gradient of the first layer's input, which is not computed. A step updates a weight
    with two operations; each client's update is then subtracted, weighted and summed.
    """
    kernels = sum(a * b for a, b in itertools.pairwise(case.widths))
    first = case.widths[0] * case.widths[1]
    products = case.steps * case.batch * (6 * kernels - 2 * first)
    return case.cohort * (products + case.weights * (2 * case.steps + 3))


def memory_bytes(case: Round) -> int:
    """Returns bytes of clients' rows, the state, and clients in parallel.

    A training client holds a gradient, its own weights from the second step on, and the
    activations of a batch. The state is read and written.
    """
    data = case.clients * case.rows * (4 * case.widths[0] + 1)
    own = min(case.steps, 2) * case.weights + case.batch * sum(case.widths)
    return data + 4 * (2 * case.weights + case.chunk * own)


POINTS = (
    Round(64, 64, 64, (768, 256, 128, 25, 128, 256, 768), 5, 16, 64),
    Round(256, 64, 16, (256, 128, 256), 2, 16, 64),
    Round(512, 512, 8, (64, 512, 64), 1, 8, 512),
)
SMOKE = (Round(8, 4, 8, (32, 16, 32), 2, 4, 4),)


def rows(smoke):
    """Returns rows of formulas relative to the compiler's counts."""
    for case in SMOKE if smoke else POINTS:
        found = compiled(case)
        shapes = (
            f"{case.cohort} of {case.clients} clients x {case.rows} x "
            f"{'-'.join(map(str, case.widths))}, {case.steps} steps of {case.batch}"
        )
        for name, paper in (
            ("operations", operations(case)),
            ("memory", memory_bytes(case)),
            ("reduced", 4 * case.weights),
        ):
            yield {
                "name": f"{name} of a round, on paper over compiled",
                "value": paper / found[name],
                "unit": "x as many",
                "shapes": shapes,
                "on_paper": paper,
                "compiled": found[name],
            }


def compiled(case: Round) -> dict:
    """Returns XLA's counts: operations of products, bytes of memory, bytes summed.

    The loop over steps is unrolled because XLA counts the body of a loop once.
    """
    pairs = itertools.pairwise(case.widths)
    layers = [(np.zeros((a, b), np.float32), np.zeros(b, np.float32)) for a, b in pairs]
    algorithm = federated.fedavg(
        lambda key: ours.tree_of(layers),
        ours.loss_fn,
        steps=federated.Steps(
            num_steps=case.steps, batch_size=case.batch, shuffle=False
        ),
        cohort_size=case.cohort,
        layout=federated.Layout(chunk_size=None, unroll=case.steps),
    )
    clients = federated.population(
        np.zeros((case.clients, case.rows, case.widths[0]), np.float32),
        np.ones((case.clients, case.rows), bool),
    )
    placed = federated.shard_clients(clients, jax.devices()[:1], copies=True)
    state, key = algorithm.init(jax.random.key(0)), jax.random.key(1)
    lowered = jax.jit(algorithm.update).lower(key, state, placed)
    program = lowered.compile()
    told = program.memory_analysis()
    memory = told.argument_size_in_bytes + told.temp_size_in_bytes
    return {
        "operations": program.cost_analysis()["flops"],
        "memory": memory + told.output_size_in_bytes,
        "reduced": reduced(lowered.as_text()),
    }


def reduced(text) -> int:
    """Returns the bytes of all float32 arrays that a program sums over devices."""
    found = re.findall(
        r'all_reduce"?.*?\}\) : \(tensor<(\d+)xf32>\)', text, flags=re.DOTALL
    )
    return sum(4 * int(size) for size in found)
