"""The command line: help, refusals, listings, and what reaches the verbs."""

import json
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest

from jaxanon import datasets
from jaxanon.cli import app, arguments, evaluate, train
from jaxanon.core import registry
from jaxanon.core.registry import default_epochs
from jaxanon.evaluation import attackers
from jaxanon.methods import BlinderConfig


@pytest.mark.parametrize("verb", ["demo", "train", "evaluate", "anonymize", "sweep"])
def test_help_everywhere(verb, capsys):
    with pytest.raises(SystemExit) as stopped:
        app.main([verb, "--help"])
    assert not stopped.value.code
    shown = capsys.readouterr().out
    assert f"usage: jaxanon {verb}" in shown and "seed" in shown
    with pytest.raises(SystemExit):
        app.main([])
    shown = capsys.readouterr().out
    assert f"• {verb}" in shown and "--resume" not in shown  # Only the summaries.


def test_help_breaks_lines_where_the_terminal_ends(capsys, monkeypatch):
    """Of a command's own options; what may be left out has no default but its text."""
    monkeypatch.setenv("COLUMNS", "400")
    with pytest.raises(SystemExit):
        app.main(["train", "fedavg", "--help"])
    shown = capsys.readouterr().out
    assert "default: one, or all devices of the processes  " in shown
    (line,) = (line for line in shown.splitlines() if " --num-devices " in line)
    assert "--num-devices INT " in line
    with pytest.raises(SystemExit):
        app.main(["evaluate", "--help"])
    default = " ".join((*attackers.DEFAULT, *attackers.DEFAULT_ATTACKS))
    assert f"membership); default: {default}  " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("word", "near"), [("atlass", "atlas"), ("blindr", "blinder"), ("FedAvg", "fedavg")]
)
def test_a_name_that_is_nearly_one_is_guessed(word, near, capsys):
    assert app.main(["train", word]) == 2
    told = capsys.readouterr().err
    assert f"got '{word}'. Did you mean '{near}'?" in told
    assert app.main(["train", "qqq"]) == 2
    assert "Did you mean" not in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["train", "sweep"])
def test_settings_of_the_method_are_options(verb, capsys):
    with pytest.raises(SystemExit):
        app.main([verb, "blinder", "--help"])
    shown = capsys.readouterr().out
    for option in ("--latent-dim", "--gamma", "--dataset", "--guided, --no-guided"):
        assert option in shown
    # Help, bounds and choices come from the config's declarations.
    assert "size of the latent representation; >= 1 (default: 25)" in shown
    assert "--server-optimizer {adam,sgd}" in shown and "--query-size INT" in shown
    assert "None" not in shown


def test_flags_of_a_method_are_in_groups(capsys, monkeypatch):
    """Its card comes first: two sentences and the source."""
    monkeypatch.setenv("COLUMNS", "100")  # Wider help has two columns.
    with pytest.raises(SystemExit):
        app.main(["train", "blinder", "--help"])
    titles = r"^[^\w\n]*(\w+) options\b"
    about, *parts = re.split(titles, capsys.readouterr().out, flags=re.MULTILINE)
    assert "Source: Yang and Ardakanian, Blinder" in about and "--resume" in about
    flags = dict(zip(parts[::2], parts[1::2], strict=True))
    order = ["data", "run", "recipe", "model", "privacy", "expert"]
    assert [name for name in flags if name in order] == order
    for group, flag in [
        ("data", "--private NAME"),
        ("run", "--output-dir"),
        ("recipe", "--recipe"),
        ("recipe", "--gamma"),
        ("model", "--latent-dim"),
        ("privacy", "--flip-probability"),
        ("expert", "--num-devices"),
    ]:
        assert flag in flags[group]


@pytest.mark.parametrize(
    ("words", "first", "source"),
    [
        ("methods blinder", "blinder", "Source: Yang and Ardakanian"),
        ("learners fedavg", "fedavg", "Source: McMahan"),
        ("learners localized", "localized", "Source: none published; a baseline."),
    ],
)
def test_a_card_has_the_source_recipes_and_settings(words, first, source, capsys):
    assert app.main(words.split()) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"{first}\n") and source in shown
    assert "recommended" in shown and "Settings" in shown
    assert f"jaxanon train {first} --help" in shown


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("methods", (*registry.names("anonymizer"), "pfdrl")),
        ("learners", registry.names("learner")),
        ("datasets", datasets.names()),
        ("datasets list", datasets.names()),
    ],
)
def test_a_list_has_a_line_for_each_name(words, names, capsys, monkeypatch, refused):
    monkeypatch.setenv("COLUMNS", "80")
    assert app.main(words.split()) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [*names]
    assert all(len(line) <= 80 for line in lines)
    if words != "datasets list":
        assert "Did you mean" in refused(words, f"{names[0][:-1]}")


