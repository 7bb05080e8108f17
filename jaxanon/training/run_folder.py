"""The folder of a run: its settings and checkpoints."""

import dataclasses
import json
import pathlib
from typing import Any

import jax

from jaxanon import __version__
from jaxanon.core import aliases, registry
from jaxanon.core.method import Method
from jaxanon.core.run import Run
from jaxanon.datasets import held_out, writing
from jaxanon.datasets.sources import naming
from jaxanon.training import checkpoint, metrics_log

FIELDS = dict.fromkeys(("version", "method"), str) | {"architecture": list}

FIELDS |= dict.fromkeys(("settings", "spec", "data"), dict) | {"seed": int}


def check_available(folder, *, resume: bool) -> None:
    """Raises if ``claim`` would reject a folder regardless of its run's settings.

    Raises:
      FileExistsError: if the folder holds a run and ``resume`` is False, holds other
        files, or is a file.
      ValueError: if the path has a character of a glob pattern, as in ``run [1]``.
        Orbax would write checkpoints there and not find them again.
    """
    folder = pathlib.Path(folder)
    if special := sorted({*str(folder.resolve())} & {*"[]*?"}):
        raise ValueError(
            f"output_dir (--output-dir) must not contain {' '.join(special)}, got "
            f"{str(folder)!r}; choose another folder."
        )
    if (folder / "config.json").exists():
        if not resume:
            raise FileExistsError(
                f"{folder} already holds a run; continue it with resume=True "
                "(--resume), or choose another folder."
            )
    elif folder.is_file():
        raise FileExistsError(f"{folder} must be a folder, got a file.")
    elif any(n.name[0] != "." for n in folder.glob("*")):
        raise FileExistsError(
            f"{folder} must be empty or hold a run, got other files; choose another "
            "folder."
        )


def claim(folder, config: dict, *, resume: bool, check=lambda: None) -> None:
    """Claims ``folder`` for the run that ``config`` describes.

    The folder may be missing or empty, or with ``resume`` hold the same run. ``check``
    runs after the settings were compared and may raise. Callers that write the folder
    afterwards hold ``lock_folder``.

    Raises:
      FileExistsError: if the folder holds a run and ``resume`` is False, or holds other
        files.
      ValueError: if ``resume`` is True and the run there has other settings.
    """
    folder = pathlib.Path(folder)
    path = folder / "config.json"
    check_available(folder, resume=resume)
    if path.exists():
        _check_same(folder, read_config(folder), config)
    check()
    folder.mkdir(parents=True, exist_ok=True)
    writing.write(path, json.dumps(config, indent=2) + "\n")


_MISSING = object()


def _check_same(folder, old, new):
    if (before := old.get("version")) != (now := new.get("version")):
        raise ValueError(
            f"the run in {folder} must be of jaxanon {now} to resume, got one of "
            f"{before}, and versions may train differently; resume it with jaxanon "
            f"{before}, or train in another folder. It still opens and evaluates."
        )
    # ``epochs`` may grow; ``recipe`` only names settings that are compared.
    free = ("epochs", "recipe")
    if "test_people" not in old.get("data", {}):  # The run of an older version.
        about_data = {k: v for k, v in new["data"].items() if k != "test_people"}
        new = new | {"data": about_data}
    changed = [key for key in new if key not in free and old.get(key) != new[key]]
    if changed:
        key = changed[0]
        parts = [key]
        before, after = old.get(key, _MISSING), new[key]
        while isinstance(before, dict) and isinstance(after, dict):
            both = [
                (k, before.get(k, _MISSING), after.get(k, _MISSING))
                for k in before | after
            ]
            key, before, after = next(each for each in both if each[1] != each[2])
            parts.append(key)
        raise ValueError(
            f"{'.'.join(parts)} must be {_short(before)} as in the run in {folder}, "
            f"got {_short(after)}; resume with the same settings or choose another "
            "folder."
        )


def _short(value):
    text = "missing" if value is _MISSING else repr(value)
    return text if len(text) < 80 else f"{text[:77]}..."


