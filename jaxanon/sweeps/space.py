"""A grid of settings and seeds taken apart: what is an array, what is compiled in."""

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

# Hyper-parameters that follow from a privacy budget, where there is one.
FOLLOWS = ("noise_multiplier", "score_multiplier", "weight_epsilon")


class Plan(NamedTuple):
    """The members of a sweep, in order, and which of them share a program."""

    members: list["Place"]  # seeds run fastest, then splits
    groups: list["Group"]


class Place(NamedTuple):
    """What makes a member this one."""

    settings: dict[str, Any]  # its values of the grid
    seed: int
    split: int = 0  # which split of the data


class Group(NamedTuple):
    """Members that differ in nothing but arrays."""

    methods: tuple[Method, ...]  # by split, whose statistics they know
    indices: list[int]  # into the members
    hyper: list[dict[str, float]]  # one per member

    @property
    def method(self) -> Method:
        """That of the first split."""
        return self.methods[0]


def plan(
    builder,
    spec,
    grid: dict[str, list],
    num_seeds: int,
    settings: dict,
    more: tuple = (),
) -> Plan:
    """Lays out the product of ``grid``, splits and seeds 0, 1, ... ``num_seeds - 1``.

    ``more`` holds the specs of further splits of the data than that of ``spec``.
    Points whose settings may each be, and not together, are left out with a warning.

    Raises:
      ValueError: for a name that is no setting of the method, a list without values, a
        hyper-parameter that is no finite number or out of its range, a grid of which
        every point is left out, no seeds, a ``Method`` for several splits; and as the
        method's builder.
      TypeError: for a builder that cannot be called.
    """
    whole("num_seeds", num_seeds, least=1)
    build = _builder(builder, settings)
    if more and isinstance(builder, Method):
        raise ValueError(
            "a method that is built already knows the statistics of one split; pass "
            f"its builder, such as {builder.name!r}, to train it on several."
        )
    method = build(spec)
    check_measured(method)
    known = jax.eval_shape(lambda: method.init(jax.random.key(num_seeds))).hyper
    if method.guarantee is not None:  # Noise that follows from a budget is no axis.
        known = {k: v for k, v in known.items() if k not in FOLLOWS}
    config = method.config
    fields = {each.name for each in dataclasses.fields(config)} if config else set()
    for name, values in grid.items():
        _check_axis(name, values, known, fields)
        if name not in known and isinstance(builder, Method):
            raise ValueError(
                f"grid name {name!r} is compiled into a method that is built already; "
                f"pass its builder, such as {method.name!r}, in place of the method."
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
    for static, indices in alike(members, known):
        own = build(spec, **static) if static else method
        built = (own, *(build(other, **static) for other in more))
        groups.append(Group(built, indices, [hyper(members[i][0]) for i in indices]))
    return Plan(members, groups)


def points(grid: dict[str, list]) -> list[dict]:
    """The product of a grid's axes.

    Example:
      >>> points({"alpha": [1, 2], "beta": [3]})
      [{'alpha': 1, 'beta': 3}, {'alpha': 2, 'beta': 3}]
    """
    return [
        dict(zip(grid, values, strict=True))
        for values in itertools.product(*grid.values())
    ]


def alike(members, arrays) -> list[tuple[dict, list[int]]]:
    """What is compiled of members, and which of them share that.

    Args:
      members: ``(settings of the grid, seed, ...)`` each.
      arrays: names of settings that are not compiled.

    Example:
      >>> alike([({"a": 1, "b": 0}, 0), ({"a": 2, "b": 0}, 0)], {"a"})
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
    """Raises ValueError unless an axis is a list of one value or more, none twice.

    Example:
      >>> check_values("alpha", [1, 2])
    """
    if not isinstance(values, list | tuple) or not values:
        raise ValueError(
            f"grid[{name!r}] must be a list with at least one value, got {values!r}."
        )
    if any(value in values[:place] for place, value in enumerate(values)):
        raise ValueError(
            f"grid[{name!r}] must have each value once, got {values!r}; seeds say how "
            "often a setting is tried."
        )


def _possible(method, grid, hyper_fn):
    """The points of the grid that the method's settings allow."""
    all_points = points(grid)
    cells, reason = [], None
    for cell in all_points:
        try:
            check_hyper(method, hyper_fn(cell))
            cells.append(cell)
        except Incompatible as error:
            reason = error
    if not cells:
        raise ValueError(f"no point of the grid is possible: {reason}")
    if reason is not None:
        number = len(all_points)
        warnings.warn(
            f"{number - len(cells)} of {number} points of the grid are left out: "
            f"{reason}",
            stacklevel=5,
        )
    return cells


def _builder(builder, settings) -> Callable:
    """``(spec, **static) -> Method``, whatever way the method was given."""
    if isinstance(builder, Method):
        if settings:
            raise ValueError(
                f"settings {sorted(settings)} do not apply to a method that is built "
                f"already; pass its builder, such as {builder.name!r}."
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
            f"grid names {name!r}, which is no setting; hyper-parameters are "
            f"{sorted(known)}, settings that are compiled in "
            f"{sorted(fields - set(known))}."
            f"{did_you_mean(name, {*known, *fields})}"
        )
    check_values(name, values)
    for value in values if name in known else ():
        if not isinstance(value, numbers.Real) or not math.isfinite(value):
            raise ValueError(
                f"grid[{name!r}] must hold finite numbers, got {value!r}; leave it out."
            )
