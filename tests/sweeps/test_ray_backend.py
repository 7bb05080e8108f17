"""Sweeps with Ray: the same members, and the results of a failed task."""

import faulthandler
import json
import os
import pathlib
import sys
import types

import chex
import jax.numpy as jnp
import known
import pytest
import toy
from one_by_one import one_by_one

from jaxanon.cli import sweep as command
from jaxanon.evaluation import anonymizers
from jaxanon.sweeps import ray_backend
from jaxanon.sweeps.runner import Member, sweep
from jaxanon.sweeps.summary import summarize, table

SECONDS = 240  # Timeout of a hanging cluster, and of this process.


@pytest.fixture(scope="module")
def data():
    return toy.data()


@pytest.fixture(scope="module", autouse=True)
def known_by_value():
    """Sends ``known`` by value, because Ray's tasks cannot import it."""
    ray = pytest.importorskip("ray", reason="the extra jaxanon[sweep] is not installed")
    ray.cloudpickle.register_pickle_by_value(known)


def quick(method, data, **options):
    return sweep(method, data, **{"epochs": 2, "progress": False, **options})


def fragile(main):
    """Returns a method whose width 3 can only be prepared by process ``main``."""

    def build(spec, **settings):
        method = known.build(spec, **settings)

        def prepare(clients):
            if method.config.width == 3 and os.getpid() != main:
                raise RuntimeError("no room here")
            return jnp.zeros(())

        return method._replace(prepare=prepare)

    return build


def children():
    """Returns the running child processes of this one."""
    lists = pathlib.Path("/proc/self/task").glob("*/children")
    return " ".join(path.read_text() for path in lists).split()


@pytest.mark.slow
def test_members_by_ray_are_those_without_and_a_failed_task_costs_its_own(
    data, tmp_path, capsys
):
    before = children()
    build = fragile(os.getpid())
    options = {"grid": {"rate": [0.1, 0.7], "width": [2, 3]}, "num_seeds": 2}
    out = tmp_path / "kept"
    faulthandler.dump_traceback_later(SECONDS, exit=True, file=sys.__stderr__)
    try:
        with pytest.warns(
            UserWarning, match="not trained.* .RuntimeError: no room here"
        ):
            found = quick(
                build,
                data,
                ray=True,
                output_dir=out,
                chunk_size=2,
                progress=True,
                **options,
            )
        assert set(children()) <= set(before)
    finally:
        faulthandler.cancel_dump_traceback_later()
    assert "member 8/8 trained" in capsys.readouterr().out
    whole = quick(build, data, **options)
    lost = [one.settings["width"] == 3 for one in found.members]
    assert lost == [False, False, True, True] * 2
    assert [run is None for run in found.runs] == lost
    for one, other, gone in zip(found.runs, whole.runs, lost, strict=True):
        if not gone:
            chex.assert_trees_all_close(one.state, other.state, rtol=1e-6)
            assert one.config == other.config
    assert [row["lost"] for row in found.summary] == [0, 2, 0, 2]
    assert [row["losses"] for row in found.summary][1::2] == [{}, {}]
    assert [row["diverged"] for row in found.summary] == [0] * 4
    assert not list(out.glob(f"{ray_backend.TOKEN}*"))
    told = json.loads((out / "sweep.json").read_text())
    assert told["members"][2]["losses"] == {}
    # Resuming, here without Ray, trains only the lost members.
    again = quick(build, data, output_dir=out, resume=True, **options)
    assert again.members[0] == found.members[0]
    for one, other in zip(again.runs, whole.runs, strict=True):
        chex.assert_trees_all_close(one.state, other.state, rtol=1e-6)


class Lost(Exception):
    """Stand-in for Ray's exception."""


class Remote:
    """A function of a cluster with this machine only, which runs it at once."""

    def __init__(self, function, asked):
        self.function, self.asked = function, asked

    def remote(self, *arguments):
        return lambda: self.function(*arguments)


def fake(asked, *, blind=False):
    """A fake Ray module with the functions that sweeps use, and a log of calls."""

    def get(task):
        if not callable(task):
            return task
        if blind and task.__closure__:
            return False
        try:
            return task()
        except RuntimeError as error:
            raise Lost(str(error)) from error

    def remote(**options):
        asked.setdefault("remote", []).append(options)
        return lambda function: Remote(function, options)

    node = {"Alive": True, "NodeID": "1", "NodeManagerAddress": "10.0.0.7"}
    gone = {"Alive": False, "NodeID": "2", "NodeManagerAddress": "10.0.0.8"}
    affinity = types.SimpleNamespace(NodeAffinitySchedulingStrategy=dict)
    return types.SimpleNamespace(
        is_initialized=lambda: False,
        init=lambda *words, **options: asked.update(init=(words, options)),
        shutdown=lambda: asked.update(ended=True),
        nodes=lambda: [node, gone],
        cluster_resources=lambda: {"CPU": 3.0, "GPU": asked.get("gpus", 0.0)},
        put=lambda thing: thing,
        get=get,
        remote=remote,
        wait=lambda tasks, num_returns: (tasks[:1], tasks[1:]),
        util=types.SimpleNamespace(scheduling_strategies=affinity),
        exceptions=types.SimpleNamespace(RayError=Lost),
        dumps=lambda thing: thing,
        loads=lambda thing: thing,
    )


