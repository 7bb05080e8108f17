"""CSV recordings, and the custom file made from them."""

import numpy as np

from jaxanon.datasets import import_recordings

CHOICE = {"channels": ["x", "y"], "labels": ["act"], "rate_hz": 10.0}


def recorded(folder):
    """Writes ann.csv to ``folder``.

    Ten rows of sitting, then six of walking, that count.
    """
    acts = ["sit"] * 10 + ["walk"] * 6
    lines = [f"{i},{-i},{act}" for i, act in enumerate(acts)]
    (folder / "ann.csv").write_text("\n".join(["x,y,act", *lines]) + "\n")
    return folder


def made(folder, *names, **settings):
    """Returns the arrays of the file made from these recordings."""
    paths = [folder / f"{name}.csv" for name in names]
    settings = CHOICE | {"length": 4} | settings
    with np.load(import_recordings(paths, folder / "own.npz", **settings)) as file:
        return dict(file)
