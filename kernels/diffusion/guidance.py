"""Denoisers of one condition made of a denoiser that takes any."""

import jax
import jax.numpy as jnp

from jaxanon.kernels.diffusion import checks, coefficients


def classifier_free_guidance(denoise_fn, condition, null_condition, weight):
    """A denoiser that leans away from one condition and towards another.

    Its output is ``(1 - weight) D(null_condition) + weight D(condition)``: 0 ignores
    the condition, 1 obeys it, more stresses it. Both passes are one call of
    ``denoise_fn``, batched by ``vmap``. In place of "no condition", the condition to
    get away from may stand (a negative prompt).

    Args:
      denoise_fn: ``(x, t, condition) -> output``; ``output`` is a prediction of noise,
        x0 or v. Guidance is the same with each of them wherever there is signal.
      condition: an array or a tree of arrays, as ``denoise_fn`` takes it.
      null_condition: of the same tree, shapes and dtypes.
      weight: ``float[]``, or ``float[batch]`` with one weight per example; an array, so
        a jitted sampler is compiled once for all weights. (In the paper's count,
        ``weight - 1``.)

    Returns:
      ``(x, t) -> output``, for ``ddim_sample`` and ``ddpm_sample``. The sum is taken in
      float32 at least and comes in the dtype of the output.

    Raises:
      ValueError: if the conditions do not match, or, when called, if the weight has
        neither no axes nor the leading axes of the output.

    Example:
      >>> denoise_fn = lambda x, t, condition: condition * x
      >>> guided = classifier_free_guidance(denoise_fn, 3.0, 1.0, 2.0)
      >>> guided(jnp.array([1.0, 2.0]), 7)
      Array([ 5., 10.], dtype=float32)

    References:
      Ho and Salimans, Classifier-free diffusion guidance, 2022, equation 6.
    """
    weight = _weight("weight", weight)
    return _guided(
        denoise_fn,
        {"condition": condition, "null_condition": null_condition},
        {"weight": weight},
        lambda weight: (weight, 1 - weight),
    )


def negative_guidance(
    denoise_fn, positive, negative, null_condition, weight, negative_weight
):
    """A denoiser that leans towards one condition and away from another.

    Its output is ``D(null) + weight (D(positive) - D(null)) - negative_weight
    (D(negative) - D(null))``, of three passes in one call. With ``negative_weight`` 0
    it is ``classifier_free_guidance``.

    Args:
      denoise_fn: ``(x, t, condition) -> output``.
      positive: the condition to have (a public attribute's value, say).
      negative: the condition not to have (a private attribute's value).
      null_condition: the condition that says nothing; all three have one tree, shapes
        and dtypes.
      weight: ``float[]`` or ``float[batch]``.
      negative_weight: likewise; usually >= 0.

    Returns:
      ``(x, t) -> output``, as ``classifier_free_guidance``.

    Raises:
      ValueError: as ``classifier_free_guidance``.

    Example:
      >>> denoise_fn = lambda x, t, condition: condition * x
      >>> guided = negative_guidance(denoise_fn, 3.0, 2.0, 1.0, 2.0, 0.5)
      >>> guided(jnp.array([1.0, 2.0]), 7)
      Array([4.5, 9. ], dtype=float32)

    References:
      Liu et al., Compositional visual generation with composable diffusion models,
      ECCV 2022, section 4.
    """
    weights = {
        "weight": _weight("weight", weight),
        "negative_weight": _weight("negative_weight", negative_weight),
    }
    return _guided(
        denoise_fn,
        {"positive": positive, "negative": negative, "null_condition": null_condition},
        weights,
        lambda weight, away: (weight, -away, 1 - weight + away),
    )


def _guided(denoise_fn, conditions, weights, shares_fn):
    """The sum of the conditions' outputs, by the shares that the weights come to."""
    stacked = _stacked(conditions)

    def guided(x, t):
        outputs = jax.vmap(denoise_fn, in_axes=(None, None, 0))(x, t, stacked)
        dtype = coefficients.widest(outputs)
        first = outputs[0]
        ready = [
            checks.per_example(name, weight.astype(dtype), first)
            for name, weight in weights.items()
        ]
        shares = shares_fn(*ready)
        total = sum(
            share * output.astype(dtype)
            for share, output in zip(shares, outputs, strict=True)
        )
        return jnp.asarray(total).astype(outputs.dtype)

    return guided


def _stacked(conditions):
    """All conditions along a leading axis, which they must match for."""
    (first, expected), *rest = ((n, _describe(c)) for n, c in conditions.items())
    for name, found in rest:
        if found != expected:
            raise ValueError(
                f"{name} must match {first} in tree, shapes and dtypes: got {found} "
                f"beside {expected}."
            )
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *conditions.values())


def _describe(tree):
    leaves = [
        (jnp.shape(leaf), str(jnp.result_type(leaf))) for leaf in jax.tree.leaves(tree)
    ]
    return jax.tree.structure(tree), leaves


def _weight(name, weight):
    weight = jnp.asarray(weight)
    if not jnp.issubdtype(weight.dtype, jnp.number):
        raise TypeError(f"{name} must be a number, got {weight.dtype}.")
    return weight
