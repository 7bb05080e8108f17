"""Class balancing for 64 clients, compared with imbalanced-learn in a loop."""

import functools
import time
import warnings

import jax
import jax.numpy as jnp
import numpy as np

from harness import timing
from jaxanon import kernels
from jaxanon.kernels.resample.cases import CASES, client

CLIENTS = 64
ROUND = 16  # Training windows per round of a Blinder client.


def rows(report, smoke):
    """Times balancing from scratch, as the rival does, and drawing from a table."""
    case = CASES["ragged" if smoke else "motion_sense"]
    clients = 3 if smoke else CLIENTS
    made = [client(case, seed) for seed in range(clients)]
    x, labels, mask = (
        jnp.asarray(np.stack(parts)) for parts in zip(*made, strict=True)
    )
    keys = jax.random.split(jax.random.key(0), clients)
    classes, k = len(case.counts), case.k_neighbors
    shapes = (
        f"{clients} clients of {case.n} x {case.d}, {case.samples_per_class} per class"
    )

    @jax.jit
    def balance(keys, x, labels, mask):
        one = lambda args: kernels.balance(*args, classes, case.samples_per_class, k)
        return jax.lax.map(one, (keys, x, labels, mask))

    @jax.jit
    def tables(x, labels, mask):
        one = lambda args: kernels.balance_table(*args, classes, k)
        return jax.lax.map(one, (x, labels, mask))

    @functools.partial(jax.jit, static_argnums=3)
    def draw(keys, x, table, size):
        def one(args):
            key, client = args
            draw = kernels.draw_from_table
            return draw(key, x, table, case.samples_per_class, size, client=client)

        return jax.lax.map(one, (keys, jnp.arange(clients)))

    whole = timing.timed(balance, keys, x, labels, mask, repeats=3)
    found = np.bincount(np.asarray(whole.result.labels[0])[whole.result.mask[0]])
    present = [case.samples_per_class for count in case.counts if count]
    assert found[: len(present)].tolist() == present, found
    made_rows = clients * len(present) * case.samples_per_class
    # Distances of all rows; each new row reads two rows and writes one.
    work = {
        "operations": 2 * clients * case.n**2 * case.d + 3 * made_rows * case.d,
        "bytes": 4 * case.d * (clients * case.n + 3 * made_rows),
    }
    works = {"from scratch": {**work, "seconds": whole.seconds}}
    rate, more = made_rows / whole.seconds, works["from scratch"]
    report.add("SMOTE, balanced from scratch", rate, "rows/s", shapes, **more)
    ready = jax.block_until_ready(tables(x, labels, mask))
    full, few = classes * case.samples_per_class, ROUND
    for what, size in (("all, from the table", full), ("a round's draws", few)):
        took = timing.timed(lambda n: draw(keys, x, ready, n), size, repeats=3)
        numbers = case.d * clients * size
        works[what] = timing.work(3 * numbers, 3 * 4 * numbers, took.seconds)
        name, rate = f"SMOTE, {what}", clients * size / took.seconds
        each = f"{shapes}, {size} rows a client"
        report.add(name, rate, "rows/s", each, **works[what])
    if not timing.installed("imblearn", "imbalanced-learn"):
        return
    rival = _rival(made, case)
    name, rate = "imbalanced-learn, in a loop", made_rows / rival
    report.add(name, rate, "rows/s", shapes, **work, seconds=rival)
    # The rival has no table and must rebalance for new rows in every round, which is
    # more work than ours; the ratio compares the waiting time of a round.
    for what, more in works.items():
        report.over(f"SMOTE, {what}, over imbalanced-learn", rival, more, shapes)


def _rival(made, case):
    """Returns seconds of imbalanced-learn for the same classes and clients."""
    from imblearn.over_sampling import SMOTE
    from imblearn.under_sampling import RandomUnderSampler

    start = time.perf_counter()
    for x, labels, mask in made:
        counts = np.bincount(labels[mask])
        above = {
            c: case.samples_per_class
            for c, n in enumerate(counts)
            if n > case.samples_per_class
        }
        below = {
            c: case.samples_per_class
            for c, n in enumerate(counts)
            if case.k_neighbors < n < case.samples_per_class
        }
        kept = RandomUnderSampler(sampling_strategy=above, random_state=0)
        more = SMOTE(
            sampling_strategy=below, k_neighbors=case.k_neighbors, random_state=0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x, labels = kept.fit_resample(x[mask], labels[mask])
            more.fit_resample(x, labels)
    return time.perf_counter() - start
