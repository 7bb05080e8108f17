"""Every test runs on the CPU, with the checks that JAX offers switched on."""

import gc
import importlib.metadata
import os
import re

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("MPLBACKEND", "Agg")
# Tests run beside each other: threads of scikit-learn would wait for cores in turns.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Compiling is most of what tests do; as JAX's own tests, these let XLA take it easy.
# Set here and not by jax.config, so that programs which tests start have it too.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
# Cutting a program up to compile it on all cores costs a third more in all, and the
# cores have other tests to run. What the caller sets comes last and wins.
os.environ["XLA_FLAGS"] = (
    f"--xla_cpu_parallel_codegen_split_count=1 {os.environ.get('XLA_FLAGS', '')}"
)
# XLA's other emitter of fused loops compiles some programs in a third of the time.
# Releases without the flag would not start.
if importlib.metadata.version("jaxlib").startswith("0.10."):
    os.environ["XLA_FLAGS"] = (
        f"--xla_cpu_use_fusion_emitters=false {os.environ['XLA_FLAGS']}"
    )
# So many threads XLA cuts a large operation up for: every core has tests of its own.
# Once in some forty runs of all tests one stood still, as far as is known where such
# threads wait for each other.
os.environ.setdefault("NPROC", "1")

import hypothesis
import jax
import jax.monitoring
import pytest

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_debug_key_reuse", True)

# The same examples every time: what fails here fails on the next machine too.
hypothesis.settings.register_profile("house", derandomize=True, deadline=None)
hypothesis.settings.load_profile("house")

MANY = 500  # Programs compiled and kept.
# Reasons to skip that JAXANON_CI=1 turns into failures: a service that is not there.
SERVICES = re.compile(r"browser|chrom|selenium|mosquitto|paho|flwr|flower", re.I)
# Fixtures that run programs, export networks or serve rounds: their tests are slow.
SLOW_FIXTURES = {"chromium", "exported", "meet", "run_script"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if not SLOW_FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)


def _fail_without_service(report):
    if report.skipped and os.environ.get("JAXANON_CI") == "1":
        longrepr = report.longrepr  # Of a skip, (path, line, reason).
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
    # What is loaded by now stays: the collector need not go through it ever again, nor
    # after every few of the short-lived objects that tracing is made of.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


class Programs:
    """Counts what is compiled, and forgets it where it was many."""

    def __init__(self):
        self.number = 0
        jax.monitoring.register_event_duration_secs_listener(self.heard)

    def heard(self, event, seconds, **about):
        del seconds, about
        self.number += event == "/jax/core/compile/backend_compile_duration"

    def pytest_runtest_teardown(self, item, nextitem):
        # What was compiled is kept, and a process of gigabytes compiles more slowly.
        if nextitem and nextitem.path != item.path and self.number > MANY:
            self.number = 0
            jax.clear_caches()
            gc.collect()


def pytest_configure(config):
    config.pluginmanager.register(Programs())


@pytest.fixture(scope="module")
def built_plainly():
    """Diffusion methods have a denoiser of two layers, which compiles in no time."""
    from plain_denoiser import plain_denoiser

    with plain_denoiser():
        yield
