"""Small data in the original layouts, made by seeded functions."""

import zipfile

import numpy as np
import pytest

from jaxanon.datasets.motion_sense.description import ACTIVITIES, CHANNELS
from jaxanon.datasets.smartwatch.description import EXERCISES

TRIALS = {
    "dws": (1, 2, 11),
    "ups": (3, 4, 12),
    "wlk": (7, 8, 15),
    "jog": (9, 16),
    "std": (6, 14),
    "sit": (5, 13),
}
PEOPLE = {1: "102,188,46,1", 2: "70,168,25,0", 3: "71,169,26,0"}  # On the bounds.


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    """A cache folder that all tests share."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _nothing_of_this_machine(monkeypatch, cache, tmp_path):
    monkeypatch.setenv("JAXANON_CACHE", str(cache))
    monkeypatch.delenv("JAXANON_DATA", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def motion_sense_folder(tmp_path_factory):
    """Three people, all 15 trials, 300 to 400 rows each."""
    folder = tmp_path_factory.mktemp("motion") / "motion_sense"
    random = np.random.default_rng(0)
    for activity in ACTIVITIES:
        for trial in TRIALS[activity]:
            place = folder / "A_DeviceMotion_data" / f"{activity}_{trial}"
            place.mkdir(parents=True)
            for subject in PEOPLE:
                rows = random.normal(size=(random.integers(300, 400), len(CHANNELS)))
                lines = [
                    ",".join([str(index), *map(repr, row)])
                    for index, row in enumerate(rows.round(6).tolist())
                ]
                header = ",".join(["", *CHANNELS])
                (place / f"sub_{subject}.csv").write_text("\n".join([header, *lines]))
    people = [f"{subject},{rest}" for subject, rest in PEOPLE.items()]
    text = "\n".join(["\ufeffcode,weight,height,age,gender", *people])
    (folder / "data_subjects_info.csv").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def uci_hapt_folder(tmp_path_factory):
    """Two people; row r of channel c is r + c / 10, so that rows can be told apart."""
    folder = tmp_path_factory.mktemp("hapt")
    (folder / "RawData").mkdir()
    lines = []
    for experiment, user in ((1, 1), (2, 1), (3, 2)):
        rows = np.arange(1, 3001)[:, None] + np.arange(6) / 10
        name = f"exp{experiment:02}_user{user:02}.txt"
        np.savetxt(folder / "RawData" / f"acc_{name}", rows[:, :3])
        np.savetxt(folder / "RawData" / f"gyro_{name}", rows[:, 3:])
        lines += [f"{experiment} {user} 1 101 1100", f"{experiment} {user} 4 1101 2100"]
        lines += [f"{experiment} {user} 7 2101 2300"]
    (folder / "RawData" / "labels.txt").write_text("\n".join(lines))
    return folder


@pytest.fixture(scope="session")
def watch_file(tmp_path_factory):
    """Two people, both sides, all exercises, 600 rows each."""
    random = np.random.default_rng(0)
    keys = [(e, s, p) for e in range(7) for s in (0.0, 1.0) for p in (1, 2)]
    watch = {
        "X": [random.normal(size=(600, 6)) + exercise for exercise, _, _ in keys],
        "y": np.array([exercise for exercise, _, _ in keys]),
        "side": np.array([side for _, side, _ in keys]),
        "subject": np.array([person for _, _, person in keys]),
        "y_labels": list(EXERCISES),
    }
    path = tmp_path_factory.mktemp("watch") / "watch.npy"
    np.save(path, watch, allow_pickle=True)
    return path


@pytest.fixture
def zipped():
    """A function that packs a folder into a zip."""

    def pack(folder, path):
        with zipfile.ZipFile(path, "w") as archive:
            for file in sorted(folder.rglob("*")):
                archive.write(file, file.relative_to(folder))
        return path

    return pack


@pytest.fixture
def own():
    """Arrays of a good file: 2 people, 2 acts, 10 windows of each, far apart."""
    random = np.random.default_rng(1)
    return {
        "windows": random.normal(size=(40, 8, 2)).astype(np.float32),
        "subject": np.repeat([3, 7], 20),
        "act": np.tile(np.repeat([0, 1], 10), 2),
        "act_names": np.array(["sit", "walk"]),
    }
