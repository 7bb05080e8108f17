"""DySan's model selection as one anonymizer: its choices, and its attackers."""

import dataclasses
import json
import pathlib
import shutil

import jax
import numpy as np
import pytest
import toy

from jaxanon import methods
from jaxanon.cli import app
from jaxanon.cli import data as cli_data
from jaxanon.datasets import Data
from jaxanon.methods.dysan import online_selection as dysan_online_selection
from jaxanon.sweeps import folder as sweeps_folder
from jaxanon.sweeps import online_selection
from jaxanon.training import run_folder

LABELS = "activity", "gender", "subject"
SMALL = "--filters 4 6 --hidden-sizes 8 4 --predictor-filters 8 --batch-size 32".split()
SMALL += "--discriminator-filters 6 --classifier-hidden-sizes 8".split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Runs a sweep of two models on the command line."""
    parts, place = toy.data()[1:], tmp_path_factory.mktemp("online")
    joined = lambda pieces: np.concatenate(list(pieces))
    np.savez(
        place / "toy.npz",
        windows=joined(part.windows for part in parts),
        split=np.repeat([0, 1], [len(part.windows) for part in parts]),
        **{name: joined(part.labels[name] for part in parts) for name in LABELS},
    )
    words = ["sweep", "dysan", "--dataset", str(place / "toy.npz")]
    words += ["--public", "activity", "--private", "gender", *SMALL]
    words += "--epochs 1 --num-seeds 1 --no-evaluate --grid alpha=0.1,0.6".split()
    assert app.main([*words, "--output-dir", str(place / "sweep")]) == 0
    return place / "sweep"


@pytest.fixture(scope="module")
def runs(folder):
    found, others = online_selection.members(folder)
    assert others == 0
    return found


@pytest.fixture(scope="module")
def data(runs) -> Data:
    return cli_data.recall(runs[0])


def marked(runs, monkeypatch):
    """Makes each run return its state's number instead of windows."""
    writes = lambda key, state, windows: windows * 0 + state.params["number"]
    method = runs[0].method._replace(anonymize=writes)
    monkeypatch.setattr(
        dysan_online_selection, "trier", lambda method, states: tried_nothing
    )
    return [
        dataclasses.replace(
            run,
            method=method,
            state=run.state._replace(params={"number": np.float32(number)}),
        )
        for number, run in enumerate(runs)
    ]


def tried_nothing(key, windows, known):
    public = np.zeros((2, len(windows)), int)
    return dysan_online_selection.Tried(
        np.empty(0), public, np.zeros((2, 1, len(windows)), int)
    )


@pytest.mark.slow
def test_each_window_goes_through_the_model_chosen_by_the_run_before(
    data, runs, monkeypatch
):
    """With given scores, model 1 is best on training windows.

    Later runs use their own.
    """
    asked = []
    labels = [part.labels["gender"] for part in (data.train, data.train, data.test)]
    told = lambda windows: 7 + np.arange(len(windows))
    monkeypatch.setattr(dysan_online_selection, "labeller", lambda *given: told)

    def scores(tried, groups, *, public, private, num_classes, utility, privacy):
        asked.append((len(groups), num_classes, utility, privacy))
        np.testing.assert_array_equal(public, told(groups))  # Not the true scores.
        np.testing.assert_array_equal(private, labels[len(asked) - 1][None])
        assert tried.public.shape == (2, len(groups))
        if not np.any(groups):  # All in one: the model of a wearer's first run.
            return np.array([[0.4], [0.6]])
        even = np.arange(groups.max() + 1) % 2 == 0
        return np.stack([even, ~even]).astype(float)

    monkeypatch.setattr(dysan_online_selection, "scores", scores)
    heard = []
    run = online_selection.choose_online(
        jax.random.key(0),
        marked(runs, monkeypatch),
        data,
        utility=0.3,
        progress=lambda *piece: heard.append(piece),
    )
    assert [piece[:2] for piece in heard] == [(0, 2), (1, 2)]
    test = data.test
    safe = run.anonymize(jax.random.key(1), test.windows)
    assert asked == [
        (len(part.windows), [2], 0.3, 0.9) for part in (data.train, data.train, test)
    ]
    subject = test.labels["subject"]
    groups = dysan_online_selection.runs(subject)
    for one in np.unique(subject):
        own = np.flatnonzero(subject == one)
        for place, row in enumerate(own):
            before = groups[own[0]] + place // 5 - 1
            wanted = 1 if place < 5 else before % 2
            np.testing.assert_array_equal(safe[row], wanted)
    few = run.choices(jax.random.key(2), test.windows[::7])
    np.testing.assert_array_equal(few, safe[::7, 0, 0])
    with pytest.raises(
        ValueError, match="chosen for, got 2 others; call choose_online"
    ):
        run.choices(jax.random.key(2), test.windows[:2] + 1)


