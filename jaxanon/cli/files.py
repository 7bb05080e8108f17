"""Folders and files of commands: refused early, read with care, written whole."""

import pathlib

ABOUT = "channels", "units", "rate_hz"  # What a file may say of its windows.


def refuse_folder(output_dir: pathlib.Path, resume: bool) -> None:
    """Refuses a training's folder now, and not when its data are loaded.

    Raises:
      FileExistsError: if it holds a run that is not to be gone on with.
      NotADirectoryError, PermissionError: if nothing can be written into it.
    """
    from jaxanon.datasets import writing
    from jaxanon.training import processes, run_folder

    run_folder.check_available(output_dir, resume=resume)
    if processes.first():  # The others only read it.
        writing.check_writable_folder(output_dir)


def read_windows(path: pathlib.Path):
    """The array in an ``.npy``, or ``windows`` in an ``.npz``, as it is stored.

    Returns:
      It, and what an ``.npz`` says of it, arrays by name: channels, units, rate.

    Raises:
      FileNotFoundError: if there is no such file.
      ValueError: for another ending, a damaged file, or one without windows.
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
            f"{str(path)!r} does not exist or is not a file; name an .npy file."
        )
    try:
        return np.load(path, allow_pickle=False), {}
    except Exception as error:  # False headers raise what they meet first.
        raise ValueError(
            f"{str(path)!r} is truncated or is no .npy file of numbers ({error}); "
            "write it again with numpy.save."
        ) from error


def refuse_others(told: dict, spec) -> None:
    """Refuses windows of which a file says that they are not as a run knows them.

    What either of both leaves open is taken for the other's.

    Args:
      told: of ``read_windows``.
      spec: of the run.

    Raises:
      ValueError: for other channels, or another order of them, units, or a rate that
        is more than 1 % off.
    """
    import numpy as np

    from jaxanon.datasets.spec import contradict, rates_differ

    unnamed = tuple(map(str, range(len(spec.channels))))
    for name in ("channels", "units"):
        own = tuple(map(str, np.ravel(told.get(name, ()))))
        wanted = getattr(spec, name)
        if contradict(own, wanted) and unnamed not in (own, wanted):
            raise ValueError(
                f"the file has {name} {list(own)}, and the run was trained on "
                f"{list(wanted)}; bring its windows into that form."
            )
    rate = told.get("rate_hz", np.ones(()))
    known = rate.size == 1 and rate.dtype.kind in "fiu"
    if known and rates_differ(rate.item(), spec.rate_hz):
        raise ValueError(
            f"the file has {rate.item():g} samples a second (rate_hz), and the run was "
            f"trained on {spec.rate_hz:g}; resample it."
        )


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
