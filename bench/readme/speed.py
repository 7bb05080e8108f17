"""Tables of speed."""

from harness.pages import columns_table, table
from harness.results import Rows, figures
from readme.kernels import kernels, kernels_gpu
from readme.stamp import listed, stamped

UPDATES = "client updates/s"
SHARE = "share of the matmul rate"
META = (  # Printed name, name of the row, and its shapes.
    ("factored", "factored", "14 clients"),
    ("factored", "factored", "64 clients"),
    ("factored", "factored", "1024 clients in chunks of 64"),
    ("factored", "factored", "10000 clients in chunks of 64"),
    ("factored, first order", "first order", "64 clients"),
    ("one copy of the weights per client (`vmap`)", "materialised", "64 clients"),
    ("PyTorch 2.13, one client at a time", "PyTorch, one after another", "14 clients"),
    ("`torch.func.vmap`", "torch.func.vmap", "14 clients"),
)


def meta(results):
    """Returns the rate of second-order meta-gradients."""
    found = Rows(results, "meta_cpu").rows
    rows = {(row["name"], row["shapes"]): row for row in found}
    lines = []
    for printed, name, shapes in META:
        row = rows[f"{name}, 5 adversary steps", shapes]
        number, chunks = shapes.split(" clients")
        share = f"{100 * row['share_of_matmul_rate']:.0f} %"
        cells = [f"{int(number):,}{chunks}", f"{row['value']:,.0f}", share]
        lines.append([printed, *cells])
    return table(["program", "clients", UPDATES, SHARE], lines)


def federated(results):
    """Returns the rate of FedAvg rounds, compared with other libraries."""
    found, shapes = Rows(results, "federated_cpu"), "64 clients"
    ours = "FedAvg, a shard per device"
    best = found.value(ours, shapes)

    def times(name):
        other = name.startswith(("LDP-FL", "Atlas"))  # These are other algorithms.
        if other or name == ours:
            return ""
        return figures(best / found.value(name, shapes), 2)

    columns = {
        "program": lambda name: name.replace("one device", "one program"),
        UPDATES: lambda name: f"{found.value(name, shapes):,.0f}",
        SHARE: lambda name: found.products(name, shapes),
        "sharded FedAvg is faster by": times,
    }
    names = (
        *(ours, "FedAvg, one device", "LDP-FL, one device", "Atlas, one device"),
        *("Atlas with noise, one device", "pfl, one process", "pfl, two processes"),
        *("FedJAX, pmap", "FedJAX, jit", "Flower", "TFF"),
    )
    return columns_table(names, columns)


def devices(results):
    """Returns the same rounds on one device, by two workers and by two processes."""
    found, clients = Rows(results, "devices_cpu"), "256 clients"
    names = {
        "FedAvg": "FedAvg, 768-256-128-25-128-256-768, 5 steps of 16",
        "Blinder": "Blinder with MobiAct's sizes, second order",
    }
    rate = lambda how: lambda name: f"{found.value(f'{name}, {how}', clients):,.0f}"
    share = lambda name: found.products(f"{name}, one device", clients)
    columns = {
        UPDATES: names.get,
        f"one program ({SHARE})": lambda name: (
            f"{rate('one device')(name)} ({share(name)})"
        ),
        "2 workers": rate("2 workers"),
        "2 processes": rate("2 processes"),
    }
    return columns_table(names, columns)


def edge(results):
    """Returns the time of exported models for one window."""
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
            scores = (
                found.value(f"{at}, {what} read") for what in ("exercise", "side")
            )
            cells = [took(at, 2), size, faster, *(f"{value:.1f}" for value in scores)]
            lines.append([at, *cells])
    choice = "choice among 36"
    for name in (f"{choice}, float32", f"{choice}, int8", "privatehub, float32"):
        printed = name.replace(choice, "DySan, choice among 36 models")
        lines.append([printed, took(name, 1), *[""] * 4])
    head = ["one core", "median / 99th percentile, ms", "file, MB"]
    head += ["x as fast as float32", "exercise, %", "side, %"]
    return table(head, lines)


_META = "python bench blinder.meta_gradient"
TABLES = {
    "meta-gradients": stamped(meta, _META, "meta_cpu"),
    "meta-gradients on a GPU": stamped(
        listed("meta_gpu", "devices_gpu"), _META, "meta_gpu"
    ),
    "rounds": stamped(
        federated, "python bench federated --rivals DIR", "federated_cpu"
    ),
    "devices": stamped(devices, "python bench devices", "devices_cpu"),
    "clients on disk": stamped(
        listed("devices_cpu", prefix="client"), "python bench devices", "devices_cpu"
    ),
    "costs": stamped(
        lambda results: "\n".join(
            line
            for line in listed("devices_cpu")(results).splitlines()
            if "paper over compiled" in line or line.startswith(("| meas", "| ---"))
        ),
        "python bench devices --part costs",
        "devices_cpu",
    ),
    "layouts": stamped(
        listed("layouts_cpu"), "python bench federated.layouts", "layouts_cpu"
    ),
    "layouts on a GPU": stamped(
        listed("layouts_gpu"), "python bench federated.layouts", "layouts_gpu"
    ),
    "sweeps": stamped(listed("sweep_cpu"), "python bench sweep", "sweep_cpu"),
    "sweeps on a GPU": stamped(listed("sweep_gpu"), "python bench sweep", "sweep_gpu"),
    "DySan": stamped(listed("dysan_cpu"), "python bench dysan", "dysan_cpu"),
    "edge": stamped(edge, "python bench edge", "edge_cpu"),
    "kernels": stamped(kernels, "python bench kernels", "kernels_cpu"),
    "kernels on a GPU": stamped(kernels_gpu, "python bench kernels", "kernels_gpu"),
}
