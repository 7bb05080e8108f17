"""Three methods for the same meta-gradient, and closed forms for it."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import kernels
from jaxanon.kernels import Objective, Phase, adapt, meta_gradient
from jaxanon.kernels.meta import reference
from jaxanon.kernels.meta.api import IMPLEMENTATIONS
from jaxanon.kernels.meta.cases import adversarial

pytestmark = pytest.mark.slow

FAST = [name for name in IMPLEMENTATIONS if name != "reference"]


@functools.cache
def solver(implementation, joint=False, num_steps=2, local_steps=1, **options):
    """Returns ``arrays -> (grads, infos)``, compiled once for all tests."""
    problem = adversarial(
        jax.random.key(0), num_steps=num_steps, local_steps=local_steps
    )
    objectives = problem.joint if joint else problem.objectives
    return jax.jit(
        lambda arrays: meta_gradient(
            problem.phases,
            objectives,
            *arrays,
            implementation=implementation,
            **options,
        )
    )


def compute(problem, implementation, **settings):
    return solver(implementation, **settings)(tuple(problem[3:]))


@pytest.mark.parametrize("implementation", FAST)
@pytest.mark.parametrize(("second_order", "local_steps"), [(True, 2), (False, 1)])
def test_agrees_with_the_reference_in_double_precision(
    implementation, second_order, local_steps
):
    with jax.enable_x64():
        problem = adversarial(jax.random.key(0), clients=2)
        problem = problem._replace(weights=jnp.array([1.0, 3.0]))
        settings = {"second_order": second_order, "local_steps": local_steps}
        got = compute(problem, implementation, **settings)
        expected = compute(problem, "reference", **settings)
        chex.assert_trees_all_close(got, expected, rtol=1e-10, atol=1e-14)


def test_one_pass_over_all_groups_gives_each_group_its_own_gradient():
    with jax.enable_x64():
        problem = adversarial(jax.random.key(1), clients=2)
        got, _ = compute(problem, "factored", joint=True)
        expected, _ = compute(problem, "reference")
        chex.assert_trees_all_close(got, expected, rtol=1e-10, atol=1e-14)


def test_second_order_terms_are_there_and_first_order_leaves_them_out():
    with jax.enable_x64():
        problem = adversarial(jax.random.key(0))
        second, _ = compute(problem, "factored")
        first, _ = compute(problem, "factored", second_order=False)
        norm = lambda tree: float(
            jnp.sqrt(sum(map(jnp.vdot, *[jax.tree.leaves(tree)] * 2)))
        )
        difference = jax.tree.map(jnp.subtract, first, second)
        assert 0.01 < norm(difference) / norm(second) < 1


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_quadratic_has_the_closed_form(implementation):
    # Inner loss a w²/2, k steps of λ: w' = (1 - λa)^k w; outer loss b w'²/2, so the
    # gradient is b (1 - λa)^(2k) w, and b (1 - λa)^k w' / w' in first order.
    inner = lambda params, a: a * params["net"]["w"] ** 2 / 2
    outer = lambda params, b: (b * params["net"]["w"] ** 2 / 2, {})
    phases = [Phase(("net",), inner, 0.1, num_steps=3)]
    objectives = [Objective(("net",), outer)]
    params = {"net": {"w": jnp.array(2.0)}}
    a, b, weights = jnp.array([1.0, 2.0]), jnp.array([3.0, 5.0]), jnp.array([1.0, 3.0])
    for second_order, power in ((True, 6), (False, 3)):
        grads, _ = meta_gradient(
            phases,
            objectives,
            params,
            a,
            b,
            weights,
            second_order=second_order,
            implementation=implementation,
        )
        # First order: b w' = b (1 - λa)³ w.
        per_client = b * (1 - 0.1 * a) ** power * 2.0
        expected = jnp.sum(weights * per_client) / 4
        np.testing.assert_allclose(grads["net"]["w"], expected, rtol=1e-5)


@pytest.mark.parametrize("implementation", FAST)
@pytest.mark.parametrize("chunk", [1, 3, 9])
def test_chunks_change_nothing(implementation, chunk):
    with jax.enable_x64():
        problem = adversarial(jax.random.key(2))
        got = compute(problem, implementation, chunk=chunk)
        expected = compute(problem, implementation)
        chex.assert_trees_all_close(got, expected, rtol=1e-12, atol=1e-15)


def test_a_chunk_has_a_client():
    for chunk in (0, -1):
        with pytest.raises(ValueError, match=f"chunk must be >= 1, got {chunk}"):
            solver("factored", chunk=chunk)(adversarial(jax.random.key(2))[3:])


@pytest.mark.parametrize(
    ("implementation", "chunk"),
    [("reference", None), ("materialised", None), ("factored", None), ("factored", 2)],
)
def test_whoever_has_weight_zero_may_hold_nan(implementation, chunk):
    problem = adversarial(jax.random.key(3))
    spoil = lambda leaf: leaf.at[jnp.array([0, 2])].set(jnp.nan)
    spoiled = problem._replace(
        support=jax.tree.map(spoil, problem.support),
        # Only padding: the mean of no rows.
        query=problem.query | {"mask": problem.query["mask"].at[0].set(0.0)},
    )
    for weights in (jnp.array([0.0, 1.0, 0.0, 3.0]), jnp.zeros(4)):
        one = compute(problem._replace(weights=weights), "factored", num_steps=1)
        two = compute(
            spoiled._replace(weights=weights), implementation, num_steps=1, chunk=chunk
        )
        chex.assert_trees_all_close(one, two, rtol=1e-4, atol=1e-6)


def test_a_client_of_weight_zero_and_masked_rows_change_nothing():
    with jax.enable_x64():
        problem = adversarial(jax.random.key(3))
        spoil = lambda leaf: leaf.at[1].set(77.0)
        other = problem._replace(
            support=jax.tree.map(spoil, problem.support),
            query=jax.tree.map(spoil, problem.query),
        )
        weights = jnp.array([1.0, 0.0, 2.0, 0.5])
        one = compute(problem._replace(weights=weights), "factored")
        two = compute(other._replace(weights=weights), "factored")
        chex.assert_trees_all_close(one, two, rtol=1e-12)

        pad = lambda leaf: jnp.concatenate([leaf, 5 + 0 * leaf[:, :1]], axis=1)
        query = {name: pad(leaf) for name, leaf in problem.query.items()}
        query["mask"] = query["mask"].at[:, -1].set(0.0)
        padded = compute(problem._replace(query=query), "factored")
        chex.assert_trees_all_close(
            padded, compute(problem, "factored"), rtol=1e-12, atol=1e-15
        )


def test_no_client_at_all_gives_zero():
    problem = adversarial(jax.random.key(4))._replace(weights=jnp.zeros(4))
    for leaf in jax.tree.leaves(compute(problem, "factored")):
        assert not jnp.any(leaf)


def test_under_vmap_over_learning_rates_and_compiled_once():
    with jax.enable_x64():
        problem = adversarial(jax.random.key(5), clients=2)

        @jax.jit
        @chex.assert_max_traces(n=1)
        def sweep(learning_rates):
            def one(learning_rate):
                phases = [
                    p._replace(learning_rate=learning_rate) for p in problem.phases
                ]
                return meta_gradient(phases, problem.objectives, *problem[3:])[0]

            return jax.vmap(one)(learning_rates)

        sweep(jnp.array([0.3, 0.2]))
        swept = sweep(jnp.array([0.0, 0.1]))
        expected, _ = compute(problem, "reference")
        got = jax.tree.map(lambda leaf: leaf[1], swept)
        chex.assert_trees_all_close(got, expected, rtol=1e-10, atol=1e-14)


def test_adapt_leaves_the_groups_that_rest():
    problem = adversarial(jax.random.key(6))
    support = jax.tree.map(lambda leaf: leaf[0], problem.support)
    adapted = adapt(problem.phases[:1], problem.params, support, factor=False)
    chex.assert_trees_all_equal(adapted["encoder"], problem.params["encoder"])
    assert jnp.any(adapted["adversary"]["in"] != problem.params["adversary"]["in"])


@pytest.mark.parametrize("second_order", [True, False])
def test_adapt_ends_where_the_reference_does(second_order):
    with jax.enable_x64():
        problem = adversarial(jax.random.key(6), clients=1)
        support = jax.tree.map(lambda leaf: leaf[0], problem.support)
        args = problem.phases, problem.params, support
        got = jax.jit(lambda: adapt(*args, second_order=second_order))()
        expected = jax.jit(lambda: reference.adapted(*args, second_order))()
        got = kernels.materialize(got)
        chex.assert_trees_all_close(got, expected, rtol=1e-11, atol=1e-14)


def test_adapt_says_which_group_is_unknown():
    params, loss = {"net": {"w": jnp.ones(2)}}, lambda params, x: 0.0
    with pytest.raises(ValueError, match=r"must be in params, \['net'\], got 'head'"):
        adapt([Phase(("head",), loss, 0.1)], params, None)
    with pytest.raises(TypeError, match=r"groups of a phase .* write \('net',\)"):
        adapt([Phase("net", loss, 0.1)], params, None)
    for num_steps, error, message in (
        (-1, ValueError, "num_steps must be >= 0, got -1"),
        (2.0, TypeError, "num_steps must be a Python int, got 2.0"),
    ):
        with pytest.raises(error, match=message):
            adapt([Phase(("net",), loss, 0.1, num_steps)], params, None)


def test_what_is_static_may_come_from_numpy_and_not_from_a_trace():
    params, support = {"net": {"w": jnp.ones(2)}}, jnp.ones(2)
    loss = lambda params, x: jnp.sum(params["net"]["w"] * x)
    step = lambda num: adapt([Phase(("net",), loss, 0.5, num)], params, support)
    chex.assert_trees_all_close(step(np.int64(2))["net"]["w"], jnp.zeros(2))
    with pytest.raises(TypeError, match="num_steps must be known when .* static_argn"):
        jax.jit(step)(2)


def test_says_what_was_wrong():
    problem = adversarial(jax.random.key(0))
    _, objectives, _, *arrays = problem
    with pytest.raises(
        ValueError, match="groups of a phase must be in params, .* got 'head'"
    ):
        meta_gradient([Phase(("head",), None, 0.1)], objectives, *arrays)
    with pytest.raises(ValueError, match="cover each group of params exactly once"):
        meta_gradient(problem.phases, objectives[:1], *arrays)
    unknown = (*objectives, Objective(("head",), None))
    with pytest.raises(ValueError, match=r"exactly once, .*'head'\]"):
        meta_gradient(problem.phases, unknown, *arrays)
    with pytest.raises(TypeError, match=r"groups of an objective .* write \('vae',\)"):
        meta_gradient(problem.phases, [Objective("vae", None)], *arrays)
    for weights, message in (
        (jnp.ones(3), r"array of support must be .* 3 clients as in weights, .*\(4, "),
        (jnp.ones((4, 1)), r"weights must be float\[clients\], got shape \(4, 1\)"),
    ):
        with pytest.raises(ValueError, match=message):
            meta_gradient(problem.phases, objectives, *arrays[:-1], weights)
    with pytest.raises(ValueError, match="implementation must be one of .*'fast'"):
        meta_gradient(problem.phases, objectives, *arrays, implementation="fast")
