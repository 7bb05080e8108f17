"""Fixtures that load and run benchmarks."""

import contextlib
import importlib
import io
import os
import pathlib
import runpy
import sys
import warnings

import jax
import pytest
from hasty import hasty

BENCH = pathlib.Path(__file__).parents[2] / "bench"
# JAX settings of the tests that benchmarks do not use.
STRICT = {"jax_numpy_rank_promotion": "allow", "jax_debug_key_reuse": False}


@pytest.fixture(scope="module")
def bench():
    """Imports a module of the bench folder by name."""
    sys.path.insert(0, str(BENCH))
    yield importlib.import_module
    sys.path.remove(str(BENCH))


@pytest.fixture
def unmeasured(bench, monkeypatch):
    """Measures the machine's limits on tiny arrays, for tests that ignore them."""
    monkeypatch.setattr(bench("harness.timing"), "FILLS", ((64, 1 << 12),) * 2)


@pytest.fixture(scope="module")
def run_script(bench):
    """Returns ``(benchmark, *words) -> output`` of ``python bench benchmark words``.

    Runs in this process, which has already loaded most modules.
    """

    def run(benchmark, *words):
        given = sys.argv
        cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
        strict = {name: getattr(jax.config, name) for name in STRICT}
        printed = io.StringIO()
        try:
            for name, value in STRICT.items():
                jax.config.update(name, value)
            sys.argv = [str(BENCH / "__main__.py"), benchmark, *map(str, words)]
            with (
                warnings.catch_warnings(),
                contextlib.redirect_stdout(printed),
                hasty(),
            ):
                warnings.simplefilter("default")  # As outside the tests.
                warnings.simplefilter("ignore", DeprecationWarning)
                ended(sys.argv[0])
        finally:
            sys.argv = given
            if cores is not None:
                os.sched_setaffinity(0, cores)  # Some scripts change it.
            for name, value in strict.items():
                jax.config.update(name, value)
        return printed.getvalue()

    return run


def ended(path):
    """Runs a script; raises its output if it fails."""
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        assert end.code in (None, 0), end.code
