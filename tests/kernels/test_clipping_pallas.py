"""The GPU's programs, interpreted, against XLA's, plain loops and known answers."""

import functools

import chex
import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, PartitionSpec

from jaxanon.kernels import clipping
from jaxanon.kernels.clipping import cases, pallas_noise, pallas_sum, reference

pytestmark = pytest.mark.long

INTERPRETED = "pallas_interpreted"


@pytest.fixture
def small_chunks(monkeypatch):
    """Chunks of few rows and programs of few columns, so that there are several."""
    monkeypatch.setattr(pallas_sum, "CHUNK_BYTES", 100)
    monkeypatch.setattr(pallas_sum, "MOST_COLUMNS", 4)
    monkeypatch.setattr(pallas_sum, "PROGRAMS", 2)  # Several rows for each.


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("flat", jnp.float32),
        ("groups", jnp.bfloat16),
        ("groups", jnp.float16),
        ("one_row", jnp.float32),
    ],
)
def test_sum_is_that_of_the_loops(name, dtype, small_chunks):
    del small_chunks
    case = cases.CASES[name]
    rows = cases.rows(case, 1, dtype)
    weights = np.linspace(1.0, 0.0, case.num_rows, dtype=np.float32)
    how = {"groups": case.groups, "implementation": INTERPRETED}
    run = lambda rows: clipping.clipped_sum(
        rows, case.max_norms, weights=weights, **how
    )
    got = jax.jit(run)(rows).value
    wide = {name: np.asarray(x, np.float64) for name, x in rows.items()}
    one_by_one = [
        {k: leaf[i] for k, leaf in wide.items()} for i in range(case.num_rows)
    ]
    expected = reference.clipped_sum(one_by_one, case.groups, case.max_norms, weights)
    assert all(leaf.dtype == jnp.float32 for leaf in got.values())
    chex.assert_trees_all_close(got, expected, rtol=1e-5, atol=1e-5)


def _sum(rows, implementation, bound=1.0, weights=None, **how):
    return clipping.clipped_sum(
        rows, bound, weights=weights, implementation=implementation, **how
    ).value


@pytest.mark.parametrize(("num_rows", "num_columns"), [(1, 3), (7, 1), (40, 300)])
def test_whatever_the_shape(num_rows, num_columns, monkeypatch):
    # 40 rows of 300 numbers are 3 chunks, the last of them not full.
    monkeypatch.setattr(pallas_sum, "CHUNK_BYTES", 20_000)
    rows = jax.random.normal(jax.random.key(0), (num_rows, num_columns))
    expected, got = (_sum(rows, name) for name in ("xla", INTERPRETED))
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_bad_rows_padding_and_nothing_at_all(small_chunks):
    del small_chunks
    rows = jax.random.normal(jax.random.key(1), (9, 5))
    bad = rows.at[2].set(jnp.nan).at[4, 1].set(jnp.inf).at[8].set(1e30)
    bad = bad.at[6].set(jnp.nan)
    weights = jnp.ones(9).at[6].set(0)
    # Row 6 is padding; 2, 4 and 8 are dropped, for they have no norm.
    kept = rows.at[jnp.array([2, 4, 6, 8])].set(0)
    got = _sum(bad, INTERPRETED, weights=weights)
    np.testing.assert_allclose(got, _sum(kept, "xla"), rtol=1e-5, atol=1e-6)
    for shape in ((0, 5), (5, 0)):
        empty = _sum(jnp.zeros(shape), INTERPRETED)
        np.testing.assert_array_equal(empty, jnp.zeros(shape[1]))


def test_double_precision(small_chunks):
    del small_chunks
    with jax.enable_x64(True):
        rows = 3 * jax.random.normal(jax.random.key(2), (11, 6), jnp.float64)
        got = _sum(rows, INTERPRETED)
        norms = np.linalg.norm(np.asarray(rows), axis=1, keepdims=True)
        expected = np.sum(rows * np.minimum(1, 1 / norms), axis=0)
        assert got.dtype == jnp.float64
        np.testing.assert_allclose(got, expected, rtol=1e-13, atol=1e-13)


