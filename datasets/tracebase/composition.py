"""Composition of homes from devices that were metered in different places."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jaxanon.datasets.recordings import Recording

DAY = 1440  # Minutes.
MIN_DAYS = 5  # Minimum days of a device to be used.
TEST_FRACTION = 0.2
ALWAYS = "Refrigerator"


class Homes(NamedTuple):
    """Power of each device of each home by the minute."""

    power: np.ndarray  # float32[homes, minutes, devices], W
    types: np.ndarray  # int32[homes, devices], indices into names, ascending
    names: tuple[str, ...]  # names of all types of devices
    devices: tuple[tuple[str, ...], ...]  # [homes][devices], names of devices
    train_minutes: int  # Later minutes come from traces that are not used before.


def homes(
    num_homes: int = 100,
    *,
    days: int = 30,
    num_types: int = 10,
    seed: int = 0,
    source=None,
    data_dir=None,
) -> Homes:
    """Composes homes from Tracebase's devices.

    Args:
      num_homes, days, num_types, seed: arguments of ``compose``.
      source, data_dir: arguments of ``jaxanon.datasets.load``.

    Returns:
      ``Homes``.

    Raises:
      ValueError: if an argument is out of range, as in ``compose``.
      FileNotFoundError: if the traces are not found.
      ImportError: if the traces are not prepared yet and pyarrow is not installed.
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
    """Composes homes from whole-day traces of devices.

    A home has one device of each of ``num_types`` types: a refrigerator if available,
    and others drawn without replacement, with probabilities proportional to the number
    of devices of a type. The device is drawn among those of the type with traces of at
    least 5 days.

    The first 80 % of a home's days come from the device's earlier traces, the rest from
    its last 20 % (at least one). Days follow in order of date from a drawn day and wrap
    around. No trace is on both sides, even in different homes. Homes share devices and
    days repeat, so composed homes are more similar than metered homes.

    Args:
      traces: recordings of one device and one day, rows ``float[1440, 1]`` in W, with
        the subject ``"type/device"``.
      num_homes: number of homes, at least 1.
      days: number of days per home; a multiple of 5 if ``test_days`` is None.
      num_types: number of device types in a home.
      seed: random seed.
      test_days: number of test days; None is 20 % of ``days``.

    Returns:
      ``Homes``; ``names`` are the types in alphabetical order. A larger ``num_homes``
      keeps the first homes unchanged.

    Raises:
      ValueError: if a number is too small, ``days`` is not a multiple of 5 and
        ``test_days`` is None, or ``num_types`` exceeds the available types.

    Example:
      >>> lamp = [
      ...     Recording(np.full((1440, 1), float(day)), day, {"subject": "Lamp/a"})
      ...     for day in range(5)]
      >>> composed = compose(lamp, 2, days=5, num_types=1)
      >>> composed.power.shape, composed.power[0, -1, 0].item(), composed.names
      ((2, 7200, 1), 4.0, ('Lamp',))
    """
    if num_homes < 1 or num_types < 1:
        raise ValueError(
            f"num_homes and num_types must be at least 1, got {num_homes} and "
            f"{num_types}."
        )
    if test_days is not None and not 1 <= test_days < days:
        raise ValueError(
            f"test_days must be in [1, {days - 1}], below days, got {test_days!r}."
        )
    if test_days is None and (days < 5 or days % 5):
        raise ValueError(f"days must be a multiple of 5, got {days!r}.")
    pools = _pools(traces)
    names = tuple(sorted(pools))
    if num_types > len(names):
        raise ValueError(
            f"num_types must be at most {len(names)}, the number of types with a "
            f"device of at least {MIN_DAYS} days, got {num_types}."
        )
    random = np.random.default_rng(seed)
    parts = _train_days(days) if test_days is None else days - test_days, days
    power = np.empty((num_homes, days * DAY, num_types), np.float32)
    types = np.empty((num_homes, num_types), np.int32)
    devices = []
    for home in range(num_homes):
        types[home] = np.sort(_types(random, pools, names, num_types))
        devices.append(tuple(random.choice([*pools[names[t]]]) for t in types[home]))
        for index, device in enumerate(devices[-1]):
            device_traces = pools[names[types[home, index]]][device]
            power[home, :, index] = _days(random, device_traces, *parts)
    devices = tuple(tuple(map(str, names_)) for names_ in devices)
    return Homes(power, types, names, devices, parts[0] * DAY)


def _pools(traces):
    """Returns type -> device -> traces by date, for devices with enough days."""
    pools: dict[str, dict[str, list]] = {}
    for trace in sorted(traces, key=lambda trace: trace.trial):
        kind, device = trace.labels["subject"].split("/", 1)
        pools.setdefault(kind, {}).setdefault(device, []).append(trace.rows[:, 0])
    usable = {
        kind: {name: days for name, days in devices.items() if len(days) >= MIN_DAYS}
        for kind, devices in pools.items()
    }
    return {kind: devices for kind, devices in usable.items() if devices}


def _types(random, pools, names, count):
    """Draws the types of a home's devices, a refrigerator first."""
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
    """Returns ``days`` days of one device: training days, then test days."""
    boundary = len(traces) - max(1, round(TEST_FRACTION * len(traces)))
    parts = []
    for pool, count in ((traces[:boundary], train), (traces[boundary:], days - train)):
        start = random.integers(len(pool))
        parts += [pool[(start + day) % len(pool)] for day in range(count)]
    return np.concatenate(parts)
