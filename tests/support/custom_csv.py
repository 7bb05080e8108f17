"""Recordings in CSV, and the file that is made of them."""

import numpy as np

from jaxanon.datasets import import_csv

CHOICE = {"channels": ["x", "y"], "labels": ["act"], "rate_hz": 10.0}


def recorded(folder):
    """``folder`` with ann.csv: ten rows of sitting, then six of walking, that count."""
    acts = ["sit"] * 10 + ["walk"] * 6
    lines = [f"{i},{-i},{act}" for i, act in enumerate(acts)]
    (folder / "ann.csv").write_text("\n".join(["x,y,act", *lines]) + "\n")
    return folder


def made(folder, *names, **settings):
    """Arrays of the file that is made of these."""
    paths = [folder / f"{name}.csv" for name in names]
    settings = CHOICE | {"length": 4} | settings
    with np.load(import_csv(paths, folder / "own.npz", **settings)) as file:
        return dict(file)
