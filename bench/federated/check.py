"""Are the weights of a measured process those that it had to end with?"""

import functools
import math

import numpy as np

from federated import work as fed_work

NOISE_MULTIPLIER = 4.0  # Of Atlas: noise is most of what moves, and can be measured.
RADIUS, EPSILON = 0.25, 5.0  # Of LDP-FL.


@functools.cache
def _reference(path):
    return fed_work.reference(fed_work.load_once(path))


def same(path, layers) -> float:
    """How far from the reference, as a share of the way that it went.

    Raises:
      AssertionError: if that is more than rounding. A ReLU may flip with that, so
        single weights are not compared.
    """
    expected = _reference(path)
    way = fed_work.distance(expected, fed_work.load_once(path).layers)
    apart = fed_work.distance(layers, expected) / way
    if not apart < 1e-3:
        raise AssertionError(f"the weights are {apart:.1e} away from the reference.")
    return apart


def noisy(path, layers) -> float:
    """How far Atlas's weights went, over how far its noise alone takes them.

    Every step of a client adds ``NOISE_MULTIPLIER / batch`` times the step size to
    every weight, and the server takes the mean over clients; clipped examples add a
    few hundredths to the root of the sum of the squares.

    Raises:
      AssertionError: if that is not about 1.
    """
    work = fed_work.load_once(path)
    sizes = work.sizes
    stddev = NOISE_MULTIPLIER * sizes.learning_rate / sizes.batch
    steps = fed_work.COMPARED * sizes.steps / sizes.clients
    expected = stddev * math.sqrt(steps * fed_work.num_weights(sizes))
    ratio = fed_work.distance(layers, work.layers) / expected
    if not abs(ratio - 1) < 0.1:
        raise AssertionError(f"noise should have moved the weights, {ratio:.3f} of it.")
    return ratio


def two_points(path, layers) -> float:
    """How far LDP-FL's weights are from means of two values, in their distances.

    Raises:
      AssertionError: if that is more than rounding, or only one of the values came.
    """
    clients = fed_work.load_once(path).sizes.clients
    value = RADIUS / math.tanh(EPSILON / 2)
    flat = np.concatenate([np.ravel(x) for layer in layers for x in layer])
    ups = (np.asarray(flat, np.float64) / value + 1) / 2 * clients
    apart = float(np.abs(ups - np.round(ups)).max())
    if not (apart < 1e-2 and 0 < ups.mean() < clients):
        raise AssertionError(f"weights are {apart:.1e} off means of two values.")
    return apart
