"""Folders of several models: the device chooses as DySan's online phase does."""

import dataclasses
import functools
import json

import jax
import numpy as np
import pytest
import small_dysan

pytest.importorskip("jax2onnx", reason="needs the extra `export`")

from jaxanon import edge, exporting
from jaxanon.edge import command
from jaxanon.edge import folder as edge_folder
from jaxanon.exporting import agreement
from jaxanon.kernels.portable import explicit
from jaxanon.methods.dysan import online_selection


def root():
    return jax.random.key(5)


@pytest.fixture(scope="module")
def runs(untrained):
    """Returns three untrained models with different weights."""
    run = untrained("dysan", **small_dysan.SMALL)
    moved = lambda scale: dataclasses.replace(
        run,
        state=run.state._replace(
            params=jax.tree.map(lambda leaf: leaf * scale, run.state.params)
        ),
    )
    return [moved(scale) for scale in (1.0, 1.5, -1.0)]


@pytest.fixture(scope="module")
def choice(runs, data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("choice") / "models"
    return exporting.export_choice(root(), runs, data, folder)


def test_the_forest_is_scikit_learn_s(data):
    spec, train = data.spec, data.train
    labels = train.labels[spec.public]
    forest = online_selection.forest(root(), spec, train.windows, labels)
    attacker = online_selection.attackers.get("forest")
    standard = online_selection.standardise
    infer = attacker.fit(
        root(), standard(spec, train.windows), labels, spec.num_classes(spec.public)
    )
    wanted = infer(standard(spec, data.test.windows)).argmax(axis=1)
    np.testing.assert_array_equal(forest(data.test.windows), wanted)
    assert len(set(wanted.tolist())) > 1


def test_a_device_chooses_as_the_online_phase(choice, runs, data):
    """Windows arrive one by one; the reference knows all of them."""
    spec, windows = data.spec, data.test.windows[:43]
    wearer = {name: spec.classes[name][1] for name in spec.private}
    device = edge.load_folder(choice.path, wearer=wearer)
    manifest = json.loads((choice.path / edge_folder.FILE).read_text())
    public = device._labels(windows)
    compose, one = online_selection.once(runs[0].method)
    rng, given, tried = np.random.default_rng(0), [], []
    for run in runs:
        composed = compose(dict(run.state.params))
        program = functools.partial(
            lambda composed, key, *args: one(key, composed, *args), composed
        )
        rewritten, draws = explicit(program, windows[:1], public[:1])
        drawn = [
            {
                name: agreement.sample(rng, draw)
                for name, draw in zip(agreement.names(draws), draws, strict=True)
            }
            for _ in windows
        ]
        given.append(drawn)
        found = [
            jax.jit(rewritten)(windows[n : n + 1], public[n : n + 1], *each.values())
            for n, each in enumerate(drawn)
        ]
        tried.append(
            [
                np.concatenate(parts, axis=-1 if parts[0].ndim < 3 else 0)
                for parts in zip(*found, strict=True)
            ]
        )
    tried = online_selection.Tried(*map(np.stack, zip(*tried, strict=True)))
    subject = np.zeros(len(windows), int)
    groups = online_selection.runs(subject)
    private = np.full((len(spec.private), len(windows)), 1)
    classes = [spec.num_classes(name) for name in spec.private]
    scores = online_selection.scores(tried, groups, public, private, classes)
    prior = manifest["choice"]["prior"]
    wanted = online_selection.choose(scores, groups, subject, prior)
    chosen, safe = [], []
    for number, window in enumerate(windows):
        chosen.append(device.chosen)
        safe.append(device.anonymize(window, [each[number] for each in given]))
    assert chosen == wanted.tolist() and len({*chosen}) > 1
    released = tried.windows[wanted, np.arange(len(windows))]
    np.testing.assert_allclose(np.stack(safe), released, atol=1e-3)


def test_the_first_scores_are_those_of_all_models_on_training_windows(choice, data):
    manifest = json.loads((choice.path / edge_folder.FILE).read_text())
    prior = manifest["choice"]["prior"]
    assert len(prior) == 3 and all(0 <= score <= 1 for score in prior)
    device = edge.load_folder(choice.path, wearer={"gender": "f"})
    assert device.chosen == int(np.argmax(prior)) and device.epsilon is None


def test_a_stream_runs_through_the_choice(choice, data, tmp_path, capsys):
    samples, out = tmp_path / "in.csv", tmp_path / "out.csv"
    exporting.write_samples(data, samples)
    words = ["run", str(choice.path), "--input", str(samples), "--output", str(out)]
    assert command.main([*words, "--wearer", "gender=m"]) == 0
    assert "samples" in capsys.readouterr().err and out.stat().st_size > 1000
    out.unlink()
    assert command.main(words) == 2
    assert "--wearer must give" in capsys.readouterr().err
    assert command.main([*words, "--wearer", "gender=m", "--member", "1"]) == 2
    assert "chooses its models by windows" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("model-0001.onnx", "missing"),
        ("model-0001.onnx", "changed"),
        ("forest.npz", "missing"),
        ("forest.npz", "changed"),
        ("manifest.json", "missing"),
        ("manifest.json", "changed"),
        ("manifest.json.sha256", "missing"),
    ],
)
def test_a_damaged_folder_is_refused_by_name(choice, name, damage):
    path = choice.path / name
    before = path.read_bytes()
    try:
        if damage == "missing":
            path.unlink()
        else:
            path.write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
        with pytest.raises((FileNotFoundError, ValueError), match=name):
            edge.load_folder(choice.path, wearer={"gender": "f"})
    finally:
        path.write_bytes(before)


