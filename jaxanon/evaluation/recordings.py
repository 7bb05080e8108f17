"""Recordings as they are released: overlapping windows, anonymized and added up.

``jaxanon anonymize`` and devices release recordings, not windows. Each sample is a mean
over the windows that contain it, so a recording may reveal more or less than windows.
"""

from typing import NamedTuple

import jax
import numpy as np

from jaxanon import attacks
from jaxanon.attacks import attackers as known_attackers
from jaxanon.core.run import Run
from jaxanon.datasets.spec import Windows
from jaxanon.evaluation import protocol
from jaxanon.evaluation.protocol import EvaluationContext, empty, keys, row, score
from jaxanon.streaming.overlap_add import Segment

VARIANT = "windows cut from released recordings"
RAW_CLASSIFIER = "raw-data classifier"
LEAST = 0.5  # Fraction of the windows that must overlap another one.
PAIRS = 64  # Consecutive windows that are searched for the stride.
AT_ONCE = 4096  # Windows compared at a time.


class Chain(NamedTuple):
    """Overlapping windows of one recording, in order of time."""

    rows: np.ndarray  # int[k], indices of the windows
    samples: np.ndarray  # float32[(k - 1) * stride + time, channels]


class Chains(NamedTuple):
    """Recordings of one side of a split, as far as its windows overlap."""

    stride: int
    chains: list[Chain]


def stitch(part: Windows) -> Chains | None:
    """Joins windows that share samples with the next window of the same person.

    Returns:
      ``Chains``; a window without neighbours is a chain of its own. None if less than
      half of the windows overlap a neighbour, so that their order in time is unknown.

    Example:
      >>> rows = np.arange(8.0, dtype=np.float32)[:, None]
      >>> windows = np.stack([rows[first : first + 4] for first in (0, 2, 4)])
      >>> found = stitch(Windows(windows, {"subject": np.zeros(3, int)}))
      >>> found.stride, found.chains[0].samples.ravel().tolist()
      (2, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    """
    windows = np.asarray(part.windows)
    subjects = np.asarray(part.labels["subject"])
    order = np.argsort(subjects, kind="stable")
    together = subjects[order][1:] == subjects[order][:-1]
    stride = _stride(windows, order, together)
    if stride is None:
        return None
    joined = _joined(windows, order, together, stride)
    if _in_chains(joined) < LEAST * len(windows):
        return None
    edges = np.flatnonzero(~joined) + 1
    chains = []
    for begin, end in zip([0, *edges], [*edges, len(order)], strict=True):
        rows = order[begin:end]
        # All but the last window contribute the samples that the next one lacks.
        starts = windows[rows[:-1], :stride].reshape(-1, windows.shape[2])
        chains.append(Chain(rows, np.concatenate([starts, windows[rows[-1]]])))
    return Chains(stride, chains)


def _stride(windows, order, together):
    """Returns the most frequent stride of consecutive windows, or None."""
    pairs = np.flatnonzero(together)
    pairs = pairs[np.linspace(0, len(pairs) - 1, min(PAIRS, len(pairs))).astype(int)]
    time, counts = windows.shape[1], np.zeros(windows.shape[1] + 1, int)
    for first, second in zip(order[pairs], order[pairs + 1], strict=True):
        same = (windows[first] == windows[second][0]).all(axis=1)
        for stride in np.flatnonzero(same[1:]) + 1:
            if np.array_equal(
                windows[first][stride:], windows[second][: time - stride]
            ):
                counts[stride] += 1
                break
    return int(counts.argmax()) if counts.any() else None


def _joined(windows, order, together, stride):
    """Returns whether each window overlaps the next one in ``order``."""
    joined, kept = together.copy(), windows.shape[1] - stride
    for first in range(0, len(joined), AT_ONCE):
        part = slice(first, min(first + AT_ONCE, len(joined)))
        before = windows[order[:-1][part], stride:]
        after = windows[order[1:][part], :kept]
        joined[part] &= (before == after).all(axis=(1, 2))
    return joined


