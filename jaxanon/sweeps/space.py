"""Grids of settings and seeds, split into traced arrays and compiled settings."""

import dataclasses
import itertools
import math
import numbers
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from jaxanon.core import registry
from jaxanon.core.method import Incompatible, Method, check_hyper, check_measured
from jaxanon.kernels.checks import did_you_mean, whole

# Hyper-parameters that a privacy budget determines.
FROM_BUDGET = ("noise_multiplier", "score_multiplier", "weight_epsilon")


class Plan(NamedTuple):
    """Members of a sweep, in order, and groups of members that share a program."""

    members: list["Place"]  # seeds vary fastest, then splits
    groups: list["Group"]


class Place(NamedTuple):
    """Settings, seed and split of a member."""

    settings: dict[str, Any]  # values of the grid
    seed: int
    split: int = 0  # index of the split


class Group(NamedTuple):
    """Members that differ only in arrays."""

    methods: tuple[Method, ...]  # by split, with its statistics
    indices: list[int]  # into the members
    hyper: list[dict[str, float]]  # one per member

    @property
    def method(self) -> Method:
        """Method of the first split."""
        return self.methods[0]


def plan(
    builder,
    spec,
    grid: dict[str, list],
    num_seeds: int,
    settings: dict,
    more: tuple = (),
) -> Plan:
    """Plans the product of ``grid``, splits and seeds 0, 1, ... ``num_seeds - 1``.

    ``more`` holds the specs of further splits. Grid points with incompatible settings
    are skipped with a warning.

    Raises:
      ValueError: for an unknown setting, an empty axis, an invalid hyper-parameter, a
        grid without compatible points, no seeds, or a built ``Method`` with several
        splits.
      TypeError: if the builder is not callable.
    """
    whole("num_seeds", num_seeds, least=1)
    build = _builder(builder, settings)
    if more and isinstance(builder, Method):
        raise ValueError(
            "method must be a builder for several splits, because a built method has "
            f"the statistics of one split, got a Method; pass {builder.name!r}."
        )
    method = build(spec)
    check_measured(method)
    known = jax.eval_shape(lambda: method.init(jax.random.key(num_seeds))).hyper
    if method.guarantee is not None:  # The budget determines these settings.
        known = {k: v for k, v in known.items() if k not in FROM_BUDGET}
    config = method.config
    fields = {each.name for each in dataclasses.fields(config)} if config else set()
    for name, values in grid.items():
        _check_axis(name, values, known, fields)
        if name not in known and isinstance(builder, Method):
            raise ValueError(
                f"grid must not name {name!r}, which is compiled into the built "
                f"method; pass the builder {method.name!r} instead of the method."
            )
    hyper = lambda cell: {name: float(cell[name]) for name in cell if name in known}
    cells = _possible(method, grid, hyper)
    members = [
        Place(cell, seed, split)
        for cell in cells
        for split in range(1 + len(more))
        for seed in range(num_seeds)
    ]
    groups = []
    for static, indices in group_by_static(members, known):
        first = build(spec, **static) if static else method
        built = (first, *(build(other, **static) for other in more))
        groups.append(Group(built, indices, [hyper(members[i][0]) for i in indices]))
    return Plan(members, groups)


def grid_points(grid: dict[str, list]) -> list[dict]:
    """Returns the product of a grid's axes.

    Example:
      >>> grid_points({"alpha": [1, 2], "beta": [3]})
      [{'alpha': 1, 'beta': 3}, {'alpha': 2, 'beta': 3}]
    """
    return [
        dict(zip(grid, values, strict=True))
        for values in itertools.product(*grid.values())
    ]


def group_by_static(members, arrays) -> list[tuple[dict, list[int]]]:
    """Groups members by the settings that are compiled into their program.

    Args:
      members: list of ``(settings, seed, ...)``.
      arrays: names of settings that are traced arrays.

    Returns:
      List of ``(compiled settings, member indices)``.

    Example:
      >>> group_by_static([({"a": 1, "b": 0}, 0), ({"a": 2, "b": 0}, 0)], {"a"})
      [({'b': 0}, [0, 1])]
    """
    groups: list[tuple[dict, list[int]]] = []
    for index, (cell, *_) in enumerate(members):
        static = {name: value for name, value in cell.items() if name not in arrays}
        for other, indices in groups:
            if other == static:
                indices.append(index)
                break
        else:
            groups.append((static, [index]))
    return groups


def check_values(name: str, values) -> None:
    """Raises ValueError unless an axis is a non-empty list of distinct values.

    Example:
      >>> check_values("alpha", [1, 2])
    """
    if not isinstance(values, list | tuple) or not values:
        raise ValueError(
            f"grid[{name!r}] must be a list with at least one value, got {values!r}."
        )
    if any(value in values[:index] for index, value in enumerate(values)):
        raise ValueError(
            f"grid[{name!r}] must have each value once, got {values!r}; use more seeds "
            "to repeat a setting."
        )


def _possible(method, grid, hyper_fn):
    """Grid points with compatible settings."""
    all_points = grid_points(grid)
    cells, reason = [], None
    for cell in all_points:
        try:
            check_hyper(method, hyper_fn(cell))
            cells.append(cell)
        except Incompatible as error:
            reason = error
    if not cells:
        raise ValueError(f"grid must have at least one possible point: {reason}")
    if reason is not None:
        number = len(all_points)
        warnings.warn(
            f"{number - len(cells)} of {number} points of the grid are skipped: "
            f"{reason}",
            stacklevel=5,
        )
    return cells


def _builder(builder, settings) -> Callable:
    """Returns ``(spec, **static) -> Method`` for a method, its name or its builder."""
    if isinstance(builder, Method):
        if settings:
            raise ValueError(
                f"settings {sorted(settings)} do not apply to a built method; pass the "
                f"builder {builder.name!r} instead."
            )
        return lambda spec: builder
    if isinstance(builder, str):
        return lambda spec, **static: registry.build(builder, spec, **settings | static)
    if not callable(builder):
        raise TypeError(
            "method must be a builder such as jaxanon.methods.blinder, its name, or a "
            f"Method, got {type(builder).__name__}."
        )
    return lambda spec, **static: builder(spec, **settings | static)


def _check_axis(name, values, known, fields):
    if name not in known and name not in fields:
        raise ValueError(
            f"grid must name settings, got {name!r}; hyper-parameters are "
            f"{sorted(known)}, compiled settings are {sorted(fields - set(known))}."
            f"{did_you_mean(name, {*known, *fields})}"
        )
    check_values(name, values)
    for value in values if name in known else ():
        if not isinstance(value, numbers.Real) or not math.isfinite(value):
            raise ValueError(
                f"grid[{name!r}] must hold finite numbers, got {value!r}; remove it."
            )
