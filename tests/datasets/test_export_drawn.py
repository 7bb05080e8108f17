"""Drawn data survive a round trip through a file."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxanon import datasets
from jaxanon.datasets import Data, Spec, Windows
from jaxanon.datasets.spec import take

NAMES = {"act": ("sit", "walk"), "side": ("left", "right", "both")}


@st.composite
def wholes(draw):
    """Draws data of a few people with any label dtype and each class on both sides."""
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    time, width = draw(st.sampled_from([1, 3])), draw(st.sampled_from([1, 2]))
    number = 6 * draw(st.integers(2, 4))
    x = rng.normal(size=(number, time, width)).astype(np.float32)
    kind = draw(st.sampled_from([np.int8, np.int32, np.int64]))
    labels = {
        "act": (np.arange(number) % 2).astype(kind),
        "side": (np.arange(number) % 3).astype(kind),
        "subject": (np.arange(number) % 2).astype(kind),
    }
    windows = Windows(x, {name: own.astype(np.int32) for name, own in labels.items()})
    cut = 6 * draw(st.integers(1, number // 6 - 1))
    train, test = take(windows, slice(0, cut)), take(windows, slice(cut, None))
    flat = train.windows.reshape(-1, width)
    spec = Spec(
        **{"name": "toy", "preset": "raw", "rate_hz": 2.0, "time": time},
        **{"channels": tuple("xy"[:width]), "units": ("g",) * width},
        **{"public": "act", "private": ("side",), "split": "given"},
        classes=NAMES | {"subject": ("ann", "bob")},
        mean=tuple(flat.mean(axis=0, dtype=np.float64).tolist()),
        std=tuple(flat.std(axis=0, dtype=np.float64).tolist()),
    )
    return Data(spec, train, test)


@settings(max_examples=25, deadline=None)
@given(wholes())
def test_what_was_exported_whole_is_loaded_as_it_was(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("own") / "own.npz"
    assert datasets.export(data, "all", path) == path
    again = datasets.load(str(path), public="act", private=["side"])
    for side in ("train", "test"):
        own, other = getattr(again, side), getattr(data, side)
        np.testing.assert_array_equal(own.windows, other.windows)
        for name, label in other.labels.items():
            told = np.array(again.spec.classes[name])[own.labels[name]]
            np.testing.assert_array_equal(
                told, np.array(data.spec.classes[name])[label]
            )
    assert again.spec.mean == pytest.approx(data.spec.mean)
    with pytest.raises(FileExistsError):
        datasets.export(data, "all", path)


@settings(max_examples=20, deadline=None)
@given(
    wholes(),
    st.sampled_from(["Train", "both", "", None, 0]),
    st.sampled_from(["own.csv", "own", "own.npy"]),
)
def test_sides_and_endings_that_there_are_not(tmp_path_factory, data, split, name):
    folder = tmp_path_factory.mktemp("own")
    with pytest.raises((TypeError, ValueError), match="split must be"):
        datasets.export(data, split, folder / "own.npz")
    with pytest.raises(ValueError, match="npz"):
        datasets.export(data, "all", folder / name)
    assert not list(folder.iterdir())


@settings(max_examples=20, deadline=None)
@given(
    st.integers(0, 2**16),
    st.sampled_from([1, 4]),
    st.sampled_from([0.5, 10.0]),
    st.booleans(),
)
def test_rows_of_a_table_come_as_they_stand(tmp_path_factory, seed, length, rate, at):
    """Rates and equivalent time stamps give the same rows."""
    folder = tmp_path_factory.mktemp("csv")
    x = np.random.default_rng(seed).normal(size=(12, 2)).astype(np.float32)
    lines = [
        f"{i / rate!r},{a!r},{b!r},{'sit' if i < 8 else 'walk'}"
        for i, (a, b) in enumerate(x.tolist())
    ]
    (folder / "ann.csv").write_text("\n".join(["t,x,y,act", *lines]))
    times = {"time": "t", "time_format": "s"}  # 0.5 Hz could be 500 Hz in ms.
    options = times if at else {"rate_hz": rate}
    datasets.import_recordings(
        [folder / "ann.csv"],
        folder / "own.npz",
        channels=["x", "y"],
        labels=["act"],
        length=length,
        stride=length,
        **options,
    )
    made = np.load(folder / "own.npz")
    np.testing.assert_allclose(made["windows"], x.reshape(-1, length, 2), rtol=1e-6)
    assert float(made["rate_hz"]) == pytest.approx(rate)
    told = made["act_names"][made["act"]]
    assert told.tolist() == ["sit"] * (8 // length) + ["walk"] * (4 // length)
