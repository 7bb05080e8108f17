"""Membership inference: whether an example was among those a client trained on."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon import metrics
from jaxanon.kernels.checks import one_of

SPREADS = ("own", "pooled")

RATES = (1e-3, 1e-2, 1e-1)  # Of false positives, at which true ones are told.


class Membership(NamedTuple):
    """What an attacker can tell, on runs that he did not learn from."""

    evidence: np.ndarray  # float64[2, runs, examples]; log ratios, without and with it
    auc: float
    true_positives: dict[float, float]  # by rate of false positives
    epsilon: float  # lower bound


def shadow(
    key, observe: Callable, num_examples: int, runs: int, *, chunk: int | None = None
):
    """Repeats a training with and without each example, as one compiled program.

    Args:
      key: typed PRNG key; every run has one of its own, so that runs are independent.
      observe: ``(key, example, member) -> tree of float[statistics]``, what somebody
        makes of what he saw of one run; ``example`` is an ``int32[]`` below
        ``num_examples``, ``member`` a ``bool[]``, whether it was in.
      num_examples: examples in question, one in each run.
      runs: of each example and side, >= 1.
      chunk: runs side by side (``vmap``); None is all of them.

    Returns:
      Tree of ``float[2, runs, examples, statistics]``: without, then with the example.

    Raises:
      ValueError: for a number below 1.

    Example:
      An onlooker who sees the sum of an example and noise:

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
        one = lambda given: observe(jax.random.fold_in(key, given[0]), *given[1:])
        width = total if chunk is None else min(chunk, total)
        return jax.lax.map(one, (number, example, member), batch_size=width)

    fold = lambda leaf: leaf.reshape(*shape, *leaf.shape[1:])
    return jax.tree.map(fold, program(key))


def alignments(moved: dict, gradient: dict) -> jax.Array:
    """How far a client moved along an example's gradient, layer by layer.

    The best a linear onlooker can do against Gaussian noise: its deviation in here does
    not depend on the gradient.

    Args:
      moved: dict of layers, a client's parameters before less those after.
      gradient: of the example's loss, likewise.

    Returns:
      ``float32[layers]`` by ascending name: inner products over the gradient's norm, 0
      where that is 0.

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
    found = []
    for name in sorted(gradient):
        pairs = list(zip(wide(moved[name]), wide(gradient[name]), strict=True))
        product = sum(one @ other for one, other in pairs)
        norm = jnp.sqrt(sum(other @ other for _, other in pairs))
        found.append(jnp.where(norm > 0, product / jnp.where(norm > 0, norm, 1), 0))
    return jnp.stack(found)


def log_odds(logits, label) -> jax.Array:
    """A model's confidence in the right class, on a scale where it is near a Gaussian.

    Args:
      logits: ``float[classes]``.
      label: ``int32[]``.

    Returns:
      ``float[]``, log p / (1 - p) of the class's probability p; exact where p is 1 but
      for rounding.

    Example:
      >>> log_odds(jnp.array([2.0, 0.5]), 0)
      Array(1.5, dtype=float32)

    References:
      Carlini et al., Membership inference attacks from first principles, S&P 2022.
    """
    others = jnp.where(jnp.arange(len(logits)) == label, -jnp.inf, logits)
    return logits[label] - jax.nn.logsumexp(others)


def likelihood_ratios(known, seen, *, spread: str = "own") -> np.ndarray:
    """LiRA: how much likelier what was seen is with an example than without it.

    What shadow runs have of each example, with and without it, is taken for a Gaussian
    in each statistic; logarithms of ratios of densities add up over statistics.

    Args:
      known: ``float[2, runs, examples, statistics]`` as of ``shadow``, at least 2 runs.
      seen: likewise, of runs in question.
      spread: "own", a deviation for each side; "pooled", one for both, better known,
        and all there is where noise is added whose scale nothing has a part in.

    Returns:
      ``float64[2, runs, examples]``, of ``seen``. No variance counts for less than all
      there is of that statistic over the number of known runs: what was never met may
      happen that often. A statistic that never varies says nothing.

    Raises:
      ValueError: for other shapes, too few runs, what is not finite, or another spread.

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
            "known and seen must be of the same examples and statistics, got shapes "
            f"{known.shape} and {seen.shape}."
        )
    means, variances = known.mean(1), known.var(1)
    if spread == "pooled":
        variances = np.repeat(variances.mean(0, keepdims=True), 2, axis=0)
    every = known.var((0, 1))
    variances = np.maximum(variances, every / known.shape[1])
    safe = np.where(variances > 0, variances, 1.0)

    def density(side):
        own = (seen - means[side]) ** 2 / safe[side] + np.log(safe[side])
        return -0.5 * np.where(every > 0, own, 0.0).sum(-1)

    return density(1) - density(0)


