"""Compares meta-gradients with copied weights, factored updates and PyTorch.

Example: ``python bench blinder.meta_gradient --clients 14 --smoke``.

Times Blinder's client update at MobiAct's sizes (768 numbers per window, latent 25,
support 1, query 15, 5 discriminator steps, second order, with the server's Adam): with
weights copied per client, with every client's update kept as factors, and in PyTorch if
it is installed. Each figure is measured in a separate process, whose peak memory is
recorded. ``--clients`` selects sizes of cohorts, separated by commas; on a GPU each
line compiles for a minute.
"""

import importlib.util
import json
import os
import subprocess
import sys
from typing import NamedTuple

# The process of each line needs the GPU's memory; this process does not.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp
import numpy as np
import optax

from harness import memory, timing
from harness import rivals as processes
from jaxanon import kernels
from jaxanon.models import blinder

TIME, CHANNELS, LATENT, PUBLIC, PRIVATE = 128, 6, 25, 4, 2
HIDDEN, SMOKE_HIDDEN = (512, 512, 256, 128), (16,)
STEP_SIZE = 1e-4
SCALE = (0.9, 2.0, 0.2)
SUPPORT, QUERY = 1, 15
MATERIALISED_UP_TO = 64  # Copied weights of more clients do not fit in memory.
TORCH_AT = 14  # Cohort size of the paper.


def draw(key, clients, rows) -> blinder.BlinderBatch:
    """Returns random batches with ``rows`` windows per client."""
    keys = jax.random.split(key, 5)

    def one_hot(key, classes):
        labels = jax.random.randint(key, (clients, rows), 0, classes)
        return jax.nn.one_hot(labels, classes)

    private = one_hot(keys[2], PRIVATE)
    return blinder.BlinderBatch(
        0.3 * jax.random.normal(keys[0], (clients, rows, TIME, CHANNELS)),
        one_hot(keys[1], PUBLIC),
        (private,),
        jnp.ones((clients, rows)),
        jax.random.normal(keys[3], (clients, rows, LATENT)),
        (1 - private,),
        jax.random.normal(keys[4], (clients, 2 * rows, LATENT)),
        (private,),
    )


def problem(clients, hidden):
    """Returns the networks' parameters and both batches of every client."""
    networks = blinder.networks(TIME, CHANNELS, [PRIVATE], latent=LATENT, hidden=hidden)
    keys = jax.random.split(jax.random.key(0), 3)
    init = jax.jit(networks.init, static_argnums=(1, 2, 3))
    params = init(keys[0], TIME, CHANNELS, PUBLIC)
    batches = draw(keys[1], clients, SUPPORT), draw(keys[2], clients, QUERY)
    return networks, params, batches


def gradient_fn(networks, implementation, steps, chunk=None, second_order=True):
    """Returns ``(params, support, query) -> gradient`` of the cohort."""
    scale = blinder.LossScale(*SCALE)
    phases = blinder.phases(networks, scale, STEP_SIZE, discriminator_steps=steps)
    objectives = (blinder.joint_objective(networks, scale),)

    def gradient(params, support, query):
        weights = jnp.ones(len(support.windows))
        return kernels.meta_gradient(
            phases,
            objectives,
            params,
            support,
            query,
            weights,
            second_order=second_order,
            implementation=implementation,
            chunk=chunk,
        )[0]

    return gradient


def flops_per_update(params) -> float:
    """Returns the minimum number of floating-point operations of one update.

    A forward pass costs 2 operations per weight and window, and a gradient twice that,
    without the input gradient of the encoder. The support window passes forward and
    backward once, and each pass doubles in second order; its shadow sample is decoded
    and encoded.
    """
    count = lambda tree: sum(
        leaf.size for leaf in jax.tree.leaves(tree) if leaf.ndim == 2
    )
    weights = count(params["encoder"]) + count(params["decoder"])
    first = params["encoder"]["MultiLayer_0"]["Dense_0"]["kernel"].size
    forward, back = 2 * weights, 4 * weights - 2 * first
    inner = 2 * weights - 2 * first  # Cotangents only, without weight gradients.
    return QUERY * (forward + back) + 3 * (forward + inner) + forward


def ours(case, implementation, second_order, repeats):
    """Returns seconds per scanned round with the server's Adam, and a check value."""
    networks, params, batches = problem(case.clients, case.hidden)
    optimizer = optax.adam(1e-3)
    gradient = gradient_fn(
        networks, implementation, case.steps, case.chunk, second_order
    )

    @jax.jit
    def run(params, batches):
        def one_round(carry, _):
            params, opt_state = carry
            updates, opt_state = optimizer.update(
                gradient(params, *batches), opt_state, params
            )
            return (optax.apply_updates(params, updates), opt_state), None

        carry = params, optimizer.init(params)
        return jax.lax.scan(one_round, carry, length=case.rounds)[0][0]

    took = timing.timed(run, params, batches, repeats=repeats)
    weights = flops_per_update(params)
    return took.seconds / case.rounds, took.compile_s, weights


