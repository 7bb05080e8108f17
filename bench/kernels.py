"""How fast the kernels are: python bench/kernels.py [--smoke] [--json F] [--area A].

One table over all kernels, each beside its reference and, where they are installed, the
rivals: operations, bytes and the share of the machine's limit, ratios in one run.
``--area`` names some of them, with commas between.
"""

import importlib

import _timing

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
    args = _timing.arguments(
        __doc__.splitlines()[0], area=f"of {', '.join(AREAS)}; all by default"
    )
    chosen = args.area.split(",") if args.area else AREAS
    _timing.among("area", chosen, AREAS)
    report = _timing.KernelReport(args.json, smoke=args.smoke)
    for area in chosen:
        importlib.import_module(f"_{area}").rows(report, args.smoke)
    report.write()


if __name__ == "__main__":
    main()
