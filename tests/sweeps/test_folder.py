"""The folder of a sweep: its runs, its results, and resuming."""

import contextlib
import json
import shutil

import chex
import jax
import numpy as np
import pytest
import toy

from jaxanon import methods
from jaxanon.sweeps import folder, program
from jaxanon.sweeps.runner import sweep
from jaxanon.training import checkpoint, run_folder, trainer

BLINDER = methods.recipes("blinder")["paper"].settings | {
    "hidden_sizes": (8,),
    "latent_dim": 3,
    "samples_per_class": 16,
    "query_size": 3,
    "extra": 0,
    "discriminator_steps": 0,
    "second_order": False,
    "shadows": False,
}


@pytest.fixture(scope="module")
def data():
    return toy.data()


def quick(method, data, **options):
    return sweep(method, data, **{"epochs": 2, "progress": False, **options})


@pytest.fixture(scope="module")
def blinders(data, tmp_path_factory):
    out = tmp_path_factory.mktemp("sweeps") / "gamma"
    grid = {"gamma": [0.1, 2.0]}
    return quick(
        "blinder", data, grid=grid, num_seeds=2, epochs=1, output_dir=out, **BLINDER
    ), out


@pytest.mark.slow
def test_members_of_blinder_are_runs_to_open_and_to_train_alone(blinders, data):
    found, out = blinders
    method = methods.build("blinder", data.spec, **BLINDER)
    alone = trainer.train(
        method, data, epochs=1, seed=1, hyper={"gamma": 2.0}, progress=False
    )
    chex.assert_trees_all_close(
        found.runs[3].state.params, alone.state.params, rtol=1e-4, atol=1e-6
    )
    opened = run_folder.open_run(out / "member-0003")
    chex.assert_trees_all_equal(opened.state, found.runs[3].state)
    assert opened.config == found.runs[3].config
    assert opened.config["seed"] == 1
    assert opened.config["hyper"]["gamma"] == 2.0


def test_members_are_numbered_by_the_order_of_axes(tmp_path):
    grid = {"gamma": [0.1, 2.0], "beta": [1.0]}
    folder.claim(tmp_path / "a", {"grid": grid, "front": {}}, resume=False)
    folder.claim(tmp_path / "a", {"grid": grid, "front": None}, resume=True)
    other = dict(reversed(grid.items()))
    with pytest.raises(ValueError, match="another sweep: grid was .* and is "):
        folder.claim(tmp_path / "a", {"grid": other}, resume=True)


def test_a_member_without_rows_is_none_and_a_damaged_one_is_named(
    blinders, data, tmp_path
):
    method = methods.build("blinder", data.spec, **BLINDER)
    out = tmp_path / "copy"
    shutil.copytree(blinders[1], out)
    (out / "member-0001" / "metrics.jsonl").unlink()
    assert folder.open_member(out, 1, method) is None
    for file in (out / "member-0002" / "checkpoints").rglob("*"):
        if file.is_file():
            file.write_bytes(b"")
    why = r"Or delete .*member-0002 and continue the"
    with pytest.warns(UserWarning), pytest.raises(ValueError, match=why):
        folder.open_member(out, 2, method)


@pytest.mark.slow
def test_what_could_not_be_read_makes_room(blinders, data, tmp_path):
    """A member whose last checkpoint is damaged is trained again, and then kept."""
    run = blinders[0].runs[0]
    saved = checkpoint.Checkpoints(tmp_path)
    later = run.state._replace(round=np.asarray(run.state.round + 1))
    with contextlib.closing(saved):
        saved.save(run.state)
        saved.save(later)
        changed = later._replace(params=jax.tree.map(lambda x: x + 1, later.params))
        saved.save(changed)
        found = saved.restore(jax.tree.map(np.asarray, later))
        chex.assert_trees_all_equal(found.params, changed.params)
        saved.save(run.state)
        assert saved.rounds() == [int(run.state.round)]


def test_the_folder_says_what_was_swept_and_found(blinders):
    found, out = blinders
    told = json.loads((out / "sweep.json").read_text())
    assert told["grid"] == {"gamma": [0.1, 2.0]}
    assert "gamma" not in told["settings"] and told["settings"]["latent_dim"] == 3
    assert [each["seed"] for each in told["members"]] == [0, 1, 0, 1]
    assert told["members"][2]["losses"] == found.members[2].losses
    assert told["summary"] == found.summary


def test_a_finished_sweep_is_not_trained_again(blinders, data, monkeypatch):
    found, out = blinders
    options = {
        "grid": {"gamma": [0.1, 2.0]},
        "num_seeds": 2,
        "epochs": 1,
        "output_dir": out,
    }
    monkeypatch.setattr(program, "run_members", None)
    again = quick("blinder", data, resume=True, **options, **BLINDER)
    assert again.members == found.members and again.summary == found.summary
    with pytest.raises(FileExistsError, match="holds a sweep already; continue"):
        quick("blinder", data, **options, **BLINDER)
    other = options | {"num_seeds": 3}
    with pytest.raises(ValueError, match="another sweep: seeds was 2 there and is 3"):
        quick("blinder", data, resume=True, **other, **BLINDER)


@pytest.mark.slow
def test_members_that_are_there_are_not_trained_again(
    blinders, data, tmp_path, monkeypatch
):
    found, done = blinders
    out = shutil.copytree(done, tmp_path / "gamma")
    for index in (1, 2):
        shutil.rmtree(out / f"member-000{index}")

    def fake(shared, seeds, states, *, first, last, show_row):
        assert seeds == [1, 0] and (first, last) == (0, last)
        np.testing.assert_allclose(states.hyper["gamma"], [0.1, 2.0])
        return [(found.runs[i].state, found.runs[i].history) for i in (1, 2)]

    monkeypatch.setattr(program, "run_members", fake)
    options = {
        "grid": {"gamma": [0.1, 2.0]},
        "num_seeds": 2,
        "epochs": 1,
        "output_dir": out,
    }
    again = quick("blinder", data, resume=True, **options, **BLINDER)
    assert again.members == found.members
    for index, run in enumerate(again.runs):
        assert run.config == found.runs[index].config
        assert run.folder == out / f"member-000{index}"
        opened = run_folder.open_run(run.folder)
        chex.assert_trees_all_equal(opened.state, found.runs[index].state)


def test_a_folder_with_something_else_is_refused(data, tmp_path):
    (tmp_path / "thesis.txt").write_text("all of it")
    with pytest.raises(FileExistsError, match="is not empty and holds no sweep"):
        quick("blinder", data, output_dir=tmp_path)
    (tmp_path / "sweep.json").write_text("{")
    with pytest.raises(ValueError, match=r"sweep.json is damaged"):
        quick("blinder", data, output_dir=tmp_path, resume=True)


def test_what_is_not_finite_is_null_in_the_file(tmp_path):
    folder.write(tmp_path, {"losses": {"loss": float("nan"), "list": [1.0, np.inf]}})
    told = json.loads((tmp_path / "sweep.json").read_text())
    assert told == {"losses": {"loss": None, "list": [1.0, None]}}
