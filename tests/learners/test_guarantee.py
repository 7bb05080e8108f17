"""Tests of the learners' guarantees, and that training stops at the budget's end."""

import types

import jax
import numpy as np
import pytest

import jaxanon as ja
from jaxanon.cli import app
from jaxanon.privacy import SampledGaussian, epsilon_spent, ledger
from jaxanon.privacy import guarantee as guarantees
from jaxanon.training import metrics_log, run_folder, trainer

pytestmark = pytest.mark.slow

PRIVATE = pytest.mark.parametrize("name", ["atlas", "fedsgd_ldp"])


@PRIVATE
def test_all_rounds_together_spend_what_was_asked_for(name, small):
    learner = small(name, epsilon=3.0, delta=1e-4, max_rounds=7, local_steps=3)
    guarantee = learner.guarantee
    spent = [guarantee.epsilon(rounds) for rounds in (0, 3, 7)]
    assert spent[0] == 0.0 < spent[1] < spent[2] and 2.97 < spent[2] <= 3.0
    free = SampledGaussian(
        noise_multiplier=guarantee.noise_multiplier,
        sampling_probability=4 / 64,
        steps=21,
    )
    assert epsilon_spent([free], 1e-4) <= spent[2] * (1 + 1e-6)
    hyper = learner.init(jax.random.key(0)).hyper
    assert float(hyper["noise_multiplier"]) == pytest.approx(guarantee.noise_multiplier)


@PRIVATE
def test_training_stops_where_the_budget_ends(name, small, data, tmp_path):
    learner = small(name)
    with pytest.warns(
        UserWarning, match="epochs should be at most 3, .* training stops after"
    ):
        run = trainer.train(
            learner, data, epochs=9, output_dir=tmp_path / "run", progress=False
        )
    assert int(run.state.round) == 3
    with pytest.warns(UserWarning, match="got 10; .* Set max_rounds=10"):
        again = trainer.train(
            learner,
            data,
            epochs=10,
            output_dir=tmp_path / "run",
            resume=True,
            progress=False,
        )
    assert int(again.state.round) == 3
    found = run_folder.open_run(tmp_path / "run")
    privacy = ja.evaluate(found, data)["privacy"]
    assert privacy["steps"] == 6 and 1.97 < privacy["epsilon"] <= 2.0
    page = (tmp_path / "run" / "report.html").read_text()
    assert "satisfies epsilon 2" in page and "Not covered: the seed" in page
    assert "an example of a client that has others more or less" in page


def test_noise_as_published_tells_what_its_scores_left_of_it(trained, data, tmp_path):
    """(1 / .9² + 1 / .3²) / 2 = 6.17: 0.4025 of z* remains at every step."""
    public = {"dense_1": 0.9, "dense_2": 0.3}
    settings = {
        "noise_interpretation": "C",
        "scores": "public",
        "public_scores": public,
    }
    run = trained("atlas", epochs=2, output_dir=tmp_path / "run", **settings)
    report = ja.evaluate(run, data)
    privacy = report["privacy"]
    left = (2 / (0.9**-2 + 0.3**-2)) ** 0.5
    true = privacy["true"]
    assert true["noise_multiplier"] == pytest.approx(left * privacy["noise_multiplier"])
    steps = SampledGaussian(
        noise_multiplier=true["noise_multiplier"], sampling_probability=4 / 64, steps=4
    )
    assert true["accountant"] == "rdp"  # With so little noise.
    want = epsilon_spent([steps], 1e-5, accountant="rdp")
    assert true["epsilon"] == pytest.approx(want, rel=0.02)
    assert true["epsilon"] > 2 * privacy["epsilon"]
    assert ledger.read(tmp_path / "run")["true"] == pytest.approx(true)
    page = (tmp_path / "run" / "report.html").read_text()
    assert f"scores leave {true['noise_multiplier']:.3g} in the worst case" in page
    # With learned masks: the state's ε, at most the claimed one.
    learned = trained("atlas", epochs=2, noise_interpretation="C")
    told = ledger.of_run(learned.method, learned.state).report(2)
    least = float(learned.state.own.least.min())
    assert least < 0.7  # Initial scores are 0.6.
    assert told["true"]["noise_multiplier"] == pytest.approx(
        least * told["noise_multiplier"]
    )
    assert ja.evaluate(trained("atlas", epochs=1), data)["privacy"]["true"] is None


def test_a_form_that_breaks_its_claim_says_so(trained, data, tmp_path):
    for settings in ({"noise_interpretation": "C"}, {"scores": "published"}):
        run = trained("atlas", epochs=1, **settings)
        report = ja.evaluate(run, data, output_dir=tmp_path)
        assert report["privacy"]["holds"] is False
        page = (tmp_path / "report.html").read_text()
        assert "No guarantee: this variant claims" in page
    assert ja.evaluate(trained("atlas", epochs=1), data)["privacy"]["holds"] is True


@pytest.mark.parametrize("name", ["atlas", "dp_fedavg", "fedsgd_ldp", "ldp_fl"])
def test_without_epsilon_there_is_no_noise(name, trained, data, tmp_path):
    run = trained(name, epsilon=0.0, epochs=4)
    assert int(run.state.round) == 4  # Without a budget, training does not stop.
    assert ja.evaluate(run, data, output_dir=tmp_path)["privacy"] is None
    assert "Training added no noise" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("name", ["atlas", "dp_fedavg", "ldp_fl"])
