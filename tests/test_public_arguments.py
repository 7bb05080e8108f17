"""Public functions name the argument that a library would reject in its own words."""

import doctest
import importlib
import inspect
import sys
import types
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import argument_errors
from jaxanon.kernels.checks import is_key

PACKAGES = ("attacks", "datasets", "edge", "energy", "evaluation", "exporting")
PACKAGES += ("federated", "kernels", "metrics", "privacy", "sweeps", "training")

BAD = {
    "nothing": None,
    "a word": "bad",
    "ragged": [[1.0], [1.0, 2.0]],
    "an object": object(),
    "bytes": b"\xff",
}


VARIADIC = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD


class Called(BaseException):
    """Carries the arguments of an example's call out of the example."""


def first_call(function):
    """Returns the arguments of the first call in a docstring, without the call."""

    def spy(*args, **kwargs):
        raise Called(args, kwargs)

    home = sys.modules[function.__module__]
    scope = {**vars(home), "jax": jax, "jnp": jnp, "np": np, function.__name__: spy}
    for example in doctest.DocTestParser().get_examples(function.__doc__ or ""):
        try:
            exec(compile(example.source, "<example>", "single"), scope)
        except Called as called:
            traced = any(
                isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(called.args)
            )
            return None if traced else called.args
        except Exception:  # It shows an error.
            continue
    return None


def functions(package):
    """Returns the public functions that are defined in a package."""
    module = importlib.import_module(f"jaxanon.{package}")
    named = {name: getattr(module, name) for name in module.__all__}
    return {
        name: each
        for name, each in named.items()
        if isinstance(each, types.FunctionType)
    }


def failures(function, bound, argument):
    """Yields each bad value for an argument, and the error of the call."""
    values = dict(BAD)
    own = bound.arguments[argument]
    if isinstance(own, jax.Array | np.ndarray) and not is_key(own):
        values["deleted"] = jnp.array(own)
        values["deleted"].delete()
    for label, value in values.items():
        arguments = {**bound.arguments, argument: value}
        call = inspect.BoundArguments(bound.signature, arguments)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                function(*call.args, **call.kwargs)
        except Exception as error:
            yield label, error


@pytest.mark.parametrize("package", PACKAGES)
def test_errors_of_arguments_are_ours_and_name_one(package, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wrong, tried = [], 0
    for name, function in functions(package).items():
        found = first_call(function)
        if found is None:
            continue
        args, kwargs = found
        signature = inspect.signature(function)
        bound = signature.bind(*args, **kwargs)
        for argument in bound.arguments:
            parameter = signature.parameters[argument]
            if parameter.default is not parameter.empty or parameter.kind in VARIADIC:
                continue
            for label, error in failures(function, bound, argument):
                tried += 1
                trace = error.__traceback__
                while trace.tb_next:
                    trace = trace.tb_next
                module = trace.tb_frame.f_globals["__name__"]
                ours = module.partition(".")[0] == "jaxanon"
                if not ours or argument_errors._foreign(error):
                    wrong.append((name, argument, label, repr(error)[:150]))
    assert not wrong
    assert tried or package in ("evaluation", "sweeps")
