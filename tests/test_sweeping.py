"""Sweeps: one program for all members, each of which is a run of its own."""

import dataclasses
import importlib.util
import json
import pathlib
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import methods, sweep_folder, sweep_program, training
from jaxanon.methods import Method
from jaxanon.sweep_summary import scores, summarise, table
from jaxanon.sweeping import Member, sweep

_PATH = pathlib.Path(__file__).parent / "methods" / "toy.py"
_SPEC = importlib.util.spec_from_file_location("toy_data", _PATH)
toy = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(toy)

BLINDER = {
    "hidden": (8,),
    "latent": 3,
    "per_class": 16,
    "query": 3,
    "extra": 0,
    "discriminator_steps": 0,
    "second_order": False,
    "shadows": False,
}


class State(NamedTuple):
    """Of the method below: ``weight`` moves towards ``goal`` by ``rate``, and noise."""

    round: jax.Array
    weight: jax.Array
    hyper: dict


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    width: int = 2
    rate: float = 0.5
    goal: float = 1.0


TRACES = []


def build(spec, **settings):
    """A method whose every round is known: weight += rate (goal - weight) + noise."""
    config = Config(**settings)

    def init(key, **hyper):
        values = {"rate": config.rate, "goal": config.goal} | hyper
        values = {name: jnp.asarray(value, float) for name, value in values.items()}
        return State(jnp.int32(0), jax.random.normal(key, (config.width,)), values)

    def update(key, state, data):
        TRACES.append(config.width)
        noise = 1e-3 * jax.random.normal(jax.random.fold_in(key, state.round))
        step = state.hyper["rate"] * (state.hyper["goal"] - state.weight)
        weight = state.weight + step + noise
        loss = jnp.mean((weight - state.hyper["goal"]) ** 2)
        return State(state.round + 1, weight, state.hyper), {"loss": loss}

    return Method(
        name="toy",
        config=config,
        spec=spec,
        prepare=lambda clients: jnp.zeros(()),
        init=init,
        update=update,
        anonymize=lambda key, state, windows: windows,
        rounds_per_epoch=lambda data: 3,
        clients_per_round=lambda data: 2,
    )


@pytest.fixture(scope="module")
def data():
    return toy.data()


def quick(method, data, **options):
    return sweep(method, data, **{"epochs": 2, "progress": False, **options})


def test_members_are_the_grid_in_order_with_seeds_running_fastest(data):
    found = quick(build, data, grid={"goal": [1, 5], "width": [2, 3]}, seeds=2)
    expected = [
        ({"goal": goal, "width": width}, seed)
        for goal in (1, 5)
        for width in (2, 3)
        for seed in (0, 1)
    ]
    assert [(each.settings, each.seed) for each in found.members] == expected
    for (cell, seed), run in zip(expected, found.runs, strict=True):
        assert run.state.weight.shape == (cell["width"],)
        # After 6 rounds at rate 1/2 at most 1/64 of the way is left.
        np.testing.assert_allclose(run.state.weight, cell["goal"], atol=0.15)
        assert run.config["seed"] == seed
        assert run.config["hyper"] == {"rate": 0.5, "goal": cell["goal"]}
        assert run.config["settings"]["width"] == cell["width"]


@pytest.mark.parametrize("layout", sweep_program.LAYOUTS)
def test_a_member_is_the_run_of_its_seed_and_hyper_parameters(layout, data):
    found = quick(build, data, grid={"rate": [0.1, 0.7]}, seeds=2, layout=layout)
    method = build(data.spec)
    for index, (settings, seed, losses) in enumerate(found.members):
        alone = training.train(
            method, data, epochs=2, seed=seed, hyper=settings, progress=False
        )
        run = found.run(index)
        chex.assert_trees_all_close(run.state, alone.state, rtol=1e-5)
        np.testing.assert_allclose(
            losses["loss"], alone.history[-1]["losses"]["loss"], rtol=1e-5
        )
        assert run.config == alone.config
        assert [row["round"] for row in run.history] == [6]
        assert [row["epoch"] for row in run.history] == [2.0]


