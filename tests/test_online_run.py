"""DySan's choice among models as one anonymizer: who rewrites, and who is attacked."""

import dataclasses
import json

import jax
import numpy as np
import pytest
import toy

from jaxanon import cli, methods, online, online_run
from jaxanon.commands import sources
from jaxanon.datasets import Data

LABELS = "activity", "gender", "subject"
SMALL = "--filters 4 6 --hidden 8 4 --predictor-filters 8 --batch 32".split()
SMALL += "--discriminator-filters 6 --judge-hidden 8".split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A sweep of two models, by the command line."""
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
    words += "--epochs 1 --seeds 1 --no-evaluate --grid alpha=0.1,0.6".split()
    assert cli.main([*words, "--out", str(place / "sweep")]) == 0
    return place / "sweep"


@pytest.fixture(scope="module")
def runs(folder):
    return online_run.members(folder)


@pytest.fixture(scope="module")
def data(runs) -> Data:
    return sources.recall(runs[0])


def marked(runs):
    """The same runs, each of which writes its number where windows were."""
    writes = lambda number: lambda key, state, windows: windows * 0 + number
    return [
        dataclasses.replace(run, method=run.method._replace(anonymize=writes(number)))
        for number, run in enumerate(runs)
    ]


def test_each_window_goes_through_the_model_chosen_by_the_run_before(
    data, runs, monkeypatch
):
    """Scores are given: model 1 is best on training windows, then each run has its."""
    asked = []

    def scores(tried, groups, *, public, private, num_classes, utility):
        asked.append((len(groups), num_classes, utility))
        assert tried.public.shape == (2, len(groups))
        assert tried.private.shape == (2, 1, len(groups)) == (2, *private.shape)
        if not np.any(groups):  # All in one: what a wearer's first run is given by.
            return np.array([[0.4], [0.6]])
        even = np.arange(groups.max() + 1) % 2 == 0
        return np.stack([even, ~even]).astype(float)

    monkeypatch.setattr(online, "scores", scores)
    run = online_run.choose_online(jax.random.key(0), marked(runs), data, utility=0.3)
    test = data.test
    safe = run.anonymize(jax.random.key(1), test.windows)
    assert asked == [
        (len(part.windows), [2], 0.3) for part in (data.train, data.train, test)
    ]
    subject = test.labels["subject"]
    groups = online.runs(subject)
    for one in np.unique(subject):
        own = np.flatnonzero(subject == one)
        for place, row in enumerate(own):
            before = groups[own[0]] + place // 5 - 1
            wanted = 1 if place < 5 else before % 2
            np.testing.assert_array_equal(safe[row], wanted)
    few = run.choices(jax.random.key(2), test.windows[::7])
    np.testing.assert_array_equal(few, safe[::7, 0, 0])
    with pytest.raises(ValueError, match="chosen for, got 2 others; choose for those"):
        run.choices(jax.random.key(2), test.windows[:2] + 1)


def test_models_are_tried_in_pieces_of_one_shape(data, runs, monkeypatch):
    shapes = []

    def trier(key, windows, known):
        shapes.append(windows.shape)
        mean = windows.mean((1, 2)) > windows.mean()
        return online.Tried(windows, np.stack([mean, ~mean]), np.stack([mean])[None])

    monkeypatch.setattr(online_run, "CHUNK", 32)
    windows = data.test.windows[:50]
    tried = online_run._tried(jax.random.key(0), trier, windows, np.zeros(50, int))
    assert shapes == [(32, 16, 2)] * 2
    assert tried.public.shape == (2, 50) and tried.private.shape == (1, 1, 50)


@pytest.mark.long
def test_the_sweep_s_folder_is_attacked_as_one(folder, capsys):
    assert cli.main(["evaluate", str(folder), "--epsilons", "1"]) == 2
    assert "are of one run; give a member's folder" in capsys.readouterr().err
    asked = ["evaluate", str(folder), "--attacks", "tree,fingerprint"]
    assert cli.main(asked) == 0
    assert "go through one of 2 models" in capsys.readouterr().out
    report = json.loads((folder / "report.json").read_text())
    assert report["method"]["name"] == "dysan, online"
    settings = report["method"]["config"]["models"]
    assert [each["alpha"] for each in settings] == [0.1, 0.6]
    rows = report["attacks"]["fingerprint"]
    assert [row["variant"] for row in rows] == [f"p = {p}" for p in range(1, 6)]


def test_others_are_refused(data, runs, tmp_path):
    choose = lambda runs, data=data: online_run.choose_online(
        jax.random.key(0), runs, data
    )
    with pytest.raises(ValueError, match="at least one trained model, got none"):
        choose([])
    other = methods.orf(data.spec)
    run = dataclasses.replace(runs[0], method=other)
    with pytest.raises(ValueError, match=r"among those of dysan, .*, got \['orf'\]"):
        choose([run])
    config = dataclasses.asdict(runs[0].method.config) | {"judge_hidden": 4}
    narrower = methods.dysan(data.spec, **config).init(jax.random.key(0))
    run = dataclasses.replace(runs[0], state=narrower)
    with pytest.raises(ValueError, match=r"one architecture, got 2 of \['dysan'\]"):
        choose([runs[0], run])
    spec = dataclasses.replace(data.spec, preset="other")
    with pytest.raises(
        ValueError, match=r"'toy' \(other\), got one for 'toy' \(file\)"
    ):
        choose(runs, data._replace(spec=spec))
    with pytest.raises(ValueError, match="no member that was trained .* by --resume"):
        online_run.members(tmp_path)
