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
    """``(keys, leaves, stddevs, scales) -> leaves``, scaled, with noise."""
    name = _known(implementation)
    if name == "xla":
        return factors.noisy_leaves
    from jaxanon.kernels.clipping import pallas_noise

    interpreted = name == "pallas_interpreted"
    one = pallas_noise.interpreted if interpreted else pallas_noise.run
    return lambda *of_each: [one(*own) for own in zip(*of_each, strict=True)]


def _known(implementation):
    name = "xla" if implementation is None else implementation
    one_of("implementation", name, list(NAMES))
    return name
