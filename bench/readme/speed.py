"""README's tables of speed."""

from harness.pages import columns_table, table
from harness.results import Rows, figures
from readme.kernels import kernels, kernels_gpu

UPDATES = "client updates/s"


META = (  # Name in README, name of the row, and its shapes.
    ("factored", "factored", "14 clients"),
    ("factored", "factored", "64 clients"),
    ("factored", "factored", "1024 clients in chunks of 64"),
    ("factored", "factored", "10000 clients in chunks of 64"),
    ("factored, first order", "first order", "64 clients"),
    ("every client's weights copied (`vmap`)", "materialised", "64 clients"),
    ("PyTorch 2.13, one after another", "PyTorch, one after another", "14 clients"),
    ("`torch.func.vmap`", "torch.func.vmap", "14 clients"),
)


def meta(results):
    """Returns the speed of a cohort's second-order meta-gradient."""
    found = Rows(results, "meta_cpu").rows
    rows = {(row["name"], row["shapes"]): row for row in found}
    lines = []
    for told, name, shapes in META:
        row = rows[f"{name}, 5 adversary steps", shapes]
        number, chunks = shapes.split(" clients")
        share = f"{100 * row['share_of_matmul_rate']:.0f} %"
        lines.append([told, f"{int(number):,}{chunks}", f"{row['value']:,.0f}", share])
    return table(["", "clients", UPDATES, "share of the rate of products"], lines)


def federated(results):
    """Returns the speed of FedAvg's rounds, compared with rivals."""
    found, shapes = Rows(results, "federated_cpu"), "64 clients"
    ours = "FedAvg, a shard per device"
    best = found.value(ours, shapes)

    def told(name):
        one = name.replace("one device", "one program")
        return one.replace("a shard per device", "a shard for each core")

    def times(name):
        other = name.startswith(("LDP-FL", "Atlas"))  # Different algorithms.
        if other or name == ours:
            return ""
        return figures(best / found.value(name, shapes), 2)

    columns = {
        "": told,
        UPDATES: lambda name: f"{found.value(name, shapes):,.0f}",
        "share of the rate of products": lambda name: found.products(name, shapes),
        "FedAvg by shards is faster by": times,
    }
    names = (
        *(ours, "FedAvg, one device", "LDP-FL, one device", "Atlas, one device"),
        *("Atlas with noise, one device", "pfl, one process", "pfl, two processes"),
        *("FedJAX, pmap", "FedJAX, jit", "Flower", "TFF"),
    )
    return columns_table(names, columns)


def devices(results):
    """Returns the same rounds on one device, two workers and two processes."""
    found, clients = Rows(results, "devices_cpu"), "256 clients"
    names = {
        "FedAvg": "FedAvg, 768-256-128-25-128-256-768, 5 steps of 16",
        "Blinder": "Blinder at MobiAct's sizes, second order",
    }
    rate = lambda how: lambda name: f"{found.value(f'{name}, {how}', clients):,.0f}"
    share = lambda name: found.products(f"{name}, one device", clients)
    columns = {
        UPDATES: names.get,
        "one device, one program (share of the rate of products)": lambda name: (
            f"{rate('one device')(name)} ({share(name)})"
        ),
        "2 workers": rate("2 workers"),
        "2 processes": rate("2 processes"),
    }
    return columns_table(names, columns)


def edge(results):
    """Returns the speed of exported models, one window at a time."""
    found = Rows(results, "edge_cpu")
    times = ("median", "99th percentile")

    def took(name, digits):
        each = (found.value(f"{name}, {what}") for what in times)
        return " / ".join(f"{value:.{digits}f}" for value in each)

    lines = []
    for name in ("blinder", "obscurenet"):
        for at in (f"{name}, {weights}" for weights in ("float32", "float16", "int8")):
            size = f"{found.value(f'{at}, file'):.1f}"
            faster = f"{found.value(f'{at} over float32'):.2f}"
            read = (found.value(f"{at}, {what} read") for what in ("exercise", "side"))
            told = (f"{value:.1f}" for value in read)
            lines.append([at, took(at, 2), size, faster, *told])
    choice = "choice among 36"
    for name in (f"{choice}, float32", f"{choice}, int8", "privatehub, float32"):
        lines.append([name, took(name, 1), *[""] * 4])
    head = ["one core", "median / 99th percentile, ms", "file, MB"]
    head += ["times as fast as float32", "exercise read, %", "side read, %"]
    return table(head, lines)


TABLES = {
    "meta-gradients": meta,
    "rounds": federated,
    "devices": devices,
    "edge": edge,
    "kernels": kernels,
    "kernels on a GPU": kernels_gpu,
}
