"""Homes composed of devices: day selection, and no day on both sides."""

import pathlib
import sys

import numpy as np
import pytest

from jaxanon.datasets import load, tracebase
from jaxanon.datasets.recordings import Recording

FILE = (
    pathlib.Path(__file__).parents[3] / "shared/data/tracebase/tracebase_1min.parquet"
)
DAY = 1440
KINDS = ("Amplifier", "Coffeemaker", "Dishwasher", "Freezer", "Lamp", "PC-Laptop")
KINDS += ("Printer", "Refrigerator", "Router", "Subwoofer", "Toaster")


def power(device, day):
    """Returns a power unique to the device and day, also in sums of ten."""
    return 1 + device + 20 * day


def devices():
    """Returns (type, name, number, days) of each; the last but one has too few days."""
    for number, kind in enumerate(KINDS):
        yield kind, f"dev_{number}", number, 6
    yield "Lamp", "dev_few", 11, 4
    yield "Lamp", "dev_other", 12, 10


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Writes eleven types, days that lack minutes, and an incomplete trace."""
    arrow, parquet = (
        pytest.importorskip("pyarrow"),
        pytest.importorskip("pyarrow.parquet"),
    )
    columns = {name: [] for name in ("time", "power_w", "set", "type", "device")}
    start = np.datetime64("2011-08-06", "m")

    def add(kind, name, number, day, minutes, set_name="complete"):
        since = (day * DAY + minutes).astype("timedelta64[m]")
        columns["time"].append(start + since)
        columns["power_w"].append(np.full(len(minutes), power(number, day), np.float32))
        for column, value in (("set", set_name), ("type", kind), ("device", name)):
            columns[column].append(np.full(len(minutes), value))

    whole = np.arange(DAY)
    for kind, name, number, days in devices():
        for day in range(days):
            add(kind, name, number, day, whole)
    add("Lamp", "dev_few", 11, 8, whole[6:])  # Six minutes short: not a day.
    add("Lamp", "dev_few", 11, 9, whole, "incomplete")
    folder = tmp_path_factory.mktemp("traces") / "tracebase"
    folder.mkdir()
    joined = {name: np.concatenate(parts) for name, parts in columns.items()}
    joined["time"] = joined["time"].astype("datetime64[us]")
    turned = np.random.default_rng(0).permutation(len(joined["time"]))
    table = arrow.table({name: values[turned] for name, values in joined.items()})
    parquet.write_table(table, folder / "tracebase_1min.parquet")
    return folder


@pytest.fixture(scope="module")
def homes(folder, cache):
    return tracebase.homes(30, days=10, num_types=4, source=folder, data_dir=cache)


def test_a_home_has_a_refrigerator_and_other_types_once_each(homes):
    assert homes.power.shape == (30, 10 * DAY, 4) and homes.power.dtype == np.float32
    assert homes.names == KINDS and homes.train_minutes == 8 * DAY
    for types, own in zip(homes.types.tolist(), homes.devices, strict=True):
        assert types == sorted(set(types)) and KINDS.index("Refrigerator") in types
        for kind, device in zip(types, own, strict=True):
            assert device in {f"dev_{kind}"} | ({"dev_other"} if kind == 4 else set())
    # A type with two devices is drawn more often than a type with one.
    drawn = np.bincount(homes.types.ravel(), minlength=11)
    others = np.delete(drawn, [4, 7])
    assert drawn[7] == 30 and drawn[4] > others.mean()
    both = {
        own[list(t).index(4)]
        for t, own in zip(homes.types, homes.devices, strict=True)
        if 4 in t
    }
    assert both == {"dev_4", "dev_other"}


def test_days_follow_each_other_and_none_is_on_both_sides(homes):
    numbers = {name: (number, days) for _, name, number, days in devices()}
    starts = set()
    for home, own in enumerate(homes.devices):
        for place, device in enumerate(own):
            number, days = numbers[device]
            values = homes.power[home, :, place].reshape(10, DAY)
            assert (values == values[:, :1]).all()
            found = (values[:, 0] - 1 - number) / 20
            last = max(1, round(0.2 * days))
            for part, pool in (
                (found[:8], np.arange(days - last)),
                (found[8:], np.arange(days - last, days)),
            ):
                first = int(part[0] - pool[0])
                turns = [pool[(first + i) % len(pool)] for i in range(len(part))]
                assert part.tolist() == turns
            starts.add(found[0])
    assert len(starts) > 3  # Homes begin on different days.


def test_more_homes_begin_with_the_fewer_and_a_seed_draws_others(homes, folder):
    more = tracebase.homes(32, days=10, num_types=4, source=folder)
    np.testing.assert_array_equal(more.power[:30], homes.power)
    other = tracebase.homes(30, days=10, num_types=4, seed=1, source=folder)
    assert (other.types != homes.types).any()


def test_windows_are_of_the_composed_homes(folder):
    data = load("tracebase", source=folder, preset="day24")
    spec = data.spec
    assert spec.channels == ("aggregate", "time_sin", "time_cos")
    assert (
        len(spec.classes["subject"]) == 100 and spec.classes["subject"][0] == "home 1"
    )
    homes = tracebase.homes(100, source=folder)  # Over 30 days.
    hours = homes.power.sum(axis=2).reshape(100, -1, 60).mean(axis=2)
    train = [data.train.windows[data.train.labels["subject"] == h] for h in (0, 99)]
    # 24 days train, less the 25 hours before the test.
    assert [len(own) for own in train] == [24 * 24 - 25 - 24] * 2
    for home in (0, 99):
        test = data.test.labels["subject"] == home
        assert test.sum() == 6 * 24 - 24
        for side, start in ((train[home // 99], 0), (data.test.windows[test], 24 * 24)):
            expected = [
                hours[home, start + i : start + i + 24] for i in range(len(side))
            ]
            np.testing.assert_allclose(side[..., 0], expected, rtol=1e-6)
        target = data.test.labels["power"][test]
        np.testing.assert_allclose(target, hours[home, 24 * 25 :], rtol=1e-6)
    assert spec.target.unit == "W" and spec.split == "time_block"


def test_channels_of_types_need_all_of_them(folder):
    with pytest.raises(
        ValueError, match="tracebase must be complete, .*; choose the preset day24"
    ):
        load("tracebase", source=folder, preset="types24")


def trace(day, kind="Lamp"):
    return Recording(np.full((DAY, 1), float(day)), day, {"subject": f"{kind}/a"})


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"num_homes": 0}, "must be at least 1, got 0 and 1"),
        ({"num_types": 0}, "must be at least 1, got 1 and 0"),
        ({"days": 12}, "days must be a multiple of 5, got 12"),
        ({"days": 0}, "days must be a multiple of 5, got 0"),
        (
            {"num_types": 2},
            "num_types must be at most 1, the number of types with a device",
        ),
    ],
)
def test_says_what_cannot_be_composed(settings, message):
    settings = {"num_homes": 1, "num_types": 1, "days": 5} | settings
    traces = [trace(day) for day in range(5)] + [trace(0, "Router")]
    with pytest.raises(ValueError, match=message):
        tracebase.compose(traces, **settings)


def test_says_what_is_missing(folder, tmp_path, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "tracebase_1min.parquet"
    path.write_bytes((folder / path.name).read_bytes()[:-50])
    with pytest.raises(ValueError, match="tracebase_1min.parquet is damaged"):
        load("tracebase", source=path)
    table = parquet.read_table(folder / path.name)
    parquet.write_table(table.drop_columns(["device"]), path)
    with pytest.raises(ValueError, match=r"must have the columns \['device'\]"):
        load("tracebase", source=path)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ImportError, match=r"requires pyarrow, .* 'jaxanon\[energy\]'"):
        load("tracebase", source=path)
    monkeypatch.setattr("jaxanon.datasets.sources.find", lambda *args: None)
    with pytest.raises(
        FileNotFoundError, match=r"tracebase was not found; create trace"
    ):
        load("tracebase")


@pytest.mark.skipif(not FILE.is_file(), reason="../shared/data/tracebase is absent")
def test_tracebase_as_it_is():
    homes = tracebase.homes(3, source=FILE)
    assert len(homes.names) == 32 and (homes.power >= 0).all()
    data = load("tracebase", source=FILE, preset="types24")
    assert data.spec.channels[1:33] == homes.names
    kinds = data.test.windows[:, :, 1:33].sum(axis=2)
    np.testing.assert_allclose(data.test.windows[..., 0], kinds, rtol=1e-4)
    found = [np.isin(i, homes.types[0]) for i in range(32)]
    first = data.train.windows[data.train.labels["subject"] == 0]
    assert not first[..., 1:33][..., ~np.array(found)].any()


def test_days_to_test_with_may_be_of_any_number():
    traces = [
        Recording(np.full((DAY, 1), float(day)), day, {"subject": "Lamp/a"})
        for day in range(10)
    ]
    made = tracebase.compose(traces, 1, days=7, num_types=1, test_days=4)
    assert made.train_minutes == 3 * DAY
    assert made.power[0, : 3 * DAY].max() <= 7 and made.power[0, 3 * DAY :].min() >= 8
    with pytest.raises(ValueError, match=r"test_days must be in \[1, 6\], below days"):
        tracebase.compose(traces, 1, days=7, num_types=1, test_days=7)
