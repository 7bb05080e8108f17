"""The folder of a run: settings, and checkpoints that survive a kill."""

import dataclasses
import json
import pathlib
from typing import Any

import jax

from jaxanon import __version__
from jaxanon.core import aliases, registry
from jaxanon.core.method import Method
from jaxanon.core.run import Run
from jaxanon.datasets import writing
from jaxanon.datasets.sources import naming
from jaxanon.training import checkpoint, metrics_log

FIELDS = dict.fromkeys(("version", "method"), str) | {"architecture": list}

FIELDS |= dict.fromkeys(("settings", "spec", "data"), dict) | {"seed": int}


def refuse_taken(folder, *, resume: bool) -> None:
    """Refuses a folder that ``claim`` would refuse, whatever its run's settings are.

    Raises:
      FileExistsError: if it holds a run that is not to be gone on with, or holds
        something else, or is a file.
    """
    folder = pathlib.Path(folder)
    if (folder / "config.json").exists():
        if not resume:
            raise FileExistsError(
                f"{folder} holds a run already; go on with it by resume=True "
                "(--resume), or choose another folder."
            )
    elif folder.is_file():
        raise FileExistsError(f"{folder} is a file; name a folder.")
    elif any(n.name[0] != "." for n in folder.glob("*")):
        raise FileExistsError(
            f"{folder} is not empty and holds no run; choose another folder."
        )


def claim(folder, config: dict, *, resume: bool, check=lambda: None) -> None:
    """Makes ``folder`` the home of the run that ``config`` describes.

    A folder that does not exist, or is empty, is taken. With ``resume`` a folder that
    holds the same run is taken too, and one that holds none is started afresh.
    ``check`` may raise what else speaks against it, once it is known to be this run's.
    Whoever goes on to write the folder calls this within ``alone``.

    Raises:
      FileExistsError: if the folder holds a run and ``resume`` is False, or holds
        something else.
      ValueError: if ``resume`` is True and the run there has other settings.
    """
    folder = pathlib.Path(folder)
    path = folder / "config.json"
    refuse_taken(folder, resume=resume)
    if path.exists():
        _same(folder, read_config(folder), config)
    check()
    folder.mkdir(parents=True, exist_ok=True)
    writing.write(path, json.dumps(config, indent=2) + "\n")


_LACKING = object()


def _same(folder, old, new):
    # More epochs are fine, and a recipe is a name for settings that are compared.
    free = ("epochs", "recipe")
    changed = [key for key in new if key not in free and old.get(key) != new[key]]
    if changed:
        key = changed[0]
        parts = [key]
        before, after = old.get(key, _LACKING), new[key]
        while isinstance(before, dict) and isinstance(after, dict):
            both = [
                (k, before.get(k, _LACKING), after.get(k, _LACKING))
                for k in before | after
            ]
            key, before, after = next(each for each in both if each[1] != each[2])
            parts.append(key)
        raise ValueError(
            f"{folder} holds another run: {'.'.join(parts)} was {_short(before)} there "
            f"and is {_short(after)} now; resume with the same settings or choose "
            "another folder."
        )


def _short(value):
    text = "lacking" if value is _LACKING else repr(value)
    return text if len(text) < 80 else f"{text[:77]}..."


def read_config(folder) -> dict:
    """What ``config.json`` says.

    Args:
      folder: of the run.

    Raises:
      FileNotFoundError: if there is no run in ``folder``.
      ValueError: if the file is damaged.
    """
    path = pathlib.Path(folder) / "config.json"
    if not path.exists():
        raise FileNotFoundError(
            f"{folder} holds no run: {path} does not exist; train one with "
            "`jaxanon train`, or name the folder of a run."
        )
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (RecursionError, ValueError) as error:
        raise ValueError(f"{path} is damaged ({error}); train the run anew.") from error
    found = config if isinstance(config, dict) else {}
    if lacking := [k for k, kind in FIELDS.items() if type(found.get(k)) is not kind]:
        raise ValueError(
            f"{path} describes no run: it lacks {sorted(lacking)}; name the folder of "
            "a run."
        )
    return _renamed(config)


def _renamed(config):
    """Returns the config of a run of version 0.1 under the names of today."""
    name = aliases.METHODS.get(config["method"], config["method"])
    kinds = "anonymizer", "learner", "controller"
    if not any(name in registry.names(kind) for kind in kinds):
        return config
    settings_class = registry.entry(name, *kinds).config
    known = {} if settings_class is None else settings_class.__dataclass_fields__
    return aliases.run_config(config, known)


