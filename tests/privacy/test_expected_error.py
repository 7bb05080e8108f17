"""Expected errors, against drawn noise."""

import numpy as np
import pytest

from jaxanon import kernels, privacy

RNG = np.random.default_rng(0)
DRAWS = 20_000


@pytest.mark.parametrize(("inputs", "features"), [(30, 7), (8, 8), (12, 1)])
def test_noise_is_as_large_as_expected(inputs, features):
    """Within 2 %, which would detect a scale that is off by a tenth."""
    raw = RNG.laplace(scale=inputs * 0.5 / 2.0, size=(DRAWS, inputs))
    want = privacy.raw_error(inputs, 0.5, 2.0)
    assert np.abs(raw).sum(1).mean() == pytest.approx(want, rel=0.02)
    noise = RNG.laplace(scale=1.5 / 2.0, size=(DRAWS, features))
    want = privacy.feature_error(features, 1.5, 2.0)
    assert np.abs(noise).sum(1).mean() == pytest.approx(want, rel=0.03)
    rows = np.asarray(kernels.orthonormal_rows(RNG.normal(size=(features, inputs))))
    rebuilt = np.abs(noise @ rows).sum(1).mean()
    bound = privacy.rebuilt_error(inputs, features, 1.5, 2.0)
    assert 0.4 * bound < rebuilt <= bound


def test_by_hand():
    assert privacy.raw_error(2, 3.0, 4.0) == 3.0  # 2 numbers of scale 6 / 4 each.
    assert privacy.feature_error(3, 2.0, 4.0) == 1.5
    ratio = privacy.raw_error(30, 1.0, 1.0) / privacy.feature_error(7, 7**0.5 * 30, 1.0)
    assert ratio == pytest.approx(30 / 7**1.5) != pytest.approx(30 / 7)


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (ValueError, lambda: privacy.raw_error(0, 1.0, 1.0)),
        (ValueError, lambda: privacy.raw_error(3, 1.0, 0.0)),
        (TypeError, lambda: privacy.feature_error(1.5, 1.0, 1.0)),
        (ValueError, lambda: privacy.feature_error(3, 0.0, 1.0)),
        (ValueError, lambda: privacy.rebuilt_error(3, 4, 1.0, 1.0)),
    ],
)
def test_says_what_was_wrong(error, call):
    with pytest.raises(error):
        call()
