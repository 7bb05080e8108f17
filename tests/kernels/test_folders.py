"""Every kernel has a readable reference, and cases shared by tests and benchmarks."""

import importlib
import inspect
import pathlib
import re

import pytest

from jaxanon import kernels

FOLDERS = sorted(
    path.parent.name
    for path in pathlib.Path(kernels.__file__).parent.glob("*/__init__.py")
)


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_kernel_has_a_reference_and_cases(folder):
    reference, cases = (
        importlib.import_module(f"jaxanon.kernels.{folder}.{name}")
        for name in ("reference", "cases")
    )
    assert any(inspect.isfunction(thing) for thing in vars(reference).values())
    assert getattr(cases, "CASES", None) or folder == "meta"


FUNCTIONS = [name for name in kernels.__all__ if name[0].islower()]
# None of these rejects any argument.
NEVER_RAISE = {
    "materialize",
    "materialize_gradient",
    "is_factored_cheaper",
    "squared_norm",
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_docstring_says_what_goes_in_what_comes_out_and_what_is_refused(name):
    function = getattr(kernels, name)
    text = inspect.getdoc(function)
    wanted = ["Args:", "Returns:", "Raises:", "Example:"]
    assert {part: text.count(f"\n{part}\n") for part in wanted} == {
        part: int(part != "Raises:" or name not in NEVER_RAISE) for part in wanted
    }
    arguments = text.split("\nArgs:\n")[1].split("\nReturns:\n")[0]
    for argument in inspect.signature(function).parameters:
        assert re.search(rf"\b{argument}\b", arguments), argument


def test_fields_of_results_say_what_they_mean():
    for name in sorted(set(kernels.__all__) - set(FUNCTIONS)):
        result = getattr(kernels, name)
        source, text = inspect.getsource(result), inspect.getdoc(result)
        fields = getattr(result, "_fields", getattr(result, "__dataclass_fields__", ()))
        for field in fields:
            commented = re.search(rf"\n    {field}: [^\n]*  # ", source)
            described = re.search(rf"(^|\n)\s*(``)?{field}\b", text)
            assert commented or described, f"{name}.{field} has no meaning"
