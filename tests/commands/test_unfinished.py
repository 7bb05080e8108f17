"""What is said of runs that are not there yet, or not done."""

import dataclasses

from jaxanon import cli, training


def test_what_is_resumed_and_is_not_there_is_said(
    file, tmp_path, train_words, capsys, monkeypatch
):
    out = tmp_path / "mistyped"

    def too_early(*_, **__):
        raise ValueError("enough")

    monkeypatch.setattr(training, "train", too_early)
    words = train_words(file, out)
    said = f"There is no run in {out} yet; this is its beginning."
    for more, there in (["--resume"], True), ([], False):
        assert cli.main([*words, *more]) == 2
        assert (said in capsys.readouterr().out) == there


def test_windows_of_an_unfinished_run_come_with_a_warning(
    folder, file, tmp_path, opened, monkeypatch, capsys
):
    half = opened(folder)
    config = half.config | {"epochs": 3}
    half = dataclasses.replace(half, config=config)
    monkeypatch.setattr(training, "open_run", lambda _: half)
    words = ["anonymize", folder, "--input", file, "--output", tmp_path / "out.npy"]
    assert cli.main([str(word) for word in words]) == 0
    told = capsys.readouterr().out
    assert "is unfinished, 1 of 3 epochs are done" in told
    monkeypatch.setattr(training, "open_run", opened)
    assert cli.main([str(word) for word in (*words, "--overwrite")]) == 0
    assert "is unfinished" not in capsys.readouterr().out
