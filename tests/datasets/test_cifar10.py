"""CIFAR-10 from a few photographs, as prepared by TFDS and as published."""

import io
import tarfile
import zipfile

import numpy as np
import pytest
import tensorflow_datasets as tfds
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from jaxanon.datasets import load, partition
from jaxanon.datasets.cifar10 import location
from jaxanon.datasets.cifar10.cifar10_dataset_builder import published_images
from jaxanon.datasets.recordings import Recording

SIZES = {"train": 600, "test": 300}


def photographs(side):
    """Returns seeded noise with cyclic classes."""
    random = np.random.default_rng(len(side))
    images = random.integers(0, 256, (SIZES[side], 32, 32, 3), np.uint8)
    return images, np.arange(SIZES[side]) % 10


def png(image):
    file = io.BytesIO()
    Image.fromarray(image).save(file, "png")
    file.seek(0)
    return file


class Cifar10(tfds.core.GeneratorBasedBuilder, skip_registration=True):
    """Photographs with the features and names of TFDS's builder."""

    VERSION = tfds.core.Version("3.0.2")

    def _info(self):
        features = {
            "id": tfds.features.Text(),
            "image": tfds.features.Image(shape=(32, 32, 3)),
            "label": tfds.features.ClassLabel(num_classes=10),
        }
        return tfds.core.DatasetInfo(
            builder=self, features=tfds.features.FeaturesDict(features)
        )

    def _split_generators(self, dl_manager):
        del dl_manager
        return {side: self._generate_examples(side) for side in SIZES}

    def _generate_examples(self, side):
        for index, (image, label) in enumerate(zip(*photographs(side), strict=True)):
            yield index, {"id": f"{side}_{index}", "image": png(image), "label": label}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Prepares a data_dir of TFDS."""
    folder = tmp_path_factory.mktemp("tensorflow_datasets")
    tfds.disable_progress_bar()
    Cifar10(data_dir=folder, file_format="array_record").download_and_prepare()
    tfds.enable_progress_bar()
    return folder


@pytest.fixture(scope="module")
def batches():
    """Writes the archive's files: two training batches and the test batch."""
    files = {}
    for side in SIZES:
        images, labels = photographs(side)
        planes = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
        rows = np.concatenate([labels[:, None].astype(np.uint8), planes], axis=1)
        if side == "test":
            files["test_batch.bin"] = rows.tobytes()
        else:
            files["data_batch_1.bin"] = rows[:350].tobytes()
            files["data_batch_2.bin"] = rows[350:].tobytes()
    return {f"cifar-10-batches-bin/{name}": text for name, text in files.items()}


@pytest.fixture
def archive(batches, tmp_path):
    path = tmp_path / "cifar-10-binary.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        for name, content in batches.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def rows_of(windows, labels):
    """Returns the bytes and class of each window, sorted."""
    pixels = np.round(windows * 255).astype(np.uint8)
    return sorted((w.tobytes(), int(c)) for w, c in zip(pixels, labels, strict=True))


