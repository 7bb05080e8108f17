"""Membership inference: whether an example was in a client's training data."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon import metrics
from jaxanon.kernels.checks import one_of

SPREADS = ("own", "pooled")

RATES = (1e-3, 1e-2, 1e-1)  # False positive rates of reported true positive rates.


class Membership(NamedTuple):
    """Result of membership inference on runs that were not used to learn it."""

    evidence: np.ndarray  # float64[2, runs, examples], log ratios without and with it
    auc: float
    true_positives: dict[float, float]  # by false positive rate
    epsilon: float  # lower bound


def shadow(
    key, observe: Callable, num_examples: int, runs: int, *, chunk: int | None = None
):
    """Repeats a training with and without each example, as one compiled program.

    Args:
      key: typed PRNG key. Each run uses its own key, so runs are independent.
      observe: ``(key, example, member) -> tree of float[statistics]``, the attacker's
        statistics of one run. The index ``example``, ``int32[]``, is below
        ``num_examples``. The run includes the example if ``member``, ``bool[]``.
      num_examples: number of examples. Each run has one.
      runs: number of runs for each example and side, >= 1.
      chunk: number of runs in parallel (``vmap``). None runs all in parallel.

    Returns:
      Tree of ``float[2, runs, examples, statistics]``: without, then with the example.

    Raises:
      ValueError: if a number is below 1.

    Example:
      An attacker that sees the sum of an example and noise:

      >>> examples = jnp.array([1.0, 8.0])
      >>> def observe(key, example, member):
      ...     return member * examples[example][None] + jax.random.normal(key, (1,))
      >>> seen = shadow(jax.random.key(0), observe, 2, 500)
      >>> seen.shape, (seen.mean(axis=1)[1] - seen.mean(axis=1)[0]).ravel().round()
      ((2, 500, 2, 1), Array([1., 8.], dtype=float32))

    References:
      Shokri et al., Membership inference attacks against machine learning models, S&P
      2017; Carlini et al., S&P 2022, algorithm 1.
    """
    named = {"num_examples": num_examples, "runs": runs}
    for name, value in (named | ({} if chunk is None else {"chunk": chunk})).items():
        if value < 1:
            raise ValueError(f"{name} must be >= 1, got {value!r}.")
    shape = (2, runs, num_examples)
    total = 2 * runs * num_examples

    @jax.jit
    def program(key):
        number = jnp.arange(total)
        member, example = number >= total // 2, number % num_examples
        one = lambda indices: observe(jax.random.fold_in(key, indices[0]), *indices[1:])
        width = total if chunk is None else min(chunk, total)
        return jax.lax.map(one, (number, example, member), batch_size=width)

    fold = lambda leaf: leaf.reshape(*shape, *leaf.shape[1:])
    return jax.tree.map(fold, program(key))


def alignments(moved: dict, gradient: dict) -> jax.Array:
    """Measures how far a client moved along an example's gradient in each layer.

    This is the optimal linear statistic against Gaussian noise. Its noise has the same
    standard deviation for all gradients.

    Args:
      moved: dict of layers, a client's parameters before minus after training.
      gradient: dict of layers, the gradient of the example's loss.

    Returns:
      ``float32[layers]`` in order of names: inner products divided by the norm of the
      gradient, or 0 if the norm is 0.

    Example:
      >>> moved = {"a": jnp.array([3.0, 1.0]), "b": jnp.ones(2)}
      >>> alignments(moved, {"a": jnp.array([2.0, 0.0]), "b": jnp.zeros(2)})
      Array([3., 0.], dtype=float32)

    References:
      Nasr et al., Tight auditing of differentially private machine learning, USENIX
      Security 2023; Andrew et al., One-shot empirical privacy estimation for federated
      learning, ICLR 2024.
    """
    wide = lambda tree: [jnp.float32(leaf).ravel() for leaf in jax.tree.leaves(tree)]
    projections = []
    for name in sorted(gradient):
        pairs = list(zip(wide(moved[name]), wide(gradient[name]), strict=True))
        product = sum(one @ other for one, other in pairs)
        norm = jnp.sqrt(sum(other @ other for _, other in pairs))
        scale = jnp.where(norm > 0, norm, 1)
        projections.append(jnp.where(norm > 0, product / scale, 0))
    return jnp.stack(projections)


def log_odds(logits, label) -> jax.Array:
    """Returns a model's confidence in the right class on a near-Gaussian scale.

    Args:
      logits: ``float[classes]``.
      label: ``int32[]``.

    Returns:
      ``float[]``, log p / (1 - p) for the probability p of the class; accurate even
      where p rounds to 1.

    Example:
      >>> log_odds(jnp.array([2.0, 0.5]), 0)
      Array(1.5, dtype=float32)

    References:
      Carlini et al., Membership inference attacks from first principles, S&P 2022.
    """
    others = jnp.where(jnp.arange(len(logits)) == label, -jnp.inf, logits)
    return logits[label] - jax.nn.logsumexp(others)


def likelihood_ratios(known, seen, *, spread: str = "own") -> np.ndarray:
    """Computes LiRA's log-likelihood ratios of statistics with and without an example.

    Each statistic of the shadow runs is modelled as a Gaussian for each example and
    side. Log ratios of the densities are summed over statistics.

    Args:
      known: ``float[2, runs, examples, statistics]`` from ``shadow``, at least 2 runs.
      seen: statistics of the runs in question. Same form.
      spread: "own" estimates a standard deviation for each side; "pooled" estimates one
        for both. Pooling is more accurate if added noise of fixed scale dominates.

    Returns:
      ``float64[2, runs, examples]`` for ``seen``. A variance is at least the total
      variance of the statistic divided by the number of known runs, because rarer
      events may not have occurred. A constant statistic contributes nothing.

    Raises:
      ValueError: if shapes differ, runs are too few, values are not finite, or
        ``spread`` is unknown.

    Example:
      >>> known = np.array([[-1.0, 1.0], [1.0, 3.0]])[:, :, None, None]
      >>> seen = np.array([[0.0], [2.5]])[:, :, None, None]
      >>> likelihood_ratios(known, seen).ravel()  # Deviations 1, around 0 and 2.
      array([-2.,  3.])

    References:
      Carlini et al., Membership inference attacks from first principles, S&P 2022,
      equation 4 and section IV.
    """
    one_of("spread", spread, SPREADS)
    known, seen = _checked("known", known, 2), _checked("seen", seen, 1)
    if known.shape[2:] != seen.shape[2:]:
        raise ValueError(
            "known and seen must have the same examples and statistics, got shapes "
            f"{known.shape} and {seen.shape}."
        )
    means, variances = known.mean(1), known.var(1)
    if spread == "pooled":
        variances = np.repeat(variances.mean(0, keepdims=True), 2, axis=0)
    every = known.var((0, 1))
    variances = np.maximum(variances, every / known.shape[1])
    safe = np.where(variances > 0, variances, 1.0)

    def density(side):
        terms = (seen - means[side]) ** 2 / safe[side] + np.log(safe[side])
        return -0.5 * np.where(every > 0, terms, 0.0).sum(-1)

    return density(1) - density(0)


def infer_members(
    statistics, *, delta: float, spread: str = "own", confidence: float = 0.95
) -> Membership:
    """Learns from the first half of the runs and infers members in the second half.

    Args:
      statistics: ``float[2, runs, examples, statistics]`` from ``shadow``, with at
        least 4 runs for each example and side.
      delta: δ at which ε is bounded.
      spread: estimate of standard deviations; see ``likelihood_ratios``.
      confidence: confidence of the bound.

    Returns:
      ``Membership``. Its ``epsilon`` is ``metrics.epsilon_lower_bound`` with the
      threshold from the first half. It is averaged over examples, which is valid for a
      mechanism with (ε, δ) for each example.

    Raises:
      ValueError: see ``likelihood_ratios`` and ``metrics.epsilon_lower_bound``.

    Example:
      >>> noise = np.random.default_rng(0).normal(size=(2, 2000, 1, 1))
      >>> found = infer_members(noise + [[[[0.0]]], [[[1.0]]]], delta=1e-3)
      >>> 0.7 < found.auc < 0.8 and 1.0 < found.epsilon < 3.5
      True
    """
    statistics = _checked("statistics", statistics, 4)
    half = statistics.shape[1] // 2
    known, rest = statistics[:, :half], statistics[:, half:]
    first = likelihood_ratios(known, known, spread=spread)
    second = likelihood_ratios(known, rest, spread=spread)
    member = np.repeat([False, True], second[0].size)
    flat = second.reshape(-1)
    rates = {rate: metrics.true_positive_rate(member, flat, rate) for rate in RATES}
    area = metrics.auc(member.astype(int), np.stack([-flat, flat], 1))[1]
    bound = metrics.epsilon_lower_bound(first, second, delta, confidence=confidence)
    return Membership(second, float(area), rates, bound)


def _checked(name, statistics, least):
    statistics = np.asarray(statistics, np.float64)
    shape = statistics.shape
    if statistics.ndim != 4 or shape[0] != 2 or shape[1] < least or 0 in shape:
        raise ValueError(
            f"{name} must be float[2, runs, examples, statistics] with at least "
            f"{least} runs, got shape {shape}."
        )
    if not np.isfinite(statistics).all():
        raise ValueError(
            f"{name} must be finite; did a run diverge? Lower its learning rate."
        )
    return statistics


class MembershipResult(NamedTuple):
    """Result of ``score_membership``."""

    auc: float  # 0.5 is chance level
    interval: tuple[float, float]  # confidence interval for independent windows
    true_positives: dict[float, float]  # by false positive rate


def score_membership(members, others, *, confidence: float = 0.95) -> MembershipResult:
    """Scores how well evidence distinguishes a generator's training windows.

    Args:
      members: ``float[N]``, evidence of at least two training windows; larger values
        indicate membership. Increasing transformations do not change the result.
      others: ``float[M]``, evidence of comparable windows outside the training data.
      confidence: confidence of the interval.

    Raises:
      ValueError: if a side has fewer than two windows, evidence is NaN or has another
        rank, or ``confidence`` is out of range.

    Example:
      >>> found = score_membership([3.0, 1.0], [2.0, 0.0])
      >>> found.auc, found.true_positives[0.1]
      (0.75, 0.5)
    """
    sides = [np.asarray(side, np.float64) for side in (members, others)]
    for name, side in zip(("members", "others"), sides, strict=True):
        if side.ndim != 1 or len(side) < 2:
            raise ValueError(
                f"{name} must be float[N] with at least two windows, got shape "
                f"{side.shape}."
            )
    member = np.repeat([True, False], [len(side) for side in sides])
    evidence = np.concatenate(sides)
    interval = metrics.auc_interval(member, evidence, confidence)
    area = metrics.auc(member.astype(int), np.stack([-evidence, evidence], 1))[1]
    rates = {rate: metrics.true_positive_rate(member, evidence, rate) for rate in RATES}
    return MembershipResult(float(area), interval, rates)


def nearness(windows, synthetic) -> np.ndarray:
    """Computes membership evidence from a generator's output alone.

    Args:
      windows: ``float[N, time, channels]``, standardized windows in question.
      synthetic: ``float[M, time, channels]``, generated windows of the same classes.

    Returns:
      ``float64[N]``, the negative distance to the nearest synthetic window.

    Raises:
      ValueError: see ``metrics.nearest_distances``.

    Example:
      >>> nearness(np.full((1, 4, 1), 2.0), np.array([0.0, 1.5]).reshape(2, 1, 1) *
      ...          np.ones((2, 4, 1)))
      array([-0.5])

    References:
      Chen, Yu, Zhang, Fritz, GAN-Leaks, CCS 2020, section 4.2 (full black-box).
    """
    return -metrics.nearest_distances(windows, synthetic)


def match(key, members, others, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Draws equally many training windows and other windows of each kind.

    Matching prevents subjects or classes that are more frequent in training from
    revealing membership.

    Args:
      key: typed PRNG key.
      members: ``int[N, columns]``, the kind of each training window. Columns are, for
        example, subject and class.
      others: ``int[M, columns]``, the kind of each other window.
      most: maximum number of windows per side, >= 1.

    Returns:
      Row indices of ``members`` and of ``others``, ``int[k]`` each with ``k <= most``.
      Entries at the same index have the same kind.

    Raises:
      ValueError: if the sides have no kind in common, or ``most`` is below 1.

    Example:
      >>> own, other = match(
      ...     jax.random.key(0), np.array([[0], [0], [1]]), np.array([[2], [0]]), 9)
      >>> own.shape, other
      ((1,), array([1]))
    """
    if most < 1:
        raise ValueError(f"most must be >= 1, got {most!r}.")
    generator = np.random.default_rng(int(jax.random.bits(key, dtype=np.uint32)))
    both = np.concatenate([np.asarray(members), np.asarray(others)])
    _, kinds = np.unique(both, axis=0, return_inverse=True)
    sides = np.split(kinds.reshape(-1), [len(members)])
    pairs = []
    for kind in np.unique(kinds):
        rows = [generator.permutation(np.flatnonzero(side == kind)) for side in sides]
        count = min(map(len, rows))
        pairs.append(np.stack([side[:count] for side in rows], 1))
    matched = np.concatenate(pairs)
    if not len(matched):
        raise ValueError(
            "no window outside the training data has the same person and class as a "
            "training window, so membership cannot be separated from other "
            "differences; split by time, not by person."
        )
    rows, other_rows = generator.permutation(matched)[:most].T
    return rows, other_rows
