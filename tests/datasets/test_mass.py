"""MASS from small files in the original layout, written by edfio."""

import shutil
import sys

import edfio
import numpy as np
import pytest
from scipy.signal import resample_poly

from jaxanon.datasets import load
from jaxanon.datasets.mass.reading import stretches

RATE = 256
FIRST_S = 1.5  # Scoring starts later than the recording.
# Scores of epochs in order; stages 3 and 4 are merged, ? is unscored.
SCORES = "W" * 5 + "2" * 10 + "?" + "3" * 3 + "4" * 2 + "R" * 5 + "W" * 5
# Labels of the channels, and the subset's epochs in seconds.
MONTAGES = {
    "01-01-0002": ("EEG C4-CLE", ("EMG Chin1", "EMG Chin2"), 30),
    "01-02-0003": ("EEG C4-CLE", ("EMG Chin",), 20),
    "01-03-0064": ("EEG C4-LER", ("EMG Chin1", "EMG Chin2"), 30),
}


def signal(label, data, unit="uV"):
    return edfio.EdfSignal(
        data, RATE, label=label, physical_dimension=unit, physical_range=(-200, 200)
    )


def night(subject):
    """Returns the recording: EOG encodes its epoch's number; EEG and EMG are noise."""
    eeg, chins, epoch_s = MONTAGES[subject]
    seconds = int(FIRST_S + len(SCORES) * epoch_s + 2)
    epoch = (np.arange(seconds * RATE) / RATE - FIRST_S) // epoch_s
    random = np.random.default_rng(int(subject[-1]))
    noise = random.uniform(-50, 50, size=(3, len(epoch)))
    return [
        signal("EOG Left Horiz", 3 * epoch),
        signal("ECG ECGI", noise[0]),
        signal(eeg, noise[0]),
        *(signal(*pair, "mV") for pair in zip(chins, noise[1:], strict=False)),
        signal("EOG Right Horiz", 2 * epoch),
    ]


def scored(epoch_s, scores=SCORES):
    return [
        edfio.EdfAnnotation(FIRST_S + epoch_s * index, epoch_s, f"Sleep stage {score}")
        for index, score in enumerate(scores)
    ]


def write_scores(path, annotations):
    edfio.Edf([], annotations=annotations).write(path)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mass")
    for subject, (_, _, epoch_s) in MONTAGES.items():
        place = folder / f"SS{subject[4]}"
        place.mkdir()
        edfio.Edf(night(subject)).write(place / f"{subject} PSG.edf")
        name = "Annotations" if subject == "01-03-0064" else "Base"
        others = [edfio.EdfAnnotation(3.0, 0.5, "Arousal")]
        write_scores(place / f"{subject} {name}.edf", scored(epoch_s) + others)
    return folder


@pytest.fixture
def copy(written, tmp_path):
    """Returns a copy of the folder to corrupt."""
    return shutil.copytree(written, tmp_path / "copy")


def test_windows_are_the_epochs_that_were_scored(written):
    data = load("mass", source=written)
    spec = data.spec
    assert (spec.rate_hz, spec.time, spec.split) == (100.0, 3000, "time_block")
    assert (spec.public, spec.private) == ("stage", ("subject",))
    assert spec.channels == ("EEG C4", "EOG", "EMG chin") and spec.units == ("uV",) * 3
    assert spec.classes["stage"] == ("W", "N2", "N3", "REM")
    assert spec.classes["subject"] == ("01-01-0002", "01-03-0064")
    epochs = [np.median(side.windows[..., 1], axis=1).round() for side in data[1:]]
    names = {"W": 0, "2": 1, "3": 2, "4": 2, "R": 3}
    for side, epoch in zip(data[1:], epochs, strict=True):
        wanted = [names[SCORES[index]] for index in epoch.astype(int)]
        assert side.labels["stage"].tolist() == wanted
    # W: epochs 0-4 and 26-30, of which the last two test and the one before is dropped;
    # N2: 5-14, split the same way; N3 (16-20) and REM (21-25): one tests.
    train = [*range(5), *range(5, 12), 16, 17, 18, 21, 22, 23, 26, 27]
    for who in (0, 1):
        both = [
            sorted(epoch[side.labels["subject"] == who].tolist())
            for side, epoch in zip(data[1:], epochs, strict=True)
        ]
        assert both == [train, [13, 14, 20, 25, 29, 30]]


def test_channels_are_in_microvolts_at_100_hz(written):
    data = load("mass", source=written)
    recorded = {s.label: s.data for s in night("01-03-0064")}
    eeg = resample_poly(recorded["EEG C4-LER"], 25, 64)
    emg = 1e3 * resample_poly(recorded["EMG Chin1"] - recorded["EMG Chin2"], 25, 64)
    window = data.train.windows[data.train.labels["subject"] == 1][1]
    start = round((FIRST_S + 30) * 100)  # The second epoch.
    np.testing.assert_allclose(window[:, 0], eeg[start : start + 3000], atol=1e-3)
    np.testing.assert_allclose(window[:, 2], emg[start : start + 3000], atol=1)


def test_the_other_rules_have_shorter_epochs(written):
    data = load("mass", source=written, preset="rk")
    assert (data.spec.time, data.spec.classes["subject"]) == (2000, ("01-02-0003",))
    assert len(data.train.windows) == 20 and len(data.test.windows) == 6


