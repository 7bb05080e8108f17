"""Time warping against two loops, dtaidistance, hand arithmetic, and properties."""

import functools

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from jaxanon.kernels.warping import cases, dtw, dtw_path, reference

pytestmark = pytest.mark.slow

SETTINGS = [
    ("wide", None, "squared_euclidean"),
    ("wide", 2, "euclidean"),
    ("tall", 0, "squared_euclidean"),
    ("one_channel", None, "absolute"),
    ("one_sample", 0, "squared_euclidean"),
    ("ragged", None, "euclidean"),
    ("ragged", 1, "squared_euclidean"),
]


@functools.cache
def _warped(name, band, local_cost, lanes=3):
    """Returns series, lengths, and the kernel's result."""
    case = cases.CASES[name]
    x, y, n, m = cases.series(case, 0)
    lengths = {"x_lengths": n, "y_lengths": m} if case.ragged else {}
    options = {"band": band, "local_cost": local_cost, "lanes": lanes}

    @jax.jit
    def both(x, y):
        return dtw(x, y, **lengths, **options), dtw_path(x, y, **lengths, **options)

    got, path = jax.tree.map(np.asarray, both(x, y))
    real = [(a[:i], b[:j]) for a, b, i, j in zip(x, y, n, m, strict=True)]
    return real, got, path


@pytest.mark.parametrize(("name", "band", "local_cost"), SETTINGS)
def test_agrees_with_reference(name, band, local_cost):
    # Drawn samples have no equally good paths, so the paths must agree too. Padding is
    # NaN, and pairs do not fill the lanes.
    real, got, path = _warped(name, band, local_cost)
    assert got.dtype == np.float32
    for k, (x, y) in enumerate(real):
        x, y = x.astype(float), y.astype(float)
        expected = reference.dtw(x, y, band=band, local_cost=local_cost)
        np.testing.assert_allclose(got[k], expected, rtol=1e-5)
        cells = reference.dtw_path(x, y, band=band, local_cost=local_cost)
        assert path.mask[k].sum() == len(cells)
        np.testing.assert_array_equal(
            path.x_index[k][: len(cells)], np.array(cells).T[0]
        )
        np.testing.assert_array_equal(
            path.y_index[k][: len(cells)], np.array(cells).T[1]
        )


@pytest.mark.parametrize(("name", "band", "local_cost"), SETTINGS)
def test_agrees_with_dtaidistance(name, band, local_cost):
    dtw_ndim = pytest.importorskip("dtaidistance.dtw_ndim")
    if local_cost == "absolute":
        local_cost = "euclidean"  # The same for one channel.
        assert name == "one_channel"
    # Its window counts the diagonal as 1, and a distance covers at least one path.
    window = None if band is None else band + 1
    inner = local_cost.replace("_", " ")
    real, got, _ = _warped(
        name, band, "absolute" if name == "one_channel" else local_cost
    )
    expected = [
        dtw_ndim.distance_fast(
            x.astype(float), y.astype(float), window=window, inner_dist=inner
        )
        for x, y in real
    ]
    np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_by_hand():
    # 0 0 | 3 5 4 | 0 against 0 | 3 4 | 0: every sample has an equal except 5, which is
    # 1 from the 4. The root of 1, and 1 without the root.
    x = jnp.array([0.0, 0.0, 3.0, 5.0, 4.0, 0.0])[None, :, None]
    y = jnp.array([0.0, 3.0, 4.0, 0.0])[None, :, None]
    corner = jnp.array([[[3.0, 4.0]]])
    origin = jnp.zeros((1, 1, 2))

    @jax.jit
    def found():
        warped = dtw(jnp.concatenate([x, 2 * x]), jnp.concatenate([y, 2 * y]))
        names = ("squared_euclidean", "euclidean", "absolute")
        return warped, [dtw(origin, corner, local_cost=name) for name in names]

    warped, across = found()
    np.testing.assert_array_equal(warped, [1, 2])
    # 3 and 4 in two channels: 5 in the Euclidean norm, 7 in the L1 norm.
    np.testing.assert_array_equal(np.ravel(across), [5, 5, 7])


@jax.jit
def _distances(x, y):
    return {
        "there": dtw(x, y, lanes=2),
        "back": dtw(y, x, lanes=2),
        "self": dtw(x, x, lanes=2),
        "band 2": dtw(x, y, band=2, lanes=2),
        "band 0": dtw(x, y, band=0, lanes=2),
    }


