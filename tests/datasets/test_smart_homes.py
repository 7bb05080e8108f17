"""The smart homes from five days of seven homes in the original layouts."""

import datetime
import shutil

import numpy as np
import pytest

from jaxanon.datasets import load
from jaxanon.datasets.smart_homes.description import CHANNELS
from jaxanon.datasets.smart_homes.smart_homes_dataset_builder import (
    read_house,
    read_rows,
    read_table,
)

FIRST = datetime.datetime(2010, 3, 1, tzinfo=datetime.UTC)
DAYS = 5
# Start and end of the same daily activities in each home.
DAY = (
    ("sleep", "01:00:00", "06:50:00"),
    ("toilet", "07:00:10", "07:01:50"),
    ("breakfast", "07:10:00", "07:30:00"),
    ("leave", "08:00:00", "11:00:00"),
    ("snack", "12:00:20", "12:00:40"),
)
HOUSE = "go-to-bed,use-toilet,prep-breakfast,leave-house,get-drink".split(",")
MIT = (
    "Sleeping,Toileting,Preparing-breakfast,Going-out-to-work,Preparing-a-beverage"
).split(",")
ORDONEZ = "Sleeping,Toileting,Breakfast,Leaving,Snack".split(",")
# Names as in the files, with trailing blanks: all types in each half.
SENSORS = {
    "A": "Microwave;Hall-Toilet door;Cups cupboard;Fridge;Front door;Toilet Flush;"
    "Washing machine;Groceries Cupboard;Hall-Bedroom door;Dishwasher",
    "B": "toilet flush;frontdoor;press bed rechts;kwik stove lid;PIR badkamer;"
    "magnetron;cupboard plates;PIR keuken1;kwik dresser;gootsteen float",
    "C": "mat bed right pressure mat;matt couch living room\t;bathtub pir;refrigerator "
    "reed;sink top flush;cutlery drawer mercury sensor;table pans reed;keys",
    "D": "Bathroom,Toilet Flush ;Kitchen,Burner A;Kitchen,Laundry Dryer;"
    "Living room,DVD ;Bathroom,Medicine cabinet A;Bathroom,Shower faucet;"
    "Kitchen,Light switch A;Bathroom,Sink faucet - hot;Bathroom,Door;Kitchen,Cereal",
    "E": "Den,Stereo;Bathroom,Hamper;Bathroom,Cabinet A;Kitchen,Burner;Kitchen,Door;"
    "Butlers Pantry,Drawer A;Bedroom,TV;Kitchen,Freezer;Hallway,Door",
}
IN_ORDONEZ = (
    "Shower\t\tPIR\t\tBathroom;Basin\t\tPIR\t\tBathroom;Cabinet\t\tMagnetic\tBathroom;"
    "Seat\t\tPressure\tLiving;Bed\t\tPressure\tBedroom;Door\t\tPIR\t\tLiving"
)


def at(day, clock):
    """Returns a time of the ``day``-th day."""
    hours, minutes, seconds = map(int, clock.split(":"))
    return FIRST + datetime.timedelta(day, seconds, 0, 0, minutes, hours)


def write(path, lines):
    path.write_bytes(("\r\n".join(lines) + "\r\n").encode())


