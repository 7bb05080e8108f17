"""``jaxanon anonymize --epsilon --budget``: what leaves, and what it costs."""

import dataclasses
import json

import jax
import numpy as np
import pytest

from jaxanon import edge, methods
from jaxanon.cli import app, files
from jaxanon.core import release
from jaxanon.training import run_folder

pytestmark = pytest.mark.slow
RANGE = "--low -1.0 -1.0 --high 1.0 1.0".split()
RANGE += "--hidden-sizes 4 2 --batch-size 16 --epochs 1".split()


@pytest.fixture(scope="module")
def released(file, tmp_path_factory):
    """A run of DEEProtect, trained by the command line."""
    out = tmp_path_factory.mktemp("runs") / "released"
    named = ["--dataset", str(file), "--public", "activity", "--private", "gender"]
    words = ["train", "deeprotect", *named, "--output-dir", str(out), *RANGE]
    assert app.main([*words, "--epsilon", "2.0"]) == 0
    return out


@pytest.fixture
def anonymize(released, file, tmp_path):
    """``(*words, run=...) -> exit status``; writes ``tmp_path / "safe.npy"``."""

    def anonymize(*words, run=released, out="safe.npy"):
        named = ["--input", str(file), "--output", str(tmp_path / out)]
        given = [str(word) for word in words]
        return app.main(["anonymize", str(run), *named, "--overwrite", *given])

    return anonymize


def test_what_a_file_says_is_held_against_its_run(
    anonymize, released, tmp_path, monkeypatch, capsys
):
    def refuse(told, spec):
        assert spec == run_folder.open_run(released).spec
        raise ValueError(f"it says {told}")

    monkeypatch.setattr(files, "refuse_others", refuse)
    assert anonymize() == 2
    assert "it says {" in capsys.readouterr().err
    assert not (tmp_path / "safe.npy").exists()


def test_a_budget_lasts_across_calls_and_is_never_overspent(
    anonymize, tmp_path, capsys
):
    ledger = tmp_path / "stream.json"
    assert anonymize("--budget", ledger, "--budget-total", 100, "--epsilon", 0.5) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "epsilon 0.5 for each window of 8 s, between any two windows" in told
    assert "225 for an hour" in told  # 0.5 x 3600 / 8
    assert f"36 of 100 is spent in {ledger}, 64 is left." in told
    assert json.loads(ledger.read_text())["releases"] == {"0.5": 72}
    first = np.load(tmp_path / "safe.npy")
    # Without --epsilon it is what the run was trained with: 2, and 144 are too many.
    assert anonymize("--budget", ledger, out="more.npy") == 2
    said = capsys.readouterr().err
    assert "at most 64, which is left of 100" in said
    assert "at most 32 windows" in said
    assert not (tmp_path / "more.npy").exists() and edge.Budget(ledger).spent == 36.0
    assert anonymize("--budget", ledger, "--epsilon", 0.25) == 0
    assert edge.Budget(ledger).spent == 54.0
    # Nobody knows the key: another call has other noise.
    assert not np.allclose(first, np.load(tmp_path / "safe.npy"))


def test_what_a_release_is_not_says_what_it_is(released, anonymize, capsys):
    assert app.main(["privacy", str(released)]) == 2
    assert "`jaxanon anonymize --budget FILE` counts" in capsys.readouterr().err
    assert app.main(["personalize", str(released)]) == 2
    assert "got deeprotect, which anonymizes" in capsys.readouterr().err
    assert anonymize("--input", "nothing.npz", run="no_run") == 2
    assert "no_run holds no run" in capsys.readouterr().err


def test_what_is_clipped_is_counted(anonymize, file, capsys):
    assert anonymize("--epsilon", 1.0) == 0
    windows = np.load(file)["windows"]
    beyond = np.abs(windows) > 1
    count = beyond.any(axis=(1, 2)).sum()
    assert 0 < count < len(windows)
    told = " ".join(capsys.readouterr().out.split())
    assert f"{beyond.sum()} values in {count} windows were clipped" in told


