"""The difference between a graph's windows and JAX's, by hand."""

import numpy as np

from jaxanon.exporting import agreement


def test_the_furthest_sample_counts_in_deviations_of_its_channel():
    """In windows of zeros one sample is off by 6, with a std of 2; NaN is infinite."""
    inputs = [{"windows": np.zeros((1, 4, 2), np.float32)} for _ in range(3)]
    made = np.zeros((3, 4, 2), np.float32)
    made[1, 2] = -1.0, 6.0
    made[2, 0, 0] = np.nan
    found = agreement.max_deviations(lambda windows: windows, made, inputs, (0.5, 2.0))
    np.testing.assert_array_equal(found, [0, 3, np.inf])
