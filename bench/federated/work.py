"""Work of federated training in NumPy, so that rivals can import it without JAX."""

import functools
import itertools
import json
import time
from typing import NamedTuple

import numpy as np

from harness import memory

COMPARED = 3  # Rounds before the comparison of weights; they are also the warm-up.


class Sizes(NamedTuple):
    """Number of clients and rows, and the ReLU autoencoder to train."""

    clients: int = 64
    rows: int = 64
    widths: tuple[int, ...] = (768, 256, 128, 25, 128, 256, 768)
    batch: int = 16
    steps: int = 5
    learning_rate: float = 0.1

    def __str__(self):
        widths = "-".join(map(str, self.widths))
        return (
            f"{self.clients} clients x {self.rows} x {widths}, {self.steps} steps of "
            f"{self.batch}"
        )


SMOKE = Sizes(6, 8, (24, 8, 24), batch=2, steps=2)


class Work(NamedTuple):
    """Initial state of every framework."""

    sizes: Sizes
    rows: np.ndarray  # float32[clients, rows, widths[0]]
    layers: list  # pairs (float32[d_in, d_out], float32[d_out])


def make(sizes: Sizes) -> Work:
    """Returns normal rows, He-normal kernels and zero biases."""
    draws = np.random.default_rng(0)
    normal = lambda *shape: draws.standard_normal(shape, np.float32)
    pairs = itertools.pairwise(sizes.widths)
    layers = [
        (normal(a, b) * np.float32((2 / a) ** 0.5), np.zeros(b, np.float32))
        for a, b in pairs
    ]
    return Work(sizes, normal(sizes.clients, sizes.rows, sizes.widths[0]), layers)


def save(path, work: Work):
    """Writes the work for another process."""
    np.savez(path, sizes=json.dumps(work.sizes), rows=work.rows, **named(work.layers))


def load(path) -> Work:
    """Reads the output of ``save``."""
    with np.load(path) as found:
        sizes = Sizes(*json.loads(str(found["sizes"])))
        sizes = sizes._replace(widths=tuple(sizes.widths))
        return Work(sizes, found["rows"], layers_of(found))


load_once = functools.cache(load)


def named(layers) -> dict:
    """Converts layers to named arrays."""
    kernels = {
        f"kernel_{i}": np.asarray(kernel) for i, (kernel, _) in enumerate(layers)
    }
    return kernels | {f"bias_{i}": np.asarray(b) for i, (_, b) in enumerate(layers)}


def layers_of(found) -> list:
    """Converts named arrays to layers."""
    number = sum(name.startswith("kernel_") for name in found)
    return [(found[f"kernel_{i}"], found[f"bias_{i}"]) for i in range(number)]


def visited(sizes: Sizes) -> np.ndarray:
    """Returns ``int[steps, batch]``, the rows of each step; wraps around at the end."""
    places = np.arange(sizes.steps * sizes.batch) % sizes.rows
    return places.reshape(sizes.steps, sizes.batch)


def flops_per_update(sizes: Sizes) -> int:
    """Returns operations per client: 2 products forward, 4 back, none for the input."""
    weights = [a * b for a, b in itertools.pairwise(sizes.widths)]
    return (6 * sum(weights) - 2 * weights[0]) * sizes.batch * sizes.steps


def num_weights(sizes: Sizes) -> int:
    """Returns the number of weights of a model."""
    return sum(a * b + b for a, b in itertools.pairwise(sizes.widths))


def gradient(layers, x):
    """Returns the gradient of the mean squared error, derived by hand."""
    inputs, h = [], x
    for i, (kernel, bias) in enumerate(layers):
        inputs.append(h)
        h = h @ kernel + bias
        h = np.maximum(h, 0) if i + 1 < len(layers) else h
    back = 2 * (h - x) / x.size
    found = []
    for (kernel, _), h in zip(reversed(layers), reversed(inputs), strict=True):
        found.append((h.T @ back, back.sum(axis=0)))
        back = (back @ kernel.T) * (h > 0)
    return found[::-1]


def reference(work: Work) -> list:
    """Returns the layers after ``COMPARED`` rounds of loops in float64."""
    sizes, index = work.sizes, visited(work.sizes)
    wide = lambda layers: [tuple(x.astype(np.float64) for x in la) for la in layers]
    layers = wide(work.layers)
    for _ in range(COMPARED):
        trained = []
        for rows in work.rows.astype(np.float64):
            own = layers
            for batch in index:
                slope = gradient(own, rows[batch])
                own = [
                    (k - sizes.learning_rate * dk, b - sizes.learning_rate * db)
                    for (k, b), (dk, db) in zip(own, slope, strict=True)
                ]
            trained.append(own)
        mean = lambda *leaves: sum(leaves) / len(leaves)
        layers = [
            tuple(mean(*leaves) for leaves in zip(*same, strict=True))
            for same in zip(*trained, strict=True)
        ]
    return layers


def distance(one, other) -> float:
    """Returns the Euclidean distance between two lists of layers."""
    leaves = lambda layers: [np.asarray(x, np.float64) for la in layers for x in la]
    pairs = zip(leaves(one), leaves(other), strict=True)
    return float(np.sqrt(sum(np.sum((a - b) ** 2) for a, b in pairs)))


class Laps:
    """Records the ends of rounds, and the layers after the first ``COMPARED`` rounds.

    Has state because some frameworks run the rounds and call back.
    """

    def __init__(self, path, timed: int):
        self.path, self.timed = path, timed
        self.ends = [time.perf_counter()]
        self.layers = None

    @property
    def total(self) -> int:
        """Returns the number of rounds to run, including the warm-up."""
        return COMPARED + self.timed

    def lap(self, layers_fn):
        """Records the end of a round; ``layers_fn()`` returns its weights."""
        self.ends.append(time.perf_counter())
        if len(self.ends) == COMPARED + 1:
            self.layers = layers_fn()
            self.ends[-1] = time.perf_counter()

    def save(self, **versions):
        """Writes seconds of timed rounds, layers and versions."""
        seconds = np.diff(self.ends)
        write(self.path, seconds[COMPARED:], self.layers, seconds[0], **versions)


def write(path, seconds, layers, first_s, **versions):
    """Writes the measurement of a process: seconds of rounds, and layers."""
    np.savez(
        path,
        seconds=np.asarray(seconds),
        first_s=first_s,
        held_mib=memory.held_mib(),
        versions=json.dumps(versions),
        **named(layers),
    )
