"""Folders with several exported models: one is chosen by an option, or by windows."""

import json
import math
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxanon.edge import forest, model

FORMAT = 1
FILE = "manifest.json"
HOW = "jaxanon export"


class Choice:
    """DySan's choice of a model for each window, from earlier windows alone.

    All models anonymize each window. After ``length`` windows, the model with the best
    score on them rewrites the next ones. The score weighs how well the public class is
    preserved, and how near to chance level the private classes are inferred. A forest
    predicts the public class of raw windows; the wearer's private classes are given.
    The choice depends on them, and leaks them to an attacker who can distinguish the
    models.

    Args:
      models: candidates, functions like ``model.Candidate`` with its attributes.
      labels: function from ``float[N, time, channels]`` to public classes ``int[N]``.
      private: the wearer's private classes, ``int[A]``.
      num_classes: number of classes of each private attribute.
      prior: ``float[K]``, scores of the models on calibration windows. The best model
        rewrites the first windows. The prior also breaks ties.
      utility, privacy: weights of the score.
      length: windows of a score.
      card: model card.

    Attributes:
      signature: signature of the windows.
      epsilon: None, because the choice has no guarantee.
      chosen: index of the model for the next window.

    References:
      Boutet et al., DySan, AsiaCCS 2021, section 3.3.
    """

    epsilon = None

    def __init__(
        self,
        models: Sequence,
        labels,
        private: Sequence[int],
        num_classes: Sequence[int],
        prior: Sequence[float],
        *,
        utility: float = 0.1,
        privacy: float = 0.9,
        length: int = 5,
        card: str = "",
    ):
        self.signature, self.card = models[0].signature, card
        self._models, self._labels = models, labels
        self._private, self._num_classes = np.array(private), num_classes
        self._weights, self._length = (utility, privacy), length
        self._order = np.argsort(-np.asarray(prior), kind="stable")
        self.chosen = int(self._order[0])
        self._right: list[np.ndarray] = []  # bool[K, 1 + A] of each window

    def anonymize(self, window, given: Sequence[Mapping] | None = None) -> np.ndarray:
        """Anonymizes the next window of the wearer.

        Args:
          window: ``float[time, channels]`` in the signature's units.
          given: draws of each model by name, to repeat an experiment.

        Returns:
          ``float32[time, channels]``, in the same units.
        """
        window = np.asarray(window, np.float32)
        public = int(self._labels(window[None])[0])
        found = [
            each(window, public, None if given is None else given[number])
            for number, each in enumerate(self._models)
        ]
        safe = found[self.chosen][0]
        right = [
            [own == public, *(others == self._private)] for _, own, others in found
        ]
        self._right.append(np.array(right))
        if len(self._right) == self._length:
            self._choose()
        return safe

    def _choose(self):
        mean = np.mean(self._right, axis=0)  # float[K, 1 + A]
        chance = 1 / np.array(self._num_classes)
        hidden = np.mean(1 - np.abs(chance - mean[:, 1:]), axis=1)
        utility, privacy = self._weights
        scores = np.round(utility * mean[:, 0] + privacy * hidden, 9)
        self.chosen = int(self._order[np.argmax(scores[self._order])])
        self._right = []

    def stop(self) -> None:
        """Ends the current run, which raises."""
        for each in self._models:
            each.stop()


def load_folder(
    folder: str | os.PathLike,
    digest: str | None = None,
    *,
    member: int | None = None,
    settings: Mapping[str, str] | None = None,
    min_utility: float | None = None,
    wearer: Mapping[str, str] | None = None,
):
    """Loads a folder that ``jaxanon export`` wrote from a sweep.

    Args:
      folder: path of the folder.
      digest: SHA-256 of its ``manifest.json``. None reads it from the folder.
      member: number of the model, as in its file name.
      settings: values of a sweep's settings that select the model.
      min_utility: smallest accuracy of the public attribute; the most private of these
        models is selected.
      wearer: class of each private attribute of the wearer, for a folder whose models
        are chosen by windows.

    Returns:
      ``Model`` or ``Choice``.

    Raises:
      FileNotFoundError: if a file is missing.
      ValueError: if a file is damaged, or the options select no model or several.

    Example:
      >>> load_folder("nowhere")
      Traceback (most recent call last):
      ...
      FileNotFoundError: model nowhere/manifest.json does not exist; create it with ...
    """
    folder = pathlib.Path(folder)
    path = folder / FILE
    manifest = _manifest(path, model.read_checked(path, digest, HOW))
    if manifest["selection"] == "online":
        if member is not None or settings or min_utility is not None:
            raise ValueError(
                f"{folder} chooses its models by windows; omit --member, --setting and "
                "--min-utility."
            )
        return _choice(folder, manifest, wearer or {})
    if wearer:
        raise ValueError(
            "--wearer applies to folders whose models are chosen by windows, not to "
            f"{folder}; omit it."
        )
    entry = _selected(folder, manifest["models"], member, settings or {}, min_utility)
    return model.load(folder / entry["file"], entry["sha256"])


