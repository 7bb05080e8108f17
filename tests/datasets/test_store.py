"""Recordings are prepared once, completely, and for the requested source."""

import shutil
import subprocess
import sys

import numpy as np
import pytest

from jaxanon.datasets import load, registry, store
from jaxanon.datasets.smartwatch.smartwatch_dataset_builder import Builder

# With protobuf below 7, TFDS calls a deprecated function of it.
OF_TFDS = ("-W", "ignore:label() is deprecated:DeprecationWarning")


def test_the_second_load_reads_what_the_first_prepared(
    watch_file, tmp_path, monkeypatch
):
    first = load("smartwatch", source=watch_file, data_dir=tmp_path)
    monkeypatch.setattr(Builder, "recordings", None)  # Would fail if called.
    second = load("smartwatch", source=watch_file, data_dir=tmp_path)
    np.testing.assert_array_equal(first.train.windows, second.train.windows)


def test_another_source_is_not_mistaken_for_the_first(watch_file, tmp_path, save_watch):
    first = load("smartwatch", source=watch_file, data_dir=tmp_path)
    watch = np.load(watch_file, allow_pickle=True).item()
    watch["X"] = [rows + 1 for rows in watch["X"]]
    save_watch(tmp_path / "other.npy", watch)
    other = load("smartwatch", source=tmp_path / "other.npy", data_dir=tmp_path)
    np.testing.assert_allclose(
        other.spec.mean, np.array(first.spec.mean) + 1, rtol=1e-5
    )


def test_an_interrupted_preparation_is_not_taken_for_a_whole_one(
    watch_file, tmp_path, monkeypatch
):
    whole = Builder.recordings

    def interrupted(self, source):
        for count, recording in enumerate(whole(self, source)):
            if count == 5:
                raise KeyboardInterrupt
            yield recording

    monkeypatch.setattr(Builder, "recordings", interrupted)
    with pytest.raises(KeyboardInterrupt):
        load("smartwatch", source=watch_file, data_dir=tmp_path)
    monkeypatch.setattr(Builder, "recordings", whole)
    (folder,) = (path.parent for path in tmp_path.rglob("smartwatch") if path.is_dir())
    half = folder / "smartwatch" / "incomplete.ABCDEF_1.0.0"  # The state after SIGKILL.
    half.mkdir(parents=True)
    (half / "smartwatch-recordings.array_record-00000-of-00001").write_bytes(b"half")
    dataset = registry.find("smartwatch")
    assert len(store.read(dataset, watch_file, tmp_path)) == 28


def test_two_processes_may_prepare_at_once(watch_file, tmp_path, monkeypatch):
    whole, other = Builder.recordings, []

    def slow(self, source):
        yield from whole(self, source)
        if not other:  # The other process starts later and finishes earlier.
            other.append(True)
            store.read(self.dataset, watch_file, tmp_path)

    monkeypatch.setattr(Builder, "recordings", slow)
    assert len(store.read(registry.find("smartwatch"), watch_file, tmp_path)) == 28


def test_another_process_may_be_done_just_when_one_would_begin(
    watch_file, tmp_path, monkeypatch
):
    make, other = Builder.__init__, []

    def slow(self, **kwargs):
        make(self, **kwargs)
        if not other:  # It found nothing; then the other process prepares everything.
            other.append(True)
            store.read(self.dataset, watch_file, tmp_path)

    monkeypatch.setattr(Builder, "__init__", slow)
    assert len(store.read(registry.find("smartwatch"), watch_file, tmp_path)) == 28


def test_damaged_preparation_is_named(watch_file, tmp_path):
    load("smartwatch", source=watch_file, data_dir=tmp_path)
    (file,) = tmp_path.rglob("*.array_record*")
    file.write_bytes(file.read_bytes()[:-2000])
    with pytest.raises(ValueError, match=r"is damaged .*; delete that folder and"):
        load("smartwatch", source=watch_file, data_dir=tmp_path)
    shutil.rmtree(file.parent)
    load("smartwatch", source=watch_file, data_dir=tmp_path)


def test_cache_folder(monkeypatch, tmp_path):
    assert store.cache_folder(tmp_path) == tmp_path
    monkeypatch.setenv("JAXANON_CACHE", str(tmp_path / "here"))
    assert store.cache_folder() == tmp_path / "here"
    monkeypatch.delenv("JAXANON_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert store.cache_folder() == tmp_path / ".cache" / "jaxanon"


def test_preparing_prints_nothing_and_loads_neither_tensorflow_nor_jax(tmp_path):
    code = (
        "import sys; from jaxanon.datasets import load\n"
        f"load('smartwatch', data_dir={str(tmp_path)!r})\n"
        "assert not {'tensorflow', 'jax', 'seglearn'} & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-W", "error", *OF_TFDS, "-c", code],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
