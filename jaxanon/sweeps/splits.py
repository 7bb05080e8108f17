"""Splits of a data set in one sweep, and the programs that they share."""

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

STATISTICS = {"mean", "std", "targets"}  # Spec fields that may differ between splits.


class Bundle(NamedTuple):
    """Splits trained side by side by one program."""

    splits: tuple[int, ...]
    shared: Program

    def for_split(self, split: int) -> Program:
        """Returns the program for one of the splits."""
        if len(self.splits) == 1:
            return self.shared
        index = self.splits.index(split)
        data = jax.tree.map(lambda leaf: leaf[index], self.shared.data)
        return self.shared._replace(data=data, splits=1)


def check(splits) -> list[str]:
    """Checks that splits are different splits of one data set.

    Args:
      splits: list of ``Data``.

    Returns:
      Fingerprints of the splits.

    Raises:
      ValueError: if specs differ in more than statistics, or two splits are equal.
    """
    prints = [run_folder.fingerprint(data) for data in splits]
    first = splits[0].spec
    for number, data in enumerate(splits):
        spec = data.spec
        fields = {field.name for field in dataclasses.fields(spec)} - STATISTICS
        differ = [f for f in sorted(fields) if getattr(first, f) != getattr(spec, f)]
        if differ:
            raise ValueError(
                f"split {number} is of another data set than split 0: {differ} differ; "
                "load all splits with the same arguments except the seed."
            )
        if (same := prints.index(prints[number])) < number:
            raise ValueError(
                f"splits {same} and {number} hold the same windows, so deviations over "
                'splits would be too small; use split="subject" (--split subject), '
                "which draws test subjects by seed, or another seed."
            )
    return prints


def rounds_per_epoch(method, data) -> int | None:
    """Returns the rounds of an epoch; None if no phase of the method counts rounds."""
    if not method.schedule.min_rounds:
        return None
    return method.schedule.rounds_per_epoch(
        method.prepare(datasets.by_client(data.train))
    )


def bundles(splits, group: Group, layout: str, chunk: int | None) -> list[Bundle]:
    """Returns the programs of a group, each with the data of its splits.

    Splits share a program if their arrays have equal shapes and the method compiles to
    the same code. If padding does not change a method's random draws, clients are
    padded to equal shapes.

    Args:
      splits: list of ``Data``.
      group: group of members.
      layout: for "scan", each split has a separate bundle, but splits
        still share programs.
      chunk: members trained at once; each split has a separate bundle if there are
        fewer of them than splits.
    """
    clients = [datasets.by_client(data.train) for data in splits]
    if group.method.federation is not None and group.method.federation.pads:
        clients = pad_clients(clients)
    prepared = [
        method.prepare(data)
        for method, data in zip(group.methods, clients, strict=True)
    ]
    alike: dict[tuple, list[int]] = {}
    for number, (method, data) in enumerate(zip(group.methods, prepared, strict=True)):
        rounds = (
            method.schedule.rounds_per_epoch(data),
            method.schedule.work_per_round(data),
        )
        text = program_digest(method, data) if len(splits) > 1 else ""
        alike.setdefault((text, *rounds), []).append(number)
    first: dict[str, int] = {}  # The split whose method is used for equal programs.
    result = []
    for (text, *_), numbers in alike.items():
        method = group.methods[first.setdefault(text, numbers[0])]
        separate = layout == LAYOUTS[1] or (chunk or len(numbers)) < len(numbers)
        for part in [[number] for number in numbers] if separate else [numbers]:
            shared = program.program(method, prepared[part[0]], layout)
            if len(part) > 1:
                join = lambda *leaves: jnp.stack(leaves)
                data = jax.tree.map(join, *[prepared[number] for number in part])
                shared = shared._replace(data=data, splits=len(part))
            result.append(Bundle(tuple(part), shared))
    return result


def pad_clients(clients):
    """Pads stacked clients of all splits to the largest number of windows.

    Splits with different numbers of clients are returned unchanged.

    Args:
      clients: list of ``datasets.Clients``.
    """
    if len({len(each.mask) for each in clients}) > 1:
        return clients
    longest = max(each.mask.shape[1] for each in clients)
    return [pad_to(each, longest) for each in clients]


def pad_to(clients, longest: int):
    """Pads stacked clients to ``longest`` windows, with mask False.

    Args:
      clients: ``datasets.Clients``.
      longest: number of windows, at least that of ``clients``.
    """

    def pad(array):
        widths = [(0, 0), (0, longest - array.shape[1])]
        return np.pad(array, widths + [(0, 0)] * (array.ndim - 2))

    return jax.tree.map(pad, clients)


def program_digest(method, data) -> str:
    """Returns a digest of the program of a method's ``init`` and ``update``.

    It covers constants of the method, such as the statistics of its split.

    Args:
      method: a ``Method``.
      data: prepared data, from ``method.prepare``.
    """

    def whole(init_seed, run_seed, data):
        state = method.init(jax.random.key(init_seed))
        return method.update(jax.random.key(run_seed), state, data)

    seed = jax.ShapeDtypeStruct((), jnp.int32)
    text = jax.jit(whole).lower(seed, seed, data).as_text()
    return hashlib.sha256(text.encode()).hexdigest()
