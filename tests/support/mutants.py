"""Plants faults in the sources, one at a time, and runs the tests that must find them.

``mutants.tsv`` has one fault per line: a name, a file, a text in it that occurs once,
what replaces the text, test files, and the fault in words. Run it in a checkout without
changes, from the repository's root::

    python -P tests/support/mutants.py [NAME ...]

Each file is restored, also after an interrupt. The exit status is the number of faults
that no test found.
"""

import csv
import pathlib
import signal
import subprocess
import sys
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTEST = (sys.executable, "-P", "-m", "pytest", "-x", "-q", "-n", "0", "-m", "")


class Fault(NamedTuple):
    """A line of ``mutants.tsv``; ``\\n`` in its texts is a line break."""

    name: str
    file: str
    text: str
    replacement: str
    tests: tuple[str, ...]
    words: str


def faults() -> list[Fault]:
    """Returns the faults of ``mutants.tsv``."""
    lines = pathlib.Path(__file__).with_suffix(".tsv").read_text(encoding="utf-8")
    rows = [*csv.reader(lines.splitlines(), "excel-tab", quoting=csv.QUOTE_NONE)]
    broken = lambda text: text.replace("\\n", "\n")
    return [
        Fault(name, path, broken(text), broken(other), tuple(tests.split()), words)
        for name, path, text, other, tests, words in rows[1:]
    ]


def is_found(fault: Fault) -> bool:
    """Returns whether a test fails while the fault is in its file."""
    path = ROOT / fault.file
    source = path.read_text(encoding="utf-8")
    try:
        path.write_text(source.replace(fault.text, fault.replacement), encoding="utf-8")
        ended = subprocess.run((*PYTEST, *fault.tests), cwd=ROOT, capture_output=True)
    finally:
        path.write_text(source, encoding="utf-8")
    if ended.returncode not in (0, 1):  # No test ran, or pytest was interrupted.
        raise RuntimeError(f"{fault.name}: pytest ended with {ended.returncode}.")
    return ended.returncode == 1


def main(names: list[str]) -> int:
    """Plants the named faults, or all, and returns how many no test found."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    diff = ("git", "diff", "--quiet", "HEAD", "--", "*.py")
    if subprocess.run(diff, cwd=ROOT).returncode:
        raise SystemExit("the checkout must have no changes; commit them first.")
    missed = 0
    for fault in faults():
        if not names or fault.name in names:
            found = is_found(fault)
            missed += not found
            print(f"{'found' if found else 'MISSED'}\t{fault.name}\t{fault.words}")
    return missed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