@pytest.fixture(scope="module")
def members(untrained, tmp_path_factory):
    run = untrained("blinder", latent_dim=3, hidden_sizes=(8,))
    scores = [(0.9, 0.8), (0.8, 0.6), (0.7, 0.5)]
    front = [
        exporting.Member(run, 2 * n, {"gamma": 0.1 * (n + 1)}, *score)
        for n, score in enumerate(scores)
    ]
    return exporting.export_members(front, tmp_path_factory.mktemp("front") / "f")


def test_an_option_selects_a_model_of_the_front(members, capsys):
    loads = lambda **options: edge.load_folder(members.path, **options)
    assert members.count == 3 and members.digest
    for options in (
        {"member": 2},
        {"settings": {"gamma": "0.2"}},
        {"min_utility": 0.75},
    ):
        assert loads(**options).metadata["method"] == "blinder"
    manifest = json.loads((members.path / edge_folder.FILE).read_text())
    select = functools.partial(edge_folder._selected, members.path, manifest["models"])
    assert select(2, {}, None)["file"] == "member-0002.onnx"
    assert select(None, {"gamma": "0.30000000000000004"}, None)["member"] == 4
    assert [select(None, {}, least)["member"] for least in (0.85, 0.75, 0)] == [0, 2, 4]
    for options, said in [
        ({}, "must select one model"),
        ({"member": 7}, "must select a model of the folder"),
        ({"min_utility": 0.95}, "got 0; choose among: member 0, gamma=0.1, utility 90"),
        ({"wearer": {"gender": "f"}}, "--wearer applies to folders"),
    ]:
        with pytest.raises(ValueError, match=said):
            loads(**options)
    assert command.main(["card", str(members.path), "--setting", "gamma=0.1"]) == 0
    assert "# blinder for toy" in capsys.readouterr().out
    assert command.main(["card", str(members.path), "--setting", "gamma"]) == 2
    assert "must be NAME=VALUE" in capsys.readouterr().err


def test_a_folder_is_replaced_only_on_request_and_alone(members, untrained, tmp_path):
    one = exporting.Member(untrained("orf"), 0, {})
    folder = tmp_path / "models"
    exporting.export_members([one], folder)
    with pytest.raises(FileExistsError, match="overwrite"):
        exporting.export_members([one], folder)
    exporting.export_members([one], folder, overwrite=True)
    (folder / "mine.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="mine.txt"):
        exporting.export_members([one], folder, overwrite=True)
    assert edge.load_folder(folder).metadata["method"] == "orf"


def test_a_failed_export_leaves_the_old_folder(untrained, tmp_path):
    one, folder = exporting.Member(untrained("orf"), 0, {}), tmp_path / "models"
    exporting.export_members([one], folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(ValueError, match="weights"):
        exporting.export_members([one], folder, overwrite=True, weights="float8")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "README.md").write_text("mine")
    with pytest.raises(FileExistsError, match="README.md"):
        exporting.export_members([one], tmp_path / "other", overwrite=True)
