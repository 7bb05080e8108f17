"""Public functions name the argument that they cannot use.

Each function is called with the arguments of its docstring example, of which one is
replaced by a wrong value: another rank, dtype or length, an empty or deleted array,
text, None, NaN, or a number out of range. It may work, or raise our own error; a
message of NumPy, JAX or Python is foreign.
"""

import importlib
import inspect
import random
import zlib

import jax
import pytest
from wrong_arguments import calls, judge

ROOMS = ("kernels", "metrics", "privacy")
# Functions whose arguments are programs, their parameters, or factors that other
# functions make. They are not checked by name yet.
PROGRAMS = {
    "kernels.adapt",
    "kernels.apply_factored",
    "kernels.clipped_gradient_bytes",
    "kernels.clipped_gradient_sum",
    "kernels.inner_product",
    "kernels.is_factored_cheaper",
    "kernels.leaves_without_factors",
    "kernels.lstm",
    "kernels.materialize",
    "kernels.materialize_gradient",
    "kernels.matmul",
    "kernels.meta_gradient",
    "kernels.sgd_step",
    "kernels.sgd_steps",
    "kernels.squared_norm",
    "kernels.weighted_sum",
    "privacy.dp_aggregate",
}
# Arguments that are not checked in every respect: states, algorithms and records that
# other functions of the library make, options passed on to networks, and vectors in
# place of one number, which broadcast unless the shapes disagree.
FOREIGN: dict[str, set[str]] = {
    "kernels.adapt_clip_norms": {"count_stddev", "learning_rate"},
    "kernels.draw_balanced": {"neighbors"},
    "kernels.draw_from_table": {"samples_per_class"},
    "kernels.exponential_mechanism": {"epsilon"},
    "kernels.gaussian_noise": {"dtype", "stddev"},
    "kernels.krum": {"num_byzantine"},
    "kernels.laplace_noise": {"scale"},
    "kernels.noise_multiplier_with_counts": {"count_stddev", "noise_multiplier"},
    "kernels.randomized_response": {"epsilon"},
    "kernels.relaxed_span_sensitivity": {"width"},
    "kernels.report_noisy_max": {"epsilon"},
    "kernels.trimmed_mean": {"num_trimmed"},
    "metrics.auc_interval": {"evidence", "positive"},
    "metrics.compare_statistics": {"channels"},
    "metrics.discriminative_score": {"options"},
    "metrics.predictive_score": {"options"},
    "metrics.scores": {"names"},
    "metrics.transfer_scores": {"options"},
}


def _functions():
    for room in ROOMS:
        module = importlib.import_module(f"jaxanon.{room}")
        for name in module.__all__:
            function = getattr(module, name)
            if callable(function) and not inspect.isclass(function):
                yield f"{room}.{name}"


def _found(name, share):
    """Returns foreign messages by parameter, for a drawn share of the wrong values."""
    room, _, function = name.partition(".")
    function = getattr(importlib.import_module(f"jaxanon.{room}"), function)
    drawn = random.Random(zlib.crc32(name.encode()))
    found = {}
    for parameter, said, args, kwargs in calls(function):
        if drawn.random() < share:
            with jax.debug_key_reuse(False):  # The example's key serves every call.
                error = judge(function, args, kwargs)
            if error is not None and parameter not in FOREIGN.get(name, ()):
                text = f"{type(error).__name__}: {error}"[:200]
                found.setdefault(parameter, []).append(f"{said}: {text}")
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted({*_functions()} - PROGRAMS))
def test_messages_are_ours(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert not _found(name, 0.2)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted({*_functions()} - PROGRAMS))
def test_all_messages_are_ours(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert not _found(name, 1.0)


def test_every_exception_is_public():
    assert {*PROGRAMS, *FOREIGN} <= {*_functions()}