def test_seeds_draw_their_own_weights_and_noise(data):
    first, second = quick(build, data, seeds=2).runs
    assert not np.isclose(first.state.weight, second.state.weight, rtol=1e-7).any()


@pytest.mark.parametrize("layout", sweep_program.LAYOUTS)
def test_another_hyper_parameter_or_round_count_compiles_nothing_anew(layout, data):
    method = build(data.spec)
    quick(method, data, grid={"rate": [0.1, 0.2]}, seeds=2, layout=layout)
    TRACES.clear()
    quick(method, data, grid={"rate": [0.3, 0.4, 0.5, 0.6]}, layout=layout)
    quick(method, data, grid={"rate": [0.3, 0.9]}, seeds=2, epochs=3, layout=layout)
    assert TRACES == []


def test_one_program_per_setting_that_is_compiled_in(data):
    TRACES.clear()
    quick(build, data, grid={"rate": [0.1, 0.2]}, seeds=3, epochs=40)
    once = len(TRACES)
    TRACES.clear()
    quick(build, data, grid={"width": [2, 3], "rate": [0.1, 0.2]}, seeds=3, epochs=40)
    assert TRACES == [2] * once + [3] * once


def test_a_member_that_diverges_stops_nobody_else(data, tmp_path):
    found = quick(build, data, grid={"rate": [0.5, 1e30]}, epochs=4)
    good, bad = found.members
    assert np.isfinite(good.losses["loss"]) and not np.isfinite(bad.losses["loss"])


def test_the_table_shows_mean_and_deviation_over_seeds():
    members = [
        Member({"rate": rate}, seed, {"loss": rate + seed})
        for rate in (0.0, 10.0)
        for seed in (0, 1, 2)
    ]
    first, second = summarise(members, ())
    # Of 0, 1, 2 the mean is 1 and the deviation (n - 1) is 1.
    assert first["losses"] == {"loss": {"mean": 1.0, "std": 1.0}}
    assert (second["settings"], second["seeds"]) == ({"rate": 10.0}, 3)
    shown = table([first, second])
    assert list(shown.columns[0].cells) == ["0.0", "10.0"]
    assert list(shown.columns[1].cells) == ["1.0000 ± 1.0000", "11.0000 ± 1.0000"]


def test_scores_are_the_figures_that_settings_are_chosen_by():
    report = {
        "utility": {"attribute": "act", "anonymized": {"accuracy": 0.9}},
        "intrusive": {"sex": {"anonymized": {"balanced_accuracy": 0.5}}, "age": None},
        "reidentification": {
            "sex": {
                "attackers": {
                    "mlp": {"balanced_accuracy": 0.6},
                    "forest": {"balanced_accuracy": 0.7},
                },
                "worst": "forest",
            }
        },
    }
    expected = {"act accuracy": 0.9, "sex intrusive": 0.5, "sex re-identified": 0.7}
    assert scores(report) == expected
    (row,) = summarise([Member({"rate": 1}, 0, {"loss": 0.5})], [report])
    assert list(table([row]).columns[1].cells) == ["90.0"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"grid": {"depth": [1]}},
            r"'depth', which is no setting; hyper-parameters are \['goal', 'rate'\], "
            r"settings that are compiled in \['width'\]",
        ),
        ({"grid": {"rate": []}}, r"grid\['rate'\] must be a list with at least one"),
        ({"grid": {"rate": "ab"}}, r"grid\['rate'\] must be a list .* got 'ab'"),
        ({"grid": {"rate": 0.5}}, r"grid\['rate'\] must be a list .* got 0.5"),
        ({"grid": {"rate": [np.nan]}}, r"must hold finite numbers, got nan"),
        ({"grid": {"rate": ["x"]}}, r"must hold finite numbers, got 'x'"),
        ({"seeds": 0}, r"seeds must be > 0, got 0"),
        ({"epochs": 0}, r"epochs must be > 0, got 0"),
        ({"layout": "round"}, r"layout must be None or one of .* got 'round'"),
    ],
)
def test_what_cannot_be_swept_is_refused(options, message, data):
    with pytest.raises(ValueError, match=message):
        quick(build, data, **options)


