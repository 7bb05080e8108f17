"""Splits of the data as an axis of a sweep."""

import json
import shutil
import types

import chex
import jax.numpy as jnp
import known
import numpy as np
import pytest
import toy
from one_by_one import one_by_one

from jaxanon import datasets
from jaxanon.evaluation import anonymizers
from jaxanon.methods import blinder, recipes
from jaxanon.sweeps import program, summary
from jaxanon.sweeps import splits as sweeps_splits
from jaxanon.sweeps.runner import sweep
from jaxanon.sweeps.summary import table
from jaxanon.training import run_folder, trainer

BLINDER = recipes("blinder")["paper"].settings | {
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
def splits():
    """Returns splits in which three of the five subjects train, others in each."""
    return [datasets.hold_out_subjects(toy.data(), 0.4, seed) for seed in (0, 1, 7)]


def moved(spec, **settings):
    """Moves its goal by the training subjects, which differ between splits."""
    who = lambda clients: jnp.float32(100 * clients.labels["subject"].max(1).mean())
    return known.build(spec, **settings)._replace(prepare=who)


def quick(method, splits, **options):
    first, *more = splits
    options = {"epochs": 2, "progress": False, "splits": more, **options}
    return sweep(method, first, **options)


@pytest.mark.slow
@pytest.mark.parametrize("layout", program.LAYOUTS)
@pytest.mark.parametrize("chunk", [None, 2, 7])  # 2 is less than the number of splits.
def test_members_learn_from_their_own_split_in_one_program(layout, chunk, splits):
    before = program.num_compiled()
    grid = {"goal": [1.0, 50.0]}
    options = {"num_seeds": 2, "layout": layout, "chunk_size": chunk}
    found = quick(moved, splits, grid=grid, **options)
    assert program.num_compiled() == before + 1
    places = [(one.settings["goal"], one.split, one.seed) for one in found.members]
    assert places == [(g, p, s) for g in (1.0, 50.0) for p in range(3) for s in (0, 1)]
    people = [np.unique(data.train.labels["subject"]) for data in splits]
    moves = [100 * own.mean() for own in people]
    assert len({round(move) for move in moves}) == 3
    for (goal, split, seed), run in zip(places, found.runs, strict=True):
        # After 6 rounds at rate 1/2, 1/64 of the distance and some noise remain.
        np.testing.assert_allclose(run.state.params, goal + moves[split], rtol=0.04)
        assert run.spec == splits[split].spec == run.method.spec
        assert run.config["seed"] == seed
        data = run.config["data"]
        assert data["fingerprint"] == run_folder.fingerprint(splits[split])
    last = found.summary[1]
    assert (last["seeds"], last["splits"]) == (2, 3)
    losses = [one.losses["loss"] for one in found.members[6:]]
    assert last["losses"]["loss"]["mean"] == pytest.approx(np.mean(losses))
    assert last["losses"]["loss"]["std"] == pytest.approx(np.std(losses, ddof=1))
    assert table(found.summary).title.endswith("over 2 seeds x 3 splits")


def test_a_bundle_of_some_splits_finds_each_by_its_number():
    """Splits 0 and 2 share a program, and split 1 has another."""
    shared = program.Program(None, np.array([10.0, 12.0]), "vmap", 1, 1, splits=2)
    bundle = sweeps_splits.Bundle((0, 2), shared)
    assert [bundle.for_split(split).data for split in (0, 2)] == [10.0, 12.0]


@pytest.mark.slow
@pytest.mark.parametrize("layout", program.LAYOUTS)
def test_a_method_that_knows_its_statistics_has_a_program_for_each(layout, splits):
    def build(spec, **settings):
        method = known.build(spec, **settings)
        # An array: programs may store it separately.
        spread = 100 * np.float32(spec.std)
        update = lambda key, state, data: method.update(key, state, data + spread[0])
        return method._replace(update=update)

    before = program.num_compiled()
    found = quick(build, splits, layout=layout, epochs=6)
    assert program.num_compiled() == before + 3
    for run, data in zip(found.runs, splits, strict=True):
        expected = 1.0 + 100 * data.spec.std[0]
        np.testing.assert_allclose(run.state.params, expected, atol=0.1)
    assert len({round(100 * data.spec.std[0]) for data in splits}) == 3


@pytest.mark.slow
def test_blinder_does_not_mind_padding(splits):
    """Members of padded splits equal the runs of ``train`` on the other windows."""
    clients = [datasets.by_client(data.train) for data in splits]
    assert len({own.mask.shape for own in clients}) > 1
    level = sweeps_splits.pad_clients(clients)
    assert len({own.windows.shape for own in level}) == 1
    for own, whole in zip(clients, level, strict=True):
        np.testing.assert_array_equal(own.windows[own.mask], whole.windows[whole.mask])
    before = program.num_compiled()
    options = {"epochs": 1, "layout": "vmap", **BLINDER}
    found = quick("blinder", splits, **options)
    assert program.num_compiled() == before + 1
    method = blinder(splits[1].spec, **BLINDER)
    alone = trainer.train(method, splits[1], epochs=1, progress=False)
    chex.assert_trees_all_close(
        found.runs[1].state.params, alone.state.params, rtol=1e-4, atol=1e-5
    )


def test_nobody_is_made_up_to_pad_a_split(splits):
    few, more = (
        datasets.by_client(part) for part in (splits[0].train, toy.data().train)
    )
    assert sweeps_splits.pad_clients([few, more]) == [few, more]


def test_members_of_one_split_that_are_lost_are_trained_again(
    splits, tmp_path, monkeypatch
):
    out = tmp_path / "kept"
    options = {"num_seeds": 2, "layout": "vmap", "output_dir": out}
    whole = quick(moved, splits, **options)
    told = json.loads((out / "sweep.json").read_text())
    assert told["splits"] == [run_folder.fingerprint(data) for data in splits[1:]]
    assert [one["split"] for one in told["members"]] == [0, 0, 1, 1, 2, 2]
    for index in (2, 3, 5):
        shutil.rmtree(out / f"member-000{index}")
    again = quick(moved, splits, resume=True, **options)
    for one, other in zip(again.runs, whole.runs, strict=True):
        chex.assert_trees_all_close(one.state, other.state, rtol=1e-6)
    with pytest.raises(ValueError, match="another sweep: splits was .* and is "):
        quick(moved, splits[:2], resume=True, **options)
    with pytest.raises(ValueError, match="another sweep: splits was .* and is .. now"):
        quick(moved, splits[:1], resume=True, **options)


@pytest.mark.slow
def test_a_member_is_judged_by_its_own_split(splits, monkeypatch):
    def fake(run, data, *, attacks, seed, raw_classifiers):
        assert raw_classifiers is data.spec is run.spec
        kept = {"attribute": "activity", "anonymized": {"accuracy": seed / 2}}
        return {"utility": kept, "intrusive": {}, "reidentification": {}}

    monkeypatch.setattr(anonymizers, "train_raw_classifiers", lambda data: data.spec)
    monkeypatch.setattr(anonymizers, "evaluate_each", one_by_one(fake))
    found = quick(moved, splits, num_seeds=2, evaluate=True)
    # For 0, 1/2 in each of 3 splits the squares sum to 6/16, over 5.
    expected = {"mean": 0.25, "std": pytest.approx(np.sqrt(6 / 16 / 5))}
    assert found.summary[0]["scores"]["activity accuracy"] == expected


def test_splits_are_different_ones_of_one_data_set(splits):
    with pytest.raises(
        ValueError, match="splits 0 and 2 hold the same windows.*--split"
    ):
        quick(known.build, [*splits[:2], splits[0]])
    other = splits[1]._replace(spec=toy.data().spec)
    with pytest.raises(ValueError, match=r"split 1 is of another .*\['split'\] differ"):
        quick(known.build, [splits[0], other])
    with pytest.raises(ValueError, match="a built method has the statistics of one"):
        quick(known.build(splits[0].spec), splits)


def test_raw_windows_of_all_splits_are_what_settings_stand_beside():
    def told(accuracy, leaked):
        raw = {"balanced_accuracy": leaked, "chance": 0.5}
        utility = {"attribute": "kind", "raw": {"accuracy": accuracy}}
        return {"utility": utility, "intrusive": {"side": {"raw": raw}, "arm": None}}

    members = [types.SimpleNamespace(split=split) for split in (0, 0, 1)]
    reports = [None, told(0.5, 0.75), told(1.0, 0.25)]
    found = summary.reference(members, reports)
    assert found["utility"]["raw"]["accuracy"] == 0.75
    assert found["intrusive"]["side"]["raw"] == {
        "balanced_accuracy": 0.5,
        "chance": 0.5,
    }
    assert summary.reference(members, [None, {}, None]) is None
