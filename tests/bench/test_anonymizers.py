"""Tests of the table of anonymizers: resuming, verdicts, entries."""

import json
import math
import shutil
import types
from html.parser import HTMLParser

import pytest

from jaxanon import methods
from jaxanon.attacks import ATTACKERS
from jaxanon.datasets import load
from jaxanon.evaluation.attackers import ATTACKS


@pytest.fixture(scope="module")
def written(run_script, tmp_path_factory):
    folder = tmp_path_factory.mktemp("anonymizers")
    words = ["--smoke", "--folder", folder, "--json", folder / "rows.json"]
    return folder, run_script("anonymizers", *words)


def test_smoke_writes_rows_a_table_a_page_and_a_figure(written):
    folder, printed = written
    rows = json.loads((folder / "rows.json").read_text())
    assert [row["system"] for row in rows] == ["raw windows", "ORF"]
    raw, removed = rows
    assert raw["public_accuracy"] == pytest.approx([raw["public_accuracy_raw"][0], 0.0])
    assert raw["warping"][0] == 0 < removed["warping"][0]
    assert {"forest", "tree"} <= set(raw["retrained_balanced"])
    assert any(name.startswith("pairs") for name in raw["attacks"])
    assert "intrusive: side, anonymized windows" in raw["attacks"]
    assert raw["retrained_accuracy"].keys() == raw["retrained_balanced"].keys()
    assert raw["linkage"]["unseen_subjects"] is False
    assert raw["seeds"] == [0, 1] and {"device", "versions", "date"} <= set(raw)
    table = (folder / "rows.md").read_text()
    assert "| ORF |" in table and table in printed
    assert (folder / "rows.png").read_bytes()[:4] == b"\x89PNG"

    open_tags = []

    class Page(HTMLParser):
        def handle_starttag(self, tag, attributes):
            assert "http" not in str(attributes)
            if tag not in ("meta", "img"):
                open_tags.append(tag)

        def handle_endtag(self, tag):
            assert open_tags.pop() == tag

    Page().feed((folder / "rows.html").read_text())
    assert not open_tags


def test_only_what_is_missing_is_done(written, bench, tmp_path, monkeypatch):
    folder = shutil.copytree(written[0], tmp_path / "copy")
    kept = sorted(path.name for path in folder.rglob("found/ORF/*.json"))
    assert kept == [
        "attackers-0.json",
        "attacks-0.json",
        "seeds-0.json",
        "seeds-1.json",
    ]
    missing = folder / "smartwatch" / "found" / "ORF" / "seeds-1.json"
    before = json.loads(missing.read_text())
    missing.unlink()
    module, (case,) = bench("anonymizers.command"), bench("anonymizers.entries").SMOKE
    asked = []

    def evaluate(run, data, *, attacks, seed, **options):
        asked.append((run.config["seed"], seed, attacks))
        return before["report"]

    monkeypatch.setattr(module.anonymizers, "evaluate", evaluate)
    monkeypatch.setattr(module.anonymizers, "train_raw_classifiers", lambda data: None)
    again = module.Bench(case, module.load(case, True), folder, True)
    for stage, seed in bench("anonymizers.entries").passes(2, further=True):
        for name in case.entries:
            again.run(bench("anonymizers.entries").ENTRIES[name], stage, seed, math.inf)
    assert asked == [(1, 1, ("forest", "stream"))]
    assert json.loads(missing.read_text())["report"] == before["report"]
    first = json.loads((folder / "rows.json").read_text())
    for row, one in zip(again.rows(), first, strict=True):
        assert row | {"seconds": None} == one | {"seconds": None}


def test_models_of_another_case_are_opened_not_trained(written, bench, tmp_path):
    folder = shutil.copytree(written[0], tmp_path / "copy")
    module, entries = bench("anonymizers.command"), bench("anonymizers.entries")
    (case,) = entries.SMOKE
    other = case._replace(name="elsewhere", trained_on=case.name)
    taken = module.Bench(other, module.load(other, True), folder, True)
    run, seconds = taken.train(entries.ENTRIES["ORF"], 1)
    assert (run.config["seed"], seconds) == (1, 0.0)
    assert run.folder == folder / "smartwatch" / "trained" / "ORF" / "seed-1"
    with pytest.raises(FileNotFoundError, match="holds no run"):
        taken.train(entries.ENTRIES["ORF"], 2)


