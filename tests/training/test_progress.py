"""Progress display of a training run."""

import pytest

from jaxanon.training import progress


def test_the_loss_is_seen_whatever_its_name_comes_after(capsys):
    """If a line has too many losses, the one named loss comes first."""
    losses = {"bytes_down": 1.0, "bytes_up": 2.0, "layers": 3.0, "loss": 0.125}
    row = {"round": 2, "losses": losses, "client_updates_per_second": 7.0}
    with progress.rounds(2, 0, show=True, epochs=1) as tell:
        tell(row)
    told = capsys.readouterr().out.removeprefix("epoch 0/1  round 0/2  compiling ...\n")
    assert told.startswith(
        "epoch 1/1  round 2/2  loss 0.125  bytes_down 1  bytes_up 2  7 client"
    )


@pytest.mark.parametrize(
    ("rate", "told"), [(0.237, "0.24"), (9.5, "9.5"), (10.4, "10"), (12345.6, "12,346")]
)
def test_slow_work_is_not_told_as_none(capsys, rate, told):
    row = {"round": 1, "losses": {}, "client_updates_per_second": rate}
    with progress.rounds(1, 0, show=True, epochs=1) as tell:
        tell(row)
    assert f"  {told} client updates/s" in capsys.readouterr().out


def test_a_legend_stands_before_what_is_shown_of_work(capsys, monkeypatch):
    for terminal in (False, True):
        monkeypatch.setattr("rich.console.Console.is_terminal", terminal)
        for total, done, legend in ((2, 0, "What."), (2, 2, "What."), (2, 0, None)):
            with progress.rounds(total, done, show=True, epochs=1, legend=legend):
                pass
            told = "What." in capsys.readouterr().out
            assert told == (legend is not None and done < total)


def test_lines_say_how_long_it_will_take_once_a_row_after_compiling_ended(
    capsys, monkeypatch
):
    # The end of the first row is not informative.
    clock = iter((100.0, 103.0, 106.0, 112.0))
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    row = {"losses": {"loss": 1.0}, "client_updates_per_second": 7.0}
    with progress.rounds(3000, 10, show=True, epochs=3000) as tell:
        for done in (20, 21, 22, 3000):
            tell(row | {"round": done})
    _, first, second, third, last = capsys.readouterr().out.splitlines()
    assert first.endswith("updates/s including compilation") and last.endswith(
        "updates/s"
    )
    assert second.endswith("  2:28:57 left")  # 2,979 rounds of three seconds.
    assert third.endswith("  2:28:54 left")
