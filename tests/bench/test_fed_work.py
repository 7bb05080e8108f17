"""What a process says of the memory that it held."""

import mmap

import numpy as np
import pytest


def test_memory_that_was_given_back_is_forgotten(bench):
    work = bench("_fed_work")
    work.forget_held()
    start = work.held_mib()
    if not start:
        pytest.skip("Linux alone says what a process held")
    # Asked of the system itself: an allocator may have as much lying about.
    pages = mmap.mmap(-1, 1 << 28)  # 256 MiB.
    np.frombuffer(pages, np.uint8)[:] = 1
    most = work.held_mib()
    pages.close()
    # It outlives what was given back; the system counts pages in batches.
    assert work.held_mib() == pytest.approx(most, abs=2) and most > start + 200
    work.forget_held()
    assert work.held_mib() < most - 200
