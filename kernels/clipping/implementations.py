"""Which program clips and which makes noise: the same numbers, up to rounding."""

from jaxanon.kernels.checks import one_of
from jaxanon.kernels.clipping import factors

NAMES = ("pallas", "pallas_interpreted", "xla")


def sum_of_rows(implementation):
    """``(leaves, group_of, bounds, weights) -> sums``, leaf by leaf."""
    name = _known(implementation)
    if name == "xla":
        return factors.sum_of_rows
    # Loaded where it is asked for: Pallas takes longer to import than all kernels.
    from jaxanon.kernels.clipping import pallas_sum

    return pallas_sum.interpreted if name == "pallas_interpreted" else pallas_sum.run


def noise(implementation):
    """``(key, leaf, stddev, scale) -> leaf``, scaled, with noise."""
    name = _known(implementation)
    if name == "xla":
        return factors.noisy
    from jaxanon.kernels.clipping import pallas_noise

    return (
        pallas_noise.interpreted if name == "pallas_interpreted" else pallas_noise.run
    )


def _known(implementation):
    name = "xla" if implementation is None else implementation
    one_of("implementation", name, list(NAMES))
    return name
