"""Folders and files of commands: refused early, read with care, written whole."""

import pathlib


def refuse_folder(out: pathlib.Path, resume: bool) -> None:
    """Refuses a training's folder now, and not when its data are loaded.

    Raises:
      FileExistsError: if it holds a run that is not to be gone on with.
      NotADirectoryError, PermissionError: if nothing can be written into it.
    """
    from jaxanon import checkpoint, processes
    from jaxanon.datasets import writing

    if not resume:
        checkpoint.refuse_run(out)
    if processes.first():  # The others only read it.
        writing.refuse_unwritable_folder(out)


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
        raise FileNotFoundError(
            f"{str(path)!r} does not exist or is not a file; name an .npy file."
        )
    try:
        return np.load(path, allow_pickle=False)
    except Exception as error:  # False headers raise what they meet first.
        raise ValueError(
            f"{str(path)!r} is truncated or is no .npy file of numbers ({error}); "
            "write it again with numpy.save."
        ) from error


def write_array(path: pathlib.Path, array) -> None:
    """Saves an ``.npy`` beside ``path`` and moves it there when it is complete."""
    import numpy as np

    from jaxanon.datasets import writing

    with writing.replacing(path) as file:
        np.save(file, array)


def write_arrays(path: pathlib.Path, arrays: dict) -> None:
    """The same for an ``.npz`` of several."""
    import numpy as np

    from jaxanon.datasets import writing

    with writing.replacing(path) as file:
        np.savez(file, **arrays)
