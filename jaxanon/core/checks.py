"""Argument checks with error messages that give the value and the remedy."""

import math

import numpy as np

from jaxanon.kernels.checks import whole


def seed(value) -> None:
    """Raises unless ``value`` is a whole number in [0, 2**32).

    JAX uses only the lowest 32 bits of a seed, so larger seeds would collide.

    Example:
      >>> seed(3)
    """
    if not 0 <= whole("seed", value, least=-math.inf) < 2**32:
        raise ValueError(f"seed must be between 0 and {2**32 - 1}, got {value}.")


def labels(name: str, values, count: int, classes: tuple, where="labels") -> None:
    """Raises ValueError unless ``values`` is ``int[count]`` in [0, len(classes)).

    Example:
      >>> labels("side", np.array([0, 1, 1]), 3, ("left", "right"))
    """
    values = np.asarray(values)
    if values.shape != (count,) or values.dtype.kind not in "iu":
        raise ValueError(
            f"{where}[{name!r}] must be int[{count}], one per window, got "
            f"{values.dtype}{list(values.shape)}."
        )
    wrong = values[(values < 0) | (values >= len(classes))]
    if len(wrong):
        raise ValueError(
            f"{where}[{name!r}] must be in [0, {len(classes)}), got {wrong[0]}; list "
            f"every class in spec.classes, which has {classes}."
        )


def no_lone(name: str, values, classes: tuple[str, ...]) -> None:
    """Raises ValueError if a class has exactly one window, too few to learn from.

    Example:
      >>> no_lone("side", np.array([0, 2, 2, 0]), ("left", "both", "right"))
    """
    lone = np.flatnonzero(np.bincount(values) == 1)
    if len(lone):
        raise ValueError(
            f"{name} class {classes[lone[0]]!r} must have at least 2 training windows, "
            "got 1; drop that class or merge it with another."
        )


def numbers(name: str, values, count: int) -> None:
    """Raises ValueError unless ``values`` is ``float[count]`` and finite.

    Example:
      >>> numbers("power", np.array([0.5, 2.0]), 2)
    """
    values = np.asarray(values)
    if values.shape != (count,) or values.dtype.kind != "f":
        raise ValueError(
            f"labels[{name!r}] must be float[{count}], one per window, got "
            f"{values.dtype}{list(values.shape)}."
        )
    if not np.isfinite(values).all():
        raise ValueError(
            f"labels[{name!r}] must be finite, got NaN or infinity in "
            f"{np.sum(~np.isfinite(values))} of {count}; drop those windows."
        )


def windows(array, time: int, channels: tuple[str, ...]) -> np.ndarray:
    """Returns windows as float32 and checks their shape.

    Args:
      array: array-like of shape ``[N, time, channels]``; N may be 0.
      time: samples per window.
      channels: channel names, in order.

    Returns:
      ``float32[N, time, channels]``.

    Raises:
      TypeError: if the values are not real numbers.
      ValueError: if the shape differs, or a value is NaN or infinite.

    Example:
      >>> windows([[[1, 2]]], 1, ("x", "y")).dtype
      dtype('float32')
    """
    array = np.asarray(array)
    if array.dtype.kind not in "fiub":
        raise TypeError(
            f"windows must be real numbers, got dtype {array.dtype}; save them as "
            "float32."
        )
    if array.shape[1:] != (time, len(channels)) or array.ndim != 3:
        raise ValueError(
            f"windows must be float[N, {time}, {len(channels)}] (samples by channels "
            f"{', '.join(channels)}), got shape {array.shape}; pass a single window as "
            "windows[None], and cut a recording into windows first."
        )
    with np.errstate(over="ignore"):  # Overflow of float32 raises below.
        array = array.astype(np.float32)
    bad = np.flatnonzero(~np.isfinite(array).all(axis=(1, 2)))
    if len(bad):
        raise ValueError(
            f"windows must be finite as float32, got NaN or infinity in {len(bad)} of "
            f"{len(array)}, first at index {bad[0]}; drop or repair them."
        )
    return array


def host_and_port(
    address: str, name: str = "an address", owner: str = ""
) -> tuple[str, int]:
    """Splits ``"10.0.0.2:9092"`` into ``("10.0.0.2", 9092)``.

    Args:
      address: host and port; an IPv6 host in brackets.
      name: argument name in the error message.
      owner: continuation of ``HOST:PORT`` in the error message.

    Raises:
      ValueError: if ``address`` is not ``HOST:PORT``.

    Example:
      >>> host_and_port("localhost:9092"), host_and_port("[::1]:80")
      (('localhost', 9092), ('::1', 80))
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise ValueError(f"{name} must be HOST:PORT{owner}, got {address!r}.")
    return host.strip("[]"), int(port)


def first_line(error: BaseException) -> str:
    """Returns the first line of an error's message, or its type if it has none.

    Example:
      >>> first_line(ValueError("one\\ntwo")), first_line(KeyError())
      ('one', 'KeyError')
    """
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