def _in_chains(joined):
    """Returns the number of windows that overlap a neighbour."""
    return int((np.pad(joined, (1, 0)) | np.pad(joined, (0, 1))).sum())


def release(chains: Chains, anonymize, key, time: int) -> np.ndarray:
    """Anonymizes recordings as a stream, and cuts the windows from the result.

    Args:
      chains: result of ``stitch``.
      anonymize: ``(key, windows) -> float[N, time, channels]``.
      key: typed PRNG key.
      time: samples per window.

    Returns:
      ``float32[N, time, channels]``, in the order of the original windows.
    """
    channels, hop = chains.chains[0].samples.shape[1], max(1, time // 2)
    segments = [Segment(time, channels, hop) for _ in chains.chains]
    pieces = [
        segment.windows(chain.samples.astype(np.float64), ended=True)
        for segment, chain in zip(segments, chains.chains, strict=True)
    ]
    safe = np.asarray(anonymize(key, np.concatenate(pieces)))
    count = sum(len(chain.rows) for chain in chains.chains)
    cut = np.empty((count, time, channels), np.float32)
    first = 0
    for segment, chain, piece in zip(segments, chains.chains, pieces, strict=True):
        added = segment.add(safe[first : first + len(piece)])
        # Windows are finite, so there is no gap.
        stream = np.concatenate([x.samples for x in added if x.samples is not None])
        first += len(piece)
        view = np.lib.stride_tricks.sliding_window_view(stream, time, axis=0)
        cut[chain.rows] = view[:: chains.stride].transpose(0, 2, 1)
    return cut


def recordings(context: EvaluationContext) -> list[list[dict]]:
    """Trains attackers on windows cut from released recordings.

    The attackers know a share of the training windows, cut in the same way.
    """
    rows, slots = empty(context)
    first = context.evaluations[0]
    data, names = first.data, protocol.attacked(first.data)
    chosen = _attackers(first.attackers)
    reason = _reason(context)
    sides: list[Chains] = []
    if reason is None:
        for part in (data.train, data.test):
            found = stitch(part)
            if found is None:
                reason = (
                    "windows do not overlap their neighbours, so their order in time "
                    "is unknown"
                )
                break
            sides.append(found)
    if reason is not None:
        for by_run in rows:
            for name in names:
                by_run.append(row(name, chosen[0], VARIANT, reason=reason))
        return rows
    number = protocol.FIRST + protocol.NAMES.index("recordings")
    released = []
    for one in context.evaluations:
        ways = jax.random.split(jax.random.fold_in(one.key, number), 2)
        released.append(
            [
                release(side, one.anonymize, key, data.spec.time)
                for side, key in zip(sides, ways, strict=True)
            ]
        )
    for by_run, (_, safe) in zip(rows, released, strict=True):
        public = data.spec.public
        evidence = context.raw_classifiers.infer[public](safe)
        scores = score(data, public, evidence)
        by_run.append(row(public, RAW_CLASSIFIER, VARIANT, scores))
    if not names:
        return rows
    aims = [
        attacks.Target(
            lambda key, windows: windows,  # They are anonymized.
            train,
            data.train.labels[name],
            data.spec.num_classes(name),
            test,
            name,
        )
        for train, test in released
        for name in names
    ]
    for attacker in chosen:
        attack_keys = keys(
            context, "recordings", names, known_attackers.number(attacker)
        )
        outputs = attacks.reidentify(attack_keys, attacker, aims, share=first.share)
        for (by_run, name), evidence in zip(slots, outputs, strict=True):
            scores = score(data, name, evidence)
            by_run.append(row(name, attacker, VARIANT, scores))
    return rows


def _attackers(names) -> tuple[str, ...]:
    """Returns the forest if it is among the attackers, else all of them."""
    return ("forest",) if "forest" in names else tuple(names)


def _reason(context):
    """Returns why the runs cannot anonymize other windows than those of the data."""
    for one in context.evaluations:
        if not isinstance(one.run, Run) and callable(getattr(one.run, "choices", None)):
            return "models are chosen for the windows of the data only"
    if context.evaluations[0].data.spec.tokens:
        return "windows hold events, which cannot be added up"
    return None
