"""Several splits of a data set in one sweep: which of them share a program."""

import dataclasses
import hashlib
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon import datasets
from jaxanon.sweeps import program
from jaxanon.sweeps.program import LAYOUTS, Program
from jaxanon.sweeps.space import Group
from jaxanon.training import run_folder

STATISTICS = {"mean", "std", "targets"}  # What splits' specs may differ in.


class Bundle(NamedTuple):
    """Splits that are trained by one program, side by side where there are several."""

    splits: tuple[int, ...]
    shared: Program

    def alone(self, split: int) -> Program:
        """The program for one of the splits."""
        if len(self.splits) == 1:
            return self.shared
        place = self.splits.index(split)
        data = jax.tree.map(lambda leaf: leaf[place], self.shared.data)
        return self.shared._replace(data=data, splits=1)


def check(splits) -> list[str]:
    """Refuses splits that are not of one data set, or not different.

    Args:
      splits: ``Data`` each.

    Returns:
      Their fingerprints.

    Raises:
      ValueError: if specs differ in more than statistics, or windows do not differ.
    """
    told = [run_folder.fingerprint(data) for data in splits]
    first = splits[0].spec
    for number, data in enumerate(splits):
        spec = data.spec
        fields = {field.name for field in dataclasses.fields(spec)} - STATISTICS
        differ = [f for f in sorted(fields) if getattr(first, f) != getattr(spec, f)]
        if differ:
            raise ValueError(
                f"split {number} is of another data set than split 0: {differ} differ; "
                "load all of them with the same arguments but for the seed."
            )
        if (same := told.index(told[number])) < number:
            raise ValueError(
                f"splits {same} and {number} hold the same windows, and deviations "
                'over them would be too small; load them by split="subject" (--split '
                "subject), whose test subjects the seed draws, and where it drew the "
                "same ones twice by another seed."
            )
    return told


def rounds_per_epoch(method, data) -> int | None:
    """Rounds of an epoch; None of a method none of whose phases is counted in them."""
    if not method.schedule.min_rounds:
        return None
    return method.schedule.rounds_per_epoch(
        method.prepare(datasets.by_client(data.train))
    )


def bundles(splits, group: Group, layout: str, chunk: int | None) -> list[Bundle]:
    """The programs of a group's methods, each with the data of its splits.

    Splits share a program where their arrays have equal shapes and the method compiles
    to the same for them. Where a method's draws do not heed padding, clients are padded
    for equal shapes.

    Args:
      splits: ``Data`` each.
      group: whose methods are to be trained.
      layout: one after another, each split has a bundle of its own; programs are
        shared all the same.
      chunk: members trained at once; fewer than splits, and each has its own bundle.
    """
    clients = [datasets.by_client(data.train) for data in splits]
    if group.method.federation is not None and group.method.federation.pads:
        clients = pad_clients(clients)
    prepared = [
        method.prepare(own) for method, own in zip(group.methods, clients, strict=True)
    ]
    alike: dict[tuple, list[int]] = {}
    for number, (method, data) in enumerate(zip(group.methods, prepared, strict=True)):
        rounds = (
            method.schedule.rounds_per_epoch(data),
            method.schedule.work_per_round(data),
        )
        text = program_digest(method, data) if len(splits) > 1 else ""
        alike.setdefault((text, *rounds), []).append(number)
    first: dict[str, int] = {}  # Whose method lends the others its program.
    found = []
    for (text, *_), numbers in alike.items():
        method = group.methods[first.setdefault(text, numbers[0])]
        apart = layout == LAYOUTS[1] or (chunk or len(numbers)) < len(numbers)
        for own in [[number] for number in numbers] if apart else [numbers]:
            shared = program.program(method, prepared[own[0]], layout)
            if len(own) > 1:
                join = lambda *leaves: jnp.stack(leaves)
                data = jax.tree.map(join, *[prepared[number] for number in own])
                shared = shared._replace(data=data, splits=len(own))
            found.append(Bundle(tuple(own), shared))
    return found


def pad_clients(clients):
    """Stacked clients of each split, padded to the most windows that one has.

    Splits of other numbers of clients stay as they are: nobody is made up.

    Args:
      clients: ``datasets.Clients`` each.
    """
    if len({len(own.mask) for own in clients}) > 1:
        return clients
    most = max(own.mask.shape[1] for own in clients)

    def pad(array):
        room = [(0, 0), (0, most - array.shape[1])]
        return np.pad(array, room + [(0, 0)] * (array.ndim - 2))

    return [jax.tree.map(pad, own) for own in clients]


def program_digest(method, data) -> str:
    """A digest of what a method's ``init`` and ``update`` are compiled from.

    Numbers that a method was built with, such as its split's statistics, are in it.

    Args:
      method: ``Method``.
      data: of ``method.prepare``.
    """

    def whole(init_seed, run_seed, data):
        state = method.init(jax.random.key(init_seed))
        return method.update(jax.random.key(run_seed), state, data)

    seed = jax.ShapeDtypeStruct((), jnp.int32)
    text = jax.jit(whole).lower(seed, seed, data).as_text()
    return hashlib.sha256(text.encode()).hexdigest()
