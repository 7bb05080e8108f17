"""Updates of dense layers, kept as the two thin matrices whose product they are."""

from jaxanon.kernels.factored.algebra import inner_product, squared_norm, weighted_sum
from jaxanon.kernels.factored.api import (
    descend,
    materialise,
    materialise_gradient,
    pays,
    value_and_grad,
)
from jaxanon.kernels.factored.kernel import FactoredKernel, Factors, matmul

__all__ = [
    "FactoredKernel",
    "Factors",
    "descend",
    "inner_product",
    "materialise",
    "materialise_gradient",
    "matmul",
    "pays",
    "squared_norm",
    "value_and_grad",
    "weighted_sum",
]
