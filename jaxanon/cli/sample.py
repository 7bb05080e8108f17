"""``jaxanon sample``: windows, or streams, that a trained run makes from nothing."""

import math
import pathlib
from typing import Annotated

import tyro

from jaxanon.cli import arguments, console, files
from jaxanon.cli import data as cli_data

ROOT = 0x73616D70  # "samp"; as large as that of ``anonymize``, and another.


def sample(
    folder: Annotated[tyro.conf.Positional[pathlib.Path], tyro.conf.arg(metavar="DIR")],
    /,
    *,
    label: str,
    output: pathlib.Path,
    count: int = 1,
    seconds: arguments.Real = None,
    seed: arguments.Whole = None,
    overwrite: bool = False,
    avoid: str = "",
    guidance_scale: arguments.Real = None,
    negative_guidance_scale: arguments.Real = None,
    num_inference_steps: arguments.Whole = None,
    sampler: Annotated[str | None, arguments.optional("STR")] = None,
) -> None:
    """Makes windows of a class from nothing, in the units of the data trained on.

    A window from nothing is nobody's, so the file has neither subjects nor private
    classes; training asks for both, and they would have to be made up.

    Args:
      folder: a run of a method that samples, such as privatehub, by `jaxanon train`
      label: name of the public class, or several with commas between
      output: .npz to write: windows, the public class of each, those classes' names,
        and what channels are called, their units and their rate
      count: of windows of each class
      seconds: how long each is, if longer than a window; default: a window's
      seed: to repeat an experiment; default: drawn from the system's entropy
      overwrite: replace the output file that is there
      avoid: classes to lead away from, private ones too, as ATTRIBUTE=NAME, with commas
        between; privatehub alone
      guidance_scale: how much windows obey their class; privatehub alone, default: as
        trained
      negative_guidance_scale: how much they are led away from avoid; likewise
      num_inference_steps: calls of the denoiser; likewise
      sampler: what takes these steps, ddim or dpm; likewise
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
    generation(run.method)  # Who makes none may have no classes to name.
    public = run.spec.public
    names = run.spec.classes[public]
    wanted = [name.strip() for name in label.split(",")]
    if unknown := [name for name in wanted if name not in names]:
        raise ValueError(
            f"--label must be of {names}, classes of {public!r}, got {unknown}."
        )
    _check_memory(run.spec, len(wanted) * count, seconds)
    labels = np.repeat([names.index(name) for name in wanted], count).astype(np.int32)
    if len(set(wanted)) < len(wanted):
        raise ValueError(
            f"--label names a class twice, got {label!r}; --count makes many of each."
        )
    others = {
        name: np.full(len(labels), number, np.int32)
        for name, number in _avoided(run.spec, avoid).items()
    }
    if not others and negative_guidance_scale is not None:
        raise ValueError("--negative-guidance leads away from what --avoid names.")
    if public in others and others[public][0] in labels:
        raise ValueError(f"--avoid names a class that --label asks for, got {avoid!r}.")
    weights = {
        "guidance_scale": guidance_scale,
        "negative_guidance_scale": negative_guidance_scale,
        "num_inference_steps": num_inference_steps,
        "sampler": sampler,
    }
    if given := {name: value for name, value in weights.items() if value is not None}:
        run = run.adjusted(**given)
    if seed is None:
        key = release.secret_key()
    else:
        key = jax.random.fold_in(jax.random.key(seed), ROOT)
    number = "a window" if len(labels) == 1 else f"{len(labels)} windows"
    with console.working(f"Making {number}; compiling comes first ..."):
        made = run.sample(key, {public: labels}, seconds=seconds, avoid=others or None)
    told = {"windows": made, public: labels, f"{public}_names": np.array(names)}
    about = {name: getattr(run.spec, name) for name in files.ABOUT}
    files.write_arrays(output, told | {name: np.array(x) for name, x in about.items()})
    console.say(f"{len(made)} windows of {made.shape[1]} samples made: {output}")


def _check_memory(spec, number, seconds):
    """Refuses more than the machine holds, twice, for it is put together of parts."""
    from jaxanon.federated.engine import memory

    free = memory.free_on_host()
    wanted = 2 * 4 * spec.time * len(spec.channels) * number
    if seconds is not None and math.isfinite(seconds):  # Others are refused later.
        wanted *= max(1.0, seconds * spec.rate_hz / spec.time)
    if free is not None and wanted > free:
        raise ValueError(
            f"so many windows of that length take {wanted / 2**30:.3g} GiB, and "
            f"{free / 2**30:.3g} are free; ask for less (--count, --seconds) at a time."
        )


def _avoided(spec, words: str) -> dict[str, int]:
    """Numbers of classes that are named ``attribute=name``, with commas between."""
    told = spec.public, *spec.private
    known = {name: spec.classes[name] for name in told if name in spec.classes}
    found: dict[str, int] = {}
    for word in filter(None, (each.strip() for each in words.split(","))):
        attribute, _, name = word.partition("=")
        if name not in known.get(attribute, ()) or attribute in found:
            raise ValueError(
                "--avoid must be ATTRIBUTE=NAME, each attribute once, of "
                f"{known}, got {words!r}."
            )
        found[attribute] = known[attribute].index(name)
    return found