NUMBERS = st.floats(-100, 100, width=32, allow_subnormal=False)


@hypothesis.settings(deadline=None, max_examples=25, derandomize=True)
@hypothesis.given(arrays.arrays(np.float32, (2, 3, 5, 2), elements=NUMBERS))
def test_properties(pair):
    x, y = pair
    found = _distances(x, y)
    straight = np.sqrt(np.sum((x - y) ** 2, axis=(1, 2)))
    # A reversed table adds in another order. The others only compare, but separately
    # compiled programs may round differently.
    np.testing.assert_allclose(found["there"], found["back"], rtol=1e-5)
    up = 1 + 1e-6
    assert not found["self"].any()
    np.testing.assert_allclose(found["band 0"], straight, rtol=1e-5)
    assert (found["there"] <= found["band 2"] * up).all()
    assert (found["band 2"] <= found["band 0"] * up).all()
    # First and last samples are matched on any path.
    ends = np.sqrt(np.sum((x[:, [0, -1]] - y[:, [0, -1]]) ** 2, axis=(1, 2)))
    assert (found["there"] >= ends * (1 - 1e-5)).all()


def test_a_band_as_wide_as_the_series_is_no_band():
    # Sums of squares of integers are exact in any compilation.
    x, y, *_ = cases.series(cases.CASES["tall"], 0)
    x, y = np.round(4 * x), np.round(4 * y)
    warped = lambda band: jax.jit(functools.partial(dtw, band=band, lanes=3))(x, y)
    free, wide, narrow = map(warped, (None, 8, 0))
    np.testing.assert_array_equal(free, wide)
    assert (free < narrow).any()


@pytest.mark.parametrize(("setting", "lanes"), [(SETTINGS[0], 1), (SETTINGS[-1], 99)])
def test_lanes_change_no_bit(setting, lanes):
    expected, got = _warped(*setting)[1:], _warped(*setting, lanes)[1:]
    jax.tree.map(np.testing.assert_array_equal, got, expected)


def test_what_is_not_finite_stays_in_its_pair():
    # Pairs share a lane one after another; none may see the previous one's values.
    case = cases.CASES["wide"]
    x, y, *_ = cases.series(case, 0)
    _, expected, _ = _warped("wide", None, "squared_euclidean")
    x[1, 3, 0], y[4, 16, 2], x[5, 0, 1] = np.nan, np.inf, -np.inf
    got = np.array(jax.jit(functools.partial(dtw, lanes=3))(x, y))
    bad = np.array([False, True, False, False, True, True, False])
    assert np.isnan(got[bad]).all()
    np.testing.assert_array_equal(got[~bad], expected[~bad])


def test_no_sample_is_no_path():
    x = jnp.ones((4, 3, 1)).at[0].set(jnp.nan)
    y = 3 * jnp.ones((4, 3, 1))
    n, m = jnp.array([0, 2, 0, 99]), jnp.array([3, 0, 0, 99])

    @jax.jit
    def run(x, y):
        of = functools.partial(dtw, y=y, x_lengths=n, y_lengths=m, lanes=2)
        path = dtw_path(x, y, x_lengths=n, y_lengths=m, lanes=2)
        return of(x), path.mask, jax.grad(lambda x: jnp.sum(1 / of(x)))(x)

    distance, mask, gradient = run(x, y)
    # Lengths beyond the axis mean the whole axis: three times (3 - 1)^2, and the root.
    np.testing.assert_allclose(distance, [np.inf, np.inf, np.inf, 12**0.5], rtol=1e-6)
    assert not mask[:3].any() and mask[3].sum() == 3
    assert not gradient[:3].any() and gradient[3].any()


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_half_precision_is_widened(dtype):
    x, y, *_ = cases.series(cases.CASES["wide"], 0)
    x, y = jnp.asarray(300 * x, dtype), jnp.asarray(300 * y, dtype)
    run = jax.jit(functools.partial(dtw, lanes=3))
    got = run(x, y)
    assert got.dtype == jnp.float32
    expected = run(x.astype(jnp.float32), y.astype(jnp.float32))
    np.testing.assert_array_equal(got, expected)  # 300^2 would overflow float16.
    assert jax.eval_shape(jax.grad(lambda x: run(x, y).sum()), x).dtype == dtype


