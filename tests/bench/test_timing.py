"""What a rate is measured on, without a clock."""

import importlib.util
import pathlib

import jax
import pytest

SCRIPT = pathlib.Path(__file__).parents[2] / "bench" / "_timing.py"


@pytest.fixture
def timing():
    if not SCRIPT.exists():
        pytest.skip("the benchmarks are not beside the tests")
    spec = importlib.util.spec_from_file_location("_timing", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_copy_bandwidth_keeps_to_one_piece_of_memory(timing, monkeypatch):
    passes, places = [], []

    def in_half_a_second(fn, *args, repeats):
        # The results are kept, so that memory is the same only where it was donated.
        for _ in range(1 + repeats):
            passes.append(jax.block_until_ready(fn(*args)))
            places.append(passes[-1].unsafe_buffer_pointer())
        return timing.Timed(0.5, 0.0, passes[-1])

    monkeypatch.setattr(timing, "timed", in_half_a_second)
    # Read once and written once, in half a second.
    assert timing.copy_bandwidth(1 << 20, repeats=3) == 4 << 20
    assert len(places) == 4 and len(set(places)) == 1
    assert passes[-1].nbytes == 1 << 20 and (passes[-1] == 4).all()
