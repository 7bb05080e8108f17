"""DySan's grid as one anonymizer: what is asked, and which figures are told of it."""

import types

import pytest


@pytest.mark.parametrize("smoke", [True, False])
def test_the_grid_is_trained_and_its_choice_attacked(
    bench, smoke, monkeypatch, tmp_path
):
    module, asked, rows = bench("_online"), {}, {}
    data = types.SimpleNamespace(test=types.SimpleNamespace(windows=[0, 0]))

    def evaluate(run, data, *, attacks):
        asked["attacks"] = attacks
        assert run == ("chosen", ["a", "b"])
        figures = [{"variant": "p = 1", "figures": {"uniqueness": 0.25}}]
        return {
            "utility": {"attribute": "activity", "anonymized": {"accuracy": 0.75}},
            "intrusive": {},
            "reidentification": {},
            "attacks": {"fingerprint": figures},
        }

    monkeypatch.setattr(module._schedules, "load", lambda smoke: data)
    sweep = lambda name, data, **more: asked.update(more, name=name)
    monkeypatch.setattr(module.ja, "sweep", sweep)
    members = lambda folder: (["a", "b"], 0) if folder == asked["out"] else None
    monkeypatch.setattr(module.online_run, "members", members)
    chosen = lambda key, runs, data: ("chosen", runs)
    monkeypatch.setattr(module.online_run, "choose_online", chosen)
    monkeypatch.setattr(module.evaluation, "evaluate", evaluate)
    report = types.SimpleNamespace(
        add=lambda name, value, unit, shapes: rows.update({name: (value, shapes)})
    )
    module.online(report, smoke, tmp_path, {"batch": 8})
    assert (asked["name"], asked["batch"], asked["resume"]) == ("dysan", 8, True)
    assert asked["epochs"] == (1 if smoke else 40)
    assert "fingerprint" in asked["attacks"]
    if not smoke:
        pairs = [(a, b) for a in asked["grid"]["alpha"] for b in module.TENTHS]
        assert sum(round(a + b, 1) < 1 for a, b in pairs) == 36
    shapes = "of 2 models, 2 windows"
    assert rows == {
        "chosen online: activity accuracy": (75.0, shapes),
        "chosen online: unique, p = 1": (25.0, shapes),
    }
