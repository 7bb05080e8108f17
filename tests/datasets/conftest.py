"""Small data in the original layouts, made by seeded functions."""

import hashlib
import zipfile

import numpy as np
import pytest

from jaxanon.datasets.motion_sense.description import ACTIVITIES, CHANNELS
from jaxanon.datasets.smartwatch import smartwatch_dataset_builder
from jaxanon.datasets.smartwatch.description import EXERCISES

TRIALS = {
    "dws": (1, 2, 11),
    "ups": (3, 4, 12),
    "wlk": (7, 8, 15),
    "jog": (9, 16),
    "std": (6, 14),
    "sit": (5, 13),
}
PEOPLE = {1: "102,188,46,1", 2: "70,168,25,0", 3: "71,169,26,0"}  # On the class bounds.

# Labels of the rows of each MobiAct file, in order, with their row counts.
MOBI_ACT_LABELS = {
    "WAL": [("WAL", 703)],
    "STD": [("STD", 701)],
    "JOG": [("STD", 131), ("JOG", 503), ("WAL", 71)],
    "STU": [("STD", 63), ("STU", 257), ("STN", 149), ("STU", 301), ("CHU", 52)],
}
# ID, age, height, weight, gender: the 36 people of ObscureNet, and 28 and 57.
MOBI_ACT_PEOPLE = (
    "1 32 180 85 M,2 26 169 64 M,3 26 164 55 F,4 32 186 93 M,5 36 160 50 F,"
    "6 22 172 62 F,8 22 183 93 M,9 30 177 102 M,10 26 170 90 F,11 26 168 80 F,"
    "12 29 178 83 M,16 27 172 56 F,18 25 176 73 M,19 25 161 63 F,20 26 178 71 M,"
    "21 25 180 70 M,25 22 170 62 F,26 25 163 60 F,27 25 180 82 M,28 23 178 70 Μ,"
    "35 23 181 76 M,36 22 164 62 F,37 25 172 63 M,38 21 170 88 F,39 26 174 79 M,"
    "40 23 178 95 M,41 20 172 67 F,42 22 173 73 M,43 24 179 80 M,46 23 175 68 F,"
    "47 21 180 85 M,50 23 165 50 F,51 23 171 70 M,54 27 164 55 F,55 28 178 78 M,"
    "57 21 187 70 Μ,58 21 158 58 F,59 26 175 70 M"
)


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    """Returns the cache folder shared by all tests."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _nothing_of_this_machine(monkeypatch, cache, tmp_path):
    monkeypatch.setenv("JAXANON_CACHE", str(cache))
    monkeypatch.delenv("JAXANON_DATA", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def motion_sense_folder(tmp_path_factory):
    """Writes three people, all 15 trials, with 300 to 400 rows each."""
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
def mobi_act_folder(tmp_path_factory):
    """Writes five people with all four files, one unselected, and one with one file.

    The people are on the class bounds: 70 and 90 kg, 170 and 177 cm, 23 and 26 years.
    Every signal value is unique.
    """
    folder = tmp_path_factory.mktemp("mobi") / "mobi_act"
    random = np.random.default_rng(0)
    for subject in (9, 10, 21, 35, 57, 28):
        for activity, stretches in MOBI_ACT_LABELS.items():
            if subject == 28 and activity != "WAL":
                continue
            labels = [label for label, rows in stretches for _ in range(rows)]
            place = folder / "Annotated Data" / activity
            place.mkdir(parents=True, exist_ok=True)
            lines = [
                "timestamp,rel_time,acc_x,acc_y,acc_z,gyro_x,gyro_y,gyro_z,"
                "azimuth,pitch,roll,label"
            ]
            signals = random.normal(size=(len(labels), 9)).round(7).tolist()
            for row, (signal, label) in enumerate(zip(signals, labels, strict=True)):
                time = [7 * 10**12 + 5_000_000 * row, row / 200]
                lines.append(",".join([*map(repr, [*time, *signal]), label]))
            name = f"{activity}_{subject}_1_annotated.csv"
            (place / name).write_text("\n".join(lines) + "\n")
    (folder / "Readme.txt").write_bytes(mobi_act_readme().encode("cp1253"))
    return folder


def mobi_act_readme():
    """Writes the original table of people, other tables, and non-ASCII text."""
    bar = "+------+---------+-----------+-------+----------+----------+----------+"
    lines = [" •\tThe annotated data in csv format", "Subjects:", bar]
    lines += [
        "|  ID  |  Name   |  Surname  |  Age  |  Height  |  Weight  |  Gender  |",
        bar,
    ]
    for person in MOBI_ACT_PEOPLE.split(","):
        who, *numbers, gender = person.split()
        numbers = " |".join(f"{number:>6}" for number in numbers)
        lines += [f"| {who:>4} | sub{who} | sub{who} |{numbers} |  {gender} |  "]
    lines += [bar, "| 1  | STD   | Standing | 1      | 5min     | Standing, 125’’ |"]
    return "\r\n".join(lines)


@pytest.fixture(scope="session")
def wifi_har_folder(tmp_path_factory):
    """Writes three people, trials 16 and 17, 130 packets each, and unrelated files.

    The first person is on the class bounds, 80 kg and 175 cm.
    """
    folder = tmp_path_factory.mktemp("wifi") / "wifi_har"
    random = np.random.default_rng(0)
    channels = [f"csi_1_{rx}_{carrier}" for rx in (1, 2, 3) for carrier in range(1, 31)]
    titles = "timestamp_low,bfee_count,Nrx,Ntx,rssi_a,rssi_b,rssi_c,noise,agc,"
    header = titles + ",".join(["perm_1,perm_2,perm_3,rate", *channels])
    for subject in (11, 12, 13):
        place = folder / "Environment 2" / f"Subject {subject}"
        place.mkdir(parents=True)
        for (
            what
        ) in "C01_A01 C01_A03 C02_A03 C02_A04 C03_A07 C03_A09 C04_A01 C04_A04".split():
            for trial in (16, 17):
                lines = [header]
                values = random.integers(-60, 60, (130, 90, 2)).tolist()
                for packet, row in enumerate(values):
                    about = f"{80068132 + 3125 * packet},{packet}"
                    about += ",3,1,40,40,34,-127,44,2,1,3,256"
                    lines.append(",".join([about, *(f"{a}+{b}i" for a, b in row)]))
                name = f"E2_S{subject}_{what}_T{trial}.csv"
                (place / name).write_text("\n".join(lines) + "\n")
        for other in ("E1_S11_C01_A01_T01", f"E2_S{subject}_C03_A06_T01"):
            (place / f"{other}.csv").write_text("of no concern")
    people = "subject,weight,height\n11,80,175\n12,95,160\n13,60.5,190\n"
    (folder / "people.csv").write_text(people)
    return folder


@pytest.fixture(scope="session")
def uci_hapt_folder(tmp_path_factory):
    """Writes two people; row r of channel c is r + c / 10, so every row is unique."""
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
def save_watch():
    """Writes a pickle that the smartwatch builder accepts as the file of seglearn."""
    known = set(smartwatch_dataset_builder.SHA256)

    def save(path, watch):
        np.save(path, watch, allow_pickle=True)
        known.add(hashlib.sha256(path.read_bytes()).hexdigest())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(smartwatch_dataset_builder, "SHA256", known)
        yield save


@pytest.fixture(scope="session")
def watch_file(tmp_path_factory, save_watch):
    """Writes two people, both sides, and all exercises, with 600 rows each."""
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
    save_watch(path, watch)
    return path


@pytest.fixture
def zipped():
    """Returns a function that packs a folder into a zip."""

    def pack(folder, path):
        with zipfile.ZipFile(path, "w") as archive:
            for file in sorted(folder.rglob("*")):
                archive.write(file, file.relative_to(folder))
        return path

    return pack


@pytest.fixture
def own():
    """Returns arrays of a valid file: 2 people, 2 acts, 10 distant windows of each."""
    random = np.random.default_rng(1)
    return {
        "windows": random.normal(size=(40, 8, 2)).astype(np.float32),
        "subject": np.repeat([3, 7], 20),
        "act": np.tile(np.repeat([0, 1], 10), 2),
        "act_names": np.array(["sit", "walk"]),
    }
