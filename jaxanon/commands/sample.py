"""``jaxanon sample``: windows, or streams, that a trained run makes from nothing."""

import pathlib
from typing import Annotated

import tyro

from jaxanon.commands import files, show

ROOT = 0x73616D70  # "samp"; as large as that of ``anonymize``, and another.


def sample(
    folder: Annotated[tyro.conf.Positional[pathlib.Path], tyro.conf.arg(metavar="DIR")],
    /,
    *,
    label: str,
    output: pathlib.Path,
    count: int = 1,
    seconds: Annotated[float | None, tyro.conf.arg(metavar="FLOAT")] = None,
    seed: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None,
    overwrite: bool = False,
) -> None:
    """Makes windows of a class from nothing, in the units of the data trained on.

    Args:
      folder: a run of a method that samples, such as privatehub, by `jaxanon train`
      label: name of the public class, or several with commas between
      output: .npz to write: windows, and the class of each, as training data have them
      count: of windows of each class
      seconds: how long each is, if longer than a window; default: a window's
      seed: to repeat an experiment; default: drawn from the system's entropy
      overwrite: replace the output file that is there
    """
    from jaxanon.datasets import writing

    if output.suffix != ".npz":
        raise ValueError(f"--output must end in .npz, got {str(output)!r}.")
    if count < 1:
        raise ValueError(f"--count must be >= 1, got {count}.")
    writing.refuse_unwritable(output, overwrite)

    import jax
    import numpy as np

    from jaxanon import guarantee, training

    run = training.open_run(folder)
    public = run.spec.public
    names = run.spec.classes[public]
    wanted = [name.strip() for name in label.split(",")]
    if unknown := [name for name in wanted if name not in names]:
        raise ValueError(
            f"--label must be of {names}, classes of {public!r}, got {unknown}."
        )
    labels = np.repeat([names.index(name) for name in wanted], count).astype(np.int32)
    if seed is None:
        key = guarantee.secret_key()
    else:
        key = jax.random.fold_in(jax.random.key(seed), ROOT)
    made = run.sample(key, {public: labels}, seconds=seconds)
    told = {"windows": made, public: labels, f"{public}_names": np.array(names)}
    files.write_arrays(output, told)
    show.say(f"{len(made)} windows of {made.shape[1]} samples made: {output}")