def infer_members(
    statistics, *, delta: float, spread: str = "own", confidence: float = 0.95
) -> Membership:
    """Learns from the first half of the runs, and tells members in the second.

    Args:
      statistics: ``float[2, runs, examples, statistics]`` of ``shadow``, 4 runs or more
        of each example and side.
      delta: δ at which ε is bounded.
      spread: as ``likelihood_ratios`` takes it.
      confidence: of the bound.

    Returns:
      ``Membership``. Its ``epsilon`` is the bound of ``metrics.epsilon_lower_bound``,
      with the threshold from the first half; a mechanism that keeps ε and δ for each
      example keeps them for the mean over examples.

    Raises:
      ValueError: as ``likelihood_ratios`` and ``metrics.epsilon_lower_bound``.

    Example:
      >>> noise = np.random.default_rng(0).normal(size=(2, 2000, 1, 1))
      >>> found = infer_members(noise + [[[[0.0]]], [[[1.0]]]], delta=1e-3)
      >>> 0.7 < found.auc < 0.8 and 1.0 < found.epsilon < 3.5
      True
    """
    statistics = _checked("statistics", statistics, 4)
    half = statistics.shape[1] // 2
    known, rest = statistics[:, :half], statistics[:, half:]
    own = likelihood_ratios(known, known, spread=spread)
    found = likelihood_ratios(known, rest, spread=spread)
    member = np.repeat([False, True], found[0].size)
    flat = found.reshape(-1)
    rates = {rate: metrics.true_positive_rate(member, flat, rate) for rate in RATES}
    area = metrics.auc(member.astype(int), np.stack([-flat, flat], 1))[1]
    bound = metrics.epsilon_lower_bound(own, found, delta, confidence=confidence)
    return Membership(found, float(area), rates, bound)


def _checked(name, statistics, least):
    statistics = np.asarray(statistics, np.float64)
    shape = statistics.shape
    if statistics.ndim != 4 or shape[0] != 2 or shape[1] < least or 0 in shape:
        raise ValueError(
            f"{name} must be float[2, runs, examples, statistics] of {least} runs or "
            f"more, got shape {shape}."
        )
    if not np.isfinite(statistics).all():
        raise ValueError(
            f"{name} must be finite; did a run diverge? Lower its step size."
        )
    return statistics


class MembershipResult(NamedTuple):
    """How well training windows are told from others."""

    auc: float  # 0.5 tells nothing
    interval: tuple[float, float]  # that has it, were windows independent
    true_positives: dict[float, float]  # by rate of false positives


def score_membership(members, others, *, confidence: float = 0.95) -> MembershipResult:
    """How well evidence tells windows that a generator was trained on from others.

    Args:
      members: ``float[N]``, evidence of training windows, at least two; the larger, the
        more they seem to be. Any rising function of it does the same.
      others: ``float[M]``, of windows of the same kind that it was not trained on.
      confidence: of the interval.

    Raises:
      ValueError: for fewer than two on a side, evidence that is NaN or of another rank,
        or another confidence.

    Example:
      >>> found = score_membership([3.0, 1.0], [2.0, 0.0])
      >>> found.auc, found.true_positives[0.1]
      (0.75, 0.5)
    """
    sides = [np.asarray(side, np.float64) for side in (members, others)]
    for name, side in zip(("members", "others"), sides, strict=True):
        if side.ndim != 1 or len(side) < 2:
            raise ValueError(
                f"{name} must be float[N], a number for each of two windows or more, "
                f"got shape {side.shape}."
            )
    own = np.repeat([True, False], [len(side) for side in sides])
    evidence = np.concatenate(sides)
    interval = metrics.auc_interval(own, evidence, confidence)
    area = metrics.auc(own.astype(int), np.stack([-evidence, evidence], 1))[1]
    rates = {rate: metrics.true_positive_rate(own, evidence, rate) for rate in RATES}
    return MembershipResult(float(area), interval, rates)


def nearness(windows, synthetic) -> np.ndarray:
    """Evidence of whoever sees what a generator makes, and nothing else.

    Args:
      windows: ``float[N, time, channels]``, standardised, in question.
      synthetic: ``float[M, time, channels]``, what it made, of the same classes.

    Returns:
      ``float64[N]``, less the distance to the synthetic window that is nearest.

    Raises:
      ValueError: as ``metrics.nearest_distances``.

    Example:
      >>> nearness(np.full((1, 4, 1), 2.0), np.array([0.0, 1.5]).reshape(2, 1, 1) *
      ...          np.ones((2, 4, 1)))
      array([-0.5])

    References:
      Chen, Yu, Zhang, Fritz, GAN-Leaks, CCS 2020, section 4.2 (full black-box).
    """
    return -metrics.nearest_distances(windows, synthetic)


def match(key, members, others, most: int) -> tuple[np.ndarray, np.ndarray]:
    """As many training windows as others of each kind, so that nothing else differs.

    Who they are of, and what they show, tells training windows from others where there
    are more of some in training.

    Args:
      key: typed PRNG key.
      members: ``int[N, columns]``, what kinds training windows are of, such as their
        subject and their class.
      others: ``int[M, columns]``, likewise.
      most: windows of either side, >= 1.

    Returns:
      Rows of ``members`` and of ``others``, ``int[k]`` each and ``k`` at most ``most``,
      of one kind at each place.

    Raises:
      ValueError: if no kind is on both sides, or ``most`` is below 1.

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
        number = min(map(len, rows))
        pairs.append(np.stack([own[:number] for own in rows], 1))
    found = np.concatenate(pairs)
    if not len(found):
        raise ValueError(
            "no window is of the same person and class as a training window, and "
            "others differ from those in more than that a generator has not seen them; "
            "split by time, not by person."
        )
    own, other = generator.permutation(found)[:most].T
    return own, other
