"""Compares exported models on one core with JAX, and weight formats with float32.

Example: ``python bench edge --part windows --smoke``.

Blinder and ObscureNet with 768 numbers per window (MobiAct's size) are trained on the
smartwatch recordings, exported in float32, float16 and int8, and run by ONNX Runtime.
The benchmark measures milliseconds per window, bytes, and the accuracy of raw-data
classifiers on the output. JAX runs the same single window, compiled. ``--part`` selects
windows, choice (DySan's choice among 36 models), privatehub (20 sampling steps), start
(startup of the runtime) or stream (a replayed day of samples).
"""

import json
import os
import pathlib
import subprocess
import tempfile
import time

import jax
import jax.numpy as jnp
import numpy as np

import jaxanon as ja
from harness import rivals, timing
from harness.data import thin
from jaxanon import edge, exporting, methods
from jaxanon.attacks import train_raw_classifiers
from jaxanon.core.run import Run
from jaxanon.datasets import spec as datasets_spec
from jaxanon.exporting import agreement, onnx_graph, quantization
from jaxanon.exporting.exporter import WEIGHTS
from jaxanon.methods.dysan import online_selection

METHODS = {"blinder": 8, "obscurenet": 40}  # Epochs of each method.
FULL = {"blinder": methods.recipes("blinder")["paper"].settings, "obscurenet": {}}
TINY = {"latent_dim": 4, "hidden_sizes": (16,)}
TINY_OWN = {
    "blinder": {"samples_per_class": 8, "discriminator_steps": 1, "guided": False}
    | {
        "discriminator_hidden_sizes": (4,),
        "discriminator_rounds": 0,
        "second_order": False,
        "shadows": False,
    },
    "obscurenet": {"discriminator_hidden_sizes": (4,), "discriminator_steps": 1},
}
HUB = {"num_inference_steps": 20, "hide_threshold": 0.0}
HUB_TINY = {
    "widths": (8,),
    "heads": 2,
    "num_train_timesteps": 50,
    "num_inference_steps": 2,
}
HUB_TINY |= {"classifier_filters": (4,), "classifier_features": 4}
HUB_TINY |= {"strength": 1.0}  # From pure noise, as for windows to hide.
DYSAN_TINY = {"filters": (2, 3), "hidden_sizes": (4, 3), "predictor_filters": (3,)}


def main():
    """Runs the selected parts on one core."""
    args = timing.arguments(__doc__, part=timing.one_of(PARTS))
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    report = timing.Report(args.json, smoke=args.smoke)
    data = ja.load("smartwatch", public="exercise", private=["side"])
    if args.smoke:
        data = thin(data, 10)
    with tempfile.TemporaryDirectory() as folder:
        for part in [args.part] if args.part else PARTS:
            PARTS[part](report, data, pathlib.Path(folder), args.smoke)
    report.write()


def windows(report, data, folder, smoke):
    """Measures each method with each format of weights."""
    raw_classifiers = _raw_classifiers(data, "tree" if smoke else "mlp")
    for name, epochs in METHODS.items():
        settings = TINY | TINY_OWN[name] if smoke else FULL[name]
        method = getattr(methods, name)(data.spec, **settings)
        epochs = 1 if smoke else epochs
        run = ja.train(method, data, epochs=epochs, seed=0, progress=False)
        _one_method(report, run, data, raw_classifiers, folder, smoke)