def test_a_built_method_takes_no_settings(data):
    method = build(data.spec)
    with pytest.raises(ValueError, match="'width' is compiled into a method"):
        quick(method, data, grid={"width": [2, 3]})
    with pytest.raises(ValueError, match=r"settings \['width'\] do not apply"):
        quick(method, data, width=3)
    with pytest.raises(TypeError, match="must be a builder .* got int"):
        quick(3, data)


@pytest.fixture(scope="module")
def blinders(data, tmp_path_factory):
    out = tmp_path_factory.mktemp("sweeps") / "gamma"
    grid = {"gamma": [0.1, 2.0]}
    return quick("blinder", data, grid=grid, seeds=2, epochs=1, out=out, **BLINDER), out


def test_members_of_blinder_are_runs_to_open_and_to_train_alone(blinders, data):
    found, out = blinders
    method = methods.build("blinder", data.spec, **BLINDER)
    alone = training.train(
        method, data, epochs=1, seed=1, hyper={"gamma": 2.0}, progress=False
    )
    chex.assert_trees_all_close(
        found.runs[3].state.params, alone.state.params, rtol=1e-4, atol=1e-6
    )
    opened = training.open_run(out / "member-0003")
    chex.assert_trees_all_equal(opened.state, found.runs[3].state)
    assert opened.config == found.runs[3].config
    assert opened.config["seed"] == 1
    assert opened.config["hyper"]["gamma"] == 2.0


def test_the_folder_says_what_was_swept_and_found(blinders):
    found, out = blinders
    told = json.loads((out / "sweep.json").read_text())
    assert told["grid"] == {"gamma": [0.1, 2.0]}
    assert "gamma" not in told["settings"] and told["settings"]["latent"] == 3
    assert [each["seed"] for each in told["members"]] == [0, 1, 0, 1]
    assert told["members"][2]["losses"] == found.members[2].losses
    assert told["summary"] == found.summary


def test_a_finished_sweep_is_not_trained_again(blinders, data, monkeypatch):
    found, out = blinders
    options = {"grid": {"gamma": [0.1, 2.0]}, "seeds": 2, "epochs": 1, "out": out}
    monkeypatch.setattr(sweep_program, "run_members", None)
    again = quick("blinder", data, resume=True, **options, **BLINDER)
    assert again.members == found.members and again.summary == found.summary
    with pytest.raises(FileExistsError, match="holds a sweep already; go on"):
        quick("blinder", data, **options, **BLINDER)
    other = options | {"seeds": 3}
    with pytest.raises(ValueError, match="another sweep: seeds was 2 there and is 3"):
        quick("blinder", data, resume=True, **other, **BLINDER)


def test_a_folder_with_something_else_is_refused(data, tmp_path):
    (tmp_path / "thesis.txt").write_text("all of it")
    with pytest.raises(FileExistsError, match="is not empty and holds no sweep"):
        quick(build, data, out=tmp_path)
    (tmp_path / "sweep.json").write_text("{")
    with pytest.raises(ValueError, match=r"sweep.json is damaged"):
        quick(build, data, out=tmp_path, resume=True)


def test_what_is_not_finite_is_null_in_the_file(tmp_path):
    sweep_folder.write(
        tmp_path, {"losses": {"loss": float("nan"), "list": [1.0, np.inf]}}
    )
    told = json.loads((tmp_path / "sweep.json").read_text())
    assert told == {"losses": {"loss": None, "list": [1.0, None]}}
