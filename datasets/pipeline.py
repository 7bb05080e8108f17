"""From recordings to the two sides of a split, as a preset says."""

import numpy as np

from jaxanon.datasets import recordings, splits
from jaxanon.datasets.description import Dataset, Preset
from jaxanon.datasets.spec import Windows
from jaxanon.datasets.windows import cut_each, cut_stream


def select(dataset: Dataset, preset: Preset, parts):
    """The recordings that enter, in order, with derived channels, and the classes."""
    keep = preset.keep or dataset.attributes[dataset.public]
    parts, classes = recordings.keep_classes(
        parts, dataset.attributes, dataset.public, keep
    )
    if not parts:
        raise ValueError(
            f"{dataset.name} holds no recording with {dataset.public} in {keep}; is "
            "its source complete?"
        )
    parts, classes = recordings.occurring(parts, classes)
    return [r._replace(rows=preset.derive(r.rows)) for r in parts], classes


def divide(dataset: Dataset, preset: Preset, parts, split: str, seed: int):
    """The recordings of the training side and those of the test side."""
    if split == "subject":
        return splits.by_subject(parts, seed)
    if split == "trial":
        return splits.by_trial(parts, dataset.last_train_trial)
    return splits.by_time_block(parts, preset.length)


def cut_side(dataset: Dataset, preset: Preset, parts, classes, side: str):
    """The windows of one side, dropped classes gone, and the remaining classes."""
    cut = cut_stream if preset.stream else cut_each
    windows = cut(parts, preset.length, preset.stride) if parts else None
    if windows is None or len(windows.windows) == 0:
        longest = max((len(r.rows) for r in parts), default=0)
        raise ValueError(
            f"{dataset.name} gives no {side} windows: the longest of {len(parts)} "
            f"recordings has {longest} rows, a window needs {preset.length}. Choose "
            "another split or preset."
        )
    names = classes[dataset.public]
    kept = [index for index, name in enumerate(names) if name not in preset.drop]
    label = windows.labels[dataset.public]
    rows = np.isin(label, kept)
    labels = {name: values[rows] for name, values in windows.labels.items()}
    labels[dataset.public] = np.searchsorted(kept, label[rows]).astype(np.int32)
    classes = classes | {dataset.public: tuple(names[index] for index in kept)}
    return Windows(windows.windows[rows] if preset.drop else windows.windows, labels), (
        classes
    )


def check_subjects(name: str, classes, train: Windows, test: Windows) -> None:
    """Raises ValueError if a subject has no window on either side."""
    seen = np.concatenate([side.labels["subject"] for side in (train, test)])
    missing = set(range(len(classes["subject"]))) - set(seen.tolist())
    if missing:
        who = [classes["subject"][index] for index in sorted(missing)]
        raise ValueError(
            f"{name}: subjects {who} have no window, their recordings are too short; "
            "leave them out of the source or choose a preset with shorter windows."
        )


def windowed(dataset: Dataset, preset: Preset, parts, split: str, seed: int):
    """Returns ``(classes, mean, std, train, test)``; see ``load`` for what they are."""
    parts, classes = select(dataset, preset, parts)
    train, test = divide(dataset, preset, parts, split, seed)
    train_windows, left = cut_side(dataset, preset, train, classes, "training")
    test_windows, _ = cut_side(dataset, preset, test, classes, "test")
    check_subjects(dataset.name, left, train_windows, test_windows)
    mean, std = recordings.statistics(train)
    return left, mean, std, train_windows, test_windows
