"""Rounds over clients on disk equal rounds over clients in memory."""

import functools
import json
import shutil
import types

import chex
import jax
import numpy as np
import pytest
import shared_out

from jaxanon import federated
from jaxanon.federated.engine import memory, streaming


@functools.cache
def named(make, size):
    """Returns the algorithm of ``make``, for clients with the single array x."""
    algorithm = make(size)
    bare = lambda clients: federated.Population(clients.rows["x"], clients.mask)
    return algorithm, bare


@pytest.fixture(scope="module")
def seven(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clients") / "seven"
    rows = [np.arange(n + 1.0, dtype=np.float32) for n in range(7)]
    federated.write_clients(folder, ({"x": row} for row in rows))
    return federated.open_clients(folder)


# Cohorts of 7 and 5 in threes: the last chunk is padded.
@pytest.mark.parametrize(
    ("make", "size", "chunk"),
    [
        (shared_out.averaging, 5, None),
        (shared_out.keeping, 5, 3),
        (shared_out.keeping, None, 3),
        (shared_out.meta, 5, 3),
    ],
)
def test_streamed_rounds_are_those_in_memory(seven, make, size, chunk):
    algorithm, bare = named(make, size)
    key, state = jax.random.key(1), algorithm.init(jax.random.key(0))
    streamed = functools.partial(federated.stream, algorithm, key)
    given = {"chunk": chunk, "prepare_fn": bare}
    state, first = streamed(state, seven, 2, **given)
    state, last = streamed(state, seven, 1, **given)
    wanted, info = shared_out.in_memory(make, size)
    chex.assert_trees_all_close(state, wanted, rtol=1e-5)
    told = jax.tree.map(lambda *a: np.concatenate(a), first, last)
    chex.assert_trees_all_close(info, told, rtol=1e-5)


def test_any_of_many_clients_is_read_as_it_was_written(tmp_path):
    def client(number):
        rng = np.random.default_rng(number)
        rows = 1 + number % 4
        return {"y": rng.integers(0, 9, rows), "x": rng.normal(size=(rows, 2, 3))}

    federated.write_clients(tmp_path / "many", map(client, range(300)))
    stored = federated.open_clients(tmp_path / "many")
    assert (stored.num_clients, stored.most_rows) == (300, 4)
    assert stored.client_bytes == 4 * (8 + 6 * 8 + 1)
    ids = [299, 3, 3, 0, 120]
    found = stored.read(ids)
    assert found.mask.sum(axis=1).tolist() == [4, 4, 4, 1, 1]
    for place, number in enumerate(ids):
        wanted = client(number)
        for name, array in wanted.items():
            own = found.rows[name][place]
            np.testing.assert_array_equal(own[: len(array)], array)
            assert not own[len(array) :].any()
    with pytest.raises(IndexError, match=r"in \[0, 299\], got 0 to 300"):
        stored.read([0, 300])


@pytest.mark.parametrize(
    ("clients", "message"),
    [
        ([], "at least one client"),
        ([{"x": np.zeros(0)}], r"same number of rows >= 1, got \[0\]"),
        ([{"x": np.zeros(2), "y": np.zeros(1)}], r"client 0 .* got \[1, 2\]"),
        (
            [{"x": np.zeros(2)}, {"x": np.zeros((2, 1))}],
            "client 1 must have arrays like",
        ),
        ([{"x": np.float32(1)}], r"array 'x' of client 0 must .* got float32\[\]"),
        ([{"x": np.array(["a"])}], r"array 'x' of client 0 must .* got <U1\[1\]"),
    ],
)
def test_what_is_not_written(tmp_path, clients, message):
    with pytest.raises(ValueError, match=message):
        federated.write_clients(tmp_path, clients)
    with pytest.raises(FileNotFoundError, match="must hold clients"):
        federated.open_clients(tmp_path)


def test_files_that_cannot_be_read(tmp_path):
    federated.write_clients(tmp_path, [{"x": np.ones(2)}, {"x": np.ones(1)}])
    with pytest.raises(FileExistsError, match="already holds clients"):
        federated.write_clients(tmp_path, [{"x": np.ones(2)}])
    about = tmp_path / "clients.json"
    told = json.loads(about.read_text())
    for change, message in (
        ({"format": 2}, r"damaged \(the format must be 1, got 2\)"),
        ({"num_clients": 3}, r"damaged \(the file must hold 3 clients, got 2\)"),
    ):
        about.write_text(json.dumps(told | change))
        with pytest.raises(ValueError, match=message):
            federated.open_clients(tmp_path)
    about.write_text(json.dumps(told | {"arrays": {"x": ["<f8", [9]]}}))
    with pytest.raises(ValueError, match="a client's record is too short"):
        federated.open_clients(tmp_path).read([0])
    about.write_text(json.dumps(told | {"arrays": {}}))
    assert federated.open_clients(tmp_path).read([0]).mask.shape == (1, 2)
    about.write_text(json.dumps(told))
    (tmp_path / "clients.array_record").write_bytes(b"something else")
    with pytest.raises(ValueError, match=r"are damaged \(.*write them again"):
        federated.open_clients(tmp_path)


def test_what_cannot_be_streamed(seven):
    algorithm, _ = named(shared_out.averaging, None)
    state = algorithm.init(jax.random.key(0))
    call = lambda n, algorithm=algorithm, **more: federated.stream(
        algorithm, jax.random.key(1), state, seven, n, **more
    )
    with pytest.raises(ValueError, match="num_rounds must be >= 1, got 0"):
        call(0)
    with pytest.raises(ValueError, match="chunk must be >= 1, or None, got 0"):
        call(1, chunk=0)
    with pytest.raises(ValueError, match="must have stages to be streamed"):
        call(1, algorithm._replace(stages=None))


def test_without_grain_the_extra_is_named(seven, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "grain", None)
    algorithm, bare = named(shared_out.averaging, None)
    state = algorithm.init(jax.random.key(0))
    with pytest.raises(ImportError, match=r"pip install 'jaxanon\[stream\]'"):
        federated.stream(algorithm, jax.random.key(1), state, seven, 1, prepare_fn=bare)


def test_less_memory_makes_smaller_chunks(seven, monkeypatch):
    algorithm, bare = named(shared_out.averaging, None)
    key, state = jax.random.key(1), algorithm.init(jax.random.key(0))
    programs = streaming._programs(algorithm.stages, bare)

    def size(free):
        monkeypatch.setattr(memory, "free", lambda: free)
        return streaming.choose_chunk_size(programs, key, state, seven, 1000)

    sizes = [size(free) for free in (None, 1 << 40, 1 << 18, 1 << 16, 0)]
    assert sizes[:2] == [1000, 1000] and sizes[-1] == 1
    assert 1000 > sizes[2] > sizes[3] > 1


def test_free_memory_is_the_machine_s_or_the_container_s(tmp_path, monkeypatch):
    table = tmp_path / "meminfo"
    table.write_text("MemTotal:    64 kB\nMemAvailable:    32 kB\n")
    assert memory.free_on_host(table, tmp_path) == 32 * 1024
    (tmp_path / "memory.max").write_text("9000\n")
    (tmp_path / "memory.current").write_text("1500\n")
    (tmp_path / "memory.stat").write_text("anon 7\ninactive_file 500\n")
    assert memory.free_on_host(table, tmp_path) == 8000
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.free_on_host(table, tmp_path) == 32 * 1024
    old = tmp_path / "memory"
    old.mkdir()
    (old / "memory.limit_in_bytes").write_text("700\n")
    (old / "memory.usage_in_bytes").write_text("600\n")
    (old / "memory.stat").write_text("total_inactive_file 20\n")
    assert memory.free_on_host(table, tmp_path) == 120
    shutil.rmtree(old)
    monkeypatch.setattr(memory.os, "sysconf", lambda name: 100)
    assert memory.free_on_host(tmp_path / "none", tmp_path) == 10_000

    told = {"bytes_limit": 100, "bytes_in_use": 30}
    device = types.SimpleNamespace(platform="gpu", memory_stats=lambda: told)
    monkeypatch.setattr(jax, "local_devices", lambda: [device])
    assert memory.free() == 70
    told.clear()
    assert memory.free() is None


def test_the_host_is_one_part_ahead_of_the_device(seven, monkeypatch):
    algorithm, bare = named(shared_out.averaging, None)
    state, waits = algorithm.init(jax.random.key(0)), []
    monkeypatch.setattr(streaming.jax, "block_until_ready", waits.append)
    key = jax.random.key(1)
    # Seven clients in threes make three parts per round.
    federated.stream(algorithm, key, state, seven, 3, chunk=3, prepare_fn=bare)
    assert len(waits) == 9 - 1
