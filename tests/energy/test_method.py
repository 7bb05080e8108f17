"""Runs of homes: resuming, errors, evaluation and reports."""

import dataclasses
import json
import pickle
import shutil

import jax
import numpy as np
import pytest

from jaxanon import energy
from jaxanon.core import registry
from jaxanon.energy import PFDRLSettings, guarantee, settings
from jaxanon.energy.homes import take
from jaxanon.evaluation import energy as evaluation_energy
from jaxanon.report import energy as pages
from jaxanon.training import metrics_log, run_folder, trainer

SIZES = {"homes": 3, "devices": 2, "days": 2, "test_days": 1}
SETTINGS = PFDRLSettings(
    **SIZES | {"homes": 2}, joining=1, forecaster="lr", hidden_sizes=(6,), alpha=1,
    forecaster_steps=1, gamma_hours=2.0, drop_probability=0.2,
    max_age=1, graph="k-regular", degree=1,
)  # fmt: skip
pytestmark = pytest.mark.slow


def train(settings, homes, **options):
    method = registry.rebuild("pfdrl", homes.spec, settings)
    return trainer.train(method, homes, progress=False, **options)


def change(run, **given):
    """Returns the run with changed settings."""
    config = dataclasses.replace(run.method.config, **given)
    return dataclasses.replace(run, method=run.method._replace(config=config))


def system_of(run):
    return energy.pfdrl(settings.build_config(run.method.config))


@pytest.fixture(scope="module")
def homes():
    return energy.load_homes("simulated", **SIZES)


@pytest.fixture(scope="module")
def run(homes, tmp_path_factory):
    out = tmp_path_factory.mktemp("neighborhood") / "run"
    return train(SETTINGS, homes, seed=3, output_dir=out)


@pytest.fixture(scope="module")
def report(run, homes):
    return evaluation_energy.evaluate(run, homes, seed=2)


def bits(state):
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(state)]


def rows(run):
    return [(row["round"], row["losses"]) for row in run.history]


def test_a_killed_run_goes_on_to_the_same_bits(run, homes, tmp_path, monkeypatch):
    more = {"seed": 3, "output_dir": tmp_path / "killed"}
    append = metrics_log.append

    def killed(folder, row):
        append(folder, row)
        if row["round"] == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(metrics_log, "append", killed)
    with pytest.raises(KeyboardInterrupt):
        train(SETTINGS, homes, checkpoint_s=0, **more)
    monkeypatch.undo()
    kept = run_folder.open_run(tmp_path / "killed")
    assert len(kept.history) == 1 and int(kept.state.system.slot) == 24
    assert int(kept.state.round) == 1 and kept.unfinished == {"done": 1, "asked": 2}
    again = train(SETTINGS, homes, resume=True, **more)
    assert bits(again.state) == bits(run.state) and rows(again) == rows(run)
    opened = run_folder.open_run(run.folder)
    assert bits(opened.state) == bits(run.state) and rows(opened) == rows(run)