def test_float64_is_exact():
    case = cases.CASES["tall"]
    x, y, *_ = cases.series(case, 0, np.float64)
    with jax.enable_x64(True):
        got = jax.jit(dtw)(x, y)
        assert got.dtype == jnp.float64
        expected = [reference.dtw(a, b) for a, b in zip(x, y, strict=True)]
        np.testing.assert_allclose(got, expected, rtol=1e-13)


def test_clients_side_by_side_over_a_mesh_and_compiled_once(traced_once, over_a_mesh):
    x, y, n, m = cases.series(cases.CASES["ragged"], 0)

    def one(x, y, n, m):
        of = functools.partial(dtw, x_lengths=n, y_lengths=m, band=1, lanes=3)
        return jax.value_and_grad(lambda x: of(x, y).sum())(x)

    sharded = over_a_mesh(jax.vmap(traced_once(one)))
    swapped = [np.stack([a, a[::-1]]) for a in (x, y, n, m)]
    for _ in range(2):
        total, gradient = sharded(*swapped)
    _, expected, _ = _warped("ragged", 1, "squared_euclidean")
    np.testing.assert_allclose(total, [expected.sum()] * 2, rtol=1e-5)
    np.testing.assert_allclose(gradient[0], gradient[1][::-1], rtol=1e-5, atol=1e-7)


def test_tables_are_never_whole_in_memory():
    # 2,048 tables of 128 by 128 would be 134 MB.
    x = jax.ShapeDtypeStruct((2048, 128, 2), jnp.float32)
    lowered = jax.jit(functools.partial(dtw, lanes=32)).lower(x, x)
    assert lowered.compile().memory_analysis().temp_size_in_bytes < 16_000_000


GOOD = {"x": jnp.zeros((2, 3, 1)), "y": jnp.zeros((2, 4, 1))}


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"x": jnp.zeros((3, 1))}, ValueError, r"got shapes \(3, 1\) and \(2, 4, 1\)"),
        ({"x": jnp.zeros((2, 3, 2))}, ValueError, "equal pairs and channels"),
        ({"x": jnp.zeros((2, 0, 1))}, ValueError, "must be non-empty"),
        ({"y": jnp.zeros((2, 4, 1), int)}, TypeError, "got float32 and int32"),
        ({"x": jnp.zeros((2, 3, 1), jnp.bfloat16)}, TypeError, "floats of one dtype"),
        ({"x_lengths": jnp.ones(3, int)}, ValueError, r"pairs = 2, got int32\[3\]"),
        ({"y_lengths": jnp.ones(2)}, ValueError, r"y_lengths must be int\[pairs\]"),
        ({"band": -1}, ValueError, "band must be >= 0, got -1"),
        ({"lanes": 0}, ValueError, "lanes must be >= 1, got 0"),
        ({"local_cost": "l2"}, ValueError, "local_cost must be one of .*, got 'l2'"),
    ],
)
def test_says_what_was_wrong(change, error, message):
    for function in (dtw, dtw_path):
        with pytest.raises(error, match=message):
            function(**(GOOD | change))


def test_a_path_whose_costs_overflow_keeps_to_the_table_on_either_side():
    # All costs are infinite, so no move is better; edges leave but one.
    far = jnp.full((2, 4, 1), 3e38)
    n, m = jnp.array([4, 1]), jnp.array([1, 4])
    path = dtw_path(far, -far, x_lengths=n, y_lengths=m)
    along, still = [0, 1, 2, 3, 0, 0, 0], [0] * 7
    assert path.x_index.tolist() == [along, still]
    assert path.y_index.tolist() == [still, along]
    assert path.mask.tolist() == [[True] * 4 + [False] * 3] * 2


def test_what_is_static_may_come_from_numpy_and_not_from_a_trace():
    x = jnp.array([[[0.0], [3.0], [3.0], [0.0]]])
    y = jnp.array([[[0.0], [0.0], [3.0], [4.0]]])
    assert dtw(x, y, band=np.int64(0), lanes=np.int32(1)).tolist() == [5.0]
    for bad, message in (
        ({"band": 1.5}, "band must be a Python int, got 1.5"),
        ({"lanes": True}, "lanes must be a Python int, got True"),
    ):
        with pytest.raises(TypeError, match=message):
            dtw(x, y, **bad)
    with pytest.raises(TypeError, match="band must be known when .* static_argnames"):
        jax.jit(lambda band: dtw(x, y, band=band))(1)
