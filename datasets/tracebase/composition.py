"""Homes composed of devices that were metered in different places."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jaxanon.datasets.recordings import Recording

DAY = 1440  # Minutes.
FEWEST_DAYS = 5  # Of a device that enters.
TEST_FRACTION = 0.2
ALWAYS = "Refrigerator"


class Homes(NamedTuple):
    """What every device of every home takes, minute by minute."""

    power: np.ndarray  # float32[homes, minutes, devices], W
    types: np.ndarray  # int32[homes, devices], ascending in a home: of names
    names: tuple[str, ...]  # of all types of device
    devices: tuple[tuple[str, ...], ...]  # [homes][devices], which one each is
    train_minutes: int  # Minutes from here on are of traces that none before is of.


def homes(
    num_homes: int = 100,
    *,
    days: int = 30,
    num_types: int = 10,
    seed: int = 0,
    source=None,
    data_dir=None,
) -> Homes:
    """Homes composed of Tracebase's devices, with the power of each.

    Args:
      num_homes, days, num_types, seed: of ``compose``.
      source, data_dir: of ``jaxanon.datasets.load``.

    Returns:
      ``Homes``.

    Raises:
      ValueError: as ``compose``.
      FileNotFoundError: if the traces are nowhere to be found.
      ImportError: if they are not prepared yet and pyarrow is not installed.
    """
    from jaxanon.datasets import registry, store

    traces = store.read(registry.find("tracebase"), source, data_dir)
    return compose(traces, num_homes, days=days, num_types=num_types, seed=seed)


def compose(
    traces: Sequence[Recording],
    num_homes: int,
    *,
    days: int = 30,
    num_types: int = 10,
    seed: int = 0,
    test_days: int | None = None,
) -> Homes:
    """Puts homes together from whole-day traces of devices; the data names no homes.

    A home has one device of each of ``num_types`` types: a refrigerator if there is
    one, and others drawn without replacement, types with more devices more often. Its
    device is drawn among those of the type that have traces of at least 5 days. The
    first 80 % of a home's days are taken from the device's earlier traces, the others
    from its last 20 % (at least one), in order of date from a day that is drawn, and
    around again: so no trace is on both sides, in whatever home. But homes share
    devices, and days repeat themselves: they are more alike than homes that were
    metered.

    Args:
      traces: of a day of a device each; rows ``float[1440, 1]`` in W, the subject
        ``"type/device"``.
      num_homes: at least 1.
      days: of every home; a multiple of 5.
      num_types: types of device in a home.
      seed: of all that is drawn.
      test_days: how many of the days are the others, then of any number; None is 20 %.

    Returns:
      ``Homes``; ``names`` are the types in alphabetic order. The first homes of many
      are the homes of few.

    Raises:
      ValueError: if a number is too small, or ``days`` no multiple of 5 where
        ``test_days`` is None; if there are fewer types than a home should have.

    Example:
      >>> lamp = [
      ...     Recording(np.full((1440, 1), float(day)), day, {"subject": "Lamp/a"})
      ...     for day in range(5)]
      >>> found = compose(lamp, 2, days=5, num_types=1)
      >>> found.power.shape, found.power[0, -1, 0].item(), found.names
      ((2, 7200, 1), 4.0, ('Lamp',))
    """
    if num_homes < 1 or num_types < 1:
        raise ValueError(
            f"num_homes and num_types must be at least 1, got {num_homes} and "
            f"{num_types}."
        )
    if test_days is not None and not 1 <= test_days < days:
        raise ValueError(
            f"test_days must lie in [1, {days - 1}], below days, got {test_days!r}."
        )
    if test_days is None and (days < 5 or days % 5):
        raise ValueError(f"days must be a multiple of 5, got {days!r}.")
    pools = _pools(traces)
    names = tuple(sorted(pools))
    if num_types > len(names):
        raise ValueError(
            f"num_types must be at most {len(names)}, the types of which a device has "
            f"traces of {FEWEST_DAYS} days, got {num_types}."
        )
    random = np.random.default_rng(seed)
    parts = _train_days(days) if test_days is None else days - test_days, days
    power = np.empty((num_homes, days * DAY, num_types), np.float32)
    types = np.empty((num_homes, num_types), np.int32)
    devices = []
    for home in range(num_homes):
        types[home] = np.sort(_types(random, pools, names, num_types))
        devices.append(tuple(random.choice([*pools[names[t]]]) for t in types[home]))
        for place, device in enumerate(devices[-1]):
            traces_of = pools[names[types[home, place]]][device]
            power[home, :, place] = _days(random, traces_of, *parts)
    devices = tuple(tuple(map(str, own)) for own in devices)
    return Homes(power, types, names, devices, parts[0] * DAY)


def _pools(traces):
    """type -> device -> traces in order of date, of devices that have enough."""
    pools: dict[str, dict[str, list]] = {}
    for trace in sorted(traces, key=lambda one: one.trial):
        kind, device = trace.labels["subject"].split("/", 1)
        pools.setdefault(kind, {}).setdefault(device, []).append(trace.rows[:, 0])
    kept = {
        kind: {name: own for name, own in devices.items() if len(own) >= FEWEST_DAYS}
        for kind, devices in pools.items()
    }
    return {kind: devices for kind, devices in kept.items() if devices}


def _types(random, pools, names, count):
    """The types of a home's devices, a refrigerator first."""
    weights = np.array([len(pools[name]) for name in names], float)
    first = [names.index(ALWAYS)] if ALWAYS in names else []
    weights[first] = 0
    if count > len(first):
        weights /= weights.sum()
        first += [*random.choice(len(names), count - len(first), False, weights)]
    return first


def _train_days(days):
    return days - round(TEST_FRACTION * days)


def _days(random, traces, train, days):
    """So many days of one device: of earlier traces, then of its last."""
    boundary = len(traces) - max(1, round(TEST_FRACTION * len(traces)))
    parts = []
    for pool, count in ((traces[:boundary], train), (traces[boundary:], days - train)):
        start = random.integers(len(pool))
        parts += [pool[(start + day) % len(pool)] for day in range(count)]
    return np.concatenate(parts)
