"""``jaxanon anonymize``: windows in a file, rewritten by a trained run."""

import pathlib
from typing import Annotated

import tyro

from jaxanon.commands import files, show

ROOT = 0x616E6F6E  # "anon"; large, for split and small numbers give training's keys.


def anonymize(
    folder: Annotated[tyro.conf.Positional[pathlib.Path], tyro.conf.arg(metavar="DIR")],
    /,
    *,
    input: pathlib.Path,
    output: pathlib.Path,
    seed: int = 0,
    overwrite: bool = False,
) -> None:
    """Rewrites windows so that they can be shared: float32[N, time, channels].

    Units and channel order, in and out, are those of the data that the run was trained
    on. The same run, windows and seed give the same output.

    Args:
      folder: the run, as `jaxanon train --out` wrote it
      input: .npy with the windows, or .npz that has them as `windows`
      output: .npy to write; no labels travel with it
      seed: of the noise; choose another one for every file that you share
      overwrite: replace the output file that is there
    """
    if output.suffix != ".npy":
        raise ValueError(f"--output must end in .npy, got {str(output)!r}.")
    files.refuse_existing(output, overwrite)
    windows = files.read_windows(input)

    import jax

    from jaxanon import training

    run = training.open_run(folder)
    key = jax.random.fold_in(jax.random.key(seed), ROOT)
    safe = run.anonymize(key, windows)
    files.write_array(output, safe)
    show.say(f"{len(safe)} windows anonymized: {output}")
