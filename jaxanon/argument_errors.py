"""Errors of public functions that name the argument, its bound and its value.

``explain`` wraps the public functions of a package. A call that succeeds is unchanged,
also under tracing. If a library or Python rejects a value deep inside (``'NoneType'
object has no attribute 'shape'``), the wrapper compares the arguments with the
docstring and raises an error that names the wrong one, caused by the first error.
Errors that jaxanon or the caller's own code raises pass unchanged.
"""

import contextlib
import dis
import functools
import inspect
import math
import numbers
import os
import re
import reprlib
import sys
import types
import typing
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

_LIBRARIES = sys.stdlib_module_names | {
    *("absl", "chex", "dp_accounting", "etils", "flax", "jax", "jaxlib", "matplotlib"),
    *("ml_dtypes", "numpy", "onnx", "onnxruntime", "optax", "orbax", "pandas"),
    *("pyarrow", "scipy", "sklearn", "tensorflow_datasets"),
}
_ARRAY = re.compile(r"``(float|int|uint|bool)(\d*)\[([^\]`]*)\]``")
_CLASS = re.compile(r"(?:(?<=^)|(?<=^an )|(?<=^a ))``(?:[a-z]+\.)*([A-Z]\w+)``")
_KINDS = {"float": "fV", "int": "iu", "uint": "u", "bool": "b"}  # bfloat16 is "V".
_JITTED = "lower", "trace", "eval_shape", "clear_cache"  # Methods of ``jax.jit``.
_STRINGS = {  # Words of docstrings for arguments that are strings.
    *("name", "names", "path", "folder", "file", "label", "labels", "string", "column"),
    *("columns", "attribute", "attributes", "class", "classes", "channels"),
}
_WORDS = {
    bool: ((bool, np.bool_), "True or False"),
    int: (numbers.Integral, "a whole number"),
    float: (numbers.Real, "a number"),
    str: (str, "a string"),
    dict: (dict, "a dict"),
}


class _Argument(NamedTuple):
    """What a signature and a docstring say about an argument."""

    name: str
    value: Any
    text: str  # entry in the docstring
    type: Any  # annotation, or the type of the default

    @property
    def arrays(self):
        """Matches of ``float[N, D]`` in the first sentence; none for a tree."""
        first = re.split(r"[.;:](?:\s|$)", self.text)[0]
        tree = re.match(r"(\w+ )*(trees?|lists?|tuples?|dicts?|pytrees?)\b", first)
        return [] if tree else [*_ARRAY.finditer(first)]


def explain(package: dict[str, Any]) -> None:
    """Wraps the functions in a package's ``__all__``, also where they are defined.

    Args:
      package: ``globals()`` of a package.

    Example:
      >>> from jaxanon import kernels
      >>> kernels.dtw(None, [[1.0]])
      Traceback (most recent call last):
      ...
      ValueError: x must be float[pairs, time_x, channels], got None.
    """
    for name in package["__all__"]:
        function = package.get(name)
        jitted = callable(function) and hasattr(function, "clear_cache")
        if jitted or isinstance(function, types.FunctionType):
            home = vars(sys.modules[function.__module__])
            wrapped = package[name] = _explained(function)
            if home.get(name) is function:
                home[name] = wrapped


