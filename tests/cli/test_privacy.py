"""``jaxanon privacy``: what noise costs, and which noise a budget needs."""

import json
import re

import pytest

from jaxanon.cli import app
from jaxanon.privacy import (
    SampledGaussian,
    epsilon_spent,
    noise_multiplier_for,
    response_epsilon_for,
    responses_spent,
)

pytestmark = pytest.mark.slow
FEW = "--max-rounds 1 --max-examples 9 --batch-size 9"  # Whose noise is soon found.


@pytest.fixture
def ask(capsys):
    """``(words) -> (exit status, what was said)``."""

    def ask(words):
        status = app.main(["privacy", *words.split()])
        told = capsys.readouterr()
        return status, " ".join((told.out + told.err).split())

    return ask


def cells(told, name):
    """The numbers of the row of a table that begins with a name."""
    row = next(line for line in told.split("│ ") if line.startswith(f"{name} "))
    after = told[told.index(row) + len(row) :]
    return [float(x) for x in re.findall(r"│ ([0-9.]+)", "│ " + after)]


def test_what_noise_spends(ask):
    status, told = ask(
        "--noise-multiplier 1.1 --num-examples 400 --batch-size 20 "
        "--rounds 3 --local-steps 5"
    )
    assert status == 0 and "Noisy sums: 15, each over a fraction 0.05" in told
    each = SampledGaussian(noise_multiplier=1.1, sampling_probability=0.05, steps=15)
    assert cells(told, "pld")[0] == pytest.approx(epsilon_spent([each], 1e-5), rel=1e-3)


def test_what_a_budget_needs(ask):
    status, told = ask("--epsilon 2 --delta 1e-6 --sampling-probability 0.2 --rounds 4")
    assert status == 0
    want = noise_multiplier_for(2.0, 1e-6, sampling_probability=0.2, steps=4)
    assert cells(told, "pld")[0] == pytest.approx(want, rel=1e-3)
    assert cells(told, "rdp")[0] > want


def test_what_atlas_claims_and_what_holds(ask):
    status, told = ask("--noise-multiplier 2 2 2 2 --scores .9 .5 .7 .3")
    assert status == 0 and "require a separate budget" in told
    claimed, held = cells(told, "claimed"), cells(told, "C")
    assert claimed[:1] == [1.0] and held[0] == 0.4664 and held[1] > 2 * claimed[1]