def _one_method(report, run, data, raw_classifiers, folder, smoke):
    name, count = run.method.name, 20 if smoke else 1000
    rows = np.linspace(0, len(data.test.windows) - 1, count).astype(int)
    shown = data.test.windows[rows]
    # Use one of the models for the public classes.
    share = 1 if name == "blinder" else 1 / data.spec.num_classes(data.spec.public)
    used = sum(leaf.size for leaf in jax.tree.leaves(run.state.params)) * share
    shape = f"one window of {data.spec.time} x {len(data.spec.channels)}"
    whole = None
    for weights in WEIGHTS[::2] if smoke else WEIGHTS:
        path, label = folder / f"{name}-{weights}.onnx", f"{name}, {weights}"
        told = exporting.export(
            run, path, weights=weights, windows=shown, calibration=data.train.windows
        )
        took = device("windows", path, len(shown))
        size = 1 if weights == "int8" else 4
        work = timing.work(2 * used, size * used, took["median"] / 1e3)
        report.add_work(f"{label}, median", took["median"], "ms", shape, **work)
        report.add(f"{label}, 99th percentile", took["p99"], "ms", shape)
        report.add(f"{label}, file", told.size / 1e6, "MB", "")
        near, agree = 100 * told.share, f"{told.windows} windows, 0.001 deviations"
        report.add(f"{label}, windows that agree with JAX", near, "%", agree)
        kept = read(data, raw_classifiers, path, rows)
        for attribute, accuracy in kept.items():
            report.add(f"{label}, {attribute} read", accuracy, "% balanced", "")
        whole = whole or (took["median"], told.size, kept)
        faster = whole[0] / took["median"]
        report.add_work(f"{label} over float32", faster, "x as fast", shape, **work)
        report.add(f"{label}, file of float32's", told.size / whole[1], "share", "")
        worst = max(abs(kept[name] - whole[2][name]) for name in kept)
        report.add(f"{label}, accuracy off by at most", worst, "points", "")
    one = jax.jit(lambda key, x: run.method.anonymize(key, run.state, x))
    given = jax.random.key(0), jnp.asarray(shown[:1])
    jax_ms = 1e3 * timing.timed(one, *given, repeats=200).seconds
    report.add_work(
        f"{name}, ONNX Runtime over JAX",
        jax_ms / whole[0],
        "x as fast",
        f"{shape}, float32, one core",
        **timing.work(2 * used, 4 * used, whole[0] / 1e3),
    )


def _raw_classifiers(data, attacker):
    """Trains raw-data classifiers of both attributes."""
    spec = data.spec
    flat = lambda part: datasets_spec.standardise(spec, part.windows)
    names = {name: spec.num_classes(name) for name in (spec.public, *spec.private)}
    key = jax.random.key(7)
    train, test = flat(data.train), flat(data.test)
    return train_raw_classifiers(
        key, train, data.train.labels, names, test, attacker=attacker
    )


def read(data, raw_classifiers, path, which):
    """Returns balanced accuracies in % on test windows from an exported file."""
    spec = data.spec
    facts = edge.load(path).metadata
    drawn = [
        exporting.Draw(**{k: v for k, v in one.items() if k != "name"})
        for one in facts["draws"]
    ]
    rows = agreement.examples(data.test.windows[which], drawn, seed=3)
    made = agreement.run_graph(path.read_bytes(), rows)
    made = (made - np.float32(spec.mean)) / np.float32(spec.std)
    found = {}
    for name in (spec.public, *spec.private):
        truth = np.asarray(data.test.labels[name])[which]
        right = raw_classifiers.infer[name](made).argmax(axis=1) == truth
        found[name] = 100 * np.mean(
            [right[truth == c].mean() for c in np.unique(truth)]
        )
    return found


def choice(report, data, folder, smoke):
    """Times the choice among 36 DySan models for one window, in int8."""
    models = 3 if smoke else 36
    method = methods.dysan(data.spec, **(DYSAN_TINY if smoke else {}))
    state = method.init(jax.random.key(0))
    compose, one = online_selection.once(method)
    composed = jax.jit(compose)(dict(state.params))
    shown = data.test.windows[:32]
    rewritten, draws = exporting.explicit(
        lambda key, windows, public: one(key, composed, windows, public),
        shown[:1],
        np.zeros(1, np.int32),
    )
    rows = []
    for row in agreement.examples(shown, draws):
        windows = {"windows": row.pop("windows")}
        rows.append(windows | {"public": np.zeros(1, np.int32)} | row)
    shapes = {k: jax.ShapeDtypeStruct(v.shape, v.dtype) for k, v in rows[0].items()}
    outputs = ["safe", "public class", "private classes"]
    model = onnx_graph.to_onnx(rewritten, shapes, outputs, "dysan")
    numbers = sum(leaf.size for leaf in jax.tree.leaves(composed))
    for weights, size in (("float32", 4), ("int8", 1)):
        path = folder / f"choice-{weights}.onnx"
        small = quantization.in_int8(model, rows) if weights == "int8" else model
        path.write_bytes(small.SerializeToString())
        took = device("choice", path, models, 5 if smoke else 50)
        name = f"choice among {models}, {weights}"
        work = timing.work(
            2 * models * numbers, size * models * numbers, took["median"] / 1e3
        )
        report.add_work(f"{name}, median", took["median"], "ms", "one window", **work)
        report.add(f"{name}, 99th percentile", took["p99"], "ms", "")


