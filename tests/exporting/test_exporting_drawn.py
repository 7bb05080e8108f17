"""Keys taken out of drawn programs, drawn samples written, and files of one's own."""

import csv
import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jaxanon import datasets, exporting
from jaxanon.datasets import Data, Windows
from jaxanon.exporting import Draw

seeds = st.integers(0, 2**32 - 1)
shared = [HealthCheck.function_scoped_fixture]
SHAPES = (), (3,), (2, 3)
LAWS = {
    "normal": jax.random.normal,
    "uniform": jax.random.uniform,
    "gumbel": jax.random.gumbel,
}
STEPS = st.lists(
    st.tuples(
        st.sampled_from([*LAWS, "integers", "scaled"]),
        st.sampled_from(SHAPES),
        st.sampled_from(["plain", "jit", "cond", "vmap"]),
    ),
    max_size=4,
)


def one(law, key, shape):
    """A draw as a program asks for it, and what it is of."""
    if law == "integers":
        return jax.random.randint(key, shape, -2, 7) * 0.5
    if law == "scaled":
        return jax.random.uniform(key, shape, minval=-1.0, maxval=3.0)
    return LAWS[law](key, shape)


def asked(law, shape):
    """What has to be handed in for it, and how that is drawn by the same key."""
    if law == "integers":
        draw = Draw("integers", shape, -2, 7)
        return draw, lambda key: jax.random.randint(key, shape, -2, 7)
    law = {"scaled": "uniform"}.get(law, law)
    return Draw(law, shape), lambda key: LAWS[law](key, shape)


def used(how, x, drawn):
    """``x`` and what was drawn, by a program of some kind."""
    add = lambda x, drawn: jnp.tanh(x) + jnp.sum(drawn)
    if how == "jit":
        return jax.jit(add)(x, drawn)
    if how == "cond":
        return jax.lax.cond(
            x[0] > 0, add, lambda x, drawn: x - jnp.sum(drawn), x, drawn
        )
    if how == "vmap":
        return jax.vmap(add, (0, None))(x, drawn)
    return add(x, drawn)


@settings(max_examples=15, deadline=None)
@given(STEPS, seeds, st.booleans())
def test_a_program_of_what_was_drawn_is_the_program(steps, seed, abstract):
    x = np.float32(np.random.default_rng(seed).normal(size=3))

    def fn(key, x):
        keys = jax.random.split(key, len(steps) + 1)
        for number, (law, shape, how) in enumerate(steps):
            x = used(how, x, one(law, keys[number], shape))
        return {"x": x, "fixed": jnp.arange(2)}

    like = jax.ShapeDtypeStruct(x.shape, x.dtype) if abstract else x
    rewritten, draws = exporting.explicit(fn, like)
    told = [asked(law, shape) for law, shape, _ in steps]
    assert draws == tuple(draw for draw, _ in told)
    keys = jax.random.split(jax.random.key(seed), len(steps) + 1)
    drawn = [own(keys[n]) for n, (_, own) in enumerate(told)]
    found = rewritten(x, *drawn)
    want = fn(jax.random.key(seed), x)
    assert found.keys() == want.keys()
    for name, array in want.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape
        np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-5)
    if steps:  # And it is no other's: what is handed in is what counts.
        other = rewritten(x, *(-7 * array - 5 for array in drawn))
        assert not np.allclose(other["x"], found["x"])


FORBIDDEN = {
    "random_bits": lambda key, shape: jax.random.bits(key, shape),
    "random_unwrap": lambda key, shape: jax.random.key_data(key),
    "random_bits|while|scan|sort": lambda key, shape: jax.random.permutation(key, 5),
    "scan": lambda key, shape: jax.lax.scan(
        lambda total, own: (total + jax.random.normal(own), None),
        0.0,
        jax.random.split(key, 2),
    )[0],
}


@settings(max_examples=9, deadline=None)
@given(st.sampled_from(sorted(FORBIDDEN)), st.sampled_from(SHAPES), STEPS)
def test_what_cannot_be_handed_in_is_named(what, shape, steps):
    def fn(key, x):
        last, *keys = jax.random.split(key, len(steps) + 1)
        for own, (law, size, how) in zip(keys, steps, strict=True):
            x = used(how, x, one(law, own, size))
        return x + jnp.sum(FORBIDDEN[what](last, shape))

    with pytest.raises(ValueError, match=f"what is drawn by '.*({what})"):
        exporting.explicit(fn, np.zeros(3, np.float32))


