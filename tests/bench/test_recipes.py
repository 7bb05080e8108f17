"""Tests of the recipes benchmark: attackers, verdicts, and a run from the shell."""

import json

import jax
import numpy as np
import pytest
import toy

from jaxanon.evaluation.protocol import Evaluation


@pytest.fixture(scope="module")
def data():
    return toy.data(per_subject=120)


def trial_of(data, change, attackers=("forest", "boosting")):
    """Returns an evaluation with the anonymizer ``change`` on standardized windows."""
    mean, std = np.float32(data.spec.mean), np.float32(data.spec.std)

    def anonymize(key, windows):
        return change(key, (windows - mean) / std)

    safe = anonymize(jax.random.key(1), data.test.windows)
    return Evaluation(
        0, jax.random.key(0), None, data, anonymize, safe, attackers, 0.2, print
    )


def noise(key, windows):
    return np.asarray(jax.random.normal(key, windows.shape))


def test_attackers_read_what_is_left_and_nothing_of_noise(bench, data):
    measure = bench("recipes.measure")
    plain = measure.retrained(trial_of(data, lambda key, windows: windows), "gender")
    assert plain["retrained"] > 95 and plain["retrained_auc"] > 98
    assert plain["strongest"] in ("forest", "boosting")
    nothing = measure.retrained(trial_of(data, noise), "gender")
    assert (
        abs(nothing["retrained"] - 50) < 15 and abs(nothing["retrained_auc"] - 50) < 15
    )


def test_the_attacker_is_chosen_by_validation_and_not_by_the_test(bench, data):
    measure = bench("recipes.measure")
    found = measure.retrained(trial_of(data, noise), "gender")
    scores = found["attackers"]
    strongest = max(scores, key=lambda name: scores[name]["validation"])
    assert found["strongest"] == strongest
    assert found["retrained"] == scores[strongest]["window"]
    assert found["retrained_worst_of_three"] >= found["retrained"]


def test_verdicts_say_what_holds_and_what_does_not(bench):
    command = bench("recipes.command")
    row = {"case": "MotionSense", "recipe": "recommended", "seed": 0, "loss": 1.0}
    row |= {"kept": 96.0, "raw_classifier": 51.0, "raw_classifier_off_chance": 1.0}
    other = row | {"seed": 1, "kept": 97.5, "retrained": 59.0, "loss": float("inf")}
    told = [*command.verdicts([row, other])]
    assert "MotionSense: kept 96.75 (worst seed 96.00) should be >= 96.5: holds" in told
    assert any("retrained 59.00" in line and "does not hold" in line for line in told)
    assert told[-1] == "MotionSense: a seed of 2 diverged"
    table = command.table([row, other])
    assert "96.8 ± 1.1" in table and "| MotionSense | recommended | 2 |" in table


def test_smoke(run_script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = run_script("recipes", "--smoke", "--json", "rows.json")
    (row,) = json.loads((tmp_path / "rows.json").read_text())
    assert (row["case"], row["recipe"]) == ("smartwatch", "recommended")
    assert {"kept", "raw_classifier", "retrained", "attackers", "device"} <= set(row)
    assert row["attackers"].keys() == {"mlp", "forest", "boosting"}
    assert "smartwatch" in said and row["rounds"] >= 1