def test_help_of_a_run_has_only_flags_of_its_method(released, folder, capsys):
    """A guarantee for deeprotect; neither that nor diffusion for blinder."""
    shown = []
    for words in ([str(released)], [str(folder)], []):
        with pytest.raises(SystemExit):
            app.main(["anonymize", *words, "--help"])
        shown.append(capsys.readouterr().out)
    assert ["--epsilon" in each for each in shown] == [True, False, True]
    assert ["--guidance-scale" in each for each in shown] == [False, False, True]
    assert all("--output" in each for each in shown)


def test_less_epsilon_is_more_noise(released, file):
    run = run_folder.open_run(released)
    windows = np.load(file)["windows"]
    apart = [
        np.abs(
            release.with_epsilon(run, epsilon).anonymize(jax.random.key(0), windows)
            - release.with_epsilon(run, 30.0).anonymize(jax.random.key(0), windows)
        ).mean()
        for epsilon in (0.5, 20.0)
    ]
    assert apart[0] > 1.3 * apart[1] > 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--epsilon", "0"], "epsilon must be finite and > 0, got 0.0"),
        (["--epsilon", "inf"], "epsilon must be finite and > 0"),
        (["--budget", "no.json"], "no.json holds no budget"),
        (["--budget-total", "3"], "--budget-total requires --budget"),
        (["--budget", "b.json", "--seed", "1"], "--budget requires secret noise"),
        (
            ["--budget", "new.json", "--budget-total", "-1"],
            "of a budget must be > 0",
        ),
    ],
)
def test_says_what_was_wrong_and_writes_nothing(
    words, message, anonymize, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert anonymize(*words) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "safe.npy").exists()


def test_noise_of_a_known_seed_guarantees_nothing(anonymize, tmp_path, capsys):
    assert anonymize("--epsilon", 1.0, "--seed", 3) == 0
    told = capsys.readouterr().out
    assert "No guarantee: noise of a known seed can be subtracted." in told
    first = np.load(tmp_path / "safe.npy")
    assert anonymize("--epsilon", 1.0, "--seed", 3) == 0
    np.testing.assert_array_equal(first, np.load(tmp_path / "safe.npy"))


def named(run):
    """The run in mode "named", within the span."""
    config = dataclasses.asdict(run.method.config)
    config |= {"mode": "named", "mechanism": "span"}
    return dataclasses.replace(
        run, method=methods.build("deeprotect", run.spec, **config)
    )


def test_modes_do_not_share_a_budget(released, file, tmp_path):
    run, path = run_folder.open_run(released), tmp_path / "b.json"
    windows, key = np.load(file)["windows"], release.secret_key()
    budget = release.open_budget(run, path, 1000.0)
    with pytest.raises(ValueError, match="must hide any two windows, got windows that"):
        release.release(named(run), key, windows, budget)
    own = tmp_path / "named.json"
    budget = release.open_budget(named(run), own, 1000.0)
    _, told = release.release(named(run), key, windows, budget)
    ideal = "Idealised arithmetic, no guarantee in floating point: epsilon 2 for each"
    assert told[0].startswith(ideal)
    assert release.headline(named(run), windows) == told[:2]  # As reports begin.
    assert "windows that differ only in predictors of gender (" in told[0]
    assert "applies to clipped windows" in told[1] and "144 of 1000 is spent" in told[2]


def test_too_little_is_noticed_before_any_work(released, file, tmp_path, monkeypatch):
    run, windows = run_folder.open_run(released), np.load(file)["windows"]
    budget = release.open_budget(run, tmp_path / "b.json", 1.0)
    monkeypatch.setattr(type(run), "anonymize", None)
    with pytest.raises(edge.Exhausted, match="at most 1, which is left of 1"):
        release.release(run, release.secret_key(), windows, budget)


def test_weights_that_are_not_orthonormal_release_nothing(released, file, tmp_path):
    run, path = run_folder.open_run(released), tmp_path / "b.json"
    budget = release.open_budget(run, path, 1000.0)
    layer = run.state.params["layer 1"]
    longer = {"layer 1": layer._replace(kernel=1.01 * layer.kernel)}
    params = {**run.state.params, **longer}
    run = dataclasses.replace(run, state=run.state._replace(params=params))
    with pytest.raises(ValueError, match="orthonormality residual .* got 4.0e-02"):
        release.release(run, release.secret_key(), np.load(file)["windows"], budget)
    assert budget.spent == 0.0


