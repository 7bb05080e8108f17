"""Time of training DEEProtect for one user and of releasing windows."""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import jax
import jax.numpy as jnp
import numpy as np

import jaxanon as ja
from harness import rivals, timing
from jaxanon import methods

EPOCHS, BATCH, SINGLE = 80, 1 << 14, 3000
TRAINING_S, WINDOW_US, BATCHED = 20.0, 50.0, 1e5  # Maximum, maximum, minimum.
RELEASES = {
    "everything": {"mechanism": "privunit"},
    "named": {"mechanism": "span", "mode": "named"},
}


def rows(smoke):
    """Returns rows in seconds, microseconds and windows per second.

    Training uses one person's windows and includes compilation. A release uses a
    compiled program with constant weights, as after an export: for a single window, in
      a
    process on one core, and for a window of a batch.
    """
    data = ja.load("smartwatch", preset="acc10", public="exercise", private=["side"])
    own = data.train.labels["subject"] == data.train.labels["subject"][0]
    labels = {name: label[own] for name, label in data.train.labels.items()}
    one = data.train._replace(windows=data.train.windows[own], labels=labels)
    method = methods.deeprotect(data.spec, epsilon=5.0)
    epochs, count, repeats = (2, 256, 20) if smoke else (EPOCHS, BATCH, SINGLE)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        run = ja.train(
            method,
            data._replace(train=one),
            epochs=epochs,
            output_dir=f"{folder}/run",
            progress=False,
        )
        trained = time.perf_counter() - start
        words = rivals.call("deeprotect.speed", f"{folder}/run", repeats)
        done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
    found = [row("training for one user", trained, "s", TRAINING_S, len(one.windows))]
    for name, seconds in json.loads(done.stdout).items():
        told = f"a window, {name}", 1e6 * seconds, "microseconds"
        found.append(row(*told, WINDOW_US, 1))
        some = np.resize(data.test.windows, (count, *data.test.windows.shape[1:]))
        key = jax.random.key(1)
        seconds = timing.timed(sender(run, name), key, jnp.asarray(some)).seconds
        told = f"batched, {name}", count / seconds, "windows/s"
        found.append(row(*told, BATCHED, count))
    return found


def sender(run, name):
    """Returns a compiled release with constant weights."""
    config = dataclasses.asdict(run.method.config) | RELEASES[name]
    release = methods.deeprotect(run.spec, **config).anonymize
    return jax.jit(lambda key, x: release(key, run.state, x))


def single(folder, repeats) -> dict:
    """Returns median seconds of a window's release; each has a new key."""
    run = ja.open_run(pathlib.Path(folder))
    keys = list(jax.random.split(jax.random.key(0), repeats))
    window = jnp.zeros((1, run.spec.time, len(run.spec.channels)))
    found = {}
    for name in RELEASES:
        send = sender(run, name)
        send(keys[0], window).block_until_ready()
        took = [timing.timed_once(send, key, window) for key in keys]
        found[name] = float(np.median(took))
    return found


def row(of, value, unit, asked, windows):
    """Returns a row of the table of speed."""
    return {
        "kind": "speed",
        "of": of,
        "value": value,
        "unit": unit,
        "asked": asked,
        "windows": windows,
        **timing.about(),
    }


def main():
    """Times single windows on one core."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(json.dumps(single(sys.argv[1], int(sys.argv[2]))))