def _explained(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if _nested() or not _foreign(error):
                raise
            explanation = None
            with contextlib.suppress(Exception):  # Also arguments that do not bind.
                explanation = _explanation(function, args, kwargs, error)
            if explanation is None:
                raise
            raise explanation from error

    for name in _JITTED:
        if hasattr(function, name):
            setattr(call, name, getattr(function, name))
    return call


def _nested() -> bool:
    """Returns whether another public function explains the error of this one."""
    frame = sys._getframe(1)
    code = frame.f_code
    while (frame := frame.f_back) and _is_ours_or_a_library(frame):
        if frame.f_code is code:
            return True
    return False


def _is_ours_or_a_library(frame) -> bool:
    package = frame.f_globals.get("__name__", "").partition(".")[0]
    return package == "jaxanon" or package in _LIBRARIES


def _foreign(error) -> bool:
    """Returns whether a library or Python itself raised, not a ``raise`` of ours."""
    trace = error.__traceback__.tb_next
    if trace is None:  # A jitted function, or arguments that do not bind.
        return True
    while True:
        if not _is_ours_or_a_library(trace.tb_frame):
            return False  # A function of the caller.
        if trace.tb_next is None:
            break
        trace = trace.tb_next
    package = trace.tb_frame.f_globals["__name__"].partition(".")[0]
    code = trace.tb_frame.f_code.co_code
    ours = package == "jaxanon" and code[trace.tb_lasti] == dis.opmap["RAISE_VARARGS"]
    return not ours and not isinstance(error, MemoryError)


def _explanation(function, args, kwargs, error) -> Exception:
    """Returns an error that names the first argument at fault."""
    given = _arguments(function, args, kwargs)
    finders = _deleted, _not_known, _wrong_kind, _wrong_size, _out_of_range, _path
    for find in (*finders, _unlike, _unlike_inside):
        for argument in given:
            if why := find(argument, given, error):
                return _as(error, f"{argument.name} must {why}.")
    values = ", ".join(f"{each.name} {shown(each.value)}" for each in given)
    cause = (str(error).strip().splitlines() or [""])[0]
    return _as(
        error,
        f"{function.__name__} failed for {values}; compare them with "
        f"help({function.__module__}.{function.__name__}) "
        f"({type(error).__name__}: {cause}).",
    )


def _as(error, message) -> Exception:
    kinds = (FileNotFoundError, FileExistsError, PermissionError, OSError, TypeError)
    kind = next((kind for kind in kinds if isinstance(error, kind)), ValueError)
    return kind(message)


def _arguments(function, args, kwargs) -> list[_Argument]:
    """Returns the given arguments, in the order of the signature."""
    signature = inspect.signature(function)
    try:
        hints = typing.get_type_hints(function)
    except Exception:  # Names that only a type checker imports.
        hints = {}
    texts = _documented(function)
    given = []
    for name, value in signature.bind(*args, **kwargs).arguments.items():
        default = signature.parameters[name].default
        kind = None if default is None or default is inspect._empty else type(default)
        given.append(_Argument(name, value, texts.get(name, ""), hints.get(name, kind)))
        if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            given[-1:] = [_Argument(key, each, "", None) for key, each in value.items()]
    return given


def _documented(function, depth=2) -> dict[str, str]:
    """Returns each argument's entry in ``Args``; follows "see ``other``"."""
    _, _, section = (inspect.getdoc(function) or "").partition("Args:\n")
    entries = re.findall(r"^  ([\w, *]+): (.*(?:\n {4,}.*)*)", section, re.MULTILINE)
    texts = {}
    for names, text in entries:
        text = " ".join(text.split())
        for name in names.replace("*", "").split(", "):
            texts[name] = text
            if depth and (other := re.match(r"see ``([\w.]+)``", text)):
                home = vars(sys.modules[function.__module__])
                target = home.get(other[1].rpartition(".")[2])
                if isinstance(target, types.FunctionType):
                    texts[name] = _documented(target, depth - 1).get(name, text)
    return texts


def shown(value) -> str:
    """Returns a value for a message: short, and without the entries of an array.

    Example:
      >>> shown(np.zeros((2, 3), np.float32)), shown("wave"), shown([1.5])
      ('float32[2, 3]', "'wave'", 'a list of 1')
    """
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        if value.shape == () and isinstance(value, np.ndarray | np.generic):
            return reprlib.repr(value.item())
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, str | bytes | numbers.Number | os.PathLike | types.NoneType):
        return reprlib.repr(os.fspath(value) if hasattr(value, "__fspath__") else value)
    if type(value) in (list, tuple, dict, set):
        return f"a {type(value).__name__} of {len(value)}"
    return getattr(value, "__name__", None) or f"a {type(value).__name__}"


def _leaves(value) -> Iterator[Any]:
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, list | tuple):
        for each in value:
            yield from _leaves(each)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from _leaves(getattr(value, name, None))
    else:
        yield value