@pytest.mark.slow
def test_of_equal_windows_the_first_counts_and_the_test_s(data, runs, monkeypatch):
    alike = lambda part: part._replace(windows=part.windows[:1].repeat(20, axis=0))
    few = lambda part: jax.tree.map(lambda rows: rows[:20], part)
    same = data._replace(train=alike(few(data.train)), test=alike(few(data.test)))
    same = same._replace(
        train=same.train._replace(windows=same.test.windows),
        test=same.test._replace(
            labels=same.test.labels | {"subject": np.zeros(20, int)}
        ),
    )
    monkeypatch.setattr(
        dysan_online_selection, "labeller", lambda *given: lambda windows: windows
    )
    choices = iter([np.ones(20, int), np.repeat([0, 1, 1, 1], 5)])
    monkeypatch.setattr(
        dysan_online_selection, "scores", lambda *_, groups=None, **__: np.ones((2, 1))
    )
    monkeypatch.setattr(dysan_online_selection, "choose", lambda *given: next(choices))
    run = online_selection.choose_online(
        jax.random.key(0), marked(runs, monkeypatch), same
    )
    assert run.choices(jax.random.key(1), same.test.windows).tolist() == [0] * 20


@pytest.mark.slow
def test_models_are_tried_in_pieces_of_one_shape(data, monkeypatch):
    shapes = []

    def trier(key, windows, known):
        shapes.append(windows.shape)
        level = np.stack([windows[:, 0, 0], known])
        return dysan_online_selection.Tried(windows, level, level[:, None] + 1)

    monkeypatch.setattr(dysan_online_selection, "CHUNK", 32)
    windows, known = data.test.windows[:50], np.arange(50.0)
    tried = dysan_online_selection.try_models(jax.random.key(0), trier, windows, known)
    assert shapes == [(32, 16, 2)] * 2
    wanted = np.stack([windows[:, 0, 0], known])
    np.testing.assert_array_equal(tried.public, wanted)
    np.testing.assert_array_equal(tried.private[:, 0], wanted + 1)


@pytest.mark.slow
def test_the_sweep_s_folder_is_attacked_as_one(folder, capsys):
    assert app.main(["budget-curve", str(folder), "--epsilons", "1"]) == 2
    assert "holds a sweep; name the folder of one member" in capsys.readouterr().err
    asked = ["evaluate", str(folder), "--attacks", "tree,fingerprint"]
    assert app.main(asked) == 0
    assert "One of 2 models rewrites each five" in capsys.readouterr().out
    report = json.loads((folder / "report.json").read_text())
    assert report["method"]["name"] == "dysan, online"
    settings = report["method"]["config"]["models"]
    np.testing.assert_allclose([each["alpha"] for each in settings], [0.1, 0.6])
    rows = report["attacks"]["fingerprint"]
    assert [row["variant"] for row in rows] == [f"p = {p}" for p in range(1, 6)]


