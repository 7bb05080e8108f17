"""Numeric attributes as classes between bounds."""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from jaxanon.datasets.importing.table import Labels, Table


def bin_names(
    attribute: str, names: Sequence[str], bins: Mapping[str, Sequence[float]]
) -> list[str]:
    """Returns the class of each number in ``names``; unchanged without bounds.

    Raises:
      ValueError: if a name is not a number.

    Example:
      >>> bin_names("age", ["27", "30", "71"], {"age": (30, 50)})
      ['<30', '30-50', '>=50']
    """
    if attribute not in bins:
        return [*names]
    bounds = [*bins[attribute]]
    texts = [f"{bound:g}" for bound in bounds]
    inner = [f"{a}-{b}" for a, b in itertools.pairwise(texts)]
    classes = [f"<{texts[0]}", *inner, f">={texts[-1]}"]
    each = []
    for name in names:
        try:
            value = float(name)
        except ValueError:
            value = float("nan")
        if value != value:
            raise ValueError(
                f"{attribute} must have numbers for bins (--bins), got {name!r}; omit "
                "the bins, or correct the cell."
            )
        each.append(classes[int(np.searchsorted(bounds, value, side="right"))])
    return each


def bin_table(table: Table, bins: Mapping[str, Sequence[float]]) -> Table:
    """Returns the table with the classes of ``bins`` in place of numbers."""
    labels = dict(table.labels)
    for attribute in {*bins} & {*labels}:
        codes, names = labels[attribute]
        binned = bin_names(attribute, names, bins)
        order = sorted(set(binned))
        index = np.array([*map(order.index, binned), -1], np.int32)
        labels[attribute] = Labels(index[codes], tuple(order))
    return table._replace(labels=labels)


def check_bins(bins: Mapping[str, Sequence[float]], attributes) -> None:
    """Raises ValueError for an unknown attribute or bounds that do not increase."""
    for attribute, bounds in bins.items():
        if attribute not in attributes:
            raise ValueError(
                f"bins must be of the attributes {list(attributes)}, got {attribute!r}."
            )
        if not len(bounds) or not (np.diff([-np.inf, *bounds, np.inf]) > 0).all():
            raise ValueError(
                f"bins of {attribute} must be finite numbers that increase, got "
                f"{list(bounds)}."
            )
