"""Training with one person left out at a time, as one program."""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon import datasets
from jaxanon.core import registry
from jaxanon.core.method import Method
from jaxanon.datasets import held_out
from jaxanon.datasets.sources import naming
from jaxanon.datasets.spec import Data, Windows
from jaxanon.datasets.targets import moments
from jaxanon.federated.engine import memory
from jaxanon.federated.engine.layout import num_bytes
from jaxanon.sweeps import program, splits
from jaxanon.sweeps.space import FROM_BUDGET
from jaxanon.training import trainer

MOST = 16  # Folds whose data are in memory together.
MOST_BYTES = 2**30  # Bytes of the windows of these folds.


class Trained(NamedTuple):
    """A method trained without one person."""

    person: int  # index into the classes of the subject
    data: Data  # the fold, from ``held_out.leave_out``
    state: Any
    history: list[dict]


@dataclasses.dataclass(frozen=True)
class Folds:
    """The folds of a leave-one-person-out evaluation.

    Every fold has training arrays of the same shapes, so that one program trains them
    all. Methods that stack windows by client mask the padding. For other methods,
    folds with fewer windows repeat evenly spaced ones.
    """

    method: Method
    everyone: Windows
    people: tuple[int, ...]  # people with windows, ascending
    count: int | None  # training windows of each fold; None without repetition
    longest: int  # windows of a client, with padding
    per_epoch: int  # rounds of an epoch
    work: int  # work of a round

    @property
    def repeated(self) -> float:
        """Largest fraction of a fold's training windows that are repetitions."""
        if self.count is None:
            return 0.0
        sizes = [self._others(person) for person in self.people]
        return 1 - min(sizes) / self.count

    def _others(self, person):
        return int(np.sum(self.everyone.labels["subject"] != person))

    def fold(self, person: int) -> Data:
        """Returns the fold that leaves out a person."""
        count = self._others(person) if self.count is None else self.count
        data = held_out.leave_out(self.method.spec, self.everyone, person, count)
        return data._replace(spec=self.method.spec)

    def in_units(self, person: int, name: str, values) -> np.ndarray:
        """Returns values of a target of a fold in the unit of the data."""
        labels = self.everyone.labels
        mean, std = moments(labels[name][labels["subject"] != person])
        target = self.method.spec.targets[name]
        return (np.asarray(values) - target.mean) / target.std * std + mean

    def prepare(self, data: Data):
        """Returns the arrays that the method trains on."""
        clients = splits.pad_to(datasets.by_client(data.train), self.longest)
        return self.method.prepare(clients)


def plan(method: Method, data: Data) -> Folds:
    """Plans the folds of all people of a data set.

    Args:
      method: registered anonymizer or learner, built from ``data.spec``.
      data: data with any split; both sides belong to the folds.

    Raises:
      ValueError: if there are fewer than 2 people, or one program cannot train all
        folds: the method is not registered, learns from data of its own, depends on
        statistics of the training windows, or prepares arrays of different shapes.
    """
    name, spec = method.name, data.spec
    if method.own_data is not None:
        raise ValueError(
            f"the method must learn from windows of people, got {name}, which learns "
            "from homes; use its held-out days."
        )
    if not any(name in registry.names(kind) for kind in ("anonymizer", "learner")):
        raise ValueError(
            f"the method must be registered to leave people out in one program, got "
            f"{name!r}; register it with jaxanon.register."
        )
    everyone = held_out.both_sides(data)
    people, counts = np.unique(everyone.labels["subject"], return_counts=True)
    if len(people) < 2:
        raise ValueError(
            f"data must have windows of at least 2 people, got {len(people)}; record "
            "more people."
        )
    folds = Folds(
        method=method,
        everyone=everyone,
        people=tuple(people.tolist()),
        count=None,
        longest=int(counts.max()),
        per_epoch=0,
        work=0,
    )
    # The fold without the fewest windows is the largest, and the reverse.
    small, large = people[counts.argmin()], people[counts.argmax()]
    prepared = folds.prepare(folds.fold(int(small)))
    other = folds.prepare(folds.fold(int(large)))
    if _shapes(prepared) != _shapes(other):
        folds = dataclasses.replace(folds, count=int(counts.sum() - counts.min()))
        longest = max(_longest(folds.fold(person)) for person in folds.people)
        folds = dataclasses.replace(folds, longest=longest)
        prepared = folds.prepare(folds.fold(int(small)))
    _check_statistics(method, spec, prepared)
    return dataclasses.replace(
        folds,
        per_epoch=method.schedule.rounds_per_epoch(prepared),
        work=method.schedule.work_per_round(prepared),
    )


def _longest(data):
    return int(np.bincount(data.train.labels["subject"]).max())


