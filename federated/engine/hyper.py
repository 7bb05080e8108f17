"""What hyper-parameters may be, for the functions that take them as bare numbers."""

import numbers

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.kernels.bounds import NOT_NEGATIVE, POSITIVE, SHARE, WITHIN, Range
from jaxanon.kernels.checks import known

# By name, which means the same in every algorithm; steps of length 0 go nowhere.
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
    """Refuses hyper-parameters out of their range; what is traced nobody can check.

    Args:
      values: hyper-parameters by name; those of no range pass, and what arrays of JAX
        hold, one number each, is not looked at.
      others: ranges in place of those of ``RANGES``.

    Raises:
      TypeError: for what is no real number.
      ValueError: for a number on the host that its range does not hold, or several.

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
    """Arrays of one number may be traced; a bool is none, though Python says so."""
    array = isinstance(value, np.ndarray | np.generic | jax.Array)
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if array:
        kinds = jnp.integer, jnp.floating
        real = any(jnp.issubdtype(value.dtype, kind) for kind in kinds)
    if not real:
        raise TypeError(f"{name} must be a number, got {value!r}.")
    if array and value.shape:
        raise ValueError(
            f"{name} must be one number, got shape {value.shape}; map over an array of "
            "settings with jax.vmap."
        )
