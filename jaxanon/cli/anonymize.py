"""``jaxanon anonymize``: windows in a file, rewritten by a trained run."""

import pathlib
from typing import Annotated

import tyro

from jaxanon.cli import arguments, console, files
from jaxanon.cli import data as cli_data

ROOT = 0x616E6F6E  # "anon"; large, for split and small numbers give training's keys.


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
    sampler: Annotated[str | None, arguments.optional("STR")] = None,
    hide_threshold: arguments.Real = None,
    smoothing: bool = False,
) -> None:
    """Rewrites windows so that they can be shared: float32[N, time, channels].

    Units and channel order, in and out, are those of the data that the run was trained
    on. The same run, windows and seed give the same output; without a seed, noise is
    new at every call.

    Args:
      folder: the run, as `jaxanon train --output-dir` wrote it
      input: .npy with the windows, or .npz that has them as `windows`
      output: .npy to write; no labels travel with it
      seed: of the noise, to repeat an experiment: whoever knows it can take the noise
        off again; default: drawn from the system's entropy
      overwrite: replace the output file that is there
      epsilon: privacy budget of each window; deeprotect alone, default: as trained
      budget: file that keeps account of a stream's budget, across calls; what is spent
        is written before anything leaves, and more than is left is refused
      budget_total: of a new budget file
      strength: share of the diffusion that windows are noised by; diffusions alone,
        default: as trained
      guidance_scale: weight of what windows shall keep; diffusions alone, default: as
        trained
      negative_guidance_scale: weight of what they shall lose, likewise
      num_inference_steps: calls of the denoiser, likewise
      sampler: what takes these steps, ddim or dpm, likewise
      hide_threshold: how probable the classes to hide must be for a window to be made
        anew; privatehub with classes in hide alone, default: as trained
      smoothing: what is made anew is no rougher than training windows; likewise
    """
    from jaxanon.datasets import writing

    if output.suffix != ".npy":
        raise ValueError(f"--output must end in .npy, got {str(output)!r}.")
    if budget_total is not None and budget is None:
        raise ValueError("--budget-total is of a file; name it with --budget.")
    if seed is not None and budget is not None:
        raise ValueError(
            "a budget is of noise that nobody knows; leave --seed out, or --budget."
        )
    writing.check_writable(output, overwrite)

    import jax

    from jaxanon.core import release

    run = cli_data.open_run(folder)
    console.unfinished(run)
    windows, about = files.read_windows(input)
    files.refuse_others(about, run.spec)
    weights = {
        "strength": strength,
        "guidance_scale": guidance_scale,
        "negative_guidance_scale": negative_guidance_scale,
        "num_inference_steps": num_inference_steps,
        "sampler": sampler,
        "hide_threshold": hide_threshold,
        "smoothing": smoothing or None,
    }
    given = {name: value for name, value in weights.items() if value is not None}
    if given:
        run = run.adjusted(**given)
    if epsilon is not None or budget is not None:
        run = release.with_epsilon(run, epsilon)
    if seed is None:
        key = release.secret_key()
    else:
        key = jax.random.fold_in(jax.random.key(seed), ROOT)
    doing = "Rewriting windows; compiling comes first ..."
    if budget is None:
        with console.working(doing):
            safe = run.anonymize(key, windows)
        told = release.describe_release(run, windows, known_seed=seed is not None)
    else:
        account = release.open_budget(run, budget, budget_total)
        with console.working(doing):
            safe, told = release.release(run, key, windows, account)
    files.write_array(output, safe)
    for sentence in told:
        console.say(sentence)
    console.say(f"{len(safe)} windows anonymized: {output}")
