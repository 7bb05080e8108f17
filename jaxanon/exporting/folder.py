"""Export of several models as one folder, among which a device chooses."""

import contextlib
import json
import os
import pathlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxanon import __version__
from jaxanon.core import checks
from jaxanon.core.programs import single
from jaxanon.datasets import writing
from jaxanon.exporting import agreement, card, exporter, files, onnx_graph
from jaxanon.kernels.bounds import finite
from jaxanon.kernels.portable import explicit
from jaxanon.methods.dysan import online_selection

FILE = "manifest.json"
OWN = re.compile(  # Names of the files of such a folder.
    r"((member|model)-\d+\.onnx|forest\.npz|manifest\.json)(\.sha256|\.md)?|README\.md"
)
COMPARED = 200  # Maximum windows on which each graph is compared with JAX.
CALIBRATED = 2000  # Maximum windows for the forest, whose size they bound.


class Member(NamedTuple):
    """A model of a sweep, with the settings and scores that select it."""

    run: Any
    number: int
    settings: Mapping[str, Any]
    utility: float | None = None  # accuracy of the public attribute
    leak: float | None = None  # of the strongest attacker, in [0, 1]


class ExportedFolder(NamedTuple):
    """Result of ``export_members`` and ``export_choice``."""

    path: pathlib.Path
    digest: str  # SHA-256 of ``manifest.json``, in hexadecimal
    size: int  # bytes of all models
    count: int  # number of models


def export_members(
    members: Sequence[Member],
    folder: str | os.PathLike,
    *,
    weights: str = "float32",
    windows=None,
    calibration=None,
    overwrite: bool = False,
    progress: Callable[[int, int, str], None] | None = None,
) -> ExportedFolder:
    """Writes several anonymizers, of which a device loads one by an option.

    Args:
      members: models with their settings and scores.
      folder: folder to create. Each model is written by ``export``, and a manifest with
        their digests is written last.
      weights, windows, calibration: see ``export``.
      overwrite: whether to replace an existing folder of this kind.
      progress: callback ``progress(done, total, what)`` before each model.

    Returns:
      ``ExportedFolder``.

    Raises:
      FileExistsError: if the folder exists and ``overwrite`` is False, or if it holds
        other files.
      ValueError: without members; see also ``export``.
    """
    folder = pathlib.Path(folder)
    if not members:
        raise ValueError("members must hold at least one trained model, got none.")
    entries, size = [], 0
    with _replacing(folder, overwrite) as part:
        for done, one in enumerate(members):
            if progress is not None:
                progress(done, len(members), f"exporting member {one.number}")
            path = part / f"member-{one.number:04d}.onnx"
            exported = exporter.export(
                one.run, path, weights=weights, windows=windows, calibration=calibration
            )
            size += exported.size
            entry = {"file": path.name, "sha256": exported.digest, "member": one.number}
            entry |= {"settings": dict(one.settings)}
            entries.append(entry | {"utility": one.utility, "leak": one.leak})
        about = {"selection": "member", "models": entries}
        digest = _finish(part, members[0].run, about)
    return ExportedFolder(folder, digest, size, len(members))


@single
def export_choice(
    key,
    runs: Sequence,
    data,
    folder: str | os.PathLike,
    *,
    utility: float = 0.1,
    privacy: float = 0.9,
    overwrite: bool = False,
    progress: Callable[[int, int, str], None] | None = None,
) -> ExportedFolder:
    """Writes DySan's models, among which a device chooses for every five windows.

    A device predicts the public class of each raw window by a random forest. It scores
    all models on five windows, and rewrites the next five by the best one; see
    ``jaxanon.methods.dysan.online_selection``. The choice needs the private classes of
    the wearer, which are stated on the device. Weights are float32.

    Args:
      key: typed PRNG key of the forest and of the models' first scores.
      runs: runs of ``dysan`` or its variants that differ only in hyper-parameters.
      data: training windows for the forest and the first scores, and test windows, on
        which each graph is compared with JAX.
      folder: folder to create.
      utility, privacy: weights of ``online_selection.scores``, finite and >= 0.
      overwrite: whether to replace an existing folder of this kind.
      progress: callback ``progress(done, total, what)`` before each step.

    Returns:
      ``ExportedFolder``.

    Raises:
      FileExistsError: see ``export_members``.
      ImportError: if the extra ``export`` is not installed.
      ValueError: without runs, if a weight is out of range, or if a graph disagrees
        with JAX.
    """
    finite(zero=True, utility=utility, privacy=privacy)
    folder, total = pathlib.Path(folder), len(runs) + 1
    progress = progress or (lambda done, total, what: None)
    if not runs:
        raise ValueError("runs must hold at least one trained model, got none.")
    with _replacing(folder, overwrite) as part:
        progress(0, total, f"scoring {len(runs)} models on training windows")
        spec, train = data.spec, data.train
        forest_key, key = jax.random.split(key)
        few = np.linspace(
            0, len(train.windows) - 1, min(CALIBRATED, len(train.windows))
        )
        few = few.astype(int)
        forest = online_selection.forest(
            forest_key, spec, train.windows[few], train.labels[spec.public][few]
        )
        public = forest(train.windows)
        method = runs[0].method
        trier = online_selection.trier(method, [run.state for run in runs])
        tried = online_selection.try_models(key, trier, train.windows, public)
        prior = online_selection.scores(
            tried,
            np.zeros(len(public), int),
            public,
            np.stack([train.labels[name] for name in spec.private]),
            [spec.num_classes(name) for name in spec.private],
            utility=utility,
            privacy=privacy,
        )[:, 0]
        shown = data.test.windows if len(data.test.windows) else train.windows
        shown = checks.windows(
            exporter.spaced(shown, COMPARED), spec.time, spec.channels
        )
        entries, size = [], 0
        for number, run in enumerate(runs):
            progress(number + 1, total, f"exporting model {number}")
            path = part / f"model-{number:04d}.onnx"
            raw = _candidate(run, shown, forest(shown))
            size += len(raw)
            settings = {name: float(value) for name, value in run.state.hyper.items()}
            digest = files.write(path, raw)
            entries.append({"file": path.name, "sha256": digest, "settings": settings})
        raw = forest.save()
        about = {
            "selection": "online",
            "models": entries,
            "choice": {
                "forest": {
                    "file": "forest.npz",
                    "sha256": files.write(part / "forest.npz", raw),
                },
                "public": spec.public,
                "private": [
                    {"name": name, "classes": list(spec.classes[name])}
                    for name in spec.private
                ],
                "prior": [float(score) for score in prior],
                "utility": utility,
                "privacy": privacy,
                "length": online_selection.LENGTH,
            },
        }
        digest = _finish(part, runs[0], about)
    return ExportedFolder(folder, digest, size + len(raw), len(runs))


