"""Benchmarks by name: ``python bench NAME [options]``.

``NAME`` is a folder with a ``command.py``, or a file, of this folder; a dot goes into a
folder (``python bench blinder.flip``). Imports the standard library alone, for rivals
run in environments of their own. Without a name, lists what there is.
"""

import importlib
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent


def module(name) -> str:
    """The dotted name of the module whose ``main`` is run.

    Raises:
      SystemExit: if there is none.
    """
    path = FOLDER.joinpath(*name.split("."))
    for found, dotted in [
        (path / "command.py", f"{name}.command"),
        (path.with_suffix(".py"), name),
    ]:
        if found.is_file():
            return dotted
    raise SystemExit(f"NAME must be of {', '.join(questions())}, got {name}.")


def questions() -> list[str]:
    """What can be asked."""
    commands = [path.parent.name for path in FOLDER.glob("*/command.py")]
    files = [path.stem for path in FOLDER.glob("*.py")]
    return sorted({*commands, *files} - {"__main__"})


def main():
    """Runs the benchmark that the first word names, with the words after it."""
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(f"{__doc__.splitlines()[0]}\n\nNAME: {', '.join(questions())}")
        return
    name = sys.argv.pop(1)
    sys.argv[0] = str(FOLDER / "__main__.py")  # Beside which Ray looks for modules.
    importlib.import_module(module(name)).main()


if __name__ == "__main__":
    main()
