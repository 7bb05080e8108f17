"""Early checks of folders, and files of windows."""

import pathlib

ABOUT = "channels", "units", "rate_hz"  # Optional arrays of an .npz file.


def refuse_folder(output_dir: pathlib.Path, resume: bool) -> None:
    """Checks the folder of a training before its data is loaded.

    Raises:
      FileExistsError: if it holds a run and ``resume`` is False.
      NotADirectoryError, PermissionError: if it is not writable.
    """
    from jaxanon.datasets import writing
    from jaxanon.training import processes, run_folder

    run_folder.check_available(output_dir, resume=resume)
    if processes.first():  # Other processes only read it.
        writing.check_writable_folder(output_dir)


def read_windows(path: pathlib.Path):
    """Reads the array of an ``.npy`` file, or ``windows`` of an ``.npz`` file.

    Returns:
      The array, and a dict of the optional arrays ``ABOUT`` of an ``.npz`` file.

    Raises:
      FileNotFoundError: if the file does not exist.
      ValueError: for another extension, a damaged file, or a file without windows.
    """
    import numpy as np

    from jaxanon.datasets.custom import read_arrays

    if path.suffix == ".npz":
        arrays = read_arrays(path)
        if "windows" not in arrays:
            raise ValueError(
                f"{path} has no array 'windows'; it has {sorted(arrays)}. Write it "
                "with numpy.savez(path, windows=...)."
            )
        return arrays["windows"], {n: arrays[n] for n in ABOUT if n in arrays}
    if path.suffix != ".npy":
        raise ValueError(f"--input must end in .npy or .npz, got {str(path)!r}.")
    if not path.is_file():
        raise FileNotFoundError(
            f"{str(path)!r} does not exist or is not a file; pass an .npy file."
        )
    try:
        return np.load(path, allow_pickle=False), {}
    except Exception as error:  # Damaged headers raise errors of many types.
        raise ValueError(
            f"{str(path)!r} is truncated or not an .npy file of numbers ({error}); "
            "write it again with numpy.save."
        ) from error


def refuse_others(about: dict, spec) -> None:
    """Checks that the windows of a file have the channels, units and rate of a run.

    Properties that the file or the run lacks are not checked.

    Args:
      about: second result of ``read_windows``.
      spec: spec of the run.

    Raises:
      ValueError: for other channels, another order, other units, or a rate that
        differs by more than 1 %.
    """
    import numpy as np

    from jaxanon.datasets.spec import contradict, rates_differ

    unnamed = tuple(map(str, range(len(spec.channels))))
    for name in ("channels", "units"):
        stored = tuple(map(str, np.ravel(about.get(name, ()))))
        wanted = getattr(spec, name)
        if contradict(stored, wanted) and unnamed not in (stored, wanted):
            raise ValueError(
                f"the file must have {name} {list(wanted)} as in training, got "
                f"{list(stored)}; convert its windows."
            )
    rate = about.get("rate_hz", np.ones(()))
    known = rate.size == 1 and rate.dtype.kind in "fiu"
    if known and rates_differ(rate.item(), spec.rate_hz):
        raise ValueError(
            f"rate_hz of the file must be {spec.rate_hz:g} as in training, got "
            f"{rate.item():g}; resample it."
        )


def write_array(path: pathlib.Path, array) -> None:
    """Writes an ``.npy`` file and moves it to ``path`` when it is complete."""
    import numpy as np

    from jaxanon.datasets import writing

    with writing.replacing(path) as file:
        np.save(file, array)


def write_arrays(path: pathlib.Path, arrays: dict) -> None:
    """Writes an ``.npz`` file of several arrays in the same way."""
    import numpy as np

    from jaxanon.datasets import writing

    with writing.replacing(path) as file:
        np.savez(file, **arrays)
