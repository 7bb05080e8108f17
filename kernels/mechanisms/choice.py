"""Private choices among k: randomised response and selection by score."""

import jax.numpy as jnp

from jaxanon.kernels import portable
from jaxanon.kernels.checks import (
    as_array,
    known,
    not_traced,
    one_of,
    positive,
    typed_key,
    whole,
)
from jaxanon.kernels.mechanisms.bounded import BoundedValue, bounded_only
from jaxanon.kernels.precision import widened

NOISES = ("exponential", "laplace")


def randomized_response(key, labels, num_classes, epsilon):
    """Randomises each label with ε-local differential privacy.

    The true label is reported with probability ``e^ε / (e^ε + k - 1)``, every other
    class with ``1 / (e^ε + k - 1)``. A label outside [0, k), such as padding, is
    replaced by a uniform one, which is also ε-private.

    Args:
      key: typed PRNG key.
      labels: ``int[...]``.
      num_classes: k, a Python int >= 2.
      epsilon: number > 0 or ``float[]``, per label. The budgets of one person's labels
        add. Infinity reports the truth.

    Returns:
      ``int[...]`` in [0, k), in the dtype of ``labels``. Probabilities have float32
      precision: a lie with probability below 1e-7 never occurs.

    Raises:
      TypeError: for a legacy key, labels that are not integers, or a ``num_classes``
        that is not a Python int.
      ValueError: if ``num_classes`` or ``epsilon`` is too small, or the dtype of
        ``labels`` is too narrow for k.

    Example:
      >>> import jax
      >>> randomized_response(jax.random.key(0), jnp.array([2, 0, 1]), 3, jnp.inf)
      Array([2, 0, 1], dtype=int32)

    References:
      Warner, JASA 1965; Kairouz, Bonawitz and Ramage, Discrete Distribution Estimation
      under Local Privacy, ICML 2016, section 2.
    """
    typed_key(key)
    num_classes = whole("num_classes", num_classes, least=2)
    positive(epsilon=epsilon)
    labels = _integers(labels, "labels")
    keep_key, other_key = portable.split(key)
    if num_classes - 1 > jnp.iinfo(labels.dtype).max:
        raise ValueError(
            f"labels must have a dtype that holds {num_classes} classes, got "
            f"{labels.dtype}; widen them."
        )
    # Keeping the label or drawing from all k gives the same distribution.
    keep, _ = _law(num_classes, epsilon)
    kept = portable.uniform(keep_key, labels.shape, dtype=jnp.float32) < keep
    inside = (labels >= 0) & (labels < num_classes)
    other = portable.randint(other_key, labels.shape, 0, num_classes)
    return jnp.where(kept & inside, labels, other.astype(labels.dtype))


def randomized_response_epsilon(truth_probability, num_classes):
    """Returns the ε of randomised response with a given truth probability.

    Args:
      truth_probability: p, a number or ``float[...]`` in [1/k, 1]; 1/k gives 0 and 1
        gives infinity. All other classes are equally likely.
      num_classes: k, a Python int >= 2.

    Returns:
      ``log(p (k - 1) / (1 - p))`` as ``float32[...]`` (float64 for float64); NaN where
      p is out of range.

    Raises:
      TypeError: if ``num_classes`` is not a Python int.
      ValueError: if it is below 2, or p on the host is out of range.

    Example:
      >>> randomized_response_epsilon(0.25, 4), randomized_response_epsilon(1.0, 2)
      (Array(0., dtype=float32), Array(inf, dtype=float32))
    """
    num_classes = whole("num_classes", num_classes, least=2)
    given = known(truth_probability)
    if given is not None and not 1 / num_classes <= given <= 1:
        raise ValueError(
            f"truth_probability must be in [1/{num_classes}, 1], got "
            f"{truth_probability!r}; below that range a lie is more likely."
        )
    p = as_array("truth_probability", truth_probability)
    p = widened(p)
    least = jnp.asarray(1 / num_classes, p.dtype)
    p = jnp.where((p >= least) & (p <= 1), p, jnp.nan)
    return jnp.log(p) + jnp.log(jnp.asarray(num_classes - 1, p.dtype)) - jnp.log1p(-p)


def randomized_response_frequencies(responses, num_classes, epsilon, mask=None):
    """Estimates the frequency of each class among the true labels, without bias.

    The estimate is ``(reported fraction - q) / (p - q)`` with the probabilities p of
    the truth and q of another class. The estimates sum to 1. A single one may be
    outside [0, 1]; clipping it would introduce bias.

    Args:
      responses: ``int[n]`` from ``randomized_response`` with the same k and ε.
      num_classes: k, a Python int >= 2.
      epsilon: number > 0 or ``float[]``.
      mask: ``bool[n]``, False where a row is padding. None is all True.

    Returns:
      ``float32[k]``. Without real rows each entry is 1/k. It is NaN if a real response
      is outside [0, k), which is not a valid report.

    Raises:
      TypeError: if responses are not integers, or ``num_classes`` is not a Python int.
      ValueError: if responses are not a vector, ``mask`` has another shape, or a number
        is too small.

    Example:
      >>> randomized_response_frequencies(jnp.array([0, 0, 1, 0]), 2, jnp.inf)
      Array([0.75, 0.25], dtype=float32)

    References:
      Kairouz, Bonawitz and Ramage, ICML 2016, section 3.
    """
    num_classes = whole("num_classes", num_classes, least=2)
    positive(epsilon=epsilon)
    responses = _integers(responses, "responses")
    real = jnp.ones(responses.shape, bool) if mask is None else jnp.asarray(mask, bool)
    if responses.ndim != 1 or real.shape != responses.shape:
        raise ValueError(
            "responses and mask must both be [n], got shapes "
            f"{responses.shape} and {real.shape}; ravel them."
        )
    hits = (responses[:, None] == jnp.arange(num_classes)[None]) & real[:, None]
    valid = jnp.all(jnp.any(hits, axis=1) | ~real)
    total = jnp.sum(real, dtype=jnp.float32)
    fraction = jnp.sum(hits, axis=0, dtype=jnp.float32) / jnp.maximum(total, 1)
    gap, other = _law(num_classes, epsilon)
    estimate = jnp.where(total > 0, (fraction - other) / gap, 1 / num_classes)
    return jnp.where(valid, estimate, jnp.nan)


