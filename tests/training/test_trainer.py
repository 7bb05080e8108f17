"""Training: saved state, errors, and recovery after a kill."""

import json
import pathlib
import signal
import subprocess
import sys
import time

import chex
import jax
import numpy as np
import pytest

from jaxanon import datasets, methods
from jaxanon.training import progress, run_folder, trainer

SETTINGS = methods.recipes("blinder")["paper"].settings | {
    "hidden_sizes": (8,),
    "latent_dim": 3,
    "samples_per_class": 40,
    "query_size": 3,
    "extra": 0,
    "discriminator_steps": 1,
    "client_fraction": 1.0,
}


def make_file(path, seed=0):
    """Writes a custom file: 4 subjects, waves of 2 frequencies and 2 amplitudes."""
    rng = np.random.default_rng(seed)
    subject = np.repeat(np.arange(4), 30)
    activity, gender = rng.integers(0, 2, len(subject)), subject % 2
    t = np.arange(16)[None, :, None]
    wave = np.sin((activity[:, None, None] + 1) * t + rng.uniform(0, 6, (120, 1, 2)))
    np.savez(
        path,
        windows=(5 + (1 + gender[:, None, None]) * wave).astype(np.float32),
        subject=subject,
        activity=activity,
        activity_names=["slow", "fast"],
        gender=gender,
        gender_names=["f", "m"],
        split=(np.arange(120) % 30 >= 22).astype(int),
    )
    return path


def load(path):
    return datasets.load(str(path), public="activity", private=["gender"])


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return load(make_file(tmp_path_factory.mktemp("data") / "waves.npz"))


@pytest.fixture(scope="module")
def method(data):
    return methods.blinder(data.spec, **SETTINGS)


