"""Tests of the comparison with PrivateHub: places, arithmetic, tables, a smoke run."""

import dataclasses
import json
import sys
import zipfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import datasets, methods
from jaxanon.core.run import Run
from jaxanon.datasets import registry
from jaxanon.datasets.spec import Windows
from jaxanon.models.fit import fit_classifier, predict_logits
from jaxanon.models.forecaster import Forecaster, Forecasts


@pytest.fixture
def runs(bench):
    return bench("privatehub.runs")


@pytest.fixture
def places(bench):
    return bench("privatehub.places")


@pytest.fixture
def work(bench):
    return bench("privatehub.jobs")


def test_concealment_by_hand(runs):
    # Windows of a, a, b, c, c: the classifier confuses one a with c, and one c with b.
    labels = np.array([0, 0, 1, 2, 2])
    said = np.eye(3)[[0, 2, 1, 2, 1]] * np.arange(1.0, 6)[:, None]
    found = runs.concealment(said, labels, ("a", "b", "c"), ("c",))
    assert found["shown"] == 2 / 3 and found["shown_majority"] == 2 / 3
    assert found["shown_chance"] == 1 / 3 and found["windows"] == 5
    (one,) = found["private"].values()
    assert one["recall"] == 0.5 and one["count"] == 2 and one["accuracy"] == 0.6
    assert one["balanced"] == found["worst"] == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert one["majority"] == 0.6
    # Evidence for c: -1.3, 1.3, -3.0 of others; of a c 3.3 and -5.0.
    assert one["auc"] == pytest.approx(3 / 6)


def test_what_is_said_the_wrong_way_round_is_told_all_the_same(runs):
    """Three of four windows of the class to hide are confused, and vice versa."""
    labels = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    said = np.eye(2)[[1, 1, 1, 0, 0, 0, 0, 1]]
    found = runs.concealment(said, labels, ("a", "b"), ("b",))
    assert found["private"]["b"]["balanced"] == 0.25 and found["worst"] == 0.75


def test_several_classes_to_hide_count_by_the_worst(runs):
    labels = np.repeat([0, 1, 2], 4)
    said = np.log(np.eye(3)[np.array([0] * 4 + [1, 1, 0, 0] + [2] * 4)] + 0.01)
    found = runs.concealment(said, labels, ("a", "b", "c"), ("b", "c"))
    assert found["shown"] == 1 and list(found["private"]) == ["b", "c"]
    assert found["private"]["b"]["balanced"] == 0.75
    assert found["worst"] == found["private"]["c"]["balanced"] == 1


def test_other_classes_are_shown_and_others(runs):
    labels = np.repeat(np.arange(4), 50)
    found = runs.another(labels, [0, 1, 3], 0)
    assert not np.any(found == labels) and set(found) == {0, 1, 3}


def test_windows_are_thinned_evenly(runs):
    side = Windows(np.arange(10.0)[:, None, None], {"activity": np.arange(10)})
    assert runs.few(side, 5).labels["activity"].tolist() == [0, 2, 4, 6, 8]
    assert len(runs.few(side, 10).windows) == 10