def _deleted(argument, given, error):
    for leaf in _leaves(argument.value):
        if getattr(leaf, "is_deleted", lambda: False)() is True:
            return (
                f"hold arrays that exist, got {leaf.dtype}{list(leaf.shape)}, which "
                "was deleted or donated to an earlier call; use the result of that "
                "call, or pass it a copy (jax.tree.map(jnp.copy, ...))"
            )


def _not_known(argument, given, error):
    """Finds a traced value if the error is that of a value needed on the host."""
    jax = sys.modules.get("jax")
    if jax is None or not isinstance(
        error,
        jax.errors.ConcretizationTypeError
        | jax.errors.TracerArrayConversionError
        | jax.errors.TracerIntegerConversionError
        | jax.errors.NonConcreteBooleanIndexError,
    ):
        return None
    traced = [
        each
        for each in given
        if any(isinstance(leaf, jax.core.Tracer) for leaf in _leaves(each.value))
    ]
    # Documented arrays may be traced; blame them last.
    first = min(traced, key=lambda each: bool(each.arrays), default=None)
    if argument is first:
        return (
            f"be known when the program is traced, got {shown(argument.value)} of a "
            f"transformation; close over it or name {argument.name} in "
            "static_argnames of jax.jit"
        )


def _host(value):
    """Returns a value as an array that has a shape and a dtype, or why it is none."""
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return value, ""
    try:
        with np.errstate(all="ignore"):
            return np.asarray(value), ""
    except Exception:  # Ragged lists, and objects that refuse.
        return None, f"{shown(value)} with rows of unequal lengths"


def _wrong_kind(argument, given, error):
    """Compares type, dtype and rank with the documentation."""
    name, value, text, kind = argument
    if value is None and (type(None) in typing.get_args(kind) or "None" in text):
        return None
    if name == "key" and _kind(getattr(value, "dtype", None)) != "K":
        return f"be a typed PRNG key such as jax.random.key(0), got {shown(value)}"
    if name.endswith("_fn") and not callable(value):
        return f"be a function, got {shown(value)}"
    if matches := argument.arrays:
        wanted = " or ".join(match[0].strip("`") for match in matches)
        array, why = _host(value)
        if array is None:
            return f"be {wanted}, got {why}"
        fits = [_fits(array, match) for match in matches]
        scalar = re.match(r"(a )?(number|scalar|float|int)", text) and not array.shape
        if not any(fits) and not (scalar and np.dtype(array.dtype).kind in "fiub"):
            return f"be {wanted}, got {shown(value)}"
        return None
    if match := _CLASS.match(text):
        names = {each.__name__ for each in type(value).__mro__}
        if match[1] not in names and not hasattr(value, "_fields"):
            return f"be {match[0].strip('`')}, got {shown(value)}"
    union = typing.get_origin(kind) in (typing.Union, types.UnionType)
    kinds = {*typing.get_args(kind)} if union else {typing.get_origin(kind) or kind}
    if kinds <= {*_WORDS, types.NoneType}:
        allowed = [_WORDS[each] for each in _WORDS if each in kinds]
        scalar = getattr(value, "shape", None) == () and hasattr(value, "item")
        number = isinstance(value, bool) and bool not in kinds
        if scalar and np.dtype(getattr(value, "dtype", "O")).kind in "fiub":
            return None
        if number or not any(isinstance(value, types_) for types_, _ in allowed):
            return (
                f"be {' or '.join(words for _, words in allowed)}, got {shown(value)}"
            )
    elif isinstance(kind, type) and kind is not object:
        if kind.__module__.startswith("jaxanon.") and not isinstance(value, kind):
            return f"be a {kind.__name__}, got {shown(value)}"
    return None


def _dims(match):
    return [each.strip() for each in match[3].split(",") if each.strip()]


def _fits(array, match) -> bool:
    """Returns whether an array has numbers, and the rank of ``match``."""
    dims, rank = _dims(match), len(array.shape)
    if _kind(array.dtype) not in "fiubV":
        return False
    if "..." in dims:
        return rank >= len(dims) - 1
    return rank == len(dims)


def _kind(dtype):
    try:
        return "" if dtype is None else np.dtype(dtype).kind
    except TypeError:  # A typed PRNG key.
        return "K"