def test_a_folder_is_of_one_run(run, homes, tmp_path):
    again = lambda homes=homes, **more: train(
        SETTINGS, homes, **{"seed": 3, "output_dir": run.folder} | more
    )
    with pytest.raises(FileExistsError, match="already holds a run"):
        again()
    with pytest.raises(ValueError, match="seed must be 3 as in the run .* got 4"):
        again(seed=4, resume=True)
    other = homes._replace(power=homes.power + 1)
    with pytest.raises(ValueError, match="data.fingerprint must be"):
        again(homes=other, resume=True)
    with pytest.raises(
        ValueError, match="homes must be those that the run in .* was trained"
    ):
        evaluation_energy.evaluate(run, other)
    with pytest.raises(FileNotFoundError, match="holds no run"):
        run_folder.open_run(tmp_path)
    config = json.loads((run.folder / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(FileNotFoundError, match="has no checkpoint yet"):
        run_folder.open_run(tmp_path)
    old = config | {"architecture": ["another"]}
    (tmp_path / "config.json").write_text(json.dumps(old))
    with pytest.raises(ValueError, match="must hold the architecture"):
        run_folder.open_run(tmp_path)
    for damaged in ({"spec": {}}, {"method": "blinder"}):
        (tmp_path / "config.json").write_text(json.dumps(config | damaged))
        with pytest.raises(ValueError, match=r"config.json: damaged"):
            run_folder.open_run(tmp_path)
    with pytest.raises(TypeError, match="seed must be a Python int"):
        again(seed=0.5, output_dir=None)
    with pytest.raises(ValueError, match="epochs must be 2, as in the settings"):
        again(epochs=3, output_dir=None)
    with pytest.raises(ValueError, match="with other .'homes', 'devices'."):
        trainer.train(run.method, take(homes, 0, 2), progress=False)


def test_homes_must_be_enough(homes):
    of = lambda **more: train(
        PFDRLSettings(**{"days": 2, "test_days": 1} | more), homes
    )
    with pytest.raises(
        ValueError, match="homes must have 5 days, 2 for training and 3"
    ):
        of(test_days=3)
    with pytest.raises(
        ValueError, match="joining must be less than the number of homes, 3"
    ):
        of(joining=3)
    with pytest.raises(ValueError, match=r"alpha must be in \[0, 2\]"):
        of(alpha=3, hidden_sizes=(4,))


def test_homes_that_join_are_looked_at_before_anything_is_learned(homes, monkeypatch):
    monkeypatch.setattr(energy, "simulate", lambda *_: pytest.fail("it learned"))
    wrong = homes._replace(power=homes.power.copy())
    wrong.power[2, 100:150, 1] = np.nan
    with pytest.raises(ValueError, match="50 for .* of home 3 from minute 100"):
        train(SETTINGS, wrong)


def test_who_has_nobody_join_asks_for_nothing(run, homes):
    with pytest.raises(ValueError, match="joining must be >= 1 in the run's settings"):
        evaluation_energy.joined(change(run, joining=0), homes)


def test_what_is_no_longer_finite_ends_the_run(homes):
    with pytest.raises(
        FloatingPointError,
        match="infinity in round 1; lower forecaster_learning_rate or learning_rate",
    ):
        train(
            PFDRLSettings(
                days=2,
                test_days=1,
                forecaster="lr",
                hidden_sizes=(6,),
                alpha=1,
                learning_rate=1e38,
            ),
            take(homes, 0, 1),
        )


def test_days_are_told_as_agents_went_through_them(run, homes):
    """The last day's row equals 24 slots of the same program.

    The agents start with the minutes of their neighborhood, which the method lacks.
    """
    system, plain = system_of(run), run.method.prepare(homes)
    first, key = jax.random.split(jax.random.key(3))
    state = system.init(first, plain, **settings.build_hyper(SETTINGS))
    state, _ = energy.simulate(system, key, state, plain, 24)
    _, info = energy.simulate(system, key, state, plain, 24)
    told = run.history[1]["losses"]
    saved, standby = (np.sum(info[name]) for name in ("saved_wh", "standby_wh"))
    assert told["saved_share"] == pytest.approx(float(saved / standby), rel=1e-4)
    assert told["reward"] == pytest.approx(float(info["reward"].mean()), rel=1e-4)
    assert told["standby_kwh"] == pytest.approx(float(standby) / 1000, rel=1e-4)


def test_the_pure_round_is_the_day_that_is_dealt_out(run, homes):
    """``update`` on the whole neighborhood gives the same losses."""
    first, key = jax.random.split(jax.random.key(3))
    state, neighborhood = run.method.init(first), run.method.prepare(homes)
    state, told = jax.jit(run.method.update)(key, state, neighborhood)
    assert int(state.round) == 1
    for name, loss in run.history[0]["losses"].items():
        assert float(told[name]) == pytest.approx(loss, rel=1e-3), name


def test_a_run_of_another_place_of_leaves_reopens(run, tmp_path):
    """Version 0.1 joined the devices of a home and saved no hyper-parameters."""
    folder = tmp_path / "old"
    shutil.copytree(run.folder, folder)
    config = json.loads((folder / "config.json").read_text())
    config["spec"]["devices"] = [" + ".join(own) for own in config["spec"]["devices"]]
    del config["hyper"]
    (folder / "config.json").write_text(json.dumps(config))
    assert bits(run_folder.open_run(folder).state) == bits(run.state)


def test_the_method_is_of_the_registry(run, homes):
    assert "pfdrl" in registry.names("controller")
    again = pickle.loads(pickle.dumps(run.method))
    assert (again.name, again.config, again.spec) == run.method[:3]
    told = json.loads((run.folder / "config.json").read_text())["architecture"]
    assert told[0] == ".slot: int32[]"  # As in version 0.1.
    spread = run.method.place(run.method.prepare(homes), 2)
    kept = spread.collect(spread.place(run.state))
    assert bits(kept) == bits(run.state)


def test_held_out_days_are_the_agents_own_acts(run, homes, report):
    """Returns the records of ``act`` for each slot of the third day."""
    act, neighborhood = jax.jit(system_of(run).act), run.method.prepare(homes)
    slots = [act(run.state.system, neighborhood, slot) for slot in range(48, 72)]
    present = np.ones(4, bool)
    sums = [energy.summarize_slot(did, present) for did in slots]
    total = {k: float(sum(np.sum(one[k]) for one in sums)) for k in sums[0]}
    overall = report["overall"]
    assert overall["standby_kwh"] == pytest.approx(total["standby_wh"] / 1000, rel=1e-4)
    assert overall["saved_kwh"] == pytest.approx(total["saved_wh"] / 1000, abs=1e-7)
    assert overall["switched_off_minutes"] == total["switched_off"]
    assert overall["optimal_share"] == pytest.approx(total["optimal"] / 5760)
    mase = total["forecast_error"] / total["held_error"]
    assert report["forecast"]["model"]["mase"] == pytest.approx(mase, rel=1e-3)
    assert [row["day"] for row in report["per_day"]] == [3]
    assert [row["day"] for row in report["training"]] == [1, 2]
    example = report["example"]
    home = homes.names.index(example["home"])
    load = example["devices"][1]["load"]
    np.testing.assert_allclose(load, homes.power[home, 2880:, 1], atol=0.006)


def test_a_home_that_joins_lives_through_the_days(run, homes, report, monkeypatch):
    """New homes start with or without the shared first layer; the last is personal."""
    begun, live = [], energy.simulate

    def seen(system, key, state, neighborhood, num_slots):
        kernels = {name: x["kernel"] + 0 for name, x in state.control.params.items()}
        begun.append((kernels, neighborhood.power.shape, num_slots))
        return live(system, key, state, neighborhood, num_slots)

    monkeypatch.setattr(energy, "simulate", seen)
    assert evaluation_energy.joined(run, homes, seed=2) == report["newcomers"]
    (joined, shape, slots), (alone, *_) = begun
    assert shape == (2, 3 * 1440) and slots == 48
    neighborhood = run.state.system.control.params["dense_1"]["kernel"]
    np.testing.assert_allclose(
        joined["dense_1"][0], (neighborhood[0] + neighborhood[2]) / 2
    )
    assert not np.allclose(alone["dense_1"][0], joined["dense_1"][0], atol=0.1)
    last = run.state.system.control.params["dense_2"]["kernel"]
    assert not np.allclose(joined["dense_2"][0], (last[0] + last[2]) / 2, atol=0.1)
    found = report["newcomers"]
    assert found["homes"] == ["home 3"]
    for name in ("joined", "alone"):
        saved, optimal = (np.array(found[name][key]) for key in ("saved", "optimal"))
        assert saved.shape == optimal.shape == (2,)
        # One home, whose final saving is over both days.
        final = found[name]["final"][0]
        assert min(saved) <= final <= max(saved) and min(optimal) > 0
        good = (saved >= 0.95 * final) & (optimal >= 0.95 * optimal.mean())
        reached = 1 if all(good) else 2 if good[1] else 0
        assert found[name]["days"] == [reached if final else 0]


def test_new_homes_draw_other_numbers(run, homes, monkeypatch):
    """New homes with the run's seed start differently from the trained homes."""
    keys = []

    def seen(system, key, *rest):
        keys.append(jax.random.key_data(key).tolist())
        raise InterruptedError

    monkeypatch.setattr(energy, "add_home", seen)
    with pytest.raises(InterruptedError):
        evaluation_energy.joined(run, homes, seed=3)
    drawn = jax.random.key_data(jax.random.split(jax.random.key(3), 3)).tolist()
    assert keys[0] not in drawn


def test_the_report_is_written(run, report):
    kept = json.loads((run.folder / "report.json").read_text())
    assert kept == report
    for name in ("saved", "training", "day", "newcomers"):
        assert (run.folder / f"{name}.svg").read_bytes().startswith(b"<?xml")
    html = (run.folder / "report.html").read_text()
    assert "its forecast, 60 minutes at a time" in html
    assert "standby energy saved in 2 homes" in html and html.count("<figure") == 4
    first, second, third, heard, fourth, fifth = pages.sentences(report)
    assert heard == (
        "A device receives from 1.0 others of its kind on average; 0 receive from none."
    )
    assert (
        "On 1 held-out day, 2 homes saved" in first
        and "at 11.67 cents per kWh" in first
    )
    assert "of the minutes in use" in second and "MASE" in third
    assert "1 home joined. With the shared layers, 95 % of" in fourth
    assert "Their levels and scales come from all" in fourth
    assert "Forecasts of the next 60 minutes (lr) have" in third
    assert report["newcomers"]["known"] == 0 and report["newcomers"]["devices"] == 2
    assert fifth == "Homes share their models, without noise: no privacy guarantee."


def test_words_where_there_is_nothing_to_tell(report):
    row = report["overall"]
    none = row | {"saved_share": None, "in_use_minutes": 0}
    found = report["newcomers"]
    never = {name: found[name] | {"days": [0]} for name in ("joined", "alone")}
    never["alone"]["final"], never["joined"]["final"] = [0.0], [0.5]
    forecast = {"forecast": report["forecast"]}
    quiet = report | {
        "overall": none,
        "forecast": None,
        "untold": ["tv of a", "pc of a", "tv of b", "pc of b"],
        "newcomers": found | never | {"known": 1},
        "privacy": guarantee.describe_guarantee(
            PFDRLSettings(noise_multiplier=20.0), 2
        ),
    }
    quiet["method"] = report["method"] | {
        "settings": report["method"]["settings"] | {"graph": "full", "slot_min": 20}
    }
    assert "next 20 minutes" in pages.sentences(quiet | forecast)[1]
    first, second, third, known, fourth, fifth = pages.sentences(quiet)
    assert known.startswith(
        "1 of the 2 devices that joined already occur in other homes"
    )
    assert first == (
        "Saving is not measured: no device of 2 homes was in standby on 1 held-out day."
    )
    assert (
        "indistinguishable for 4 devices" in second and "tv of b and 1 more" in second
    )
    assert "reached never; without them, never, because" in third
    assert fourth.startswith("Everything that a home broadcasts satisfies")
    assert "after 192 noisy broadcasts; broadcasts of a device alone" in fourth
    assert fifth.startswith("Not covered: data visible to a home's meter")
    told = {"settings": report["method"]["settings"] | {"sharing": "local"}}
    assert pages.sentences(report | {"method": told})[-1] == "No data leaves a home."


def test_a_seed_that_would_be_another_s_is_refused():
    with pytest.raises(ValueError, match="seed must be between 0 and"):
        evaluation_energy.evaluate(None, None, seed=-1)
