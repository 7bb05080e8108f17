"""Arrays in, arrays out: the kernels that jaxanon is built of, for any JAX program."""

from jaxanon.kernels.factored import (
    FactoredKernel,
    Factors,
    descend,
    inner_product,
    materialise,
    materialise_gradient,
    matmul,
    pays,
    squared_norm,
    value_and_grad,
    weighted_sum,
)
from jaxanon.kernels.meta import Objective, Phase, adapt, meta_gradient

__all__ = [
    "FactoredKernel",
    "Factors",
    "Objective",
    "Phase",
    "adapt",
    "descend",
    "inner_product",
    "materialise",
    "materialise_gradient",
    "matmul",
    "meta_gradient",
    "pays",
    "squared_norm",
    "value_and_grad",
    "weighted_sum",
]
