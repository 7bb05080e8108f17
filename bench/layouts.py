"""Which layout runs FedAvg fastest here: python bench/layouts.py [--smoke] [--json F].

64 clients of 64 windows (768 numbers each) train the autoencoder 768-256-128-25-128-
256-768 for 5 steps of 16 windows: the same rounds side by side, one after another, in
chunks, and with one shard of the clients per device (per core, on a CPU).
"""

import os

# One device per core, which has to be said before JAX is imported.
os.environ["XLA_FLAGS"] = (
    f"{os.environ.get('XLA_FLAGS', '')} "
    f"--xla_force_host_platform_device_count={os.cpu_count()}"
)

import itertools

import _timing
import jax
import jax.numpy as jnp
import numpy as np

from jaxanon import federated
from jaxanon.federated import Layout

STEP_SIZE = 0.1


def loss_fn(layers, x, key):
    """Squared error of a ReLU autoencoder, per window."""
    del key
    h = x
    for i, (kernel, bias) in enumerate(layers):
        h = h @ kernel + bias[None]
        h = jax.nn.relu(h) if i + 1 < len(layers) else h
    return jnp.mean((h - x) ** 2, axis=1)


def init_fn(key, widths):
    """He-normal kernels and zero biases."""
    keys = jax.random.split(key, len(widths) - 1)
    layers = []
    for layer_key, (d_in, d_out) in zip(keys, itertools.pairwise(widths), strict=True):
        kernel = jax.random.normal(layer_key, (d_in, d_out)) * (2 / d_in) ** 0.5
        layers.append((kernel, jnp.zeros(d_out)))
    return layers


def algorithm_with(layout, widths, steps, batch):
    """FedAvg over all clients, rows in the order that they stand in."""
    return federated.fed_avg(
        lambda key: init_fn(key, widths),
        loss_fn,
        num_steps=steps,
        batch_size=batch,
        shuffle=False,
        layout=layout,
    )


def on_one_device(algorithm, clients, rounds):
    """A function that runs ``rounds`` rounds in one program."""

    initial = algorithm.init(jax.random.key(0), step_size=STEP_SIZE)
    key = jax.random.key(1)

    def run():
        state = jax.tree.map(jnp.copy, initial)  # It will be donated.
        return federated.simulate(algorithm, key, state, clients, rounds)[0].params

    return run


def on_all_devices(algorithm, clients, rounds):
    """The same rounds, a shard of the clients on each device, merged by the host."""
    sharded = federated.shard(algorithm)
    placed = sharded.place(clients)
    initial = algorithm.init(jax.random.key(0), step_size=STEP_SIZE)
    key = jax.random.key(1)

    def run():
        state = initial
        for _ in range(rounds):
            state, _ = sharded.update(key, state, placed)
        return state.params

    return run


def distance(one, other):
    """Euclidean distance between two trees of weights."""
    squares = jax.tree.map(lambda a, b: np.sum(np.square(a - b)), one, other)
    return float(np.sqrt(sum(jax.tree.leaves(jax.device_get(squares)))))


def main():
    """Times every layout, checks that all end in the same weights."""
    args = _timing.arguments(__doc__.splitlines()[0])
    widths, num_clients, rows, rounds, repeats = (
        ((768, 256, 128, 25, 128, 256, 768), 64, 64, 10, 5)
        if not args.smoke
        else ((24, 8, 3, 8, 24), 6, 8, 2, 1)
    )
    steps, batch = 5, rows // 4
    report = _timing.Report(args.json, smoke=args.smoke)
    x = jax.random.normal(jax.random.key(2), (num_clients, rows, widths[0]))
    clients = federated.population(np.asarray(x), np.ones((num_clients, rows), bool))
    # Two products forward and four backward per weight, none for the input of the net.
    weights = [d_in * d_out for d_in, d_out in itertools.pairwise(widths)]
    flops = (6 * sum(weights) - 2 * weights[0]) * batch * steps
    shapes = f"{num_clients} clients x {rows} x {'-'.join(map(str, widths))}"

    in_turn = Layout(chunk=1, unroll=steps)
    choices = {
        "side by side": (on_one_device, Layout()),
        "one after another": (on_one_device, Layout(chunk=1)),
        "one after another, steps unrolled": (on_one_device, in_turn),
        "chunks of 4, steps unrolled": (on_one_device, Layout(chunk=4, unroll=steps)),
        "the default": (on_one_device, None),
        "one shard per device, steps unrolled": (on_all_devices, in_turn),
        "one shard per device, side by side": (on_all_devices, Layout()),
    }
    start = jax.device_get(init_fn(jax.random.key(0), widths))
    moved = lambda params: distance(params, start)
    expected = None
    for name, (place, layout) in choices.items():
        run = place(algorithm_with(layout, widths, steps, batch), clients, rounds)
        took = _timing.timed(run, repeats=repeats)
        expected = jax.device_get(took.result) if expected is None else expected
        # A ReLU may flip with rounding, so single weights are not compared.
        apart = distance(jax.device_get(took.result), expected) / moved(expected)
        if not apart < 1e-3:
            raise AssertionError(f"{name} ends {apart:.1e} away from side by side")
        rate = rounds * num_clients / took.seconds
        report.add(
            name,
            rate,
            "client updates/s",
            shapes,
            flops=rate * flops,
            compile_s=took.compile_s,
            relative_distance=apart,
        )
    print("all layouts end in the same weights")
    report.write()


if __name__ == "__main__":
    main()
