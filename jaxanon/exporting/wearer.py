"""A model for one wearer, of windows that never leave the wearer's own machine."""

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
    """The run, trained on alone on one wearer's own few labelled windows.

    Args:
      run: of ``train`` or ``open_run``, of a federated anonymizer such as ``blinder``.
      path: ``.npz`` with ``windows`` (``float[N, time, channels]``, as the run has
        them) and ``int[N]`` for the public and each private attribute, classes as in
        the run's data.
      num_rounds: local rounds, at least 1 (paper: 80).
      seed: of what training draws.

    Returns:
      ``Run``, in no folder.

    Raises:
      FileNotFoundError: if there is no such file.
      ValueError: for a damaged file, a missing attribute, labels out of range, windows
        that do not fit, or a method that is not federated.

    Example:
      >>> import tempfile, jaxanon as ja
      >>> data = ja.load("smartwatch", preset="acc10")
      >>> small = {"hidden": (8,), "latent": 2, "per_class": 4, "shadows": False}
      >>> quick = {"second_order": False, "discriminator_steps": 0, "guided": False}
      >>> method = ja.methods.blinder(data.spec, **small, **quick)
      >>> run = ja.train(method, data, epochs=1, seed=0, progress=False)
      >>> rows = slice(None, None, 20)
      >>> own = {name: data.test.labels[name][rows] for name in ("exercise", "side")}
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     np.savez(f"{folder}/own.npz", windows=data.test.windows[rows], **own)
      ...     mine = personalised(run, f"{folder}/own.npz", num_rounds=2)
      >>> int(mine.state.round)
      2

    References:
      Yang and Ardakanian, Blinder, ACM TOSN 2023, section 7.9.
    """
    spec = run.spec
    if run.method.federation is None:
        raise ValueError(
            f"{run.method.name} trains in one place and is not taken further by a "
            "wearer's own windows; train a federated anonymizer such as blinder."
        )
    arrays = read_arrays(pathlib.Path(path))
    names = (spec.public, *spec.private)
    lacking = [name for name in ("windows", *names) if name not in arrays]
    if lacking:
        raise ValueError(
            f"{str(path)!r} lacks {lacking}; write it with numpy.savez(path, "
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