def test_data_sets_as_json(capsys):
    assert app.main(["datasets", "smartwatch", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert row["attributes"]["side"] == 2 and row["name"] == "smartwatch"
    assert app.main(["datasets", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in rows] == [*datasets.names()] and row in rows


def test_help_and_version_load_no_jax(tmp_path):
    program = (
        "import sys\nfrom jaxanon.cli.app import main\n"
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


@pytest.mark.slow
@pytest.mark.parametrize(("words", "status"), [("--version", 0), ("evalute x", 2)])
def test_python_finds_the_command_where_the_shell_does_not(words, status, tmp_path):
    command = [sys.executable, "-P", "-m", "jaxanon", *words.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    assert (done.stdout or done.stderr).startswith("jaxanon")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "train nobody --output-dir x",
            "METHOD must be a registered name, got 'nobody'",
        ),
        (
            "train blinder --output-dir x --latent-dim 0",
            "latent_dim must be >= 1, got 0",
        ),
        (
            "sweep blinder --output-dir x --dataset nowhere --num-seeds 0",
            "num_seeds must be >= 1",
        ),
        ("train blinder --output-dir x --dataset nowhere", "dataset must be one of"),
        ("train blinder --output-dir x --dataset no.npz", "'no.npz' does not exist"),
        (
            "train blinder --output-dir x --private side,",
            "--private must be names with spaces",
        ),
        (
            "train blinder --output-dir x --private age",
            "'age' is neither an attribute of the",
        ),
        ("evaluate nowhere", "nowhere holds no run"),
        (
            "sweep blinder --output-dir x --grid gamma",
            "--grid must be NAME=VALUE,VALUE,...",
        ),
        (
            "sweep blinder --output-dir x --grid depth=1",
            "--grid must name settings, got 'depth'",
        ),
        (
            "evalute nowhere",
            "there is no command 'evalute'; see jaxanon --help. Did",
        ),
        ("sweep --num-seeds 2 pfdrl", "with the name right after the command"),
        ("train --epochs 1 pfdrl", "with the name right after the command"),
        ("server pfdrl", "use `jaxanon train pfdrl` or `jaxanon sweep pfdrl`"),
        ("datasets export smartwatch --output x.csv", "path must end in .npz"),
        ("datasets smartwach", "Did you mean 'smartwatch'?"),
        ("evaluate x --epsilons 1,2", "use `jaxanon budget-curve DIR --epsilons E ..."),
        ("evaluate x --join=0.5", "use `jaxanon personalize DIR --new-client-fract"),
        ("evaluate x --join_rounds 3", "use `jaxanon personalize DIR --num-rounds N"),
    ],
)
def test_bad_words_get_one_line(words, message, tmp_path, monkeypatch, refused):
    monkeypatch.chdir(tmp_path)
    assert message in refused(*words.split())
    assert not (tmp_path / "x").exists()


def test_debugging_shows_where(monkeypatch, tmp_path):
    monkeypatch.setenv("JAXANON_DEBUG", "1")
    with pytest.raises(FileNotFoundError, match="holds no run"):
        app.main(["evaluate", str(tmp_path)])


def test_warnings_get_one_line_as_errors_do(monkeypatch):
    told, before = [], warnings.formatwarning
    say = lambda: warnings.formatwarning("it may take long", UserWarning, "a.py", 3)
    monkeypatch.setattr(app, "_parse", lambda argv: lambda: told.append(say()))
    assert app.main(["demo"]) == 0
    assert told == ["jaxanon: warning: it may take long\n"]
    assert warnings.formatwarning is before


def test_a_folder_that_holds_a_run_is_refused_before_the_data_are_read(
    tmp_path, refused, monkeypatch
):
    (tmp_path / "config.json").write_text("{}")
    monkeypatch.setattr(train.cli_data, "load", None)
    said = refused(
        "train", "orf", "--dataset", "smartwatch", "--output-dir", str(tmp_path)
    )
    assert "already holds a run; continue it with resume=True (--resume)" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("evaluate x --loud", "see jaxanon evaluate --help.\n"),
        ("--loud", "see jaxanon --help.\n"),
        ("train orf --epochs 1 2", "see jaxanon train orf --help.\n"),
        ("privacy atlas --loud", "see jaxanon privacy atlas --help.\n"),
        ("datasets --loud", "see jaxanon datasets --help.\n"),
        ("datasets import --loud", "see jaxanon datasets import --help.\n"),
    ],
)
def test_words_that_are_no_option_end_with_status_2(words, said, capsys):
    with pytest.raises(SystemExit) as stopped:
        app.main(words.split())
    assert stopped.value.code == 2
    assert capsys.readouterr().err.endswith(f"jaxanon: {said}")


