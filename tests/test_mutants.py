"""The faults that ``support/mutants.py`` plants fit the sources."""

import pytest
from mutants import ROOT, faults


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.name)
def test_each_fault_changes_one_place_and_names_its_tests(fault):
    """After a change of such a line: update ``mutants.tsv``, and plant the fault."""
    source = (ROOT / fault.file).read_text(encoding="utf-8")
    assert source.count(fault.text) == 1 and fault.text != fault.replacement
    compile(source.replace(fault.text, fault.replacement), fault.file, "exec")
    assert fault.tests and all((ROOT / path).is_file() for path in fault.tests)
