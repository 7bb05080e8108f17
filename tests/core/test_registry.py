"""Custom methods: registered, built, reopened, swept and named in the shell."""

import dataclasses
import functools
import subprocess
import sys
import types

import chex
import jax
import pytest
import toy

import jaxanon as ja
from jaxanon import datasets, energy, learners, methods
from jaxanon.cli import app
from jaxanon.core import registry
from jaxanon.kernels.bounds import check, setting

SMALL = {"model": "mlp", "hidden_sizes": (3,), "local_steps": 1, "batch_size": 8}
PLUGIN = """
import dataclasses
import jaxanon as ja
from jaxanon import methods


@dataclasses.dataclass(frozen=True, kw_only=True)
class PluggedConfig:
    brightness: float = 0.5


def plugged(spec, config):
    return methods.orf(spec)._replace(name="plugged", config=config)


ja.register("plugged", plugged, config=PluggedConfig)
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShrunkConfig:
    factor: float = setting(0.5, above=0, help="factor of every number")

    __post_init__ = check


def shrunk(spec, config):
    def anonymize(key, state, windows):
        return windows * config.factor

    return methods.orf(spec)._replace(name="shrunk", config=config, anonymize=anonymize)


def mine(spec, config):
    """A custom learner: FedAvg under another name."""
    return learners.build("fedavg", spec, **vars(config))._replace(name="mine")


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    """Restores the registry after a test."""
    registry.names("anonymizer")  # Loads the built-in ones.
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))


@pytest.fixture(scope="module")
def data():
    return toy.data(per_subject=12, time=32)


def test_a_registered_name_is_built_like_a_built_in_one(data):
    made = ja.register("shrunk", shrunk, config=ShrunkConfig)
    assert "shrunk" in registry.names("anonymizer")
    assert methods.config_class("shrunk") is ShrunkConfig
    both = made(data.spec, factor=0.25), methods.build("shrunk", data.spec, factor=0.25)
    assert both[0].config == both[1].config == ShrunkConfig(factor=0.25)
    with pytest.raises(ValueError, match="factor must be finite and > 0, got 0"):
        made(data.spec, factor=0.0)
    with pytest.raises(TypeError, match="ShrunkConfig has no 'size'"):
        made(data.spec, size=1)
    with pytest.raises(ValueError, match="learner must be one of"):
        learners.build("shrunk", data.spec)
    assert registry.default_epochs("shrunk") == 20


def test_what_cannot_be_registered_is_refused(data):
    ja.register("shrunk", shrunk, config=ShrunkConfig)
    # A module may be imported twice.
    ja.register("shrunk", shrunk, config=ShrunkConfig)
    with pytest.raises(ValueError, match="name must be new, got 'orf'"):
        ja.register("orf", shrunk, config=ShrunkConfig)
    with pytest.raises(ValueError, match="name must be an identifier, got 'my-own'"):
        ja.register("my-own", shrunk, config=ShrunkConfig)
    with pytest.raises(ValueError, match="kind must be one of .* got 'model'"):
        ja.register("shrunk", shrunk, config=ShrunkConfig, kind="model")
    with pytest.raises(TypeError, match="builder must be "):
        ja.register("other", "orf")
    with pytest.raises(TypeError, match="dataset must be a Dataset, got str"):
        ja.register("other", "orf", kind="dataset")
    watch = datasets.registry.find("smartwatch")
    with pytest.raises(
        ValueError, match="name must be 'smartwatch', the data set's name"
    ):
        ja.register("other", watch, kind="dataset")
    assert ja.register("smartwatch", watch, kind="dataset") is watch


def test_a_method_without_settings_has_none(data):
    made = ja.register(
        "bare",
        lambda spec, config: methods.orf(spec)._replace(name="bare", config=None),
    )
    assert made(data.spec).config is None
    with pytest.raises(TypeError, match=r"bare has no settings, got \['size'\]"):
        made(data.spec, size=1)


@pytest.mark.parametrize("config", [ShrunkConfig(factor=0.25), None])
def test_runs_of_own_methods_are_reopened(data, config, tmp_path):
    method = shrunk(data.spec, ShrunkConfig(factor=0.25))._replace(config=config)
    run = ja.train(method, data, epochs=1, output_dir=tmp_path / "run", progress=False)
    with pytest.raises(ValueError, match="method must be one of .* got 'shrunk'"):
        ja.open_run(tmp_path / "run")
    again = ja.open_run(tmp_path / "run", method=method)
    chex.assert_trees_all_equal(again.state, run.state)
    safe = again.anonymize(jax.random.key(0), data.test.windows)
    chex.assert_trees_all_close(safe, data.test.windows * 0.25)
    other = method._replace(config=ShrunkConfig(factor=0.75))
    with pytest.raises(ValueError, match="method must have the settings .* of the run"):
        ja.open_run(tmp_path / "run", method=other)
    if config is not None:
        ja.register("shrunk", shrunk, config=ShrunkConfig)
        assert ja.open_run(tmp_path / "run").method.config == config


def test_members_of_an_own_learner_s_sweep_are_runs_of_train(data, tmp_path):
    ja.register("mine", mine, config=learners.config_class("fedavg"), kind="learner")
    found = ja.sweep(
        "mine",
        data,
        grid={"learning_rate": [0.05, 0.2]},
        num_seeds=2,
        epochs=2,
        evaluate=True,
        output_dir=tmp_path / "sweep",
        progress=False,
        **SMALL,
    )
    assert [(m.settings["learning_rate"], m.seed) for m in found.members] == [
        *((0.05, 0), (0.05, 1), (0.2, 0), (0.2, 1)),
    ]
    method = learners.build("mine", data.spec, **SMALL)
    hyper = {"learning_rate": 0.2}
    alone = ja.train(method, data, epochs=2, seed=1, hyper=hyper, progress=False)
    chex.assert_trees_all_close(
        *(run.state.params for run in (found.runs[3], alone)), rtol=1e-5
    )
    assert found.reports[3]["mean"] == ja.evaluate(alone, data)["mean"]
    names = {"activity accuracy", "activity macro_f1"}
    assert all(set(row["scores"]) == names for row in found.summary)
    written = {path.name for path in (tmp_path / "sweep").iterdir()}
    assert {"scores.svg", "sweep.html", "sweep.json", "member-0003"} <= written
    assert ja.open_run(tmp_path / "sweep" / "member-0003").method.name == "mine"
    with pytest.raises(ValueError, match="halving_factor must be None for a learner"):
        ja.sweep("mine", data, halving_factor=2, progress=False, **SMALL)


def test_a_sweep_of_private_learners_writes_every_member_s_ledger(data, tmp_path):
    private = SMALL | {"max_rounds": 1, "max_examples": 64}
    with pytest.warns(UserWarning, match="2 runs train on the same data, each with a"):
        found = ja.sweep(
            "fedsgd_ldp",
            data,
            num_seeds=2,
            epochs=1,
            output_dir=tmp_path / "sweep",
            progress=False,
            **private,
        )
    for member in ("member-0000", "member-0001"):
        told = (tmp_path / "sweep" / member / "privacy.json").read_text()
        assert '"epsilon"' in told
    assert [int(run.state.round) for run in found.runs] == [1, 1]


def test_the_shell_loads_plugins(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "_PLUGINS", [])  # Other tests need no plugin.
    (tmp_path / "own_plugin.py").write_text(PLUGIN)
    with pytest.raises(SystemExit) as ended:
        app.main(["train", "plugged", "--plugin", "own_plugin", "--help"])
    assert ended.value.code == 0
    assert "--brightness" in capsys.readouterr().out
    assert app.main(["train", "orf", "--plugin"]) == 2
    assert "--plugin must name a module" in capsys.readouterr().err
    assert app.main(["train", "orf", "--plugin=not_there"]) == 2
    assert "not_there" in capsys.readouterr().err


def test_a_built_in_name_is_taken_before_it_is_loaded(tmp_path):
    program = "import jaxanon as ja; ja.register('orf', lambda spec, config: None)"
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "name must be new, got 'orf'" in done.stderr


def test_entry_points_are_loaded_once(monkeypatch, data):
    loaded = []
    point = types.SimpleNamespace(load=lambda: loaded.append("own"))
    monkeypatch.setattr(registry, "_LOADED", False)
    monkeypatch.setattr(
        registry.importlib.metadata, "entry_points", lambda group: [point]
    )
    assert registry.names("learner") and methods.build("orf", data.spec)
    assert loaded == ["own"]


def test_windows_and_homes_are_told_apart(data):
    homes = energy.load_homes("simulated", homes=2, devices=1, days=1, test_days=1)
    with pytest.raises(ValueError, match="data must have a Spec for orf"):
        ja.train(methods.orf(data.spec), homes, epochs=1, progress=False)
    with pytest.raises(ValueError, match="spec must be a HomesSpec for pfdrl, got a"):
        ja.sweep("pfdrl", data, progress=False)


def test_budgets_of_a_grid_are_each_heeded(data):
    sweep = functools.partial(ja.sweep, "fedsgd_ldp", data, progress=False)
    small = SMALL | {"max_examples": 64}
    with pytest.raises(ValueError, match="epochs must be <= 1, the smallest"):
        with pytest.warns(
            UserWarning, match="at most 1, the number within the privacy budget"
        ):
            sweep(grid={"max_rounds": [1, 2]}, epochs=2, **small)
    with pytest.warns(UserWarning, match="^1 runs train on the same data"):
        sweep(grid={"epsilon": [0.0, 2.0]}, epochs=1, **small)
    with pytest.raises(
        ValueError, match="grid must name settings, got 'noise_multiplier'"
    ):
        sweep(grid={"noise_multiplier": [1.0, 2.0]}, epochs=1, **small)


def test_changed_methods_are_not_pickled_as_built(data):
    method = methods.orf(data.spec)
    assert method.__reduce__()[0] is registry.rebuild
    schedule = method.schedule._replace(epochs=3)
    for other in (
        method._replace(schedule=schedule),
        method._replace(tokens=True),
        method._replace(config=None),
        method._replace(anonymize=lambda key, state, windows: windows),
    ):
        assert other.__reduce__()[0] is not registry.rebuild
