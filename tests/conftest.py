"""Runs every test on the CPU with JAX's optional checks enabled."""

import gc
import importlib.metadata
import os
import re

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("MPLBACKEND", "Agg")
# Tests run in parallel, so threads of scikit-learn would compete for cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Compilation dominates the tests; like JAX's own tests, they disable most
# optimizations. The environment variable also reaches programs that tests start.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
# Splitting a program to compile it on all cores costs a third more in total, and the
# cores have other tests to run. The caller's value comes last and takes precedence.
os.environ["XLA_FLAGS"] = (
    f"--xla_cpu_parallel_codegen_split_count=1 {os.environ.get('XLA_FLAGS', '')}"
)
# XLA's other emitter of fused loops compiles some programs in a third of the time.
# Releases without the flag would not start.
if importlib.metadata.version("jaxlib").startswith("0.10."):
    os.environ["XLA_FLAGS"] = (
        f"--xla_cpu_use_fusion_emitters=false {os.environ['XLA_FLAGS']}"
    )
# Number of threads for a large operation: every core runs other tests. About one in
# forty runs of all tests hung, probably where such threads wait for each other.
os.environ.setdefault("NPROC", "1")

# Without a folder of the caller, no test writes programs to the user's.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", "")

import hypothesis
import jax
import jax.monitoring
import pytest

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_debug_key_reuse", True)

# The same examples every time, so that failures repeat on other machines.
hypothesis.settings.register_profile("house", derandomize=True, deadline=None)
hypothesis.settings.load_profile("house")

MANY = 500  # Number of compiled programs that are kept.
# Reasons to skip that JAXANON_CI=1 turns into failures: a missing service.
SERVICES = re.compile(r"browser|chrom|selenium|mosquitto|paho|flwr|flower", re.I)
# Fixtures that run programs, export networks or serve rounds, so their tests are slow.
SLOW_FIXTURES = {"chromium", "exported", "meet", "run_script"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if not SLOW_FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)


def _fail_without_service(report):
    if report.skipped and os.environ.get("JAXANON_CI") == "1":
        longrepr = report.longrepr  # (path, line, reason) of a skip.
        reason = str(longrepr[2] if isinstance(longrepr, tuple) else longrepr)
        if not hasattr(report, "wasxfail") and SERVICES.search(reason):
            report.outcome = "failed"
            report.longrepr = f"JAXANON_CI=1 needs what this test skips for: {reason}"
    return report


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_make_collect_report(collector):
    return _fail_without_service((yield))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    return _fail_without_service((yield))


def pytest_collection_finish():
    # Loaded objects stay, so the collector need not visit them again, neither later nor
    # after every few short-lived objects of tracing.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


class Programs:
    """Counts compiled programs, and clears the caches after many."""

    def __init__(self):
        self.number = 0
        jax.monitoring.register_event_duration_secs_listener(self.heard)

    def heard(self, event, seconds, **about):
        del seconds, about
        self.number += event == "/jax/core/compile/backend_compile_duration"

    def pytest_runtest_teardown(self, item, nextitem):
        # Compiled programs stay in memory, and a process of gigabytes compiles slowly.
        if nextitem and nextitem.path != item.path and self.number > MANY:
            self.number = 0
            jax.clear_caches()
            gc.collect()


def pytest_configure(config):
    config.pluginmanager.register(Programs())


@pytest.fixture(scope="module")
def built_plainly():
    """Replaces the denoiser of diffusion methods by two layers, which compile fast."""
    from plain_denoiser import plain_denoiser

    with plain_denoiser():
        yield
