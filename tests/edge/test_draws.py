"""Draws have their claimed distributions, and the tests reject other distributions."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from jaxanon.edge import draws


@pytest.fixture(autouse=True)
def seeded(monkeypatch):
    """Makes entropy deterministic, so that failures repeat."""
    rng = np.random.default_rng(7)
    monkeypatch.setattr(os, "urandom", rng.bytes)


def fits(found, law):
    """Returns whether the Kolmogorov-Smirnov test accepts the distribution."""
    return stats.kstest(np.ravel(found).astype(np.float64), law).pvalue > 1e-3


@pytest.mark.parametrize(
    ("draw", "law", "other"),
    [
        (draws.normal, stats.norm.cdf, stats.norm(0.05, 1.0).cdf),
        (draws.normal, stats.norm.cdf, stats.norm(0.0, 1.05).cdf),
        (draws.uniform, stats.uniform.cdf, stats.uniform(0.02, 1).cdf),
        (draws.gumbel, stats.gumbel_r.cdf, stats.gumbel_r(0.06, 1).cdf),
        (draws.gumbel, stats.gumbel_r.cdf, stats.gumbel_l.cdf),
    ],
)
def test_continuous_draws_follow_their_law_and_no_other(draw, law, other):
    found = draw((100, 401, 1))  # An odd number of them.
    assert found.dtype == np.float32 and found.shape == (100, 401, 1)
    assert np.isfinite(found).all()
    assert fits(found, law)
    assert not fits(found, other)


def test_normal_draws_do_not_go_by_pairs():
    found = draws.normal((2, 20_000))
    assert abs(stats.spearmanr(*found).statistic) < 0.03
    assert abs(stats.spearmanr(*np.abs(found)).statistic) < 0.03


def test_uniform_draws_lie_on_their_grid():
    found = draws.uniform((10_000,)).astype(np.float64) * 2**24
    np.testing.assert_array_equal(found, np.floor(found))
    assert 0 <= found.min() and found.max() < 2**24
    assert (found % 2).mean() == pytest.approx(0.5, abs=0.03)  # Including the last bit.


def expected(found, probabilities):
    """Returns the p-value of counts under a chi-squared test."""
    return stats.chisquare(found, probabilities / probabilities.sum() * found.sum())[1]


def test_whole_numbers_are_uniform():
    found = draws.integers((7, 6000), -2, 5)
    assert found.dtype == np.int32
    counts = np.bincount(found.ravel() + 2, minlength=7)
    assert len(counts) == 7
    assert expected(counts, np.ones(7)) > 1e-3
    assert expected(counts, np.array([1.2, 1, 1, 1, 1, 1, 1])) < 1e-3
    assert draws.integers((2, 3), -(2**31), 2**31).shape == (2, 3)


def test_the_rest_of_a_division_is_drawn_again(monkeypatch):
    """2^64 has 2^64 mod 10 = 6 surplus values: 0 to 5 are rejected, 6 gives 6."""
    handed = iter([[5, 6, 2**64 - 1], [0], [17]])
    given = lambda size: np.array(next(handed), np.uint64).tobytes()
    monkeypatch.setattr(os, "urandom", given)
    np.testing.assert_array_equal(draws.below([10, 10, 10]), [7, 6, 5])


@pytest.mark.parametrize("scale", [1, 3, 50])
def test_discrete_laplace_is_what_its_formula_says(scale):
    found = draws.discrete_laplace((200, 200), scale)
    assert found.dtype == np.int32 and found.shape == (200, 200)
    most = 3 * scale
    values = np.arange(-most, most + 1)
    counts = [(found == value).sum() for value in values]
    counts = np.array([*counts, (np.abs(found) > most).sum()])

    def law(scale):
        ratio = math.exp(-1 / scale)
        inside = (1 - ratio) / (1 + ratio) * ratio ** np.abs(values)
        return np.array([*inside, 1 - inside.sum()])

    assert expected(counts, law(scale)) > 1e-3
    assert expected(counts, law(scale * 1.1)) < 1e-3
    # Zero is twice as likely, as without rejecting "minus zero".
    doubled = law(scale)
    doubled[most] *= 2
    assert expected(counts, doubled) < 1e-3


def test_a_wide_discrete_laplace_spreads_as_far_as_it_should():
    found = draws.discrete_laplace((20_000,), 2**30).astype(np.float64)
    assert np.median(np.abs(found)) == pytest.approx(math.log(2) * 2**30, rel=0.03)
    assert np.abs(found).max() == 2**31 - 1  # Clipped instead of wrapped.


def test_coins_fall_with_exact_probabilities():
    numerators = np.repeat(np.array([0, 1, 3, 4], np.uint64), 20_000)
    heads = draws._heads(numerators, np.full(80_000, 4, np.uint64)).reshape(4, -1)
    for found, number in zip(heads, (0, 1, 3, 4), strict=True):
        wanted = math.exp(-number / 4)
        assert found.mean() == pytest.approx(wanted, abs=0.012)


@pytest.mark.parametrize("law", draws.LAWS)
def test_every_law_is_drawn_anew_from_the_system(law, monkeypatch):
    monkeypatch.undo()
    asked, system = [], os.urandom
    monkeypatch.setattr(os, "urandom", lambda n: asked.append(n) or system(n))
    described = {"name": "a", "law": law, "shape": [1, 40]}
    described |= {"low": 0, "high": 1000, "scale": 1000}
    first, second = (draws.draw(draws.checked(described)) for _ in range(2))
    assert first.shape == (1, 40)
    assert (first != second).sum() > 30
    assert sum(asked) >= 2 * 40 * 8  # Bytes: no other call draws.
    wanted = np.int32 if "int32" in draws.LAWS[law][2] else np.float32
    assert first.dtype == wanted


FORKS = """
import os
from jaxanon.edge import draws
read, write = os.pipe()
draws.normal((4,))
if not (child := os.fork()):
    os.write(write, draws.uniform((4,)).tobytes())
    os._exit(0)
os.waitpid(child, 0)
assert os.read(read, 16) != draws.uniform((4,)).tobytes()
"""


def test_a_fork_draws_something_else():
    # In a process without JAX, whose threads would not survive a fork.
    subprocess.run([sys.executable, "-P", "-c", FORKS], check=True)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"law": "cauchy"}, "got 'cauchy'"),
        ({"law": ["normal"]}, "run pip install --upgrade jaxanon"),
        ({"low": None}, "must have integers shape, low, high"),
        ({"high": 2.5}, "must have integers shape, low, high"),
        ({"shape": 3}, "must have integers shape, low, high"),
        ({"high": 0}, "low < high and scale > 0 within int32"),
        ({"high": 2**31 + 1}, "low < high and scale > 0 within int32"),
        ({"shape": [-1]}, "must have a shape >= 0"),
        ({"law": "discrete laplace", "scale": 0}, "scale > 0 within int32"),
    ],
)
def test_what_cannot_be_drawn_is_refused(changed, message):
    described = {"name": "a", "law": "integers", "shape": [1], "low": 0, "high": 2}
    with pytest.raises(ValueError) as raised:
        draws.checked(described | changed)
    assert message in str(raised.value)
