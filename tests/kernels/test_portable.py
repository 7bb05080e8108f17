"""Functions rewritten to take random draws instead of a key."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxanon import kernels
from jaxanon.kernels import portable
from jaxanon.kernels.portable import Draw, explicit

X = jnp.arange(3.0)
LOGITS = jnp.log(jnp.array([0.2, 0.5, 0.3]))


def test_every_law_is_handed_in_as_it_was_drawn():
    def fn(key, x):
        keys = portable.split(key, 4)
        one = x + 2 * portable.normal(keys[0], (3,))
        one += portable.uniform(keys[1], (3,), low=-1.0, high=3.0)
        shown = portable.randint(portable.fold_in(keys[2], 5), (2,), 3, 9)
        return {"one": one, "shown": shown, "best": portable.gumbel(keys[3], (1, 4))}

    rewritten, draws = explicit(fn, X)
    assert draws == (
        Draw("normal", (3,)),
        Draw("uniform", (3,)),
        Draw("integers", (2,), 3, 9),
        Draw("gumbel", (1, 4)),
    )
    keys = portable.split(jax.random.key(7), 4)
    drawn = (
        portable.normal(keys[0], (3,)),
        portable.uniform(keys[1], (3,)),
        portable.randint(portable.fold_in(keys[2], 5), (2,), 3, 9),
        portable.gumbel(keys[3], (1, 4)),
    )
    made = rewritten(X, *drawn)
    chex.assert_trees_all_close(made, fn(jax.random.key(7), X), rtol=1e-6)
    told = str(jax.make_jaxpr(rewritten)(X, *drawn))
    assert "random" not in told and "key" not in told


def test_noise_on_a_grid_is_handed_in_as_integers():
    def fn(key, x):
        bounded = kernels.clip_to_range(x, 0.0, 2.0)
        return kernels.grid_laplace_mechanism(key, bounded, 1.0, max_magnitude=2.0)

    rewritten, (draw,) = explicit(fn, X)
    l1 = kernels.clip_to_range(X, 0.0, 2.0).l1_sensitivity
    grid = kernels.laplace_grid(l1, 1.0, 3, 2.0)
    assert draw == Draw("discrete laplace", (3,), scale=grid.scale)
    made = rewritten(X, jnp.array([0, 1, -2], jnp.int32))
    np.testing.assert_allclose(made, X + grid.step * np.array([0, 1, -2]), rtol=1e-6)


def test_draws_of_a_batch_are_of_the_batch():
    fn = lambda key, x: portable.vmap(lambda k, one: one + portable.normal(k), key, x)
    rewritten, draws = explicit(fn, X)
    assert draws == (Draw("normal", (3,)),)
    np.testing.assert_allclose(rewritten(X, jnp.ones(3)), X + 1)


def test_loops_branches_and_custom_derivatives_stay():
    def fn(key, x):
        x = jax.nn.relu(x - portable.normal(key, (3,)))
        (total, _), steps = jax.lax.scan(
            lambda carry, one: ((carry[0] + one, carry[1]), carry[0] * x[0]),
            (0.0, x),
            x,
            reverse=True,
        )
        most = jax.lax.while_loop(lambda c: c < x[1] + 3, lambda c: c + x[2], total)
        known = portable.by_platform(x, cpu=jnp.sin, default=jnp.sin)
        return jax.lax.cond(total > 0, lambda: most * known, lambda: steps)

    rewritten, draws = explicit(fn, X)
    drawn = jax.random.normal(jax.random.key(1), (3,))
    assert draws == (Draw("normal", (3,)),)
    told = fn(jax.random.key(1), X)
    np.testing.assert_allclose(rewritten(X, drawn), told, rtol=1e-6)
    assert "platform" not in str(jax.make_jaxpr(rewritten)(X, drawn))


def test_a_loop_that_runs_backwards_does():
    def fn(key, x):
        x = x + portable.normal(key, (3,))
        return jax.lax.scan(lambda c, one: (2 * c + one, c), 0.0, x, reverse=True)

    rewritten, _ = explicit(fn, X)
    total, before = rewritten(X, jnp.ones(3))  # Cumulative from the end of 1, 2, 3.
    assert float(total) == 2 * (2 * 3 + 2) + 1
    np.testing.assert_allclose(before, [8, 3, 0])


def test_a_key_draws_the_same_numbers_again_and_another_key_others():
    def fn(key, x):
        first, second = portable.split(key)
        same = portable.normal(first), portable.normal(first)
        others = portable.normal(second), portable.normal(portable.fold_in(first, 0))
        return jnp.stack([*same, *others, portable.uniform(first)]) + x[0]

    rewritten, draws = explicit(fn, X)
    assert draws == (*[Draw("normal", ())] * 3, Draw("uniform", ()))
    np.testing.assert_array_equal(rewritten(X, 1, 2, 3, 4), [1, 1, 2, 3, 4])


def test_a_program_that_was_compiled_before_draws_anew():
    """A cached program with a key differs from the exported one, and vice versa."""
    inner = jax.jit(lambda x: portable.by_platform(x, cpu=jnp.sin, default=jnp.cos))
    np.testing.assert_allclose(inner(X), np.sin(X), rtol=1e-6)
    rewritten, _ = explicit(lambda key, x: inner(x), X)
    np.testing.assert_allclose(rewritten(X), np.cos(X), rtol=1e-6)
    np.testing.assert_allclose(inner(X), np.sin(X), rtol=1e-6)


DRAWN = {
    "normal": (portable.normal, jax.random.normal),
    "uniform": (
        lambda key, shape: portable.uniform(key, shape, -1.0, 3.0),
        lambda key, shape: jax.random.uniform(key, shape, minval=-1.0, maxval=3.0),
    ),
    "bernoulli": (
        lambda key, shape: portable.bernoulli(key, 0.3, shape),
        lambda key, shape: jax.random.bernoulli(key, 0.3, shape),
    ),
    "randint": (
        lambda key, shape: portable.randint(key, shape, 3, 9),
        lambda key, shape: jax.random.randint(key, shape, 3, 9),
    ),
    "gumbel": (portable.gumbel, jax.random.gumbel),
    "exponential": (portable.exponential, jax.random.exponential),
    "laplace": (portable.laplace, jax.random.laplace),
    "categorical": (
        lambda key, shape: portable.categorical(key, LOGITS, shape),
        lambda key, shape: jax.random.categorical(key, LOGITS, shape=shape),
    ),
    "vmap": (
        lambda key, shape: portable.vmap(
            lambda key, x: x + portable.normal(key, shape), key, X
        ),
        lambda key, shape: jax.vmap(lambda key, x: x + jax.random.normal(key, shape))(
            jax.random.split(key, 3), X
        ),
    ),
    "fold_in": (
        lambda key, shape: portable.normal(portable.fold_in(key, 7), shape),
        lambda key, shape: jax.random.normal(jax.random.fold_in(key, 7), shape),
    ),
}


@pytest.mark.parametrize("name", DRAWN)
def test_draws_are_those_of_jax(name):
    """Equal numbers with a key; the same distribution with supplied draws."""
    own, jaxs = DRAWN[name]
    shape = (4000,)
    told = jaxs(jax.random.key(3), shape)
    np.testing.assert_array_equal(own(jax.random.key(3), shape), told)
    rewritten, (draw,) = explicit(lambda key: own(key, shape))
    rng = np.random.default_rng(0)
    sources = {
        "integers": lambda: rng.integers(3, 9, draw.shape),
        "gumbel": lambda: rng.gumbel(size=draw.shape),
        "normal": lambda: rng.normal(size=draw.shape),
        "uniform": lambda: rng.random(draw.shape),
    }
    supplied = sources[draw.law]()
    made = rewritten(supplied)
    assert made.dtype == told.dtype and made.shape == told.shape
    for moment in (np.mean, np.std):  # Same distribution: within 5 standard errors.
        spread = 5 * (1 + np.std(told)) * np.std(told) / np.sqrt(told.size) + 0.05
        assert abs(moment(made) - moment(told)) < spread


seeds = st.integers(0, 2**32 - 1)
SHAPES = (), (3,), (2, 3)
LAWS = {
    "normal": portable.normal,
    "uniform": portable.uniform,
    "gumbel": portable.gumbel,
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
    """Returns a requested draw and its expected description."""
    if law == "integers":
        return portable.randint(key, shape, -2, 7) * 0.5
    if law == "scaled":
        return portable.uniform(key, shape, -1.0, 3.0)
    return LAWS[law](key, shape)


def asked(law, shape):
    """Returns the expected draw, and the function that draws it from the same key."""
    if law == "integers":
        draw = Draw("integers", shape, -2, 7)
        return draw, lambda key: jax.random.randint(key, shape, -2, 7)
    law = {"scaled": "uniform"}.get(law, law)
    return Draw(law, shape), lambda key: LAWS[law](key, shape)


def used(how, x, drawn):
    """Returns ``x`` and the draws, from a program of the given kind."""
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
        keys = portable.split(key, len(steps) + 1)
        for number, (law, shape, how) in enumerate(steps):
            x = used(how, x, one(law, keys[number], shape))
        return {"x": x, "fixed": jnp.arange(2)}

    like = jax.ShapeDtypeStruct(x.shape, x.dtype) if abstract else x
    rewritten, draws = explicit(fn, like)
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
    if steps:  # The result depends only on the draws passed in.
        other = rewritten(x, *(-7 * array - 5 for array in drawn))
        assert not np.allclose(other["x"], found["x"])


FORBIDDEN = {
    "bits": lambda key, shape: jax.random.bits(key, shape),
    "key_data": lambda key, shape: jax.random.key_data(key),
    "permutation": lambda key, shape: jax.random.permutation(key, 5),
    "normal": lambda key, shape: jax.random.normal(key, shape),
    "split": lambda key, shape: jax.random.split(key)[0],
    "scan": lambda key, shape: jax.lax.scan(
        lambda total, own: (total + portable.normal(own), None),
        0.0,
        portable.split(key, 2),
    )[0],
    "number of the turn": lambda key, shape: jax.lax.scan(
        lambda total, n: (total + portable.normal(portable.fold_in(key, n)), None),
        0.0,
        jnp.arange(2),
    )[0],
    "vmap": lambda key, shape: jax.vmap(portable.normal)(
        jnp.stack(portable.split(key))
    ),
    "jit": lambda key, shape: jax.jit(portable.normal)(key),
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_a_draw_that_cannot_be_supplied_is_refused(what):
    def fn(key, x):
        first, last = portable.split(key)
        return x + portable.normal(first) + FORBIDDEN[what](last, (3,))

    with pytest.raises(ValueError, match=r"fn must draw with jaxanon\.kernels\."):
        explicit(fn, X)