def test_epochs_are_those_of_the_case_that_trains(bench, tmp_path):
    module, entries = bench("anonymizers.command"), bench("anonymizers.entries")
    there = next(case for case in entries.CASES if case.trained_on)
    taken = module.Bench(there, None, tmp_path, False)
    # On MotionSense DySan has as many rounds, not epochs, as on raw axes.
    assert taken.epochs(entries.ENTRIES["DySan"]) == 10
    assert taken.epochs(entries.ENTRIES["CVAE"]) == entries.PASSES


def test_what_was_trained_before_took_what_it_took(written, bench, tmp_path):
    folder = shutil.copytree(written[0], tmp_path / "copy")
    module, entries = bench("anonymizers.command"), bench("anonymizers.entries")
    (case,) = entries.SMOKE
    again = module.Bench(case, module.load(case, True), folder, True)
    run, seconds = again.train(entries.ENTRIES["ORF"], 0)
    assert seconds == sum(row["seconds"] for row in run.history) > 0


def test_what_is_taken_elsewhere_is_trained_there(bench):
    entries = bench("anonymizers.entries")
    for case in entries.CASES:
        if case.trained_on:
            (source,) = (one for one in entries.CASES if one.name == case.trained_on)
            assert set(case.entries) <= set(source.entries)


def test_after_its_hours_nothing_is_begun(written, bench, tmp_path):
    module, (case,) = bench("anonymizers.command"), bench("anonymizers.entries").SMOKE
    again = module.Bench(case, module.load(case, True), tmp_path, True)
    again.run(bench("anonymizers.entries").ENTRIES["ORF"], "seeds", 0, -math.inf)
    assert again.rows() == [] and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "activity, private, inverted, said",
    [
        (90, 60, False, "reproduced"),
        (88, 64, False, "reproduced"),
        (87.9, 60, False, "worse"),
        (90, 65.1, False, "worse"),
        (90, 54.9, False, "better"),
        (92.1, 62, False, "better"),
        (92.1, 66, False, "worse"),
        (90, 45, False, "reproduced"),  # As far from chance level as 55.
        (90, 54.9, True, "better"),
        (90, 65.1, True, "worse"),
    ],
)
def test_verdicts(bench, activity, private, inverted, said):
    published = bench("anonymizers.published")
    told = published.Published(90.0, 60.0, "a paper", inverted=inverted)
    assert published.verdict(told, activity, private) == said


def test_raw_windows_hide_nothing_better(bench):
    published = bench("anonymizers.published")
    told = published.Published(95.0, 98.0, "a paper", hides=False)
    assert published.verdict(told, 99.0, 98.0) == "reproduced"
    told = told._replace(private_band=(90.0, 98.5))
    assert published.verdict(told, 99.0, 99.5) == "reproduced"
    # A classifier with lower accuracy than the published one is a worse classifier.
    assert published.verdict(told, 95.0, 80.0) == "worse"
    raw = [one for at, one in published.PUBLISHED.items() if at[1] == "raw windows"]
    assert len(raw) == 4 and not any(one.hides for one in raw)


def test_bands_come_before_the_points_of_the_rest(bench):
    published = bench("anonymizers.published")
    told = published.Published(96.0, 17.9, "a paper", 94.5, (0, 30), inverted=True)
    assert published.verdict(told, 94.5, 30.0) == "reproduced"
    assert published.verdict(told, 94.4, 30.0) == "worse"
    assert published.verdict(told, 99.0, 30.1) == "worse"
    assert published.verdict(None, 99.0, 30.1) == ""


def test_every_phase_of_every_entry_is_trained(bench):
    entries, spec = (
        bench("anonymizers.entries"),
        load("smartwatch", private=["side"]).spec,
    )
    names = spec.classes["exercise"]
    # Entries without epochs use defaults for MotionSense.
    replaced = {"black": names[:1], "gray": names[1:2]}
    needed = {"rae": replaced, "rae_aae": replaced}
    for case in entries.CASES:
        for entry in (entries.ENTRIES[name] for name in case.entries):
            if entry.method:
                settings = needed.get(entry.method, {}) | entry.settings
                least = methods.build(
                    entry.method, spec, **settings
                ).schedule.min_epochs
                # A last phase of one epoch would be too short.
                assert case.epochs.get(entry.name, entry.epochs) > least or least == 1


