"""Those who read windows, as a file: what an attacker infers, shown live."""

import json
import os
import pathlib
from collections.abc import Callable

import jax
import numpy as np

from jaxanon import __version__
from jaxanon.attacks import attacker_data
from jaxanon.datasets import spec as datasets_spec
from jaxanon.exporting import card, files, onnx_graph
from jaxanon.models.fit import fit_classifier


def export_attackers(
    run,
    data,
    path: str | os.PathLike,
    *,
    share: float = 0.2,
    seed: int = 0,
    overwrite: bool = False,
    progress: Callable[[int, int, str], None] | None = None,
) -> pathlib.Path:
    """Trains attackers of an anonymizer and writes them as one ONNX file.

    For demonstrations: ``jaxanon live`` shows what they infer from raw and from
    anonymized windows. One reads the public attribute and one each private one, having
    been trained on raw windows; one more reads each private one, having been trained on
    the anonymizer's own output for a share of the training windows.

    Args:
      run: of ``train`` or ``open_run``, of a method that rewrites windows.
      data: what it was trained on, of ``jaxanon.load``.
      path: of the file, which ends in ``.onnx``; its digest goes to ``<path>.sha256``.
      share: of each class's training windows that the last ones know, in (0, 1].
      seed: of everything that training draws.
      overwrite: replace what is there.
      progress: called as ``progress(done, total, what)`` before each training.

    Returns:
      The file's path.

    Raises:
      FileExistsError: if there is a file, and ``overwrite`` is False.
      ImportError: without the extra ``export``.
      ValueError: as ``models.fit.fit_classifier``, and for a share that leaves a class
        fewer than two windows.

    Example:
      >>> import tempfile, jaxanon as ja
      >>> data = ja.load("smartwatch", preset="acc10")
      >>> train = ja.datasets.Windows(
      ...     data.train.windows[::100],
      ...     {name: own[::100] for name, own in data.train.labels.items()})
      >>> data = data._replace(train=train)
      >>> run = ja.train(ja.methods.orf(data.spec), data, epochs=1, progress=False)
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     export_attackers(run, data, f"{folder}/who.onnx", share=1.0).name
      'who.onnx'
    """
    path = pathlib.Path(path)
    files.check_ending(path, "onnx")
    files.refuse_unwritable(path, overwrite=overwrite)
    spec = data.spec
    trainings = [(spec.public, "public", "raw")]
    trainings += [(name, "private", "raw") for name in spec.private]
    trainings += [(name, "private", "anonymized") for name in spec.private]
    root = jax.random.key(seed)
    readers = []
    for number, (attribute, _, on) in enumerate(trainings):
        if progress is not None:
            what = f"learning {attribute} from {on} windows"
            progress(number, len(trainings), what)
        keys = jax.random.split(jax.random.fold_in(root, number), 3)
        windows, labels = _known(keys, run, data, attribute, on, share)
        classes = spec.num_classes(attribute)
        readers.append(fit_classifier(keys[2], windows, labels, classes))
    outputs = [f"{role} {attribute}, {on}" for attribute, role, on in trainings]
    mean, std = (np.array([[own]], np.float32) for own in (spec.mean, spec.std))

    def read(windows):
        shown = (windows - mean) / std
        told = [
            one.net.apply(one.params, shown)[:, : one.num_classes] for one in readers
        ]
        return tuple(jax.nn.softmax(logits, axis=-1) for logits in told)

    shape = jax.ShapeDtypeStruct((1, spec.time, len(spec.channels)), np.float32)
    model = onnx_graph.to_onnx(read, {"windows": shape}, outputs, "attackers")
    reads = [
        {
            "output": output,
            "attribute": attribute,
            "role": role,
            "trained_on": on,
            "classes": list(spec.classes[attribute]),
        }
        for output, (attribute, role, on) in zip(outputs, trainings, strict=True)
    ]
    facts = {
        "format": card.FORMAT,
        "kind": "attackers",
        "version": __version__,
        "input": card.described(spec),
        "dataset": card.dataset(spec),
        "reads": reads,
    }
    onnx_graph.tell(model, json.dumps(facts))
    files.write(path, model.SerializeToString())
    return path


def _known(keys, run, data, attribute, on, share):
    """Standardised windows that an attacker has, and their classes."""
    train = data.train
    labels = np.asarray(train.labels[attribute])
    windows = train.windows
    if on == "anonymized":
        rows = attacker_data.pick(keys[0], labels, share, attribute)
        windows, labels = run.anonymize(keys[1], windows[rows]), labels[rows]
    return datasets_spec.standardise(data.spec, windows), labels
