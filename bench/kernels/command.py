"""How fast the kernels are: python bench kernels [--smoke] [--json F] [--area A].

One table over all kernels, each beside its reference and, where they are installed, the
rivals: operations, bytes and the share of the machine's limit, ratios in one run.
``--area`` names some of them, with commas between.
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
    """Prints the table of the chosen areas."""
    args = timing.arguments(__doc__, area=timing.one_of(AREAS, apart=","))
    report = timing.KernelReport(args.json, smoke=args.smoke)
    for area in args.area:
        importlib.import_module(f"kernels.{area}").rows(report, args.smoke)
    report.write()
