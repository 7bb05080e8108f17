"""Rival frameworks: how to install each in its own environment, and how to run it.

FedJAX, pfl, Flower, TFF, Stable-Baselines3 and diffusers need incompatible versions of
packages. Each has its own virtual environment (Python 3.11) in a common folder:

    python bench harness.rivals DIR    # prints the commands that create them
"""

import pathlib
import shlex
import sys
from typing import NamedTuple

BENCH = pathlib.Path(__file__).resolve().parents[1]
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


class Rival(NamedTuple):
    """A framework, or one way to run it."""

    name: str
    folder: str  # name of its environment
    script: str
    arguments: tuple[str, ...] = ()
    launcher: tuple[str, ...] = ()  # words between Python and the script
    rounds: int = 10  # timed rounds per process
    passes: int | None = None  # repeats if it is slow; None: as many as ours


RIVALS = (
    Rival("FedJAX, jit", "fedjax", "rivals.fedjax", ("jit",)),
    Rival("FedJAX, pmap", "fedjax", "rivals.fedjax", ("pmap",)),
    Rival("pfl, one process", "pfl", "rivals.pfl"),
    Rival("pfl, two processes", "pfl", "rivals.pfl", launcher=TORCHRUN, rounds=20),
    Rival("TFF", "tff", "rivals.tff", rounds=5, passes=1),
    Rival("Flower", "flower", "rivals.flower", rounds=3, passes=1),
)

# Arguments of each pip call. Versions are the newest that the project still works with;
# some versions that TFF pins are no longer available.
PACKAGES = {
    "fedjax": (
        "fedjax==0.0.17 jax==0.4.30 jaxlib==0.4.30 dm-haiku==0.0.12 optax==0.2.2 "
        "chex==0.1.86 numpy<2 scipy<1.14",
    ),
    # Install torch first; otherwise pip picks a GPU build of another version.
    "pfl": ("torch==2.13.0", "pfl==0.6.0"),
    "sb3": ("torch==2.13.0", "stable-baselines3==2.9.2"),
    "diffusers": ("torch==2.13.0", "diffusers==0.42.1"),
    "flower": ("flwr[simulation]==1.41.0 torch==2.13.0",),
    "tff": (
        "tensorflow-cpu==2.14.1 numpy==1.26.4 scipy==1.11.4 attrs~=23.1 "
        "cachetools~=5.3 dm-tree==0.1.8 portpicker~=1.6 tqdm~=4.64 pandas<2.3 "
        "googleapis-common-protos==1.61.0 scikit-learn<1.5 decorator cloudpickle "
        "mpmath",
        "--no-deps tensorflow-federated==0.87.0 dp-accounting==0.4.3 "
        "tensorflow-privacy==0.9.0 tensorflow-probability==0.22.1 "
        "google-vizier==0.1.11 tensorflow-model-optimization==0.7.5 jax==0.4.20 "
        "jaxlib==0.4.20",
    ),
}


def install(folder, environments) -> list[str]:
    """Returns the commands that create a rival's environment.

    Example:
      >>> install("diffusers", pathlib.Path("rivals"))[1]
      'rivals/diffusers/bin/pip install torch==2.13.0'
    """
    home = environments / folder
    pip = [str(home / "bin" / "pip"), "install"]
    calls = [shlex.join([*pip, *packages.split()]) for packages in PACKAGES[folder]]
    return [shlex.join(["python3.11", "-m", "venv", str(home)]), *calls]


def python(folder, environments):
    """Returns a rival's interpreter, or prints a hint and returns None."""
    if environments is None:
        return None
    found = _interpreter(folder, environments)
    if found.exists():
        return found
    print(f"{folder} is not installed at {found}; see python bench harness.rivals DIR")
    return None


def _interpreter(folder, environments):
    return pathlib.Path(environments) / folder / "bin" / "python"


def command(rival, environments, work, out):
    """Returns the command that runs a rival, or None if it is not installed."""
    if environments is None:
        return None
    own = _interpreter(rival.folder, environments)
    if not own.exists():
        return None
    words = (work, out, rival.rounds, *rival.arguments)
    return call(rival.script, *words, python=own, launcher=rival.launcher)


def call(name, *words, python=sys.executable, launcher=()) -> tuple[str, ...]:
    """Returns the command that runs a bench module in a separate process."""
    return str(python), *launcher, str(BENCH), name, *map(str, words)


def main():
    """Prints the commands that create the environments."""
    for one in PACKAGES:
        print("\n".join(install(one, pathlib.Path(sys.argv[1]))))
