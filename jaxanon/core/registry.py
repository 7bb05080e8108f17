"""Registry of methods, learners, controllers and data sets by name."""

import dataclasses
import functools
import importlib
import importlib.metadata
import types
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

from jaxanon.datasets import Spec
from jaxanon.datasets import registry as datasets
from jaxanon.kernels.checks import did_you_mean, one_of

KINDS = ("anonymizer", "learner", "controller", "dataset")
RECOMMENDED = "recommended"  # The recipe that applies unless another one is named.
GROUP = "jaxanon.plugins"  # Entry points of other distributions.


class Recipe(NamedTuple):
    """A named set of settings with a stated purpose.

    Settings that a recipe does not name keep the defaults of the method's config.
    """

    purpose: str  # one sentence
    settings: Mapping[str, Any] = types.MappingProxyType({})  # by name
    epochs: int | None = None  # None: those of the entry


class Entry(NamedTuple):
    """A registered name."""

    name: str
    builder: Callable  # (spec, config) -> Method
    config: type | None  # frozen dataclass of the settings
    kind: str  # one of ``KINDS``
    epochs: int = 20  # default number of training epochs
    spec: type = Spec  # class of the builder's ``spec``, with ``from_json``
    # By name, ``RECOMMENDED`` first.
    recipes: Mapping[str, Recipe] = types.MappingProxyType({})


_DEFAULTS = Recipe("The defaults of the method's settings.")
_ENTRIES: dict[str, Entry] = {}
_PLUGINS: list[str] = []
_LOADED = False  # Whether the entry points have been imported.
_BUILT_IN = ("jaxanon.methods", "jaxanon.learners", "jaxanon.energy")


def register(
    name: str,
    builder=None,
    *,
    config=None,
    kind: str = "anonymizer",
    epochs: int = 20,
    spec: type = Spec,
    recipes: dict[str, Recipe] | None = None,
) -> Any:
    """Registers a method, a learner, a controller or a data set under a name.

    A registered method trains, resumes, reopens, sweeps, evaluates and exports like a
    built-in one, from Python and from the command line. Other distributions register in
    a module that they list in the entry-point group ``jaxanon.plugins``.

    Args:
      name: name for ``build`` and the command line; letters, digits and underscores.
      builder: ``(spec, config) -> Method`` with the same ``name``; for the kind
        ``"dataset"`` a ``jaxanon.datasets.description.Dataset``. If it is None,
        ``register`` returns a decorator for the builder.
      config: frozen dataclass of the settings, each with a default; ``None`` for a
        method without settings.
      kind: ``"anonymizer"``, ``"learner"``, ``"controller"`` or ``"dataset"``.
      epochs: default number of training epochs.
      spec: class of the builder's specs, with ``to_json`` and ``from_json``;
        controllers use other data than windows.
      recipes: named sets of settings. ``"recommended"`` applies unless another one is
        chosen; without an entry of that name it has the config's defaults.

    Returns:
      ``(spec, *, recipe="recommended", **settings) -> Method``, where single settings
      override those of the recipe; for a data set, its description.

    Raises:
      ValueError: if the kind is unknown, or the name is taken or not an identifier.
      TypeError: if ``builder`` is not callable, or not a ``Dataset``, or a recipe names
        an unknown setting.

    Example:
      >>> import dataclasses
      >>> from jaxanon import methods
      >>> @dataclasses.dataclass(frozen=True, kw_only=True)
      ... class ShrunkConfig:
      ...     factor: float = 0.5
      >>> def shrunk(spec, config):
      ...     plain = methods.orf(spec)
      ...     anonymize = lambda key, state, windows: windows * config.factor
      ...     return plain._replace(name="shrunk", config=config, anonymize=anonymize)
      >>> shrunk = register("shrunk", shrunk, config=ShrunkConfig)
      >>> from jaxanon.datasets import load
      >>> shrunk(load("smartwatch").spec, factor=0.25).config
      ShrunkConfig(factor=0.25)
    """
    one_of("kind", kind, KINDS)
    if not (isinstance(name, str) and name.isidentifier()):
        raise ValueError(f"name must be an identifier, got {name!r}.")
    if kind == "dataset":
        return datasets.register(name, cast(datasets.Dataset, builder))
    if builder is None:
        options = {"config": config, "kind": kind, "epochs": epochs, "spec": spec}
        return functools.partial(register, name, recipes=recipes, **options)
    if not callable(builder):
        raise TypeError(f"builder must be (spec, config) -> Method, got {builder!r}.")
    if not str(getattr(builder, "__module__", "")).startswith("jaxanon."):
        _load()  # Built-in names take precedence.
    old = _ENTRIES.get(name)
    if old is not None and _origin(old.builder) != _origin(builder):
        raise ValueError(
            f"name must be new, got {name!r}, which {_origin(old.builder)} already "
            "uses; choose another name."
        )
    recipes = {RECOMMENDED: _DEFAULTS} | (recipes or {})
    for recipe in recipes.values():
        _check_names(name, config, recipe.settings)
    _ENTRIES[name] = Entry(name, builder, config, kind, epochs, spec, recipes)

    @functools.wraps(builder)
    def build(spec, **settings):
        return _built(_ENTRIES[name], spec, settings)

    del build.__wrapped__  # Show the signature of ``build``, not of the builder.
    return build


