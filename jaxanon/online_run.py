"""DySan's models, one of which is chosen for each window, as an anonymizer on trial."""

import dataclasses
import functools
import pathlib
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon import online, training
from jaxanon.datasets import Data, Spec
from jaxanon.methods import Method
from jaxanon.run import Run

NAMES = ("dysan", "dysan_gen", "olympus", "dysan_msda")
ROOT = 0x6F6E6C69  # "onli"; what an evaluation's key is folded with.
CHUNK = 512  # Windows that all models try at a time.


@dataclasses.dataclass(frozen=True)
class OnlineRun:
    """Several trained models, and which of them rewrites each window of a data set.

    A class, for ``evaluate`` asks it what it asks a ``Run``.
    """

    method: Method
    spec: Spec
    runs: tuple[Run, ...]
    chosen: dict[bytes, int]  # number of a run, by a window's bytes
    folder: pathlib.Path | None = None

    def choices(self, key, windows) -> np.ndarray:
        """Numbers of the models that rewrite windows, ``int[N]``.

        Args:
          key: not used: what was chosen stays.
          windows: ``float[N, time, channels]`` of the data that models were chosen for.

        Raises:
          ValueError: for other windows.
        """
        del key
        found = [self.chosen.get(_bytes(window)) for window in np.asarray(windows)]
        if others := sum(number is None for number in found):
            raise ValueError(
                f"windows must be of the data that models were chosen for, got "
                f"{others} others; choose for those by choose_online."
            )
        return np.array(found, int)

    def anonymize(self, key, windows) -> np.ndarray:
        """Each window by its own model; as ``Run.anonymize``, of such windows.

        Args:
          key: typed PRNG key.
          windows: as ``choices`` takes them.

        Returns:
          ``float32[N, time, channels]`` in the same units.

        Raises:
          ValueError: for other windows.
        """
        windows = np.asarray(windows, np.float32)
        choices = self.choices(key, windows)
        safe = np.empty_like(windows)
        for number in np.unique(choices):
            own = choices == number
            one = jax.random.fold_in(key, int(number))
            safe[own] = self.runs[number].anonymize(one, windows[own])
        return safe


def choose_online(
    key,
    runs: Sequence[Run],
    data: Data,
    *,
    folder: pathlib.Path | None = None,
    **weights: Any,
) -> OnlineRun:
    """Puts DySan's online phase on trial: models chosen as all of ``data`` comes in.

    A forest that learned from the training windows tells the activity; every model is
    tried on each run of five windows of a wearer, who knows his private classes, and
    the best of one run rewrites the next. A wearer's first run has the model that did
    best on the training windows. So nothing that is then said of a window has had a
    part in choosing for it. Of equal windows the last one's model counts.

    Args:
      key: typed PRNG key.
      runs: of one architecture of ``dysan`` or what it re-implements.
      data: whose windows are rewritten, training windows and test windows; each
        subject's in order of time.
      folder: where an evaluation writes its report; None: nowhere.
      **weights: of ``online.scores``, ``utility`` and ``privacy``.

    Returns:
      ``OnlineRun``, which ``evaluate`` takes, its attack ``fingerprint`` too.

    Raises:
      ValueError: without runs, for runs of another method or of several architectures,
        or trained for other windows.

    Example:
      >>> import jaxanon as ja
      >>> data = ja.load("smartwatch", private=["side"])
      >>> few = lambda side: jax.tree.map(lambda rows: rows[::200], side)
      >>> data = data._replace(train=few(data.train), test=few(data.test))
      >>> small = {"filters": (2, 2), "hidden": (4, 4), "predictor_filters": (4,)}
      >>> small |= {"discriminator_filters": 2, "judge_hidden": 4, "batch": 8}
      >>> found = ja.sweep(
      ...     "dysan", data, grid={"alpha": [0.2, 0.5]}, epochs=1, progress=False,
      ...     **small)
      >>> both = choose_online(jax.random.key(0), found.runs, data)
      >>> both.anonymize(jax.random.key(1), data.test.windows).shape
      (18, 100, 6)

    References:
      Boutet et al., DySan, AsiaCCS 2021, section 3.3.
    """
    _check(runs, data.spec)
    label_key, *keys = jax.random.split(key, 3)
    spec, public = data.spec, data.spec.public
    read = online.labeller(
        label_key, spec, data.train.windows, data.train.labels[public]
    )
    trier = online.trier(runs[0].method, [run.state for run in runs])
    told = {
        "num_classes": [spec.num_classes(name) for name in spec.private],
        **weights,
    }
    prior, chosen = None, {}
    for one, part in zip(keys, (data.train, data.test), strict=True):
        known = read(part.windows)
        own = np.stack([part.labels[name] for name in spec.private])
        tried = _tried(one, trier, part.windows, known)
        score = functools.partial(
            online.scores, tried, public=known, private=own, **told
        )
        if prior is None:
            prior = score(np.zeros(len(known), int))[:, 0]
        groups, subject = online.runs(part.labels["subject"]), part.labels["subject"]
        numbers = online.choose(score(groups), groups, subject, prior)
        chosen |= dict(zip(map(_bytes, part.windows), numbers.tolist(), strict=True))
    method = runs[0].method
    about = {"models": [run.config.get("settings", {}) for run in runs], **weights}
    method = method._replace(name=f"{method.name}, online", config=about)
    return OnlineRun(method, spec, tuple(runs), chosen, folder)