def _shapes(tree):
    return jax.tree.map(lambda leaf: (leaf.shape, str(leaf.dtype)), tree)


def restate(spec):
    """Returns a spec with other statistics of the training windows."""
    return dataclasses.replace(
        spec,
        mean=tuple(m + 0.5 * s for m, s in zip(spec.mean, spec.std, strict=True)),
        std=tuple(2 * s for s in spec.std),
    )


def _check_statistics(method, spec, prepared):
    """Raises ValueError if statistics are constants of the method's program."""
    if spec.tokens:
        return
    other = registry.rebuild(method.name, restate(spec), method.config, method.recipe)
    digests = {splits.program_digest(one, prepared) for one in (method, other)}
    if len(digests) > 1:
        raise ValueError(
            f"one program must train all folds, but that of {method.name} depends on "
            "the mean and standard deviation of the training windows (bounds or values "
            "in physical units); train it once per person with --test-people instead."
        )


def groups(folds: Folds, layout: str) -> list[tuple[int, ...]]:
    """Returns people in groups of equal size whose folds are in memory together.

    The last group repeats its last person if necessary.
    """
    size = min(MOST, MOST_BYTES // max(1, folds.everyone.windows.nbytes))
    size = memory.even(len(folds.people), max(1, min(size, len(folds.people))))
    if layout == program.LAYOUTS[0]:
        size = _that_fit(folds, size)
    people = folds.people
    count = -(-len(people) // size)
    padded = [people[min(i, len(people) - 1)] for i in range(size * count)]
    return [tuple(padded[at : at + size]) for at in range(0, len(padded), size)]


def _that_fit(folds, size):
    """Returns the number of folds that train side by side in free memory."""
    free = memory.free()
    budget = None if free is None else int(program.MEMORY_FRACTION * free)
    one = jax.tree.map(jnp.asarray, folds.prepare(folds.fold(folds.people[0])))
    like = jax.eval_shape(folds.method.init, jax.random.key(len(folds.people)))

    def need(number):
        wide = lambda leaf: jax.ShapeDtypeStruct((number, *leaf.shape), leaf.dtype)
        data = jax.tree.map(wide, one) if number > 1 else one
        shared = _shared(folds, data, program.LAYOUTS[0], number)
        seeds = jax.ShapeDtypeStruct((number,), jnp.int32)
        rounds = program.compiled_memory(shared, seeds, jax.tree.map(wide, like))
        return rounds + num_bytes(data)

    return program.fit_chunk(need, size, budget)


def _shared(folds, data, layout, number):
    return program.Program(
        folds.method, data, layout, folds.per_epoch, folds.work, splits=number
    )


def train(
    folds: Folds,
    people: Sequence[int],
    *,
    seed: int,
    epochs: int,
    hyper: dict[str, float],
    layout: str,
) -> list[Trained]:
    """Trains the folds of a group.

    Args:
      folds: result of ``plan``.
      people: a group from ``groups``.
      seed: seed of ``train``, the same for every fold.
      epochs: number of epochs.
      hyper: hyper-parameters of every fold.
      layout: one of ``program.LAYOUTS``.
    """
    method, spec = folds.method, folds.method.spec
    if method.guarantee is not None:
        hyper = {k: v for k, v in hyper.items() if k not in FROM_BUDGET}
    distinct = list(dict.fromkeys(people))
    data, prepared = {}, {}
    for person in distinct:
        data[person] = folds.fold(person)
        with naming(f"without {spec.classes['subject'][person]}"):
            trainer.check_data(method, data[person])
            prepared[person] = folds.prepare(data[person])
    shapes = [_shapes(each) for each in prepared.values()]
    if any(each != shapes[0] for each in shapes):
        raise ValueError(
            f"one program must train all folds, but {method.name} prepares arrays of "
            "different shapes for different people; train it once per person with "
            "--test-people instead."
        )
    side_by_side = layout == program.LAYOUTS[0]
    parts = [tuple(people)] if side_by_side else [(person,) for person in distinct]
    trained = {}
    for part in parts:
        arrays = [jax.tree.map(jnp.asarray, prepared[person]) for person in part]
        together = arrays[0]
        if len(part) > 1:
            together = jax.tree.map(lambda *leaves: jnp.stack(leaves), *arrays)
        shared = _shared(folds, together, layout, len(part))
        states = program.start(method, [seed] * len(part), [hyper] * len(part))
        results = program.run_members(
            shared,
            [seed] * len(part),
            states,
            first=0,
            last=epochs * folds.per_epoch,
            show_row=lambda row: None,
        )
        for person, (state, history) in zip(part, results, strict=True):
            trained.setdefault(person, Trained(person, data[person], state, history))
    return [trained[person] for person in distinct]
