"""Signals and warping of drawn shapes, lengths and padding, against SciPy and loops."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.signal
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_warping import warped

from jaxanon import kernels

pytestmark = pytest.mark.slow

few = settings(max_examples=8, deadline=None)
seeds = st.integers(0, 2**16)
# A block of the filter is 64 samples.
times = st.sampled_from((40, 70))
leads = st.sampled_from(((), (2,)))
channels = st.sampled_from((1, 3))
dtypes = st.sampled_from((np.float32, np.float16))


def recordings(seed, lead, time, width, dtype=np.float32):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(*lead, time, width)).astype(dtype)


def lengths_of(seed, lead, time):
    return np.random.default_rng(seed).integers(0, time + 1, size=lead)


def padded(x, lengths, filler):
    """Returns the recordings with ``filler`` in place of padding."""
    real = np.arange(x.shape[-2]) < np.asarray(lengths)[..., None]
    return np.where(real[..., None], x, np.asarray(filler, x.dtype))


designs = st.one_of(
    st.tuples(
        st.sampled_from(("lowpass", "highpass")),
        st.integers(1, 6),
        st.floats(1.5, 23.0),
    ),
    st.tuples(
        st.just("bandpass"),
        st.integers(1, 4),
        st.tuples(st.floats(1.5, 10.0), st.floats(12.0, 23.0)),
    ),
)


@settings(max_examples=60, deadline=None)
@given(design=designs)
def test_a_butterworth_filter_of_any_order_and_kind_is_scipys(design):
    kind, order, cutoff = design
    sections = kernels.butterworth(order, cutoff, 50.0, kind)
    theirs = scipy.signal.butter(order, cutoff, kind, fs=50.0, output="sos")
    assert sections.shape == theirs.shape and sections.dtype == np.float64
    at = np.linspace(0.5, 24.5, 25)
    respond = lambda sos: scipy.signal.sosfreqz(sos, at, fs=50.0)[1]
    np.testing.assert_allclose(respond(sections), respond(theirs), rtol=1e-6, atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(
    order=st.sampled_from((0, -1, 2)),
    cutoff=st.sampled_from((0.0, -1.0, 25.0, np.nan, np.inf)),
    kind=st.sampled_from(("lowpass", "highpass", "notch")),
)
def test_a_filter_that_there_is_not_is_refused(order, cutoff, kind):
    with pytest.raises(ValueError, match=r"order|cutoff_hz|kind"):
        kernels.butterworth(order, cutoff, 50.0, kind)


SECTIONS = {
    "lowpass": kernels.butterworth(3, 4.0, 50.0),
    "bandpass": kernels.butterworth(2, (1.0, 8.0), 50.0, "bandpass"),
}
filters = st.sampled_from(tuple(SECTIONS.values()))


@few
@given(sections=filters, seed=seeds, lead=leads, time=times, width=channels, at=dtypes)
def test_a_recording_in_two_parts_is_filtered_as_scipy_does_it_in_one(
    sections, seed, lead, time, width, at
):
    x = recordings(seed, lead, time, width, at)
    head, state = kernels.sosfilt(sections, x[..., :33, :])
    tail, _ = kernels.sosfilt(sections, x[..., 33:, :], state)
    y = np.concatenate([head, tail], axis=-2)
    assert y.dtype == at and y.shape == x.shape
    theirs = scipy.signal.sosfilt(sections, x.astype(np.float64), axis=-2)
    near = 2e-5 if at == np.float32 else 4e-3
    np.testing.assert_allclose(y, theirs, atol=near)


@few
@given(sections=filters, seed=seeds, lead=leads, width=channels)
def test_a_steady_state_is_scipys_and_stays(sections, seed, lead, width):
    first = recordings(seed, lead, 1, width)
    state = kernels.sosfilt_steady_state(sections, first[..., 0, :])
    theirs = scipy.signal.sosfilt_zi(sections)  # Response to a step from 0 to 1.
    expected = theirs[:, :, None] * first[..., None, :, :]
    np.testing.assert_allclose(state, expected, atol=1e-4)
    y, after = kernels.sosfilt(sections, np.repeat(first, 40, axis=-2), state)
    np.testing.assert_allclose(after, state, atol=1e-4)
    np.testing.assert_allclose(y, np.repeat(y[..., :1, :], 40, -2), atol=1e-4)


@few
@given(sections=filters, seed=seeds, lead=leads, width=channels)
def test_forward_and_backward_is_scipys_of_what_is_real(sections, seed, lead, width):
    x, padlen, time = recordings(seed, lead, 40, width), 9, 40
    lengths = lengths_of(seed, lead, time)
    got = kernels.sosfiltfilt(sections, padded(x, lengths, np.nan), lengths, padlen=9)
    for place in np.ndindex(*lead):
        length = int(lengths[place])
        assert np.all(np.asarray(got[place])[length:] == 0)
        if length > padlen:
            real = x[place][:length].astype(np.float64)
            theirs = scipy.signal.sosfiltfilt(sections, real, axis=0, padlen=padlen)
            np.testing.assert_allclose(got[place][:length], theirs, atol=1e-4)
        assert np.all(np.isfinite(got[place]))


@few
@given(seed=seeds, lead=leads, width=channels, some=st.booleans(), at=dtypes)
def test_statistics_are_those_of_the_samples_that_are_real(seed, lead, width, some, at):
    x = recordings(seed, lead, 12, width, at)
    real = np.random.default_rng(seed).random((*lead, 12)) < (0.6 if some else -1)
    found = kernels.window_statistics(np.where(real[..., None], x, at(7)), real)
    for place in np.ndindex(*lead):
        own = x[place][real[place]].astype(np.float64)
        each = {name: np.asarray(getattr(found, name))[place] for name in found._fields}
        if not len(own):
            assert all(np.all(value == 0) for value in each.values())
            continue
        deviations = own - own.mean(axis=0)
        std = deviations.std(axis=0)
        power = lambda p: (deviations**p).mean(axis=0)  # noqa: B023
        scaled = lambda p: np.where(std > 0, power(p) / np.maximum(std, 1e-9) ** p, 0)  # noqa: B023
        quartiles = np.percentile(own, [25, 75], axis=0)
        expected = {
            "mean": own.mean(axis=0),
            "std": std,
            "variance": std**2,
            "minimum": own.min(axis=0),
            "maximum": own.max(axis=0),
            "median": np.median(own, axis=0),
            "interquartile_range": quartiles[1] - quartiles[0],
            "skewness": scaled(3),
            "energy": (own**2).sum(axis=0),
            "rms": np.sqrt((own**2).mean(axis=0)),
        }
        for name, value in expected.items():
            np.testing.assert_allclose(each[name], value, rtol=2e-3, atol=2e-3)
        sign = x[place] < 0
        both = real[place][1:] & real[place][:-1]
        crossings = ((sign[1:] != sign[:-1]) & both[:, None]).sum(axis=0)
        np.testing.assert_array_equal(each["zero_crossings"], crossings)


@few
@given(
    seed=seeds,
    lead=leads,
    width=channels,
    length=st.sampled_from((1, 5, 41)),
    stride=st.sampled_from((1, 7)),
)
def test_windows_are_cut_as_a_loop_cuts_them(seed, lead, width, length, stride):
    x = recordings(seed, lead, 40, width)
    lengths = lengths_of(seed, lead, 40)
    cut = kernels.cut_windows(padded(x, lengths, np.nan), lengths, length, stride)
    starts = range(0, 40 - length + 1, stride)
    assert cut.windows.shape == (*lead, len(starts), length, width)
    for place in np.ndindex(*lead):
        for i, start in enumerate(starts):
            real = start + length <= lengths[place]
            window = x[place][start : start + length] if real else 0
            assert bool(cut.mask[place][i]) == real
            np.testing.assert_array_equal(cut.windows[place][i], window)


@few
@given(seed=seeds, lead=leads, width=channels, threshold=st.floats(0.5, 2.0))
def test_steps_are_half_the_crossings_of_real_samples(seed, lead, width, threshold):
    x, lengths = recordings(seed, lead, 40, width), lengths_of(seed, lead, 40)
    got = kernels.count_steps_threshold(
        padded(x, lengths, np.nan), lengths, threshold=threshold
    )
    for place in np.ndindex(*lead):
        magnitude = np.linalg.norm(x[place][: lengths[place]], axis=-1)
        above = magnitude >= threshold
        assert float(got[place]) == (above[1:] != above[:-1]).sum() / 2


@few
@given(seed=seeds, lead=leads)
def test_paces_are_counted_whatever_follows_the_recording(seed, lead):
    lengths = lengths_of(seed, lead, 70)
    x = 9.81 + 4 * recordings(seed, lead, 70, 1)
    count = lambda filler: kernels.count_steps_jerk_pace(
        padded(x, lengths, filler), 50.0, lengths
    )
    counts = np.asarray(count(np.nan))
    np.testing.assert_array_equal(counts, count(50.0))
    assert counts.dtype == np.int32 and np.all(counts >= 0)
    # A step is a maximum and a minimum, both in the interior.
    assert np.all(2 * counts <= np.maximum(lengths - 2, 0))
    assert np.all(counts[np.asarray(lengths) < 4] == 0)


COSTS = {
    "squared_euclidean": lambda d: (d**2).sum(),
    "euclidean": lambda d: np.sqrt((d**2).sum()),
    "absolute": lambda d: np.abs(d).sum(),
}


@few
@given(
    seed=seeds,
    width=channels,
    band=st.sampled_from((None, 0, 2)),
    local_cost=st.sampled_from(tuple(COSTS)),
)
def test_warping_costs_what_the_whole_table_says(seed, width, band, local_cost):
    x, y = recordings(seed, (3,), 6, width), recordings(seed + 1, (3,), 8, width)
    of_x, of_y = lengths_of(seed, (3,), 6), lengths_of(seed + 1, (3,), 8)
    options = {"x_lengths": of_x, "y_lengths": of_y, "band": band}
    options |= {"local_cost": local_cost}
    given_to = padded(x, of_x, np.nan), padded(y, of_y, np.nan)
    distance = np.asarray(kernels.dtw(*given_to, **options))
    path = kernels.dtw_path(*given_to, **options)
    for pair, (n, m) in enumerate(zip(of_x, of_y, strict=True)):
        mask = np.asarray(path.mask[pair])
        if not n * m:
            assert np.isinf(distance[pair]) and not mask.any()
            continue
        cost = COSTS[local_cost]
        least = warped(x[pair][:n], y[pair][:m], cost, band)
        total = np.sqrt(least) if local_cost == "squared_euclidean" else least
        np.testing.assert_allclose(distance[pair], total, rtol=1e-5)
        # The path goes from first to last by single steps, and has the same cost.
        i, j = (np.asarray(one[pair])[mask] for one in (path.x_index, path.y_index))
        assert (i[0], j[0], i[-1], j[-1]) == (0, 0, n - 1, m - 1)
        steps = set(zip(np.diff(i), np.diff(j), strict=True))
        assert steps <= {(0, 1), (1, 0), (1, 1)}
        walked = sum(cost(x[pair][a] - y[pair][b]) for a, b in zip(i, j, strict=True))
        np.testing.assert_allclose(walked, least, rtol=1e-5)


@few
@given(
    what=st.sampled_from(("dtw", "dtw_path", "sosfiltfilt", "cut_windows")),
    wrong=st.sampled_from((np.array([1.5]), np.array([[1]]), np.array([1, 1]))),
)
def test_lengths_that_are_none_are_refused(what, wrong):
    x = jnp.ones((1, 20, 1))
    calls = {
        "dtw": lambda: kernels.dtw(x, x, x_lengths=wrong),
        "dtw_path": lambda: kernels.dtw_path(x, x, y_lengths=wrong),
        "sosfiltfilt": lambda: kernels.sosfiltfilt(SECTIONS["lowpass"], x, wrong),
        "cut_windows": lambda: kernels.cut_windows(x, wrong, 4, 2),
    }
    with pytest.raises((TypeError, ValueError), match="lengths"):
        calls[what]()
