"""Train, evaluate, anonymize, sweep: the verbs that make and use runs."""

import json
import shutil

import jax
import numpy as np
import pytest
from one_by_one import one_by_one

from jaxanon.cli import anonymize, app
from jaxanon.cli import data as cli_data
from jaxanon.evaluation import anonymizers
from jaxanon.training import loop, run_folder


@pytest.mark.slow
def test_training_leaves_a_run_that_knows_its_data(
    folder, file, capsys, refused, train_words
):
    run = run_folder.open_run(folder)
    assert run.config["seed"] == 7 and run.config["epochs"] == 1
    assert run.method.config.latent_dim == 3 and not run.method.config.second_order
    assert (run.spec.public, run.spec.private) == ("activity", ("gender",))
    found = cli_data.recall(run)
    assert run_folder.fingerprint(found) == run.config["data"]["fingerprint"]
    assert "already holds a run" in refused(*train_words(file, folder))
    assert f"{file} must be a folder, got a file." in refused(*train_words(file, file))
    assert app.main([*train_words(file, folder), "--resume"]) == 0
    assert f"Next: jaxanon evaluate {folder}" in capsys.readouterr().out


def test_anonymize_is_the_run_s_own_and_repeats_itself(
    folder, file, tmp_path, opened_once
):
    run = run_folder.open_run(folder)
    windows = np.load(file)["windows"]
    np.save(tmp_path / "in.npy", windows.astype(np.float64))
    outputs = []
    for number, (name, seed) in enumerate([("in.npy", 3), ("in.npy", 3), ("", 4)]):
        source = tmp_path / name if name else file
        output = tmp_path / "made" / f"out{number}.npy"
        words = ["anonymize", folder, "--input", source, "--output", output]
        assert app.main([str(word) for word in (*words, "--seed", seed)]) == 0
        outputs.append(np.load(output))
        assert [path.name for path in output.parent.iterdir()].count(output.name) == 1
    assert outputs[0].dtype == np.float32 and outputs[0].shape == windows.shape
    np.testing.assert_array_equal(outputs[0], outputs[1])
    key = jax.random.fold_in(jax.random.key(3), anonymize.ROOT)
    np.testing.assert_array_equal(outputs[0], run.anonymize(key, windows))
    # Training with this seed split that of the seed: no batch may have one of those.
    batches = [jax.random.fold_in(key, number) for number in range(3)]
    for own in jax.random.split(jax.random.key(3), 3):
        for batch in batches:
            assert np.any(jax.random.key_data(own) != jax.random.key_data(batch))
    assert not np.allclose(outputs[0], outputs[2])
    assert len(list((tmp_path / "made").iterdir())) == 3  # And no drafts.


