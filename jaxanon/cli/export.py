"""``jaxanon export``: a trained anonymizer as a file for a device."""

import importlib.util
import pathlib
from typing import Annotated

import tyro

from jaxanon.cli import arguments, console
from jaxanon.cli import data as cli_data


def export(
    folder: Annotated[tyro.conf.Positional[pathlib.Path], tyro.conf.arg(metavar="DIR")],
    /,
    *,
    output: pathlib.Path,
    format: str = "onnx",
    weights: str = "float32",
    attackers: arguments.File = None,
    samples: arguments.File = None,
    own: arguments.File = None,
    own_rounds: int = 80,
    seed: int = 0,
    dataset: arguments.Path = None,
    source: arguments.Path = None,
    split_seed: arguments.Whole = None,
    overwrite: bool = False,
) -> None:
    """Writes a run's anonymizer as a file that needs no JAX, with a card and a digest.

    It is compared with JAX on 1,000 test windows of the run's data first. What it
    draws is an input: `jaxanon-edge run` draws it from the operating system.

    Args:
      folder: the run, as `jaxanon train --out` wrote it
      output: file to write, whose name ends in .onnx if its format is onnx, and else
        does not; its digest goes to OUTPUT.sha256, its card to OUTPUT.md
      format: onnx, or stablehlo for jax.export
      weights: float32; float16, half the size; int8, a quarter (onnx), calibrated on
        training windows
      attackers: a further .onnx to write, of attackers that are trained now, for
        `jaxanon-edge live`
      samples: a CSV file to write, five minutes of test windows end to end, to try
        `jaxanon-edge` with
      own: .npz with a wearer's own labelled windows, to train on alone first; nothing
        else is done with them
      own_rounds: rounds of that
      seed: of training attackers, or on a wearer's own windows
      dataset: where the run's data is now, if it moved
      source: where the original files are; needed where training had --source
      split_seed: that Python's jaxanon.load was given, of a run that was trained there
      overwrite: replace the files that are there
    """
    from jaxanon.datasets import writing

    for path in filter(None, (output, attackers, samples)):
        writing.check_writable(path, overwrite)

    from jaxanon import exporting
    from jaxanon.exporting import files

    files.check_ending(output, format)
    if attackers is not None:
        files.check_ending(attackers, "onnx")
    run = cli_data.open_run(folder)
    console.unfinished(run)
    data = cli_data.recall(run, dataset=dataset, source=source, split_seed=split_seed)
    if own is not None:
        run = exporting.personalised(run, own, num_rounds=own_rounds, seed=seed)
    told = exporting.export(
        run,
        output,
        format=format,
        weights=weights,
        windows=data.test.windows,
        calibration=data.train.windows,
        overwrite=overwrite,
    )
    console.say(
        f"{told.path}: {told.size / 1e6:.2f} MB, weights in {weights}, compared with "
        f"JAX on {told.windows} test windows."
    )
    if weights != "int8":
        console.say(
            f"{100 * told.share:.1f} % of them agree within 0.001 standard deviations."
        )
    if weights != "float32":
        console.say(f"{exporting.moved(told.rounding)}.")
    console.say(f"SHA-256: {told.digest}")
    if attackers is not None:
        with console.pieces() as tell:
            exporting.export_attackers(
                run, data, attackers, seed=seed, overwrite=overwrite, progress=tell
            )
        console.say(f"Attackers: {attackers}")
    if samples is not None:
        rows = exporting.write_samples(data, samples)
        console.say(f"{rows} rows of samples: {samples}")


def live(
    model: Annotated[tyro.conf.Positional[pathlib.Path], tyro.conf.arg(metavar="F")],
    /,
    *,
    input: pathlib.Path,
    attackers: arguments.File = None,
    port: int = 8700,
) -> None:
    """Draws what a sensor tells beside what leaves, live, and what attackers infer.

    The page is for this machine alone. A device has it without JAX: `jaxanon-edge
    live`, which has further options.

    Args:
      model: as `jaxanon export` wrote it
      input: samples to stream, as `jaxanon export --samples` wrote them, or - for a
        pipe of rows
      attackers: as `jaxanon export --attackers` wrote them
      port: to listen at, 0 for any that is free
    """
    if importlib.util.find_spec("onnxruntime") is None:
        raise ImportError(
            "jaxanon live needs onnxruntime; install it with pip install "
            "'jaxanon[edge]'."
        )
    from jaxanon.edge import command

    words = ["live", str(model), "--input", str(input), "--port", str(port)]
    if attackers is not None:
        words += ["--attackers", str(attackers)]
    status = command.main(words)
    if status:
        raise SystemExit(status)