@pytest.fixture(scope="module")
def homes(tmp_path_factory):
    """Writes homes whose sensor k, from 0, is on from 7:k:30 to 7:k:45 every day."""
    folder = tmp_path_factory.mktemp("homes")
    for home, sensors in SENSORS.items():
        names, words = sensors.split(";"), MIT if home in "DE" else HOUSE
        events, acts = [], []
        for day in range(DAYS):
            for k in range(len(names)):
                events.append((at(day, f"7:{k}:30"), 15, k + 1))
            events.append((at(day, "7:58:0"), 30, 99))  # A sensor without a name.
            for k, (_, start, end) in enumerate(DAY):
                length = (at(day, end) - at(day, start)).seconds
                acts.append((at(day, start), length, 5 * k))
        row = lambda when, *rest: "\t".join(
            [f"{when.timestamp():.0f}", *map(str, rest)]
        )
        write(folder / f"house{home}.sensors", [row(*event) for event in events])
        write(folder / f"house{home}.activities", [row(*act) for act in acts])
        names = [f"{k}\t{name}" for k, name in enumerate(names, 1)]
        write(folder / f"house{home}.sensor_names", names)
        names = [f"{5 * k}\t{name}" for k, name in enumerate(words)]
        write(folder / f"house{home}.activity_names", names)
    clock = lambda day, text: f"{at(day, text):%Y-%m-%d %H:%M:%S}"
    row = lambda day, start, end, what: (
        f"{clock(day, start)}\t\t{clock(day, end)} \t{what}"
    )
    head = ["Start time \tEnd time  \tActivity", "----------\t--------\t--------"]
    for home in "AB":
        sensors, acts = [], []
        for day in range(DAYS):
            for k, sensor in enumerate(IN_ORDONEZ.split(";")):
                sensors.append(row(day, f"7:{k}:30", f"7:{k}:45", sensor))
            for (_, start, end), word in zip(DAY, ORDONEZ, strict=True):
                acts.append(row(day, start, end, f"{word}\t"))
        write(folder / f"Ordonez{home}_Sensors.txt", [*head, *sensors])
        write(folder / f"Ordonez{home}_ADLs.txt", [*head, *acts])
    return folder


@pytest.fixture
def copy(homes, tmp_path):
    """Returns a copy of the folder to corrupt."""
    return shutil.copytree(homes, tmp_path / "copy")


def of(data, side, home, activity):
    """Returns the windows of one home and activity."""
    labels, classes = side.labels, data.spec.classes
    rows = labels["subject"] == classes["subject"].index(home)
    rows &= labels["activity"] == classes["activity"].index(activity)
    return side.windows[rows]


def test_windows_are_half_hours_around_what_was_done(homes):
    data = load("smart_homes", source=homes)
    spec = data.spec
    assert spec.channels == CHANNELS and len(CHANNELS) == 18 + 18 + 2
    assert (spec.time, spec.public, spec.private) == (30, "activity", ("subject",))
    assert spec.rate_hz == pytest.approx(1 / 60) and spec.split == "time_block"
    assert spec.classes["activity"] == tuple(name for name, _, _ in sorted_day())
    (window,) = of(data, data.test, "A", "toilet")  # The only test day.
    # 7:00 and 7:01 have the toilet's 50 s each, so the window is 6:45 to 7:15.
    on, changed = window[:, :18], window[:, 18:36]
    quarter = np.zeros(30)
    quarter[15 + 5] = 0.25  # Toilet Flush, number 5: 15 s of 7:05.
    kinds = [name.removesuffix(" on") for name in CHANNELS[:18]]
    np.testing.assert_array_equal(on[:, kinds.index("toilet")], quarter)
    np.testing.assert_array_equal(changed[:, kinds.index("toilet")], quarter > 0)
    assert on[:, kinds.index("seat")].sum() == 0  # A has no such sensor.
    assert on.sum() == changed.sum() / 4 == 0.25 * 10  # The unnamed one is absent.
    angle = 2 * np.pi * (6 * 60 + 45) / 1440
    np.testing.assert_allclose(
        window[0, 36:], [np.sin(angle), np.cos(angle)], rtol=1e-5
    )


def sorted_day():
    order = ("leave", "sleep", "toilet", "breakfast", "snack")
    return sorted(DAY, key=lambda row: order.index(row[0]))


def test_every_activity_has_a_window_a_quarter_hour(homes):
    data = load("smart_homes", source=homes)
    # 20 min have 2 windows, 3 h have 12. 1:00 to 4:00 less the last 14 min of the
    # previous day, and 4:15 to 6:50: 166 and 155 min, so 12 and 11.
    expected = {"toilet": 1, "breakfast": 2, "leave": 12, "snack": 1}
    for home in data.spec.classes["subject"]:
        for activity, count in expected.items():
            assert len(of(data, data.train, home, activity)) == 4 * count
            assert len(of(data, data.test, home, activity)) == count
        nights = [len(of(data, side, home, "sleep")) for side in data[1:]]
        # The first day of the data, that of 1:00, has only the end of a night.
        assert nights == [12 * 5 + 11 * 4, 11]