def test_others_are_refused(data, runs):
    choose = lambda runs, data=data, **more: online_selection.choose_online(
        jax.random.key(0), runs, data, **more
    )
    with pytest.raises(ValueError, match="at least one trained model, got none"):
        choose([])
    run = dataclasses.replace(runs[0], method=methods.orf(data.spec))
    with pytest.raises(ValueError, match=r"runs must be of dysan, .*, got \['orf'\]"):
        choose([run])
    config = dataclasses.asdict(runs[0].method.config) | {"standardized": False}
    other = dataclasses.replace(runs[0], method=methods.dysan(data.spec, **config))
    with pytest.raises(
        ValueError, match=r"only in .*, got different \['standardized'\]"
    ):
        choose([runs[0], other])
    spec = dataclasses.replace(data.spec, preset="other")
    match = r"'toy' \(other\), got one for 'toy' \(file\)"
    with pytest.raises(ValueError, match=match):
        choose(runs, data._replace(spec=spec))
    with pytest.raises(ValueError, match=r"utility must be finite and >= 0, got -1"):
        choose(runs, utility=-1.0)


@pytest.mark.slow
def test_members_are_one_of_a_setting_that_was_trained_to_the_end(folder, tmp_path):
    """The second one was stopped, repeats the setting, or has too large parameters."""
    copy = lambda name: pathlib.Path(shutil.copytree(folder, tmp_path / name))
    told = sweeps_folder.read(folder)
    first, second = told["members"]
    for change in ({"stopped": 1}, {"seed": 1}, {"split": 1}, {"losses": {}}):
        out = copy(next(iter(change)))
        sweeps_folder.add(out, members=[first, second | change])
        found, others = online_selection.members(out)
        assert (len(found), others) == (1, 1)
    broken = copy("broken")
    run = run_folder.open_run(broken / "member-0001")
    huge = jax.tree.map(lambda leaf: leaf * 0 + 1e30, run.state.params)
    shutil.rmtree(broken / "member-0001")
    state = run.state._replace(params=huge)
    sweeps_folder.save(dataclasses.replace(run, state=state))
    assert len(online_selection.members(broken)[0]) == 1
    sweeps_folder.add(broken, members=[first | {"stopped": 1}, second])
    with pytest.raises(ValueError, match="must hold a completely trained, finite run"):
        online_selection.members(broken)
    del told["members"]
    sweeps_folder.write(broken, told)
    with pytest.raises(
        ValueError, match="holds an unfinished sweep; continue with --res"
    ):
        online_selection.members(broken)
    sweeps_folder.add(broken, method="pfdrl")
    with pytest.raises(ValueError, match=r"got \['pfdrl'\]; evaluate members one by"):
        online_selection.members(broken)


@pytest.mark.slow
def test_the_sweep_s_folder_is_exported_for_devices(folder, data, tmp_path, capsys):
    pytest.importorskip("jax2onnx", reason="needs the extra `export`")
    from jaxanon import edge

    out = tmp_path / "models"
    assert app.main(["export", str(folder), "--output", str(out)]) == 0
    assert "2 models" in capsys.readouterr().out
    device = edge.load_folder(out, wearer={"gender": data.spec.classes["gender"][0]})
    assert device.anonymize(data.test.windows[0]).shape == (16, 2)
    words = ["export", str(folder), "--output", str(out), "--selection", "member"]
    assert app.main(words) == 2
    assert "not empty" in capsys.readouterr().err
    assert app.main([*words, "--overwrite"]) == 0
    for alpha in ("0.1", "0.6"):  # Nobody evaluated them, so that all are there.
        model = edge.load_folder(out, settings={"alpha": alpha})
        assert model.anonymize(data.test.windows[0]).shape == (16, 2)
    assert app.main([*words, "--attackers", "a.onnx", "--overwrite"]) == 2
    assert "--attackers applies to a run" in capsys.readouterr().err
