"""``jaxanon sample``: synthetic windows or streams of a trained run."""

import math
import pathlib
from typing import Annotated

import tyro

from jaxanon.cli import arguments, console, files
from jaxanon.cli import data as cli_data

ROOT = 0x73616D70  # "samp"; differs from that of ``anonymize``.


def sample(
    folder: Annotated[tyro.conf.Positional[pathlib.Path], tyro.conf.arg(metavar="DIR")],
    /,
    *,
    label: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME ...")],
    output: pathlib.Path,
    count: int = 1,
    seconds: Annotated[float | None, arguments.optional("SECONDS")] = None,
    seed: arguments.Whole = None,
    overwrite: bool = False,
    avoid: Annotated[tuple[str, ...], arguments.optional("ATTRIBUTE=NAME ...")] = (),
    guidance_scale: arguments.Real = None,
    negative_guidance_scale: arguments.Real = None,
    num_inference_steps: arguments.Whole = None,
    sampler: Annotated[str | None, arguments.optional("{ddim,dpmpp_2m}")] = None,
) -> None:
    """Samples synthetic windows of public classes, in the units of the training data.

    Synthetic windows have no subject and no private classes, so the file cannot train
    an anonymizer.

    Args:
      folder: run folder of a generative method, such as privatehub
      label: public classes to sample
      output: .npz file to write: windows, their public classes, class names, channels,
        units and rate
      count: number of windows per class
      seconds: duration of each window, if longer than a training window; default: a
        training window
      seed: random seed to repeat an experiment; default: drawn from the operating
        system
      overwrite: replace an existing file
      avoid: public or private classes to guide away from (privatehub)
      guidance_scale: weight of the class (privatehub); default: as trained
      negative_guidance_scale: weight of the classes to avoid (privatehub); default: as
        trained
      num_inference_steps: denoiser steps (privatehub); default: as trained
      sampler: sampler of the diffusion (privatehub); default: as trained
    """
    from jaxanon.datasets import writing

    if output.suffix != ".npz":
        raise ValueError(f"--output must end in .npz, got {str(output)!r}.")
    if count < 1:
        raise ValueError(f"--count must be >= 1, got {count}.")
    writing.check_writable(output, overwrite)

    import jax
    import numpy as np

    from jaxanon.core import release
    from jaxanon.core.method import generation

    run = cli_data.open_run(folder)
    console.unfinished(run)
    generation(run.method)  # Raises an error for methods without samples.
    public = run.spec.public
    names = run.spec.classes[public]
    wanted = list(cli_data.names(label, "label"))
    if unknown := [name for name in wanted if name not in names]:
        raise ValueError(
            f"--label must be among {names}, classes of {public!r}, got {unknown}."
        )
    _check_memory(run.spec, len(wanted) * count, seconds)
    labels = np.repeat([names.index(name) for name in wanted], count).astype(np.int32)
    if len(set(wanted)) < len(wanted):
        raise ValueError(
            f"--label must name each class once, got {' '.join(label)!r}; use --count "
            "for several windows per class."
        )
    others = {
        name: np.full(len(labels), number, np.int32)
        for name, number in _avoided(run.spec, avoid).items()
    }
    if not others and negative_guidance_scale is not None:
        raise ValueError(
            "--negative-guidance-scale requires --avoid; name classes to avoid."
        )
    if public in others and others[public][0] in labels:
        raise ValueError(f"--avoid must differ from --label, got {' '.join(avoid)!r}.")
    settings = {
        "guidance_scale": guidance_scale,
        "negative_guidance_scale": negative_guidance_scale,
        "num_inference_steps": num_inference_steps,
        "sampler": sampler,
    }
    if changed := {name: x for name, x in settings.items() if x is not None}:
        run = run.adjusted(**changed)
    if seed is None:
        key = release.secret_key()
    else:
        key = jax.random.fold_in(jax.random.key(seed), ROOT)
    number = "a window" if len(labels) == 1 else f"{len(labels)} windows"
    console.say(f"Sampling {number}.")
    with console.pieces() as progress:
        windows = run.sample(
            key,
            {public: labels},
            seconds=seconds,
            avoid=others or None,
            progress=progress,
        )
    arrays = {"windows": windows, public: labels, f"{public}_names": np.array(names)}
    about = {name: getattr(run.spec, name) for name in files.ABOUT}
    files.write_arrays(
        output, arrays | {name: np.array(x) for name, x in about.items()}
    )
    console.say(f"{len(windows)} windows of {windows.shape[1]} samples: {output}")


def _check_memory(spec, number, seconds):
    """Raises an error for more windows than memory can hold twice."""
    from jaxanon.federated.engine import memory

    free = memory.free_on_host()
    wanted = 2 * 4 * spec.time * len(spec.channels) * number
    if seconds is not None and math.isfinite(
        seconds
    ):  # Other values raise errors later.
        wanted *= max(1.0, seconds * spec.rate_hz / spec.time)
    if free is not None and wanted > free:
        raise ValueError(
            f"--count and --seconds must fit into {free / 2**30:.3g} GiB of memory, "
            f"got {wanted / 2**30:.3g} GiB; sample less at a time."
        )


def _avoided(spec, words) -> dict[str, int]:
    """Returns the class indices of words ``attribute=name``, by attribute."""
    attributes = spec.public, *spec.private
    known = {name: spec.classes[name] for name in attributes if name in spec.classes}
    avoided: dict[str, int] = {}
    for word in cli_data.names(words, "avoid") if words else ():
        attribute, _, name = word.partition("=")
        if name not in known.get(attribute, ()) or attribute in avoided:
            raise ValueError(
                "--avoid must be ATTRIBUTE=NAME, each attribute once, of "
                f"{known}, got {' '.join(words)!r}."
            )
        avoided[attribute] = known[attribute].index(name)
    return avoided
