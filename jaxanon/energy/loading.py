"""Loading of homes by the name of their source or from a custom file."""

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

COMPOSED = ("tracebase", "simulated")  # Sources with any number of homes.

HOMES, DEVICES = 20, 6  # Defaults of composed and simulated homes.

COLUMNS = ("home", "device", "minute", "power")  # Arrays of a custom file.

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
    """Loads homes with training days followed by held-out test days.

    ``"tracebase"`` composes homes from metered devices (``datasets.tracebase``). No
    trace appears in both training and test days, but homes may share devices.
    ``"simulated"`` generates homes (``energy.households``). ``"households"`` (REFIT,
    UK-DALE, IDEAL) and ``"pecan_street"`` are metered homes: each keeps its first whole
    days. Days with a gap of more than 15 minutes and homes with too few days are
    dropped. A device that never draws power counts as absent.

    Args:
      name_or_npz: one of ``SOURCES``, or the path of an ``.npz`` file with arrays
        ``home``, ``device``, ``minute`` and ``power``, as in ``from_readings``.
      homes: number of homes; default: 20 composed or simulated ones, or all metered
        ones.
      devices: kinds of devices per home; default: 6, or all metered ones. Metered homes
        use the most common kinds.
      days, test_days: number of training and test days, at least 1 each.
      kinds: names of the devices to choose from; default: all.
      seed: seed of composed or simulated homes.
      source, data_dir: the arguments of ``jaxanon.datasets.load``.

    Returns:
      ``Homes`` of ``days + test_days`` days.

    Raises:
      TypeError: if a number of homes, devices or days is not an int.
      ValueError: for unknown names or kinds, too many homes, devices or days, a
        ``source`` that does not apply, or readings that ``from_readings`` rejects.
      FileNotFoundError: if the data is missing.
      ImportError: if the data is not prepared yet and pyarrow is not installed.

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
        raise ValueError(f"source must be None for {name!r}, got {source!r}; omit it.")
    num_days = days + test_days
    if name == "tracebase":
        traces = store.read(registry.find(name), source, data_dir)
        parts = homes or HOMES, devices or DEVICES, days, test_days
        if devices is None and kinds is not None:
            parts = parts[0], min(DEVICES, len(set(kinds))), days, test_days
        return _compose_homes(traces, *parts, kinds, seed)
    if name == "simulated":
        return _simulate_homes(homes or HOMES, devices, num_days, kinds, seed)
    if name.endswith(".npz"):
        available_homes = _load_custom(name, num_days)
    elif name in SOURCES:
        recordings = store.read(registry.find(name), source, data_dir)
        available_homes = _load_metered(name, recordings, num_days)
    else:
        raise ValueError(
            f"name_or_npz must be one of {list(SOURCES)} or the path of an .npz file, "
            f"got {name!r}."
        )
    return _select(available_homes, homes, devices, kinds)


def _compose_homes(traces, homes, devices, days, test_days, kinds, seed):
    if kinds is not None:
        kind_of = lambda trace: trace.labels["subject"].split("/", 1)[0]
        _check_kinds(kinds, sorted({kind_of(trace) for trace in traces}))
        traces = [trace for trace in traces if kind_of(trace) in kinds]
        if devices > len(set(kinds)):
            raise ValueError(
                f"devices must be at most {len(set(kinds))}, the kinds to choose from, "
                f"got {devices!r}; add kinds or reduce devices."
            )
    composed = compose(
        traces,
        homes,
        days=days + test_days,
        num_types=devices,
        seed=seed,
        test_days=test_days,
    )
    names = tuple(f"home {number}" for number in range(1, homes + 1))
    return Homes(composed.power, composed.types, composed.names, names, None)


def _simulate_homes(homes, devices, num_days, kinds, seed):
    names = [one.name for one in APPLIANCES]
    if kinds is not None:
        _check_kinds(kinds, names)
    chosen = [one for one in APPLIANCES if kinds is None or one.name in kinds]
    if devices is not None and devices > len(chosen):
        raise ValueError(f"devices must be at most {len(chosen)}, got {devices!r}.")
    chosen = chosen[:devices]
    simulated = households(jax.random.key(seed), homes, num_days, chosen)
    numbers = np.tile(np.arange(len(chosen), dtype=np.int32), (homes, 1))
    home_names = tuple(f"home {number}" for number in range(1, homes + 1))
    return Homes(
        np.asarray(simulated.power), numbers, simulated.names, home_names, None
    )


def _load_custom(path, num_days):
    arrays = read_arrays(pathlib.Path(path))
    missing = [column for column in COLUMNS if column not in arrays]
    if missing:
        raise ValueError(
            f"{path} must have the arrays {list(COLUMNS)}, but lacks {missing}."
        )
    home, device, minute, power = (arrays[column] for column in COLUMNS)
    with naming(repr(path)):
        return from_readings(home, device, minute, power, num_days)


def _load_metered(name, recordings, num_days):
    """Returns homes of a metered data set, with all its devices."""
    if name == "households":
        from jaxanon.datasets.households.description import COLUMNS as columns

        kinds, scale = columns[1:], 1
    else:
        from jaxanon.datasets.pecan_street.description import CIRCUITS as kinds

        scale = _KILO
    days: dict[str, list] = {}
    for one in recordings:
        home = str(one.labels["subject"])
        days.setdefault(home, []).extend(_whole_days(one))
    complete = {
        home: home_days
        for home, home_days in days.items()
        if len(home_days) >= num_days
    }
    if not complete:
        counts = ", ".join(
            f"{home} {len(home_days)}" for home, home_days in days.items()
        )
        raise ValueError(
            f"days + test_days must be at most the whole days of a home of {name} "
            f"({counts}), got {num_days}; reduce them."
        )
    first = {home: home_days[:num_days] for home, home_days in complete.items()}
    power = (
        np.stack([[rows for rows, _ in home_days] for home_days in first.values()])
        * scale
    )
    power = power.reshape(len(first), -1, len(kinds)).astype(np.float32)
    lacking = ~(power != 0).any(axis=1, keepdims=True)
    dates = np.array([[date for _, date in home_days] for home_days in first.values()])
    numbers = np.tile(np.arange(len(kinds), dtype=np.int32), (len(first), 1))
    power = np.where(lacking, np.nan, power)
    return Homes(power, numbers, tuple(kinds), tuple(first), dates)


def _whole_days(recording):
    """Yields ``(float[1440, devices], date)`` of each whole day of a recording."""
    clock = recording.rows[:, 0]
    for start in np.flatnonzero(clock == 0):
        day = recording.rows[start : start + DAY]
        # Clock changes make days longer or shorter.
        if len(day) == DAY and (day[:, 0] == np.arange(DAY)).all():
            minute = np.int64(recording.trial + start)
            date = minute.astype("datetime64[m]").astype("datetime64[D]")
            yield day[:, 2:], date


def _select(available, homes, devices, kinds):
    """Returns the requested numbers of homes and kinds of devices."""
    names = list(available.kind_names)
    if kinds is not None:
        _check_kinds(kinds, names)
    if homes is not None and homes > len(available.names):
        raise ValueError(
            f"homes must be at most {len(available.names)}, with enough whole days "
            f"({', '.join(available.names)}), got {homes!r}."
        )
    available = take(available, 0, len(available.names) if homes is None else homes)
    counts = (~np.isnan(available.power).all(axis=1)).sum(axis=0)
    columns = [c for c in range(len(names)) if kinds is None or names[c] in kinds]
    columns = [c for c in columns if counts[c]]
    if devices is not None:
        if devices > len(columns):
            raise ValueError(
                f"devices must be at most {len(columns)}, the kinds in these homes, "
                f"got {devices!r}."
            )
        most = sorted(columns, key=lambda c: (-counts[c], c))[:devices]
        columns = sorted(most)
    return available._replace(
        power=available.power[:, :, columns],
        kinds=np.tile(
            np.arange(len(columns), dtype=np.int32), (len(available.names), 1)
        ),
        kind_names=tuple(names[c] for c in columns),
    )


def _check_kinds(kinds, names):
    unknown = sorted(set(kinds) - set(names))
    if unknown:
        raise ValueError(f"kinds must be among {names}, got {unknown}.")
