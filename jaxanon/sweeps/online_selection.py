"""DySan's models, one of which is chosen for each window, as an anonymizer on trial."""

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
    chosen: dict[bytes, int]  # number of a run, by a window's digest
    folder: pathlib.Path | None = None

    @single
    def choices(self, key, windows) -> np.ndarray:
        """Numbers of the models that rewrite windows, ``int[N]``.

        Args:
          key: not used: what was chosen stays.
          windows: ``float[N, time, channels]`` of the data that models were chosen for.

        Raises:
          ValueError: for other windows.
        """
        del key
        found = [self.chosen.get(_digest(window)) for window in np.asarray(windows)]
        if others := sum(number is None for number in found):
            raise ValueError(
                f"windows must be of the data that models were chosen for, got "
                f"{others} others; choose for those by choose_online."
            )
        return np.array(found, int)

    @single
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
    """Puts DySan's online phase on trial: models chosen as all of ``data`` comes in.

    A forest that learned from the training windows tells the activity; every model is
    tried on each run of five windows of a wearer, who knows his private classes, and
    the best of one run rewrites the next. A wearer's first run has the model that did
    best on the training windows. So no test window has had a part in choosing for
    itself; where windows overlap, one that shares samples with it may have had. Of
    equal windows the first one's model counts, and a test window's before a training
    window's.

    Args:
      key: typed PRNG key.
      runs: of ``dysan`` or what it re-implements, alike but for hyper-parameters.
      data: whose windows are rewritten, training windows and test windows; each
        subject's in order of time.
      utility, privacy: weights of ``online_selection.scores``, finite and >= 0.
      folder: where an evaluation writes its report; None: nowhere.
      progress: called as ``progress(done, total, what)`` before each piece of work.

    Returns:
      ``OnlineRun``, which ``evaluate`` takes, its attack ``fingerprint`` too.

    Raises:
      ValueError: without runs, for runs of another method, of several settings that are
        compiled in, or trained for other windows; for weights out of range.

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
      (18, 128, 6)

    References:
      Boutet et al., DySan, AsiaCCS 2021, section 3.3.
    """
    finite(zero=True, utility=utility, privacy=privacy)
    runs = _alike(runs, data.spec)
    label_key, *keys = jax.random.split(key, 3)
    spec, public = data.spec, data.spec.public
    read = online_selection.labeller(
        label_key, spec, data.train.windows, data.train.labels[public]
    )
    method: Any = runs[0].method
    trier = online_selection.trier(method, [run.state for run in runs])
    classes = [spec.num_classes(name) for name in spec.private]
    prior, chosen = None, {}
    for number, name in enumerate(("train", "test")):
        if progress:
            progress(number, 2, f"{len(runs)} models are tried on {name} windows")
        part = getattr(data, name)
        known = read(part.windows)
        own = np.stack([part.labels[each] for each in spec.private])
        tried = _tried(keys[number], trier, part.windows, known)
        score = functools.partial(
            online_selection.scores,
            tried,
            public=known,
            private=own,
            num_classes=classes,
            utility=utility,
            privacy=privacy,
        )
        if prior is None:
            prior = score(np.zeros(len(known), int))[:, 0]
        groups, subject = (
            online_selection.runs(part.labels["subject"]),
            part.labels["subject"],
        )
        models = online_selection.choose(score(groups), groups, subject, prior).tolist()
        # Backwards, so that of equal windows the first one stays.
        pairs = zip(part.windows[::-1], models[::-1], strict=True)
        chosen |= {_digest(window): model for window, model in pairs}
    told = lambda run: {name: float(x) for name, x in run.state.hyper.items()}
    about = {
        "models": [told(run) for run in runs],
        "utility": utility,
        "privacy": privacy,
    }
    method = method._replace(name=f"{method.name}, online", config=about)
    return OnlineRun(method, spec, tuple(runs), chosen, folder)


def members(folder) -> tuple[list[Run], int]:
    """The runs of a sweep that an online choice is among, and how many others it has.

    One of each setting, by the first seed on the first split, that was trained to the
    end and did not diverge.

    Raises:
      ValueError: if the sweep is of another method, was not finished, or has none.
    """
    told = sweeps_folder.read(folder)
    _check_names({told.get("method")})
    if "members" not in told:
        raise ValueError(f"{folder} holds an unfinished sweep; go on by --resume.")
    found = []
    for index, member in enumerate(told["members"]):
        first = member["seed"] == member["split"] == 0
        if first and member["stopped"] is None and member["losses"]:
            run = run_folder.open_run(sweeps_folder.member_folder(folder, index))
            if state_is_finite(run.state):
                found.append(run)
    if not found:
        raise ValueError(f"{folder} has no member that did not diverge; sweep anew.")
    return found, len(told["members"]) - len(found)


def _check_names(names):
    if not names <= set(NAMES):
        raise ValueError(
            f"models are chosen among those of {', '.join(NAMES)}, got "
            f"{sorted(map(str, names))}; evaluate members one by one."
        )


def _alike(runs, spec) -> list[Run]:
    """Runs of one method, that their programs compile once, with states on the host.

    Raises:
      ValueError: as ``choose_online``, of its runs.
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
                f"runs must differ in {sorted(hyper)} alone, got several of "
                f"{sorted(differ - set(hyper))}; choose among those that are alike."
            )
    host = lambda state: jax.tree.map(np.asarray, state)
    return [
        dataclasses.replace(run, method=method, state=host(run.state)) for run in runs
    ]


def _tried(key, trier, windows, known) -> online_selection.Tried:
    """What all models make of windows, but for the windows themselves."""
    parts = []
    for number, start in enumerate(range(0, len(windows), CHUNK)):
        rows = np.arange(start, start + CHUNK) % len(windows)  # One shape, one program.
        made = trier(jax.random.fold_in(key, number), windows[rows], known[rows])
        count = min(CHUNK, len(windows) - start)
        parts.append((made.public[:, :count], made.private[..., :count]))
    both = zip(*parts, strict=True)
    public, private = (np.concatenate(part, axis=-1) for part in both)
    return online_selection.Tried(np.empty(0), public, private)


def _digest(window) -> bytes:
    whole = np.asarray(window, np.float32).tobytes()
    return hashlib.blake2b(whole, digest_size=16).digest()