@pytest.mark.slow
def test_anonymize_refuses_what_it_cannot_read_or_write(folder, tmp_path, refused):
    good, out = tmp_path / "good.npy", tmp_path / "out.npy"
    np.save(good, np.zeros((2, 8, 2), np.float32))

    def error(source, output=out, *more, run=folder):
        words = ("anonymize", run, "--input", source, "--output", output, *more)
        return refused(*words)

    np.save(tmp_path / "shape.npy", np.zeros((2, 9, 2)))
    assert "windows must be float[N, 8, 2]" in error(tmp_path / "shape.npy")
    np.save(tmp_path / "complex.npy", np.zeros((2, 8, 2), complex))
    assert "real numbers, got dtype complex128" in error(tmp_path / "complex.npy")
    np.save(tmp_path / "nan.npy", np.full((2, 8, 2), np.nan))
    assert "must be finite" in error(tmp_path / "nan.npy")
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    assert "has no array 'windows'; it has ['x']" in error(tmp_path / "other.npz")
    (tmp_path / "cut.npy").write_bytes(good.read_bytes()[:-8])
    assert "is truncated or not an .npy file" in error(tmp_path / "cut.npy")
    assert "does not exist" in error(tmp_path / "none.npy")
    assert "--input must end in .npy or .npz" in error(tmp_path / "in.csv")
    assert "--output must end in .npy" in error(good, tmp_path / "out.csv")
    assert "holds no run" in error(good, run=tmp_path)
    out.write_text("kept")
    assert "exists; pass overwrite=True (--overwrite)" in error(good)
    assert out.read_text() == "kept"
    words = ["anonymize", folder, "--input", good, "--output", out, "--overwrite"]
    assert app.main([str(word) for word in words]) == 0
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
        "gender": {
            "attackers": {"mlp": {"balanced_accuracy": 0.61}},
            "strongest": "mlp",
        }
    },
    "attacks": {
        "stream": [
            {
                "attribute": "gender",
                "attacker": "mlp",
                "variant": "5 windows",
                "scores": {"balanced_accuracy": 0.72, "auc": None, "chance": 0.5},
                "figures": {},
            },
            {
                "attribute": "gender",
                "attacker": "mlp",
                "variant": "100 windows",
                "scores": None,
                "figures": {},
            },
        ],
        "fingerprint": [
            {
                "attribute": "subject",
                "attacker": "choices",
                "variant": "p = 1",
                "scores": None,
                "figures": {"uniqueness": 0.25},
            },
        ],
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

    monkeypatch.setattr(anonymizers, "evaluate", fake)
    return calls


def test_evaluate_finds_the_data_and_shows_a_table(evaluated, folder, capsys):
    words = ["evaluate", str(folder), "--attacks", "mlp", "stream", "--seed", "5"]
    assert app.main(words) == 0
    ((run, data, options),) = evaluated
    assert run.folder == folder and len(data.train.windows) == 48
    assert options == {"attacks": ("mlp", "stream"), "seed": 5}
    shown = capsys.readouterr().out
    for text in ("[1/2] attacking", "91.0", "52.0", "61.0 mlp", "activity survives."):
        assert text in shown
    for text in ("stream, in %", "72.0", "not measured", "uniqueness 0.250"):
        assert text in shown
    assert f"The report: {folder / 'report.html'}" in shown.replace("\n", "")


def test_evaluate_refuses_other_data_and_an_old_report(
    evaluated, folder, tmp_path, refused, waves
):
    other = waves(tmp_path / "other.npz", scale=2.0)
    error = refused("evaluate", folder, "--dataset", other)
    assert "must be the data that the run" in error and "fingerprint" in error
    (folder / "report.json").write_text("{}")
    try:
        assert "exists; pass overwrite=True (--overwrite)" in refused(
            "evaluate", folder
        )
        assert app.main(["evaluate", str(folder), "--overwrite"]) == 0
    finally:
        (folder / "report.json").unlink()
    record = (folder / "source.json").read_text()
    (folder / "source.json").unlink()  # As in a run that was killed.
    try:
        assert "pass --dataset PATH.npz" in refused("evaluate", folder)
        where = json.loads(record)["dataset"]
        assert app.main(["evaluate", str(folder), "--dataset", where]) == 0
    finally:
        (folder / "source.json").write_text(record)


@pytest.fixture
def from_elsewhere(folder, tmp_path):
    """A copy of a run that names a pickle, and the file that unpickling it writes."""
    run, marker = tmp_path / "run", tmp_path / "marker"
    shutil.copytree(folder, run)
    np.save(run / "watch.npy", np.array(Code(marker)), allow_pickle=True)
    record = {"dataset": "smartwatch", "source": str(run / "watch.npy")}
    (run / "source.json").write_text(json.dumps(record))
    return run, marker


class Code:
    """Writes a file when it is unpickled."""

    def __init__(self, marker):
        self.marker = str(marker)

    def __reduce__(self):
        return open, (self.marker, "w")


@pytest.mark.parametrize("verb", ["evaluate", "export"])
def test_a_run_from_elsewhere_runs_no_code(
    verb, from_elsewhere, file, tmp_path, refused, evaluated
):
    run, marker = from_elsewhere
    own = ("--output", tmp_path / "model.onnx") if verb == "export" else ()
    source = run / "watch.npy"
    told = refused(verb, run, *own)
    assert f"--source must repeat the source that {run / 'source.json'} names" in told
    assert f"pass --source {source} if you trust" in told
    told = refused(verb, run, *own, "--source", source)  # And even then:
    assert "must be watch_dataset.npy of seglearn" in told
    assert not marker.exists()


def test_a_source_belongs_to_its_data_set(tmp_path):
    stored = {"dataset": "wisdm", "source": "/there", "split_seed": 3}
    other = cli_data.with_given(stored, tmp_path, dataset="uci_har", source=None)
    assert other == {"dataset": "uci_har", "source": None, "split_seed": 3}
    same = cli_data.with_given(stored, tmp_path, dataset="wisdm", source="/here")
    assert same == stored | {"source": "/here"}
    with pytest.raises(ValueError, match="pass --source /there if you trust"):
        cli_data.with_given(stored, tmp_path, dataset="wisdm")


@pytest.mark.slow
def test_an_interrupted_training_says_how_to_go_on(
    file, tmp_path, monkeypatch, capsys, train_words
):
    out = tmp_path / "my run"

    def interrupted(*args):
        # Nothing is left to do for a run that is killed from here on.
        assert json.loads((out / "source.json").read_text())["dataset"] == str(file)
        raise KeyboardInterrupt

    monkeypatch.setattr(loop, "run", interrupted)
    words = train_words(file, out)
    assert app.main(words) == 130
    told = capsys.readouterr().err
    assert f"Continue with: jaxanon train blinder --dataset {file}" in told
    assert "'" + str(out) + "'" in told and told.endswith("--resume\n")


@pytest.fixture
def judged(monkeypatch):
    """Evaluations that are made up: the larger gamma, the less is told of gender."""
    raw = {"balanced_accuracy": 0.9, "chance": 0.5}

    def evaluate(run, data, **options):
        read = {"balanced_accuracy": 0.8 - run.config["hyper"]["gamma"] / 4}
        kept = {"raw": {"accuracy": 1.0}, "anonymized": {"accuracy": 0.9}}
        return {
            "utility": {"attribute": "activity", **kept},
            "intrusive": {"gender": {"raw": raw, "anonymized": raw}},
            "reidentification": {
                "gender": {"attackers": {"mlp": read}, "strongest": "mlp"}
            },
        }

    monkeypatch.setattr(anonymizers, "train_raw_classifiers", lambda data: None)
    monkeypatch.setattr(anonymizers, "evaluate_each", one_by_one(evaluate))


@pytest.mark.slow
def test_a_sweep_leaves_runs_a_table_and_its_front(
    file, tmp_path, capsys, monkeypatch, train_words, judged
):
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "runs" / "blinder-sweep"  # Where it goes unless told.
    words = ["sweep", *train_words(file, out)[1:], "--grid", "gamma=0.1,1"]
    del words[words.index("--output-dir") : words.index("--output-dir") + 2]
    words[words.index("--seed")] = "--num-seeds"
    words[words.index("7")] = "2"
    assert app.main(words) == 0
    shown = capsys.readouterr().out
    assert "gamma" in shown and "over 2 seeds" in shown
    assert "\nattacking members 0, 1, 2, 3 ...\n" in shown
    assert "runs/blinder-sweep/sweep.html" in shown
    told = json.loads((out / "sweep.json").read_text())
    assert [each["settings"]["gamma"] for each in told["members"]] == [0.1, 0.1, 1, 1]
    run = run_folder.open_run(out / "member-0002")
    assert len(cli_data.recall(run).train.windows) == 48
    assert (out / "pareto_front.png").read_bytes().startswith(b"\x89PNG")
    page = (out / "sweep.html").read_text()
    assert "★ gamma 1.0" in page and "★ gamma 0.1" not in page


@pytest.mark.slow
def test_a_sweep_over_splits_leaves_runs_that_know_theirs(
    file, tmp_path, capsys, refused
):
    arrays = dict(np.load(file))
    file = tmp_path / "both.npz"  # Everybody has windows of both genders.
    np.savez(file, **arrays | {"gender": np.arange(72) // 2 % 2})
    out = tmp_path / "splits"
    words = ["sweep", "orf", "--dataset", str(file), "--public", "activity"]
    words += ["--private", "gender", "--output-dir", str(out), "--epochs", "1"]
    words += [
        "--num-seeds",
        "1",
        "--num-splits",
        "2",
        "--no-evaluate",
        "--halving-factor",
        "2",
    ]
    # Whoever is drawn twice is passed over: seeds 0 and 1 both test with person 1.
    assert app.main([*words, "--split", "subject"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "over 1 seed x 2 splits" in shown and "Halving stopped no setting" in shown
    assert "Next: run the same command with --resume and without" in shown
    tested = []
    for index in (0, 1):
        run = run_folder.open_run(out / f"member-000{index}")
        tested.append(set(cli_data.recall(run).test.labels["subject"].tolist()))
    assert len(tested[0] & tested[1]) == 0
    # Python's runs remember their test people, but no seed of their split.
    seed = json.loads((run.folder / cli_data.RECORD).read_text())["split_seed"]
    (run.folder / cli_data.RECORD).unlink()
    found = cli_data.recall(run, dataset=str(file))
    assert set(found.test.labels["subject"].tolist()) == tested[1]
    config = json.loads((run.folder / "config.json").read_text())
    assert len(config["data"].pop("test_people")) == 1  # Older runs have none.
    (run.folder / "config.json").write_text(json.dumps(config))
    run = run_folder.open_run(run.folder)
    moved = ["export", str(run.folder), "--output", str(tmp_path / "orf.onnx")]
    moved += ["--dataset", str(file)]
    assert "or --split-seed with the seed of jaxanon.load." in refused(*moved)
    told = refused(*moved, "--split-seed", "0")
    assert told.endswith("or pass --dataset with the original.\n")
    found = cli_data.recall(run, dataset=str(file), split_seed=seed)
    assert set(found.test.labels["subject"].tolist()) == tested[1]
    assert (
        app.main(["evaluate", *moved[1:2], *moved[4:], "--split-seed", str(seed)]) == 0
    )
    words[words.index("--output-dir") + 1] = str(tmp_path / "other")
    assert "splits 0 and 1 hold the same windows" in refused(*words)
