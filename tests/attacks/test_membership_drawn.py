"""Drawn runs with and without examples, and gradients that leak windows."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as oracle

from jaxanon import attacks

SEEDS = st.integers(0, 2**32 - 1)
few = functools.partial(settings, deadline=None)


def numbers(seed, shape):
    return np.random.default_rng(seed).normal(size=shape)


@few(max_examples=6)
@given(SEEDS, st.sampled_from([(1, 1), (3, 2)]), st.sampled_from([None, 1, 5, 99]))
def test_every_shadow_run_has_its_example_and_a_key_of_its_own(seed, size, chunk):
    num_examples, runs = size

    def observe(key, example, member):
        assert example.dtype == jnp.int32 and member.dtype == bool
        told = jnp.stack([example, member.astype(jnp.int32)])
        return {"told": told, "drawn": jax.random.bits(key, (3,))}

    key = jax.random.key(seed)
    found = attacks.shadow(key, observe, num_examples, runs, chunk=chunk)
    assert found["drawn"].shape == (2, runs, num_examples, 3)
    for side, _, example in np.ndindex(2, runs, num_examples):
        told = found["told"][side, :, example]
        np.testing.assert_array_equal(told, [[example, side]] * runs)
    drawn = np.asarray(found["drawn"])
    assert len(np.unique(drawn.reshape(-1, 3), axis=0)) == 2 * runs * num_examples
    whole = attacks.shadow(key, observe, num_examples, runs)
    jax.tree.map(np.testing.assert_array_equal, found, whole)


@given(
    st.sampled_from(["num_examples", "runs", "chunk"]), st.integers(max_value=0)
)  # fmt: skip
def test_fewer_than_one_shadow_is_refused(name, wrong):
    given = {"num_examples": 1, "runs": 1} | {name: wrong}
    with pytest.raises(ValueError, match=f"{name} must be >= 1, got {wrong}"):
        attacks.shadow(jax.random.key(0), lambda *seen: jnp.zeros(1), **given)


def ratio(known, one, spread):
    """Computes one statistic's ratio with SciPy's Gaussians, and 0 for a constant."""
    every = np.var(known)
    if not every:
        return 0.0
    variances = np.array([np.var(side) for side in known])
    if spread == "pooled":
        variances[:] = variances.mean()
    deviations = np.sqrt(np.maximum(variances, every / known.shape[1]))
    said = stats.norm.logpdf(one, known.mean(1), deviations)
    return said[1] - said[0]


@few(max_examples=25)
@given(
    SEEDS,
    st.sampled_from([2, 5]),
    st.sampled_from([(1, 1, 1), (3, 2, 2)]),
    st.sampled_from(["own", "pooled"]),
    st.sampled_from([np.float32, np.float64, int, bool]),
    st.booleans(),
)
def test_likelihood_ratios_are_those_of_gaussians(
    seed, runs, size, spread, dtype, still
):
    more, examples, statistics = size
    known = (3 * numbers(seed, (2, runs, examples, statistics))).astype(dtype)
    seen = (3 * numbers(seed + 1, (2, more, examples, statistics))).astype(dtype)
    if still:
        known[..., 0] = 1
    found = attacks.likelihood_ratios(known, seen, spread=spread)
    assert found.shape == (2, more, examples)
    for side, run, example in np.ndindex(found.shape):
        pairs = zip(known[..., example, :].T, seen[side, run, example], strict=True)
        expected = sum(
            ratio(np.float64(own.T), np.float64(one), spread) for own, one in pairs
        )
        assert found[side, run, example] == pytest.approx(expected, rel=1e-6, abs=1e-6)
    turned = attacks.likelihood_ratios(known[::-1], seen, spread=spread)
    np.testing.assert_allclose(turned, -found, rtol=1e-9, atol=1e-9)
    moved = attacks.likelihood_ratios(
        2.0 * known - 1, 2.0 * seen - 1, spread=spread
    )  # fmt: skip
    np.testing.assert_allclose(moved, found, rtol=1e-6, atol=1e-6)


@few(max_examples=10)
@given(SEEDS, st.sampled_from([4, 7, 20]), st.sampled_from([0.0, 0.01, 0.5]))
def test_members_are_those_of_runs_that_nobody_learned_from(seed, runs, delta):
    statistics = numbers(seed, (2, runs, 2, 1))
    statistics[1] += 1.5
    found = attacks.infer_members(statistics, delta=delta)
    half = runs // 2
    rest = attacks.likelihood_ratios(statistics[:, :half], statistics[:, half:])
    np.testing.assert_array_equal(found.evidence, rest)
    truth = np.repeat([0, 1], rest[0].size)
    assert found.auc == pytest.approx(oracle.roc_auc_score(truth, rest.ravel()))
    for rate, told in found.true_positives.items():
        false, true, _ = oracle.roc_curve(truth, rest.ravel(), drop_intermediate=False)
        assert told == pytest.approx(true[false <= rate].max())
    # At most the bound that n runs on each side can prove.
    assert 0 <= found.epsilon <= np.log(rest[0].size)
    more = attacks.infer_members(statistics, delta=delta / 2)
    assert more.epsilon >= found.epsilon - 1e-9
    order = np.random.default_rng(seed).permutation(2)
    again = attacks.infer_members(statistics[:, :, order], delta=delta)
    assert again.auc == pytest.approx(found.auc)


WRONG = {
    "runs": lambda x, least: x[:, : least - 1],
    "sides": lambda x, least: x[:1],
    "rank": lambda x, least: x[0],
    "nobody": lambda x, least: x[:, :, :0],
    "nothing": lambda x, least: x[..., :0],
    "infinite": lambda x, least: np.where(x == x.max(), np.inf, x),
    "NaN": lambda x, least: np.where(x == x.max(), np.nan, x),
}


@given(SEEDS, st.sampled_from(sorted(WRONG)), st.sampled_from([2, 4]))
def test_statistics_of_another_shape_or_not_finite_are_refused(seed, wrong, least):
    whole = numbers(seed, (2, 5, 1, 3))
    spoilt = WRONG[wrong](whole, least)
    with pytest.raises(ValueError, match=r"statistics must be (float\[2, runs|finite)"):
        attacks.infer_members(WRONG[wrong](whole, 4), delta=0.0)
    with pytest.raises(ValueError, match=r"known must be (float\[2, runs|finite)"):
        attacks.likelihood_ratios(WRONG[wrong](whole, 2), whole)
    if wrong != "runs":
        with pytest.raises(ValueError, match=r"seen must be (float\[2, runs|finite)"):
            attacks.likelihood_ratios(whole, spoilt)
    with pytest.raises(ValueError, match="have the same examples and statistics"):
        attacks.likelihood_ratios(whole, whole[..., : least // 2])


@given(st.text(max_size=8), st.floats().filter(lambda x: not 0 <= x < 1))
def test_another_spread_or_delta_is_refused(spread, delta):
    assume(spread not in ("own", "pooled"))
    statistics = numbers(0, (2, 4, 1, 1))
    with pytest.raises(ValueError, match="spread must be one of"):
        attacks.infer_members(statistics, delta=0.0, spread=spread)
    with pytest.raises(ValueError, match=r"delta must be in \[0, 1\)"):
        attacks.infer_members(statistics, delta=delta)
    with pytest.raises(ValueError, match="confidence must be"):
        attacks.infer_members(statistics, delta=0.0, confidence=delta)


def loss_fn(params, window, label):
    logits = jnp.tanh(window.ravel() @ params["w"] + params["b"])
    return -jnp.sum(label * jax.nn.log_softmax(logits))


def case(seed, batch, classes=3):
    """Returns parameters, windows and one-hot labels."""
    params = {"w": numbers(seed, (4, classes)), "b": numbers(seed + 1, classes)}
    params = jax.tree.map(np.float32, params)
    labels = np.random.default_rng(seed).integers(classes, size=batch)
    windows = np.float32(numbers(seed + 2, (batch, 2, 2)))
    return params, windows, np.eye(classes, dtype=np.float32)[labels]


def slopes(params, windows, labels):
    """Computes gradients window by window, in float64."""
    found = []
    for window, label in zip(windows, labels, strict=True):
        x = np.float64(window).ravel()
        tanh = np.tanh(x @ np.float64(params["w"]) + params["b"])
        own = (np.exp(tanh) / np.exp(tanh).sum() - label) * (1 - tanh**2)
        found.append({"w": np.outer(x, own), "b": own})
    return found


@few(max_examples=10)
@given(
    SEEDS,
    st.sampled_from([1, 3]),
    st.sampled_from([None, 0.01, 0.3, 1e6]),
    st.sampled_from([0.0, 0.5, 2.0]),
)
def test_a_client_sends_the_mean_of_its_windows_gradients(seed, batch, bound, noise):
    params, windows, labels = case(seed, batch)
    send = lambda **options: attacks.client_gradient(
        jax.random.key(seed), loss_fn, params, windows, labels, **options
    )
    if bound is None and noise:
        with pytest.raises(ValueError, match="requires clip_norm"):
            send(noise_multiplier=noise)
        return
    rows = slopes(params, windows, labels)
    norm = lambda row: np.sqrt(sum(np.sum(leaf**2) for leaf in row.values()))
    scales = [1.0 if bound is None else min(1.0, bound / norm(row)) for row in rows]
    found = send(clip_norm=bound)
    for name in params:
        mean = sum(s * row[name] for s, row in zip(scales, rows, strict=True)) / batch
        np.testing.assert_allclose(found[name], mean, rtol=1e-3, atol=1e-5)
    if bound is not None and noise:
        noisy = send(clip_norm=bound, noise_multiplier=noise)
        assert jax.tree.map(jnp.shape, noisy) == jax.tree.map(jnp.shape, params)
        moved = np.concatenate([(noisy[k] - found[k]).ravel() for k in params])
        # The root mean square of 15 Gaussians is 0.4 to 1.7 times the standard
        # deviation.
        ratio = np.sqrt(np.mean(moved**2)) * batch / (noise * bound)
        assert 0.4 < ratio < 1.7


@few(max_examples=5)
@given(st.floats(max_value=0), st.floats(max_value=-1e-3))
def test_a_bound_or_noise_below_nothing_is_refused(bound, noise):
    send = lambda **options: attacks.client_gradient(
        jax.random.key(0), loss_fn, *case(0, 1), **options
    )
    with pytest.raises(ValueError, match="clip_norms must be > 0"):
        send(clip_norm=bound)
    with pytest.raises(ValueError, match="noise_multipliers must be >= 0"):
        send(clip_norm=1.0, noise_multiplier=noise)


@few(max_examples=4)
@given(SEEDS, st.booleans())
def test_what_is_inverted_is_as_near_as_it_says_and_nearer_by_more_steps(seed, blank):
    params, windows, labels = case(seed, 1)
    key = functools.partial(jax.random.key, seed)
    sent = attacks.client_gradient(key(), loss_fn, params, windows, labels)
    sent = jax.tree.map(jnp.zeros_like, sent) if blank else sent
    flat = lambda tree: jnp.concatenate([tree["w"].ravel(), tree["b"]])
    before = np.inf
    for steps in (1, 12):
        found = attacks.invert_gradient(
            key(), loss_fn, params, sent, (2, 2), (3,), steps=steps, restarts=2
        )
        assert found.window.shape == (2, 2) and found.label.shape == (3,)
        assert float(found.label.sum()) == pytest.approx(1, abs=1e-5)
        (own,) = slopes(params, found.window[None], np.asarray(found.label)[None])
        norm = 1.0 if blank else float(optax.tree.norm(sent)) ** 2
        apart = float(jnp.sum((flat(own) - flat(sent)) ** 2)) / norm
        assert float(found.distance) == pytest.approx(apart, rel=1e-2, abs=1e-6)
        assert float(found.distance) <= before
        before = float(found.distance)


@given(st.sampled_from(["steps", "restarts"]), st.integers(max_value=0), SEEDS)
def test_no_steps_and_trees_of_another_kind_are_refused(name, wrong, seed):
    params, *_ = case(seed, 1)
    invert = functools.partial(
        attacks.invert_gradient, jax.random.key(0), loss_fn, params
    )
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got {wrong}"):
        invert(params, (2, 2), (3,), **{name: wrong})
    for other in ({"w": params["w"]}, params | {"b": params["b"][:2]}, params["w"]):
        with pytest.raises(ValueError, match="gradient must be a tree like params"):
            invert(other, (2, 2), (3,))
