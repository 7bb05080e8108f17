"""Members in chunks: memory limits, and recovery after a kill."""

import types

import chex
import jax
import jax.numpy as jnp
import known
import numpy as np
import pytest
import toy

from jaxanon.federated.engine import memory
from jaxanon.sweeps import program
from jaxanon.sweeps.runner import sweep

GRID = {"rate": [0.1, 0.7], "goal": [1.0, 5.0]}


@pytest.fixture(scope="module")
def data():
    return toy.data()


def quick(method, data, **options):
    return sweep(method, data, **{"epochs": 2, "progress": False, **options})


@pytest.mark.slow
@pytest.mark.parametrize("layout", program.LAYOUTS)
def test_chunks_change_nothing_and_share_a_program(layout, data):
    whole = quick(
        known.build, data, grid=GRID, num_seeds=2, layout=layout, chunk_size=8
    )
    before = program.num_compiled()
    parts = quick(
        known.build, data, grid=GRID, num_seeds=2, layout=layout, chunk_size=3
    )
    assert program.num_compiled() == before + 1  # 3, 3 and 2 members.
    assert [one.settings for one in parts.members] == [
        one.settings for one in whole.members
    ]
    for one, other in zip(parts.runs, whole.runs, strict=True):
        chex.assert_trees_all_close(one.state, other.state, rtol=1e-6)
        assert one.config == other.config
        assert [row["round"] for row in one.history] == [3, 6]


@pytest.mark.slow
def test_one_after_another_saves_every_few(data, monkeypatch):
    sizes = []
    real = program.run_members

    def watched(shared, seeds, states, **options):
        sizes.append(len(seeds))
        return real(shared, seeds, states, **options)

    monkeypatch.setattr(program, "run_members", watched)
    quick(known.build, data, num_seeds=10, layout="scan", epochs=1)
    assert sizes == [5, 5]  # At most 8, as equal as possible.
    sizes.clear()
    quick(known.build, data, num_seeds=10, layout="vmap", epochs=1)
    assert sizes == [10]
    sizes.clear()
    # A member's state is 2 + 2 weights and settings and a round: 20 bytes.
    monkeypatch.setattr(memory, "free", lambda: 250)
    quick(known.build, data, num_seeds=10, layout="vmap", epochs=1)
    assert max(sizes) < 10 and sum(sizes) >= 10 and len(set(sizes)) == 1


@pytest.mark.slow
def test_a_killed_sweep_goes_on_after_the_chunks_that_are_done(
    data, tmp_path, monkeypatch
):
    whole = quick(known.build, data, grid=GRID)
    real, calls = program.run_members, []

    def killed(shared, seeds, states, **options):
        if calls:
            raise KeyboardInterrupt
        calls.append(np.asarray(states.hyper["goal"]).tolist())
        return real(shared, seeds, states, **options)

    monkeypatch.setattr(program, "run_members", killed)
    options = {"grid": GRID, "chunk_size": 2, "output_dir": tmp_path / "kept"}
    with pytest.raises(KeyboardInterrupt):
        quick(known.build, data, **options)
    assert calls == [[1.0, 5.0]]  # The first rate.
    there = sorted(path.name for path in options["output_dir"].glob("member-*"))
    assert there == ["member-0000", "member-0001"]

    rates = []

    def watched(shared, seeds, states, **more):
        rates.append(np.asarray(states.hyper["rate"]).tolist())
        return real(shared, seeds, states, **more)

    monkeypatch.setattr(program, "run_members", watched)
    again = quick(known.build, data, resume=True, **options)
    np.testing.assert_allclose(rates, [[0.7, 0.7]])
    for one, other in zip(again.runs, whole.runs, strict=True):
        chex.assert_trees_all_close(one.state, other.state, rtol=1e-6)
        assert one.history[-1]["losses"] == other.history[-1]["losses"]


def test_as_many_as_fit_are_taken_at_once():
    tried = []

    def need(size):
        tried.append(size)
        return 100 + 10 * size

    assert program.fit_chunk(need, 12, 220) == 12 and tried == [12]
    # 12 need 220 bytes. 150 / 220 of 12 is 8: two chunks, of 6 each, need 160. 6 x 150
    # / 160 is 5: three chunks, of 4 each, need 140.
    tried.clear()
    assert program.fit_chunk(need, 12, 150) == 4 and tried == [12, 6, 4]
    assert program.fit_chunk(need, 12, 0) == 1  # There is no smaller one.
    assert program.fit_chunk(need, 12, None) == 12  # The limit is unknown.


def test_a_program_needs_what_it_makes_beside_what_is_there():
    x, y = jnp.zeros(1000), jnp.zeros(10)
    compiled = jax.jit(lambda x, y: x[:10] + y).lower(x, y).compile()
    # Reads y and writes as many, 40 bytes each; x is already there.
    assert 80 <= program.memory_needed(compiled, x) < 1000
    silent = types.SimpleNamespace(memory_analysis=lambda: None)
    assert program.memory_needed(silent, x) == 0
