"""Fine-tuning of a model for one wearer on data that stay on the wearer's machine."""

import dataclasses
import os
import pathlib

import jax
import numpy as np

from jaxanon.core import checks
from jaxanon.datasets import Windows, by_client
from jaxanon.datasets.custom import read_arrays
from jaxanon.methods.common.personalise import personalise


def personalised(run, path: str | os.PathLike, *, num_rounds: int = 80, seed: int = 0):
    """Fine-tunes a run on one wearer's few labelled windows.

    Args:
      run: result of ``train`` or ``open_run`` with a federated anonymizer such as
        ``blinder``.
      path: ``.npz`` with ``windows``, ``float[N, time, channels]``, and ``int[N]`` for
        the public and each private attribute. Channels and classes are those of the
        run's data.

      num_rounds: number of local rounds, at least 1 (paper: 80).
      seed: random seed.

    Returns:
      ``Run`` without a folder.

    Raises:
      FileNotFoundError: if the file does not exist.
      ValueError: if the file is damaged, an attribute is missing, labels are out of
        range, windows have another shape, or the method is not federated.

    Example:
      >>> import tempfile, jaxanon as ja
      >>> data = ja.load("smartwatch", preset="acc10")
      >>> small = {"hidden_sizes": (8,), "latent_dim": 2, "samples_per_class": 4}
      >>> small |= {"shadows": False, "second_order": False}
      >>> quick = {"discriminator_steps": 0, "guided": False}
      >>> method = ja.methods.blinder(data.spec, **small, **quick)
      >>> run = ja.train(method, data, epochs=1, seed=0, progress=False)
      >>> rows = slice(None, None, 20)
      >>> mine = {name: data.test.labels[name][rows] for name in ("exercise", "side")}
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     np.savez(f"{folder}/mine.npz", windows=data.test.windows[rows], **mine)
      ...     tuned = personalised(run, f"{folder}/mine.npz", num_rounds=2)
      >>> int(tuned.state.round)
      2

    References:
      Yang and Ardakanian, Blinder, ACM TOSN 2023, section 7.9.
    """
    spec = run.spec
    if run.method.federation is None:
        raise ValueError(
            f"{run.method.name} trains centrally and cannot be fine-tuned on a "
            "wearer's windows; train a federated anonymizer such as blinder."
        )
    arrays = read_arrays(pathlib.Path(path))
    names = (spec.public, *spec.private)
    missing = [name for name in ("windows", *names) if name not in arrays]
    if missing:
        raise ValueError(
            f"{str(path)!r} lacks {missing}; write it with numpy.savez(path, "
            f"windows=..., {'=..., '.join(names)}=...)."
        )
    windows = checks.windows(arrays["windows"], spec.time, spec.channels)
    for name in names:
        checks.labels(name, arrays[name], len(windows), spec.classes[name])
    labels = {name: np.asarray(arrays[name], np.int32) for name in names}
    labels["subject"] = np.zeros(len(windows), np.int32)
    clients = by_client(Windows(windows, labels))
    key = jax.random.key(seed)
    state, _ = personalise(run.method, key, run.state, clients, num_rounds=num_rounds)
    return dataclasses.replace(run, state=state, folder=None)
