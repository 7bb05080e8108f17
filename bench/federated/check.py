"""Checks of the final weights of a measured process."""

import functools
import math

import numpy as np

from federated import work as fed_work

NOISE_MULTIPLIER = 4.0  # For Atlas: noise dominates the updates, so it can be measured.
RADIUS, EPSILON = 0.25, 5.0  # For LDP-FL.


@functools.cache
def _reference(path):
    return fed_work.reference(fed_work.load_once(path))


def same(path, layers) -> float:
    """Returns the distance from the reference, relative to the reference's update.

    Raises:
      AssertionError: if it exceeds rounding. Single weights are not compared, because
        rounding may flip a ReLU.
    """
    expected = _reference(path)
    way = fed_work.distance(expected, fed_work.load_once(path).layers)
    apart = fed_work.distance(layers, expected) / way
    if not apart < 1e-3:
        raise AssertionError(f"weights differ from the reference by {apart:.1e}.")
    return apart


def noisy(path, layers) -> float:
    """Returns the distance that Atlas's weights moved over that expected from noise.

    Every client step adds noise of ``NOISE_MULTIPLIER / batch`` times the learning rate
    to every weight, and the server averages clients. Clipped examples add a few
    percent.

    Raises:
      AssertionError: if the ratio is not about 1.
    """
    work = fed_work.load_once(path)
    sizes = work.sizes
    stddev = NOISE_MULTIPLIER * sizes.learning_rate / sizes.batch
    steps = fed_work.COMPARED * sizes.steps / sizes.clients
    expected = stddev * math.sqrt(steps * fed_work.num_weights(sizes))
    ratio = fed_work.distance(layers, work.layers) / expected
    if not abs(ratio - 1) < 0.1:
        raise AssertionError(f"weights moved by {ratio:.3f} of the expected noise.")
    return ratio


def two_points(path, layers) -> float:
    """Returns the distance of LDP-FL's weights from means of two values.

    Raises:
      AssertionError: if it exceeds rounding, or if only one of the values occurs.
    """
    clients = fed_work.load_once(path).sizes.clients
    value = RADIUS / math.tanh(EPSILON / 2)
    flat = np.concatenate([np.ravel(x) for layer in layers for x in layer])
    ups = (np.asarray(flat, np.float64) / value + 1) / 2 * clients
    apart = float(np.abs(ups - np.round(ups)).max())
    if not (apart < 1e-2 and 0 < ups.mean() < clients):
        raise AssertionError(f"weights are {apart:.1e} off the means of two values.")
    return apart
