"""Turns functions into commands: groups their flags and delays the call.

A command's flags derive from its signature, its ``Args`` section and the declarations
of the method's settings.
"""

import dataclasses
import functools
import inspect
import re
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import tyro

GROUPS = {
    "data": "Data set, attributes and split.",
    "run": "Run folder and schedule.",
    "recipe": "Named settings to start from, and the settings that recipes vary.",
    "model": "Architecture and sizes of the networks.",
    "privacy": "Hidden classes, noise and budget.",
    "expert": "Details that few runs need to change.",
}
EXPERT = (
    "profile",
    "num_devices",
    "num_processes",
    "process_id",
    "coordinator_address",
    "chunk_size",
    "ray",
)
MODEL = re.compile(
    r"(^|_)(model|hidden_sizes|latent_dim|filters|widths?|heads|depth|layers|kernels?"
    r"|forecaster|units|dropout|channels|embedding\w*)$"
)
PRIVACY = re.compile(
    r"epsilon|delta$|clip_norm|noise|privacy|private|flip|(^|_)hide|hide_|budget"
    r"|max_examples|max_rounds|accountant|sampling_probability|anonymization"
    r"|target_class|negative_guidance|^low$|^high$"
)
UNITS = {
    "_s": "SECONDS",
    "seconds": "SECONDS",
    "_hz": "HZ",
    "_minutes": "MINUTES",
    "_hours": "HOURS",
    "days": "DAYS",
}


class _Flag(NamedTuple):
    name: str
    type: Any
    field: Any  # dataclass field
    owner: str  # parameter that receives the value; "" if the flag is a parameter


def deferred(
    command: Callable,
    about: str = "",
    varied: frozenset = frozenset(),
    omit: frozenset = frozenset(),
):
    """Returns a function that parses like ``command`` and returns the call.

    tyro calls what it parses. A call without arguments as the result keeps errors of
    the parser apart from those of the command.

    Args:
      command: function with an ``Args`` section. The parameters ``data`` and
        ``settings`` make tyro group the flags.
      about: description in help; defaults to the docstring of the command.
      varied: names of settings that recipes vary.
      omit: names of parameters without a flag.

    Example:
      >>> def greet(*, name: str, loud: bool = False):
      ...     '''Greets.
      ...
      ...     Args:
      ...       name: name of the person, which
      ...         may be long
      ...       loud: use capitals
      ...     '''
      ...     return f"Hello {name}"
      >>> print(inspect.getdoc(deferred(greet)))
      Greets.
      <BLANKLINE>
      Args:
        name: name of the person, which may be long
        loud: use capitals
      >>> tyro.cli(deferred(greet), args=["--name", "Ada"])()
      'Hello Ada'
    """
    signature = inspect.signature(command)
    summary, helps = documented(command)
    parameters = [*signature.parameters.values()]
    positional = [each for each in parameters if each.kind is each.POSITIONAL_ONLY]
    named = [each for each in parameters if each.kind is not each.POSITIONAL_ONLY]
    named = [each for each in named if each.name not in omit]
    grouped = {"data", "settings"} & {*signature.parameters}
    groups = _groups(named, helps, varied) if grouped else {}
    if groups:
        named = [_struct(name, flags) for name, flags in groups.items()]
    else:
        named = [each.replace(annotation=_plain(each)) for each in named]

    @functools.wraps(command)
    def defer(*values, **options):
        return functools.partial(_call, command, signature, groups, values, options)

    del defer.__wrapped__  # tyro would look through to the docstring of ``command``.
    shown = [*positional, *named]
    vars(defer)["__signature__"] = signature.replace(
        parameters=shown, return_annotation=Callable
    )
    defer.__annotations__ = {each.name: each.annotation for each in shown}
    described = [each.name for each in (positional if groups else shown)]
    lines = [f"  {name}: {helps[name]}" for name in described if name in helps]
    args = "\n".join(["", "", "Args:", *lines]) if lines else ""
    defer.__doc__ = (about or summary) + args
    return defer