def _origin(builder):
    names = (getattr(builder, part, "") for part in ("__module__", "__qualname__"))
    return ".".join(names)


def configured(config_class, settings):
    """Builds a config from settings.

    Raises:
      TypeError: if a setting is not a field of the class; the message lists the fields.

    Example:
      >>> @dataclasses.dataclass
      ... class Settings:
      ...     latent: int = 25
      >>> configured(Settings, {"latent": 4})
      Settings(latent=4)
      >>> configured(Settings, {"latnt": 4})
      Traceback (most recent call last):
      ...
      TypeError: Settings has no 'latnt'; it has ['latent']. Did you mean 'latent'?
    """
    _check_names("", config_class, settings)
    return config_class(**settings)


def _configured(name, config, settings):
    if config is not None:
        return configured(config, settings)
    _check_names(name, config, settings)
    return None


def _check_names(name, config, settings):
    if config is None:
        if settings:
            raise TypeError(f"{name} has no settings, got {sorted(settings)}.")
        return
    known = sorted(field.name for field in dataclasses.fields(config))
    unknown = sorted(set(settings) - set(known))
    if unknown:
        raise TypeError(
            f"{config.__name__} has no {', '.join(map(repr, unknown))}; it has "
            f"{known}.{did_you_mean(unknown[0], known)}"
        )


def names(kind: str) -> tuple[str, ...]:
    """Returns the registered names of a kind, in the order of their registration.

    Raises:
      ValueError: if the kind is unknown.

    Example:
      >>> "blinder" in names("anonymizer"), "fedavg" in names("learner")
      (True, True)
    """
    one_of("kind", kind, KINDS)
    if kind == "dataset":
        return datasets.names()
    _load()
    return registered(kind)


def registered(kind: str) -> tuple[str, ...]:
    """Returns the names of a kind registered so far, without importing packages."""
    return tuple(each.name for each in _ENTRIES.values() if each.kind == kind)


def entry(name: str, *kinds: str) -> Entry:
    """Returns the entry of a name.

    Args:
      name: name of a method, a learner or a controller.
      *kinds: allowed kinds; any kind if omitted.

    Raises:
      ValueError: if the name is unknown or has another kind.
    """
    _load()
    kinds = kinds or KINDS
    known = sorted(each.name for each in _ENTRIES.values() if each.kind in kinds)
    if name not in known:
        kind = "method" if "anonymizer" in kinds else kinds[0]
        raise ValueError(
            f"{kind} must be one of {known}, got {name!r}.{did_you_mean(name, known)}"
        )
    return _ENTRIES[name]