def read_config(folder) -> dict:
    """Reads ``config.json`` of a run.

    Args:
      folder: folder of the run.

    Raises:
      FileNotFoundError: if ``folder`` holds no run.
      ValueError: if the file is damaged.
    """
    path = pathlib.Path(folder) / "config.json"
    if not path.exists():
        raise FileNotFoundError(
            f"{folder} holds no run: {path} does not exist; train one with "
            "`jaxanon train`, or give the folder of a run."
        )
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (RecursionError, ValueError) as error:
        raise ValueError(f"{path} is damaged ({error}); retrain the run.") from error
    fields = config if isinstance(config, dict) else {}
    if missing := [k for k, kind in FIELDS.items() if type(fields.get(k)) is not kind]:
        raise ValueError(
            f"{path} must describe a run, but lacks {sorted(missing)}; give the folder "
            "of a run."
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


def check_not_past(folder, total: int, epochs: int) -> None:
    """Raises ValueError if the run in a folder has done more than ``total`` rounds."""
    checkpoints = pathlib.Path(folder) / "checkpoints"
    names = [p.name for p in checkpoints.iterdir()] if checkpoints.is_dir() else []
    done = max((int(name) for name in names if name.isdigit()), default=0)
    if done > total:
        raise ValueError(
            f"epochs must cover the {done} completed rounds of the run in {folder}, "
            f"got {epochs} ({total} rounds); resume with more epochs, or train in "
            "another folder."
        )


def open_run(folder, method: Method | None = None) -> Run:
    """Opens the run in ``folder`` at its last checkpoint.

    Args:
      folder: folder of the run.
      method: method of the run; ``None`` builds it from the registered name and the
        saved settings.

    Raises:
      FileNotFoundError: if ``folder`` holds no run, or the run has no checkpoint yet.
      ValueError: if the run's method is not registered or differs from ``method``; if
        the run is damaged; or if this version of jaxanon builds another architecture
        from its settings.
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
            settings: dict[str, Any] = _lists_to_tuples(config["settings"])
            method = registry.build(config["method"], spec, **settings)
            method = method._replace(recipe=config.get("recipe", registry.RECOMMENDED))
        else:
            _check_method(folder, config, method, spec)
        like = jax.eval_shape(method.init, jax.random.key(config["seed"]))
    state = checkpoint.restore_state(folder, config, like)
    history = metrics_log.read(folder, int(state.round))
    return Run(method, state, spec, folder, history, config)


def fingerprint(data, method: Method | None = None) -> str:
    """Returns a digest of all windows and labels, to detect changed data.

    Args:
      data: data for ``train``.
      method: method that trains on it; required only if it has ``own_data``.

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
    """Returns the content of ``config.json``; all but ``epochs`` identifies the run."""
    own_data = method.own_data
    about_data = {} if own_data is not None else _describe_windows(method, data)
    about_data["fingerprint"] = fingerprint(data, method)
    config = {
        "version": __version__,
        "method": method.name,
        "recipe": method.recipe,
        "settings": settings_of(method),
        "hyper": {name: float(value) for name, value in state.hyper.items()},
        "seed": seed,
        "epochs": epochs,
        "data": about_data,
        "spec": json.loads(data.spec.to_json()),
        "architecture": checkpoint.architecture(state),
    }
    return json.loads(json.dumps(config))


def _describe_windows(method, data):
    spec = data.spec
    about_data = {
        "name": spec.name,
        "preset": spec.preset,
        "public": spec.public,
        "private": spec.private,
        "split": spec.split,
    }
    if spec.split == "subject":  # Enough to load the same split again.
        about_data["test_people"] = held_out.tested_people(data)
    unseen = _unseen(method, data)
    return about_data | {"unseen": unseen} if unseen else about_data


def _unseen(method, data) -> dict[str, list[str]]:
    """Returns a generator's classes without training windows, by attribute.

    Empty for training with a guarantee, because the set of present classes would leak.
    """
    if method.generate is None or method.guarantee is not None:
        return {}
    unseen = {}
    for name in (data.spec.public, *data.spec.private):
        present = set(data.train.labels[name].tolist())
        names = data.spec.classes[name]
        if absent := [each for k, each in enumerate(names) if k not in present]:
            unseen[name] = absent
    return unseen


def settings_of(method) -> dict:
    """Returns a method's settings by name; empty without a config."""
    return {} if method.config is None else dataclasses.asdict(method.config)


def _check_method(folder, config, method, spec):
    """Raises ValueError unless ``method`` is the method of the run in ``folder``."""
    settings = json.loads(json.dumps(settings_of(method)))
    for field, saved, current in (
        ("name", config["method"], method.name),
        ("spec", spec, method.spec),
        ("settings", config["settings"], settings),
    ):
        if saved != current:
            raise ValueError(
                f"method must have the {field} {_short(saved)} of the run in {folder}, "
                f"got {_short(current)}."
            )


def _lists_to_tuples(settings):
    """Converts JSON's lists in settings to tuples."""
    as_tuple = lambda v: tuple(map(as_tuple, v)) if isinstance(v, list) else v
    return {name: as_tuple(value) for name, value in settings.items()}
