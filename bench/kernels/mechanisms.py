"""Mechanisms: noise on a grid and in floating point, and private choices."""

import jax
import jax.numpy as jnp
import numpy as np

from harness import timing
from jaxanon.kernels import mechanisms
from jaxanon.kernels.mechanisms import cases, reference
from jaxanon.kernels.mechanisms import grid as mechanisms_grid


def rows(report, smoke):
    """Compares Laplace noise with one copy, and grid noise with exact rejection."""
    case = cases.CASES["features" if smoke else "update"]
    _noise(report, case)
    _grid(report, smoke)
    _choices(report, 2**10 if smoke else 2**17)


def _noise(report, case):
    """Times noise on a flat array: a word, a clip, a logarithm of about 20, a scale."""
    x = jnp.zeros(case.shape)

    @jax.jit
    def release(key, x):
        bounded = mechanisms.clip_to_range(x, case.low, case.high)
        return mechanisms.laplace_mechanism(key, bounded, case.epsilon)

    took = timing.timed(release, jax.random.key(0), x)
    scale = x.size * (case.high - case.low) / case.epsilon
    _check_scale(took.result, scale)
    report.add(
        "laplace noise, float32",
        took.seconds / x.size * 1e9,
        "ns/number",
        f"{x.size} numbers",
        **_work(x.size, random_words=1, others=30, num_bytes=8, took=took),
    )


def _grid(report, smoke):
    """Times releases of windows on the grid and by rejection sampling."""
    case = cases.CASES["cohort"]
    people, size = (8, 16) if smoke else case.shape
    keys = jax.random.split(jax.random.key(1), people)
    x = jnp.zeros((people, size))

    @jax.jit
    @jax.vmap
    def on_grid(key, x):
        bounded = mechanisms.clip_to_range(x, case.low, case.high)
        most = max(-case.low, case.high)
        return mechanisms.grid_laplace_mechanism(
            key, bounded, case.epsilon, max_magnitude=most
        )

    @jax.jit
    @jax.vmap
    def in_floats(key, x):
        bounded = mechanisms.clip_to_range(x, case.low, case.high)
        return mechanisms.laplace_mechanism(key, bounded, case.epsilon)

    l1 = size * (case.high - case.low)
    grid = mechanisms.laplace_grid(l1, case.epsilon, size, max(-case.low, case.high))
    took = timing.timed(on_grid, keys, x)
    plain = timing.timed(in_floats, keys, x)
    _check_scale(took.result, grid.scale * grid.step)
    assert not np.any(np.remainder(took.result, grid.step))

    rng, few = np.random.default_rng(0), np.zeros(200)
    loops = timing.timed(lambda: reference.grid_laplace(rng, few, grid), repeats=3)
    each = took.seconds / x.size
    digits = len(mechanisms_grid.thresholds(grid.scale))
    # A digit needs two words and a comparison with a threshold; the sign one word.
    work = _work(
        x.size, random_words=2 * digits + 1, others=6 * digits, num_bytes=8, took=took
    )
    shapes = f"{people} people x {size}"
    report.add("laplace noise on a grid", each * 1e9, "ns/number", shapes, **work)
    ratio = took.seconds / plain.seconds
    report.add("laplace on a grid, over floats", ratio, "x as long", shapes, **work)
    ratio = loops.seconds / few.size / each
    report.add("laplace on a grid over loops", ratio, "x as fast", shapes, **work)


def _choices(report, num):
    """Times Gumbel-max in one program, and in NumPy on the host."""
    scores = np.linspace(0, 4, 20).astype(np.float32)
    bounded = mechanisms.bounded_value(jnp.asarray(scores), linf=1.0)
    choose = jax.jit(
        jax.vmap(lambda key: mechanisms.exponential_mechanism(key, bounded, 2.0))
    )
    took = timing.timed(choose, jax.random.split(jax.random.key(2), num))
    rng = np.random.default_rng(0)
    host = timing.timed(
        lambda: np.argmax(scores + rng.gumbel(size=(num, 20)), axis=1), repeats=3
    )
    law = reference.exponential_probabilities(list(scores), 1.0)
    for chosen in (took.result, host.result):
        share = np.bincount(np.asarray(chosen), minlength=20) / num
        np.testing.assert_allclose(share, law, atol=3 / np.sqrt(num))
    # A candidate: two words, two logarithms of about 15, a sum, a comparison. A choice:
    # read its key, write its result.
    work = _work(num, random_words=40, others=20 * 32, num_bytes=12, took=took)
    name, shapes = "exponential mechanism, 20 candidates", f"{num} choices"
    each = took.seconds / num * 1e9
    report.add(name, each, "ns/choice", shapes, **work)
    report.over("exponential over NumPy", host.seconds, work, shapes)


def _work(size, *, random_words, others, num_bytes, took):
    """Returns the work of ``size`` numbers with these costs each."""
    operations = size * (random_words * timing.RANDOM_WORD + others)
    more = {"random_words": size * random_words}
    return timing.work(operations, size * num_bytes, took.seconds, **more)


def _check_scale(noise, scale):
    size = float(jnp.mean(jnp.abs(noise)))
    assert abs(size / scale - 1) < 6 / np.sqrt(noise.size) + 1e-3, (size, scale)
