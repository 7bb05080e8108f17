"""Cost of training: compilation time, a traced call, and the report."""

import json

import jax
import jax.numpy as jnp
import pytest

import jaxanon as ja
from jaxanon import learners
from jaxanon.report import text as report_text
from jaxanon.training import profiling

COSTS = {
    **{"compile_s": 2.0, "round_s": 0.5, "first_round": 1, "last_round": 30},
    **{"memory_bytes": 3_000_000, "memory_of": "device", "device": "H200"},
    "trace": "traces",
}


def fresh(x):
    """Returns a function that is not in any cache."""
    return jnp.sin(x) @ jnp.cos(x)


def test_compiling_is_heard_while_somebody_listens(tmp_path):
    watch = profiling.ProfileTimer(tmp_path / "a")
    with profiling.listen(watch):
        jax.jit(lambda x: fresh(x) + 1)(jnp.ones((3, 3))).block_until_ready()
    heard = watch.compile_s
    assert heard > 0
    jax.jit(lambda x: fresh(x) + 2)(jnp.ones((3, 3))).block_until_ready()
    assert watch.compile_s == heard
    with pytest.raises(ZeroDivisionError), profiling.listen(watch):
        watch.record_call(3, 1 / 0, 3)
    jax.jit(lambda x: fresh(x) + 3)(jnp.ones((3, 3))).block_until_ready()
    assert watch.compile_s == heard
    with profiling.listen(None):
        pass
    # It may be in a run's folder, which must be empty when it is claimed.
    assert not (tmp_path / "a").exists()


def told_of(folder, *calls):
    watch = profiling.ProfileTimer(folder / "trace")
    for call in calls:
        watch.record_call(*call)
    watch.write(folder)
    told = profiling.read(folder)
    assert told == profiling.read(folder / "trace")
    return told


def test_a_round_is_the_median_of_calls_neither_compiled_nor_traced(tmp_path):
    calls = (10, 9.0, 20), (10, 5.0, 30), (10, 2.0, 40), (10, 1.0, 50), (5, 2.0, 55)
    told = told_of(tmp_path, *calls)
    assert told["round_s"] == 0.2
    assert told["first_round"] == 11 and told["last_round"] == 55
    assert told["memory_bytes"] > 1e7  # This process, which has loaded JAX.
    # Without other calls, the traced call gives the time.
    assert told_of(tmp_path, *calls[:2])["round_s"] == 0.5


def test_of_one_call_no_time_is_told_and_of_none_nothing_is_written(tmp_path):
    assert told_of(tmp_path, (3, 1.0, 3))["round_s"] is None
    told = told_of(tmp_path)  # Existing files are kept.
    assert told["last_round"] == 3 and told["trace"] is None
    assert "needs a second call" in report_text.costs(told)[0]
    assert told_of(tmp_path / "other") is None
    assert profiling.read(None) is None


@pytest.mark.parametrize("text", ['{"compile_s":', "[]", '{"compile_s": 1.0}'])
def test_a_damaged_file_is_named_and_costs_no_report(tmp_path, text):
    (tmp_path / profiling.FILE).write_text(text)
    with pytest.warns(UserWarning, match=r"costs\.json is damaged; the report omits"):
        assert profiling.read(tmp_path) is None


def test_traces_go_to_a_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(
        NotADirectoryError, match=r"profile must be a folder, got the file .*file"
    ):
        profiling.ProfileTimer(tmp_path / "file")


def test_what_devices_and_processes_held_in_words():
    first, second = report_text.costs(COSTS)
    assert first.startswith("Compilation took 2.0 s and a round 500 ms (rounds 1 to 30")
    assert second == "Peak memory of the device was 3 MB."
    assert len(report_text.costs(COSTS | {"memory_bytes": None})) == 1


@pytest.mark.slow
def test_a_run_is_the_same_whether_watched_or_not(tmp_path):
    data = ja.load("smartwatch", public="exercise", private=["side"])
    small = {"model": "mlp", "hidden_sizes": (4,), "local_steps": 1, "batch_size": 4}
    learner = learners.build("fedavg", data.spec, **small)
    train = lambda **more: ja.train(learner, data, epochs=3, progress=False, **more)
    run = train(output_dir=tmp_path / "run", profile=tmp_path / "trace")
    plain = train()
    same = jax.tree.map(jnp.array_equal, run.state.params, plain.state.params)
    assert all(jax.tree.leaves(same))
    told = profiling.read(tmp_path / "run")
    assert told == profiling.read(tmp_path / "trace")
    assert (told["first_round"], told["last_round"]) == (1, 3)
    assert told["compile_s"] > 0 and 0 < told["round_s"] < 60
    # One call is traced, the second, in a format that is readable without tools.
    (trace,) = (tmp_path / "trace").rglob("perfetto_trace.json.gz")
    assert trace.stat().st_size > 1000
    assert len(list((tmp_path / "trace").rglob("*.xplane.pb"))) == 1
    # Training is complete: nothing is profiled, and the files stay.
    more = {
        "output_dir": tmp_path / "run",
        "resume": True,
        "profile": tmp_path / "trace",
    }
    train(**more)
    assert profiling.read(tmp_path / "run") == told
    made = ja.evaluate(run, data)
    assert json.loads(json.dumps(told)) == made["costs"]
    assert "Training costs" in (tmp_path / "run" / "report.html").read_text()
