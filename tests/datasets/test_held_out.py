"""Test people by name, and classes that test people must have."""

import warnings

import numpy as np
import pytest

from jaxanon.datasets import held_out, load

CHOICE = {"public": "act", "private": "sex"}
PEOPLE = ("ann", "bob", "cid", "dora")


@pytest.fixture
def path(tmp_path):
    """Writes four people; the first and the last are female."""
    subject = np.repeat(np.arange(4), 12)
    rng = np.random.default_rng(0)
    np.savez(
        tmp_path / "four.npz",
        windows=rng.normal(size=(48, 8, 1)).astype(np.float32),
        subject=subject,
        subject_names=np.array(PEOPLE),
        act=np.tile([0, 1], 24),
        sex=np.isin(subject, [1, 2]).astype(int),
        sex_names=np.array(["f", "m"]),
    )
    return tmp_path / "four.npz"


def test_people_are_tested_by_name(path):
    data = load(path, **CHOICE, test_people=["cid", "ann"])
    assert data.spec.split == "subject"
    assert set(data.test.labels["subject"].tolist()) == {0, 2}
    assert set(data.train.labels["subject"].tolist()) == {1, 3}
    assert held_out.tested_people(data) == ["ann", "cid"]
    rows = data.train.windows.reshape(-1, 1).astype(float)
    np.testing.assert_allclose(data.spec.mean, rows.mean(0), rtol=1e-9)
    with pytest.raises(ValueError, match="'subject' with test_people, got 'time_block"):
        load(path, **CHOICE, test_people=["ann"], split="time block")


def test_people_of_a_registered_data_set_are_tested_by_name():
    data = load("smartwatch", test_people=["3", "7"])
    assert held_out.tested_people(data) == ["3", "7"] and data.spec.split == "subject"
    assert not {*data.train.labels["subject"]} & {*data.test.labels["subject"]}
    with pytest.raises(ValueError, match=r"people of the data, \['1'.*got 'nobody'"):
        load("smartwatch", test_people=["3", "nobody"])


@pytest.mark.parametrize(
    ("names", "kind", "message"),
    [
        ("ann", TypeError, r"must be a list of names, got 'ann'; use \['ann'\]"),
        ([], ValueError, "must name at least one person"),
        (["Ann"], ValueError, "got 'Ann'. Did you mean 'ann'"),
        (PEOPLE, ValueError, "must leave at least one person for training, got all 4"),
    ],
)
def test_wrong_names_are_refused(names, kind, message):
    with pytest.raises(kind, match=message):
        held_out.select(names, PEOPLE)


def test_test_people_of_one_class_are_refused(path):
    with pytest.raises(ValueError) as error:
        load(path, **CHOICE, test_people=["ann", "dora"])
    said = str(error.value)
    assert "two classes of 'sex'" in said and "['ann', 'dora'] are 'f'" in said
    assert "--test-people" in said and "--split-seed" in said
    # One drawn person has one sex, whichever the seed.
    with pytest.raises(ValueError, match="all of (ann|bob|cid|dora) are '[fm]'"):
        load(path, **CHOICE, split="subject")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(path, public="sex", private="act", test_people=["ann", "cid"])
        load(path, public="act", private="subject", test_people=["ann"])


def test_a_split_that_cannot_do_better_warns(path, tmp_path):
    arrays = dict(np.load(path))
    given = arrays | {"split": (arrays["subject"] > 2).astype(int)}
    np.savez(tmp_path / "given.npz", **given)
    with pytest.warns(UserWarning, match="'sex' will not be measured.*--test-people"):
        data = load(tmp_path / "given.npz", **CHOICE)
    assert data.spec.split == "given"
    two = arrays["subject"] < 2  # One of either sex, so one test person has one sex.
    pair = {k: v[two] if len(v) == 48 else v for k, v in arrays.items()}
    pair["subject_names"] = np.array(PEOPLE[:2])
    np.savez(tmp_path / "pair.npz", **pair)
    with pytest.warns(UserWarning, match="record more people"):
        load(tmp_path / "pair.npz", **CHOICE, split="subject")


def test_test_people_are_recorded_and_recalled(path, tmp_path, monkeypatch):
    """By the command line with its record, and from Python by the run's config."""
    import jaxanon as ja
    from jaxanon.cli import data as cli_data
    from jaxanon.training import run_folder

    options = cli_data.DataOptions(
        dataset=str(path), public="act", private=("sex",), test_people=("bob,dora",)
    )
    cli_data.remember(tmp_path, options)
    record = cli_data.recorded(tmp_path / cli_data.RECORD)
    assert record["test_people"] == ["bob", "dora"]
    data = cli_data.load(options)
    method = ja.methods.orf(data.spec)
    run = ja.train(method, data, epochs=1, progress=False, output_dir=tmp_path / "run")
    assert run.config["data"]["test_people"] == ["bob", "dora"]
    opened = run_folder.open_run(run.folder)
    found = cli_data.recall(opened, dataset=str(path))
    assert run_folder.fingerprint(found) == run.config["data"]["fingerprint"]
    (tmp_path / cli_data.RECORD).rename(run.folder / cli_data.RECORD)
    found = cli_data.recall(opened)
    assert held_out.tested_people(found) == ["bob", "dora"]
    # A run of an older version names no test people, and can be resumed.
    old = run.config | {"data": dict(run.config["data"])}
    del old["data"]["test_people"]
    run_folder._check_same(run.folder, old, run.config)


def test_splits_of_a_sweep_skip_test_people_of_one_class(tmp_path):
    from jaxanon.cli import data as cli_data

    rng, subject = np.random.default_rng(0), np.repeat(np.arange(7), 6)
    np.savez(
        tmp_path / "seven.npz",
        windows=rng.normal(size=(42, 8, 1)).astype(np.float32),
        subject=subject,
        act=np.tile([0, 1], 21),
        sex=(subject < 3).astype(int),
    )
    options = cli_data.DataOptions(
        dataset=str(tmp_path / "seven.npz"), public="act", private=("sex",)
    )
    options, loaded = cli_data.splits(
        cli_data.dataclasses.replace(options, split="subject"), 4
    )
    assert len({each.split_seed for each in options}) == 4
    assert all(len(np.unique(data.test.labels["sex"])) == 2 for data in loaded)
