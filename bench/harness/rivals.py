"""Rivals in environments of their own: how each is installed, and how each is run.

FedJAX, pfl, Flower, TFF, Stable-Baselines3 and diffusers don't agree with each other or
with us about versions, so each has a virtual environment of its own (Python 3.11), a
folder in one for all of them:

    python bench harness.rivals DIR    # prints the commands that make them
"""

import pathlib
import shlex
import sys
from typing import NamedTuple

BENCH = pathlib.Path(__file__).resolve().parents[1]
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


class Rival(NamedTuple):
    """A framework, or a way of running it."""

    name: str
    folder: str  # of its environment
    script: str
    arguments: tuple[str, ...] = ()
    launcher: tuple[str, ...] = ()  # Between its Python and the script.
    rounds: int = 10  # timed in a process
    passes: int | None = None  # how often, where it is slow; None is as often as ours


RIVALS = (
    Rival("FedJAX, jit", "fedjax", "rivals.fedjax", ("jit",)),
    Rival("FedJAX, pmap", "fedjax", "rivals.fedjax", ("pmap",)),
    Rival("pfl, one process", "pfl", "rivals.pfl"),
    Rival("pfl, two processes", "pfl", "rivals.pfl", launcher=TORCHRUN, rounds=20),
    Rival("TFF", "tff", "rivals.tff", rounds=5, passes=1),
    Rival("Flower", "flower", "rivals.flower", rounds=3, passes=1),
)

# What pip is given, call by call. Each is pinned to the newest that its project still
# works with; TFF's own pins can't all be had any more.
PACKAGES = {
    "fedjax": (
        "fedjax==0.0.17 jax==0.4.30 jaxlib==0.4.30 dm-haiku==0.0.12 optax==0.2.2 "
        "chex==0.1.86 numpy<2 scipy<1.14",
    ),
    # torch first and alone, which else comes with a build for GPUs of other versions.
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
    """Commands that make a rival's environment.

    Example:
      >>> install("diffusers", pathlib.Path("rivals"))[1]
      'rivals/diffusers/bin/pip install torch==2.13.0'
    """
    home = environments / folder
    pip = [str(home / "bin" / "pip"), "install"]
    calls = [shlex.join([*pip, *packages.split()]) for packages in PACKAGES[folder]]
    return [shlex.join(["python3.11", "-m", "venv", str(home)]), *calls]


def python(folder, environments):
    """A rival's interpreter, or None where it is not installed, which is then told."""
    if environments is None:
        return None
    found = _interpreter(folder, environments)
    if found.exists():
        return found
    print(f"{folder} is not at {found}; python bench harness.rivals DIR")
    return None


def _interpreter(folder, environments):
    return pathlib.Path(environments) / folder / "bin" / "python"


def command(rival, environments, work, out):
    """What runs a rival, or None where it is not installed."""
    if environments is None:
        return None
    own = _interpreter(rival.folder, environments)
    if not own.exists():
        return None
    words = (work, out, rival.rounds, *rival.arguments)
    return call(rival.script, *words, python=own, launcher=rival.launcher)


def call(name, *words, python=sys.executable, launcher=()) -> tuple[str, ...]:
    """What runs a module of this folder in a process of its own."""
    return str(python), *launcher, str(BENCH), name, *map(str, words)


def main():
    """Prints the commands that make the environments."""
    for one in PACKAGES:
        print("\n".join(install(one, pathlib.Path(sys.argv[1]))))