def test_who_ends_by_itself_with_status_2_is_not_told_of_words(monkeypatch, capsys):
    monkeypatch.setattr("jaxanon.training.processes.launch", lambda *given: 2)
    words = ["train", "fedavg", "--dataset", "smartwatch", "--num-processes", "2"]
    with pytest.raises(SystemExit) as stopped:
        app.main(words)
    assert stopped.value.code == 2 and "--help" not in capsys.readouterr().err


def test_datasets_are_listed_and_exported(tmp_path, capsys, refused):
    for name, texts in [
        ("motion_sense", ("mag4", "50 Hz")),
        ("pecan_street", ("power (kW)", "every 60 s")),
    ]:
        assert app.main(["datasets", name]) == 0
        shown = capsys.readouterr().out
        assert name in shown and all(text in shown for text in texts)
    path = tmp_path / "watch.npz"
    words = ["datasets", "export", "smartwatch", "--output", str(path)]
    words += ["--preset", "raw6", "--split", "test", "--private", "side", "subject"]
    assert app.main(words) == 0
    test = datasets.load("smartwatch").test
    said = f"The test windows of smartwatch, {len(test.windows)}x128x6: {path}"
    assert said in " ".join(capsys.readouterr().out.split())
    with np.load(path) as arrays:
        np.testing.assert_array_equal(arrays["windows"], test.windows)
        assert list(arrays["private"]) == ["side", "subject"]
    assert "exists; pass overwrite=True (--overwrite)" in refused(*words)
    assert app.main([*words, "--overwrite"]) == 0


def test_the_demo_trains_blinder_and_goes_on_with_itself(tmp_path, monkeypatch):
    trained = []

    def fake(method, options, settings, *, epochs, seed, output_dir, resume):
        trained.append((method, options, settings, epochs, seed, output_dir, resume))

    monkeypatch.setattr(train, "train_run", fake)
    monkeypatch.setattr(
        evaluate, "evaluate", lambda out, **options: trained.append((out, options))
    )
    assert app.main(["demo", "--output-dir", str(tmp_path / "d"), "--seed", "2"]) == 0
    (method, options, settings, epochs, seed, out, resume), after = trained
    assert (method, options.dataset, options.private) == (
        "blinder",
        "smartwatch",
        ("side",),
    )
    assert settings == BlinderConfig()  # The recommended recipe.
    assert (epochs, seed, out) == (default_epochs("blinder"), 2, tmp_path / "d")
    assert resume and after == (tmp_path / "d", {"seed": 2, "overwrite": True})


def test_grids_take_the_type_of_the_setting():
    words = ("latent_dim=5,10", "variant=paper,official", "second_order=True,False")
    assert arguments.parse(words, BlinderConfig) == {
        "latent_dim": [5, 10],
        "variant": ["paper", "official"],
        "second_order": [True, False],
    }
    for words, message in [
        (
            ("latent_dim=1.5",),
            "--grid latent_dim= must have values such as 25, got 1.5",
        ),
        (("gamma=high",), "--grid gamma= must have values such as 60.0, got 'high'"),
        (("beta=1", "beta=2"), "each setting once, got 'beta' twice"),
    ]:
        with pytest.raises(ValueError) as stopped:
            arguments.parse(words, BlinderConfig)
        assert message in str(stopped.value)


def test_a_place_without_permission_is_named(monkeypatch, refused):
    def denied(*_, **__):
        raise PermissionError(13, "Permission denied", "/somewhere/else")

    monkeypatch.setattr(train, "train_run", denied)
    told = refused("train", "orf", "--output-dir", "/somewhere/else")
    assert "no permission for '/somewhere/else'; choose another path, or change" in told


@pytest.mark.parametrize(
    "words",
    [
        ["server", "fedavg", "--min-available-clients", "1"],
        ["train", "pfdrl"],
        ["train", "fedavg"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_folder_is_refused_before_data_are_looked_for(words, tmp_path, capsys):
    place, file = tmp_path / "run", tmp_path / "file"
    place.mkdir()
    (place / "config.json").touch()
    file.touch()
    for out, message in (
        (place, "already holds a run"),
        (file / "in", "must be a folder"),
    ):
        assert app.main([*words, "--dataset", "none", "--output-dir", str(out)]) == 2
        assert message in " ".join(capsys.readouterr().err.split())
