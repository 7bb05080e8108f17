"""Export of attackers as a file, for the dashboard."""

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

    ``jaxanon dashboard`` shows their inferences from raw and anonymized windows. One
    classifier per attribute trains on raw windows. A second attacker per private
    attribute trains on the anonymizer's output for a share of the training windows.

    Args:
      run: result of ``train`` or ``open_run`` with a method that rewrites windows.
      data: the run's data from ``jaxanon.load``.
      path: path of the file, which must end in ``.onnx``. Its digest goes to
        ``<path>.sha256``.
      share: fraction of each class's training windows that the second attackers know,
        in (0, 1].
      seed: random seed.
      overwrite: whether to replace existing files.
      progress: callback ``progress(done, total, line)`` before each training.

    Returns:
      The file's path.

    Raises:
      FileExistsError: if the file exists and ``overwrite`` is False.
      ImportError: if the extra ``export`` is not installed.
      ValueError: if the share leaves a class fewer than two windows; see also
        ``models.fit.fit_classifier``.

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
    classifiers = []
    for number, (attribute, _, on) in enumerate(trainings):
        if progress is not None:
            line = f"learning {attribute} from {on} windows"
            progress(number, len(trainings), line)
        keys = jax.random.split(jax.random.fold_in(root, number), 3)
        windows, labels = _training_set(keys, run, data, attribute, on, share)
        classes = spec.num_classes(attribute)
        classifiers.append(fit_classifier(keys[2], windows, labels, classes))
    outputs = [f"{role} {attribute}, {on}" for attribute, role, on in trainings]
    mean, std = (np.array([[x]], np.float32) for x in (spec.mean, spec.std))

    def infer(windows):
        standardized = (windows - mean) / std
        logits = [
            one.net.apply(one.params, standardized)[:, : one.num_classes]
            for one in classifiers
        ]
        return tuple(jax.nn.softmax(each, axis=-1) for each in logits)

    shape = jax.ShapeDtypeStruct((1, spec.time, len(spec.channels)), np.float32)
    model = onnx_graph.to_onnx(infer, {"windows": shape}, outputs, "attackers")
    inferences = [
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
        "inferences": inferences,
    }
    onnx_graph.add_metadata(model, json.dumps(facts))
    files.write(path, model.SerializeToString())
    return path


def _training_set(keys, run, data, attribute, on, share):
    """Returns an attacker's standardized windows and their classes."""
    train = data.train
    labels = np.asarray(train.labels[attribute])
    windows = train.windows
    if on == "anonymized":
        rows = attacker_data.pick(keys[0], labels, share, attribute)
        windows, labels = run.anonymize(keys[1], windows[rows]), labels[rows]
    return datasets_spec.standardise(data.spec, windows), labels