def _manifest(path, data) -> dict:
    """Returns the content of a manifest after checking it."""
    try:
        manifest = json.loads(data)
        version = int(manifest["format"])
        if version > FORMAT:
            raise ValueError(
                f"it has format {version}, but this version of jaxanon reads {FORMAT}; "
                "run pip install --upgrade jaxanon"
            )
        if manifest["selection"] not in ("online", "member") or not manifest["models"]:
            raise ValueError("it names no models")
        listed = [*manifest["models"]]
        if manifest["selection"] == "online":
            listed.append(manifest["choice"]["forest"])
        for entry in listed:
            name = entry["file"]
            if pathlib.PurePath(name).name != name or not isinstance(
                entry["sha256"], str
            ):
                raise ValueError(f"it names the file {name!r}")
            if not isinstance(entry.get("settings", {}), dict):
                raise ValueError(f"settings of {name!r} must be a table")
    except (KeyError, RecursionError, TypeError, ValueError) as error:
        why = error if type(error) is ValueError else f"damaged ({error!r})"
        raise ValueError(f"{path}: {why}; export the folder again.") from None
    return manifest


def _selected(folder, models, member, settings, min_utility) -> dict:
    """Returns the one model that the options select."""
    found = list(models)
    if member is not None:
        found = [each for each in found if each.get("member") == member]
    for name, text in settings.items():
        found = [
            each for each in found if _equal(each.get("settings", {}).get(name), text)
        ]
    if min_utility is not None:
        useful = [x for x in found if (x.get("utility") or -math.inf) >= min_utility]
        found = sorted(useful, key=_leak)[:1]
    if len(found) == 1:
        return found[0]
    shown = "; ".join(map(_described, found or models))
    what = "one model" if found else "a model of the folder"
    raise ValueError(
        f"--member, --setting and --min-utility must select {what} in {folder}, got "
        f"{len(found)}; choose among: {shown}."
    )


def _leak(entry):
    leak = entry.get("leak")
    return math.inf if leak is None else leak


def _equal(value, text):
    try:
        return float(value) == float(text)
    except (TypeError, ValueError):
        return str(value) == text


def _described(entry):
    parts = [f"member {entry.get('member')}"]
    parts += [f"{name}={value}" for name, value in entry.get("settings", {}).items()]
    for name in ("utility", "leak"):
        if entry.get(name) is not None:
            parts.append(f"{name} {100 * entry[name]:.1f} %")
    return ", ".join(parts)


def _choice(folder, manifest, wearer) -> Choice:
    try:
        about: Any = manifest["choice"]
        names = {each["name"]: list(each["classes"]) for each in about["private"]}
        prior = [float(x) for x in about["prior"]]
        weights = {name: float(about[name]) for name in ("utility", "privacy")}
        length = int(about["length"])
        if len(prior) != len(manifest["models"]) or length < 1 or not names:
            raise ValueError("prior, length or private attributes do not fit")
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{folder / FILE} does not describe the choice ({error!r}); export the "
            "folder again."
        ) from None
    wanted = ", ".join(f"{name}={'|'.join(names[name])}" for name in names)
    if set(wearer) != set(names) or any(wearer[n] not in names[n] for n in names):
        raise ValueError(
            "--wearer must give the wearer's class of each private attribute, "
            f"{wanted}, got other names or classes for {sorted(wearer)}."
        )
    path = folder / about["forest"]["file"]
    labels = forest.load(path, model.read_checked(path, about["forest"]["sha256"], HOW))
    models = [
        model.load_candidate(folder / each["file"], each["sha256"], len(names))
        for each in manifest["models"]
    ]
    if any(each.signature != models[0].signature for each in models):
        raise ValueError(
            f"the models of {folder} must have one input; export it again."
        )
    return Choice(
        models,
        labels,
        [names[name].index(wearer[name]) for name in names],
        [len(classes) for classes in names.values()],
        prior,
        length=length,
        card=str(manifest.get("card", "")),
        **weights,
    )
