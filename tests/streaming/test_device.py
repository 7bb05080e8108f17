"""``jaxanon-edge run`` and ``anonymize --time grid`` release the same stream."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("onnx", reason="needs the extra `export`")

import handmade
import toy
from onnx import TensorProto, helper

from jaxanon.core.run import Run
from jaxanon.edge import command
from jaxanon.methods import build
from jaxanon.streaming import anonymize_recordings

RAMP = np.float32([1, 2, 4, 1, -2, 4, 1, 2])[None, :, None]  # Exact in every order.
COUNT = 1500


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Returns an ONNX file and a run that scale the samples of each window."""
    path = tmp_path_factory.mktemp("device") / "model.onnx"
    ramp = helper.make_tensor("ramp", TensorProto.FLOAT, [1, 8, 1], RAMP.ravel())
    nodes = [handmade.node("Mul", "windows", "ramp")]
    handmade.save(path, nodes, initializers=[ramp])
    spec = dataclasses.replace(
        toy.data().spec, channels=handmade.CHANNELS, time=8, rate_hz=50.0
    )
    scaled = lambda key, state, windows: windows * jnp.asarray(RAMP)
    method = build("orf", spec)
    state = method.init(jax.random.key(0))
    return path, Run(method._replace(anonymize=scaled), state, spec, None, [], {})


def drawn(kind, rng):
    """Draws the times of a recording as text."""
    index = np.arange(COUNT)
    packet = index // int(rng.integers(5, 20))
    delay = rng.uniform(0, 0.02, packet[-1] + 1)[packet]
    digits, times = {
        "exact": (3, index / 50),
        "jitter": (6, index / 50 + rng.uniform(-0.004, 0.004, COUNT)),
        "rounded": (2, 0.0037 + index / 64),
        "milliseconds": (3, 0.0037 + index / 30),
        "packets": (3, packet * (packet == 1).sum() / 50 + delay),
        "shared": (1, packet * (packet == 1).sum() / 50),
        "faster": (4, index / 100),
        "epoch": (3, 1.77e9 + index / 64),
        "gaps": (2, index / 50 + 0.3 * (index > 400) + 30 * (index > 900)),
    }[kind]
    return [f"{each:.{digits}f}" for each in times]


KINDS = "exact jitter rounded milliseconds packets shared faster epoch gaps".split()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("faults", [False, True])
def test_device_and_anonymize_give_one_stream(pair, tmp_path, kind, faults):
    rng = np.random.default_rng(len(kind))
    stamps = drawn(kind, rng)
    samples = rng.normal(size=(COUNT, 2)).round(3)
    rows = [f"{t},{x},{y}" for t, (x, y) in zip(stamps, samples, strict=True)]
    if faults:
        for row in rng.integers(20, COUNT - 20, 6):
            rows.insert(row, rows[row - 1])  # Repeated.
        for row in rng.integers(20, COUNT - 20, 6):
            rows[row], rows[row + 1] = rows[row + 1], rows[row]  # Swapped.
        del rows[700:703]
    path = tmp_path / "in.csv"
    path.write_text("\n".join(["time,acc x,acc y", *rows]) + "\n")
    model, run = pair
    out = tmp_path / "device.csv"
    words = ["run", str(model), "--input", str(path), "--output", str(out)]
    assert command.main([*words, "--hop", "3"]) == 0
    found = anonymize_recordings(
        run, path, tmp_path / "safe", time="grid", gaps="column", hop=3
    )
    device = [line.split(",") for line in out.read_text().splitlines()[2:]]
    safe = [line.split(",") for line in found.output[0].read_text().splitlines()[1:]]
    assert len(device) == len(safe) > 500
    assert [row[1] for row in device] == [row[3] for row in safe]
    numbers = lambda rows, columns: np.array(
        [[row[n] or "nan" for n in columns] for row in rows], np.float64
    )
    times = numbers(device, [0]), numbers(safe, [0])
    np.testing.assert_allclose(*times, atol=2e-6, rtol=0)
    np.testing.assert_array_equal(
        np.float32(numbers(device, [2, 3])), np.float32(numbers(safe, [1, 2]))
    )
