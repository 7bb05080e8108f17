"""``jaxanon export`` and ``jaxanon dashboard``: files and a page for devices."""

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
    finetune_data: arguments.File = None,
    finetune_rounds: int = 80,
    seed: int = 0,
    dataset: arguments.Path = None,
    source: arguments.Path = None,
    split_seed: arguments.Whole = None,
    overwrite: bool = False,
) -> None:
    """Exports a run's anonymizer as a file that runs without JAX, with a model card.

    The file is first compared with JAX on 1,000 test windows of the run's data. Its
    random numbers are inputs: `jaxanon-edge run` draws them from the operating system.

    Args:
      folder: run folder of `jaxanon train --output-dir`
      output: file to write; ends in .onnx if and only if the format is onnx. Its digest
        goes to OUTPUT.sha256 and its model card to OUTPUT.md
      format: onnx, or stablehlo for jax.export
      weights: float32; float16 halves the size; int8 (onnx) quarters it and is
        calibrated on training windows
      attackers: second .onnx to write, with attackers trained now, for
        `jaxanon-edge dashboard`
      samples: CSV file to write, with five minutes of test windows, to try
        `jaxanon-edge`
      finetune_data: .npz with a wearer's labelled windows, to fine-tune the run locally
        before export
      finetune_rounds: number of fine-tuning rounds
      seed: random seed of attackers and of fine-tuning
      dataset: current path of the run's data, if it moved
      source: path of the original files; required if training had --source
      split_seed: split_seed of jaxanon.load, for a run trained in Python
      overwrite: replace existing files
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
    if finetune_data is not None:
        run = exporting.personalised(
            run, finetune_data, num_rounds=finetune_rounds, seed=seed
        )
    exported = exporting.export(
        run,
        output,
        format=format,
        weights=weights,
        windows=data.test.windows,
        calibration=data.train.windows,
        overwrite=overwrite,
    )
    console.say(
        f"{exported.path}: {exported.size / 1e6:.2f} MB, weights in {weights}, "
        f"compared with JAX on {exported.windows} test windows."
    )
    if weights != "int8":
        console.say(
            f"{100 * exported.share:.1f} % of them agree within 0.001 standard "
            "deviations."
        )
    if weights != "float32":
        console.say(f"{exporting.moved(exported.rounding)}.")
    console.say(f"SHA-256: {exported.digest}")
    if attackers is not None:
        with console.pieces() as progress:
            exporting.export_attackers(
                run, data, attackers, seed=seed, overwrite=overwrite, progress=progress
            )
        console.say(f"Attackers: {attackers}")
    if samples is not None:
        rows = exporting.write_samples(data, samples)
        console.say(f"Samples: {samples} ({rows} rows)")


def dashboard(
    model: Annotated[tyro.conf.Positional[pathlib.Path], tyro.conf.arg(metavar="F")],
    /,
    *,
    input: pathlib.Path,
    attackers: arguments.File = None,
    port: int = 8700,
) -> None:
    """Serves a page with raw and anonymized samples and attackers' inferences.

    The page is reachable only from this machine. `jaxanon-edge dashboard` has more
    options and does not need JAX.

    Args:
      model: file of `jaxanon export`
      input: CSV samples, such as from `jaxanon export --samples`, or - for standard
        input
      attackers: file of `jaxanon export --attackers`
      port: port to listen at; 0 for any free port
    """
    if importlib.util.find_spec("onnxruntime") is None:
        raise ImportError(
            "jaxanon dashboard requires onnxruntime; pip install 'jaxanon[edge]'."
        )
    from jaxanon.edge import command

    words = ["dashboard", str(model), "--input", str(input), "--port", str(port)]
    if attackers is not None:
        words += ["--attackers", str(attackers)]
    status = command.main(words)
    if status:
        raise SystemExit(status)
