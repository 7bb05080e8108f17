"""What training cost: compiling is heard, a call traced, and the report tells."""

import json

import jax
import jax.numpy as jnp
import pytest

import jaxanon as ja
from jaxanon import profiling
from jaxanon.report import page

COSTS = {
    **{"compile_s": 2.0, "round_s": 0.5, "rounds": 30, "memory_bytes": 3_000_000},
    **{"memory_of": "device", "device": "H200", "trace": "traces"},
}


def fresh(x):
    """A function that no cache knows."""
    return jnp.sin(x) @ jnp.cos(x)


def test_compiling_is_heard_while_somebody_watches(tmp_path):
    with profiling.watched(tmp_path / "a") as watch:
        jax.jit(lambda x: fresh(x) + 1)(jnp.ones((3, 3))).block_until_ready()
    heard = watch.compile_s
    assert heard > 0
    jax.jit(lambda x: fresh(x) + 2)(jnp.ones((3, 3))).block_until_ready()
    assert watch.compile_s == heard


def test_a_round_is_the_median_of_calls_that_do_not_compile(tmp_path):
    with profiling.watched(tmp_path / "a", tmp_path) as watch:
        for rounds, seconds in ((10, 9.0), (10, 2.0), (10, 1.0), (5, 2.0)):
            watch.called(rounds, seconds)
    told = profiling.read(tmp_path)
    assert told == profiling.read(tmp_path / "a")
    assert told["round_s"] == 0.2 and told["rounds"] == 35
    assert told["memory_bytes"] > 1e7  # Of this process, which has JAX in it.


def test_of_one_call_no_time_is_told(tmp_path):
    with profiling.watched(tmp_path) as watch:
        watch.called(3, 1.0)
    told = profiling.read(tmp_path)
    assert told["round_s"] is None and told["trace"] is None
    assert "no second call" in profiling.in_words(told)[0]


def test_what_failed_is_not_told(tmp_path):
    with pytest.raises(ZeroDivisionError), profiling.watched(tmp_path) as watch:
        watch.called(3, 1 / 0)
    assert profiling.read(tmp_path) is None
    jax.jit(lambda x: fresh(x) + 3)(jnp.ones((3, 3))).block_until_ready()
    assert watch.compile_s == 0


def test_nobody_watches_unless_asked():
    with profiling.watched(None) as watch:
        assert watch is None
    assert profiling.read(None) is None


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / profiling.FILE).write_text('{"compile_s":')
    with pytest.raises(ValueError, match=r"costs\.json is damaged .* delete it"):
        profiling.read(tmp_path)


def test_what_devices_and_processes_held_in_words():
    first, second = profiling.in_words(COSTS)
    assert first == "Compiling took 2.0 s, a round 500 ms (median; 30 rounds on H200)."
    assert second == "The device held 3 MB at most."
    assert len(profiling.in_words(COSTS | {"memory_bytes": None})) == 1
    assert page.costs(None) == []
    (section,) = page.costs(COSTS)
    assert "What training cost" in section and "3 MB" in section


def test_a_run_is_the_same_whether_watched_or_not(tmp_path):
    data = ja.load("smartwatch", public="exercise", private=["side"])
    small = {"model": "mlp", "hidden": (4,), "local_steps": 1, "batch": 4}
    learner = ja.learners.build("fedavg", data.spec, **small)
    train = lambda **more: ja.train(learner, data, epochs=3, progress=False, **more)
    run = train(out=tmp_path / "run", profile=tmp_path / "trace")
    plain = train()
    same = jax.tree.map(jnp.array_equal, run.state.params, plain.state.params)
    assert all(jax.tree.leaves(same))
    told = profiling.read(tmp_path / "run")
    assert told == profiling.read(tmp_path / "trace")
    assert told["rounds"] == 3 and told["compile_s"] > 0 and 0 < told["round_s"] < 60
    # One call is traced, the second, in a form that needs no program to be read.
    (trace,) = (tmp_path / "trace").rglob("perfetto_trace.json.gz")
    assert trace.stat().st_size > 1000
    assert len(list((tmp_path / "trace").rglob("*.xplane.pb"))) == 1
    made = ja.evaluate(run, data)
    assert json.loads(json.dumps(told)) == made["costs"]
    assert "What training cost" in (tmp_path / "run" / "report.html").read_text()