def default_epochs(name: str | None, recipe: str = RECOMMENDED) -> int:
    """Returns the epochs of a method's recipe, 20 if the name is not registered.

    Raises:
      ValueError: if the method has no recipe of that name.

    Example:
      >>> default_epochs("obscurenet"), default_epochs("obscurenet", "fast")
      (47, 10)
    """
    _load()
    if name not in _ENTRIES:
        return 20
    epochs = recipe_of(_ENTRIES[name], recipe).epochs
    return _ENTRIES[name].epochs if epochs is None else epochs


def recipe_of(own: Entry, name: str) -> Recipe:
    """Returns an entry's recipe.

    Raises:
      ValueError: if the entry has no recipe of that name.

    Example:
      >>> recipe_of(entry("blinder"), "fast").epochs
      5
    """
    if name not in own.recipes:
        known = [*own.recipes]
        raise ValueError(
            f"recipe must be one of {known} for {own.name}, got {name!r}."
            f"{did_you_mean(str(name), known)}"
        )
    return own.recipes[name]


def build(name: str, spec, *, recipe: str = RECOMMENDED, **settings):
    """Builds the method of a name for windows of ``spec``.

    Args:
      name: registered name; see ``names``.
      spec: ``jaxanon.datasets.Spec``.
      recipe: of the method's recipes.
      **settings: fields of the method's config, which override the recipe's.

    Raises:
      ValueError: if the name or the recipe is unknown, or a setting is out of range.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> spec = load("smartwatch").spec
      >>> build("orf", spec).name
      'orf'
      >>> build("blinder", spec, recipe="paper", gamma=0.5).config.gamma
      0.5
    """
    return _built(entry(name), spec, {"recipe": recipe, **settings})


def settings_of(name: str, recipe: str = RECOMMENDED):
    """Returns the config that a recipe stands for; None for a method without settings.

    Raises:
      ValueError: if the name or the recipe is unknown.

    Example:
      >>> settings_of("blinder", "paper").gamma
      0.2
    """
    own = entry(name)
    return _configured(own.name, own.config, recipe_of(own, recipe).settings)


def _built(own, spec, settings):
    settings = dict(settings)
    recipe = settings.pop("recipe", RECOMMENDED)
    settings = dict(recipe_of(own, recipe).settings) | settings
    if not isinstance(spec, own.spec):
        raise ValueError(
            f"spec must be a {own.spec.__name__} for {own.name}, got a "
            f"{type(spec).__name__}."
        )
    method = own.builder(spec, _configured(own.name, own.config, settings))
    return method._replace(recipe=recipe)


def rebuild(name: str, spec, config, recipe: str = RECOMMENDED):
    """Rebuilds a method from its name, spec, config and recipe name.

    Raises:
      ValueError: if the name is unknown or is registered with another config class.
    """
    registered_entry = entry(name)
    expected = registered_entry.config or type(None)
    if type(config) is not expected:
        raise ValueError(
            f"config must be {expected.__name__} for {name}, got a "
            f"{type(config).__name__}; register your method under another name."
        )
    return registered_entry.builder(spec, config)._replace(recipe=recipe)


def load_plugins(*modules: str) -> None:
    """Imports the entry points of the group ``jaxanon.plugins`` and named modules.

    Args:
      *modules: dotted names of modules that register methods on import.

    Raises:
      ImportError: if a module cannot be imported.
    """
    _load()
    for module in modules:
        importlib.import_module(module)
        if module not in _PLUGINS:
            _PLUGINS.append(module)


def plugins() -> tuple[str, ...]:
    """Returns the modules that ``load_plugins`` imported by name."""
    return tuple(_PLUGINS)


def _load():
    """Imports the built-in packages and, the first time, all entry points."""
    global _LOADED
    for package in _BUILT_IN:
        importlib.import_module(package)
    if not _LOADED:
        _LOADED = True
        for point in importlib.metadata.entry_points(group=GROUP):
            point.load()
