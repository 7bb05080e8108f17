"""Tests of flip probabilities, evaluated with a single model."""

import json
import sys
import types

import numpy as np
import pytest
import toy

from jaxanon import methods
from jaxanon.attacks import RawClassifiers
from jaxanon.core import run as core_run

TINY = {"hidden_sizes": (4,), "latent_dim": 2, "anonymization": "probabilistic"}


@pytest.fixture
def flip(bench):
    return bench("blinder.flip")


@pytest.fixture(scope="module")
def run():
    data = toy.data()
    method = methods.blinder(data.spec, **TINY)
    state = types.SimpleNamespace(params={}, average=None)
    return core_run.Run(method, state, data.spec, None, [], {})


def test_shares_are_tried_of_one_model_and_rows_of_others_stay(
    flip, run, unmeasured, monkeypatch, tmp_path, capsys
):
    asked, evaluated, rows = {}, [], tmp_path / "rows.json"
    old = {"preset": "mag4", "settings": {"beta": 2.0}}
    rows.write_text(json.dumps([old]))

    def train(method, data, **options):
        asked.update(options, config=method.config)
        return run

    def evaluate(tried, data, *, attacks, raw_classifiers):
        evaluated.append(
            (tried.method.config.flip_probability, tried.folder, raw_classifiers)
        )
        told = {name: {"balanced_accuracy": 0.5} for name in ("mlp", "forest")}
        return {
            "utility": {"attribute": "activity", "anonymized": {"accuracy": 0.9}},
            "intrusive": {"gender": {"anonymized": {"balanced_accuracy": 0.5}}},
            "reidentification": {"gender": {"attackers": told, "strongest": "mlp"}},
            "distortion": {"warping": {"mean": 10.0}},
        }

    monkeypatch.setattr(flip.ja, "train", train)
    monkeypatch.setattr(flip.front, "load", lambda smoke, preset: toy.data())
    monkeypatch.setattr(
        flip.anonymizers, "train_raw_classifiers", lambda data: "raw_classifiers"
    )
    monkeypatch.setattr(flip.anonymizers, "evaluate", evaluate)
    monkeypatch.setattr(
        flip, "read_of_training", lambda tried, data, raw_classifiers: {"gender": 50.0}
    )
    monkeypatch.setattr(sys, "argv", ["flip.py", "--json", str(rows)])
    for _ in range(2):  # Rows of the same settings are replaced.
        flip.main()
    config = asked["config"]
    assert (config.anonymization, config.guided) == ("probabilistic", True)
    assert {name: getattr(config, name) for name in flip.WEIGHTS} == flip.WEIGHTS
    assert (asked["epochs"], asked["seed"], asked["resume"]) == (14, 0, True)
    assert evaluated == 2 * [(share, None, "raw_classifiers") for share in flip.SHARES]
    first, *found = json.loads(rows.read_text())
    assert first == old
    assert [row["settings"]["flip_probability"] for row in found] == list(flip.SHARES)
    assert found[0]["retrained"] == {"mlp": 0.5, "forest": 0.5}
    assert found[0]["scores"]["activity accuracy"]["mean"] == 0.9
    assert found[0]["command"] == "python bench blinder.flip"
    assert "flip 0.5, training windows: gender" in capsys.readouterr().out


def test_training_windows_are_read_after_they_were_rewritten(flip, run):
    """The classifier infers one gender for rewritten windows, and all for raw ones."""
    data = toy.data()
    moved = run.method._replace(anonymize=lambda key, state, windows: windows + 100)
    moved = core_run.Run(moved, np.zeros(1), data.spec, None, [], {})
    amplitude = lambda windows: windows.std((1, 2)) > 1
    far = lambda windows: windows.mean((1, 2)) > 5

    def read(windows):
        second = np.where(far(windows), True, amplitude(windows))
        return np.stack([~second, second], axis=1).astype(float)

    reads = {"gender": read, "activity": lambda windows: np.eye(3)[[1] * len(windows)]}
    found = flip.read_of_training(moved, data, RawClassifiers(reads, {}))
    assert found == {"activity": pytest.approx(100 / 3), "gender": 50.0}