def not_past(folder, total: int, epochs: int) -> None:
    """ValueError if the run in a folder, if any, has done more rounds than so many."""
    kept = pathlib.Path(folder) / "checkpoints"
    names = [path.name for path in kept.iterdir()] if kept.is_dir() else []
    done = max((int(name) for name in names if name.isdigit()), default=0)
    if done > total:
        raise ValueError(
            f"epochs={epochs} is {total} rounds, and the run in {folder} has done "
            f"{done}; resume with more epochs, or train in another folder."
        )


def open_run(folder, method: Method | None = None) -> Run:
    """Opens the run in ``folder`` at its last checkpoint.

    Args:
      folder: of the run.
      method: that trained it; ``None`` builds it from the registered name and the saved
        settings.

    Raises:
      FileNotFoundError: if there is no run in ``folder``, or it has no checkpoint yet.
      ValueError: if no method is registered under the run's name, or ``method`` is
        another one.
      ValueError: if the run is damaged, or of another architecture than this version
        of jaxanon builds from its settings.
    """
    folder = pathlib.Path(folder)
    config = read_config(folder)
    with naming(str(folder / "config.json")):
        if method is None:
            spec_class: Any = registry.entry(config["method"]).spec
        else:
            spec_class = type(method.spec)
        spec = spec_class.from_json(json.dumps(config["spec"]))
        if method is None:
            settings: dict[str, Any] = _as_built(config["settings"])
            method = registry.build(config["method"], spec, **settings)
            method = method._replace(recipe=config.get("recipe", registry.RECOMMENDED))
        else:
            _check_method(folder, config, method, spec)
        like = jax.eval_shape(method.init, jax.random.key(config["seed"]))
    state = checkpoint.restored(folder, config, like)
    history = metrics_log.read(folder, int(state.round))
    return Run(method, state, spec, folder, history, config)


def fingerprint(data, method: Method | None = None) -> str:
    """A digest of all windows and labels, to tell whether data changed.

    Args:
      data: of ``train``.
      method: that learns from it; only one with ``own_data`` has to be named.

    Example:
      >>> from jaxanon import datasets
      >>> data = datasets.load("smartwatch")
      >>> fingerprint(data) == fingerprint(datasets.load("smartwatch"))
      True
    """
    if method is not None and method.own_data is not None:
        return checkpoint.fingerprint(method.own_data.arrays(data))
    arrays = []
    for part in (data.train, data.test):
        arrays += [part.windows, *(part.labels[name] for name in sorted(part.labels))]
    return checkpoint.fingerprint(arrays)


def describe(method, data, state, *, epochs: int, seed: int) -> dict:
    """What ``config.json`` says of a run, whose settings include the recipe's."""
    own = method.own_data
    told = {} if own is not None else _describe_windows(method, data)
    told["fingerprint"] = fingerprint(data, method)
    config = {
        "version": __version__,
        "method": method.name,
        "recipe": method.recipe,
        "settings": settings_of(method),
        "hyper": {name: float(value) for name, value in state.hyper.items()},
        "seed": seed,
        "epochs": epochs,
        "data": told,
        "spec": json.loads(data.spec.to_json()),
        "architecture": checkpoint.architecture(state),
    }
    return json.loads(json.dumps(config))


def _describe_windows(method, data):
    spec = data.spec
    told = {
        "name": spec.name,
        "preset": spec.preset,
        "public": spec.public,
        "private": spec.private,
        "split": spec.split,
    }
    unseen = _unseen(method, data)
    return told | {"unseen": unseen} if unseen else told


def _unseen(method, data) -> dict[str, list[str]]:
    """Classes without a training window, where windows of them may be asked for.

    Nothing where noise guards training: which classes there are would be told.
    """
    if method.generate is None or method.guarantee is not None:
        return {}
    found = {}
    for name in (data.spec.public, *data.spec.private):
        there = set(data.train.labels[name].tolist())
        names = data.spec.classes[name]
        if lacking := [own for k, own in enumerate(names) if k not in there]:
            found[name] = lacking
    return found


def settings_of(method) -> dict:
    """Returns a method's settings by name; none for a method without a config."""
    return {} if method.config is None else dataclasses.asdict(method.config)


def _check_method(folder, config, method, spec):
    """Raises ValueError unless ``method`` is that of the run in ``folder``."""
    own = json.loads(json.dumps(settings_of(method)))
    for what, saved, given in (
        ("name", config["method"], method.name),
        ("spec", spec, method.spec),
        ("settings", config["settings"], own),
    ):
        if saved != given:
            raise ValueError(
                f"method must be that of the run in {folder}: its {what} is "
                f"{_short(given)}, and was {_short(saved)}."
            )


def _as_built(settings):
    """JSON's lists as the tuples they were."""
    as_tuple = lambda v: tuple(map(as_tuple, v)) if isinstance(v, list) else v
    return {name: as_tuple(value) for name, value in settings.items()}
