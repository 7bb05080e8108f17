"""Homes by the name of where they come from, or from a file of one's own."""

import os
import pathlib
from collections.abc import Sequence

import jax
import numpy as np

from jaxanon.datasets import registry, store
from jaxanon.datasets.custom import read_arrays
from jaxanon.datasets.sources import naming
from jaxanon.datasets.tracebase import compose
from jaxanon.energy.homes import Homes, from_readings, take
from jaxanon.energy.saving import DAY
from jaxanon.energy.simulator import APPLIANCES, households
from jaxanon.kernels.checks import whole

SOURCES = ("tracebase", "households", "pecan_street", "simulated")

COMPOSED = ("tracebase", "simulated")  # As many homes as one likes.

HOMES, DEVICES = 20, 6  # Of what is composed, if nobody says.

COLUMNS = ("home", "device", "minute", "power")  # Of a file of one's own.

_KILO = 1000


def load(
    name_or_npz,
    *,
    homes: int | None = None,
    devices: int | None = None,
    days: int = 24,
    test_days: int = 6,
    kinds: Sequence[str] | None = None,
    seed: int = 0,
    source=None,
    data_dir=None,
) -> Homes:
    """Homes with days to learn from, followed by days that are held out.

    ``"tracebase"`` composes homes of metered devices (``datasets.tracebase``): no trace
    is on both sides, and homes may share devices. ``"simulated"`` makes them up
    (``energy.households``). ``"households"`` (REFIT, UK-DALE, IDEAL) and
    ``"pecan_street"`` were metered: a home's days are the first that are whole, those
    with a gap of more than 15 minutes are left out, and so are homes with too few. A
    device that never took anything is one that the home lacks.

    Args:
      name_or_npz: one of ``SOURCES``, or the path of an ``.npz`` file with arrays
        ``home``, ``device``, ``minute`` and ``power``, as ``from_readings`` takes them.
      homes: how many; None is 20 of what is composed or made up, else all there are.
      devices: kinds in a home, likewise 6; of what was metered, those most homes have.
      days, test_days: at least 1 each.
      kinds: names to choose from; None is all.
      seed: of what is composed or made up.
      source, data_dir: of ``jaxanon.datasets.load``.

    Returns:
      ``Homes``, of ``days + test_days`` days.

    Raises:
      TypeError: for a number of homes, devices or days that is not whole.
      ValueError: for a name, a kind, or a number of homes, devices or days that there
        is not; for a source of what has none; as ``from_readings``.
      FileNotFoundError: if the data is nowhere to be found.
      ImportError: if it is not prepared yet and pyarrow is not installed.

    Example:
      >>> made = load("simulated", homes=2, devices=3, days=1, test_days=1)
      >>> made.power.shape, made.kind_names[0]
      ((2, 2880, 3), 'television')
    """
    name = os.fspath(name_or_npz)
    wanted = {"homes": homes, "devices": devices, "days": days, "test_days": test_days}
    for argument, value in wanted.items():
        if value is not None:
            whole(argument, value, least=1)
    if source is not None and (name == "simulated" or name.endswith(".npz")):
        raise ValueError(
            f"source does not apply to {name!r}, got {source!r}; leave it out."
        )
    num_days = days + test_days
    if name == "tracebase":
        traces = store.read(registry.find(name), source, data_dir)
        parts = homes or HOMES, devices or DEVICES, days, test_days
        if devices is None and kinds is not None:
            parts = parts[0], min(DEVICES, len(set(kinds))), days, test_days
        return _composed(traces, *parts, kinds, seed)
    if name == "simulated":
        return _simulated(homes or HOMES, devices, num_days, kinds, seed)
    if name.endswith(".npz"):
        found = _own(name, num_days)
    elif name in SOURCES:
        recordings = store.read(registry.find(name), source, data_dir)
        found = _metered(name, recordings, num_days)
    else:
        raise ValueError(
            f"there are no homes called {name!r}; choose one of {list(SOURCES)}, or "
            "pass the path of an .npz file."
        )
    return _chosen(found, homes, devices, kinds)


def _composed(traces, homes, devices, days, test_days, kinds, seed):
    if kinds is not None:
        own = lambda trace: trace.labels["subject"].split("/", 1)[0]
        _known(kinds, sorted({own(trace) for trace in traces}))
        traces = [trace for trace in traces if own(trace) in kinds]
        if devices > len(set(kinds)):
            raise ValueError(
                f"devices must be at most {len(set(kinds))}, the kinds to choose from, "
                f"got {devices!r}; name more kinds, or ask for fewer devices."
            )
    found = compose(
        traces,
        homes,
        days=days + test_days,
        num_types=devices,
        seed=seed,
        test_days=test_days,
    )
    names = tuple(f"home {number}" for number in range(1, homes + 1))
    return Homes(found.power, found.types, found.names, names, None)


