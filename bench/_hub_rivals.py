"""Hugging Face diffusers: how it is installed, beside our own versions of everything.

python bench/_hub_rivals.py DIR    # prints the commands that make it
"""

import pathlib
import shlex
import sys

FOLDER = "diffusers"
# torch first and alone, which else comes with a build for GPUs of other versions.
PACKAGES = ("torch==2.13.0", "diffusers==0.42.1")


def python(environments) -> pathlib.Path:
    """The interpreter of its environment."""
    return environments / FOLDER / "bin" / "python"


def install(environments) -> list[str]:
    """Commands that make the environment.

    Example:
      >>> install(pathlib.Path("rivals"))[1]
      'rivals/diffusers/bin/pip install torch==2.13.0'
    """
    home = environments / FOLDER
    pip = [str(home / "bin" / "pip"), "install"]
    calls = [shlex.join([*pip, package]) for package in PACKAGES]
    return [shlex.join(["python3.11", "-m", "venv", str(home)]), *calls]


if __name__ == "__main__":
    print("\n".join(install(pathlib.Path(sys.argv[1]))))
