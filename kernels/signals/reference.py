"""Reference implementation of the signal kernels in plain NumPy loops."""

import itertools
import math

import numpy as np


def cut_windows(recording, size, length, stride):
    """Returns a list of windows of the first ``size`` rows of one recording."""
    windows = []
    start = 0
    while start + length <= size:
        windows.append(recording[start : start + length])
        start += stride
    return windows


def sosfilt(sections, x, state):
    """Filters one channel section by section; ``state`` is a list of pairs."""
    after = []
    for (b0, b1, b2, _, a1, a2), (first, second) in zip(sections, state, strict=True):
        y = []
        for value in x:
            out = b0 * value + first
            first = b1 * value - a1 * out + second
            second = b2 * value - a2 * out
            y.append(out)
        x = y
        after.append((first, second))
    return x, after


def steady_state(sections, value):
    """Returns the fixed point of each section's equations for a constant input."""
    state = []
    for b0, b1, b2, _, a1, a2 in sections:
        out = value * (b0 + b1 + b2) / (1 + a1 + a2)
        second = b2 * value - a2 * out
        state.append((b1 * value - a1 * out + second, second))
        value = out
    return state


def sosfiltfilt(sections, x, padlen):
    """Filters one channel forward and backward, with odd extension at both ends."""
    last = len(x) - 1
    before = [2 * x[0] - x[min(k, last)] for k in range(padlen, 0, -1)]
    after = [2 * x[last] - x[max(last - k, 0)] for k in range(1, padlen + 1)]
    y = [*before, *x, *after]
    for _ in range(2):
        y, _ = sosfilt(sections, y, steady_state(sections, y[0]))
        y = y[::-1]
    return y[padlen : padlen + len(x)]


def count_steps_threshold(magnitude, threshold=10.5):
    """Returns half the threshold crossings of one recording."""
    crossings = 0
    for before, after in itertools.pairwise(magnitude):
        crossings += (before >= threshold) != (after >= threshold)
    return crossings / 2


def count_steps_jerk_pace(smooth, rate_hz):
    """Runs Adaptiv on one filtered magnitude, sample by sample."""
    jerks, paces = [2.5] * 20, [0.4] * 20
    count = 0
    direction = 0  # 1 is up, -1 is down, 0 is undefined at the start.
    maximum = last_maximum = last_minimum = None
    for i in range(1, len(smooth)):
        moved = np.sign(smooth[i] - smooth[i - 1])
        if moved == 0:
            continue
        if direction == 1 and moved == -1:
            maximum = i - 1
        if direction == -1 and moved == 1:
            minimum = i - 1
            if maximum is not None:
                jerk = smooth[maximum] - smooth[minimum]
                pace = 0.4
                if last_maximum is not None and last_minimum is not None:
                    pace = max(maximum - last_maximum, minimum - last_minimum) / rate_hz
                strong = jerk >= 0.5 * np.mean(jerks) or jerk >= 2 * 2.5
                if strong and 0.5 <= pace / np.mean(paces) <= 2:
                    count += 1
                    jerks = [*jerks[1:], jerk]
                    paces = [*paces[1:], pace]
                last_maximum = maximum
            last_minimum = minimum
        direction = moved
    return count


def window_statistics(x):
    """Returns the statistics by name for a non-empty list of samples."""
    num = len(x)
    mean = sum(x) / num
    moment = lambda power: sum((value - mean) ** power for value in x) / num
    variance = moment(2)
    varies = max(x) > min(x)
    in_order = sorted(x)

    def quantile(q):
        place = q * (num - 1)
        low, high = math.floor(place), math.ceil(place)
        return in_order[low] + (place - low) * (in_order[high] - in_order[low])

    energy = sum(value * value for value in x)
    crossings = sum(
        (before < 0) != (after < 0) for before, after in itertools.pairwise(x)
    )
    return {
        "mean": mean,
        "std": math.sqrt(variance),
        "variance": variance,
        "minimum": min(x),
        "maximum": max(x),
        "median": quantile(0.5),
        "interquartile_range": quantile(0.75) - quantile(0.25),
        "skewness": moment(3) / variance**1.5 if varies else 0.0,
        "kurtosis": moment(4) / variance**2 - 3 if varies else 0.0,
        "energy": energy,
        "rms": math.sqrt(energy / num),
        "zero_crossings": crossings,
    }