def test_json_is_all_of_stdout(capsys):
    """Both tables as numbers; sentences and tables go to stderr."""
    words = "--noise-multiplier 1.1 --sampling-probability 0.05 --rounds 15 --json"
    assert app.main(["privacy", *words.split()]) == 0
    told = capsys.readouterr()
    each = SampledGaussian(noise_multiplier=1.1, sampling_probability=0.05, steps=15)
    result = json.loads(told.out)
    assert result["epsilon"]["pld"] == pytest.approx(epsilon_spent([each], 1e-5))
    assert result["steps"] == 15 and "Noisy sums" in told.err
    words = "atlas --privacy-unit client --epsilon 4 --max-rounds 3 --clients 9 --json"
    assert app.main(["privacy", *words.split()]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["epsilon"] == pytest.approx(4.0, rel=0.01) and report["steps"] == 3


def test_a_delta_that_is_too_large_is_told_of(ask):
    status, told = ask("--epsilon 2 --num-examples 100 --delta 0.1")
    assert status == 0 and "Warning: delta should be well below 1 / 100" in told


def test_what_a_client_of_atlas_needs(ask):
    """Three updates that may be two clip norms apart: twice the noise of one apart."""
    status, told = ask(
        "atlas --privacy-unit client --epsilon 4 --max-rounds 3 --clients 100"
    )
    assert (
        status == 0 and "satisfies epsilon 4 at delta 1e-05 for any other data" in told
    )
    want = 2 * noise_multiplier_for(4.0, 1e-5, steps=3)
    assert cells(told, "all releases of a step")[0] == pytest.approx(want, rel=2e-3)
    # And back: what that noise spends, in three rounds and in six.
    known = f"atlas --privacy-unit client --clients 100 --noise-multiplier {want}"
    assert "satisfies epsilon 4 at" in ask(f"{known} --max-rounds 3")[1]
    more = [SampledGaussian(noise_multiplier=want / 2, steps=6)]
    spent = f"epsilon {epsilon_spent(more, 1e-5):.3g} "
    assert spent in ask(f"{known} --max-rounds 6")[1]


def test_what_released_scores_need_beside_the_steps(ask):
    lots = "--max-examples 64 --batch-size 16 --max-rounds 3 --local-steps 2 "
    lots += "--epsilon 2 --delta .001"
    status, told = ask(f"atlas --scores released --score-fraction .2 {lots}")
    assert status == 0 and "; scores alone: 0.4" in told
    scores, steps = (
        cells(told, "scores, once per round")[0],
        cells(told, "all releases")[0],
    )
    each = [
        SampledGaussian(noise_multiplier=z, sampling_probability=1 / 4, steps=count)
        for z, count in ((steps, 6), (scores, 3))
    ]
    assert epsilon_spent(each, 1e-3) == pytest.approx(2.0, rel=0.01)
    assert steps > cells(ask(f"atlas {lots}")[1], "all releases of a step")[0]


def test_what_atlas_as_published_leaves_of_its_noise(ask):
    public = "--scores public --public-scores a .9 b .5 c .7 d .3"
    known = "--privacy-unit client --max-rounds 1 --noise-multiplier 2"
    status, told = ask(f"atlas --noise-interpretation C {public} {known}")
    assert status == 0 and "claims epsilon 4.38" in told
    assert "the noise multiplier 2, but its scores leave 0.933" in told


def test_what_dp_fedavg_spends_on_sums_and_on_counts(ask):
    """Half of the clients join a round: 1 / z² = 1 / s² + 1 / (2 c)²."""
    status, told = ask(
        "dp_fedavg --clients 50 --client-fraction .5 --max-rounds 4 --epsilon 3"
    )
    assert status == 0 and "a client with all its windows more or less" in told
    want = noise_multiplier_for(3.0, 1e-5, sampling_probability=0.5, steps=4)
    joint = cells(told, "all releases of a step")[0]
    assert joint == pytest.approx(want, rel=2e-3)
    sums, counts = cells(told, "of these, sums")[0], cells(told, "of these, counts")[0]
    assert sums**-2 + (2 * counts) ** -2 == pytest.approx(joint**-2, rel=2e-3)
    assert (2 * counts) ** -2 == pytest.approx(0.05 * joint**-2, rel=2e-3)


def test_what_ldp_fl_spends_on_every_weight(ask):
    status, told = ask("ldp_fl --weights 1000 --max-rounds 2 --epsilon 2")
    each = response_epsilon_for(2.0, 2000, 1e-5)
    assert status == 0 and "satisfies epsilon 2 " in told
    assert cells(told, "each weight")[0] == pytest.approx(each, rel=1e-3)
    published = ask(
        "ldp_fl --weights 1000 --max-rounds 2 --epsilon 1 --privacy-unit weight"
    )[1]
    assert "claims epsilon 1, that of one of its noisy weights" in published
    together = responses_spent(1.0, 2000, 1e-5)
    assert f"together they cost epsilon {together:,.3g} at" in published
    spent = responses_spent(0.01, 2000, 1e-5)
    known = ask("ldp_fl --weights 1000 --max-rounds 2 --weight-epsilon 0.01")[1]
    assert f"satisfies epsilon {spent:.3g} at" in known


def test_what_noisy_steps_of_fedsgd_ldp_need(ask):
    status, told = ask(
        "fedsgd_ldp --max-examples 40 --batch-size 20 --max-rounds 3 --local-steps 5"
    )
    want = noise_multiplier_for(2.0, 1e-5, sampling_probability=0.5, steps=15)
    assert status == 0
    assert cells(told, "all releases of a step")[0] == pytest.approx(want, rel=2e-3)
    few = "fedsgd_ldp --max-examples 20 --batch-size 20 --max-rounds 1 --delta .1"
    for words in (few, f"{few} --noise-multiplier 2"):
        assert "Warning: delta should be well below 1 / 20" in ask(words)[1]


@pytest.mark.parametrize("words", ["--epsilon 11", "ldp_fl --weights 9 --epsilon 11"])
def test_an_epsilon_that_promises_nothing_is_told_of(words, ask):
    status, told = ask(words)
    assert status == 0 and "Warning: epsilon should be at most 10, got 11" in told


@pytest.mark.parametrize("learner", ["", "atlas --privacy-unit client --max-rounds 1 "])
def test_so_is_one_that_little_noise_spends(learner, ask):
    assert "Warning: epsilon" in ask(f"{learner}--noise-multiplier .4")[1]
    assert "Warning" not in ask(f"{learner}--noise-multiplier 4")[1]


def test_a_word_that_is_a_learner_and_a_run_is_neither(ask, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tmp_path.joinpath("ldp_fl").mkdir()
    assert ask("ldp_fl --weights 9")[0] == 0
    tmp_path.joinpath("ldp_fl", "privacy.json").write_text("{}")
    status, told = ask("ldp_fl --weights 9")
    assert status == 2 and "write ./ldp_fl for the folder" in told


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "or --noise-multiplier to compute"),
        ("--epsilon 1 --noise-multiplier 1", "or --noise-multiplier to compute"),
        ("--epsilon 1 --scores .5", "--scores requires --noise-multiplier"),
        (
            "--noise-multiplier 1 --scores .5 .5",
            "scores must have 1 entries, one for each",
        ),
        ("--noise-multiplier 0", "noise_multiplier must be finite and > 0"),
        ("--epsilon -1", "epsilon must be finite and > 0"),
        ("--epsilon 1 --rounds 0", "--rounds must be >= 1, got 0"),
        ("--epsilon 1 --batch-size 3", "--batch-size requires --num-examples"),
        ("--epsilon 1 --num-examples 9 --batch-size 10", "between 1 and 9, got 10"),
        (
            "--epsilon 1 --num-examples 9 --batch-size 3 --sampling-probability .5",
            "exclude each other",
        ),
        ("--epsilon 1 --sampling-probability 2", "must be in (0, 1], got 2.0"),
        ("--epsilon 1 --delta 1", "delta must be below 1"),
        (
            "fedavg",
            "got 'fedavg', which trains without noise",
        ),
        ("atlas --epsilon 0", "epsilon must be > 0, got 0"),
        ("dp_fedavg", "pass --clients"),
        ("ldp_fl", "pass --weights"),
        ("ldp_fl --weights 0", "--weights must be >= 1, got 0"),
        (f"atlas {FEW} --score-multiplier 1", "omit --score-multiplier"),
        (
            f"atlas {FEW} --scores released --score-multiplier 1",
            "pass both --noise-multiplier and --score-multiplier",
        ),
        (
            "atlas --max-rounds 1 --noise-multiplier 0",
            "must be finite and > 0, got 0.0",
        ),
        ("gone/run", "gone/run does not exist; give the folder of a run"),
        ("run --epsilon 1", "run records the privacy of its run; leave the options"),
        ("run --delta 1e-6", "run records the privacy of its run; leave the options"),
        (
            "run --num-examples 9",
            "run records the privacy of its run; leave the options",
        ),
    ],
)
def test_says_what_was_wrong(words, message, ask):
    status, told = ask(words)
    assert status == 2 and message in told


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf"])
@pytest.mark.parametrize("name", ["epsilon", "noise-multiplier"])
def test_what_is_not_above_zero_is_refused_before_a_word(name, value, capsys):
    assert app.main(["privacy", f"--{name}", value]) == 2
    said = capsys.readouterr()
    assert (
        not said.out and f"{name.replace('-', '_')} must be finite and > 0" in said.err
    )
