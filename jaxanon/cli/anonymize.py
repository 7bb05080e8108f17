"""``jaxanon anonymize``: rewrites the windows of a file with a trained run."""

import pathlib
from typing import Annotated

import tyro

from jaxanon.cli import arguments, commands, console, files
from jaxanon.cli import data as cli_data

ROOT = 0x616E6F6E  # "anon"; large, because training uses small numbers.

RELEASE = "epsilon", "budget", "budget_total"  # Flags of methods with a guarantee.

ADJUSTABLE = (  # Flags of methods with such a setting.
    "strength",
    "guidance_scale",
    "negative_guidance_scale",
    "num_inference_steps",
    "sampler",
    "hide_threshold",
    "smoothing",
)


def command(words):
    """Returns the command for the parser; help of a run folder has the run's flags."""
    if not {"--help", "-h"} & {*words}:
        return commands.deferred(anonymize)  # A run refuses other flags with a reason.
    for word in words:
        if (pathlib.Path(word) / "config.json").is_file():
            return commands.deferred(anonymize, omit=_other_flags(pathlib.Path(word)))
    return commands.deferred(anonymize)


def _other_flags(folder) -> frozenset:
    """Returns the optional parameters that do not apply to a run."""
    method = cli_data.open_run(folder).method
    known = {*method.adjustable.hyper, *method.adjustable.settings}
    other = {*ADJUSTABLE} - known
    return frozenset(other if method.release is not None else other | {*RELEASE})


def anonymize(
    folder: Annotated[tyro.conf.Positional[pathlib.Path], tyro.conf.arg(metavar="DIR")],
    /,
    *,
    input: pathlib.Path,
    output: pathlib.Path,
    seed: arguments.Whole = None,
    overwrite: bool = False,
    epsilon: arguments.Real = None,
    budget: arguments.File = None,
    budget_total: arguments.Real = None,
    strength: arguments.Real = None,
    guidance_scale: arguments.Real = None,
    negative_guidance_scale: arguments.Real = None,
    num_inference_steps: arguments.Whole = None,
    sampler: Annotated[str | None, arguments.optional("{ddim,dpmpp_2m}")] = None,
    hide_threshold: arguments.Real = None,
    smoothing: bool = False,
) -> None:
    """Rewrites windows so that they can be shared: float32[N, time, channels].

    Units and channel order are those of the training data. The same run, windows and
    seed give the same output. Without a seed, each call draws new noise. `jaxanon
    anonymize DIR --help` shows only the flags that apply to the run.

    Args:
      folder: run folder of `jaxanon train --output-dir`
      input: .npy file with windows, or .npz file with the array `windows`
      output: .npy file to write, without labels
      seed: random seed to repeat an experiment; anybody who knows it can remove the
        noise; default: drawn from the operating system
      overwrite: replace an existing file
      epsilon: privacy budget per window (deeprotect); default: as trained
      budget: file that records the spent budget of a stream across calls; a call that
        would exceed the budget fails (deeprotect)
      budget_total: total budget of a new budget file (deeprotect)
      strength: fraction of the diffusion steps that add noise to a window (privatehub);
        default: as trained
      guidance_scale: weight of the attributes to preserve (cloak, privdiffuser,
        privatehub); default: as trained
      negative_guidance_scale: weight of the attributes to hide (cloak, privdiffuser,
        privatehub); default: as trained
      num_inference_steps: denoiser steps (cloak, privdiffuser, privatehub); default: as
        trained
      sampler: sampler of the diffusion (cloak, privdiffuser, privatehub); default: as
        trained
      hide_threshold: probability of the classes to hide above which a window is
        regenerated (privatehub with classes_to_hide); default: as trained
      smoothing: limit the roughness of regenerated windows to that of training windows
        (privatehub)
    """
    from jaxanon.datasets import writing

    if output.suffix != ".npy":
        raise ValueError(f"--output must end in .npy, got {str(output)!r}.")
    if budget_total is not None and budget is None:
        raise ValueError("--budget-total requires --budget; name the budget file.")
    if seed is not None and budget is not None:
        raise ValueError(
            "--budget requires secret noise, and --seed makes it known; omit one."
        )
    writing.check_writable(output, overwrite)

    import jax

    from jaxanon.core import release

    run = cli_data.open_run(folder)
    console.unfinished(run)
    windows, about = files.read_windows(input)
    files.refuse_others(about, run.spec)
    settings = {
        "strength": strength,
        "guidance_scale": guidance_scale,
        "negative_guidance_scale": negative_guidance_scale,
        "num_inference_steps": num_inference_steps,
        "sampler": sampler,
        "hide_threshold": hide_threshold,
        "smoothing": smoothing or None,
    }
    changed = {name: value for name, value in settings.items() if value is not None}
    if changed:
        run = run.adjusted(**changed)
    if epsilon is not None or budget is not None:
        run = release.with_epsilon(run, epsilon)
    if seed is None:
        key = release.secret_key()
    else:
        key = jax.random.fold_in(jax.random.key(seed), ROOT)
    doing = "Compiling, then rewriting windows ..."
    if budget is None:
        with console.working(doing):
            safe = run.anonymize(key, windows)
        sentences = release.describe_release(run, windows, known_seed=seed is not None)
    else:
        account = release.open_budget(run, budget, budget_total)
        with console.working(doing):
            safe, sentences = release.release(run, key, windows, account)
    files.write_array(output, safe)
    for sentence in sentences:
        console.say(sentence)
    console.say(f"{len(safe)} windows anonymized: {output}")
