"""Checks of the arrays in a custom data file."""

import numpy as np

Arrays = dict[str, np.ndarray]
TARGET_FIELDS = tuple(
    f"target_{field}" for field in ("units", "mean", "std", "channels", "samples")
)
RESERVED = (
    *("windows", "split", "channels", "units", "rate_hz", "mean", "std"),
    *("name", "preset", "public", "private", "tokens", "targets", *TARGET_FIELDS),
)  # Every other array is an attribute or the names of its classes.
ENDING = "_names"


def windows_of(arrays: Arrays) -> np.ndarray:
    """Returns ``float32[N, time, channels]``; raises ValueError if it is invalid."""
    if "windows" not in arrays:
        raise ValueError(
            "the file must hold 'windows', float[N, time, channels], got the arrays "
            f"{sorted(arrays)}."
        )
    windows = arrays["windows"]
    if windows.ndim != 3 or 0 in windows.shape:
        raise ValueError(
            "windows must be a non-empty float[N, time, channels], got shape "
            f"{windows.shape}; for one channel use windows[..., None]."
        )
    if windows.dtype.kind not in "fiu":
        raise ValueError(f"windows must be numbers, got dtype {windows.dtype}.")
    finite = np.isfinite(windows).all(axis=(1, 2))
    if not finite.all():
        raise ValueError(
            f"windows must be finite, got NaN or infinity in {np.sum(~finite)} of "
            f"{len(windows)}, first in window {np.argmin(finite)}; drop or repair them."
        )
    return np.ascontiguousarray(windows, np.float32)


def tokens_of(arrays: Arrays, windows: np.ndarray) -> int:
    """Returns the number of token values of the channel; 0 for measurements."""
    if "tokens" not in arrays:
        return 0
    tokens = arrays["tokens"]
    if tokens.shape != () or tokens.dtype.kind not in "iu" or tokens < 1:
        raise ValueError(
            f"tokens must be one integer, at least 1, got {tokens!r}; omit it for "
            "measurements."
        )
    invalid = (windows < 0) | (windows >= tokens) | (windows != np.round(windows))
    if windows.shape[2] != 1 or invalid.any():
        raise ValueError(
            "windows of tokens must have one channel of whole numbers from 0 to "
            f"{tokens - 1}, got {windows.shape[2]} channels and {invalid.sum()} other "
            f"values, such as {windows[invalid][:3].tolist()}."
        )
    return int(tokens)


def classes_of(arrays: Arrays):
    """Returns class names and ``int32[N]`` labels by attribute, ``subject`` last."""
    count = len(arrays["windows"])
    names = {key.removesuffix(ENDING): key for key in arrays if key.endswith(ENDING)}
    others = (*RESERVED, *names.values(), *target_names(arrays))
    attributes = [key for key in arrays if key not in others]
    for attribute, key in names.items():
        if attribute not in attributes:
            raise ValueError(
                f"{key} must belong to an attribute of the file, got no array "
                f"{attribute!r}; the attributes are {attributes}."
            )
    if "subject" not in attributes:
        raise ValueError(
            "the file must hold 'subject', int[N], the person of each window, got the "
            f"attributes {attributes}; windows are split and stacked by it."
        )
    attributes.sort(key=lambda attribute: attribute == "subject")
    pairs = {}
    for attribute in attributes:
        label = integers(attribute, arrays[attribute], count)
        values = np.unique(label)
        listed = arrays.get(attribute + ENDING)
        if listed is None:
            pairs[attribute] = tuple(map(str, values)), np.searchsorted(values, label)
        else:
            pairs[attribute] = _class_names(attribute, listed, values), label
    classes = {attribute: classes for attribute, (classes, _) in pairs.items()}
    return classes, {a: label.astype(np.int32) for a, (_, label) in pairs.items()}


def integers(name: str, array: np.ndarray, count: int) -> np.ndarray:
    """Returns ``array``; raises ValueError unless it is ``int[count]``."""
    if array.ndim == 1 and len(array) != count:
        raise ValueError(
            f"{name} must have one entry for each of the {count} windows, got "
            f"{len(array)}."
        )
    if array.shape != (count,) or array.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must be int[{count}], one for each of the {count} windows, got "
            f"{array.dtype}{list(array.shape)}. Convert names to numbers with "
            "np.unique(values, return_inverse=True) and store the names in "
            f"{name}_names; list a number to predict in targets."
        )
    return array


def one_per(arrays: Arrays, name: str, count: int, default, items: str = "channels"):
    """Returns the array ``name`` with one entry per item, or ``default``."""
    array = arrays.get(name)
    if array is None:
        return default
    if array.shape != (count,):
        raise ValueError(
            f"{name} must have one entry for each of the {count} {items}, got "
            f"shape {array.shape}."
        )
    return array


def target_names(arrays: Arrays) -> tuple[str, ...]:
    """Returns the names of the arrays that are targets."""
    return tuple(map(str, np.atleast_1d(arrays.get("targets", ()))))


def targets_of(arrays: Arrays) -> dict[str, np.ndarray]:
    """Returns ``float32[N]`` of each target; raises ValueError if one is invalid."""
    count, targets = len(arrays["windows"]), {}
    for name in target_names(arrays):
        array = arrays.get(name)
        if name == "subject" or name in RESERVED or array is None:
            raise ValueError(
                f"targets must name arrays float[{count}] of the file, other than "
                f"'subject', got {name!r}; the file holds {sorted(arrays)}."
            )
        if array.shape != (count,) or array.dtype.kind not in "fiu":
            raise ValueError(
                f"target {name} must be float[{count}], one for each of the {count} "
                f"windows, got {array.dtype}{list(array.shape)}."
            )
        targets[name] = array.astype(np.float32)
        if not np.isfinite(targets[name]).all():
            raise ValueError(
                f"target {name} must be finite, got NaN or infinity in "
                f"{np.sum(~np.isfinite(targets[name]))} of {count}; drop those windows."
            )
    return targets


def distinct(name: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Returns ``names``; raises ValueError unless all are distinct and non-empty."""
    if len(set(names)) < len(names) or "" in names:
        raise ValueError(f"{name} must be distinct and not empty, got {names}.")
    return names


def _class_names(attribute, listed, values):
    """Returns class names as a tuple, checked against the labels that occur."""
    names = tuple(map(str, np.atleast_1d(listed)))
    distinct(f"{attribute}_names", names)
    if values[0] < 0 or values[-1] >= len(names):
        raise ValueError(
            f"{attribute} must be in 0..{len(names) - 1}, the range of "
            f"{attribute}_names, got {values[0]}..{values[-1]}."
        )
    if attribute == "subject" and len(values) < len(names):
        unused = [name for i, name in enumerate(names) if i not in values]
        raise ValueError(
            f"subject_names must list only subjects with windows, got also {unused}; "
            "remove them and renumber the others."
        )
    return names