def test_who_lacks_something_is_left_out_with_a_warning(copy):
    (copy / "SS3" / "01-03-0064 Annotations.edf").unlink()
    signals = [s for s in night("01-02-0003") if not s.label.startswith("EMG")]
    edfio.Edf(signals).write(copy / "SS2" / "01-02-0003 PSG.edf")
    with pytest.warns(
        UserWarning, match=r"'01-02-0003': \['EMG chin'\], '01-03-0064': \['Base.edf or"
    ):
        data = load("mass", source=copy)
    assert data.spec.classes["subject"] == ("01-01-0002",)


def test_base_is_read_where_both_are(copy):
    write_scores(copy / "SS1" / "01-01-0002 Annotations.edf", scored(30, "2" * 31))
    assert len(load("mass", source=copy).spec.classes["stage"]) == 4


def test_epochs_are_put_together_by_hand():
    scores = [(90.0, 30.0, "4"), (0.0, 30.0, "W"), (30.0, 30.0, "W"), (60.0, 30, "3")]
    assert stretches(scores, 30) == [(0.0, 2, 0), (60.0, 2, 3)]
    # A pause of half a second, a truncated epoch, and two epochs in one.
    scores = [(0.0, 20.0, "R"), (20.5, 20.0, "R"), (40.5, 19.0, "R"), (60.0, 40.0, "R")]
    assert stretches(scores, 20) == [(0.0, 1, 4), (20.5, 1, 4), (60.0, 2, 4)]


def spoil_stages(annotations):
    return lambda folder: write_scores(folder / "01-01-0002 Base.edf", annotations)


def spoil_signals(change):
    def spoil(folder):
        signals = [change(s) for s in night("01-01-0002")]
        edfio.Edf(signals).write(folder / "01-01-0002 PSG.edf")

    return spoil


def spoil_bytes(name, end):
    def spoil(folder):
        path = folder / name
        path.write_bytes(path.read_bytes()[:end])

    return spoil


@pytest.mark.parametrize(
    "spoil, message",
    [
        (
            spoil_stages(scored(30, "WX")),
            r"got 'Sleep stage X' at 31.5 s for 30.* s",
        ),
        (
            spoil_stages([edfio.EdfAnnotation(1.0, None, "Sleep stage W")]),
            "stages W, 1, 2, 3, 4, R or .* at 1.0 s for None s",
        ),
        (
            spoil_stages([edfio.EdfAnnotation(1.0, 3.0, "Arousal")]),
            "Base.edf must hold annotations 'Sleep stage ...', got none",
        ),
        (
            spoil_stages(scored(30, "W" * 40)),
            r"must last 1201.5 s like the stages in 01-01-0002 Base.ed",
        ),
        (
            spoil_signals(lambda s: signal(s.label, s.data, "furlong")),
            r"EEG C4-CLE in one of the units \['uV', 'µV', 'mV', 'V'\], got 'furlong'",
        ),
        (
            spoil_bytes("01-01-0002 PSG.edf", -700),
            "PSG.edf is truncated or not an EDF file",
        ),
        (
            spoil_bytes("01-01-0002 PSG.edf", 300),
            "PSG.edf is truncated or not an EDF file",
        ),
        (
            spoil_bytes("01-01-0002 Base.edf", -20),
            "Base.edf is truncated or not an EDF fil",
        ),
        (
            spoil_bytes("01-01-0002 Base.edf", 0),
            "Base.edf is truncated or not an EDF file",
        ),
        (
            lambda folder: shutil.copytree(folder, folder / "again"),
            r"files must be unique, got .*01-01-0002 \w+.edf and",
        ),
        (
            lambda folder: shutil.copy(
                folder / "01-01-0002 PSG.edf", folder / "01-01-0054 PSG.edf"
            ),
            "01-01-0054 PSG.edf must be named after a subject",
        ),
    ],
)
def test_says_what_is_wrong(written, tmp_path, spoil, message):
    folder = shutil.copytree(written / "SS1", tmp_path / "copy")
    spoil(folder)
    with pytest.raises(ValueError, match=message):
        load("mass", source=folder)


def test_gaps_are_refused(copy):
    path = copy / "SS1" / "01-01-0002 PSG.edf"
    edf = edfio.Edf(night("01-01-0002"), annotations=[])
    edf.write(path)
    content = path.read_bytes().replace(b"EDF+C", b"EDF+D", 1)
    path.write_bytes(content)  # Consecutive records have no gap yet.
    assert load("mass", source=copy).spec.num_classes("subject") == 2
    late = content.replace(b"+7\x14\x14", b"+8\x14\x14", 1)
    assert late != content
    path.write_bytes(late)
    with pytest.raises(
        ValueError, match=r"PSG.edf must be continuous, got an EDF\+D file"
    ):
        load("mass", source=copy)


def test_without_edfio_says_what_to_install(written, monkeypatch):
    monkeypatch.setitem(sys.modules, "edfio", None)
    with pytest.raises(ImportError, match=r"run `pip install 'jaxanon\[mass\]'`"):
        load("mass", source=written, data_dir="elsewhere")


def test_says_where_to_ask(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="has no file of mass"):
        load("mass", source=tmp_path / "nowhere")
    monkeypatch.setattr("jaxanon.datasets.sources.find", lambda *args: None)
    with pytest.raises(FileNotFoundError, match=r"mass was not found; request MASS at"):
        load("mass")