@pytest.fixture(scope="module")
def finished(method, data, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "whole"
    return trainer.train(method, data, epochs=6, seed=3, output_dir=out, progress=False)


def train(method, data, out, **options):
    options = {"epochs": 6, "seed": 3, "progress": False, **options}
    return trainer.train(method, data, output_dir=out, **options)


def losses(run):
    return [(row["round"], row["losses"]) for row in run.history]


@pytest.mark.slow
def test_the_folder_holds_settings_metrics_and_a_run_to_open(finished, data):
    config = json.loads((finished.folder / "config.json").read_text())
    assert config["method"] == "blinder" and config["settings"]["latent_dim"] == 3
    assert config["data"]["fingerprint"] == run_folder.fingerprint(data)
    rows = (finished.folder / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(row) for row in rows] == finished.history
    # 2 activities * 40 windows // 4 per round = 20 rounds per epoch, each a call.
    assert [row["round"] for row in finished.history] == [20, 40, 60, 80, 100, 120]
    opened = run_folder.open_run(finished.folder)
    chex.assert_trees_all_equal(opened.state, finished.state)
    assert opened.history == finished.history
    windows = data.test.windows[:3]
    for run in (opened, finished):
        safe = run.anonymize(jax.random.key(5), windows)
        np.testing.assert_array_equal(
            safe, finished.anonymize(jax.random.key(5), windows)
        )


@pytest.mark.slow
def test_training_lowers_the_loss(finished):
    first, last = finished.history[0]["losses"], finished.history[-1]["losses"]
    assert last["loss"] < first["loss"]


KILLED = """
import sys
sys.path.insert(0, {folder!r})
import test_trainer as t
from jaxanon import methods
data = t.load({file!r})
method = methods.blinder(data.spec, **t.SETTINGS)
t.train(method, data, {out!r}, resume=True, checkpoint_s=0.0)
"""


@pytest.mark.slow
def test_killed_and_resumed_ends_in_the_same_bits(finished, method, data, tmp_path):
    out = tmp_path / "killed"
    make_file(tmp_path / "waves.npz")
    script = KILLED.format(
        folder=str(pathlib.Path(__file__).parent),
        file=str(tmp_path / "waves.npz"),
        out=str(out),
    )
    process = subprocess.Popen([sys.executable, "-P", "-c", script])
    metrics = out / "metrics.jsonl"
    deadline = time.monotonic() + 300
    # Killed as soon as the metrics file has a row: during or before the first save.
    while not (metrics.exists() and metrics.read_text()):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    resumed = train(method, data, out, resume=True)
    chex.assert_trees_all_equal(resumed.state, finished.state)
    assert losses(resumed) == losses(finished)


@pytest.mark.slow
def test_stopped_at_every_kind_of_moment(finished, method, data, tmp_path):
    out = tmp_path / "run"
    train(method, data, out, epochs=3, checkpoint_s=0.0)  # Rounds 20, 40, 60.
    with (out / "metrics.jsonl").open("a") as file:
        file.write('{"round": 70, "losses": {}}\n{"round": 80, "lo')  # Never saved.
    (out / "checkpoints" / "90.orbax-checkpoint-tmp-0").mkdir()  # Half-written.
    resumed = train(method, data, out, resume=True)
    chex.assert_trees_all_equal(resumed.state, finished.state)
    assert [row["round"] for row in resumed.history] == [20, 40, 60, 80, 100, 120]


def test_a_damaged_checkpoint_gives_way_to_the_one_before(
    finished, method, data, tmp_path
):
    out = tmp_path / "run"
    train(method, data, out, epochs=4, checkpoint_s=0.0)  # Rounds 20, 40, 60, 80.
    newest = out / "checkpoints" / "80"
    for path in newest.rglob("*"):
        if path.is_file() and path.stat().st_size > 100:
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.warns(UserWarning, match="round 80 .* is damaged; falling back"):
        resumed = train(method, data, out, resume=True)
    chex.assert_trees_all_equal(resumed.state, finished.state)

    for path in (out / "checkpoints").rglob("*"):
        if path.is_file() and path.stat().st_size > 100:
            path.write_bytes(b"rubbish")
    with (
        pytest.warns(UserWarning, match="is damaged"),
        pytest.raises(ValueError, match="all checkpoints in .* are damaged .* retrain"),
    ):
        run_folder.open_run(out)


def test_a_folder_is_not_taken_from_another_run(finished, method, data, tmp_path):
    out = finished.folder
    with pytest.raises(FileExistsError, match=r"already holds a run.*resume=True"):
        train(method, data, out)
    with pytest.raises(ValueError, match="seed must be 3 as in the run .* got 4"):
        train(method, data, out, seed=4, resume=True)
    other = methods.blinder(data.spec, **{**SETTINGS, "latent_dim": 4})
    with pytest.raises(
        ValueError, match="settings.latent_dim must be 3 as in the run .* got 4"
    ):
        train(other, data, out, resume=True)
    changed = data._replace(
        train=data.train._replace(windows=data.train.windows + np.float32(1))
    )
    with pytest.raises(ValueError, match="data.fingerprint must be"):
        train(method, changed, out, resume=True)
    # The error names the differing setting, not the additional training.
    with pytest.raises(
        ValueError, match="settings.latent_dim must be 3 as in the run .* got 4"
    ):
        train(other, data, out, resume=True, epochs=1)
    (tmp_path / "notes.txt").write_text("mine")
    idle = method._replace(init=None, prepare=None)  # Raised before any work.
    for one in (method, idle):
        with pytest.raises(FileExistsError, match="must be empty or hold a run"):
            train(one, data, tmp_path)
    with pytest.raises(FileExistsError, match="already holds a run"):
        train(idle, data, out)
    with pytest.raises(ValueError, match=r"must not contain \[ \], got"):
        train(idle, data, tmp_path / "run [1]")
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    "old", [{"latent": 3, "depth": 2}, {"latent": 3, "depth": None}]
)
def test_a_setting_that_is_no_more_makes_another_run(old, tmp_path):
    """Like a run written by another version of jaxanon."""
    made = {
        "version": "0", "method": "blinder", "architecture": [], "spec": {}, "data": {},
        "seed": 0,
    }  # fmt: skip
    run_folder.claim(tmp_path, made | {"settings": old}, resume=False)
    with pytest.raises(
        ValueError,
        match=r"settings.depth must be (2|None) as in the run .* got missing",
    ):
        run_folder.claim(tmp_path, made | {"settings": {"latent_dim": 3}}, resume=True)


