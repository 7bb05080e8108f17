"""Compares layouts of FedAvg by speed on this machine.

Example: ``python bench federated.layouts --smoke``.

64 clients of 64 windows (768 numbers each) train the autoencoder 768-256-128-25-128-
256-768 for 5 steps of 16 windows. The clients of a round run in parallel, one after
another, in chunks, or with one shard per device (per core on a CPU).
"""

import os

# Create one device per core; XLA reads this when JAX is imported.
os.environ["XLA_FLAGS"] = (
    f"{os.environ.get('XLA_FLAGS', '')} "
    f"--xla_force_host_platform_device_count={os.cpu_count()}"
)

import jax
import jax.numpy as jnp
import numpy as np

from federated import ours, work
from harness import timing
from jaxanon import federated
from jaxanon.federated import Layout

SMOKE = work.Sizes(6, 8, (24, 8, 3, 8, 24), batch=2)


def main():
    """Times every layout and checks that all end in the same weights."""
    args = timing.arguments(__doc__)
    rounds, repeats = (2, 1) if args.smoke else (10, 5)
    sizes = SMOKE if args.smoke else work.Sizes()
    report = timing.Report(args.json, smoke=args.smoke)
    made = work.make(sizes)
    clients = federated.population(made.rows, np.ones(made.rows.shape[:2], bool))
    flops = work.flops_per_update(sizes)
    widths = "-".join(map(str, sizes.widths))
    shapes = f"{sizes.clients} clients x {sizes.rows} x {widths}"

    in_turn = Layout(chunk_size=1, unroll=sizes.steps)
    chunks = Layout(chunk_size=4, unroll=sizes.steps)
    choices = {
        "side by side": (ours.simulated, Layout()),
        "one after another": (ours.simulated, Layout(chunk_size=1)),
        "one after another, steps unrolled": (ours.simulated, in_turn),
        "chunks of 4, steps unrolled": (ours.simulated, chunks),
        "the default": (ours.simulated, None),
        "one shard per device, steps unrolled": (ours.sharded, in_turn),
        "one shard per device, side by side": (ours.sharded, Layout()),
    }
    expected = None
    for name, (place, layout) in choices.items():
        state, block = place(*ours.fedavg(made, layout), clients, rounds)
        # Programs may donate the state.
        run = lambda state=state, block=block: block(jax.tree.map(jnp.copy, state))
        took = timing.timed(run, repeats=repeats)
        layers = ours.layers_of(took.result.params)
        expected = layers if expected is None else expected
        # Single weights are not compared, because rounding may flip a ReLU.
        apart = work.distance(layers, expected) / work.distance(expected, made.layers)
        if not apart < 1e-3:
            raise AssertionError(f"{name} differs from side by side by {apart:.1e}")
        rate = rounds * sizes.clients / took.seconds
        more = {"compile_s": took.compile_s, "relative_distance": apart}
        rate_of = "client updates/s"
        report.add(name, rate, rate_of, shapes, flops=rate * flops, **more)
    print("all layouts end in the same weights")
    report.write()
