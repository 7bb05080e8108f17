"""Ranges of hyper-parameters."""

import numbers

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.kernels.bounds import NOT_NEGATIVE, POSITIVE, SHARE, WITHIN, Range
from jaxanon.kernels.checks import known

# By name, which has the same meaning in every algorithm.
RANGES = {
    **dict.fromkeys(
        ("learning_rate", "server_learning_rate", "finetune_learning_rate"),
        NOT_NEGATIVE,
    ),
    **dict.fromkeys(("mask_learning_rate", "adaptation_learning_rate"), NOT_NEGATIVE),
    **dict.fromkeys(
        ("norm_learning_rate", "proximal_mu", "proximal_weight", "mix"), NOT_NEGATIVE
    ),
    **dict.fromkeys(("noise_multiplier", "score_multiplier"), NOT_NEGATIVE),
    **dict.fromkeys(("alpha", "beta"), NOT_NEGATIVE),
    **dict.fromkeys(("clip_norm", "score_norm", "weight_epsilon"), POSITIVE),
    **dict.fromkeys(("rho", "temperature"), POSITIVE),
    **dict.fromkeys(("threshold", "quantile"), SHARE),
    "first_score": WITHIN,
    "certainty": Range(above=0.5, below=1),
    "similarity": Range(at_least=-1, at_most=1),
}

REMEDIES = {
    "noise_multiplier": "; 0 adds no noise, and guarantees nothing",
    "score_multiplier": "; 0 adds no noise, and guarantees nothing",
}


def in_range(values: dict, **others: Range) -> None:
    """Checks hyper-parameters against their ranges.

    Args:
      values: hyper-parameters by name. Names without a range pass, and the values of
        JAX arrays are not checked.
      others: ranges that override ``RANGES``.

    Raises:
      TypeError: for a value that is not a real number.
      ValueError: for a number on the host out of range, or an array that is not a
        scalar.

    Example:
      >>> in_range({"mu": 0.0, "learning_rate": 0.1}, learning_rate=POSITIVE)
    """
    ranges = RANGES | others
    for name, value in values.items():
        if name not in ranges:
            continue
        _one_number(name, value)
        number = known(value)
        if number is not None and not ranges[name].holds(number):
            raise ValueError(
                f"{name} must be {ranges[name].finite_words}, got {value!r}"
                f"{REMEDIES.get(name, '')}."
            )


def _one_number(name, value):
    """Raises unless the value is a real scalar; bools are rejected."""
    array = isinstance(value, np.ndarray | np.generic | jax.Array)
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if array:
        kinds = jnp.integer, jnp.floating
        real = any(jnp.issubdtype(value.dtype, kind) for kind in kinds)
    if not real:
        raise TypeError(f"{name} must be a number, got {value!r}.")
    if array and value.shape:
        raise ValueError(
            f"{name} must be one number, got shape {value.shape}; use jax.vmap to map "
            "over several."
        )
