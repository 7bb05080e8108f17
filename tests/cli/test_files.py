"""What a file says of its windows is held against what a run knows."""

import types

import numpy as np
import pytest

from jaxanon.cli import files

SPEC = types.SimpleNamespace(channels=("x", "y"), units=("g", "g"), rate_hz=50.0)
OPEN = types.SimpleNamespace(channels=("0", "1"), units=("", ""), rate_hz=1.0)


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"channels": ["x", "y"], "units": ["g", "g"], "rate_hz": 50.2},
        {"channels": ["0", "1"], "units": ["", "g"], "rate_hz": 1.0},
        {"rate_hz": "fast"},
        {"rate_hz": 49.6},
        {"rate_hz": []},
        {"channels": ["x"]},  # Of one channel less; whoever rewrites it says so.
    ],
)
def test_what_agrees_or_is_not_said_passes(told):
    files.refuse_others({name: np.array(value) for name, value in told.items()}, SPEC)


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"channels": ["y", "x"]}, r"channels \['x', 'y'\] as in .*, got \['y', 'x'\]"),
        (
            {"units": ["g", "m/s^2"]},
            r"units \['g', 'g'\] as in .*, got \['g', 'm/s\^2'\]",
        ),
        ({"rate_hz": 100}, "must be 50 as in training, got 100; resample it"),
        ({"rate_hz": 49.4}, "got 49.4;"),
        ({"rate_hz": 50.6}, "got 50.6;"),
        ({"rate_hz": 0.0}, "got 0;"),
        ({"rate_hz": np.nan}, "got nan;"),
    ],
)
def test_what_is_otherwise_is_refused(told, why):
    arrays = {name: np.array(value) for name, value in told.items()}
    with pytest.raises(ValueError, match=why):
        files.refuse_others(arrays, SPEC)
    files.refuse_others(arrays, OPEN)  # Who knows nothing cannot tell.


def test_both_are_read_from_one_file(tmp_path):
    windows = np.ones((3, 8, 2))
    np.savez(tmp_path / "a.npz", windows=windows, units=["g", "g"], act=np.zeros(3))
    found, told = files.read_windows(tmp_path / "a.npz")
    np.testing.assert_array_equal(found, windows)
    assert {name: own.tolist() for name, own in told.items()} == {"units": ["g", "g"]}
    np.save(tmp_path / "a.npy", windows)
    assert files.read_windows(tmp_path / "a.npy")[1] == {}
