"""Declared locations of data sets, without a download."""

import urllib.request

import pytest

from jaxanon import datasets
from jaxanon.datasets import download
from jaxanon.datasets.motion_sense import location


@pytest.fixture(autouse=True)
def bare(tmp_path, monkeypatch):
    """Hides all local data sets and forbids downloads."""
    monkeypatch.setenv("JAXANON_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("jaxanon.datasets.sources.__file__", str(tmp_path / "a/b/c.py"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")

    def opened(*_, **__):
        raise AssertionError("something was downloaded")

    monkeypatch.setattr(urllib.request, "urlopen", opened)


def test_what_is_not_there_says_how_to_get_it_or_that_it_will_come(tmp_path):
    for name in ("motion_sense", "cifar10"):
        said = datasets.data_locations(name, tmp_path)
        assert said == "downloaded on first use"
    assert "request MASS" in datasets.data_locations("mass")
    with pytest.raises(ValueError, match="dataset must be one of .* got 'nothing'"):
        datasets.data_locations("nothing")
    with pytest.raises(ValueError, match=r"to \.npz\. Did you mean 'motion_sense'\?"):
        datasets.data_locations("Motion-Sens")


def test_what_is_there_is_named_and_what_was_downloaded_too(tmp_path):
    folder = tmp_path / "data/occupancy"
    folder.mkdir(parents=True)
    (folder / "Occupancy_Estimation.csv").touch()
    assert datasets.data_locations("occupancy") == str(folder)
    fetched = tmp_path / "downloads/cifar10/cifar-10-binary.tar.gz"
    fetched.parent.mkdir(parents=True)
    fetched.write_bytes(b"not the archive")
    # A file that is found but invalid is reported as such instead of a location.
    assert str(fetched) in datasets.data_locations("cifar10", tmp_path)


def test_afterwards_downloads_are_allowed_again(tmp_path):
    datasets.data_locations("motion_sense", tmp_path)
    with pytest.raises(AssertionError, match="something was downloaded"):
        location.locate(None, tmp_path)
    with (
        download.disabled(),
        pytest.raises(download.NotFetched, match="has not been downloaded"),
    ):
        location.locate(None, tmp_path)
