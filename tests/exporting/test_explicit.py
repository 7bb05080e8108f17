"""A key taken out of a function: the same function of what was drawn."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import kernels
from jaxanon.exporting import Draw, explicit

X = jnp.arange(3.0)


def test_every_law_is_handed_in_as_it_was_drawn():
    def fn(key, x):
        keys = jax.random.split(key, 4)
        one = x + 2 * jax.random.normal(keys[0], (3,))
        one += jax.random.uniform(keys[1], (3,), minval=-1.0, maxval=3.0)
        shown = jax.random.randint(jax.random.fold_in(keys[2], 5), (2,), 3, 9)
        return {"one": one, "shown": shown, "best": jax.random.gumbel(keys[3], (1, 4))}

    rewritten, draws = explicit(fn, X)
    assert draws == (
        Draw("normal", (3,)),
        Draw("uniform", (3,)),
        Draw("integers", (2,), 3, 9),
        Draw("gumbel", (1, 4)),
    )
    keys = jax.random.split(jax.random.key(7), 4)
    drawn = (
        jax.random.normal(keys[0], (3,)),
        jax.random.uniform(keys[1], (3,)),
        jax.random.randint(jax.random.fold_in(keys[2], 5), (2,), 3, 9),
        jax.random.gumbel(keys[3], (1, 4)),
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
    fn = lambda key, x: jax.vmap(lambda k, one: one + jax.random.normal(k))(
        jax.random.split(key, 3), x
    )
    rewritten, draws = explicit(fn, X)
    assert draws == (Draw("normal", (3,)),)
    np.testing.assert_allclose(rewritten(X, jnp.ones(3)), X + 1)


def test_loops_branches_and_custom_derivatives_stay():
    def fn(key, x):
        x = jax.nn.relu(x - jax.random.normal(key, (3,)))
        (total, _), steps = jax.lax.scan(
            lambda carry, one: ((carry[0] + one, carry[1]), carry[0] * x[0]),
            (0.0, x),
            x,
            reverse=True,
        )
        most = jax.lax.while_loop(lambda c: c < x[1] + 3, lambda c: c + x[2], total)
        known = jax.lax.platform_dependent(x, cpu=jnp.sin, default=jnp.sin)
        return jax.lax.cond(total > 0, lambda: most * known, lambda: steps)

    rewritten, draws = explicit(fn, X)
    drawn = jax.random.normal(jax.random.key(1), (3,))
    assert draws == (Draw("normal", (3,)),)
    told = fn(jax.random.key(1), X)
    np.testing.assert_allclose(rewritten(X, drawn), told, rtol=1e-6)
    assert "platform" not in str(jax.make_jaxpr(rewritten)(X, drawn))


def test_each_of_five_branches_is_the_one_of_its_number():
    def fn(key, number):
        ways = [lambda x, n=n: x + 10 * n for n in range(5)]
        return jax.lax.switch(number, ways, jax.random.normal(key))

    rewritten, _ = explicit(fn, jnp.int32(0))
    told = jax.jit(rewritten)  # Where the number is not known beforehand.
    found = [float(told(jnp.int32(n), jnp.float32(1))) for n in range(-1, 6)]
    assert found == [1, 1, 11, 21, 31, 41, 41]


def test_a_loop_that_runs_backwards_does():
    def fn(key, x):
        x = x + jax.random.normal(key, (3,))
        return jax.lax.scan(lambda c, one: (2 * c + one, c), 0.0, x, reverse=True)

    rewritten, _ = explicit(fn, X)
    total, before = rewritten(X, jnp.ones(3))  # Of 1, 2, 3, from behind.
    assert float(total) == 2 * (2 * 3 + 2) + 1
    np.testing.assert_allclose(before, [8, 3, 0])


@pytest.mark.parametrize(
    ("fn", "what"),
    [
        (lambda key, x: jax.random.bits(key, (3,)), "random_bits"),
        (
            lambda key, x: jax.lax.scan(
                lambda c, k: (c + jax.random.normal(k), None),
                0.0,
                jax.random.split(key),
            )[0],
            "scan",
        ),
    ],
)
def test_what_cannot_be_handed_in_is_named(fn, what):
    with pytest.raises(ValueError, match=f"what is drawn by '{what}' cannot be handed"):
        explicit(fn, X)
