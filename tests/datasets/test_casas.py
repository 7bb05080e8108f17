"""CASAS from small files in the original format."""

import shutil

import jax
import numpy as np
import pytest
from plain_denoiser import plain_denoiser

import jaxanon as ja
from jaxanon import methods
from jaxanon.datasets import export, hold_out_subjects, load
from jaxanon.datasets.casas import tokens
from jaxanon.datasets.casas.casas_dataset_builder import read_events
from jaxanon.datasets.casas.description import last
from jaxanon.datasets.casas.tokens import token

# A day of Milan with its annotations and tabs; the test prepends dates.
MILAN = """\
00:01:04.000059	M017	ON	Sleep begin
00:01:06.046	M017	OFF
03:12:09.1	M005	ON	Bed_to_Toilet begin
03:14:21.0	D001	OPEN	Bed_to_Toilet end
06:58:10.31	M017	ON	Sleep end
07:10:00.5	M012	ON
07:15:00	T001	21.5	Kitchen_Activity begin
07:16:00.25	M012	ON	Kitchen_Activity end
09:00:00	D001	OPEN	Leave_Home begin
09:00:09	D001	CLOSE	Leave_Home end"""
# Cairo contains blanks; one of two residents gets up while the other sleeps.
CAIRO = """\
00:30:00.1 M001 ON R1 sleep begin
00:31:00.1 M002 ON R2 sleep begin
06:31:00.1 M001 OFF R1 sleep end
07:31:00.1 M002 OFF R2 sleep end
08:00:00.1 M009 ON Breakfast begin
08:10:00.1 M009 OFF Breakfast end"""
KYOTO = """\
12:43:27.416392 M08 ON
12:43:27.8481 AD1-A 2.82231
12:44:00 I04 ABSENT
12:45:00 asterisk START"""


def dated(text, days):
    return "\n".join(
        f"2009-10-{day:02}{separator}{line}"
        for day in days
        for line in text.splitlines()
        for separator in ("\t" if "\t" in line else " ",)
    )