def test_a_budget_keeps_its_total(anonymize, tmp_path, capsys):
    ledger = tmp_path / "stream.json"
    edge.Budget(ledger, 5.0)
    assert anonymize("--budget", ledger, "--budget-total", 500) == 2
    assert "must be 5, as in the file, got 500" in " ".join(
        capsys.readouterr().err.split()
    )


def test_a_method_without_a_guarantee(anonymize, folder, capsys):
    assert anonymize("--epsilon", 1.0, run=folder) == 2
    assert (
        "epsilon must come from a run with a guarantee, got a run of blinder"
        in capsys.readouterr().err
    )
    assert anonymize(run=folder) == 0
    assert "epsilon" not in capsys.readouterr().out


def test_inferences_are_listed_and_name_attributes(released, capsys, tmp_path):
    assert app.main(["list-inferences"]) == 0
    told = capsys.readouterr().out
    assert "stress" in told and "microphone" in told and "subject" in told
    words = [
        "train",
        "deeprotect",
        "--output-dir",
        str(tmp_path / "x"),
        "--private",
        "stress",
    ]
    assert app.main(words) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "the data have no labels of 'stress'" in said
    assert app.main([*words[:-1], "mood"]) == 2
    assert "nor an inference; `jaxanon list-inferences` lists the" in " ".join(
        capsys.readouterr().err.split()
    )


def test_what_is_read_over_epsilon(released, capsys):
    words = ["budget-curve", str(released), "--epsilons", "0.5", "30"]
    words += ["--attacker", "tree"]
    assert app.main(words) == 0
    told = capsys.readouterr().out
    assert "activity (useful)" in told and "gender (sensitive)" in told
    rows = json.loads((released / "budget.json").read_text())
    assert [row["epsilon"] for row in rows] == [None, 0.5, 30.0]
    gender = [row["scores"]["gender"]["balanced_accuracy"] for row in rows]
    assert gender[0] > 0.9 and max(gender[1:]) < 0.8
    assert (released / "budget.svg").read_bytes().startswith(b"<?xml")
    page = (released / "budget.html").read_text()
    assert "preserve activity, hide gender" in page and "any two windows" in page
    activity = rows[2]["scores"]["activity"]
    assert f"{100 * activity['balanced_accuracy']:.1f}" in page
    # Each gender has a single person here.
    assert (
        "person" in rows[2]["scores"]["gender"]["not_measured"]
        and "not measured" in page
    )
    assert app.main(words) == 2
    assert "--overwrite" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--epsilons", "1,two"], "--epsilons must be numbers"),
        (["--epsilons", "0"], "epsilon must be finite and > 0"),
        (["--epsilons", "1", "--attacker", "nobody"], "attacks must be among"),
        (["--epsilons", "1", "--attacker", "stream"], "--attacker must be a model"),
    ],
)
def test_a_curve_says_what_was_wrong(words, message, released, capsys):
    assert app.main(["budget-curve", str(released), "--overwrite", *words]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_curve_of_what_guarantees_nothing(folder, capsys):
    assert app.main(["budget-curve", str(folder), "--epsilons", "1"]) == 2
    assert (
        "epsilon must come from a run with a guarantee, got a run of blinder"
        in capsys.readouterr().err
    )


def test_a_report_says_what_is_guaranteed(released, file):
    run, windows = run_folder.open_run(released), np.load(file)["windows"]
    what, clipped = release.headline(run, windows)
    said = "Guarantee: epsilon 2 for each window of 8 s, between any two windows"
    assert what.startswith(said) and "were clipped to the public range" in clipped
    bounds = {"low": (-1.0, -1.0), "high": (1.0, 1.0)}
    bare = methods.deeprotect(run.spec, mechanism="none", **bounds)
    told = release.headline(dataclasses.replace(run, method=bare), windows)
    assert told == ["No guarantee: no noise."]
    assert release.headline(object(), windows) == []