def privatehub(report, data, folder, smoke):
    """Times one window in 20 steps; random weights do not affect the time."""
    settings = HUB_TINY if smoke else HUB
    hidden = (data.spec.classes[data.spec.public][0],)
    method = methods.privatehub(data.spec, classes_to_hide=hidden, **settings)
    state = jax.jit(method.init)(jax.random.key(0))
    run = Run(method, state, data.spec, None, [], {})
    path = folder / "privatehub.onnx"
    told = exporting.export(run, path, windows=data.test.windows[:5])
    took = device("windows", path, 5 if smoke else 200)
    one = jax.jit(lambda key, x: method.anonymize(key, state, x))
    given = jax.random.key(0), jnp.asarray(data.test.windows[:1])
    jax_s = timing.timed(one, *given, repeats=3 if smoke else 15).seconds
    cost = one.lower(*given).compile().cost_analysis()
    steps = settings["num_inference_steps"]
    seconds = took["median"] / 1e3
    work = timing.work(steps * cost["flops"], steps * told.size, seconds)
    shape = f"one window of {data.spec.time} x {len(data.spec.channels)}, {steps} steps"
    name = "privatehub, float32"
    report.add_work(f"{name}, median", took["median"], "ms", shape, **work)
    report.add(f"{name}, 99th percentile", took["p99"], "ms", shape)
    name = "privatehub, ONNX Runtime over JAX"
    report.add_work(name, jax_s / seconds, "x as fast", shape, **work)


def start(report, data, folder, smoke):
    """Measures startup until a model is loaded, in a new process."""
    path = _blinder(data, folder, smoke)
    tried = [device("load", path) for _ in range(3 if smoke else 9)]
    seconds = float(np.median([one["seconds"] for one in tried]))
    report.add("import of the runtime and load of Blinder", seconds, "s", "")
    most = max(one["resident_mb"] for one in tried)
    report.add("memory after it", most, "MB", "resident")


def stream(report, data, folder, smoke):
    """Replays a day at 50 and at 200 samples per second."""
    path = _blinder(data, folder, smoke)
    hours = 0.05 if smoke else 24
    for rate in (50, 200):
        told = device("stream", path, rate, hours)
        if told["samples"] != told["pushed"] or told["torn"] or told["gaps"]:
            raise SystemExit(f"samples were lost or repeated: {told}")
        name = f"{hours:g} h at {rate} Hz"
        shape = f"{told['pushed']} samples of {len(data.spec.channels)} channels"
        speed = hours * 3600 / told["seconds"]
        report.add(f"{name}, replayed", speed, "x real time", shape)
        report.add(f"{name}, memory", told["resident_mb"], "MB", "resident at most")
        grown = told["late_mb"] - told["early_mb"]
        report.add(f"{name}, memory grown by", grown, "MB", "from a tenth to the end")


def _blinder(data, folder, smoke):
    path = folder / "blinder.onnx"
    if not path.exists():
        method = methods.blinder(data.spec, **(TINY if smoke else FULL["blinder"]))
        state = jax.jit(method.init)(jax.random.key(0))
        run = Run(method, state, data.spec, None, [], {})
        exporting.export(run, path, windows=data.test.windows[:20])
    return path


def device(*words):
    """Returns the measurement of ``edge.device`` in a process without JAX."""
    command = rivals.call("edge.device", *words)
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    print(f"  {words[0]}: {time.perf_counter() - begin:.1f} s", flush=True)
    return json.loads(done.stdout)


PARTS = {
    "windows": windows,
    "choice": choice,
    "privatehub": privatehub,
    "start": start,
    "stream": stream,
}