def check(steps, hidden):
    """Checks that all implementations give the same gradient on four clients."""
    networks, params, batches = problem(4, hidden)
    names = ("materialised", "factored")
    with jax.default_matmul_precision("highest"):  # As PyTorch on a GPU.
        grads = [
            jax.jit(gradient_fn(networks, name, steps))(params, *batches)
            for name in names
        ]
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-4 * np.abs(a).max()),
        *grads,
    )
    if not has_torch():
        return
    from blinder import torch_rival

    expected = grads[0]["encoder"]["MultiLayer_0"]["Dense_0"]["kernel"]
    for rival in torch_rival.RIVALS:
        got = _torch(rival, params, batches, steps, repeats=1)[1]
        np.testing.assert_allclose(got, expected, atol=1e-4 * np.abs(expected).max())


def has_torch() -> bool:
    """Returns whether PyTorch is installed."""
    return importlib.util.find_spec("torch") is not None


def _torch(rival, params, batches, steps, repeats):
    from blinder import torch_rival

    params, batches = jax.tree.map(np.asarray, (params, batches))
    options = {"scale": SCALE, "learning_rate": STEP_SIZE, "steps": steps}
    return torch_rival.measure(rival, params, batches, repeats=repeats, **options)


def one(case, repeats):
    """Measures one line of the table in this process and prints it as JSON."""
    if case.name in ("reference", "materialised", "factored", "first order"):
        second_order = case.name != "first order"
        implementation = case.name if second_order else "factored"
        seconds, compile_s, flops = ours(case, implementation, second_order, repeats)
    else:
        _, params, batches = problem(case.clients, case.hidden)
        seconds, _ = _torch(case.name, params, batches, case.steps, repeats)
        compile_s, flops = 0.0, flops_per_update(params)
    row = {"seconds": seconds, "compile_s": compile_s, "flops": flops}
    peak = timing.peak_mib() or memory.held_mib()
    print(json.dumps(row | {"peak": peak}))


class Case(NamedTuple):
    """A line of the table."""

    name: str
    clients: int
    steps: int = 5  # discriminator steps
    chunk: int | None = None
    rounds: int = 1
    hidden: tuple[int, ...] = HIDDEN


def cases(smoke) -> list[Case]:
    """Returns the lines of the table."""
    rivals = []
    if has_torch():
        from blinder import torch_rival

        rivals = [Case(rival, TORCH_AT) for rival in torch_rival.RIVALS]
    if smoke:
        rows = [Case("materialised", 2), Case("factored", 5, chunk=2), *rivals[-1:]]
        return [row._replace(steps=1, hidden=SMOKE_HIDDEN) for row in rows]
    rows = [Case("reference", 2)]  # It is unrolled and compiles slowly.
    for clients in (14, 16, MATERIALISED_UP_TO):
        rows.append(Case("materialised", clients, rounds=2))
        rows.append(Case("factored", clients, rounds=max(2, 512 // clients)))
    chunk = 64 if jax.default_backend() == "cpu" else None
    for clients in (256, 1024, 4096, 10_000):
        rounds = max(1, 512 // clients)
        rows.append(Case("factored", clients, chunk=chunk, rounds=rounds))
    rows += [Case("first order", n, rounds=max(2, 512 // n)) for n in (14, 64)]
    rows += [Case("factored", 64, steps=1, rounds=8)]
    rows += [Case("materialised", 64, steps=1, rounds=2)]
    return rows + rivals


def chosen(table, clients) -> list[Case]:
    """Returns the lines with the cohort sizes of ``--clients``, or all lines."""
    if clients is None:
        return table
    asked = clients.split(",")
    timing.among("clients", asked, dict.fromkeys(str(case.clients) for case in table))
    return [case for case in table if str(case.clients) in asked]


def main():
    """Prints the table and its ratios."""
    if sys.argv[1:2] == ["--one"]:
        fields, repeats = json.loads(sys.argv[2])
        case = Case(**fields)
        return one(case._replace(hidden=tuple(case.hidden)), repeats)
    args = timing.arguments(
        __doc__,
        clients="sizes of cohorts, separated by commas; all by default",
    )
    table = chosen(cases(args.smoke), args.clients)
    report = timing.Report(args.json, smoke=args.smoke)
    check(table[0].steps, table[0].hidden)
    print("all implementations give the same gradient")
    rates = {}
    for case in table:
        settings = json.dumps([case._asdict(), 1 if args.smoke else 3])
        process = subprocess.run(
            processes.call("blinder.meta_gradient", "--one", settings),
            stdout=subprocess.PIPE,
            check=True,
        )
        row = json.loads(process.stdout.splitlines()[-1])
        rate = case.clients / row["seconds"]
        rates.setdefault((case.name, case.steps), {})[case.clients] = rate
        chunks = f" in chunks of {case.chunk}" if case.chunk else ""
        report.add(
            f"{case.name}, {case.steps} adversary steps",
            rate,
            "client updates/s",
            f"{case.clients} clients{chunks}",
            flops=rate * row["flops"],
            peak_memory_mib=row["peak"],
            compile_s=row["compile_s"],
        )
    ratios(report, rates)
    report.write()


def ratios(report, rates):
    """Adds the speedup of factored over copied weights and over each rival."""
    for (name, steps), by_clients in rates.items():
        for clients, rate in by_clients.items():
            fast = rates.get(("factored", steps), {}).get(clients)
            if fast and name != "factored":
                report.add(
                    f"factored over {name}",
                    fast / rate,
                    "x",
                    f"{clients} clients, {steps} steps",
                )
