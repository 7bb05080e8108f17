"""Pipeline from recordings to training and test windows of a preset."""

import functools

import numpy as np

from jaxanon.datasets import held_out, recordings, splits
from jaxanon.datasets.description import Dataset, Preset
from jaxanon.datasets.partition import deal_to_clients
from jaxanon.datasets.spec import Windows
from jaxanon.datasets.windows import cut_each, cut_sequences, cut_stream


def select(dataset: Dataset, preset: Preset, parts):
    """Returns a preset's recordings, with derived channels, and their classes."""
    arranged = preset.arrange(parts)
    parts, classes = recordings.number_open_names(arranged, dataset.attributes)
    selector = dataset.selector
    keep = preset.keep or classes[selector]
    people = preset.people or classes["subject"]
    parts = [r for r in parts if classes["subject"][r.labels["subject"]] in people]
    parts = recordings.merge_classes(parts, classes, selector, preset.read_as)
    parts, classes = recordings.keep_classes(parts, classes, selector, keep)
    if not parts:
        of = f" of subjects {preset.people}" if preset.people else ""
        raise ValueError(
            f"{dataset.name} must hold a recording with {selector} in {keep}{of}, got "
            "none; check that its source is complete."
        )
    parts, classes = recordings.drop_unused_classes(parts, classes)
    sample = lambda rows: recordings.means_of(preset.every, preset.derive(rows))
    return [r._replace(rows=sample(r.rows)) for r in parts], classes


def separate_new(dataset: Dataset, preset: Preset, parts, classes):
    """Returns the recordings to split, and those of test-only classes."""
    name = lambda part: classes[dataset.selector][part.labels[dataset.selector]]
    new = [part for part in parts if name(part) in preset.new]
    if preset.new and not new:
        raise ValueError(
            f"{dataset.name} must hold a recording with {dataset.selector} in "
            f"{preset.new}, the test classes of this preset, got none; add their "
            "files, or choose another preset."
        )
    return [part for part in parts if name(part) not in preset.new], new


def divide(
    dataset: Dataset, preset: Preset, parts, split: str, seed: int, test_subjects=None
):
    """Returns the training recordings and the test recordings."""
    if split == "subject":
        return splits.by_subject(parts, seed, dataset.test_fraction, test_subjects)
    if split in ("trial", "given"):
        return splits.by_trial(parts, dataset.last_train_trial)
    if dataset.whole_days:
        return splits.by_day(parts, dataset.test_fraction)
    if preset.sequence:
        return splits.by_time_of_trial(parts, preset.length, dataset.test_fraction)
    # Forecasts begin at the same minutes of the clock on both sides.
    step = preset.stride if preset.precut or preset.targets else 1
    return splits.by_time_block(parts, preset.reach, dataset.test_fraction, step)


def cut_side(dataset: Dataset, preset: Preset, parts, classes, side: str):
    """Returns the windows of one side without dropped classes, and the classes."""
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
            f"{dataset.name} has no {side} windows: the longest of {len(whole)} "
            f"recordings has {longest} rows, but a window needs {preset.reach}; choose "
            "another split or preset."
        )
    selector = dataset.selector
    names = classes[selector]
    remaining = [index for index, name in enumerate(names) if name not in preset.drop]
    label = windows.labels[selector]
    rows = np.isin(label, remaining)
    labels = {name: values[rows] for name, values in windows.labels.items()}
    labels[selector] = np.searchsorted(remaining, label[rows]).astype(np.int32)
    classes = classes | {selector: tuple(names[index] for index in remaining)}
    side_windows = windows.windows[rows] if preset.drop else windows.windows
    return Windows(side_windows, labels), classes


def check_subjects(name: str, classes, train: Windows, test: Windows) -> None:
    """Raises ValueError if a subject has no window at all."""
    seen = np.concatenate([side.labels["subject"] for side in (train, test)])
    missing = set(range(len(classes["subject"]))) - set(seen.tolist())
    if missing:
        subjects = [classes["subject"][index] for index in sorted(missing)]
        raise ValueError(
            f"subjects of {name} must have recordings as long as a window, got shorter "
            f"ones of {subjects}; remove them from the source or choose a preset with "
            "shorter windows."
        )


def cut_and_split(
    dataset: Dataset, preset: Preset, parts, split: str, seed: int, test_people=None
):
    """Returns ``(classes, mean, std, train, test)``, the parts of ``load``'s result."""
    if preset.clients:
        parts = deal_to_clients(
            parts,
            dataset.public,
            clients=preset.clients,
            alpha=preset.alpha,
            length=preset.length,
            seed=seed,
        )
    parts, classes = select(dataset, preset, parts)
    if split == splits.OFFICIAL:
        train = parts  # The published statistics cover both sides.
        windows, remaining = cut_side(dataset, preset, parts, classes, "training")
        train_windows, test_windows = splits.as_released(windows, seed)
    else:
        known, new = separate_new(dataset, preset, parts, classes)
        named = None
        if test_people is not None:
            named = held_out.select(test_people, classes["subject"])
        train, test = divide(dataset, preset, known, split, seed, named)
        test = [*test, *new]
        train_windows, remaining = cut_side(dataset, preset, train, classes, "training")
        test_windows, _ = cut_side(dataset, preset, test, classes, "test")
    check_subjects(dataset.name, remaining, train_windows, test_windows)
    mean, std = recordings.statistics(train)
    return remaining, mean, std, train_windows, test_windows
