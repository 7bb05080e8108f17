"""The benchmark's modules and scripts, by name, for all of its tests."""

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
# Checks that the tests have and who runs a benchmark has not.
STRICT = {"jax_numpy_rank_promotion": "allow", "jax_debug_key_reuse": False}


@pytest.fixture(scope="module")
def bench():
    """Imports a module of the benchmark's folder by name."""
    sys.path.insert(0, str(BENCH))
    yield importlib.import_module
    sys.path.remove(str(BENCH))


@pytest.fixture
def unmeasured(bench, monkeypatch):
    """Reports whose machine nobody looks at: it is measured by next to nothing."""
    monkeypatch.setattr(bench("harness.timing"), "FILLS", ((64, 1 << 12),) * 2)


@pytest.fixture(scope="module")
def run_script(bench):
    """``(benchmark, *words) -> what it printed``, as ``python bench benchmark words``.

    In this process, which has loaded already what each of them would load anew.
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
                warnings.simplefilter("default")  # As it is where nobody is strict.
                warnings.simplefilter("ignore", DeprecationWarning)
                ended(sys.argv[0])
        finally:
            sys.argv = given
            if cores is not None:
                os.sched_setaffinity(0, cores)  # Which some scripts change.
            for name, value in strict.items():
                jax.config.update(name, value)
        return printed.getvalue()

    return run


def ended(path):
    """Runs a script until it ends well; else raises what it said."""
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        assert end.code in (None, 0), end.code
