"""Sweeps: one program for all members, each of which is a run."""

import chex
import jax.numpy as jnp
import known
import numpy as np
import pytest
import toy
from one_by_one import one_by_one

from jaxanon.evaluation import anonymizers
from jaxanon.sweeps import members as sweeps_members
from jaxanon.sweeps import program, scheduler
from jaxanon.sweeps.runner import Member, sweep
from jaxanon.sweeps.summary import scores, summarize, table
from jaxanon.training import trainer

build, TRACES = known.build, known.TRACES


@pytest.fixture(scope="module")
def data():
    return toy.data()


def quick(method, data, **options):
    return sweep(method, data, **{"epochs": 2, "progress": False, **options})


@pytest.mark.slow
def test_members_are_the_grid_in_order_with_seeds_running_fastest(data):
    found = quick(build, data, grid={"goal": [1, 5], "width": [2, 3]}, num_seeds=2)
    expected = [
        ({"goal": goal, "width": width}, seed)
        for goal in (1, 5)
        for width in (2, 3)
        for seed in (0, 1)
    ]
    assert [(each.settings, each.seed) for each in found.members] == expected
    for (cell, seed), run in zip(expected, found.runs, strict=True):
        assert run.state.params.shape == (cell["width"],)
        # After 6 rounds at rate 1/2, at most 1/64 of the distance remains.
        np.testing.assert_allclose(run.state.params, cell["goal"], atol=0.15)
        assert run.config["seed"] == seed
        assert run.config["hyper"] == {"rate": 0.5, "goal": cell["goal"]}
        assert run.config["settings"]["width"] == cell["width"]


@pytest.mark.slow
@pytest.mark.parametrize("layout", program.LAYOUTS)
def test_a_member_is_the_run_of_its_seed_and_hyper_parameters(layout, data):
    found = quick(build, data, grid={"rate": [0.1, 0.7]}, num_seeds=2, layout=layout)
    method = build(data.spec)
    for index, (settings, seed, losses, *_) in enumerate(found.members):
        alone = trainer.train(
            method, data, epochs=2, seed=seed, hyper=settings, progress=False
        )
        run = found.run(index)
        chex.assert_trees_all_close(run.state, alone.state, rtol=1e-5)
        np.testing.assert_allclose(
            losses["loss"], alone.history[-1]["losses"]["loss"], rtol=1e-5
        )
        assert run.config == alone.config
        assert [row["round"] for row in run.history] == [3, 6]
        assert [row["epoch"] for row in run.history] == [1.0, 2.0]


@pytest.mark.slow
def test_seeds_draw_their_own_weights_and_noise(data):
    first, second = quick(build, data, num_seeds=2).runs
    assert not np.isclose(first.state.params, second.state.params, rtol=1e-7).any()


@pytest.mark.slow
@pytest.mark.parametrize("layout", program.LAYOUTS)
def test_another_hyper_parameter_or_round_count_compiles_nothing_anew(layout, data):
    method = build(data.spec)
    quick(method, data, grid={"rate": [0.1, 0.2]}, num_seeds=2, layout=layout)
    TRACES.clear()
    quick(method, data, grid={"rate": [0.3, 0.4, 0.5, 0.6]}, layout=layout)
    quick(method, data, grid={"rate": [0.3, 0.9]}, num_seeds=2, epochs=3, layout=layout)
    assert TRACES == []


@pytest.mark.slow
def test_one_program_per_setting_that_is_compiled_in(data):
    TRACES.clear()
    quick(build, data, grid={"rate": [0.1, 0.2]}, num_seeds=3, epochs=40)
    once = len(TRACES)
    TRACES.clear()
    quick(
        build, data, grid={"width": [2, 3], "rate": [0.1, 0.2]}, num_seeds=3, epochs=40
    )
    assert TRACES == [2] * once + [3] * once


def fake_report(rate):
    kept = {"attribute": "activity", "anonymized": {"accuracy": rate}}
    return {"utility": kept, "intrusive": {}, "reidentification": {}}


@pytest.mark.slow
def test_a_member_that_diverges_stops_nobody_else(data, monkeypatch):
    def fake(run, given, **options):
        return fake_report(run.config["hyper"]["rate"])

    monkeypatch.setattr(anonymizers, "train_raw_classifiers", lambda given: None)
    monkeypatch.setattr(anonymizers, "evaluate_each", one_by_one(fake))
    found = quick(
        build, data, grid={"rate": [1e30, 0.5]}, epochs=4, num_seeds=2, evaluate=True
    )
    losses = [np.isfinite(each.losses["loss"]) for each in found.members]
    assert losses == [False, False, True, True]
    assert found.reports == (None, None, fake_report(0.5), fake_report(0.5))
    assert [row["diverged"] for row in found.summary] == [2, 0]
    shown = [list(column.cells) for column in table(found.summary).columns]
    assert shown[1:] == [["-", "50.0 ± 0.0"], ["2 of 2", "0 of 2"]]