def test_what_was_spent_is_told_while_training_goes_on(
    name, small, data, tmp_path, monkeypatch, capsys
):
    """A run that is killed in its third round, after two checkpoints."""
    append, folder = metrics_log.append, tmp_path / "run"

    def killed(out, row):
        if row["round"] == 3:
            raise KeyboardInterrupt
        append(out, row)

    monkeypatch.setattr(metrics_log, "append", killed)
    options = {"epochs": 3, "output_dir": folder, "progress": False}
    with pytest.raises(KeyboardInterrupt):
        trainer.train(small(name), data, checkpoint_s=0.0, **options)
    early = ledger.read(folder)
    assert early["rounds"] == {"done": 2, "asked": 3} and early["accountant"] == "rdp"
    exact = small(name).guarantee.epsilon(2)
    assert exact * (1 - 1e-6) <= early["epsilon"] < 1.5 * exact
    assert app.main(["privacy", str(folder)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "Unfinished: 2 of 3 rounds. The guarantee covers these rounds" in told
    run = run_folder.open_run(folder)
    assert run.unfinished == {"done": 2.0, "asked": 3}
    ja.evaluate(run, data)
    assert "Unfinished: 2 of 3 epochs" in (folder / "report.html").read_text()
    monkeypatch.undo()
    run = trainer.train(small(name), data, resume=True, **options)
    late = ledger.read(folder)
    assert late["rounds"] == {"done": 3, "asked": 3} and run.unfinished is None
    assert late["epsilon"] == pytest.approx(small(name).guarantee.epsilon(3), rel=1e-5)
    assert ja.evaluate(run, data)["method"]["unfinished"] is None


def test_an_epsilon_that_promises_nothing_is_warned_of(small):
    whole = {"atlas": {}, "dp_fedavg": {}, "fedsgd_ldp": {}, "ldp_fl": {}}
    for name, settings in whole.items():
        with pytest.warns(UserWarning, match="epsilon should be at most 10, got 10.5"):
            small(name, epsilon=10.5, **settings)
        small(name, epsilon=10.0)


def test_nobody_takes_the_noise_off_and_keeps_the_claim(small, data):
    with pytest.raises(ValueError, match="noise_multiplier follows from epsilon"):
        trainer.train(
            small("fedsgd_ldp"), data, epochs=1, hyper={"noise_multiplier": 0.0}
        )
    with pytest.warns(UserWarning, match="delta should be well below 1 / 64"):
        small("fedsgd_ldp", delta=0.02)


@pytest.mark.parametrize("name", ["dp_fedavg", "fedsgd_ldp", "ldp_fl"])
def test_a_ledger_states_the_noise_of_the_run_not_of_the_settings(name, small):
    """Half the noise costs more, whatever the settings would have bought."""
    learner = small(name)
    state = learner.init(jax.random.key(0))
    rests_on = learner.guarantee.rests_on
    factor = 2.0 if rests_on == "weight_epsilon" else 0.5
    less = state.hyper | {rests_on: factor * state.hyper[rests_on]}
    report = ledger.privacy_report(learner, state._replace(hyper=less), 3)
    assert report[rests_on] == pytest.approx(float(less[rests_on]))
    assert report["epsilon"] > 1.5 * learner.guarantee.epsilon(3)


def test_epochs_within_a_budget_are_whole_ones():
    """A budget of 7 rounds holds 3 epochs of 2."""
    paid = types.SimpleNamespace(rounds=7, rounds_per_epoch=2, setting="max_rounds")
    method = types.SimpleNamespace(guarantee=paid)
    assert guarantees.epochs_within_budget(method, 3) == 3
    with pytest.warns(UserWarning, match="at most 3, .* got 4; training stops after 3"):
        assert guarantees.epochs_within_budget(method, 4) == 3


def test_more_windows_than_were_counted_for_are_refused(trained, data):
    most = np.bincount(data.train.labels["subject"]).max()
    with pytest.raises(ValueError, match=f"set max_examples to {most} or more"):
        trained("fedsgd_ldp", max_examples=int(most) - 1)


def test_a_batch_is_of_the_records_at_most(small):
    with pytest.raises(ValueError, match="batch_size must be at most max_examples, 64"):
        small("fedsgd_ldp", batch_size=99)


def test_where_renyi_cannot_tell_the_other_accountant_does(tmp_path):
    def report(done, accountant="pld"):
        if accountant == "rdp":
            raise ValueError("these lots have no divergence")
        return {"accountant": accountant, "epsilon": float(done)}

    guarantee = types.SimpleNamespace(report=report)
    guarantee.trained_with = lambda state: guarantee
    method = types.SimpleNamespace(guarantee=guarantee)
    state = types.SimpleNamespace(round=2)
    ledger.write(tmp_path, method, state, asked=5, accountant="rdp")
    rounds = {"done": 2, "asked": 5}
    want = {"accountant": "pld", "epsilon": 2.0, "rounds": rounds}
    assert ledger.read(tmp_path) == want