def test_windows_are_photographs_pixel_by_pixel(prepared):
    data = load("cifar10", source=prepared)
    spec = data.spec
    assert (spec.time, spec.channels) == (1024, ("red", "green", "blue"))
    assert (spec.public, spec.private, spec.split) == ("object", ("subject",), "trial")
    assert spec.classes["object"][3] == "cat" and spec.num_classes("subject") == 20
    for side, windows in zip(SIZES, data[1:], strict=True):
        images, labels = photographs(side)
        pixels = images.reshape(-1, 1024, 3).astype(np.float32) / 255
        assert rows_of(windows.windows, windows.labels["object"]) == (
            rows_of(pixels, labels)
        )
    pixels = photographs("train")[0].reshape(-1, 3) / 255
    np.testing.assert_allclose(spec.mean, pixels.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(spec.std, pixels.std(axis=0), rtol=1e-5)


def test_the_published_files_give_the_same(prepared, batches, archive, tmp_path):
    wanted = load("cifar10", source=prepared)
    folder = tmp_path / "folder"
    (folder / "cifar-10-batches-bin").mkdir(parents=True)
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as packed:
        for name, content in batches.items():
            (folder / name).write_bytes(content)
            packed.writestr(name, content)
    beside = tmp_path / "beside"
    beside.mkdir()
    archive.rename(beside / archive.name)
    places = (folder, tmp_path / "all.zip", beside, beside / archive.name)
    for place in places:
        data = load("cifar10", source=place)
        assert data.spec.classes == wanted.spec.classes
        for got, side in zip(data[1:], wanted[1:], strict=True):
            assert rows_of(got.windows, got.labels["object"]) == (
                rows_of(side.windows, side.labels["object"])
            )


def test_it_is_found_where_tfds_keeps_it(prepared, monkeypatch):
    monkeypatch.setattr("jaxanon.datasets.sources.find", lambda *args: None)
    monkeypatch.setenv("TFDS_DATA_DIR", str(prepared))
    assert location.locate(None, None) == (prepared / "cifar10" / "3.0.2",)


def test_the_seed_deals_the_photographs(prepared):
    clients = [
        load("cifar10", source=prepared, seed=seed).train.labels["subject"]
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(clients[0], clients[1])
    sizes = [np.bincount(client, minlength=20) for client in clients]
    assert sizes[0].tolist() != sizes[2].tolist() and sizes[0].sum() == 600


def test_a_small_alpha_deals_classes_to_few(prepared):
    most = {}  # The largest fraction of a class that one client has, over classes.
    for preset in ("skewed", "dirichlet", "alike"):
        labels = load("cifar10", source=prepared, preset=preset).train.labels
        table = np.zeros((10, 20))
        np.add.at(table, (labels["object"], labels["subject"]), 1)
        most[preset] = (table.max(axis=1) / 60).mean()
    assert most["skewed"] > most["dirichlet"] > most["alike"]
    # Each of 20 similar clients has a twentieth of every class.
    assert most["alike"] < 0.1 < 0.35 < most["skewed"]


@given(
    st.integers(1, 5),
    st.sampled_from([0.1, 1.0, 50.0]),
    st.lists(st.integers(30, 60), min_size=4, max_size=4),
    st.integers(0, 5),
)
def test_every_window_goes_to_one_client(clients, alpha, counts, seed):
    parts, start = [], 0
    for number, count in enumerate(counts):  # Two classes on each side.
        values = np.arange(start, start + 2 * count, dtype=np.float32)[:, None]
        labels = {"object": number % 2, "subject": 0}
        parts.append(Recording(values, 1 + number // 2, labels))
        start += 2 * count
    try:
        found = partition.deal_to_clients(
            parts, "object", clients=clients, alpha=alpha, length=2, seed=seed
        )
    except ValueError as error:
        assert alpha == 0.1 and "clients must all get a window" in str(error)
        return
    for part in parts:
        mine = [r for r in found if r.trial == part.trial]
        mine = [r for r in mine if r.labels["object"] == part.labels["object"]]
        rows = np.concatenate([r.rows for r in mine])
        np.testing.assert_array_equal(np.sort(rows, axis=0), part.rows)
        assert (rows[::2] + 1 == rows[1::2]).all()  # Windows stay intact.
    for trial in (1, 2):
        held = {r.labels["subject"] for r in found if r.trial == trial}
        assert held == set(range(clients))
    for label in (
        0,
        1,
    ):  # A client has the same fraction on each side, up to rounding.
        share = {}
        for part in parts:
            if part.labels["object"] == label:
                mine = [r for r in found if r.trial == part.trial]
                sizes = np.zeros(clients)
                for r in mine:
                    if r.labels["object"] == label:
                        sizes[r.labels["subject"]] += len(r.rows) / len(part.rows)
                share[part.trial] = sizes
        assert np.abs(share[1] - share[2]).max() < 2 / min(counts)


def test_the_shares_are_dirichlet():
    drawn = partition.draw_fractions(np.random.default_rng(0), 4000, 5, 0.5)
    # Mean 1/K, variance (1/K)(1 - 1/K)/(K alpha + 1).
    np.testing.assert_allclose(drawn.mean(axis=0), 0.2, atol=0.02)
    np.testing.assert_allclose(drawn.var(axis=0), 0.2 * 0.8 / 3.5, rtol=0.08)


def test_too_many_clients_are_refused():
    part = Recording(np.zeros((3, 1)), 1, {"object": 0, "subject": 0})
    with pytest.raises(ValueError, match="got 4 clients with alpha 1.0"):
        partition.deal_to_clients(
            [part], "object", clients=4, alpha=1.0, length=1, seed=0
        )


def test_says_what_is_damaged(batches, tmp_path):
    content = batches["cifar-10-batches-bin/data_batch_1.bin"]
    for bad in (b"", content[:-1], b"\x0b" + content[1:]):
        (tmp_path / "data_batch_1.bin").write_bytes(bad)
        with pytest.raises(
            ValueError, match="data_batch_1.bin must hold photographs o"
        ):
            load("cifar10", source=tmp_path)
    with pytest.raises(
        ValueError, match="has no test_batch of CIFAR-10; download https"
    ):
        published_images(tmp_path, "test")


def test_says_that_tfrecord_needs_tensorflow(tmp_path):
    (tmp_path / "cifar10-train.tfrecord-00000-of-00001").write_text("")
    with pytest.raises(ValueError, match="TFRecord, which requires Te"):
        load("cifar10", source=tmp_path)


def test_a_download_that_is_another_file_is_refused(archive, tmp_path, monkeypatch):
    monkeypatch.setattr("jaxanon.datasets.sources.find", lambda *args: None)
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setattr(location, "HOME", archive.as_uri())
    with pytest.raises(ValueError, match="must have the expected SHA-256"):
        location.locate(None, tmp_path / "cache")
    monkeypatch.setattr(location, "HOME", (tmp_path / "no.tar.gz").as_uri())
    with pytest.raises(
        FileNotFoundError, match=r"downloading .* failed .*pass source="
    ):
        location.locate(None, tmp_path / "another")
    with pytest.raises(FileNotFoundError, match="has no file of cifar10"):
        monkeypatch.undo()
        load("cifar10", source=tmp_path / "nowhere")