def test_every_attacker_and_attack_that_a_run_of_windows_has_is_tried(bench):
    tried = {
        name for names in bench("anonymizers.entries").STAGES.values() for name in names
    }
    for entry in bench("anonymizers.entries").ENTRIES.values():
        # Clients send gradients, and a grid selects among models.
        assert ("inversion" in entry.attacks) <= ("blinder" in entry.method)
        assert ("fingerprint" in entry.attacks) == bool(entry.grid)
        tried |= set(entry.attacks)
    assert tried == set(ATTACKERS) | set(ATTACKS) - {
        "membership"
    }  # Needs a method that generates windows.


def test_every_entry_builds_and_everything_published_is_tried(bench):
    entries = bench("anonymizers.entries")
    tried = {
        (case.name, name, variant)
        for case in entries.CASES
        for name in case.entries
        for variant in entries.ENTRIES[name].variants
    }
    published = bench("anonymizers.published").PUBLISHED
    assert set(published) <= tried
    for told in published.values():
        assert (told.reidentified is None) == (told.reidentified_source is None)
    for entry in entries.ENTRIES.values():
        if entry.method:
            fields = methods.config_class(entry.method).__dataclass_fields__
            assert set(entry.settings) <= set(fields)
            for settings in entry.variants.values():
                assert set(settings) <= set(fields)


@pytest.mark.slow
def test_a_grid_is_trained_as_one_sweep_and_its_choice_is_a_run(
    bench, monkeypatch, tmp_path
):
    module, entries, asked = (
        bench("anonymizers.command"),
        bench("anonymizers.entries"),
        {},
    )
    entry = entries.ENTRIES["DySan, chosen online"]
    pairs = [(a, b) for a in entry.grid["alpha"] for b in entry.grid["lambda_"]]
    assert sum(round(a + b, 1) < 1 for a, b in pairs) == 36
    case = next(case for case in entries.CASES if entry.name in case.entries)
    run = lambda *seconds: types.SimpleNamespace(
        history=[{"seconds": each} for each in seconds]
    )
    sweep = types.SimpleNamespace(runs=[run(2.0, 3.0), run(2.0, 3.0), run(1.0, 7.0)])
    monkeypatch.setattr(
        module.ja, "sweep", lambda *args, **more: asked.update(more, args=args) or sweep
    )
    members = lambda folder: (["a", "b"], 0) if folder == asked["output_dir"] else None
    monkeypatch.setattr(module.online_selection, "members", members)
    chosen = lambda key, runs, data: ("chosen", runs, data)
    monkeypatch.setattr(module.online_selection, "choose_online", chosen)
    one = module.Bench(case, "data", tmp_path, False)
    found, seconds = one.train(entry, 0)
    assert found == ("chosen", ["a", "b"], "data")
    assert seconds == 13  # Equal times mean that two models trained together.
    assert asked["args"] == ("dysan", "data")
    assert asked["epochs"] == entry.epochs and asked["resume"] is True
    assert one.as_variant(entry, found, {}) is found
    assert (case.name, entry.name, "") in bench("anonymizers.published").PUBLISHED


def test_an_entry_s_own_attacks_are_tried_with_the_others(bench, monkeypatch, tmp_path):
    module, (case,) = bench("anonymizers.command"), bench("anonymizers.entries").SMOKE
    entry = bench("anonymizers.entries").ENTRIES["ORF"]._replace(attacks=("inversion",))
    one, asked = module.Bench(case, None, tmp_path, True), []
    monkeypatch.setattr(one, "train", lambda entry, seed: ("run", 0.0))
    monkeypatch.setattr(one, "as_variant", lambda entry, run, settings: run)
    monkeypatch.setattr(one, "raw_classifiers", lambda: None)
    monkeypatch.setattr(one, "tell", lambda *args: None)

    def evaluate(run, data, *, attacks, **options):
        asked.append(attacks)
        return {"seed": 0}

    monkeypatch.setattr(module.anonymizers, "evaluate", evaluate)
    for stage in ("seeds", "attacks"):
        one.run(entry, stage, 0, math.inf)
    assert asked == [
        ("forest", "stream", "inversion"),
        ("forest", "intrusive", "pairs"),
    ]