def test_sum_under_transformations(small_chunks):
    del small_chunks
    rows = jax.random.normal(jax.random.key(3), (2, 9, 5))
    both = lambda fn: [fn(name) for name in ("xla", INTERPRETED)]
    mapped = both(lambda name: jax.vmap(lambda r: _sum(r, name))(rows))
    chex.assert_trees_all_close(*mapped, rtol=1e-5, atol=1e-6)
    value = lambda name, r: jnp.sum(jnp.sin(_sum(r, name)))
    slopes = both(lambda name: jax.grad(functools.partial(value, name))(rows[0]))
    chex.assert_trees_all_close(*slopes, rtol=1e-5, atol=1e-6)


def mesh_of_gpus(**axes):
    """Of GPUs that need not be there; which, JAX 0.12 has to be told."""
    known = {}
    if "platform" in jax.sharding.AbstractDevice.__dataclass_fields__:
        kind = "NVIDIA H100 80GB HBM3"
        one = jax.sharding.AbstractDevice(kind, num_cores=132, platform="gpu")
        known = {"abstract_device": one}
    auto = (jax.sharding.AxisType.Auto,) * len(axes)
    sizes = tuple(axes.values())
    return jax.sharding.AbstractMesh(sizes, tuple(axes), axis_types=auto, **known)


def written_for_a_gpu(function, *args):
    """The program of a GPU."""
    traced = function.trace(*args)
    return traced.lower(lowering_platforms=("cuda",)).as_text()


def test_over_a_mesh_of_clients(small_chunks):
    del small_chunks
    rows = jax.random.normal(jax.random.key(8), (9, 5))
    here = Mesh(np.array(jax.devices("cpu")[:1]), ("clients",))

    def release(key, rows, name):
        total = clipping.clipped_sum(
            rows, 1.0, axis_name="clients", implementation=name
        )
        return clipping.add_noise_to_sum(key, total, 1.0, implementation=name)

    def over(name, mesh=here, **how):
        specs = PartitionSpec(), PartitionSpec("clients")
        one = functools.partial(release, name=name)
        whole = jax.shard_map(
            one, mesh=mesh, in_specs=specs, out_specs=PartitionSpec(), **how
        )
        return jax.jit(whole)

    # Pallas's interpreter does not know what varies over a mesh; its compiler does.
    got = over(INTERPRETED, check_vma=False)(jax.random.key(9), rows)
    expected = over("xla")(jax.random.key(9), rows)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
    abroad = over("pallas", mesh_of_gpus(clients=1))
    assert "clip_and_add" in written_for_a_gpu(abroad, jax.random.key(9), rows)


# Of Random123 1.14, file kat_vectors: key, counter, the two words.
KNOWN = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)),
    (
        (0x13198A2E, 0x03707344),
        (0x243F6A88, 0x85A308D3),
        (0xC4923A9C, 0x483DF7A0),
    ),
]


@pytest.mark.parametrize(("key", "counter", "words"), KNOWN)
def test_bits_are_the_published_ones(key, counter, words):
    got = pallas_noise.threefry(
        *map(jnp.uint32, counter), key=tuple(map(jnp.uint32, key))
    )
    assert int(got) == words[0] ^ words[1]


@hypothesis.given(st.integers(0, 2**31 - 1), st.integers(1, 2**32 - 1))
@hypothesis.example(2**31 - 1, 2**32 - 1)
def test_rows_begin_where_the_product_of_whole_numbers_says(row, num_columns):
    words = pallas_noise.row_start(np.array([row], np.int32), num_columns)
    assert [int(word[0]) for word in words] == list(divmod(row * num_columns, 2**32))


def test_nothing_that_grows_with_the_rows_is_written_into_the_program():
    noisy = lambda key, rows: clipping.clip_and_noise_per_client(
        key, rows, 1.0, 0.5, implementation=INTERPRETED
    )
    jaxpr = jax.make_jaxpr(noisy)(jax.random.key(0), jnp.ones((5000, 2)))
    assert sum(np.size(const) for const in jaxpr.consts) < 100


