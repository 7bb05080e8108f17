"""What a process says of the memory that it held."""

import numpy as np
import pytest


def test_memory_that_was_given_back_is_forgotten(bench):
    work = bench("_fed_work")
    work.forget_held()
    start = work.held_mib()
    if not start:
        pytest.skip("Linux alone says what a process held")
    numbers = np.ones(1 << 25)  # 256 MiB.
    most = work.held_mib()
    del numbers
    # It outlives what was given back; the system counts pages in batches.
    assert work.held_mib() == pytest.approx(most, abs=2) and most > start + 200
    work.forget_held()
    assert work.held_mib() < most - 200
