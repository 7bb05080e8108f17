"""A grid of settings and seeds taken apart: what is an array, what is compiled in."""

import dataclasses
import itertools
import math
import numbers
from collections.abc import Callable
from typing import NamedTuple

import jax

from jaxanon import checks, methods
from jaxanon.methods.method import check_hyper


class Plan(NamedTuple):
    """The members of a sweep, in order, and which of them share a program."""

    members: list[tuple[dict, int]]  # (settings of the grid, seed); seeds run fastest
    groups: list["Group"]


class Group(NamedTuple):
    """Members that differ in nothing but arrays."""

    method: methods.Method
    indices: list[int]  # into the members
    hyper: list[dict[str, float]]  # one per member


def plan(builder, spec, grid: dict[str, list], num_seeds: int, settings: dict) -> Plan:
    """Lays out the product of ``grid`` and seeds 0, 1, ... ``num_seeds - 1``.

    Raises:
      ValueError: for a name that is no setting of the method, a list without values, a
        hyper-parameter that is no finite number or out of its range, no seeds; and as
        the method's builder.
      TypeError: for a builder that cannot be called.
    """
    checks.positive(seeds=num_seeds)
    build = _builder(builder, settings)
    method = build(spec)
    known = jax.eval_shape(lambda: method.init(jax.random.key(num_seeds))).hyper
    fields = {field.name for field in dataclasses.fields(method.config)}
    for name, values in grid.items():
        _check_axis(name, values, known, fields)
        if name not in known and isinstance(builder, methods.Method):
            raise ValueError(
                f"grid name {name!r} is compiled into a method that is built already; "
                f"pass its builder, such as {method.name!r}, in place of the method."
            )
    cells = [
        dict(zip(grid, values, strict=True))
        for values in itertools.product(*grid.values())
    ]
    members = [(cell, seed) for cell in cells for seed in range(num_seeds)]
    groups: list[tuple[dict, list[int]]] = []
    for index, (cell, _) in enumerate(members):
        static = {name: value for name, value in cell.items() if name not in known}
        for other, indices in groups:
            if other == static:
                indices.append(index)
                break
        else:
            groups.append((static, [index]))
    hyper = lambda cell: {name: float(cell[name]) for name in cell if name in known}
    for cell in cells:
        check_hyper(method, hyper(cell))
    return Plan(
        members,
        [
            Group(
                build(spec, **static) if static else method,
                indices,
                [hyper(members[index][0]) for index in indices],
            )
            for static, indices in groups
        ],
    )


def _builder(builder, settings) -> Callable:
    """``(spec, **static) -> Method``, whatever way the method was given."""
    if isinstance(builder, methods.Method):
        if settings:
            raise ValueError(
                f"settings {sorted(settings)} do not apply to a method that is built "
                f"already; pass its builder, such as {builder.name!r}."
            )
        return lambda spec: builder
    if isinstance(builder, str):
        return lambda spec, **static: methods.build(builder, spec, **settings | static)
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
        )
    if not isinstance(values, list | tuple) or not values:
        raise ValueError(
            f"grid[{name!r}] must be a list with at least one value, got {values!r}."
        )
    for value in values if name in known else ():
        if not isinstance(value, numbers.Real) or not math.isfinite(value):
            raise ValueError(
                f"grid[{name!r}] must hold finite numbers, got {value!r}; leave it out."
            )