def test_counters_carry_into_the_high_word():
    first = jnp.uint32(7), jnp.uint32(0xFFFFFFFE)
    high, low = pallas_noise.counters(*first, jnp.arange(4))
    assert high.tolist() == [7, 7, 8, 8]
    assert low.tolist() == [0xFFFFFFFE, 0xFFFFFFFF, 0, 1]


@pytest.mark.parametrize("shape", [(), (5,), (3, 700)])
def test_noise_of_a_sum_is_the_same_noise(shape):
    total = clipping.BoundedSum(jnp.ones(shape), 2.0)
    plain, fused = (
        jax.jit(functools.partial(clipping.add_noise_to_sum, implementation=name))(
            jax.random.key(4), total, 0.7
        )
        for name in ("xla", INTERPRETED)
    )
    np.testing.assert_allclose(fused, plain, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_noise_of_each_client_is_the_same_noise(dtype):
    case = cases.CASES["groups"]
    rows = jax.tree.map(jnp.asarray, cases.rows(case, 2, dtype))
    rows["d"] = rows["d"].at[3].set(jnp.inf)
    bounds, groups = case.max_norms, case.groups
    plain, fused = (
        jax.jit(
            lambda key, name=name: clipping.clip_and_noise_per_client(
                key, rows, bounds, 0.5, groups=groups, implementation=name
            )
        )(jax.random.key(5))
        for name in ("xla", INTERPRETED)
    )
    chex.assert_trees_all_equal_shapes_and_dtypes(fused, plain)
    eps = float(jnp.finfo(dtype).eps)
    wide = functools.partial(jax.tree.map, lambda x: np.asarray(x, np.float64))
    # Beside the last rounding, half precision misses the one of the clipped rows.
    chex.assert_trees_all_close(wide(fused), wide(plain), rtol=3 * eps, atol=3 * eps)


def test_noise_under_transformations():
    total = clipping.BoundedSum(jnp.ones(5), 2.0)

    def add(name):
        noisy = lambda key, z: clipping.add_noise_to_sum(
            key, total, z, implementation=name
        )
        slope = jax.jacfwd(noisy, argnums=1)(jax.random.key(7), 0.5)
        return jax.vmap(noisy, (0, None))(
            jax.random.split(jax.random.key(6), 3), 0.5
        ), slope

    chex.assert_trees_all_close(add("xla"), add(INTERPRETED), rtol=1e-5, atol=1e-6)


def test_compile_once_per_shape_and_for_a_gpu_too():
    @functools.partial(jax.jit, static_argnums=2)
    @functools.partial(chex.assert_max_traces, n=2)
    def release(key, rows, name):
        total = clipping.clipped_sum(rows, 1.0, implementation=name)
        return clipping.add_noise_to_sum(key, total, 1.0, implementation=name)

    rows = jnp.ones((6, 5))
    for seed in range(3):
        release(jax.random.key(seed), rows, INTERPRETED)
    # No GPU is needed to write the program down for one, and Triton checks it.
    with jax.sharding.use_abstract_mesh(mesh_of_gpus()):
        text = written_for_a_gpu(release, jax.random.key(0), rows, "pallas")
    assert "clip_and_add" in text
    assert "scale_and_add_noise" in text


def test_says_what_was_wrong():
    rows = jnp.ones((3, 2))
    with pytest.raises(ValueError, match=r"must be one of \['pallas', .*got 'mosaic'"):
        clipping.clipped_sum(rows, 1.0, implementation="mosaic")
    total = clipping.clipped_sum(rows, 1.0)
    add = functools.partial(clipping.add_noise_to_sum, implementation=INTERPRETED)
    with pytest.raises(ValueError, match=r"threefry2x32, got a key of rbg"):
        add(jax.random.key(0, impl="rbg"), total, 1.0)
    with jax.enable_x64(True):
        wide = clipping.BoundedSum(jnp.ones(2, jnp.float64), 1.0)
        with pytest.raises(ValueError, match=r"float32 noise, got rows of float64"):
            add(jax.random.key(0), wide, 1.0)
    with pytest.raises(ValueError, match="[Ii]nterpret"):
        clipping.clipped_sum(rows, 1.0, implementation="pallas")
