"""DySan's online selection of a model for each window, for evaluation."""

import dataclasses
import functools
import hashlib
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from jaxanon.core.method import Method
from jaxanon.core.programs import single, state_is_finite
from jaxanon.core.run import Run
from jaxanon.datasets import Data, Spec
from jaxanon.kernels.bounds import finite
from jaxanon.methods.dysan import online_selection
from jaxanon.sweeps import folder as sweeps_folder
from jaxanon.training import run_folder

NAMES = ("dysan", "dysan_gen", "olympus", "dysan_msda")

ROOT = 0x6F6E6C69  # "onli"; folded into the key of an evaluation.


@dataclasses.dataclass(frozen=True)
class OnlineRun:
    """Trained models with a selected model for each window of a data set.

    It has the interface of ``Run`` that ``evaluate`` needs.
    """

    method: Method
    spec: Spec
    runs: tuple[Run, ...]
    chosen: dict[bytes, int]  # index of a run, by digest of a window
    folder: pathlib.Path | None = None

    @single
    def choices(self, key, windows) -> np.ndarray:
        """Returns the indices of the models for windows, ``int[N]``.

        Args:
          key: ignored; the selection is fixed.
          windows: ``float[N, time, channels]`` of the data given to ``choose_online``.

        Raises:
          ValueError: for other windows.
        """
        del key
        indices = [self.chosen.get(_digest(window)) for window in np.asarray(windows)]
        if others := sum(index is None for index in indices):
            raise ValueError(
                f"windows must be of the data that models were chosen for, got "
                f"{others} others; call choose_online with their data."
            )
        return np.array(indices, int)

    @single
    def anonymize(self, key, windows) -> np.ndarray:
        """Anonymizes each window by its selected model.

        Args:
          key: typed PRNG key.
          windows: ``float[N, time, channels]`` of the data given to ``choose_online``.

        Returns:
          ``float32[N, time, channels]`` in the same units.

        Raises:
          ValueError: for other windows.
        """
        windows = np.asarray(windows, np.float32)
        choices = self.choices(key, windows)
        safe = np.empty_like(windows)
        for index in np.unique(choices):
            rows = choices == index
            run_key = jax.random.fold_in(key, int(index))
            safe[rows] = self.runs[index].anonymize(run_key, windows[rows])
        return safe


