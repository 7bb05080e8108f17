"""``jaxanon train fedper`` and its kin: trained, evaluated, refused."""

import json

import numpy as np
import pytest

from jaxanon import datasets
from jaxanon.cli import app, data
from jaxanon.evaluation import anonymizers
from jaxanon.training import run_folder

TINY = "--model mlp --hidden-sizes 6 --local-steps 2 --batch-size 4 --epochs 2".split()


@pytest.fixture(scope="module")
def learned(file, tmp_path_factory):
    """``(name, *words) -> folder`` of a run that the command line trained."""
    root = tmp_path_factory.mktemp("learned")

    def learned(name, *words):
        named = ["--dataset", str(file), "--public", "activity", "--private", "gender"]
        out = ["--output-dir", str(root / name)]
        assert app.main(["train", name, *named, *out, *TINY, *words]) == 0
        return root / name

    return learned


@pytest.mark.slow
def test_a_learner_is_trained_and_evaluated(learned, capsys):
    folder = learned("fedper", "--shared-layers", "1")
    assert app.main(["evaluate", str(folder)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "Clients predict activity with" in told and "added no noise" in told
    report = json.loads((folder / "report.json").read_text())
    assert len(report["clients"]) == 3 and report["method"]["rounds"] == 2
    assert (folder / "clients.svg").read_bytes().startswith(b"<?xml")
    assert "fedper on" in (folder / "report.html").read_text()
    assert app.main(["evaluate", str(folder)]) == 2
    assert "--overwrite" in capsys.readouterr().err


@pytest.mark.slow
def test_a_private_learner_says_what_it_keeps(learned, capsys):
    folder = learned(
        "atlas", "--epsilon", "1", "--max-examples", "32", "--max-rounds", "2"
    )
    spent = "Spent after 2 rounds: epsilon 1 of 1 for 2 rounds; see "
    assert f"{spent}jaxanon privacy {folder}" in capsys.readouterr().out
    assert app.main(["evaluate", str(folder)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert (
        "Everything that clients send satisfies epsilon" in told
        and "after 4 noisy steps" in told
    )
    assert app.main(["privacy", str(folder)]) == 0
    again = " ".join(capsys.readouterr().out.split())
    assert (
        "Everything that clients send satisfies epsilon" in again
        and "Not covered: the" in again
    )
    assert app.main(["privacy", str(folder), "--epsilon", "1"]) == 2
    assert "leave the options out" in capsys.readouterr().err
    (folder / "privacy.json").write_text("{}")
    for words in (["privacy"], ["evaluate", "--overwrite"]):
        assert app.main([*words, str(folder)]) == 2
        assert "privacy.json is damaged" in capsys.readouterr().err
    damaged = {"epsilon": 1.0, "rounds": {"done": 2, "begun": "more"}}
    (folder / "privacy.json").write_text(json.dumps(damaged))
    assert app.main(["privacy", str(folder)]) == 2
    assert "privacy.json is damaged" in capsys.readouterr().err
    (folder / "privacy.json").unlink()
    assert app.main(["privacy", str(folder)]) == 2
    assert "has no privacy.json" in capsys.readouterr().err


@pytest.mark.slow
def test_learners_do_not_anonymize(learned, file, tmp_path, capsys):
    folder = learned("fedavg")
    words = ["--input", str(file), "--output", str(tmp_path / "safe.npy")]
    assert app.main(["anonymize", str(folder), *words]) == 2
    assert "fedavg cannot anonymize windows" in capsys.readouterr().err
    assert not (tmp_path / "safe.npy").exists()


def test_names_of_both_kinds_are_offered(capsys):
    assert app.main(["train", "fedavgg"]) == 2
    told = capsys.readouterr().err
    assert " blinder," in told and " fedavg," in told


@pytest.mark.slow
def test_numbers_are_predicted_and_not_kept(file, tmp_path, capsys):
    arrays = dict(np.load(file))
    power = 100 + 9 * arrays["windows"][:, -1, 0]
    told = {"targets": ["power"], "target_units": ["W"]}
    np.savez(tmp_path / "watts.npz", **arrays, power=power, **told)
    named = ["--dataset", str(tmp_path / "watts.npz"), "--private", "gender"]
    named += ["--public", "power"]
    out = ["--output-dir", str(tmp_path / "run")]
    assert app.main(["train", "fedavg", *named, *out, *TINY]) == 0
    assert app.main(["train", "fedavg", *named, *out, *TINY, "--resume"]) == 0
    assert app.main(["evaluate", str(tmp_path / "run")]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "Clients predict power of their test windows with R²" in told
    assert "The MAE is" in told and "(mean of the client): R²" in told
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert report["unit"] == "W" and list(report["baselines"]) == ["mean"]
    assert (
        app.main(["train", "blinder", *named, "--output-dir", str(tmp_path / "no")])
        == 2
    )
    assert "predict a target by a learner" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the test windows must have at least two classes")
def test_people_join_a_run_from_the_command_line(file, tmp_path, capsys):
    """Who has windows to test alone is new; of a trial split nobody is."""
    arrays = dict(np.load(file))
    new = arrays["subject"] == 2
    arrays["split"] = np.where(new, 1, 0)
    np.savez(tmp_path / "people.npz", **arrays)
    named = ["--dataset", str(tmp_path / "people.npz"), "--public", "activity"]
    out = str(tmp_path / "run")
    words = ["--private", "gender", "--shared-layers", "1", *TINY, "--output-dir", out]
    assert app.main(["train", "fedper", *named, *words]) == 0
    capsys.readouterr()
    new = ["personalize", out, "--new-client-fraction", "0.5"]
    assert app.main([*new, "--num-rounds", "2"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "New clients fine-tune on 12 windows, 2 rounds." in told
    report = json.loads((tmp_path / "run" / "newcomers" / "report.json").read_text())
    (row,) = report["clients"]
    assert row["subject"] == "2" and not row["new"] and 0 < row["windows"] <= 12
    assert app.main(new) == 2
    assert "--overwrite" in capsys.readouterr().err
    # The default attackers are refused, too, if they are named.
    assert app.main(["evaluate", out, "--overwrite", "--attacks", "mlp,forest"]) == 2
    assert "attacks, share and raw_classifiers must be None" in capsys.readouterr().err
    with pytest.raises(
        ValueError, match="attacks, share and raw_classifiers must be None"
    ):
        anonymizers.evaluate(run_folder.open_run(out), None, share=anonymizers.SHARE)


def test_a_target_may_be_named(monkeypatch):
    """As any attribute, though an inference has no such name."""
    monkeypatch.setattr(datasets, "load", lambda name, **options: options["public"])
    options = data.DataOptions(dataset="households", public="power")
    assert data.load(options) == "power"