@pytest.fixture(scope="module")
def homes(tmp_path_factory):
    """Writes ten days of Milan, five of Cairo, two Kyoto homes, and readmes."""
    folder = tmp_path_factory.mktemp("casas")
    files = {
        "milan/data": dated(MILAN, range(16, 26)) + "\n",
        "cairo/data": dated(CAIRO, range(1, 6)) + "\n\n",
        "kyoto1/p01.t3": dated(KYOTO, [5]),
        "twor.2009/data": dated(MILAN.replace("M0", "M"), [5]),
        "milan/README": "milan",
        "twor.2009/README.txt": "of no concern",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def of(data, side, home, activity):
    """Returns the sequences of one home and activity without their leading zeros."""
    labels, classes = side.labels, data.spec.classes
    rows = labels["subject"] == classes["subject"].index(home)
    rows &= labels["activity"] == classes["activity"].index(activity)
    return [window[window > 0].astype(int).tolist() for window in side.windows[rows]]


def test_windows_are_the_last_2000_events_of_an_activity(homes):
    data = load("casas", source=homes)
    spec = data.spec
    assert (spec.time, spec.channels, spec.units) == (2000, ("event",), ("1",))
    assert spec.tokens == 1 + 64 * 2 + 32 * 2 + 8 * 31
    assert (spec.mean, spec.std, spec.split) == ((0.0,), (1.0,), "time_block")
    assert spec.classes["subject"] == ("milan", "cairo", "kyoto1", "kyoto2")
    assert set(spec.classes["activity"]) == {
        *("sleep", "leave home", "eat", "cook", "bed to toilet")
    }
    # 17 ON; then 17 OFF; then the toilet, outside the activity; and so on.
    on, off = token("M017", "ON"), token("M017", "OFF")
    assert of(data, data.test, "milan", "sleep") == [[on, off], [on]] * 2
    bed = [token("M005", "ON"), token("D001", "OPEN")]
    assert of(data, data.test, "milan", "bed to toilet") == [bed] * 2
    cook = [token("T001", "21.5"), token("M012", "ON")]
    assert of(data, data.train, "milan", "cook") == [cook] * 8  # Eight of ten days.
    (window,) = [w for w in data.test.windows if (w[-1] == cook[1]) and w[-3] == 0][:1]
    assert (window[:-2] == 0).all()  # Zeros come first.


def test_the_resident_that_began_last_has_the_events(homes):
    data = load("casas", source=homes)
    first, second = (token(f"M00{k}", "ON") for k in (1, 2))
    ends = [token(f"M00{k}", "OFF") for k in (1, 2)]
    # R1 alone, then R2; when R1 ends, the activity is still R2's.
    assert of(data, data.test, "cairo", "sleep") == [[first], [second, *ends]]
    assert len(of(data, data.train, "cairo", "eat")) == 4


def test_the_last_fifth_of_the_days_tests(homes):
    data = load("casas", source=homes)
    sleep = [len(of(data, side, "milan", "sleep")) for side in data[1:]]
    assert sleep == [2 * 8, 2 * 2]
    train, test = (len(of(data, side, "cairo", "eat")) for side in data[1:])
    assert (train, test) == (4, 1)
    # A single day leaves nothing to test.
    assert of(data, data.test, "kyoto2", "sleep") == []
    assert len(of(data, data.train, "kyoto2", "sleep")) == 2


def test_kyoto1_has_a_file_for_each_task(homes):
    # Motion only, and all sensors with the preset.
    data = load("casas", source=homes)
    assert of(data, data.train, "kyoto1", "cook") == [[token("M008", "ON")]]
    data = load("casas", source=homes, preset="sensors")
    words = [("M8", "ON"), ("AD1-A", "1"), ("I4", "ABSENT"), ("asterisk", "START")]
    assert of(data, data.train, "kyoto1", "cook") == [[token(*word) for word in words]]
    assert data.spec.tokens == tokens.COUNT


def test_the_other_presets(homes):
    data = load("casas", source=homes, preset="events200")
    assert data.train.windows.shape[1:] == (200, 1)
    data = load("casas", source=homes, preset="other")
    # Between getting up and the kitchen; nothing after leaving home.
    assert of(data, data.test, "milan", "other") == [[token("M012", "ON")]] * 2
    assert data.spec.classes["activity"][-1] == "other"


@pytest.mark.filterwarnings("ignore:the test windows must have at least two")
def test_homes_may_be_split(homes, zipped, tmp_path):
    packed = zipped(homes, tmp_path / "all.zip")
    data = load("casas", source=packed, split="subject", preset="events200")
    train, test = ({*side.labels["subject"].tolist()} for side in data[1:])
    assert len(train) == 3 and len(test) == 1 and not train & test


def test_strangers_are_held_out(homes):
    data = hold_out_subjects(load("casas", source=homes), 0.5, seed=0)
    assert data.spec.split == "subject" and data.spec.std == (1.0,)
    train, test = ({*side.labels["subject"].tolist()} for side in data[1:])
    assert len(train) == 2 and not train & test


def test_files_of_one_s_own_may_hold_tokens(homes, tmp_path):
    data = load("casas", source=homes, preset="events200")
    again = load(export(data, "all", tmp_path / "casas.npz"))
    assert again.spec.tokens == data.spec.tokens and again.spec.std == (1.0,)
    np.testing.assert_array_equal(again.test.windows, data.test.windows)
    with np.load(tmp_path / "casas.npz") as file:
        arrays = dict(file)
    for bad, match in [
        ({"tokens": np.array(5)}, "whole numbers from 0 to 4, got 1 channels and"),
        ({"tokens": np.array(0)}, r"tokens must be one integer, at least 1, got"),
        ({"windows": arrays["windows"] + 0.5}, "whole numbers from 0 to"),
    ]:
        np.savez(tmp_path / "bad.npz", **arrays | bad)
        with pytest.raises(ValueError, match=match):
            load(tmp_path / "bad.npz")


def test_long_sequences_lose_their_beginning():
    rows = np.arange(1.0, 8.0, dtype=np.float32)[:, None]
    assert last(3, 100, rows).ravel().tolist() == [5, 6, 7]
    assert len(last(3, 1, rows)) == 0  # No counted events, so no window.


def test_a_few_damaged_lines_are_left_out_and_many_refused():
    good = dated(MILAN, range(1, 29))  # 280 lines.
    damaged = good + "\n2009-10-16 00:01:04\tM017\n\n2009-1x-16 00:01:04 M017 ON"
    assert read_events("milan/data", damaged.encode()) == read_events("", good.encode())
    worse = damaged + "\ngarbage"
    with pytest.raises(
        ValueError,
        match=r"milan/data must hold lines .*, got 280 of them and 3 others, first l",
    ):
        read_events("milan/data", worse.encode())
    with pytest.raises(
        ValueError, match="cairo/data must hold lines of date, .* got 0 of"
    ):
        read_events("cairo/data", b"\n")


def test_says_where_to_get_it(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="has no file of casas"):
        load("casas", source=tmp_path)
    monkeypatch.setattr("jaxanon.datasets.sources.find", lambda *args: None)
    with pytest.raises(
        FileNotFoundError, match="casas was not found; download the homes fro"
    ):
        load("casas")


@pytest.mark.slow
def test_events_are_learned_and_made_as_events(homes, tmp_path):
    for home in ("milan", "cairo"):  # Kyoto has one window.
        shutil.copytree(homes / home, tmp_path / home)
    data = load("casas", source=tmp_path, preset="events200")
    tiny = {"batch_size": 8, "num_train_timesteps": 6, "num_inference_steps": 2}
    tiny |= {"classifier_filters": (4,), "classifier_features": 4}
    with plain_denoiser():
        method = methods.privatehub(data.spec, **tiny)
    run = ja.train(method, data, epochs=1, progress=False)
    asked = {"activity": data.test.labels["activity"][:3]}
    made = run.sample(jax.random.key(0), asked)
    assert made.shape == (3, 200, 1)
    assert set(np.unique(made)) <= set(range(data.spec.tokens))
