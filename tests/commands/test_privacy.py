"""``jaxanon privacy``: what noise costs, and which noise a budget needs."""

import re

import pytest

from jaxanon import cli
from jaxanon.privacy import SampledGaussian, epsilon_spent, noise_multiplier_for


@pytest.fixture
def ask(capsys):
    """``(words) -> (exit status, what was said)``."""

    def ask(words):
        status = cli.main(["privacy", *words.split()])
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
        "--noise-multiplier 1.1 --records 400 --batch 20 --rounds 3 --local-steps 5"
    )
    assert status == 0 and "Noisy sums: 15, each of a sample of 0.05" in told
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
    assert status == 0 and "cost a budget of their own" in told
    claimed, held = cells(told, "claimed for all"), cells(told, "C")
    assert claimed[:1] == [1.0] and held[0] == 0.4664 and held[1] > 2 * claimed[1]


def test_a_delta_that_is_too_large_is_told_of(ask):
    status, told = ask("--epsilon 2 --records 100 --delta 0.1")
    assert status == 0 and "Warning: delta 0.1 is no less than 1 / 100" in told


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "or either --noise-multiplier"),
        ("--epsilon 1 --noise-multiplier 1", "or either --noise-multiplier"),
        ("--epsilon 1 --scores .5", "--scores are of layers"),
        ("--noise-multiplier 1 --scores .5 .5", "scores must be 1, one for each"),
        ("--noise-multiplier 0", "noise_multiplier must be a finite number > 0"),
        ("--epsilon -1", "epsilon must be a finite number > 0"),
        ("--epsilon 1 --rounds 0", "--rounds must be >= 1, got 0"),
        ("--epsilon 1 --batch 3", "--batch is a part of the --records"),
        ("--epsilon 1 --records 9 --batch 10", "between 1 and the 9 records, got 10"),
        (
            "--epsilon 1 --records 9 --batch 3 --sampling-probability .5",
            "say the same thing",
        ),
        ("--epsilon 1 --sampling-probability 2", "must be in (0, 1], got 2.0"),
        ("--epsilon 1 --delta 1", "delta must be below 1"),
        ("gone/run", "gone/run does not exist; name the folder of a run"),
    ],
)
def test_says_what_was_wrong(words, message, ask):
    status, told = ask(words)
    assert status == 2 and message in told
