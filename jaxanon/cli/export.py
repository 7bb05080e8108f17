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
    selection: arguments.Name = None,
    overwrite: bool = False,
) -> None:
    """Exports a run's anonymizer as a file that runs without JAX, with a model card.

    For a sweep, exports a folder with several models. `jaxanon-edge run` chooses among
    them by an option, or for a sweep of dysan by earlier windows, in blocks of five.

    The file is first compared with JAX on 1,000 test windows of the run's data. Its
    random numbers are inputs: `jaxanon-edge run` draws them from the operating system.

    Args:
      folder: run folder of `jaxanon train --output-dir`, or folder of a sweep
      output: file to write; ends in .onnx if and only if the format is onnx. Its digest
        goes to OUTPUT.sha256 and its model card to OUTPUT.md. For a sweep, a folder
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
      selection: for a sweep. online: a device chooses among all settings of a sweep of
        dysan by windows; member: an option of the device selects a model of the Pareto
        front, or any model if none was evaluated; default: online for dysan and its
        variants, member for other methods
      overwrite: replace existing files
    """
    from jaxanon.datasets import writing

    if (folder / "sweep.json").is_file():
        unused = {
            "finetune-data": finetune_data,
            "attackers": attackers,
            "samples": samples,
            "format": None if format == "onnx" else format,
        }
        if given := [name for name, value in unused.items() if value is not None]:
            raise ValueError(
                f"--{given[0]} applies to a run, not to the sweep {folder}; export a "
                "member's folder with it."
            )
        where = {"dataset": dataset, "source": source, "split_seed": split_seed}
        _export_sweep(folder, output, selection, weights, seed, where, overwrite)
        return
    if selection is not None:
        raise ValueError(f"--selection applies to a sweep, got the run {folder}.")
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


def _export_sweep(folder, output, selection, weights, seed, where, overwrite):
    """Exports models of a sweep as a folder."""
    import jax

    from jaxanon import exporting
    from jaxanon.datasets.choices import choose
    from jaxanon.sweeps import folder as sweeps_folder
    from jaxanon.sweeps import online_selection

    content = sweeps_folder.read(folder)
    usual = "online" if content.get("method") in online_selection.NAMES else "member"
    selection = selection or usual
    choose("selection", selection, ("online", "member"))
    with console.pieces() as progress:
        if selection == "online":
            if weights != "float32":
                raise ValueError(
                    f"--weights must be float32 for --selection online, got {weights}."
                )
            runs, _ = online_selection.members(folder)
            data = cli_data.recall(runs[0], **where)
            key = jax.random.fold_in(jax.random.key(seed), online_selection.ROOT)
            done = exporting.export_choice(
                key, runs, data, output, overwrite=overwrite, progress=progress
            )
        else:
            members = _front(folder, content)
            data = cli_data.recall(members[0].run, **where)
            done = exporting.export_members(
                members,
                output,
                weights=weights,
                windows=data.test.windows,
                calibration=data.train.windows,
                overwrite=overwrite,
                progress=progress,
            )
    console.say(f"{done.path}: {done.count} models, {done.size / 1e6:.2f} MB.")
    console.say(f"SHA-256 of manifest.json: {done.digest}")


def _front(folder, content):
    """Returns the first member of each setting, or of those on the Pareto front."""
    from jaxanon import exporting
    from jaxanon.report.sweep import best
    from jaxanon.sweeps import folder as sweeps_folder

    scores = [_scores(row.get("scores") or {}) for row in content.get("summary", ())]
    points = [score for score in scores if None not in score]
    front = {point for point, on in zip(points, best(points), strict=True) if on}
    members, seen, before = [], -1, {}
    for number, member in enumerate(content.get("members", ())):
        if member["settings"] != before:
            seen, before = seen + 1, member["settings"]
        if member["seed"] or member["split"] or member["stopped"] is not None:
            continue
        score = scores[seen] if seen < len(scores) else (None, None)
        if member["losses"] and (not front or score in front):
            run = cli_data.open_run(sweeps_folder.member_folder(folder, number))
            members.append(exporting.Member(run, number, before, *score))
    if not members:
        raise ValueError(
            f"{folder} must hold a finished sweep; continue it with jaxanon sweep "
            "--resume."
        )
    return members


def _scores(scores):
    """Returns a setting's utility and its strongest attack; None if not measured."""
    mean = {name: value["mean"] for name, value in scores.items()}
    utility = [value for name, value in mean.items() if name.endswith(" accuracy")]
    for ending in (" re-identified", " intrusive"):
        leaks = [value for name, value in mean.items() if name.endswith(ending)]
        if utility and leaks:
            return utility[0], max(leaks)
    return None, None


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