def _sizes(argument) -> Iterator[tuple[str, int, Any]]:
    """Yields each named or fixed size of an argument's documented shape."""
    array, _ = _host(argument.value)
    matches = argument.arrays
    if len(matches) != 1 or array is None or not _fits(array, matches[0]):
        return
    dims, shape = _dims(matches[0]), list(array.shape)
    if "..." in dims:
        cut = dims.index("...")
        tail = len(dims) - cut - 1
        pairs = [*zip(dims[:cut], shape, strict=False)]
        pairs += [*zip(dims[cut + 1 :], shape[len(shape) - tail :], strict=True)]
    else:
        pairs = zip(dims, shape, strict=True)
    for dim, size in pairs:
        if re.fullmatch(r"\w+", dim):
            yield dim, size


def _wrong_size(argument, given, error):
    """Compares sizes with those of earlier arguments, and rejects empty arrays."""
    known: dict[str, tuple[int, str]] = {}
    for each in given:
        for dim, size in _sizes(each):
            fixed = (int(dim), "") if dim.isdigit() else None
            other, owner = fixed or known.setdefault(dim, (size, each.name))
            if size != other and each is argument:
                wanted = argument.arrays[0][0].strip("`")
                where = f" with {dim} = {other} as in {owner}" if owner else ""
                return f"be {wanted}{where}, got {shown(argument.value)}"
        if each is argument:
            break
    wanted = [match[0].strip("`") for match in argument.arrays]
    array, _ = _host(argument.value)
    if wanted and array is not None:
        if 0 in array.shape:
            return f"be {wanted[0]} with at least one entry, got {shown(array)}"
        if _kind(array.dtype) not in _KINDS[argument.arrays[0][1]]:
            return f"be {wanted[0]}, got {shown(array)}"
    return None


def _out_of_range(argument, given, error):
    """Rejects numbers that are not finite, negative, or of no machine type."""
    value = argument.value
    if isinstance(value, np.ndarray | np.generic) and value.ndim == 0:
        value = value.item()
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        if not math.isfinite(value):
            return f"be finite, got {shown(value)}"
        if abs(value) >= 2**31:
            return f"be smaller than 2**31, got {shown(value)}"
        if value < 0:
            return f"be >= 0, got {shown(value)}"
    return None


def _unlike(argument, given, error):
    """Finds a value of a type that the docstring does not mention, and quotes it."""
    value, text = argument.value, argument.text
    words = {*re.findall(r"\w+", text.lower())}
    if value is None:
        odd = "None" not in text
    elif isinstance(value, str):
        odd = not words & _STRINGS and '"' not in text
    elif isinstance(value, numbers.Number):
        odd = bool(words & _STRINGS | words & {"tree", "array", "arrays"})
    elif callable(value):
        odd = not words & {"function", "callable", "called"}
    elif isinstance(value, list | tuple):
        nested = any(isinstance(each, list | tuple) for each in value)
        odd = not value or (nested and _host(value)[0] is None)
    else:
        odd = isinstance(value, bytes) or type(value) is object
    return _as_documented(argument) if odd else None


def _unlike_inside(argument, given, error):
    """Finds a container with a value of a type that the docstring does not mention."""
    if isinstance(argument.value, dict | list | tuple):
        inside = _leaves(argument.value)
        parts = (argument._replace(value=leaf) for leaf in inside)
        if any(_unlike(part, given, error) for part in parts):
            return _as_documented(argument)
    return None


def _as_documented(argument):
    first = re.split(r"[.;:](?:\s|$)", argument.text)[0].replace("`", "").strip()
    bound = f"be as documented ({first})" if first else "fit the other arguments"
    return f"{bound}, got {shown(argument.value)}"


def _path(argument, given, error):
    """Finds the path of an error of the operating system."""
    value = argument.value
    if not isinstance(error, OSError) or not isinstance(value, str | os.PathLike):
        return None
    file = error.filename
    if file is not None and str(file).startswith(str(os.fspath(value))):
        return f"be a path that can be used, got {str(file)!r}: {error.strerror}"
    return None
