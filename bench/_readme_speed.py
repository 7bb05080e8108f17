"""README's tables of how fast things are."""

from _markdown import table
from _readme_kernels import kernels, kernels_gpu
from _readme_rows import Rows, figures

UPDATES = "client updates/s"


def meta(results):
    """A cohort's second-order meta-gradient."""
    found = Rows(results, "meta_cpu")
    cases = (
        ("factored", "factored, 5 adversary steps", "14 clients"),
        ("factored", "factored, 5 adversary steps", "64 clients"),
        ("factored", "factored, 5 adversary steps", "1024 clients in chunks of 64"),
        ("factored", "factored, 5 adversary steps", "10000 clients in chunks of 64"),
        ("factored, first order", "first order, 5 adversary steps", "64 clients"),
        (
            "every client's weights copied (`vmap`)",
            *("materialised, 5 adversary steps", "64 clients"),
        ),
        (
            "PyTorch 2.13, one after another",
            *("PyTorch, one after another, 5 adversary steps", "14 clients"),
        ),
        ("`torch.func.vmap`", "torch.func.vmap, 5 adversary steps", "14 clients"),
    )
    rows = {(row["name"], row["shapes"]): row for row in found.rows}
    lines = []
    for told, name, shapes in cases:
        row = rows[name, shapes]
        share = f"{100 * row['share_of_matmul_rate']:.0f} %"
        clients = f"{int(shapes.split()[0]):,}{shapes[shapes.index(' clients') + 8 :]}"
        lines.append([told, clients, f"{row['value']:,.0f}", share])
    return table(["", "clients", UPDATES, "share of the rate of products"], lines)


def federated(results):
    """Rounds of FedAvg beside rivals'."""
    found = Rows(results, "federated_cpu")
    shapes = "64 clients"
    ours = "FedAvg, a shard per device"
    cases = {
        ours: "FedAvg, a shard for each core",
        "FedAvg, one device": "FedAvg, one program",
        "LDP-FL, one device": "LDP-FL, one program",
        "Atlas, one device": "Atlas, one program",
        "Atlas with noise, one device": "Atlas with noise, one program",
        "pfl, one process": "pfl, one process",
        "pfl, two processes": "pfl, two processes",
        "FedJAX, pmap": "FedJAX, pmap",
        "FedJAX, jit": "FedJAX, jit",
        "Flower": "Flower",
        "TFF": "TFF",
    }
    best = found.value(ours, shapes)
    lines = []
    for name, told in cases.items():
        value = found.value(name, shapes)
        other = name.startswith(("LDP-FL", "Atlas"))  # Another algorithm.
        times = "" if other or name == ours else figures(best / value, 2)
        lines.append([told, f"{value:,.0f}", found.products(name, shapes), times])
    head = [
        "",
        UPDATES,
        "share of the rate of products",
        "FedAvg by shards is faster by",
    ]
    return table(head, lines)


def devices(results):
    """The same rounds on one device, by two workers and by two processes."""
    found = Rows(results, "devices_cpu")
    lines = []
    for name, told in (
        ("FedAvg", "FedAvg, 768-256-128-25-128-256-768, 5 steps of 16"),
        ("Blinder", "Blinder at MobiAct's sizes, second order"),
    ):
        whole = f"{name}, one device"
        parts = [
            f"{found.value(f'{name}, {how}', '256 clients'):,.0f}"
            for how in ("2 workers", "2 processes")
        ]
        share = found.products(whole, "256 clients")
        lines.append(
            [told, f"{found.value(whole, '256 clients'):,.0f} ({share})", *parts]
        )
    whole = "one device, one program (share of the rate of products)"
    return table([UPDATES, whole, "2 workers", "2 processes"], lines)


def edge(results):
    """Exported models, one window at a time."""
    found = Rows(results, "edge_cpu")
    lines = []
    for name in ("blinder", "obscurenet"):
        for weights in ("float32", "float16", "int8"):
            value = lambda what, at=f"{name}, {weights}": found.value(f"{at}{what}")
            took = [
                f"{value(f', {what}'):.2f}" for what in ("median", "99th percentile")
            ]
            lines.append(
                [
                    *(f"{name}, {weights}", " / ".join(took)),
                    *(f"{value(', file'):.1f}", f"{value(' over float32'):.2f}"),
                    *(
                        f"{value(f', {what} read'):.1f}"
                        for what in ("exercise", "side")
                    ),
                ]
            )
    for name in (
        "choice among 36, float32",
        "choice among 36, int8",
        "privatehub, float32",
    ):
        took = (
            found.value(f"{name}, {what}") for what in ("median", "99th percentile")
        )
        lines.append([name, " / ".join(f"{each:.1f}" for each in took), *[""] * 4])
    return table(
        [
            *("one core", "median / 99th percentile, ms", "file, MB"),
            *("times as fast as float32", "exercise read, %", "side read, %"),
        ],
        lines,
    )


TABLES = {
    "meta-gradients": meta,
    "rounds": federated,
    "devices": devices,
    "edge": edge,
    "kernels": kernels,
    "kernels on a GPU": kernels_gpu,
}