@pytest.fixture
def cluster(monkeypatch):
    """Replaces Ray by a fake; returns its calls."""
    asked = {}

    def put(**options):
        module = fake(asked, **options)
        monkeypatch.setattr(ray_backend, "need", lambda *words: module)
        return asked

    return put


@pytest.mark.slow
def test_a_cluster_is_asked_for_a_gpu_a_task_where_it_has_some(data, tmp_path, cluster):
    asked = cluster()
    asked["gpus"] = 2.0
    quick(
        known.build,
        data,
        num_seeds=2,
        ray="10.0.0.1:6379",
        output_dir=tmp_path / "kept",
    )
    words, options = asked["init"]
    assert words == ("10.0.0.1:6379",) and "include_dashboard" not in options
    assert {"num_gpus": 1, "max_retries": 1} in asked["remote"] and asked["ended"]
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
    asked.clear()
    quick(known.build, data, num_seeds=2, ray=True, output_dir=tmp_path / "more")
    words, options = asked["init"]
    assert words == ("local",) and options["include_dashboard"] is False
    assert {"num_cpus": 1, "max_retries": 1} in asked["remote"]


@pytest.mark.slow
def test_members_are_evaluated_by_tasks_and_rungs_go_on(
    data, tmp_path, cluster, monkeypatch
):
    def evaluate(run, given, **options):
        if run.config["seed"] == 1:
            raise RuntimeError("out of memory")
        kept = {"attribute": "activity", "anonymized": {"accuracy": 0.5}}
        return {"utility": kept, "intrusive": {}, "reidentification": {}}

    cluster()
    monkeypatch.setattr(anonymizers, "train_raw_classifiers", lambda given: None)
    monkeypatch.setattr(anonymizers, "evaluate_each", one_by_one(evaluate))
    options = {
        "grid": {"goal": [1.0, 1e30]},
        "num_seeds": 2,
        "epochs": 4,
        "halving_factor": 2,
    }
    with pytest.warns(
        UserWarning, match=r"members \[1\] .* not evaluated, .*Lost: out of"
    ):
        found = quick(
            known.build,
            data,
            evaluate=True,
            ray=True,
            output_dir=tmp_path / "kept",
            **options,
        )
    assert [one.stopped for one in found.members] == [None, None, 2, 2]
    assert [int(run.state.round) for run in found.runs] == [12, 12, 6, 6]
    assert found.reports[1:] == ({}, None, None) and found.reports[0]
    first = found.summary[0]
    assert (first["lost"], first["diverged"]) == (1, 0)
    assert first["scores"]["activity accuracy"] == {"mean": 0.5, "std": None}


def test_a_machine_that_does_not_see_the_folder_is_named(data, tmp_path, cluster):
    asked = cluster(blind=True)
    with pytest.raises(
        FileNotFoundError, match=r"kept must be shared .* missing on \['10.0.0.7'\]"
    ):
        quick(known.build, data, ray=True, output_dir=tmp_path / "kept")
    assert asked["ended"]


def test_what_ray_needs_is_said(data, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="ray requires an output folder"):
        quick(known.build, data, ray=True)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"pip install 'jaxanon\[sweep\]'"):
        quick(known.build, data, ray=True, output_dir=tmp_path / "kept")


def test_a_worker_s_path_has_no_folder_that_ours_has_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["/somewhere"])
    assert ray_backend._strays() == [str(tmp_path)]
    monkeypatch.setattr(sys, "path", ["", "/somewhere"])
    assert ray_backend._strays() == []


def test_words_behind_ray():
    assert command._address(None) is False and command._address(()) is True
    assert command._address(("10.0.0.1:6379",)) == "10.0.0.1:6379"
    with pytest.raises(ValueError, match="--ray must have at most one address, got"):
        command._address(("a", "b"))


def test_a_table_counts_who_got_lost():
    members = [
        Member({"rate": 1}, 0, {"loss": 1.0}),
        Member({"rate": 1}, 1, {}),
        Member({"rate": 2}, 0, {}),
        Member({"rate": 2}, 1, {}),
    ]
    shown = [list(column.cells) for column in table(summarize(members, ())).columns]
    assert shown == [["1", "2"], ["1.0000", "-"], ["1 of 2", "2 of 2"]]
