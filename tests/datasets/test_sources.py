"""Original files are found at the given place, or downloaded completely."""

import http.server
import threading

import pytest

from jaxanon.datasets import load, sources
from jaxanon.datasets.download import fetch
from jaxanon.datasets.motion_sense import location


@pytest.fixture
def nowhere(monkeypatch):
    """Hides all local copies of the data."""
    monkeypatch.setattr(
        sources, "__file__", "/nowhere/else/jaxanon/datasets/sources.py"
    )


@pytest.fixture
def server(tmp_path):
    """Serves a folder; returns the folder and its address."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(folder))

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()


def test_a_folder_and_its_zip_hold_the_same(tmp_path, zipped):
    folder = tmp_path / "data"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "b_2.txt").write_text("two")
    (folder / "a_1.txt").write_text("one")
    (folder / "other.csv").write_text("no")
    archive = zipped(folder, tmp_path / "data.zip")
    for place in (folder, archive):
        read = sources.read_each([place], r"_(\d)\.txt$")
        assert [(match[1], text) for match, text in read] == [
            ("1", b"one"),
            ("2", b"two"),
        ]


def test_the_digest_tells_contents_apart(tmp_path, zipped):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "a.txt").write_text("one")
    first = zipped(folder, tmp_path / "first.zip")
    again = zipped(folder, tmp_path / "again.zip")
    (folder / "a.txt").write_text("two")
    other = zipped(folder, tmp_path / "other.zip")
    digests = [sources.digest([path]) for path in (first, again, other)]
    assert digests[0] == digests[1] != digests[2]


def test_shared_data_beside_the_current_folder(nowhere, tmp_path, monkeypatch):
    assert sources.find("toy", None, "txt$") is None
    (tmp_path / "shared" / "data" / "toy").mkdir(parents=True)
    (tmp_path / "shared" / "data" / "toy" / "a.txt").write_text("one")
    (tmp_path / "repository").mkdir()
    monkeypatch.chdir(tmp_path / "repository")
    assert sources.find("toy", None, "txt$").resolve() == (
        tmp_path / "shared" / "data" / "toy"
    )


def test_a_source_without_the_files_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"source .* has no file of motion_se"):
        load("motion_sense", source=tmp_path)
    with pytest.raises(FileNotFoundError, match="because it does not exist"):
        load("motion_sense", source=tmp_path / "nowhere")


def test_fetches_once(server, tmp_path):
    folder, url = server
    (folder / "a.txt").write_text("one")
    target = fetch(f"{url}/a.txt", tmp_path / "got" / "a.txt", "ask")
    (folder / "a.txt").unlink()
    assert fetch(f"{url}/a.txt", target, "ask").read_text() == "one"
    assert list(target.parent.iterdir()) == [target]


def test_says_what_to_do_without_a_network(server, tmp_path):
    _, url = server
    with pytest.raises(FileNotFoundError, match=r"a.txt failed \(.*404.*\); do this"):
        fetch(f"{url}/a.txt", tmp_path / "a.txt", "do this")
    assert not (tmp_path / "a.txt").exists()


def test_motion_sense_is_downloaded_when_it_is_nowhere(
    nowhere, server, zipped, motion_sense_folder, tmp_path, monkeypatch
):
    folder, url = server
    monkeypatch.setattr(location, "HOME", url)
    with pytest.raises(
        FileNotFoundError, match=r"downloading .*; download A_DeviceMotion"
    ):
        load("motion_sense", data_dir=tmp_path)
    people = motion_sense_folder / "data_subjects_info.csv"
    (folder / people.name).write_bytes(people.read_bytes())
    signals = motion_sense_folder / "A_DeviceMotion_data"
    archive = zipped(signals, folder / "A_DeviceMotion_data.zip")
    with pytest.raises(ValueError, match="must have the expected content, but differs"):
        load("motion_sense", data_dir=tmp_path)
    monkeypatch.setattr(location, "COMPLETE", location.fingerprint(archive))
    got = load("motion_sense", data_dir=tmp_path)
    assert got.spec == load("motion_sense", source=motion_sense_folder).spec
    # The rejected file can still be used as ``source``, as the message says.
    fetched = tmp_path / "downloads" / "motion_sense" / archive.name
    assert load("motion_sense", source=fetched).spec == got.spec


def test_an_answer_that_breaks_off_leaves_nothing(tmp_path, monkeypatch):
    class Answer:
        headers = {"Content-Length": "10"}  # noqa: RUF012
        parts = iter([b"half", b""])
        read = lambda self, size=0: next(self.parts)
        __enter__ = lambda self: self
        __exit__ = lambda self, *error: None

    monkeypatch.setattr("urllib.request.urlopen", lambda url, timeout: Answer())
    with pytest.raises(FileNotFoundError, match="received 4 of 10 bytes"):
        fetch("http://host/a.zip", tmp_path / "a.zip", "ask")
    assert list(tmp_path.iterdir()) == []
