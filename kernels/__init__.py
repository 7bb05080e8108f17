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
from jaxanon.kernels.resample import (
    BalanceTable,
    Rows,
    balance,
    balance_table,
    draw_balanced,
    draw_from_table,
    same_class_neighbours,
    smote,
    under_sample,
)

__all__ = [
    "BalanceTable",
    "FactoredKernel",
    "Factors",
    "Objective",
    "Phase",
    "Rows",
    "adapt",
    "balance",
    "balance_table",
    "descend",
    "draw_balanced",
    "draw_from_table",
    "inner_product",
    "materialise",
    "materialise_gradient",
    "matmul",
    "meta_gradient",
    "pays",
    "same_class_neighbours",
    "smote",
    "squared_norm",
    "under_sample",
    "value_and_grad",
    "weighted_sum",
]
