"""The front of Blinder's weights: what is asked of the sweep, and the rows of it."""

import json
import sys
import types

import pytest


@pytest.fixture
def front(bench):
    return bench("blinder.front")


def member(beta):
    return types.SimpleNamespace(settings={"beta": beta})


def reported(warping, mlp, forest):
    told = {"mlp": mlp, "forest": forest}
    told = {name: {"balanced_accuracy": x} for name, x in told.items()}
    return {
        "distortion": {"warping": {"mean": warping}},
        "reidentification": {"gender": {"attackers": told}},
    }


@pytest.fixture
def run(front, unmeasured, monkeypatch, tmp_path):
    """``words -> (what was asked of the sweep, the path of the rows)``."""
    rows = tmp_path / "rows.json"
    asked = {}

    def sweep(method, data, **options):
        asked.update(options, method=method, data=data)
        options["output_dir"].mkdir(parents=True, exist_ok=True)
        (options["output_dir"] / "pareto_front.png").write_bytes(b"drawn")
        scores = {
            "activity accuracy": {"mean": 0.9, "std": 0.01},
            "gender intrusive": {"mean": 0.525, "std": 0.01},
        }
        shared = {"seeds": 2, "diverged": 0, "losses": {}}
        summary = [
            {"settings": {"beta": 0.5}, **shared, "scores": scores},
            {"settings": {"beta": 2.0}, **shared, "scores": {}},
        ]
        members = [member(0.5), member(0.5), member(2.0), member(2.0)]
        reports = (reported(10.0, 0.5, 0.5), reported(20.0, 0.625, 0.75), None, {})
        return types.SimpleNamespace(summary=summary, members=members, reports=reports)

    def load(name="", preset="mag4", **options):
        asked.update(loaded=(name, options))
        return types.SimpleNamespace(spec=types.SimpleNamespace(preset=preset))

    monkeypatch.setattr(front.ja, "sweep", sweep)
    monkeypatch.setattr(front.ja, "load", load)
    monkeypatch.setattr(front.shared, "load", lambda smoke: load())

    def run(*words):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["front.py", "--json", str(rows), *words])
        front.main()
        return asked, rows

    return run


def test_a_row_for_every_setting_and_the_figure_beside(front, run, capsys):
    asked, rows = run("--smoke")
    assert asked["grid"] == front.GRID_SMOKE and asked["guided"] and asked["resume"]
    assert asked["evaluate"] and asked["attacks"] == ("forest",)
    (row,) = json.loads(rows.read_text())  # Nobody reports on the other.
    assert row["retrained"] == {"mlp": 0.5625, "forest": 0.625}
    assert row["scores"]["activity accuracy"] == {"mean": 0.9, "std": 0.01}
    assert (row["seeds"], row["diverged"], row["warping"]) == (2, 0, 15.0)
    assert row["command"] == "python bench blinder.front --smoke --seeds 1 --epochs 1"
    assert {"date", "device", "versions"} <= set(row)
    assert rows.with_suffix(".png").read_bytes() == b"drawn"
    printed = capsys.readouterr().out
    assert "activity accuracy" in printed and "retrained forest" in printed
    assert "warping" in printed and "beta 2" not in printed


def test_rows_are_those_that_the_readme_reads(front, run, bench, tmp_path):
    base = front.blinder.VARIANTS["guided"]
    _, rows = run("--epochs", "9", "--preset", "mag5")
    (tmp_path / "front_motion_sense.json").write_text(rows.read_text())
    *_, line = bench("readme.privacy").front(tmp_path).splitlines()
    weights = f"{base['output_discriminator_weight']:g} | {base['utility']:g}"
    assert line == (
        f"| mag5 | 0.5 | {weights} | 9 |  | 90.0 | 52.5 | 56.2 / 62.5 | 15.0 |"
    )
    # As those that are there.
    known = json.loads(
        (front.pathlib.Path(front.__file__).parents[1] / KEPT).read_text()
    )
    (row,) = json.loads(rows.read_text())
    assert set(row) - {"compilation_cache"} == set(known[0])
    assert set(row["settings"]) == set(known[0]["settings"])


KEPT = "results/front_motion_sense.json"


def test_who_is_worse_than_the_usual_attackers_is_named(bench):
    told = bench("readme.privacy")._retrained
    found = {"mlp": 0.5, "svm": 0.5, "forest": 0.625}
    assert told(found) == "50.0 / 62.5"
    assert told(found | {"svm": 0.75}) == "50.0 / 62.5; svm 75.0"


def test_rows_of_other_presets_stay(run):
    run()
    asked, rows = run("--preset", "mag5")
    assert asked["loaded"] == ("motion_sense", {"private": ["gender"]})
    run("--preset", "mag5", "--epochs", "3")
    told = [
        (row["preset"], row["settings"]["epochs"])
        for row in json.loads(rows.read_text())
    ]
    assert told == [("mag4", 12), ("mag5", 12), ("mag5", 3)]
    run()
    assert len(json.loads(rows.read_text())) == 3


@pytest.mark.parametrize(
    ("words", "folder"),
    [
        ("", "runs/front-mag4-12-epochs-1-seeds"),
        ("--epochs 14", "runs/front-mag4-14-epochs-1-seeds"),
        ("--preset mag5 --seeds 2", "runs/front-mag5-12-epochs-2-seeds"),
        ("--smoke", "runs/front-mag4-1-epochs-1-seeds-smoke"),
        ("--seeds 2 --folder kept", "kept"),
    ],
)
def test_a_sweep_of_other_epochs_or_seeds_has_a_folder_of_its_own(run, words, folder):
    asked, _ = run(*words.split())
    assert asked["output_dir"].as_posix() == folder


def test_a_preset_that_the_front_is_not_of_is_refused(run):
    with pytest.raises(SystemExit, match=r"--preset must be of \['mag4', 'mag5'\]"):
        run("--preset", "raw6")
