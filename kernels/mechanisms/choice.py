"""Private answers that are one of k: randomised response, and the best of k scores."""

import jax.numpy as jnp

from jaxanon.kernels import portable
from jaxanon.kernels.checks import known, not_traced, one_of, positive, typed_key, whole
from jaxanon.kernels.mechanisms.bounded import BoundedValue, bounded_only
from jaxanon.kernels.precision import widened

NOISES = ("exponential", "laplace")


def randomized_response(key, labels, num_classes, epsilon):
    """Reports each label truthfully, or else one of the others at random: ε-local DP.

    The truth comes with probability ``e^ε / (e^ε + k - 1)``, every other class with
    ``1 / (e^ε + k - 1)``. A label outside [0, k), such as padding, is reported
    uniformly, which is ε-private too.

    Args:
      key: a typed PRNG key.
      labels: ``int[...]``.
      num_classes: k, a Python int >= 2.
      epsilon: a number > 0 or ``float[]``, per label; labels of one person add up.
        Infinity reports the truth.

    Returns:
      ``int[...]`` in [0, k), of the dtype of ``labels``. Probabilities are those of
      float32: a chance below 1e-7 of lying is none.

    Raises:
      TypeError: for a legacy key, labels that are not integers, or a ``num_classes``
        that is no Python int.
      ValueError: if ``num_classes`` or ``epsilon`` is below its bound, or ``labels``
        too narrow for k.

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
            f"labels of {labels.dtype} cannot name num_classes {num_classes} classes; "
            "widen them."
        )
    # Kept, or drawn anew from all k: the same law, without excluding the truth.
    keep, _ = _law(num_classes, epsilon)
    kept = portable.uniform(keep_key, labels.shape, dtype=jnp.float32) < keep
    inside = (labels >= 0) & (labels < num_classes)
    other = portable.randint(other_key, labels.shape, 0, num_classes)
    return jnp.where(kept & inside, labels, other.astype(labels.dtype))


def randomized_response_epsilon(truth_probability, num_classes):
    """The ε of reporting the truth so often, all other classes being equally likely.

    Args:
      truth_probability: p, a number or ``float[...]`` in [1/k, 1]; 1/k gives 0 and 1
        gives infinity.
      num_classes: k, a Python int >= 2.

    Returns:
      ``float32[...]`` (float64 for float64), ``log(p (k - 1) / (1 - p))``; NaN where p
      is out of its range.

    Raises:
      TypeError: if ``num_classes`` is no Python int.
      ValueError: if it is below 2, or p is a number on the host and out of its range.

    Example:
      >>> randomized_response_epsilon(0.25, 4), randomized_response_epsilon(1.0, 2)
      (Array(0., dtype=float32), Array(inf, dtype=float32))
    """
    num_classes = whole("num_classes", num_classes, least=2)
    given = known(truth_probability)
    if given is not None and not 1 / num_classes <= given <= 1:
        raise ValueError(
            f"truth_probability must be in [1/{num_classes}, 1], got "
            f"{truth_probability!r}; below, another answer would be likelier."
        )
    p = jnp.asarray(truth_probability)
    p = widened(p)
    least = jnp.asarray(1 / num_classes, p.dtype)
    p = jnp.where((p >= least) & (p <= 1), p, jnp.nan)
    return jnp.log(p) + jnp.log(jnp.asarray(num_classes - 1, p.dtype)) - jnp.log1p(-p)


def randomized_response_frequencies(responses, num_classes, epsilon, mask=None):
    """Unbiased estimate of how frequent each class is among the true labels.

    ``(share reported - q) / (p - q)`` with p, q the probabilities of the truth and of
    another class. The estimates add up to 1; a single one may lie outside [0, 1], and
    clipping it would make it biased.

    Args:
      responses: ``int[n]`` by ``randomized_response`` with the same k and ε.
      num_classes: k, a Python int >= 2.
      epsilon: as there; a number > 0 or ``float[]``.
      mask: ``bool[n]``, False where a row is padding; ``None``: all are real.

    Returns:
      ``float32[k]``. With no real row, 1/k each; NaN where a real response lies outside
      [0, k), which nobody can have sent.

    Raises:
      TypeError: if responses are not integers, or ``num_classes`` no Python int.
      ValueError: if responses are not a vector, ``mask`` has another shape, or a number
        is below its bound.

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
    sent = jnp.all(jnp.any(hits, axis=1) | ~real)
    total = jnp.sum(real, dtype=jnp.float32)
    share = jnp.sum(hits, axis=0, dtype=jnp.float32) / jnp.maximum(total, 1)
    gap, other = _law(num_classes, epsilon)
    estimate = jnp.where(total > 0, (share - other) / gap, 1 / num_classes)
    return jnp.where(sent, estimate, jnp.nan)


def exponential_mechanism(key, scores: BoundedValue, epsilon, *, monotonic=False):
    """Chooses one of k by score: ``P(i) ∝ exp(ε s_i / (2 Δ))``, by Gumbel noise.

    Args:
      key: a typed PRNG key.
      scores: ``float[k]`` with its L∞ sensitivity Δ, the higher the better. Those of
        -inf or NaN are never chosen; whoever sets them must do so publicly.
      epsilon: a number > 0 or ``float[]``; infinity takes the best, as does Δ = 0.
      monotonic: a neighbour moves all scores the same way (counts, one person added):
        the 2 falls away. The caller's word is taken for it.

    Returns:
      ``int32[]``, the index; -1 where nothing can be chosen, or an ``epsilon`` that is
      an array is negative or NaN.

    Raises:
      TypeError: for a legacy key, scores without sensitivities, or a traced
        ``monotonic``.
      ValueError: if scores are not a vector, or ``epsilon`` not > 0.

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
    """Chooses the best of k scores after noise of scale ``2 Δ / ε`` on each; ε-DP.

    Exponential noise is never worse than the exponential mechanism, and is the
    permute-and-flip mechanism; Laplace noise is the classical form. Arguments, result
    and edges are those of ``exponential_mechanism``.

    Args:
      key, scores, epsilon, monotonic: as in ``exponential_mechanism``.
      noise: ``"exponential"`` or ``"laplace"``.

    Returns:
      ``int32[]``, the index, or -1, as there.

    Raises:
      TypeError: as there.
      ValueError: for another noise, and as there.

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
    """Gumbel numbers whose upper tail is right: it decides between many candidates.

    Made of one word of 32 bits, as is JAX's default, none would be above 15.95.
    """
    return portable.gumbel(key, shape, jnp.float32, mode="high")


def _law(num_classes, epsilon):
    """By how much the truth is likelier than another class, and that one's chance."""
    epsilon = jnp.asarray(epsilon, jnp.float32)
    total = 1 + (num_classes - 1) * jnp.exp(-epsilon)  # Over e^ε, lest it overflow.
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
    possible = (value > -jnp.inf) & (scale >= 0)  # NaN is not.
    best = jnp.argmax(jnp.where(possible, noisy, -jnp.inf)).astype(jnp.int32)
    return jnp.where(jnp.any(possible), best, -1)


def _integers(array, name):
    array = jnp.asarray(array)
    if not jnp.issubdtype(array.dtype, jnp.integer):
        raise TypeError(f"{name} must be int[...], got dtype {array.dtype}.")
    return array
