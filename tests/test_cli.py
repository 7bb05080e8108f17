"""The command line: what each verb does, refuses, and prints."""

import json
import subprocess
import sys

import numpy as np
import pytest

from jaxanon import cli, datasets, evaluation, training
from jaxanon.commands import demo, grids, sources, train
from jaxanon.methods import BlinderConfig

TINY = "--latent 3 --hidden 8 --per-class 8 --query 3 --extra 0".split()
TINY += "--discriminator-steps 0 --no-second-order --no-shadows --epochs 1".split()


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


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return write(tmp_path_factory.mktemp("data") / "waves.npz")


def train_words(file, out):
    named = ["--dataset", str(file), "--public", "activity", "--private", "gender"]
    return ["train", "blinder", *named, "--out", str(out), "--seed", "7", *TINY]


@pytest.fixture(scope="module")
def folder(file, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "waves"
    assert cli.main(train_words(file, out)) == 0
    return out


def refused(capsys, *words):
    """The line on stderr of a command that ends with status 2."""
    capsys.readouterr()
    assert cli.main([str(word) for word in words]) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("jaxanon: error: ") and shown.err.count("\n") == 1
    return shown.err


@pytest.mark.parametrize("verb", ["demo", "train", "evaluate", "anonymize", "sweep"])
def test_help_everywhere(verb, capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main([verb, "--help"])
    assert not stopped.value.code
    shown = capsys.readouterr().out
    assert f"usage: jaxanon {verb}" in shown and "--seed" in shown
    with pytest.raises(SystemExit):
        cli.main([])
    assert f"• {verb}" in capsys.readouterr().out


@pytest.mark.parametrize("verb", ["train", "sweep"])
def test_settings_of_the_method_are_options(verb, capsys):
    with pytest.raises(SystemExit):
        cli.main([verb, "blinder", "--help"])
    shown = capsys.readouterr().out
    for option in ("--latent", "--gamma", "--dataset", "--preset", "--no-second-order"):
        assert option in shown
    assert "size of the latent representation (default: 25)" in shown


def test_help_and_version_load_no_jax(tmp_path):
    program = (
        "import sys\nfrom jaxanon.cli import main\n"
        "assert main(['--version']) == 0\n"
        "for words in [['--help'], ['anonymize', '--help'], ['demo', '--help']]:\n"
        "    try: main(words)\n"
        "    except SystemExit: pass\n"
        "assert not {'jax', 'flax', 'numpy'} & set(sys.modules)\n"
    )
    command = [sys.executable, "-P", "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("jaxanon 0.")


def test_training_leaves_a_run_that_knows_its_data(folder, file, capsys):
    run = training.open_run(folder)
    assert run.config["seed"] == 7 and run.config["epochs"] == 1
    assert run.method.config.latent == 3 and not run.method.config.second_order
    assert (run.spec.public, run.spec.private) == ("activity", ("gender",))
    found = sources.recall(run)
    assert training.fingerprint(found) == run.config["data"]["fingerprint"]
    assert "holds a run already" in refused(capsys, *train_words(file, folder))
    assert cli.main([*train_words(file, folder), "--resume"]) == 0
    assert f"Next: jaxanon evaluate {folder}" in capsys.readouterr().out


def test_anonymize_is_the_run_s_own_and_repeats_itself(folder, file, tmp_path):
    import jax

    run = training.open_run(folder)
    windows = np.load(file)["windows"]
    np.save(tmp_path / "in.npy", windows.astype(np.float64))
    outputs = []
    for number, (name, seed) in enumerate([("in.npy", 3), ("in.npy", 3), ("", 4)]):
        source = tmp_path / name if name else file
        output = tmp_path / "made" / f"out{number}.npy"
        words = ["anonymize", folder, "--input", source, "--output", output]
        assert cli.main([str(word) for word in (*words, "--seed", seed)]) == 0
        outputs.append(np.load(output))
        assert [path.name for path in output.parent.iterdir()].count(output.name) == 1
    assert outputs[0].dtype == np.float32 and outputs[0].shape == windows.shape
    np.testing.assert_array_equal(outputs[0], outputs[1])
    np.testing.assert_array_equal(outputs[0], run.anonymize(jax.random.key(3), windows))
    assert not np.allclose(outputs[0], outputs[2])
    assert len(list((tmp_path / "made").iterdir())) == 3  # And no drafts.


def test_anonymize_refuses_what_it_cannot_read_or_write(folder, tmp_path, capsys):
    good, out = tmp_path / "good.npy", tmp_path / "out.npy"
    np.save(good, np.zeros((2, 8, 2), np.float32))

    def error(source, output=out, *more, run=folder):
        words = ("anonymize", run, "--input", source, "--output", output, *more)
        return refused(capsys, *words)

    np.save(tmp_path / "shape.npy", np.zeros((2, 9, 2)))
    assert "windows must be float[N, 8, 2]" in error(tmp_path / "shape.npy")
    np.save(tmp_path / "complex.npy", np.zeros((2, 8, 2), complex))
    assert "real numbers, got dtype complex128" in error(tmp_path / "complex.npy")
    np.save(tmp_path / "nan.npy", np.full((2, 8, 2), np.nan))
    assert "must be finite" in error(tmp_path / "nan.npy")
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    assert "has no array 'windows'; it has ['x']" in error(tmp_path / "other.npz")
    (tmp_path / "cut.npy").write_bytes(good.read_bytes()[:-8])
    assert "is truncated or is no .npy file" in error(tmp_path / "cut.npy")
    assert "does not exist" in error(tmp_path / "none.npy")
    assert "--input must end in .npy or .npz" in error(tmp_path / "in.csv")
    assert "--output must end in .npy" in error(good, tmp_path / "out.csv")
    assert "holds no run" in error(good, run=tmp_path)
    out.write_text("kept")
    assert "exists; pass --overwrite" in error(good)
    assert out.read_text() == "kept"
    words = ["anonymize", folder, "--input", good, "--output", out, "--overwrite"]
    assert cli.main([str(word) for word in words]) == 0
    assert np.load(out).shape == (2, 8, 2)


REPORT = {
    "utility": {
        "attribute": "activity",
        "raw": {"chance": 0.5, "balanced_accuracy": 0.98},
        "anonymized": {"balanced_accuracy": 0.91},
    },
    "intrusive": {
        "gender": {
            "raw": {"chance": 0.5, "balanced_accuracy": 0.97},
            "anonymized": {"balanced_accuracy": 0.52},
        },
        "subject": None,
    },
    "reidentification": {
        "gender": {"attackers": {"mlp": {"balanced_accuracy": 0.61}}, "worst": "mlp"}
    },
    "headline": ["activity survives."],
}


@pytest.fixture
def evaluated(monkeypatch):
    """What ``evaluate`` was called with; the attacks have tests of their own."""
    calls = []

    def fake(run, data, *, progress, **options):
        progress(0, 2, "attacking")
        calls.append((run, data, options))
        return REPORT

    monkeypatch.setattr(evaluation, "evaluate", fake)
    return calls


def test_evaluate_finds_the_data_and_shows_a_table(evaluated, folder, capsys):
    words = ["evaluate", str(folder), "--attackers", "mlp,forest", "--seed", "5"]
    assert cli.main(words) == 0
    ((run, data, options),) = evaluated
    assert run.folder == folder and len(data.train.windows) == 48
    assert options == {"attackers": ("mlp", "forest"), "seed": 5}
    shown = capsys.readouterr().out
    for text in ("[1/2] attacking", "91.0", "52.0", "61.0 (mlp)", "activity survives."):
        assert text in shown
    assert f"The report: {folder / 'report.html'}" in shown.replace("\n", "")


def test_evaluate_refuses_other_data_and_an_old_report(
    evaluated, folder, tmp_path, capsys
):
    other = write(tmp_path / "other.npz", scale=2.0)
    error = refused(capsys, "evaluate", folder, "--dataset", other)
    assert "is not the data that the run" in error and "fingerprint" in error
    (folder / "report.json").write_text("{}")
    try:
        assert "exists; pass --overwrite" in refused(capsys, "evaluate", folder)
        assert cli.main(["evaluate", str(folder), "--overwrite"]) == 0
    finally:
        (folder / "report.json").unlink()
    record = (folder / "source.json").read_text()
    (folder / "source.json").unlink()  # As in a run that was killed.
    try:
        assert "pass --dataset PATH.npz" in refused(capsys, "evaluate", folder)
        where = json.loads(record)["dataset"]
        assert cli.main(["evaluate", str(folder), "--dataset", where]) == 0
    finally:
        (folder / "source.json").write_text(record)


def test_an_interrupted_training_says_how_to_go_on(file, tmp_path, monkeypatch, capsys):
    def interrupted(*args, out, **options):
        out.mkdir()
        (out / "config.json").write_text("{}")
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "train", interrupted)
    words = train_words(file, tmp_path / "my run")
    assert cli.main(words) == 130
    told = capsys.readouterr().err
    assert f"Go on with: jaxanon train blinder --dataset {file}" in told
    assert "'" + str(tmp_path / "my run") + "'" in told and told.endswith("--resume\n")
    assert (tmp_path / "my run" / "source.json").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("train nobody --out x", "method must be one of ['blinder'], got 'nobody'"),
        ("train blinder --out x --latent 0", "latent must be >= 1, got 0"),
        ("train blinder --out x --dataset nowhere", "there is no data set 'nowhere'"),
        ("train blinder --out x --dataset no.npz", "'no.npz' does not exist"),
        ("train blinder --out x --private side,", "--private must be names with comm"),
        ("train blinder --out x --private age", "private must be one of"),
        ("evaluate nowhere", "nowhere holds no run"),
        ("sweep blinder --out x --grid gamma", "--grid must be NAME=VALUE,VALUE,..."),
        ("sweep blinder --out x --grid depth=1", "grid names 'depth', which is no"),
        ("datasets export smartwatch --output x.csv", "path must end in .npz"),
    ],
)
def test_bad_words_get_one_line(words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in refused(capsys, *words.split())
    assert not (tmp_path / "x").exists()


def test_debugging_shows_where(monkeypatch, tmp_path):
    monkeypatch.setenv("JAXANON_DEBUG", "1")
    with pytest.raises(FileNotFoundError, match="holds no run"):
        cli.main(["evaluate", str(tmp_path)])


def test_words_that_are_no_option_end_with_status_2(capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["evaluate", "x", "--loud"])
    assert stopped.value.code == 2


def test_datasets_are_listed_and_exported(tmp_path, capsys):
    for words in (["datasets"], ["datasets", "list"]):
        assert cli.main(words) == 0
        shown = capsys.readouterr().out
        assert all(name in shown for name in datasets.names()) and "mag4" in shown
    path = tmp_path / "watch.npz"
    words = ["datasets", "export", "smartwatch", "--output", str(path)]
    words += ["--preset", "raw6", "--split", "test", "--private", "side,subject"]
    assert cli.main(words) == 0
    test = datasets.load("smartwatch").test
    with np.load(path) as arrays:
        np.testing.assert_array_equal(arrays["windows"], test.windows)
        assert list(arrays["private"]) == ["side", "subject"]
    assert "exists; pass --overwrite" in refused(capsys, *words)
    assert cli.main([*words, "--overwrite"]) == 0


def test_a_sweep_leaves_runs_and_a_table(file, tmp_path, capsys):
    out = tmp_path / "sweep"
    words = ["sweep", "blinder", "--dataset", str(file), "--out", str(out), *TINY]
    words += ["--public", "activity", "--private", "gender", "--seeds", "2"]
    assert cli.main([*words, "--grid", "gamma=0.1,1"]) == 0
    shown = capsys.readouterr().out
    assert "gamma" in shown and "over 2 seeds" in shown
    told = json.loads((out / "sweep.json").read_text())
    assert [each["settings"]["gamma"] for each in told["members"]] == [0.1, 0.1, 1, 1]
    run = training.open_run(out / "member-0002")
    assert len(sources.recall(run).train.windows) == 48


def test_the_demo_trains_blinder_and_goes_on_with_itself(
    tmp_path, monkeypatch, evaluated, capsys
):
    trained = []

    def fake(method, options, settings, epochs, seed, out, resume):
        trained.append((method, options, settings, epochs, seed, out, resume))

    monkeypatch.setattr(train, "train_run", fake)
    monkeypatch.setattr(
        demo.evaluate, "evaluate", lambda out, **options: trained.append((out, options))
    )
    assert cli.main(["demo", "--out", str(tmp_path / "d"), "--seed", "2"]) == 0
    (method, options, settings, epochs, seed, out, resume), after = trained
    assert (method, options.dataset, options.private) == (
        "blinder",
        "smartwatch",
        "side",
    )
    assert isinstance(settings, BlinderConfig)
    assert (epochs, seed, out) == (demo.DemoSettings().epochs, 2, tmp_path / "d")
    assert resume and after == (tmp_path / "d", {"seed": 2, "overwrite": True})


def test_grids_take_the_type_of_the_setting():
    words = ("latent=5,10", "form=paper,released", "second_order=True,False")
    assert grids.parse(words, BlinderConfig) == {
        "latent": [5, 10],
        "form": ["paper", "released"],
        "second_order": [True, False],
    }
    for words, message in [
        (("latent=1.5",), "--grid latent= takes values such as 25, got 1.5"),
        (("gamma=high",), "--grid gamma= takes values such as 0.2, got 'high'"),
        (("beta=1", "beta=2"), "--grid names 'beta' twice"),
    ]:
        with pytest.raises(ValueError) as stopped:
            grids.parse(words, BlinderConfig)
        assert message in str(stopped.value)
