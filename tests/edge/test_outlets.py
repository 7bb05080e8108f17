"""Standard output as an outlet: its rows, and a reader that closes the pipe."""

import json
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from jaxanon.edge import rows
from jaxanon.edge.outlets import Pipe
from jaxanon.edge.types import Block, Signature

ONE = Signature(8, ("x",), ("g",), 4.0)

PROGRAM = """
import types, sys
import numpy as np
from jaxanon.edge import outlets
from jaxanon.edge.types import Block

print("before")
signature = types.SimpleNamespace(channels=("x",), units=("g",), rate_hz=4.0)
outlet = outlets.open_outlet("-", signature)
try:
    for index in range(int(sys.argv[1])):
        outlet.write(Block(index / 4, 4.0, np.ones((1, 1), np.float32), "",
                           (index + 1) / 4))
except BrokenPipeError:
    print("nobody reads this, and it must not fail")
outlet.close()
print("after")
sys.exit(7)
"""


def _run(count, **how):
    words = [sys.executable, "-P", "-c", PROGRAM, str(count)]
    return subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how
    )


def test_what_is_written_comes_through(tmp_path):
    child = _run(2, cwd=tmp_path)
    out, said = child.communicate(timeout=60)
    assert out.decode().splitlines() == [
        "before",
        "time,gap,x [g]",
        "0.000000,,1.0",
        "0.250000,,1.0",
        "after",
    ]
    assert (said, child.returncode) == (b"", 7)


def test_a_reader_that_goes_away_is_the_end(tmp_path):
    with _run(10**9, cwd=tmp_path) as child:
        for _ in range(3):  # Up to the first sample.
            assert child.stdout.readline()
        child.stdout.close()
        assert child.stderr.read() == b""
        assert child.wait(60) == 7


def test_a_full_pipe_that_does_not_block_is_waited_for():
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    outlet, count = Pipe(ONE, writer), 20_000
    block = Block(0.0, 4.0, np.ones((count, 1), np.float32), "", count / 4)
    thread = threading.Thread(target=outlet.write, args=(block,))
    thread.start()
    time.sleep(0.1)
    assert thread.is_alive()
    with os.fdopen(reader, "rb") as file:
        found = [file.readline() for _ in range(count + 1)]
    thread.join()
    os.close(writer)
    assert found[-1] == f"{(count - 1) / 4:.6f},,1.0\n".encode()


def test_blocks_that_do_not_belong_here():
    wide = Block(0.0, 4.0, np.ones((1, 2), np.float32), "", 0.25)
    with pytest.raises(
        ValueError, match=r"must be float32\[n, 1\].*got shape \(1, 2\)"
    ):
        rows.lines(ONE, wide)
    for value in (np.nan, np.inf):
        block = Block(0.0, 4.0, np.full((1, 1), value, np.float32), "", 0.25)
        with pytest.raises(ValueError, match="must be finite, got others at 0.0 s"):
            rows.lines(ONE, block)


def test_numbers_are_the_shortest_that_are_exact():
    numbers = np.random.default_rng(0).normal(size=(200, 1)).astype(np.float32)
    numbers[:4, 0] = 1e-30, 3.4e38, -0.0, 0.1
    block = Block(0.0, 4.0, numbers, "", 50.0)
    texts = [line.text.split(",")[-1] for line in rows.lines(ONE, block)]
    assert texts[3] == "0.1\n"
    np.testing.assert_array_equal(np.float32(texts), numbers[:, 0])
    samples = json.loads(rows.message(ONE, "", 0, block))["samples"]
    np.testing.assert_array_equal(np.float32(samples), numbers)


def test_long_reasons_are_cut():
    (line,) = rows.lines(ONE, Block(0.0, 4.0, np.ones((0, 1)), "a " * 999, 0.25))
    assert line.text == f"0.000000,{'a ' * 100},\n"
