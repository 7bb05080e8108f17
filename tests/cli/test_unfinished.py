"""What is said of runs that are not there yet, or not done."""

import dataclasses
from types import SimpleNamespace

from jaxanon.cli import app, console, data
from jaxanon.privacy import ledger
from jaxanon.training import run_folder, trainer


def test_what_is_resumed_and_is_not_there_is_said(
    file, tmp_path, train_words, capsys, monkeypatch
):
    out = tmp_path / "mistyped"

    def too_early(*_, **__):
        raise ValueError("enough")

    monkeypatch.setattr(trainer, "train", too_early)
    words = train_words(file, out)
    said = f"{out} has no run yet; starting one."
    for more, there in (["--resume"], True), ([], False):
        assert app.main([*words, *more]) == 2
        assert (said in capsys.readouterr().out) == there


def test_windows_of_an_unfinished_run_come_with_a_warning(
    folder, file, tmp_path, opened, monkeypatch, capsys
):
    half = opened(folder)
    config = half.config | {"epochs": 3}
    half = dataclasses.replace(half, config=config)
    monkeypatch.setattr(run_folder, "open_run", lambda _: half)
    words = ["anonymize", folder, "--input", file, "--output", tmp_path / "out.npy"]
    assert app.main([str(word) for word in words]) == 0
    told = capsys.readouterr().out
    assert ": Unfinished: 1 of 3 epochs are done" in told
    monkeypatch.setattr(run_folder, "open_run", opened)
    assert app.main([str(word) for word in (*words, "--overwrite")]) == 0
    assert "Unfinished" not in capsys.readouterr().out


def test_what_keeps_no_guarantee_is_not_told_as_spent(tmp_path, capsys):
    run = SimpleNamespace(folder=tmp_path, method=SimpleNamespace(config=object()))
    console.spent(run)
    assert not capsys.readouterr().out
    told = {"epsilon": 90.0, "holds": False, "rounds": {"done": 2, "asked": 2}}
    for holds, said in (
        (False, "No guarantee; see jaxanon"),
        (True, "epsilon 90; see jaxanon"),
    ):
        ledger.write_report(tmp_path, told | {"holds": holds})
        console.spent(run)
        assert said in capsys.readouterr().out


def test_files_and_samples_of_an_unfinished_run_come_with_a_warning_too(
    folder, tmp_path, opened, monkeypatch, capsys
):
    half = opened(folder)
    half = dataclasses.replace(half, config=half.config | {"epochs": 3})
    monkeypatch.setattr(run_folder, "open_run", lambda _: half)

    def enough(*_, **__):
        raise ValueError("enough")

    monkeypatch.setattr(data, "recall", enough)
    for words in (
        ["export", folder, "--output", tmp_path / "model.onnx"],
        ["sample", folder, "--label", "slow", "--output", tmp_path / "made.npz"],
    ):
        assert app.main([str(word) for word in words]) == 2
        assert ": Unfinished: 1 of 3 epochs are done" in capsys.readouterr().out
