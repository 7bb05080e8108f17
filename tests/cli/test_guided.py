"""Cloak by the command line, and weights that are chosen after training."""

import numpy as np
import pytest

from jaxanon.cli import app
from jaxanon.training.run_folder import open_run

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("built_plainly")]

TINY = "--widths 4 --heads 1 --batch-size 16".split()
TINY += "--num-train-timesteps 6 --num-inference-steps 2".split()
TINY += "--latent-dim 4 --pretraining 1 --epochs 2".split()
TINY += "--autoencoder-widths 4 --channels 2".split()


@pytest.fixture(scope="module")
def trained(file, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "cloak"
    named = ["--dataset", str(file), "--public", "activity", "--private", "gender"]
    assert app.main(["train", "cloak", *named, "--output-dir", str(out), *TINY]) == 0
    return out


def test_windows_are_rewritten_as_far_as_is_asked(trained, file, tmp_path, opened_once):
    def anonymize(*words):
        out = tmp_path / "safe.npy"
        named = ["--input", str(file), "--output", str(out), "--seed", "3"]
        assert app.main(["anonymize", str(trained), *named, "--overwrite", *words]) == 0
        return np.load(out)

    raw = np.load(file)["windows"]
    safe = anonymize()
    assert safe.shape == raw.shape and safe.dtype == np.float32
    assert not np.allclose(safe, anonymize("--strength", "1"))
    assert not np.allclose(safe, anonymize("--num-inference-steps", "5"))
    run = open_run(trained)  # Anew: nothing is written.
    assert float(run.state.hyper["strength"]) == np.float32(0.8)
    assert float(run.adjusted(guidance_scale=3).state.hyper["guidance_scale"]) == 3
    assert float(run.state.hyper["guidance_scale"]) == 1.5


def test_what_may_not_be_chosen_is_refused(trained, folder, file, tmp_path, capsys):
    named = ["--input", str(file), "--output", str(tmp_path / "safe.npy")]
    assert app.main(["anonymize", str(trained), *named, "--strength", "1.5"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "strength must be in (0, 1], got 1.5" in said
    assert app.main(["anonymize", str(folder), *named, "--guidance-scale", "2"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "one of [] for this run of blinder, got ['g" in said
    assert app.main(["anonymize", str(trained), *named, "--smoothing"]) == 2
    assert "got ['smoothing']" in " ".join(capsys.readouterr().err.split())
    run = open_run(trained)
    with pytest.raises(ValueError, match=r"\['strength', .* got \['ema_decay'\]"):
        run.adjusted(ema_decay=0.5)
    assert not (tmp_path / "safe.npy").exists()