def _simulated(homes, devices, num_days, kinds, seed):
    names = [one.name for one in APPLIANCES]
    if kinds is not None:
        _known(kinds, names)
    chosen = [one for one in APPLIANCES if kinds is None or one.name in kinds]
    if devices is not None and devices > len(chosen):
        raise ValueError(f"devices must be at most {len(chosen)}, got {devices!r}.")
    chosen = chosen[:devices]
    made = households(jax.random.key(seed), homes, num_days, chosen)
    numbers = np.tile(np.arange(len(chosen), dtype=np.int32), (homes, 1))
    called = tuple(f"home {number}" for number in range(1, homes + 1))
    return Homes(np.asarray(made.power), numbers, made.names, called, None)


def _own(path, num_days):
    arrays = read_arrays(pathlib.Path(path))
    missing = [column for column in COLUMNS if column not in arrays]
    if missing:
        raise ValueError(
            f"{path} lacks the arrays {missing}: readings are rows of {list(COLUMNS)}."
        )
    home, device, minute, power = (arrays[column] for column in COLUMNS)
    with naming(repr(path)):
        return from_readings(home, device, minute, power, num_days)


def _metered(name, recordings, num_days):
    """Homes of a data set of meters, with all the devices that it knows."""
    if name == "households":
        from jaxanon.datasets.households.description import COLUMNS as columns

        kinds, scale = columns[1:], 1
    else:
        from jaxanon.datasets.pecan_street.description import CIRCUITS as kinds

        scale = _KILO
    days: dict[str, list] = {}
    for one in recordings:
        who = str(one.labels["subject"])
        days.setdefault(who, []).extend(_whole_days(one))
    enough = {who: own for who, own in days.items() if len(own) >= num_days}
    if not enough:
        counts = ", ".join(f"{who} {len(own)}" for who, own in days.items())
        raise ValueError(
            f"no home of {name} has {num_days} whole days (they have: {counts}); ask "
            "for fewer days."
        )
    first = {who: own[:num_days] for who, own in enough.items()}
    power = np.stack([[rows for rows, _ in own] for own in first.values()]) * scale
    power = power.reshape(len(first), -1, len(kinds)).astype(np.float32)
    lacking = ~(power != 0).any(axis=1, keepdims=True)
    dates = np.array([[date for _, date in own] for own in first.values()])
    numbers = np.tile(np.arange(len(kinds), dtype=np.int32), (len(first), 1))
    power = np.where(lacking, np.nan, power)
    return Homes(power, numbers, tuple(kinds), tuple(first), dates)


def _whole_days(recording):
    """``(float[1440, devices], date)`` of each day of a recording that is whole."""
    clock = recording.rows[:, 0]
    for start in np.flatnonzero(clock == 0):
        day = recording.rows[start : start + DAY]
        # Clocks that go forward or back make days of other lengths.
        if len(day) == DAY and (day[:, 0] == np.arange(DAY)).all():
            minute = np.int64(recording.trial + start)
            date = minute.astype("datetime64[m]").astype("datetime64[D]")
            yield day[:, 2:], date


def _chosen(found, homes, devices, kinds):
    """So many of the homes, with so many kinds of devices."""
    names = list(found.kind_names)
    if kinds is not None:
        _known(kinds, names)
    if homes is not None and homes > len(found.names):
        raise ValueError(
            f"homes must be at most {len(found.names)}, those with so many whole days "
            f"({', '.join(found.names)}), got {homes!r}."
        )
    found = take(found, 0, len(found.names) if homes is None else homes)
    had = (~np.isnan(found.power).all(axis=1)).sum(axis=0)
    columns = [c for c in range(len(names)) if kinds is None or names[c] in kinds]
    columns = [c for c in columns if had[c]]
    if devices is not None:
        if devices > len(columns):
            raise ValueError(
                f"devices must be at most {len(columns)}, the kinds that homes have, "
                f"got {devices!r}."
            )
        most = sorted(columns, key=lambda c: (-had[c], c))[:devices]
        columns = sorted(most)
    return found._replace(
        power=found.power[:, :, columns],
        kinds=np.tile(np.arange(len(columns), dtype=np.int32), (len(found.names), 1)),
        kind_names=tuple(names[c] for c in columns),
    )


def _known(kinds, names):
    unknown = sorted(set(kinds) - set(names))
    if unknown:
        raise ValueError(f"there are no devices {unknown}; choose of {names}.")
