"""A small data file, a run trained on it, and what a refusal looks like."""

import functools

import numpy as np
import pytest
from hasty import hasty

from jaxanon.cli import app
from jaxanon.training import run_folder

TINY = "--latent-dim 3 --hidden-sizes 8 --samples-per-class 8".split()
TINY += "--query-size 3 --extra 0".split()
TINY += (
    "--discriminator-hidden-sizes 4 --discriminator-steps 0 --no-second-order".split()
)
TINY += "--no-shadows --epochs 1 --no-guided --discriminator-rounds 0".split()
TINY += "--ema-decay 0 --client-fraction 0.4 --anonymization stochastic".split()


def write(path, scale=1.0):
    """3 people, 2 activities told by frequency, 2 genders by amplitude."""
    rng = np.random.default_rng(0)
    subject = np.repeat(np.arange(3), 24)
    activity, gender = np.arange(72) % 2, subject % 2
    t = np.arange(8)[None, :, None]
    phase = rng.uniform(0, 6, (72, 1, 2))
    wave = (1 + gender[:, None, None]) * np.sin(
        (activity[:, None, None] + 1) * t + phase
    )
    names = {"activity_names": ["slow", "fast"], "gender_names": ["f", "m"]}
    np.savez(
        path,
        windows=(scale * wave).astype(np.float32),
        subject=subject,
        activity=activity,
        gender=gender,
        split=(np.arange(72) % 24 >= 16).astype(int),
        **names,
    )
    return path


@pytest.fixture(scope="module", autouse=True)
def judges_that_hardly_learn():
    """Commands say what was found; how well it is found, others test."""
    with hasty():
        yield


@pytest.fixture(scope="session")
def waves():
    """``write(path, scale=1.0)``: writes the data file."""
    return write


@pytest.fixture(scope="session")
def file(tmp_path_factory):
    return write(tmp_path_factory.mktemp("data") / "waves.npz")


@pytest.fixture(scope="session")
def train_words():
    """``(file, out)`` to the words of a tiny training."""

    def words(file, out):
        named = ["--dataset", str(file), "--public", "activity", "--private", "gender"]
        return [
            "train",
            "blinder",
            *named,
            "--output-dir",
            str(out),
            "--seed",
            "7",
            *TINY,
        ]

    return words


@pytest.fixture(scope="session")
def folder(file, train_words, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "waves"
    assert app.main(train_words(file, out)) == 0
    return out


@pytest.fixture
def refused(capsys):
    """Runs a command that must end with status 2; its line on stderr."""

    def run(*words):
        capsys.readouterr()
        assert app.main([str(word) for word in words]) == 2
        shown = capsys.readouterr()
        assert shown.err.startswith("jaxanon: error: ")
        assert shown.err.count("\n") == 1
        return shown.err

    return run


@pytest.fixture(scope="session")
def opened():
    """``open_run`` that opens each folder once."""
    return functools.cache(run_folder.open_run)


@pytest.fixture
def opened_once(opened, monkeypatch):
    """Commands have the same run of a folder, so that its programs compile once."""
    monkeypatch.setattr(run_folder, "open_run", opened)
