"""``jaxanon anonymize``: rewrites recordings or windows with a trained run."""

import pathlib
from typing import Annotated, Literal

import tyro

from jaxanon.cli import arguments, commands, console, files
from jaxanon.cli import data as cli_data
from jaxanon.core import escaping

ROOT = 0x616E6F6E  # "anon"; large, because training uses small numbers.

MOST_ROWS = 30  # Recordings in the table of the summary.

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
    input: Annotated[tuple[pathlib.Path, ...], tyro.conf.arg(metavar="FILE ...")],
    output_dir: arguments.Folder = None,
    output: arguments.File = None,
    time: Literal["exact", "relative", "grid"] = "exact",
    time_column: arguments.Name = None,
    time_format: Annotated[str | None, arguments.optional("FORMAT")] = None,
    channels: arguments.Names = None,
    units: arguments.Names = None,
    carry: arguments.Names = None,
    allow_private: bool = False,
    subject: arguments.Name = None,
    gaps: Literal["cells", "column"] = "cells",
    hop: arguments.Whole = None,
    rate_hz: arguments.Real = None,
    max_gap_s: arguments.Real = None,
    encoding: arguments.Name = None,
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
    """Rewrites recordings, or windows, so that they can be shared.

    Recordings are files in CSV, Parquet or Feather, or folders of such files. Each
    output has the name, columns, order, units and dialect of its input. Rows keep their
    times; rows without a safe value have empty cells. Columns other than times, the
    model's channels and those of --carry are dropped. Overlapping windows are
    anonymized and added up, as on a device.

    Windows are an array float32[N, time, channels] in an .npy or .npz file, in the
    units and channel order of the training data, and need --output instead of
    --output-dir.

    The same run, input and seed give the same output. Without a seed, each call draws
    new noise. `jaxanon anonymize DIR --help` shows only the flags that apply to the
    run.

    Args:
      folder: run folder of `jaxanon train --output-dir`
      input: recordings or folders of recordings; or one .npy file with windows, or
        .npz file with the array `windows`
      output_dir: folder of the anonymized recordings
      output: .npy file of anonymized windows, without labels
      time: exact keeps the times of the rows to the digit; relative counts from the
        first row of a recording; grid writes a row for each point of a regular grid.
        Exact times and gaps can identify a person or device
      time_column: column with times; default: time, timestamp or a similar name
      time_format: s, ms, us, ns, iso or a format such as '%d/%m/%Y %H:%M:%S.%f';
        default: detected
      channels: columns of the model's channels, in the model's order; default: the
        columns of the same names. Double quotes keep a name with commas together, here
        and in --carry: '"acc, x"'
      units: units of these columns, one or one per channel; default: as in the header,
        else as in training
      carry: other columns to copy, such as an activity; private attributes are refused
      allow_private: accept private columns in --carry
      subject: column with the person of each row, if files hold several people; it is
        not written
      gaps: column adds a column `gap` with the reason of each empty row
      hop: samples between the starts of windows; default: half a window
      rate_hz: rows per second; default: estimated from the times
      max_gap_s: longest gap between rows that is interpolated; default: 3 periods
      encoding: encoding of CSV files; default: UTF-8 or UTF-16, detected
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

    of_windows = any(path.suffix.lower() in (".npy", ".npz") for path in input)
    _check_kind(input, output, output_dir, of_windows)
    if of_windows:
        for_recordings = {
            "time-column": time_column,
            "time-format": time_format,
            "channels": channels,
            "units": units,
            "carry": carry,
            "subject": subject,
            "hop": hop,
            "rate-hz": rate_hz,
            "max-gap-s": max_gap_s,
            "encoding": encoding,
        }
        given = [name for name, value in for_recordings.items() if value is not None]
        if given:
            raise ValueError(
                f"--{given[0]} applies to recordings, not windows; omit it."
            )
    if output is not None and output.suffix != ".npy":
        raise ValueError(f"--output must end in .npy, got {str(output)!r}.")
    if budget_total is not None and budget is None:
        raise ValueError("--budget-total requires --budget; name the budget file.")
    if seed is not None and budget is not None:
        raise ValueError(
            "--budget requires secret noise, and --seed makes it known; omit one."
        )
    if output is not None:
        writing.check_writable(output, overwrite)

    import jax

    from jaxanon.core import release

    run = cli_data.open_run(folder)
    console.unfinished(run)
    windows = None
    if of_windows:
        windows, about = files.read_windows(input[0])
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
    account = None
    if budget is not None:
        account = release.open_budget(run, budget, budget_total)
    known_seed = seed is not None
    if windows is None:
        from jaxanon import streaming

        with console.pieces() as progress:
            released = streaming.anonymize_recordings(
                run,
                input,
                output_dir,
                key=key,
                time=time,
                time_column=time_column,
                time_format=time_format,
                channels=channels and cli_data.names(channels, "channels"),
                units=(units and cli_data.names(units, "units")) or (),
                carry=(carry and cli_data.names(carry, "carry")) or (),
                subject=subject,
                allow_private=allow_private,
                gaps=gaps,
                hop=hop,
                rate_hz=rate_hz,
                max_gap_s=max_gap_s,
                encoding=encoding,
                budget=account,
                overwrite=overwrite,
                progress=progress,
            )
        _show(released)
        for sentence in release.describe_stream(run, hop, known_seed=known_seed):
            console.say(sentence)
        if account is not None:
            spent = account.spent
            console.say(
                f"{spent:g} of {account.epsilon:g} is spent in {account.path}, "
                f"{account.left:g} is left."
            )
        count = len(released.recordings)
        number = "1 recording" if count == 1 else f"{count} recordings"
        console.say(f"{number} anonymized: {output_dir}")
        return
    with console.pieces() as progress:
        if account is None:
            safe = run.anonymize(key, windows, progress=progress)
            sentences = release.describe_release(run, windows, known_seed=known_seed)
        else:
            safe, sentences = release.release(
                run, key, windows, account, progress=progress
            )
    assert output is not None
    files.write_array(output, safe)
    for sentence in sentences:
        console.say(sentence)
    console.say(f"{len(safe)} windows anonymized: {output}")


def _check_kind(input, output, output_dir, of_windows):
    """Raises ValueError unless the outputs fit the inputs."""
    if of_windows and len(input) > 1:
        raise ValueError(
            "--input must be recordings, or one file of windows, got "
            f"{len(input)} files; anonymize windows one file at a time."
        )
    if of_windows and (output is None or output_dir is not None):
        raise ValueError("--input with windows requires --output FILE.npy.")
    if not of_windows and output is not None and output_dir is None:
        raise ValueError(
            f"--input must end in .npy or .npz for --output, got {str(input[0])!r}; "
            "recordings require --output-dir DIR."
        )
    if not of_windows and (output_dir is None or output is not None):
        raise ValueError("--input with recordings requires --output-dir DIR.")


def _range(values):
    low, high = f"{min(values):.4g}", f"{max(values):.4g}"
    return low if low == high else f"{low} to {high}"


def _show(released):
    """Prints the summary of anonymized recordings."""
    table = console.table_of(
        "Anonymized recordings", "recording", "rows", "released", "empty", "windows"
    )
    total = dict.fromkeys(("rows", "released", "empty", "windows"), 0)
    gaps: dict[str, int] = {}
    losses: dict[str, int] = {}
    dropped: dict[str, None] = {}
    first = None
    for number, one in enumerate(released.recordings):
        figures = [one.counts[name] for name in total]
        for name, figure in zip(total, figures, strict=True):
            total[name] += figure
        if number < MOST_ROWS:
            table.add_row(escaping.printable(one.output.name), *map(str, figures))
        for counts, own in ((gaps, one.gaps), (losses, one.losses)):
            for reason, count in own.items():
                counts[reason] = counts.get(reason, 0) + count
        if first is None and one.first_malformed is not None:
            first = f"line {one.first_malformed} of {one.name}"
        dropped |= dict.fromkeys(one.dropped)
    count = len(released.recordings)
    if count > 1:
        table.add_row(f"{count} recordings", *map(str, total.values()))
    console.table(table)
    if gaps:
        each = ", ".join(f"{n} ({why})" for why, n in gaps.items())
        console.say(f"Empty rows: {each}.")
    if losses:
        shown = ", ".join(f"{n} {why}" for why, n in losses.items())
        console.say(
            f"Not read: {shown}" + (f"; the first is {first}." if first else ".")
        )
    if dropped:
        console.say(f"Dropped columns: {', '.join(dropped)}")
    for one in released.recordings:
        if one.counts["rows"] and not one.counts["released"]:
            console.say(f"Warning: {one.name}: no row was released.")
    rated = [one for one in released.recordings if one.seen_rate_hz > 0]
    if rated:
        seen = _range([one.seen_rate_hz for one in rated])
        grid = _range([one.rate_hz for one in rated])
        console.say(f"Rows arrive at {seen} Hz and are put on a grid of {grid} Hz.")
    console.say(f"Compiled in {released.compile_s:.1f} s.")
    for sentence in released.warnings:
        console.say(f"Warning: {sentence}")
