"""A grid of settings for homes: its members are runs, and each error has a reason."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import energy
from jaxanon.cli import app
from jaxanon.cli import sweep as cli_sweep
from jaxanon.core import registry
from jaxanon.energy import PFDRLSettings, newcomers, settings
from jaxanon.energy import system as energy_system
from jaxanon.evaluation import energy as evaluation_energy
from jaxanon.report.energy import draw_search
from jaxanon.sweeps import homes as sweeping
from jaxanon.sweeps import runner
from jaxanon.training import trainer

SMALL = PFDRLSettings(
    days=2, test_days=2, forecaster="lr", hidden_sizes=(6,), alpha=1,
    forecaster_steps=1,
    slot_min=120,
)  # fmt: skip
GRID = {"gamma_hours": [2.0, 12.0], "sharing": ["pfdrl", "local"]}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def homes():
    return energy.load_homes("simulated", homes=2, devices=2, days=2, test_days=2)


@pytest.fixture(scope="module")
def searched(homes, tmp_path_factory):
    out = tmp_path_factory.mktemp("search") / "sweep"
    told = []
    tell = lambda *words: told.append(words)
    found = sweeping.search(
        SMALL, homes, grid=GRID, num_seeds=2, output_dir=out, progress=tell
    )
    return (*found, out, told)


@pytest.fixture(scope="module")
def alone(homes):
    """Returns the run of ``SMALL`` with seed 1."""
    method = registry.rebuild("pfdrl", homes.spec, SMALL)
    return trainer.train(method, homes, seed=1, progress=False)


def test_members_are_the_runs_that_training_makes(searched, homes, alone):
    """The third member from the end: γ = 12 h, pfdrl, seed 1."""
    members, _, _, _ = searched
    member = members[5]
    assert member.settings == {"gamma_hours": 12.0, "sharing": "pfdrl"}
    assert member.seed == 1
    total = evaluation_energy.evaluate(alone, homes)["overall"]
    for name in ("saved_share", "switched_off_share", "optimal_share"):
        assert member.scores[name] == pytest.approx(total[name], abs=2e-3)


def test_learned_days_are_those_of_training(homes, alone):
    """Both layouts, with two seeds and two values of alpha."""
    system = energy.pfdrl(settings.build_config(SMALL))
    street = alone.method.prepare(homes)
    hyper = settings.build_hyper(SMALL) | {"alpha": jnp.array([0.0, 1.0])}
    hyper = {name: jnp.zeros(2) + value for name, value in hyper.items()}
    sizes = {"slots_a_day": 12, "days": 2, "test_days": 2}
    seeds = jnp.array([0, 1])
    turns, _, _ = energy.simulate_batch(system, seeds, hyper, street, **sizes)
    beside, _, _ = energy.simulate_batch(
        system, seeds, hyper, street, vectorize=True, **sizes
    )
    for name in ("standby_wh", "optimal", "forecast_error", "reward"):
        np.testing.assert_allclose(turns[name], beside[name], rtol=5e-3)
    rows = [row["losses"] for row in alone.history]
    shares = np.asarray(turns["optimal"] / turns["minutes"])[1]
    np.testing.assert_allclose(
        shares, [row["optimal_share"] for row in rows], rtol=2e-3
    )


def test_the_summary_is_over_seeds(searched):
    members, summary, out, told = searched
    assert [row["settings"] for row in summary] == [
        {"gamma_hours": g, "sharing": s}
        for g in (2.0, 12.0)
        for s in ("pfdrl", "local")
    ]
    pair = [member.scores["optimal_share"] for member in members[2:4]]
    assert summary[1]["scores"]["optimal_share"]["mean"] == pytest.approx(np.mean(pair))
    assert len(told) == 8 and told[0] == (
        0,
        8,
        "gamma_hours=2.0, sharing=pfdrl, seed 0",
    )
    # Agents that share nothing do not depend on the sharing interval.
    assert members[2].scores == members[6].scores
    kept = json.loads((out / "sweep.json").read_text())
    assert [row["scores"] for row in kept["members"]] == [m.scores for m in members]
    assert kept["summary"] == json.loads(json.dumps(summary))
    assert (out / "sweep.png").read_bytes().startswith(b"\x89PNG")


def test_who_never_reaches_it_has_no_day(searched, homes, monkeypatch, tmp_path):
    """Means cover the others; a table and a figure give the number that never did."""
    days = iter([[0], [4], [0], [0]])
    reached = lambda *_, **told: energy.LearningTime(
        np.array(next(days)), told["minutes"]
    )
    monkeypatch.setattr(newcomers, "days_to_reach", reached)
    grid = {"gamma_hours": [2.0, 12.0]}
    members, summary = sweeping.search(
        SMALL, homes, grid=grid, num_seeds=2, output_dir=tmp_path
    )
    assert [one.scores["reached_day"] for one in members] == [None, 4, None, None]
    found = [row["scores"]["reached_day"] for row in summary]
    assert found[0] == {"mean": 4, "std": None, "never": 1}
    assert found[1] == {"mean": None, "std": None, "never": 2}
    column = cli_sweep.homes_table(summary).columns[-1]
    assert [*column.cells] == ["4.00 (1 of 2 never)", "(2 of 2 never)"]
    picture = draw_search(summary)
    assert "saving and best actions permanently; 3 of 4 did not" in " ".join(
        picture.caption.split()
    )
    monkeypatch.undo()
    # A null in the file marks a finished member.
    again = sweeping.search(
        SMALL, homes, grid=grid, num_seeds=2, output_dir=tmp_path, resume=True
    )
    assert again == (members, summary)


def test_a_search_goes_on_where_it_stopped(searched, homes, monkeypatch):
    _, summary, out, _ = searched
    kept = json.loads((out / "sweep.json").read_text())
    del kept["members"][3]
    (out / "sweep.json").write_text(json.dumps(kept))
    done = []
    lives = energy_system.simulate_batch

    def counted(system, seeds, *rest, **more):
        done.append(seeds.tolist())
        return lives(system, seeds, *rest, **more)

    monkeypatch.setattr(energy_system, "simulate_batch", counted)
    again = sweeping.search(
        SMALL, homes, grid=GRID, num_seeds=2, output_dir=out, resume=True
    )
    assert done == [[1]] and again[1] == summary
    with pytest.raises(FileExistsError, match="holds a sweep already"):
        sweeping.search(SMALL, homes, grid=GRID, num_seeds=2, output_dir=out)
    with pytest.raises(ValueError, match="holds another sweep: seeds was 2"):
        sweeping.search(SMALL, homes, grid=GRID, output_dir=out, resume=True)
    # Members are numbered in the order of the axes.
    other = dict(reversed(GRID.items()))
    with pytest.raises(ValueError, match="holds another sweep: grid was"):
        sweeping.search(
            SMALL, homes, grid=other, num_seeds=2, output_dir=out, resume=True
        )


def test_the_common_sweep_takes_homes(searched, homes):
    """The method is a name or an object; options for windows raise errors."""
    members, summary, out, _ = searched
    method = registry.rebuild("pfdrl", homes.spec, SMALL)
    options = {"grid": GRID, "num_seeds": 2, "output_dir": out, "resume": True}
    found = runner.sweep(method, homes, **options)
    assert found.members == tuple(members) and found.summary == summary
    assert found.run(0) is None
    given = {name: getattr(SMALL, name) for name in ("days", "test_days", "slot_min")}
    given |= {"forecaster": "lr", "hidden_sizes": (6,), "alpha": 1}
    assert runner.sweep("pfdrl", homes, **options, **given).summary == summary
    with pytest.raises(ValueError, match="does not support epochs and halving"):
        runner.sweep(method, homes, epochs=2, halving_factor=3)
    with pytest.raises(ValueError, match="method must be pfdrl for homes"):
        runner.sweep(method, homes, alpha=1)


def test_who_diverges_has_no_scores(homes, tmp_path):
    """Agents with diverged values switch off every device, and save all energy."""
    grid = {"learning_rate": [1e-3, float(np.finfo(np.float32).max)]}
    with pytest.warns(
        UserWarning, match="1 of 2 members have no scores.*learning rates"
    ):
        members, summary = sweeping.search(
            SMALL, homes, grid=grid, num_seeds=1, output_dir=tmp_path
        )
    assert set(members[1].scores.values()) == {None}
    assert members[0].scores["optimal_share"] > 0
    assert summary[1]["scores"]["saved_share"] == {"mean": None, "std": None}
    shown = [list(column.cells) for column in cli_sweep.homes_table(summary).columns]
    assert [cells[1] for cells in shown[1:]] == ["", "", "", "(1 of 1 never)"]


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"gama": [1]}, "grid must name settings among .*, got 'gama'"),
        (
            {"forecaster_learning_rat": [1]},
            "got 'forecaster_learning_rat'.*Did you mean 'forecaster_learning_rate'",
        ),
        ({"homes": [1, 2]}, "must not name settings that select homes, got 'homes'"),
        ({"alpha": []}, r"grid\['alpha'\] must be a list with at least one value"),
        (
            {"alpha": [1, 3]},
            r"alpha must be in \[0, 2\], the number of Q-network layers, got 3",
        ),
        ({"gamma_hours": [1.0]}, "gamma_hours must be at least one slot"),
    ],
)
def test_grids_are_refused_before_anything_is_trained(homes, grid, message):
    with pytest.raises(ValueError, match=message):
        sweeping.search(SMALL, homes, grid=grid)


def test_counts_are_checked(homes):
    with pytest.raises(ValueError, match="seeds must be >= 1, got 0"):
        sweeping.search(SMALL, homes, grid={}, num_seeds=0)
    with pytest.raises(ValueError, match="chunk_size must be >= 1, got 0"):
        sweeping.search(SMALL, homes, grid={}, chunk_size=0)


def test_from_the_shell(tmp_path, capsys):
    words = (
        "sweep pfdrl --dataset simulated --homes 2 --devices 1 --days 1 --test-days 1"
    )
    words += (
        " --forecaster lr --hidden-sizes 4 --alpha 1 --slot-min 720 --beta-hours 12"
    )
    words += " --grid alpha=0:2:1,gamma_hours=12 --chunk-size 2"
    words += f" --output-dir {tmp_path / 'sweep'}"
    assert app.main(words.split()) == 0
    told = capsys.readouterr().out
    assert "[3/3] alpha=2, gamma_hours=12.0, seed 0" in told
    assert "best" in told and "The sweep is in" in told
    kept = json.loads((tmp_path / "sweep" / "sweep.json").read_text())
    assert [row["settings"]["alpha"] for row in kept["summary"]] == [0, 1, 2]
