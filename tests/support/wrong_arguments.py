"""Arguments of docstring examples, wrong values in their place, and judged errors."""

import dis
import doctest
import importlib
import inspect
import pathlib
import traceback

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.kernels.checks import is_key

HOMES = tuple(
    str(pathlib.Path(importlib.import_module(f"jaxanon.{room}").__file__).parent)
    for room in ("core", "kernels", "federated", "datasets", "recordings")
)
HOMES = tuple(home.removesuffix("/core") for home in HOMES)


class _Called(Exception):
    pass


def example_arguments(function):
    """Returns the bound arguments of a function's docstring example, or None.

    The example runs without compilation up to its first call of the function.
    """
    signature = inspect.signature(function)

    def record(*args, **kwargs):
        raise _Called(signature.bind(*args, **kwargs))

    home = importlib.import_module(function.__module__)
    names = {**vars(home), function.__name__: record}
    for example in doctest.DocTestParser().get_examples(function.__doc__ or ""):
        try:
            with jax.disable_jit():
                exec(compile(example.source, "<example>", "single"), names)
        except _Called as called:
            return called.args[0]
        except Exception:
            if example.exc_msg is None:
                raise
    return None


def wrong_values(value):
    """Yields ``(description, wrong value)`` to replace an argument."""
    yield "None", None
    yield "dict", {}
    yield "object", object()
    if is_key(value):
        yield "legacy key", jax.random.PRNGKey(0)
        yield "zero", 0
        return
    if isinstance(value, str):
        yield "unknown name", "?"
        yield "number", 3
        return
    if callable(value):
        yield "text", "?"
        yield "number", 3
        return
    yield "text", "?"
    if isinstance(value, bool | np.bool_):
        return
    if isinstance(value, int | float | np.number):
        # Larger counts are valid and run long.
        for wrong in (0, -1, 2.5, float("nan"), float("inf"), True):
            yield repr(wrong), wrong
        yield "vector", np.ones(2)
        yield "no numbers", np.ones(0)
        yield "list", [1, 2]
        return
    if isinstance(value, np.ndarray | jax.Array):
        yield from _wrong_arrays(value)
    else:
        yield "zero", 0
        yield "vector", np.ones(2, np.float32)
        yield "ragged", [[1.0], [1.0, 2.0]]
    if isinstance(value, list | tuple | dict) or hasattr(value, "_fields"):
        leaves, treedef = jax.tree.flatten(value)
        if type(value) in (list, tuple, dict):
            yield "empty", type(value)()
        for index in sorted({0, len(leaves) - 1} if leaves else ()):
            for name, leaf in wrong_values(leaves[index]):
                changed = [*leaves[:index], leaf, *leaves[index + 1 :]]
                yield f"leaf {index}: {name}", jax.tree.unflatten(treedef, changed)


def _wrong_arrays(array):
    xp = jnp if isinstance(array, jax.Array) else np
    host = np.asarray(array)
    yield "scalar", 1.0
    yield "axis more", xp.asarray(host[None])
    yield "words", np.full(host.shape, "a")
    yield "objects", np.full(host.shape, None)
    yield "complex", xp.asarray(host * 1j)
    yield "ragged", [[1.0], [1.0, 2.0]]
    other = np.float32 if host.dtype.kind in "iub" else np.int32
    yield "other dtype", xp.asarray(host.astype(other))
    if host.ndim:
        yield "axis less", xp.asarray(host[0] if len(host) else host.sum())
        yield "no rows", xp.asarray(host[:0])
        yield "one row less", xp.asarray(host[:-1])
        yield "one row more", xp.asarray(np.concatenate([host, host[-1:]]))
        yield "one column less", xp.asarray(host[..., :-1])
    if host.dtype.kind == "f":
        yield "NaN", xp.asarray(np.full_like(host, np.nan))
    if host.dtype.kind in "iu":
        yield "negative", xp.asarray(-1 - host)
    deleted = jnp.asarray(host) + 0
    deleted.delete()
    yield "deleted", deleted


def judge(function, args, kwargs):
    """Returns None if a call works or raises our error, else the foreign error.

    An error that the example's own function raises is the caller's. The call is
    traced, not run, unless the function needs concrete values.
    """

    def traced():
        function(*args, **kwargs)

    try:
        try:
            jax.eval_shape(traced)
        except jax.errors.JAXTypeError:
            traced()
    except (ValueError, TypeError) as error:
        last = [*traceback.walk_tb(error.__traceback__)][-1][0]
        code = last.f_code
        raised = dis.opname[code.co_code[_last_instruction(error)]] == "RAISE_VARARGS"
        ours = raised and code.co_filename.startswith(HOMES)
        return None if ours or _of_example(error) else error
    except Exception as error:
        return None if _of_example(error) else error
    return None


def _last_instruction(error):
    place = error.__traceback__
    while place.tb_next is not None:
        place = place.tb_next
    return place.tb_lasti


def _of_example(error):
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return any(frame.f_code.co_filename == "<example>" for frame in frames)


def calls(function):
    """Yields ``(parameter, description, args, kwargs)``, one argument wrong."""
    bound = example_arguments(function)
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is kind.VAR_POSITIONAL:
            changed = (
                (said, (*value[:place], wrong, *value[place + 1 :]))
                for place, one in enumerate(value)
                for said, wrong in wrong_values(one)
            )
        elif kind is kind.VAR_KEYWORD:
            changed = (
                (f"{key} {said}", value | {key: wrong})
                for key, one in value.items()
                for said, wrong in wrong_values(one)
            )
        else:
            changed = wrong_values(value)
        for said, wrong in changed:
            arguments = bound.arguments | {name: wrong}
            call = inspect.BoundArguments(bound.signature, arguments)
            yield name, said, call.args, call.kwargs