def exponential_mechanism(key, scores: BoundedValue, epsilon, *, monotonic=False):
    """Chooses one of k by score: ``P(i) ∝ exp(ε s_i / (2 Δ))``, with Gumbel noise.

    Args:
      key: typed PRNG key.
      scores: ``float[k]`` with L∞ sensitivity Δ; higher is better. Scores of -inf or
        NaN are never chosen and must be set from public information.
      epsilon: number > 0 or ``float[]``. Infinity, or Δ = 0, chooses the best score.
      monotonic: whether a neighbour moves all scores in the same direction, as when
        adding a person to counts. The factor 2 is then omitted. This is not checked.

    Returns:
      ``int32[]``, the index. It is -1 if every score is excluded, or if ``epsilon`` is
      an array that is negative or NaN.

    Raises:
      TypeError: for a legacy key, scores without sensitivities, or a traced
        ``monotonic``.
      ValueError: if scores are not a vector, or ``epsilon`` is not > 0.

    Example:
      >>> import jax
      >>> from jaxanon.kernels.mechanisms import bounded_value
      >>> counts = bounded_value(jnp.array([3.0, 90.0, 5.0]), linf=1)
      >>> exponential_mechanism(jax.random.key(0), counts, 1.0, monotonic=True)
      Array(1, dtype=int32)

    References:
      McSherry and Talwar, Mechanism Design via Differential Privacy, FOCS 2007.
    """
    return _best(key, scores, epsilon, monotonic, gumbel)


def report_noisy_max(
    key, scores: BoundedValue, epsilon, *, noise="exponential", monotonic=False
):
    """Chooses the best of k scores after adding noise of scale ``2 Δ / ε``; ε-DP.

    With exponential noise it equals the permute-and-flip mechanism and is never worse
    than the exponential mechanism. Laplace noise is the classical form.

    Args:
      key, scores, epsilon, monotonic: see ``exponential_mechanism``.
      noise: ``"exponential"`` or ``"laplace"``.

    Returns:
      ``int32[]``, the index or -1, see ``exponential_mechanism``.

    Raises:
      TypeError: same conditions as ``exponential_mechanism``.
      ValueError: for unknown noise; also the conditions of ``exponential_mechanism``.

    Example:
      >>> import jax
      >>> from jaxanon.kernels.mechanisms import bounded_value
      >>> scores = bounded_value(jnp.array([0.0, -jnp.inf, 500.0]), linf=1)
      >>> report_noisy_max(jax.random.key(0), scores, 1.0, noise="laplace")
      Array(2, dtype=int32)

    References:
      Dwork and Roth, The Algorithmic Foundations of Differential Privacy, 2014, section
      3.3; McKenna and Sheldon, Permute-and-Flip, NeurIPS 2020; Ding et al., The
      Permute-and-Flip Mechanism is Identical to Report-Noisy-Max with Exponential
      Noise, 2021.
    """
    one_of("noise", noise, NOISES)
    draw = portable.exponential if noise == "exponential" else portable.laplace
    return _best(
        key,
        scores,
        epsilon,
        monotonic,
        lambda key, shape: draw(key, shape, jnp.float32),
    )


def gumbel(key, shape):
    """Draws Gumbel noise with an exact upper tail, which matters for many candidates.

    JAX's default uses one 32-bit word, whose largest value is 15.95.
    """
    return portable.gumbel(key, shape, jnp.float32, mode="high")


def _law(num_classes, epsilon):
    """Returns p - q and q, where the truth has probability p and other classes q."""
    epsilon = jnp.asarray(epsilon, jnp.float32)
    total = 1 + (num_classes - 1) * jnp.exp(-epsilon)  # Divided by e^ε: no overflow.
    return -jnp.expm1(-epsilon) / total, jnp.exp(-epsilon) / total


def _best(key, scores, epsilon, monotonic, draw):
    typed_key(key)
    positive(epsilon=epsilon)
    bounded_only(scores=scores)
    value = jnp.asarray(scores.value)
    if value.ndim != 1 or not value.size:
        raise ValueError(
            f"scores must be float[k] with k >= 1, got shape {value.shape}; "
            "use jax.vmap for a batch."
        )
    value = widened(value)
    not_traced("monotonic", monotonic)
    scale = (1 if monotonic else 2) * scores.linf_sensitivity / epsilon
    noisy = value + jnp.asarray(scale, value.dtype) * draw(key, value.shape)
    possible = (value > -jnp.inf) & (scale >= 0)  # False for NaN.
    best = jnp.argmax(jnp.where(possible, noisy, -jnp.inf)).astype(jnp.int32)
    return jnp.where(jnp.any(possible), best, -1)


def _integers(array, name):
    array = as_array(name, array)
    if not jnp.issubdtype(array.dtype, jnp.integer):
        raise TypeError(f"{name} must be int[...], got dtype {array.dtype}.")
    return array
