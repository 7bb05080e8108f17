"""Files of windows: read with care, written whole or not at all."""

import os
import pathlib


def refuse_existing(path: pathlib.Path, overwrite: bool) -> None:
    """FileExistsError if there is something at ``path`` that must not be replaced."""
    if path.exists() and not overwrite:
        raise FileExistsError(
            f"{path} exists; pass --overwrite to replace it, or choose another name."
        )


def read_windows(path: pathlib.Path):
    """The array in an ``.npy``, or ``windows`` in an ``.npz``, as it is stored.

    Raises:
      FileNotFoundError: if there is no such file.
      ValueError: for another ending, a damaged file, or one without windows.
    """
    import numpy as np

    from jaxanon.datasets.own import read_arrays

    if path.suffix == ".npz":
        arrays = read_arrays(path)
        if "windows" not in arrays:
            raise ValueError(
                f"{path} has no array 'windows'; it has {sorted(arrays)}. Write it "
                "with numpy.savez(path, windows=...)."
            )
        return arrays["windows"]
    if path.suffix != ".npy":
        raise ValueError(f"--input must end in .npy or .npz, got {str(path)!r}.")
    if not path.is_file():
        raise FileNotFoundError(f"{str(path)!r} does not exist or is not a file.")
    try:
        return np.load(path, allow_pickle=False)
    except (EOFError, OSError, ValueError) as error:
        raise ValueError(
            f"{str(path)!r} is truncated or is no .npy file of numbers ({error}); "
            "write it again with numpy.save."
        ) from error


def write_array(path: pathlib.Path, array) -> None:
    """Saves an ``.npy`` beside ``path`` and moves it there when it is complete."""
    import numpy as np

    _write(path, lambda file: np.save(file, array))


def write_arrays(path: pathlib.Path, arrays: dict) -> None:
    """The same for an ``.npz`` of several."""
    import numpy as np

    _write(path, lambda file: np.savez(file, **arrays))


def _write(path, save):
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.stem}.{os.getpid()}.part{path.suffix}")
    try:
        with part.open("wb") as file:
            save(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
