"""The arrays of a file of one's own, checked one by one."""

import numpy as np

Arrays = dict[str, np.ndarray]
OF_TARGETS = tuple(
    f"target_{what}" for what in ("units", "mean", "std", "channels", "samples")
)
ABOUT = (
    *("windows", "split", "channels", "units", "rate_hz", "mean", "std"),
    *("name", "preset", "public", "private", "tokens", "targets", *OF_TARGETS),
)  # Every other array is an attribute or the names of its classes.
ENDING = "_names"


def windows_of(arrays: Arrays) -> np.ndarray:
    """``float32[N, time, channels]``; ValueError for anything else, NaN included."""
    if "windows" not in arrays:
        raise ValueError(
            "the file must hold 'windows', float[N, time, channels]; it holds "
            f"{sorted(arrays)}."
        )
    windows = arrays["windows"]
    if windows.ndim != 3 or 0 in windows.shape:
        raise ValueError(
            "windows must be float[N, time, channels] with nothing empty, got shape "
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
    """How many values the channel has that stand for something; 0 if it measures."""
    if "tokens" not in arrays:
        return 0
    tokens = arrays["tokens"]
    if tokens.shape != () or tokens.dtype.kind not in "iu" or tokens < 1:
        raise ValueError(
            f"tokens must be one integer, at least 1, got {tokens!r}; leave it out "
            "where windows are measured."
        )
    odd = (windows < 0) | (windows >= tokens) | (windows != np.round(windows))
    if windows.shape[2] != 1 or odd.any():
        raise ValueError(
            f"with tokens, windows must be of one channel of whole numbers from 0 to "
            f"{tokens - 1}, got {windows.shape[2]} channels and {odd.sum()} others, "
            f"such as {windows[odd][:3].tolist()}."
        )
    return int(tokens)


def classes_of(arrays: Arrays):
    """Class names and ``int32[N]`` labels of every attribute, ``subject`` the last."""
    count = len(arrays["windows"])
    names = {key.removesuffix(ENDING): key for key in arrays if key.endswith(ENDING)}
    others = (*ABOUT, *names.values(), *target_names(arrays))
    attributes = [key for key in arrays if key not in others]
    for attribute, key in names.items():
        if attribute not in attributes:
            raise ValueError(
                f"{key} names the classes of {attribute!r}, which the file lacks; its "
                f"attributes are {attributes}."
            )
    if "subject" not in attributes:
        raise ValueError(
            "the file must hold 'subject', int[N], who made each window: windows are "
            f"split and stacked by it; its attributes are {attributes}."
        )
    attributes.sort(key=lambda attribute: attribute == "subject")
    pairs = {}
    for attribute in attributes:
        label = integers(attribute, arrays[attribute], count)
        found = np.unique(label)
        listed = arrays.get(attribute + ENDING)
        if listed is None:
            pairs[attribute] = tuple(map(str, found)), np.searchsorted(found, label)
        else:
            pairs[attribute] = _listed(attribute, listed, found), label
    classes = {attribute: classes for attribute, (classes, _) in pairs.items()}
    return classes, {a: label.astype(np.int32) for a, (_, label) in pairs.items()}


def integers(name: str, array: np.ndarray, count: int) -> np.ndarray:
    """``array`` if it is ``int[count]``, else ValueError."""
    if array.ndim == 1 and len(array) != count:
        raise ValueError(
            f"{name} must have an entry for each of the {count} windows, got "
            f"{len(array)}."
        )
    if array.shape != (count,) or array.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must be int[{count}], one for each of the {count} windows, got "
            f"{array.dtype}{list(array.shape)}; np.unique(values, return_inverse=True) "
            f"turns names into numbers, and names go into {name}_names; what is no "
            "class but a number to predict is named in targets."
        )
    return array


def one_per(arrays: Arrays, name: str, count: int, default, what: str = "channels"):
    """The array ``name`` with one entry for each of ``what``, or ``default``."""
    array = arrays.get(name)
    if array is None:
        return default
    if array.shape != (count,):
        raise ValueError(
            f"{name} must have one entry for each of the {count} {what}, got "
            f"shape {array.shape}."
        )
    return array


def target_names(arrays: Arrays) -> tuple[str, ...]:
    """Names of the arrays that are numbers to predict."""
    return tuple(map(str, np.atleast_1d(arrays.get("targets", ()))))


def targets_of(arrays: Arrays) -> dict[str, np.ndarray]:
    """``float32[N]`` of every target; ValueError for anything else, NaN included."""
    count, found = len(arrays["windows"]), {}
    for name in target_names(arrays):
        array = arrays.get(name)
        if name == "subject" or name in ABOUT or array is None:
            raise ValueError(
                f"targets names {name!r}, which the file must hold as float[{count}], "
                f"beside the subjects; it holds {sorted(arrays)}."
            )
        if array.shape != (count,) or array.dtype.kind not in "fiu":
            raise ValueError(
                f"target {name} must be float[{count}], one for each of the {count} "
                f"windows, got {array.dtype}{list(array.shape)}."
            )
        found[name] = array.astype(np.float32)
        if not np.isfinite(found[name]).all():
            raise ValueError(
                f"target {name} must be finite, got NaN or infinity in "
                f"{np.sum(~np.isfinite(found[name]))} of {count}; drop those windows."
            )
    return found


def distinct(name: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """``names`` if none is empty and all differ, else ValueError."""
    if len(set(names)) < len(names) or "" in names:
        raise ValueError(
            f"{name} must differ from each other, and none be empty, got {names}."
        )
    return names


def _listed(attribute, listed, found):
    """Class names as a tuple, checked against the labels that occur."""
    names = tuple(map(str, np.atleast_1d(listed)))
    distinct(f"{attribute}_names", names)
    if found[0] < 0 or found[-1] >= len(names):
        raise ValueError(
            f"{attribute} must lie in 0..{len(names) - 1}, the range of "
            f"{attribute}_names, got {found[0]}..{found[-1]}."
        )
    if attribute == "subject" and len(found) < len(names):
        idle = [name for i, name in enumerate(names) if i not in found]
        raise ValueError(
            f"subjects {idle} have no window; leave them out of subject_names and "
            "number the others anew."
        )
    return names
