"""Compares the speed of the kernels with references, rivals and machine limits.

Example: ``python bench kernels --area clipping,warping --smoke``.

Prints one table of all kernels, each with its reference and installed rivals:
operations, bytes, share of the machine's limit, and ratios within one run. ``--area``
selects areas, separated by commas.
"""

import importlib

from harness import timing

AREAS = (
    "aggregation",
    "clipping",
    "dependence",
    "diffusion",
    "ghost",
    "mechanisms",
    "orthogonal",
    "resampling",
    "signals",
    "warping",
)


def main():
    """Prints the table of the selected areas."""
    args = timing.arguments(__doc__, area=timing.one_of(AREAS, apart=","))
    report = timing.KernelReport(args.json, smoke=args.smoke)
    for area in args.area:
        importlib.import_module(f"kernels.{area}").rows(report, args.smoke)
    report.write()
