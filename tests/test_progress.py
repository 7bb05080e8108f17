"""What a person sees of a training."""

from jaxanon import progress


def test_the_loss_is_seen_whatever_its_name_comes_after(capsys):
    """Of more losses than a line shows, the one called so comes first."""
    losses = {"bytes_down": 1.0, "bytes_up": 2.0, "layers": 3.0, "loss": 0.125}
    row = {"round": 2, "losses": losses, "client_updates_per_second": 7.0}
    with progress.rounds(2, 0, show=True, epochs=1) as tell:
        tell(row)
    told = capsys.readouterr().out.removeprefix("round 0/2  compiling ...\n")
    assert told.startswith("round 2/2  loss 0.125  bytes_down 1  bytes_up 2  7 client")


def test_a_legend_stands_before_what_is_shown_of_work(capsys, monkeypatch):
    for terminal in (False, True):
        monkeypatch.setattr("rich.console.Console.is_terminal", terminal)
        for total, done, legend in ((2, 0, "What."), (2, 2, "What."), (2, 0, None)):
            with progress.rounds(total, done, show=True, epochs=1, legend=legend):
                pass
            told = "What." in capsys.readouterr().out
            assert told == (legend is not None and done < total)