def test_two_classes_lose_their_labels_and_no_window(runs, places):
    place = places.simulated()
    data = runs.without_labels(place, ("a", "d"))
    assert data.spec.classes["activity"] == ("b", "c", "unlabelled")
    before, after = (side.train.labels["activity"] for side in (place.data, data))
    assert np.array_equal(after == 2, np.isin(before, [0, 3]))
    assert np.array_equal(after == 1, before == 2)
    assert data.train.windows is place.data.train.windows


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Writes small files of rooms and an office."""
    monkeypatch.setenv("JAXANON_DATA", str(tmp_path))
    monkeypatch.setenv("JAXANON_CACHE", str(tmp_path / "cache"))
    (tmp_path / "room_climate").mkdir()
    random = np.random.default_rng(0)
    with zipfile.ZipFile(tmp_path / "room_climate" / "all.zip", "w") as file:
        for room in "ABC":
            at = np.repeat(np.arange(0, 20_000, 8), 3)
            activity = at // 4000
            told = [at, 1000 * at, at, np.tile([1, 2, 3], len(at) // 3)]
            told += [
                *(20 + random.normal(size=(4, len(at)))),
                (activity > 0).astype(int),
                activity,
            ]
            lines = [", ".join(map(str, row)) + ", 0, 0" for row in zip(*told)]  # noqa: B905
            name = f"room_climate-location_{room}-measurement01.csv"
            file.writestr(name, "\n".join(lines))
    (tmp_path / "occupancy").mkdir()
    names = [f"S{n}_{w}" for w in ("Temp", "Light", "Sound") for n in range(1, 5)]
    names += ["S5_CO2", "S6_PIR", "S7_PIR"]
    lines = [",".join(["Date", "Time", *names, "Room_Occupancy_Count"])]
    for row in range(1600):
        clock = np.datetime64("2017-12-22T10:00:00") + np.timedelta64(30 * row, "s")
        values = [*random.normal(size=13).round(2), *random.integers(2, size=2)]
        day, time = str(clock).split("T")
        lines.append(",".join([day, time, *map(str, values), str(row // 400)]))
    path = tmp_path / "occupancy" / "Occupancy_Estimation.csv"
    path.write_text("\n".join(lines))
    return tmp_path


def test_rooms_and_an_office_become_places(places, files):
    found = [*places.rooms.__wrapped__(), *places.office.__wrapped__()]
    assert [place.name for place in found] == ["room A", "room B", "room C", "office"]
    for place in found:
        spec, train, test = place.data
        time = 16 if place.name == "office" else 32
        assert spec.time == train.windows.shape[1] == time
        assert set(train.labels["activity"]) == set(test.labels["activity"])
        counts = np.bincount(train.labels["activity"])
        assert len(counts) == spec.num_classes("activity")
        assert counts.min() >= places.LEAST_TRAIN
        assert all(set(hide) < set(spec.classes["activity"])
                   for hide in place.choices.values())  # fmt: skip
        assert np.allclose(train.windows.mean((0, 1), np.float64), spec.mean)
        for names in place.predicted.values():
            assert names and set(names) <= set(spec.channels)
    assert set(found[1].others.train.labels["room"]) == {0, 2}
    assert found[3].others is None and found[3].categories == ("PIR 6", "PIR 7")
    rooms = registry.find("room_climate")
    assert found[0].data.spec.classes["activity"] == rooms.attributes["activity"]


def test_what_is_not_at_hand_is_said(places, monkeypatch, capsys):
    monkeypatch.setattr("jaxanon.datasets.sources.find", lambda *args: None)
    places.rooms.cache_clear()
    assert places.every(False, "rooms") == []
    assert "Skipping rooms: room_climate was not found" in capsys.readouterr().out


def test_homes_become_places_of_sensors_that_change(places):
    try:
        found = places.homes()
    except OSError as error:
        pytest.skip(f"smart_homes is not at hand: {error}")
    assert [place.name for place in found] == [f"home {h}" for h in places.HOMES]
    for index, place in enumerate(found):
        assert set(place.data.train.labels["subject"]) == {index}
        assert index not in place.others.train.labels["subject"]
        assert set(place.data.train.windows[..., 0].ravel()) <= {0.0, 1.0}
        assert place.data.spec.time == 28 and place.choices


def test_rare_classes_and_idle_choices_stay_out(places):
    side = lambda counts: Windows(
        np.zeros((sum(counts), 1, 1)),
        {"activity": np.repeat(np.arange(len(counts)), counts)},
    )
    assert places.kept_classes("abc", side([20, 15, 20]), side([9, 9, 3])) == [0]
    choices = {"x": ("a", "e"), "y": ("a",), "z": ("a", "b")}  # z leaves one class.
    assert places.possible(choices, ("a", "b", "c")) == {"x": ("a",)}


@pytest.mark.filterwarnings("error")
def test_every_job_can_be_trained(work, places):
    place = places.simulated(windows=400)
    for question in work.QUESTIONS:
        for smoke in (True, False):
            jobs = work.jobs(question, place, smoke)
            names = {(job.choice, job.name) for job in jobs}
            assert len(names) == len(jobs) >= (1 if question == "missing" else 2)
    for name in filter(None, work.METHODS.values()):
        for smoke in (True, False):
            settings, epochs = work.settings(name, place, ("c",), smoke)
            method = methods.build(name, place.data.spec, **settings)
            assert epochs >= method.schedule.min_epochs
            data = method.prepare(datasets.by_client(place.data.train))
            rounds = epochs * method.schedule.rounds_per_epoch(data)
            asked = sum((work.SMOKE_STEPS if smoke else work.STEPS)[name].values())
            assert asked * 0.6 < rounds < asked * 1.6 + 20
    assert len(work.pairs(place)) == 3  # Pairs of a, b and d.
    pairs = dataclasses.replace(place.data.spec, classes=place.data.spec.classes | {
        "activity": tuple("abcdefghij")})  # fmt: skip
    other = place._replace(data=place.data._replace(spec=pairs))
    assert len(work.pairs(other)) == work.SETUPS


@pytest.mark.slow
def test_fewer_steps_are_those_of_the_same_network(bench, runs, work, places):
    place = places.simulated()
    settings, _ = work.settings("privatehub", place, ("c",), True)
    method = methods.build("privatehub", place.data.spec, **settings)
    state = method.init(jax.random.key(0))
    run = Run(method, state, place.data.spec, "here", [], {})
    other = runs.with_steps(run, 7)
    assert other.method.config.num_inference_steps == 7 and other.folder is None
    assert other.method.config.num_train_timesteps == method.config.num_train_timesteps
    assert other.state.params is state.params


def test_a_forecast_is_missed_by_what_really_came(bench):
    quality = bench("privatehub.quality")
    net = Forecaster(2)  # Repeats the last value.
    params = net.init(jax.random.key(0), jnp.zeros((1, 2, 1)))
    forecasts = Forecasts(net, params, jnp.zeros(0))
    read, came = np.array([[[1.0], [2.0], [5.0]]]), np.array([[[0.0], [3.0], [2.5]]])
    missed = quality.missed(forecasts, np.float32(read), came)
    assert missed[..., 0].tolist() == [[2.0, 0.5]]


def test_features_are_what_the_last_layer_sees(bench):
    x = np.random.default_rng(0).normal(size=(40, 4, 2)).astype(np.float32)
    net = fit_classifier(jax.random.key(0), x, np.arange(40) % 3, 3, epochs=1)
    found = bench("privatehub.quality").features(net, x)
    last = net.params["params"][f"Dense_{len(net.net.hidden)}"]
    logits = found @ np.asarray(last["kernel"]) + np.asarray(last["bias"])
    assert found.shape == (40, 16) and found.min() == 0
    assert np.allclose(logits[:, :3], predict_logits(net, x), atol=1e-4)


@pytest.fixture
def smoke(bench, work, tmp_path, monkeypatch):
    """Runs a question on the two methods that compile fastest; returns its rows."""
    names = {name: work.METHODS[name] for name in (work.RAW, "Conditional GAN")}
    monkeypatch.setattr(work, "METHODS", names)
    monkeypatch.setattr(work, "WAYS", {})
    out = tmp_path / "out" / "hub.json"

    def ask(question):
        call = ["privatehub.py", "--smoke", "--folder", str(tmp_path / "runs")]
        call += ["--json", str(out), "--question", question]
        monkeypatch.setattr(sys, "argv", call)
        bench("privatehub.command").main()
        return out, json.loads(out.read_text())

    return ask


@pytest.mark.slow
def test_a_smoke_run_writes_tables_and_figures_and_goes_on(
    smoke, work, tmp_path, monkeypatch
):
    out, rows = smoke("methods")
    raw, gan = sorted(rows, key=lambda row: row["name"] != "raw data")
    assert raw["place"] == gan["place"] == "simulated" and gan["rounds"] == 6
    (path,) = (tmp_path / "runs" / "methods").glob("*raw_data*.json")
    window = json.loads(path.read_text())["streams"]["windows"][0]
    assert window["raw"] == window["made"]
    assert ("streams" in raw) + ("streams" in gan) == 1  # The figure shows one of them.
    assert 0 <= gan["shown"] <= 1 and gan["retrained"].keys() == {"forest"}
    assert gan["settings"]["widths"] == [8, 4] and gan["versions"]["jax"]
    for name in ("methods", "choices", "streams"):
        assert out.with_name(f"hub_{name}.png").stat().st_size > 5000
    assert "table 4.2" in out.with_suffix(".md").read_text()
    assert "<img" in out.with_suffix(".html").read_text()
    # Saved answers are not recomputed, and other questions reuse trained runs.
    (kept,) = (tmp_path / "runs" / "methods").glob("*GAN*.json")
    kept.write_text(json.dumps(json.loads(kept.read_text()) | {"shown": 0.125}))
    trained = list((tmp_path / "runs" / "trained").glob("*"))
    out, rows = smoke("methods")
    assert 0.125 in [row["shown"] for row in rows]
    out, rows = smoke("switched")
    assert [row["name"] for row in rows if "other_told" in row] == ["Conditional GAN"]
    assert list((tmp_path / "runs" / "trained").glob("*")) == trained
    # Other settings are recomputed.
    monkeypatch.setitem(work.SMOKE, "cgan", work.SMOKE["cgan"] | {"latent_dim": 5})
    out, rows = smoke("methods")
    anew = [row for row in rows if row["question"] == "methods"]
    assert [row["shown"] for row in anew if "settings" in row] != [0.125]
    assert [row["settings"]["latent_dim"] for row in anew if "settings" in row] == [5]