@pytest.mark.slow
def test_a_member_broken_by_its_last_round_is_not_evaluated(data, monkeypatch):
    """Its losses are finite, but its parameters or windows are not."""
    monkeypatch.setattr(anonymizers, "train_raw_classifiers", lambda given: None)
    fake = one_by_one(lambda *_, **__: fake_report(1.0))
    monkeypatch.setattr(anonymizers, "evaluate_each", fake)
    method = build(data.spec)

    def update(key, state, given):
        _, info = method.update(key, state, given)
        wild = state._replace(round=state.round + 1, params=state.hyper["rate"])
        return wild, {name: jnp.zeros(()) for name in info}

    init = lambda key, **hyper: method.init(key, **hyper)._replace(params=jnp.zeros(()))
    spoil = lambda key, state, windows: windows * state.params
    broken = method._replace(init=init, update=update, anonymize=spoil)
    grid = {"rate": [1.0, 1e30, 1e18]}
    far = data.test._replace(windows=data.test.windows + np.float32(1e30))
    found = quick(broken, data._replace(test=far), grid=grid, evaluate=True)
    assert [report is None for report in found.reports] == [False, True, True]


def test_the_table_shows_mean_and_deviation_over_seeds():
    members = [
        Member({"rate": rate}, seed, {"loss": rate + seed})
        for rate in (0.0, 10.0)
        for seed in (0, 1, 2)
    ]
    first, second = summarize(members, ())
    # The mean of 0, 1, 2 is 1, and the standard deviation (n - 1) is 1.
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
    (row,) = summarize([Member({"rate": 1}, 0, {"loss": 0.5})], [report])
    assert list(table([row]).columns[1].cells) == ["90.0"]


@pytest.mark.slow
def test_every_member_is_evaluated_by_the_same_classifiers(data, monkeypatch):
    def fake(run, given, *, attacks, seed, raw_classifiers):
        assert (
            given is data
            and raw_classifiers == "raw_classifiers"
            and attacks == ("forest",)
        )
        return fake_report(run.config["hyper"]["rate"] + seed / 4)

    each, groups = one_by_one(fake), []

    def grouped(runs, *args, **options):
        groups.append(len(runs))
        return each(runs, *args, **options)

    monkeypatch.setattr(
        anonymizers, "train_raw_classifiers", lambda given: "raw_classifiers"
    )
    monkeypatch.setattr(anonymizers, "evaluate_each", grouped)
    monkeypatch.setattr(sweeps_members, "GROUP", 4)
    options = {"grid": {"rate": [0.25, 0.5]}, "num_seeds": 3, "attacks": ("forest",)}
    found = quick(build, data, evaluate=True, **options)
    assert len(found.reports) == 6 and groups == [3, 3]  # Equal sizes, none above 4.
    # The mean of r, r + 1/4, r + 1/2 is r + 1/4, and the standard deviation is 1/4.
    expected = [{"mean": 0.5, "std": 0.25}, {"mean": 0.75, "std": 0.25}]
    assert [row["scores"]["activity accuracy"] for row in found.summary] == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"grid": {"depth": [1]}},
            r"got 'depth'; hyper-parameters are \['goal', 'rate'\], "
            r"compiled settings are \['width'\]",
        ),
        ({"grid": {"rte": [1]}}, r"got 'rte'; .*mean 'rate'"),
        ({"grid": {"rate": []}}, r"grid\['rate'\] must be a list with at least one"),
        ({"grid": {"rate": "ab"}}, r"grid\['rate'\] must be a list .* got 'ab'"),
        ({"grid": {"rate": 0.5}}, r"grid\['rate'\] must be a list .* got 0.5"),
        ({"grid": {"rate": [np.nan]}}, r"must hold finite numbers, got nan"),
        ({"grid": {"rate": ["x"]}}, r"must hold finite numbers, got 'x'"),
        ({"num_seeds": 0}, r"num_seeds must be >= 1, got 0"),
        ({"epochs": 0}, r"epochs must be >= 1, got 0"),
        ({"halving_factor": 1}, r"halving_factor must be >= 2, got 1; omit it"),
        ({"chunk_size": 0}, r"chunk_size must be >= 1, got 0"),
        ({"layout": "round"}, r"layout must be None or one of .* got 'round'"),
    ],
)
def test_what_cannot_be_swept_is_refused(options, message, data):
    with pytest.raises(ValueError, match=message):
        quick(build, data, **options)


def test_an_attack_that_there_is_not_is_refused_before_training(data, monkeypatch):
    monkeypatch.setattr(scheduler, "run", None)  # Any call fails.
    with pytest.raises(ValueError, match=r"attacks must .* got 'oracle'"):
        quick(build, data, evaluate=True, attacks=("oracle",))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epochs", 1.5),
        ("epochs", 0.5),
        ("num_seeds", 1.5),
        ("num_seeds", True),
        ("chunk_size", 2.5),
    ],
)
def test_what_is_counted_is_whole(name, value, data):
    with pytest.raises(TypeError, match=f"{name} must be a Python int, got {value}"):
        quick(build, data, **{name: value})


def test_a_grid_is_refused_as_settings_are(data):
    for grid in ({"beta": [1.0, -1.0]}, {"latent_dim": [3, 0]}):
        with pytest.raises(ValueError, match=r"must be .*>= [01], got (-1.0|0)"):
            quick("blinder", data, grid=grid, hidden_sizes=(8,))


def test_a_built_method_takes_no_settings(data):
    method = build(data.spec)
    with pytest.raises(ValueError, match="'width', which is compiled into the built"):
        quick(method, data, grid={"width": [2, 3]})
    with pytest.raises(ValueError, match=r"settings \['width'\] do not apply"):
        quick(method, data, width=3)
    with pytest.raises(TypeError, match="must be a builder .* got int"):
        quick(3, data)
