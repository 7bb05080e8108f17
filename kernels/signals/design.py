"""Design of Butterworth filters on the host, as float64 second-order sections."""

import cmath
import itertools
import math

import jax
import numpy as np

from jaxanon.kernels.checks import (
    known,
    not_traced,
    numeric,
    one_of,
    positive,
    whole,
)

KINDS = ("lowpass", "highpass", "bandpass")


def butterworth(order, cutoff_hz, rate_hz, kind="lowpass") -> np.ndarray:
    """Designs a digital Butterworth filter by the bilinear transform.

    It runs once per filter on the host. Pass the result to ``sosfilt`` or
    ``sosfiltfilt``. The filter equals that of ``scipy.signal.butter``, but the
    sections differ. Every section has gain 1 at frequency 0 (lowpass), at half the rate
    (highpass) or in the middle of the band, which suits float32.

    Args:
      order: order of the lowpass prototype, a Python int >= 1. A bandpass filter has
        twice as many poles.
      cutoff_hz: frequency in Hz with gain 1/sqrt(2), in (0, rate_hz / 2). For
        ``"bandpass"`` it is a pair, the lower first.
      rate_hz: samples per second, > 0.
      kind: ``"lowpass"``, ``"highpass"`` or ``"bandpass"``.

    Returns:
      NumPy ``float64[sections, 6]``: ``b0, b1, b2, 1, a1, a2`` of each section, in
      order of application.

    Raises:
      TypeError: if a number is traced, or ``order`` is not a Python int.
      ValueError: if a number is out of range or ``kind`` is unknown.

    Example:
      >>> butterworth(1, 0.5, 4.0).round(4)  # The pole is tan(pi / 8).
      array([[ 0.2929,  0.2929,  0.    ,  1.    , -0.4142,  0.    ]])

    References:
      Butterworth, On the theory of filter amplifiers, Experimental Wireless 1930.
      Oppenheim and Schafer, Discrete-Time Signal Processing, section 7.2.
    """
    order = whole("order", order, least=1)
    cutoffs = _cutoffs(cutoff_hz, rate_hz, kind)
    # Frequencies warped by the bilinear transform s = (z - 1) / (z + 1).
    bent = [math.tan(math.pi * f / rate_hz) for f in cutoffs]
    angles = [math.pi * (2 * k + order + 1) / (2 * order) for k in range(order)]
    # One pole of each conjugate pair.
    upper = [cmath.rect(1, a) for a in angles[: order // 2]]
    # Poles farther from the unit circle come first, so that peaks are applied last.
    upper.reverse()
    if order % 2:
        upper.insert(0, complex(-1.0))
    sections = []
    for pole in upper:
        sections += _sections(pole, bent, kind)
    return np.array(sections)


def _sections(pole, bent, kind):
    """Returns the sections for one pole of the prototype and its conjugate."""
    is_real = pole.imag == 0
    if kind == "bandpass":
        half = pole * (bent[1] - bent[0]) / 2
        root = cmath.sqrt(half * half - bent[0] * bent[1])
        middle = cmath.exp(2j * math.atan(math.sqrt(bent[0] * bent[1])))
        if is_real:  # The two images are a conjugate pair or both real.
            return [_section(half + root, half - root, (1, 0, -1), middle)]
        images = sorted((half + root, half - root), key=lambda s: abs(_digital(s)))
        return [_section(s, s.conjugate(), (1, 0, -1), middle) for s in images]
    sign = 1 if kind == "lowpass" else -1
    s = pole * bent[0] if kind == "lowpass" else bent[0] / pole
    if is_real:
        return [_section(s, None, (1, sign, 0), sign)]
    return [_section(s, s.conjugate(), (1, 2 * sign, 1), sign)]


def _digital(s):
    return (1 + s) / (1 - s)


def _section(first, second, b, unit_at):
    """Returns one section: poles in s, numerator in z, |gain| 1 at ``unit_at``."""
    p = _digital(first)
    q = 0 if second is None else _digital(second)
    a1, a2 = -(p + q).real, (p * q).real
    back = 1 / complex(unit_at)
    gain = abs((1 + a1 * back + a2 * back**2) / (b[0] + b[1] * back + b[2] * back**2))
    return [gain * b[0], gain * b[1], gain * b[2], 1.0, a1, a2]


def _cutoffs(cutoff_hz, rate_hz, kind):
    one_of("kind", kind, KINDS)
    not_traced("rate_hz", rate_hz)
    for frequency in jax.tree.leaves(cutoff_hz):
        not_traced("cutoff_hz", frequency)
    if known(rate_hz) is None:
        raise TypeError(f"rate_hz must be a number, got {rate_hz!r}.")
    positive(rate_hz=rate_hz)
    numeric(cutoff_hz=cutoff_hz)
    wanted = 2 if kind == "bandpass" else 1
    cutoffs = tuple(float(f) for f in np.ravel(cutoff_hz))
    if len(cutoffs) != wanted:
        raise ValueError(
            f"cutoff_hz must have {wanted} number(s) for {kind!r}, got {cutoff_hz!r}."
        )
    ordered = (0.0, *cutoffs, rate_hz / 2)
    if not all(low < high for low, high in itertools.pairwise(ordered)):
        raise ValueError(
            f"cutoff_hz must increase in (0, {rate_hz / 2}), half of rate_hz, got "
            f"{cutoff_hz!r}; resample the recording or lower the cutoff."
        )
    return cutoffs