def members(folder) -> list[Run]:
    """The runs of a sweep that an online choice may be among.

    Those that are there and did not diverge; of a sweep over splits, those that were
    trained on the same data as the first.

    Raises:
      ValueError: if there are none.
    """
    paths = sorted(pathlib.Path(folder).glob("member-*"))
    begun = [path for path in paths if (path / "checkpoints").is_dir()]
    found = [training.open_run(path) for path in begun]
    finite = lambda run: all(
        np.isfinite(leaf).all() for leaf in jax.tree.leaves(run.state.params)
    )
    found = [run for run in found if finite(run)]
    if not found:
        raise ValueError(
            f"{folder} has no member that was trained and did not diverge; go on with "
            "the sweep by --resume."
        )
    return [run for run in found if run.config["data"] == found[0].config["data"]]


def _check(runs, spec):
    if not runs:
        raise ValueError("runs must hold at least one trained model, got none.")
    names = sorted({run.method.name for run in runs})
    if not set(names) <= set(NAMES):
        raise ValueError(
            f"models are chosen among those of {', '.join(NAMES)}, got {names}; "
            "evaluate the members one by one."
        )
    shapes = {str(jax.tree.map(jnp.shape, dict(run.state.params))) for run in runs}
    if len(names) > 1 or len(shapes) > 1:
        raise ValueError(
            f"runs must be of one architecture, got {len(shapes)} of {names}; choose "
            "among those that are alike."
        )
    if other := [run for run in runs if run.spec != spec]:
        raise ValueError(
            f"runs must be trained for the windows of data, {spec.name!r} "
            f"({spec.preset}), got one for {other[0].spec.name!r} "
            f"({other[0].spec.preset})."
        )


def _tried(key, trier, windows, known) -> online.Tried:
    """What all models make of windows, but for the windows themselves."""
    parts = []
    for number, start in enumerate(range(0, len(windows), CHUNK)):
        rows = np.arange(start, start + CHUNK) % len(windows)  # One shape, one program.
        made = trier(jax.random.fold_in(key, number), windows[rows], known[rows])
        count = min(CHUNK, len(windows) - start)
        parts.append((made.public[:, :count], made.private[..., :count]))
    public, private = (
        np.concatenate(part, axis=-1) for part in zip(*parts, strict=True)
    )
    return online.Tried(np.empty(0), public, private)


def _bytes(window) -> bytes:
    return np.ascontiguousarray(window, np.float32).tobytes()
