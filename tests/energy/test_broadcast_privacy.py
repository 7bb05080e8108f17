"""Privacy guarantees that runs of homes report."""

import dataclasses
import json

import pytest

from jaxanon import energy
from jaxanon.cli import app
from jaxanon.energy import guarantee, pfdrl_method
from jaxanon.evaluation import energy as evaluation_energy
from jaxanon.privacy import SampledGaussian, epsilon_spent
from jaxanon.training import metrics_log, run_folder, trainer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def homes():
    return energy.load_homes("simulated", homes=3, devices=2, days=2, test_days=1)


def test_noise_on_broadcasts_is_accounted_for(homes, tmp_path, capsys):
    """A day of forecasters and Q-networks shared every 12 hours, of 2 devices."""
    noisy = {
        "noise_multiplier": 20.0,
        "forecaster": "lr",
        "hidden_sizes": (6,),
        "alpha": 1,
    }
    method = pfdrl_method(homes.spec, days=1, test_days=2, slot_min=720, **noisy)
    out = tmp_path / "noisy"
    run = trainer.train(method, homes, output_dir=out, progress=False)
    told = evaluation_energy.evaluate(run, homes)["privacy"]
    spent = lambda steps: epsilon_spent(
        [SampledGaussian(noise_multiplier=20.0, steps=steps)], 1e-5
    )
    assert told["parts"][0]["epsilon"] == pytest.approx(spent(4))
    assert told["epsilon"] == pytest.approx(spent(8)) and told["steps"] == 8
    assert told["rounds"] == {"done": 1, "asked": 1} and told["accountant"] == "pld"
    assert json.loads((out / "privacy.json").read_text()) == told
    assert app.main(["privacy", str(out)]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "for a home that trains on its data or sends only noise" in words
    assert "replay memories with metered loads" in words
    assert "settings that were selected by their results" in words


def test_a_ledger_lies_beside_every_checkpoint(homes, tmp_path, monkeypatch, capsys):
    """A run killed on day 2 has spent the budget of the broadcasts of day 1."""
    noisy = {
        "noise_multiplier": 0.1,
        "forecaster": "lr",
        "hidden_sizes": (6,),
        "alpha": 1,
    }
    method = pfdrl_method(homes.spec, days=2, test_days=1, slot_min=720, **noisy)
    append = metrics_log.append

    def killed(folder, row):
        if row["round"] == 2:
            raise KeyboardInterrupt
        append(folder, row)

    monkeypatch.setattr(metrics_log, "append", killed)
    with pytest.raises(KeyboardInterrupt):
        trainer.train(
            method, homes, output_dir=tmp_path, checkpoint_s=0, progress=False
        )
    told = json.loads((tmp_path / "privacy.json").read_text())
    assert told["rounds"] == {"done": 1, "asked": 2} and told["steps"] == 8
    # So little noise uses the RDP accountant, which the report states.
    assert told["accountant"] == told["parts"][0]["accountant"] == "rdp"
    assert told == guarantee.describe_guarantee(method.config, 2, days=1)
    assert app.main(["privacy", str(tmp_path)]) == 0
    assert "Unfinished: 1 of 2 rounds" in capsys.readouterr().out
    run = run_folder.open_run(tmp_path)
    assert run.unfinished == {"done": 1, "asked": 2}
    assert (
        evaluation_energy.evaluate(run, homes, output_dir=tmp_path / "r")["privacy"]
        == told
    )
    page = (tmp_path / "r" / "report.html").read_text()
    assert "Unfinished: 1 of 2 days are done" in page
    # The ledger counts, not the truncated metrics, which would show less.
    lost = dataclasses.replace(run, history=[])
    assert (
        evaluation_energy.evaluate(lost, homes, output_dir=tmp_path / "l")["privacy"]
        == told
    )