@single
def choose_online(
    key,
    runs: Sequence[Run],
    data: Data,
    *,
    utility: float = 0.1,
    privacy: float = 0.9,
    folder: pathlib.Path | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> OnlineRun:
    """Simulates DySan's online phase, which selects models while data arrives.

    A random forest, trained on training windows, predicts the activity. All models are
    scored on each block of five windows of a wearer, who knows the private classes, and
    the best model of one block rewrites the next. A wearer's first block uses the best
    model on the training windows. A test window therefore has no influence on its own
    model, although an overlapping window may have.

    Equal windows share the model of the first one; test windows take precedence over
    training windows.

    Args:
      key: typed PRNG key.
      runs: runs of ``dysan`` or its baselines that differ only in hyper-parameters.
      data: training and test windows to rewrite, in order of time for each subject.
      utility: weight of utility in ``online_selection.scores``, finite and >= 0.
      privacy: weight of privacy in ``online_selection.scores``, finite and >= 0.
      folder: folder for the report of an evaluation, or None.
      progress: function called as ``progress(done, total, what)`` before each step.

    Returns:
      ``OnlineRun`` for ``evaluate``, including its attack ``fingerprint``.

    Raises:
      ValueError: without runs, for runs of another method, with different compiled
        settings or trained for other windows, or if a weight is out of range.

    Example:
      >>> import jaxanon as ja
      >>> data = ja.load("smartwatch", private=["side"])
      >>> few = lambda side: jax.tree.map(lambda rows: rows[::200], side)
      >>> data = data._replace(train=few(data.train), test=few(data.test))
      >>> small = {"filters": (2, 2), "hidden_sizes": (4, 4), "predictor_filters": (4,)}
      >>> small |= {"discriminator_filters": 2, "classifier_hidden_sizes": 4}
      >>> small |= {"batch_size": 8}
      >>> result = ja.sweep(
      ...     "dysan", data, grid={"alpha": [0.2, 0.5]}, epochs=1, progress=False,
      ...     **small)
      >>> online = choose_online(jax.random.key(0), result.runs, data)
      >>> online.anonymize(jax.random.key(1), data.test.windows).shape
      (18, 128, 6)

    References:
      Boutet et al., DySan, AsiaCCS 2021, section 3.3.
    """
    finite(zero=True, utility=utility, privacy=privacy)
    runs = _check_runs(runs, data.spec)
    label_key, *keys = jax.random.split(key, 3)
    spec, public = data.spec, data.spec.public
    predict = online_selection.labeller(
        label_key, spec, data.train.windows, data.train.labels[public]
    )
    method: Any = runs[0].method
    trier = online_selection.trier(method, [run.state for run in runs])
    classes = [spec.num_classes(name) for name in spec.private]
    prior, chosen = None, {}
    for number, name in enumerate(("train", "test")):
        if progress:
            progress(number, 2, f"scoring {len(runs)} models on {name} windows")
        part = getattr(data, name)
        public_classes = predict(part.windows)
        private_classes = np.stack([part.labels[each] for each in spec.private])
        tried = online_selection.try_models(
            keys[number], trier, part.windows, public_classes
        )
        score = functools.partial(
            online_selection.scores,
            tried,
            public=public_classes,
            private=private_classes,
            num_classes=classes,
            utility=utility,
            privacy=privacy,
        )
        if prior is None:
            prior = score(np.zeros(len(public_classes), int))[:, 0]
        subject = part.labels["subject"]
        groups = online_selection.runs(subject)
        models = online_selection.choose(score(groups), groups, subject, prior).tolist()
        # In reverse order, so that the first of equal windows counts.
        pairs = zip(part.windows[::-1], models[::-1], strict=True)
        chosen |= {_digest(window): model for window, model in pairs}
    hyper = lambda run: {name: float(x) for name, x in run.state.hyper.items()}
    config = {
        "models": [hyper(run) for run in runs],
        "utility": utility,
        "privacy": privacy,
    }
    method = method._replace(name=f"{method.name}, online", config=config)
    return OnlineRun(method, spec, tuple(runs), chosen, folder)


def members(folder) -> tuple[list[Run], int]:
    """Returns the runs of a sweep for online selection and the number of other members.

    These are the completely trained, finite runs with the first seed on the first
    split, one per setting.

    Raises:
      ValueError: if the sweep is of another method, unfinished, or without such runs.
    """
    content = sweeps_folder.read(folder)
    _check_names({content.get("method")})
    if "members" not in content:
        raise ValueError(f"{folder} holds an unfinished sweep; continue with --resume.")
    selected = []
    for index, member in enumerate(content["members"]):
        first = member["seed"] == member["split"] == 0
        if first and member["stopped"] is None and member["losses"]:
            run = run_folder.open_run(sweeps_folder.member_folder(folder, index))
            if state_is_finite(run.state):
                selected.append(run)
    if not selected:
        raise ValueError(
            f"{folder} must hold a completely trained, finite run with seed 0 on "
            "split 0, got none; sweep with other settings."
        )
    return selected, len(content["members"]) - len(selected)


def _check_names(names):
    if not names <= set(NAMES):
        raise ValueError(
            f"runs must be of {', '.join(NAMES)} for online selection, got "
            f"{sorted(map(str, names))}; evaluate members one by one."
        )


def _check_runs(runs, spec) -> list[Run]:
    """Runs with one shared method, so that it compiles once, and states on the host.

    Raises:
      ValueError: for the errors of ``choose_online`` about runs.
    """
    if not runs:
        raise ValueError("runs must hold at least one trained model, got none.")
    _check_names({run.method.name for run in runs})
    method, hyper = runs[0].method, runs[0].state.hyper
    for run in runs:
        if run.spec != spec:
            raise ValueError(
                f"runs must be trained for the windows of data, {spec.name!r} "
                f"({spec.preset}), got one for {run.spec.name!r} ({run.spec.preset})."
            )
        settings, others = (
            {"method": each.name, **dataclasses.asdict(each.config)}
            for each in (method, run.method)
        )
        differ = {name for name in settings if settings[name] != others.get(name)}
        if differ - set(hyper) or settings.keys() != others.keys():
            raise ValueError(
                f"runs must differ only in {sorted(hyper)}, got different "
                f"{sorted(differ - set(hyper))}; choose among runs with equal settings."
            )
    host = lambda state: jax.tree.map(np.asarray, state)
    return [
        dataclasses.replace(run, method=method, state=host(run.state)) for run in runs
    ]


def _digest(window) -> bytes:
    content = np.asarray(window, np.float32).tobytes()
    return hashlib.blake2b(content, digest_size=16).digest()
