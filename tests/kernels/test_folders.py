"""Every kernel has a reference to read and cases that tests and benchmarks share."""

import importlib
import inspect
import pathlib

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
