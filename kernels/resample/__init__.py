"""Class balancing of one client's rows: SMOTE, under-sampling and draws from both."""

from jaxanon.kernels.resample.api import (
    balance,
    balance_table,
    draw_balanced,
    draw_from_table,
    same_class_neighbors,
    smote,
    under_sample,
)
from jaxanon.kernels.resample.tables import BalanceTable, Rows

__all__ = [
    "BalanceTable",
    "Rows",
    "balance",
    "balance_table",
    "draw_balanced",
    "draw_from_table",
    "same_class_neighbors",
    "smote",
    "under_sample",
]