@settings(max_examples=40, deadline=None, suppress_health_check=shared)
@given(
    st.integers(1, 40),
    st.sampled_from([1, 3]),
    st.sampled_from([10.0, 50.0, 1 / 3]),
    st.one_of(st.floats(0, 30), st.sampled_from([1e9, 300])),
    seeds,
)
def test_samples_are_test_windows_end_to_end(
    tmp_path, data, count, time, rate_hz, seconds, seed
):
    values = np.random.default_rng(seed).normal(size=(count, time, 2)) * 10
    windows = values.astype(np.float32)
    windows[:, 0, 0] = np.arange(count)  # So that each is known again.
    spec = dataclasses.replace(data.spec, rate_hz=rate_hz, time=time, units=("g", ""))
    path = tmp_path / "samples.csv"
    path.write_text("what was there before")
    whole = Data(spec, data.train, Windows(windows, {}))
    rows = exporting.write_samples(whole, path, seconds=seconds)
    header, *table = csv.reader(path.read_text().splitlines())
    assert header == ["time", "x [g]", "y"] and len(table) == rows
    found = np.array(table, float)
    np.testing.assert_allclose(found[:, 0], np.arange(rows) / rate_hz, atol=6e-7)
    # As many whole windows as there is time for, one at least, each as it is.
    number = max(1, min(count, math.floor(seconds * rate_hz / time + 1e-12)))
    assert rows == number * time
    places = found[::time, 1].astype(int)
    np.testing.assert_allclose(
        found[:, 1:], windows[places].reshape(-1, 2), rtol=1e-6, atol=1e-9
    )
    # In the order of time by sixes of neighbours, from the first to the last of all.
    for start in range(0, number, 6):
        own = places[start : start + 6]
        np.testing.assert_array_equal(
            own, np.minimum(own[0] + np.arange(len(own)), count - 1)
        )
    firsts = places[::6]
    assert firsts[0] == 0 and (np.diff(firsts) >= 0).all()
    if number == count:
        assert {*places.tolist()} >= {0, count - 1} or count % 6
    if len(firsts) > 1:
        assert firsts[-1] == max(0, count - 6)
        gaps = np.diff(firsts)
        assert gaps.max() - gaps.min() <= 1


TINY = {
    **{"latent": 2, "hidden": (8,), "per_class": 4, "support": 1, "query": 3},
    **{"extra": 0, "adversary_hidden": (4,), "discriminator_steps": 0},
    **{"second_order": False, "shadows": False},
}


@pytest.fixture(scope="module")
def run(untrained):
    return untrained("blinder", **TINY)


NAMES = ("activity", "gender")
HARMED = {
    "another time": lambda a: a | {"windows": a["windows"][:, :-1]},
    "another width": lambda a: a | {"windows": a["windows"][..., :1]},
    "one window": lambda a: a | {"windows": a["windows"][0]},
    "words": lambda a: a | {"windows": np.full(a["windows"].shape, "1")},
}


@settings(max_examples=25, deadline=None, suppress_health_check=shared)
@given(
    st.sampled_from([*HARMED, "lacks", "label", "length", "type", "broken", "rounds"]),
    st.sampled_from(NAMES),
    st.integers(1, 9),
    st.sampled_from([math.nan, math.inf, 1e300]),
    st.sampled_from([-1, 3, 200]),
)
def test_files_that_are_no_wearer_s(
    tmp_path, run, data, what, name, row, number, label
):
    own = {"windows": data.test.windows[:10]}
    own |= {each: data.test.labels[each][:10] for each in NAMES}
    message, rounds = "windows must be", 1
    if what in HARMED:
        own = HARMED[what](own)
    elif what == "broken":
        own["windows"] = own["windows"].astype(np.float64)
        own["windows"][row, 1, 1] = number
        message = f"windows must be finite, but 1 of 10.*first at index {row}"
    elif what == "lacks":
        gone = name if row % 2 else "windows"
        del own[gone]
        message = rf"lacks \['{gone}'\]; write it with numpy.savez"
    elif what == "rounds":
        rounds, message = 1 - row, "num_rounds must be >= 1"
    else:
        values = own[name].copy()
        values[row] = label
        message = rf"labels\['{name}'\] must"
        own[name] = {
            "label": values,
            "length": values[:row],
            "type": own[name] * 1.0,
        }[what]
    path = tmp_path / "own.npz"
    np.savez(path, **own)
    with pytest.raises((TypeError, ValueError), match=message):
        exporting.personalised(run, path, num_rounds=rounds)
    with pytest.raises(FileNotFoundError):
        exporting.personalised(run, tmp_path / f"no {what}.npz")
    path.write_bytes(path.read_bytes()[: 40 * row])
    with pytest.raises(ValueError, match="own.npz"):
        exporting.personalised(run, path)


@pytest.mark.parametrize("seconds", [-1.0, math.nan, math.inf])
def test_a_stream_of_no_length_is_refused(tmp_path, seconds):
    path = tmp_path / "samples.csv"
    with pytest.raises(ValueError, match="seconds must be finite and >= 0"):
        exporting.write_samples(datasets.load("smartwatch"), path, seconds=seconds)
    assert not path.exists()


def test_a_stream_of_no_window_is_refused(tmp_path):
    data = datasets.load("smartwatch")
    none = data._replace(test=jax.tree.map(lambda leaf: leaf[:0], data.test))
    with pytest.raises(ValueError, match="must have a test window"):
        exporting.write_samples(none, tmp_path / "samples.csv")


@given(st.floats(0, 99, width=16))
def test_what_rounding_moves_is_told_by_its_first_digit(rounding):
    told = exporting.moved(rounding)
    number = float(told.split(" by ")[1].split(" ")[0])
    assert number == pytest.approx(rounding, rel=0.34)