def _call(command, signature, groups, values, options):
    """Calls the command with the values of the parsed groups."""
    if not groups:
        return command(*values, **options)
    given: dict[str, Any] = {}
    owned: dict[str, dict] = {}
    for name, flags in groups.items():
        for flag in flags:
            value = getattr(options[name], flag.name)
            target = owned.setdefault(flag.owner, {}) if flag.owner else given
            target[flag.name] = value
    for owner in {"data", "settings"} & {*signature.parameters}:
        class_ = _unannotated(signature.parameters[owner].annotation)
        given[owner] = class_(**owned.get(owner, {}))
    return command(*values, **given)


def documented(command):
    """Returns a docstring without ``Args``, and the help of each argument in a line."""
    summary, _, args = (inspect.getdoc(command) or "").partition("Args:\n")
    entries = re.findall(r"^  (\w+): (.*(?:\n {3,}.*)*)", args, re.MULTILINE)
    return summary.strip(), {name: " ".join(text.split()) for name, text in entries}


def _groups(parameters, helps, varied) -> dict[str, list[_Flag]]:
    """Sorts flags into the groups of help, and drops empty groups."""
    groups: dict[str, list[_Flag]] = {name: [] for name in GROUPS}
    for each in parameters:
        if each.name in ("data", "settings"):
            class_ = _unannotated(each.annotation)
            hints = typing.get_type_hints(class_, include_extras=True)
            for field in dataclasses.fields(class_):
                group = "data" if each.name == "data" else _group(field.name, varied)
                own = _declared(field, hints[field.name])
                if each.name == "data":
                    own = hints[field.name], _data_field(class_, field)
                groups[group].append(_Flag(field.name, *own, each.name))
            continue
        group = "recipe" if each.name == "recipe" else "run"
        group = "expert" if each.name in EXPERT else group
        default = dataclasses.MISSING if each.default is each.empty else each.default
        field = dataclasses.field(
            default=default, metadata={"help": helps.get(each.name, "")}
        )
        groups[group].append(_Flag(each.name, _plain(each), field, ""))
    return {name: flags for name, flags in groups.items() if flags}


def _group(name, varied):
    if PRIVACY.search(name):
        return "privacy"
    if MODEL.search(name):
        return "model"
    return "recipe" if name in varied else "expert"


def _data_field(class_, field):
    text = class_.HELP[field.name]
    return dataclasses.field(default=field.default, metadata={"help": text})


def _declared(field, type_):
    """Returns the type and the field of a setting, with its text for help."""
    text, metavar, hint = field.metadata.get("help", ""), None, None
    choices = getattr(field.metadata.get("bounds"), "choices", ())
    base = {*typing.get_args(type_)} - {types.NoneType} or {type_}
    if choices and base == {str}:
        metavar = f"{{{','.join(map(str, choices))}}}"
        listed = f"one of {', '.join(map(str, choices))}"
        text = "; ".join(part for part in text.split("; ") if part != listed)
    elif base <= {int, float}:
        units = (unit for end, unit in UNITS.items() if field.name.endswith(end))
        metavar = next(units, None)
        if metavar is None and field.default is None:
            metavar = "INT" if base == {int} else "FLOAT"
    if field.default is None:
        hint = ""
        metavar = metavar or ("STR" if base == {str} else None)
    if metavar is not None or hint is not None:
        type_ = Annotated[
            type_, tyro.conf.arg(metavar=metavar, help_behavior_hint=hint)
        ]
    new = dataclasses.field(
        default=field.default,
        default_factory=field.default_factory,
        metadata={"help": text},
    )
    return type_, new


def _plain(parameter):
    """Returns a parameter's type; a switch that is off has no ``--no-`` form."""
    if parameter.default is False:
        return Annotated[parameter.annotation, tyro.conf.FlagCreatePairsOff]
    return parameter.annotation


def _struct(name, flags):
    """Returns the parameter of a group, which tyro shows in a box of its own."""
    fields = [(flag.name, flag.type, flag.field) for flag in flags]
    class_ = dataclasses.make_dataclass(name.title(), fields, frozen=True, kw_only=True)
    class_.__doc__ = GROUPS[name]
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        annotation=Annotated[class_, tyro.conf.OmitArgPrefixes],
    )


def _unannotated(annotation):
    return getattr(annotation, "__origin__", annotation)
