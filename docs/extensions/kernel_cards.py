"""Kernel cards: cost, measured speed and documentation of each folder of kernels."""

import importlib
import inspect
import pathlib

import api
from rows import RESULTS, bench, table

COSTS = pathlib.Path(__file__).with_name("kernel_costs.tsv")
MACHINES = {"kernels_cpu": "CPU", "kernels_gpu": "GPU"}


def pages() -> dict[str, str]:
    """Returns a Markdown page for each folder of kernels by file name."""
    found = {k: v for k, v in api.plan().items() if k.startswith("jaxanon.kernels.")}
    return {f"{page.rpartition('.')[2]}.md": _page(page, found[page]) for page in found}


def costs() -> dict[str, tuple[str, str]]:
    """Returns the operations and memory of each kernel function."""
    lines = (line.split("\t") for line in COSTS.read_text().splitlines())
    return {name: (operations, memory) for name, operations, memory in lines}


def measured() -> list[list[str]]:
    """Returns the machine and the cells of every measured kernel."""
    tables = bench("readme.kernels")
    return [
        [machine, *line]
        for name, machine in MACHINES.items()
        for line in tables.lines(RESULTS, name)
    ]


def _page(page, names):
    short = [name.rpartition(".")[2] for name in names]
    known, title = costs(), page.rpartition(".")[2]
    parts = [f"# {title}", inspect.getdoc(importlib.import_module(page))]
    if any(name in known for name in short):
        rows = [(f"`{name}`", *known[name]) for name in short if name in known]
        parts += ["## Cost", table(("kernel", "operations", "memory"), rows)]
    lines = [
        [kernel, machine, *cells]
        for machine, kernel, *cells in measured()
        if any(f"`{name}`" in kernel for name in short)
    ]
    if lines:
        head = ("kernel", "on", "size", "time or rate", "share of the nearer limit")
        shown = table((*head, "compared with"), lines)
        link = "Devices, versions and the commands are on {doc}`/results/speed`."
        parts += ["## Measured speed", shown, link]
    rst = "\n".join(line for name in names for line in api.member(name))
    parts += ["## Functions and classes", f"```{{eval-rst}}\n{rst}\n```"]
    return "\n\n".join(parts) + "\n"