@pytest.mark.slow
def test_a_finished_run_resumed_changes_nothing(finished, method, data):
    before = (finished.folder / "metrics.jsonl").read_text()
    again = train(method, data, finished.folder, resume=True)
    chex.assert_trees_all_equal(again.state, finished.state)
    assert (finished.folder / "metrics.jsonl").read_text() == before


def test_says_what_is_missing_or_damaged(finished, tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no run: .*config.json does not"):
        run_folder.open_run(tmp_path)
    (tmp_path / "config.json").write_text('{"method": ')
    with pytest.raises(ValueError, match=r"config.json is damaged"):
        run_folder.open_run(tmp_path)
    config = json.loads((finished.folder / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(FileNotFoundError, match="no checkpoint yet"):
        run_folder.open_run(tmp_path)
    config["settings"]["latent_dim"] = 7
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="must hold the architecture"):
        run_folder.open_run(tmp_path)


def test_a_loss_that_is_not_finite_stops_the_run(method, data, tmp_path):
    out = tmp_path / "run"
    with pytest.raises(FloatingPointError, match="NaN or infinity in round 2; lower"):
        train(method, data, out, hyper={"server_learning_rate": 1e30})
    assert not list((out / "checkpoints").glob("[0-9]*"))


def test_parameters_that_the_last_round_broke_are_not_kept(method, data, tmp_path):
    """Losses belong to the parameters before a step, so none of them shows it."""
    out = tmp_path / "run"
    schedule = method.schedule._replace(rounds_per_epoch=lambda prepared: 1)
    short = method._replace(schedule=schedule)
    sizes = "discriminator_learning_rate or inner_learning_rate or server_learning_rate"
    message = f"squared parameters must stay finite, .* in round 1; lower {sizes}"
    with pytest.raises(FloatingPointError, match=message):
        train(short, data, out, epochs=1, hyper={"server_learning_rate": 1e38})
    assert not list((out / "checkpoints").glob("[0-9]*"))


@pytest.mark.slow
def test_a_loss_that_leapt_and_came_back_is_warned_of(method, data):
    with pytest.warns(
        UserWarning, match="spiked to .* lower discriminator_learning_rate"
    ):
        run = train(method, data, None, hyper={"server_learning_rate": 1.0})
    assert np.isfinite([row["losses"]["loss"] for row in run.history]).all()


def test_epochs_must_be_positive(method, data):
    with pytest.raises(ValueError, match="epochs must be >= 1, got 0"):
        trainer.train(method, data, epochs=0)


def test_a_class_of_one_window_is_refused_before_any_work(method, data):
    for name in ("activity", "gender"):
        own = np.zeros_like(data.train.labels[name])
        own[3] = 1
        labels = data.train.labels | {name: own}
        lone = data._replace(train=data.train._replace(labels=labels))
        second = data.spec.classes[name][1]
        match = f"{name} class {second!r} must have at least 2 training windows, got 1"
        with pytest.raises(ValueError, match=match):
            trainer.train(method._replace(prepare=None), lone, epochs=1)


@pytest.mark.slow
def test_lines_where_there_is_no_terminal(method, data, capsys):
    train(method, data, None, epochs=5, progress=True)
    text = capsys.readouterr().out.strip()
    legend, _, rest = text.partition("epoch 0/5")
    assert " ".join(legend.split()) == progress.LEGEND
    first, *lines = rest.splitlines()
    assert first == "  round 0/100  compiling ..."  # Before the first call ends.
    assert lines[0].startswith("epoch 1/5  round 20/100")
    assert lines[-1].startswith("epoch 5/5  round 100/100")
    assert all("client updates/s" in line for line in lines)
