"""Training and reopening reject invalid runs, and detect damage."""

import dataclasses
import json
import shutil

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxanon import datasets, methods
from jaxanon.core import checks
from jaxanon.federated.engine.algorithm import State
from jaxanon.training import checkpoint, loop, run_folder, trainer

SETTINGS = methods.recipes("blinder")["paper"].settings | {
    "hidden_sizes": (8,),
    "latent_dim": 3,
    "samples_per_class": 4,
    "query_size": 3,
    "extra": 0,
    "discriminator_steps": 1,
}


@pytest.fixture(scope="module")
def data():
    return datasets.load("smartwatch", private=["side"])


@pytest.fixture(scope="module")
def method(data):
    return methods.blinder(data.spec, **SETTINGS)


@pytest.fixture(scope="module")
def finished(method, data, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "whole"
    return train(method, data, output_dir=out, epochs=2)


def train(method, data, **options):
    return trainer.train(method, data, **{"epochs": 1, "progress": False, **options})


def state():
    # Large enough to be stored outside Orbax's index, which has checksums.
    w = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    params = {"w": jnp.asarray(w), "b": jnp.arange(3.0)}
    return State(jnp.int32(4), params, {}, {"gamma": jnp.float32(0.5)})


@settings(max_examples=20, deadline=None)
@given(leaf=st.integers(0, 64 * 64 - 1), bit=st.integers(0, 31))
def test_a_digest_sees_every_bit(leaf, bit):
    other = np.asarray(state().params["w"]).copy()
    other.reshape(-1).view(np.uint32)[leaf] ^= np.uint32(1 << bit)
    changed = state()._replace(params={**state().params, "w": other})
    assert not np.array_equal(checkpoint.digest(state()), checkpoint.digest(changed))


# If the index is damaged, Orbax leaves unfinished tasks.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_numbers_that_were_changed_on_disk_are_not_believed(tmp_path):
    """Orbax reads a flipped bit of an array without an error."""
    with_two = checkpoint.Checkpoints(tmp_path)
    with_two.save(state()._replace(round=jnp.int32(3)))
    with_two.save(state())
    with_two.close()
    newest = tmp_path / "checkpoints" / "4"
    outcomes = set()
    for path in [path for path in newest.rglob("d/*") if path.stat().st_size]:
        whole = path.read_bytes()
        for position in range(0, len(whole), max(1, len(whole) // 8)):
            damaged = bytearray(whole)
            damaged[position] ^= 16
            path.write_bytes(damaged)
            outcomes.add(_opened(tmp_path))
        path.write_bytes(whole)
    # Unused bytes leave round 4 intact; no damage gives other numbers.
    assert outcomes <= {"as saved", "round 3"} and "round 3" in outcomes


def _opened(folder):
    opened = checkpoint.Checkpoints(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint.warnings, "warn", lambda *args, **options: None)
        found = opened.restore(jax.eval_shape(state))
    opened.close()
    if int(found.round) == 3:
        return "round 3"
    same = np.array_equal(found.params["w"], state().params["w"])
    return "as saved" if same else "other numbers"


@pytest.mark.slow
def test_a_state_of_the_callers_arrays_leaves_them_alone(method, data):
    gamma = jnp.asarray(0.3, jnp.float32)
    train(method, data, hyper={"gamma": gamma})
    assert float(gamma) == np.float32(0.3)
    # So does a method's state.
    begun = method.init(jax.random.key(0))
    train(method._replace(init=lambda key, **hyper: begun), data)
    assert not any(leaf.is_deleted() for leaf in jax.tree.leaves(begun))


@pytest.mark.parametrize(
    ("option", "value"), [("seed", 1.5), ("seed", True), ("epochs", 1.5)]
)
def test_whole_numbers(method, data, option, value):
    with pytest.raises(TypeError, match=f"{option} must be a Python int, got {value}"):
        train(method, data, **{option: value})


@pytest.mark.parametrize("seed", [-1, 2**32, 10**20])
def test_seeds_that_would_be_anothers(method, data, seed):
    with pytest.raises(
        ValueError, match=f"seed must be between 0 and 4294967295, got {seed}"
    ):
        train(method, data, seed=seed)


def test_hyper_parameters_out_of_range(method, data, tmp_path):
    with pytest.raises(ValueError, match="beta must be finite and >= 0, got -1"):
        train(method, data, hyper={"beta": -1}, output_dir=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_numpy_seed_is_its_number(finished, method, data, tmp_path):
    run = train(method, data, seed=np.int64(0), output_dir=tmp_path / "run", epochs=2)
    chex.assert_trees_all_equal(run.state, finished.state)


def test_a_method_of_another_spec(method, data):
    spec = dataclasses.replace(data.spec, public="side", private=("exercise",))
    with pytest.raises(ValueError, match=r"with other \['public', 'private'\]"):
        train(methods.blinder(spec, **SETTINGS), data)


def test_bad_training_data(method, data):
    windows, labels = data.train
    broken = windows.copy()
    broken[3, 0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN .* in 1 of .* first at index 3; drop"):
        train(method, data._replace(train=datasets.Windows(broken, labels)))
    for value in (-1, 2):
        side = labels["side"].copy()
        side[5] = value
        wrong = datasets.Windows(windows, {**labels, "side": side})
        with pytest.raises(ValueError, match=rf"in \[0, 2\), got {value}; list every"):
            train(method, data._replace(train=wrong))
    with pytest.raises(ValueError, match=r"must be int\[4\], .* got float64\[3\]"):
        checks.labels("side", np.zeros(3), 4, ("left", "right"))


def test_fewer_epochs_than_were_trained(finished, method, data):
    before = (finished.folder / "config.json").read_text()
    with pytest.raises(ValueError, match=r"epochs must cover .* got 1 .* more epochs"):
        train(method, data, output_dir=finished.folder, epochs=1, resume=True)
    assert (finished.folder / "config.json").read_text() == before


def test_a_config_of_something_else(tmp_path):
    for text in ("[1]", '{"version": "1"}'):
        (tmp_path / "config.json").write_text(text)
        with pytest.raises(ValueError, match="must describe a run, but lacks .*'spec'"):
            run_folder.open_run(tmp_path)


def test_metrics_that_are_no_rows_end_the_list(finished, tmp_path):
    copy = shutil.copytree(finished.folder, tmp_path / "run")
    with (copy / "metrics.jsonl").open("a") as file:
        file.write("5\n")
    assert run_folder.open_run(copy).history == finished.history


@pytest.mark.slow
def test_divergence_names_the_round_and_a_checkpoint_that_is_there(
    finished, method, data, tmp_path, monkeypatch
):
    monkeypatch.setattr(loop, "ROUNDS_PER_CALL", 1)
    copy = shutil.copytree(finished.folder, tmp_path / "run")
    done = int(finished.state.round)
    broken = jax.tree.map(lambda leaf: leaf * np.nan, finished.state.params)
    kept = checkpoint.Checkpoints(copy)
    kept.save(finished.state._replace(round=jnp.int32(done + 1), params=broken))
    kept.close()
    message = f"in round {done + 2}; .* checkpoint of round {done + 1} is in"
    with pytest.raises(FloatingPointError, match=message):
        train(method, data, output_dir=copy, epochs=3, resume=True)
    config = json.loads((copy / "config.json").read_text())
    assert config["epochs"] == 3


def test_too_large_for_float32(finished):
    windows = np.full((1, 128, 6), 1e300)
    with pytest.raises(
        ValueError, match="as float32, got NaN or infinity in .* first at index 0"
    ):
        finished.anonymize(jax.random.key(0), windows)
    with pytest.raises(ValueError, match=r"a single window as windows\[None\]"):
        finished.anonymize(jax.random.key(0), windows[0])
