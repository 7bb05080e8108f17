"""Measures a device without JAX: python bench edge.device PART FILE ...

Runs in a separate process and prints the measurement as a line of JSON.
"""

import json
import resource
import sys
import time

START = time.perf_counter()


def main():
    """Runs the part named on the command line: load, windows, choice or stream."""
    what, path, *rest = sys.argv[1:]
    found = {"load": load, "windows": windows, "choice": choice, "stream": stream}
    print(json.dumps(found[what](path, *rest)))


def load(path):
    """Measures seconds to import the runtime and load a model, and memory after it."""
    from jaxanon import edge

    edge.load(path)
    return {"seconds": time.perf_counter() - START, "resident_mb": _resident()}


def windows(path, count):
    """Measures milliseconds of single windows, including random draws and checks."""
    import numpy as np

    from jaxanon import edge

    model = edge.load(path)
    shape = model.signature.time, len(model.signature.channels)
    rng = np.random.default_rng(0)
    took = []
    for number in range(int(count) + 20):
        window = rng.normal(size=shape).astype(np.float32)
        start = time.perf_counter()
        model.anonymize(window)
        if number >= 20:
            took.append(1e3 * (time.perf_counter() - start))
    return {"median": float(np.median(took)), "p99": float(np.percentile(took, 99))}


def choice(path, models, count):
    """Measures milliseconds of one window for several models with separate weights."""
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    with open(path, "rb") as file:
        graph = file.read()
    sessions = [
        onnxruntime.InferenceSession(graph, options) for _ in range(int(models))
    ]
    rng = np.random.default_rng(0)
    kinds = {"tensor(float)": np.float32, "tensor(int32)": np.int32}
    took = []
    for number in range(int(count) + 2):
        given = {
            one.name: rng.random(one.shape).astype(kinds[one.type])
            for one in sessions[0].get_inputs()
        }
        start = time.perf_counter()
        for session in sessions:
            session.run(None, given)
        if number >= 2:
            took.append(1e3 * (time.perf_counter() - start))
    return {"median": float(np.median(took)), "p99": float(np.percentile(took, 99))}


def stream(path, rate_hz, hours):
    """Replays hours of samples at a rate, in chunks of a second; counts the output."""
    import numpy as np

    from jaxanon import edge

    model = edge.load(path)
    rate, total = float(rate_hz), int(float(hours) * 3600 * float(rate_hz))
    chunk, rng = int(rate), np.random.default_rng(0)
    signal = rng.normal(size=(chunk, len(model.signature.channels))).astype(np.float32)
    outlet = edge.Stream(model, rate_hz=rate)
    samples, gaps, end, torn, resident = 0, 0, 0.0, 0, []
    began = time.perf_counter()
    for first in range(0, total, chunk):
        count = min(chunk, total - first)
        times = np.arange(first, first + count) / rate
        blocks = outlet.push(times, signal[:count])
        if first + chunk >= total:
            blocks += outlet.close()
        for block in blocks:
            torn += abs(block.start - end) > 0.5 / rate
            end = block.end
            samples += 0 if block.gap else len(block.samples)
            gaps += bool(block.gap)
        if first // chunk % max(1, total // chunk // 20) == 0:
            resident.append(_now())
    return {
        "seconds": time.perf_counter() - began,
        "pushed": total,
        "samples": samples,
        "gaps": gaps,
        "torn": int(torn),
        "end": end,
        "early_mb": resident[1],
        "late_mb": resident[-1],
        "resident_mb": _resident(),
    }


def _resident():
    """Returns the peak memory of this process in MB."""
    # getrusage would start at the memory of the parent process.
    with open("/proc/self/status", encoding="ascii") as file:
        (line,) = (line for line in file if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024 / 1e6


def _now():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6
