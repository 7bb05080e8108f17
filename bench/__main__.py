"""Runs a benchmark: ``python bench NAME [options]``.

``NAME`` is a file of this folder or a subfolder with a ``command.py``; a dot selects a
module in a subfolder (``python bench blinder.flip``). Without a name, prints the list.
Imports only the standard library, because rivals run in separate environments.
"""

import importlib
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent


def module(name) -> str:
    """Returns the dotted name of the module whose ``main`` to run.

    Raises:
      SystemExit: if no such benchmark exists.
    """
    path = FOLDER.joinpath(*name.split("."))
    for found, dotted in [
        (path / "command.py", f"{name}.command"),
        (path.with_suffix(".py"), name),
    ]:
        if found.is_file():
            return dotted
    raise SystemExit(f"NAME must be one of {', '.join(questions())}, got {name}.")


def questions() -> list[str]:
    """Returns the names of all benchmarks."""
    commands = [path.parent.name for path in FOLDER.glob("*/command.py")]
    files = [path.stem for path in FOLDER.glob("*.py")]
    return sorted({*commands, *files} - {"__main__"})


def main():
    """Runs the benchmark named by the first argument with the other arguments."""
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(f"{__doc__.splitlines()[0]}\n\nNAME: {', '.join(questions())}")
        return
    name = sys.argv.pop(1)
    sys.argv[0] = str(FOLDER / "__main__.py")  # Ray looks for modules in its folder.
    importlib.import_module(module(name)).main()


if __name__ == "__main__":
    main()