def test_the_last_day_tests(homes):
    data = load("smart_homes", source=homes)
    # There are six days from 4 to 4, the first with only a night. The last tests, and
    # its night is not in the data.
    earliest = []
    for side in data[1:]:
        angle = np.arctan2(side.windows[:, 0, 36], side.windows[:, 0, 37])
        earliest.append((np.round(angle / (2 * np.pi) * 1440) % 1440).min())
    assert earliest == [45, 240]  # 0:45, a quarter of an hour before 1:00, and 4:00.


def test_other_presets(homes):
    data = load("smart_homes", source=homes)
    changes = load("smart_homes", source=homes, preset="changes")
    np.testing.assert_array_equal(changes.test.windows, data.test.windows[..., 18:])
    assert changes.spec.channels == CHANNELS[18:]
    assert load("smart_homes", source=homes, preset="other").spec == (
        data.spec.__class__(**vars(data.spec) | {"preset": "other"})
    )


def test_other_has_what_is_no_class(copy):
    file = copy / "houseD.activity_names"
    file.write_text(file.read_text().replace("Toileting", "Taking-medication"))
    with_it = load("smart_homes", source=copy, preset="other")
    assert with_it.spec.classes["activity"][-1] == "other"
    assert len(of(with_it, with_it.test, "D", "other")) == 1
    assert "other" not in load("smart_homes", source=copy).spec.classes["activity"]


def test_homes_may_be_split(homes, zipped, tmp_path):
    packed = zipped(homes, tmp_path / "homes.zip")
    data = load("smart_homes", source=packed, split="subject", seed=1)
    train, test = ({*side.labels["subject"].tolist()} for side in data[1:])
    assert len(train) == 6 and len(test) == 1 and not train & test


def test_an_end_before_its_start_keeps_minutes_and_seconds():
    # The data's three, unchanged.
    text = "a\nb\n" + "\n".join(
        [
            "2011-12-01 19:28:51\t\t2011-12-01 16:29:59\t\tToileting",
            "2011-12-02 12:20:41\t\t2011-12-01 10:20:59\t\tGrooming",
            "2011-12-02 12:27:47\t\t2011-12-01 11:35:49\t\tBreakfast",
        ]
    )
    lengths = [end - start for start, end, _ in read_rows("f", text.encode())]
    assert lengths == [60 + 8, 18, 8 * 60 + 2]


def test_a_house_by_hand():
    parts = {
        "sensor_names": b"3\tfridge\r\n8\tPIR keuken1",
        "activity_names": b"1\tleave-house",
        "sensors": b"100\t0\t3\r\n200\t5\t77\r\n300\t7\t8\r\n",
        "activities": b"100\t50\t1\r\n",
    }
    events, activities = read_house("B", parts)
    assert events.start.tolist() == [100, 300]  # Number 77 has no name.
    assert events.end.tolist() == [101, 307]  # An event lasts at least a second.
    assert (activities.end - activities.start).tolist() == [50]


def test_says_which_file_is_damaged():
    for content in (b"", b"1\t2\n", b"1\t2\tx\n", b"1\t2\t3\n4\t5"):
        with pytest.raises(ValueError, match="houseA.sensors must hold start, len"):
            read_table("houseA.sensors", content)
    with pytest.raises(ValueError, match="a length is negative"):
        read_table("houseA.sensors", b"1\t-2\t3\n")
    with pytest.raises(
        ValueError, match="f, line 3, must hold start, .* got '2011-12-02 1'"
    ):
        read_rows("f", b"a\nb\n2011-12-02 1")
    with pytest.raises(ValueError, match="f is truncated, it has no rows"):
        read_rows("f", b"a\nb\n\n")


def test_says_what_is_missing(copy, tmp_path, monkeypatch):
    (copy / "OrdonezB_ADLs.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"lacks \['OrdonezB_ADLs.txt'\] of sm"):
        load("smart_homes", source=copy)
    with pytest.raises(FileNotFoundError, match="has no file of smart_homes"):
        load("smart_homes", source=tmp_path / "nowhere")
    monkeypatch.setattr("jaxanon.datasets.sources.find", lambda *args: None)
    with pytest.raises(FileNotFoundError, match="smart_homes was not found; put house"):
        load("smart_homes")