def _candidate(run, windows, public) -> bytes:
    """Returns a model as a graph that also infers classes from its output."""
    spec = run.spec
    compose, one = online_selection.once(run.method)
    composed = compose(dict(run.state.params))

    def program(key, windows, public):
        safe, found, private = one(key, composed, windows, public)
        return safe, found, private.T

    rewritten, draws = explicit(program, windows[:1], public[:1])
    inputs = [
        {"windows": each.pop("windows"), "public": public[n : n + 1], **each}
        for n, each in enumerate(agreement.examples(windows, draws))
    ]
    shapes = {k: jax.ShapeDtypeStruct(v.shape, v.dtype) for k, v in inputs[0].items()}
    outputs = ["safe", "public class", "private"]
    graph = onnx_graph.to_onnx(rewritten, shapes, outputs, run.method.name)
    session = agreement.session(graph.SerializeToString())
    wanted = jax.jit(rewritten)
    same: list[bool] = []
    for each in inputs:
        safe, *found = map(np.asarray, session.run(outputs, each))
        should, *classes = map(np.asarray, wanted(*each.values()))
        near = np.abs(safe - should) <= exporter.CLOSE * np.float32(spec.std)
        equal = [np.array_equal(a, b) for a, b in zip(found, classes, strict=True)]
        same.append(bool(near.all()) and all(equal))
    if not np.mean(same) >= exporter.SHARE:
        raise ValueError(
            f"the exported graph must agree with JAX on {100 * exporter.SHARE:g} % of "
            f"{len(same)} windows, but does on {100 * np.mean(same):.1f} %."
        )
    facts = card.facts(run, draws, weights="float32", epsilon=None, text="")
    onnx_graph.add_metadata(graph, json.dumps(facts | {"kind": "candidate"}))
    return graph.SerializeToString()


@contextlib.contextmanager
def _replacing(folder, overwrite):
    """Yields an empty folder whose files replace those of ``folder`` at the end."""
    if folder.is_file():
        raise FileExistsError(
            f"{folder} is a file; several models need a folder, choose another name."
        )
    present = [*folder.iterdir()] if folder.is_dir() else []
    if present and not overwrite:
        raise FileExistsError(
            f"{folder} is not empty; choose another folder, or pass overwrite=True "
            "(--overwrite) to replace exported models."
        )
    others = [each.name for each in present if not OWN.fullmatch(each.name)]
    if present and not (folder / FILE).is_file():
        others.append(present[0].name)  # Such as a README.md of another kind.
    if others:
        raise FileExistsError(
            f"{folder} must hold only exported models to be replaced, got "
            f"{others[0]!r}; choose another folder."
        )
    with writing.replacing_all(folder) as part:
        yield part
        for each in present:
            each.unlink()


def _finish(folder, run, about) -> str:
    """Writes the manifest, last, and returns its digest."""
    spec = run.spec
    hidden = ", ".join(spec.private)
    how = (
        "For every five windows, the device chooses a model by the wearer's private "
        "classes and earlier windows. The choice itself can leak these classes."
        if about["selection"] == "online"
        else "An option of the device selects a model."
    )
    text = (
        f"# {run.method.name} for {spec.name}: {len(about['models'])} models\n\n"
        f"Models that rewrite windows to preserve {spec.public} and hide {hidden}. "
        f"{how} No guarantee covers the selection.\n"
    )
    facts = {"format": 1, "kind": "models", "version": __version__}
    facts |= {"method": run.method.name, "card": text, **about}
    writing.write(folder / "README.md", text)
    return files.write(folder / FILE, (json.dumps(facts, indent=1) + "\n").encode())
