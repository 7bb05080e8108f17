"""From recordings to the two sides of a split, as a preset says."""

import functools

import numpy as np

from jaxanon.datasets import recordings, splits
from jaxanon.datasets.description import Dataset, Preset
from jaxanon.datasets.partition import dealt
from jaxanon.datasets.spec import Windows
from jaxanon.datasets.windows import cut_each, cut_sequences, cut_stream


def select(dataset: Dataset, preset: Preset, parts):
    """The recordings that enter, in order, with derived channels, and the classes."""
    parts, classes = recordings.numbered(preset.arrange(parts), dataset.attributes)
    selector = dataset.selector
    keep = preset.keep or classes[selector]
    people = preset.people or classes["subject"]
    parts = [r for r in parts if classes["subject"][r.labels["subject"]] in people]
    parts = recordings.read_as(parts, classes, selector, preset.read_as)
    parts, classes = recordings.keep_classes(parts, classes, selector, keep)
    if not parts:
        of = f" of subjects {preset.people}" if preset.people else ""
        raise ValueError(
            f"{dataset.name} holds no recording with {selector} in {keep}{of}; is its "
            "source complete?"
        )
    parts, classes = recordings.occurring(parts, classes)
    sample = lambda rows: recordings.means_of(preset.every, preset.derive(rows))
    return [r._replace(rows=sample(r.rows)) for r in parts], classes


def newcomers(dataset: Dataset, preset: Preset, parts, classes):
    """The recordings to be divided, and those of classes that are only tested with."""
    name = lambda part: classes[dataset.selector][part.labels[dataset.selector]]
    new = [part for part in parts if name(part) in preset.new]
    if preset.new and not new:
        raise ValueError(
            f"{dataset.name} holds no recording with {dataset.selector} in "
            f"{preset.new}, on whom this preset tests; add their files, or choose "
            "another preset."
        )
    return [part for part in parts if name(part) not in preset.new], new


def divide(dataset: Dataset, preset: Preset, parts, split: str, seed: int):
    """The recordings of the training side and those of the test side."""
    if split == "subject":
        return splits.by_subject(parts, seed, dataset.test_share)
    if split in ("trial", "given"):
        return splits.by_trial(parts, dataset.last_train_trial)
    if dataset.whole_days:
        return splits.by_day(parts, dataset.test_share)
    if preset.sequence:
        return splits.by_time_of_trial(parts, preset.length, dataset.test_share)
    # What is predicted begins at the same times of the clock on both sides.
    step = preset.stride if preset.precut or preset.targets else 1
    return splits.by_time_block(parts, preset.reach, dataset.test_share, step)


def cut_side(dataset: Dataset, preset: Preset, parts, classes, side: str):
    """The windows of one side, dropped classes gone, and the remaining classes."""
    ahead = {
        name: (preset.channels.index(target.channel), target.samples)
        for name, target in preset.targets.items()
    }
    cut = functools.partial(cut_each, ahead=ahead)
    if preset.sequence:
        cut = cut_sequences
    if preset.stream:
        across = dataset.selector if preset.across else None
        cut = functools.partial(cut_stream, across=across)
    windows = cut(parts, preset.length, preset.stride) if parts else None
    if windows is None or len(windows.windows) == 0:
        whole = recordings.trials(parts) if preset.sequence else [[r] for r in parts]
        longest = max((sum(len(r.rows) for r in one) for one in whole), default=0)
        raise ValueError(
            f"{dataset.name} gives no {side} windows: the longest of {len(whole)} "
            f"recordings has {longest} rows, a window needs {preset.reach}. Choose "
            "another split or preset."
        )
    selector = dataset.selector
    names = classes[selector]
    kept = [index for index, name in enumerate(names) if name not in preset.drop]
    label = windows.labels[selector]
    rows = np.isin(label, kept)
    labels = {name: values[rows] for name, values in windows.labels.items()}
    labels[selector] = np.searchsorted(kept, label[rows]).astype(np.int32)
    classes = classes | {selector: tuple(names[index] for index in kept)}
    kept_windows = windows.windows[rows] if preset.drop else windows.windows
    return Windows(kept_windows, labels), classes


def check_subjects(name: str, classes, train: Windows, test: Windows) -> None:
    """Raises ValueError if a subject has no window at all."""
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
    if preset.clients:
        parts = dealt(
            parts,
            dataset.public,
            clients=preset.clients,
            alpha=preset.alpha,
            length=preset.length,
            seed=seed,
        )
    parts, classes = select(dataset, preset, parts)
    if split == splits.OFFICIAL:
        train = parts  # The statistics are of everything, too.
        windows, left = cut_side(dataset, preset, parts, classes, "training")
        train_windows, test_windows = splits.as_released(windows, seed)
    else:
        known, new = newcomers(dataset, preset, parts, classes)
        train, test = divide(dataset, preset, known, split, seed)
        test = [*test, *new]
        train_windows, left = cut_side(dataset, preset, train, classes, "training")
        test_windows, _ = cut_side(dataset, preset, test, classes, "test")
    check_subjects(dataset.name, left, train_windows, test_windows)
    mean, std = recordings.statistics(train)
    return left, mean, std, train_windows, test_windows
