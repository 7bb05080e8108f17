"""Tests of DySan's schedules: a growing model with evaluated checkpoints."""

import types

import pytest


@pytest.fixture
def schedules(bench):
    return bench("dysan")


def test_each_try_goes_on_from_the_one_before(schedules, monkeypatch, tmp_path):
    asked, rows = [], []

    def train(method, data, *, epochs, output_dir, resume):
        output_dir.mkdir(parents=True, exist_ok=True)
        grown = sorted(path.name for path in output_dir.iterdir())
        asked.append((method.config.inner_steps, epochs, grown))
        (output_dir / f"after {epochs}").touch()
        history = [{"round": 3 * number} for number in (1, epochs)]
        return types.SimpleNamespace(history=history)

    def evaluate(run, data, *, raw_classifiers):
        judged = {"anonymized": {"accuracy": 0.5, "balanced_accuracy": 0.6}}
        return {
            "utility": {"attribute": "exercise", **judged},
            "intrusive": {"side": judged},
            "reidentification": {},
        }

    def add(name, value, unit, shapes, **more):
        rows.append((name, value, more["rounds"]))

    monkeypatch.setattr(schedules.ja, "train", train)
    monkeypatch.setattr(
        schedules.anonymizers, "train_raw_classifiers", lambda data: None
    )
    monkeypatch.setattr(schedules.anonymizers, "evaluate", evaluate)
    report = types.SimpleNamespace(add=add)
    schedules.quality(report, True, tmp_path, {})
    assert asked == [(1, 1, []), (1, 2, ["after 1"])]
    assert rows == [
        ("ours, 1 epochs: exercise accuracy", 50.0, 3),
        ("ours, 1 epochs: side intrusive", 60.0, 3),
        ("ours, 2 epochs: exercise accuracy", 50.0, 6),
        ("ours, 2 epochs: side intrusive", 60.0, 6),
    ]
    told = rows.copy()
    schedules.quality(report, True, tmp_path, {})  # Saved results are not recomputed.
    assert (rows[4:], asked[2:]) == (told, [])
    (tmp_path / "ours" / "2-epochs" / "found.json").unlink()
    schedules.quality(report, True, tmp_path, {})  # The model is still saved.
    assert asked[2:] == [(1, 2, ["after 1", "after 2"])]
    assert rows[8:] == told


def test_both_schedules_are_tried_about_as_long(schedules):
    """Uses the seconds per round in bench/results/dysan_cpu.json: 0.18, 4.86."""
    ours, released = (schedules.SCHEDULES[name] for name in ("ours", "as released"))
    assert (ours.steps, released.steps) == (1, 50)
    seconds = [
        38 * spent * max(schedule.checks)
        for spent, schedule in zip((0.18, 4.86), (ours, released), strict=True)
    ]
    assert seconds[0] < seconds[1]  # Our schedule has no advantage.
