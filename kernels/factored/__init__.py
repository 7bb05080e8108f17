"""Updates of dense layers stored as two thin factors."""

from jaxanon.kernels.factored.algebra import inner_product, squared_norm, weighted_sum
from jaxanon.kernels.factored.api import (
    apply_factored,
    is_factored_cheaper,
    materialize,
    materialize_gradient,
    sgd_step,
    sgd_steps,
    value_and_grad,
)
from jaxanon.kernels.factored.kernel import FactoredKernel, Factors, matmul

__all__ = [
    "FactoredKernel",
    "Factors",
    "apply_factored",
    "inner_product",
    "is_factored_cheaper",
    "materialize",
    "materialize_gradient",
    "matmul",
    "sgd_step",
    "sgd_steps",
    "squared_norm",
    "value_and_grad",
    "weighted_sum",
]
