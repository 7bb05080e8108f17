"""The server's end of Flower: how long a run is alive."""

import time

import pytest

HOW = {"certificate": None, "private_key": None, "public_keys": None, "upload_s": 1.0}


@pytest.mark.parametrize("beat_s", [0.1, 100.0])
def test_a_server_is_alive_as_long_as_it_beats(port, monkeypatch, beat_s):
    from flwr.supercore.corestate import in_memory_corestate

    from jaxanon.flower import link

    monkeypatch.setattr(in_memory_corestate, "HEARTBEAT_PATIENCE", 1)
    monkeypatch.setattr(in_memory_corestate, "HEARTBEAT_DEFAULT_INTERVAL", 0.5)
    monkeypatch.setattr(link, "BEAT_S", beat_s)
    with link.serving(link.listen("127.0.0.1", port), **HOW) as (grid, _):
        grid.pull_messages([])  # From here on it has half a second.
        time.sleep(1.0)
        if beat_s < 1:
            assert list(grid.pull_messages([])) == []
        else:
            with pytest.raises(RuntimeError, match="Flower ended this run.*--resume"):
                grid.pull_messages([])
