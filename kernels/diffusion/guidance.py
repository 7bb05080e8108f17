"""Guidance: conditioned denoisers built from a denoiser that takes a condition."""

import jax
import jax.numpy as jnp

from jaxanon.kernels.checks import as_array, is_callable, tree_numeric
from jaxanon.kernels.diffusion import checks, coefficients


def classifier_free_guidance(denoise_fn, condition, null_condition, weight):
    """Returns a denoiser with classifier-free guidance.

    Its output is ``(1 - weight) D(null_condition) + weight D(condition)``. Weight 0
    ignores the condition, 1 is the conditioned output, and larger weights amplify it.
    Both passes are one call of ``denoise_fn``, batched by ``vmap``. For a negative
    prompt, pass the condition to avoid as ``null_condition``.

    Args:
      denoise_fn: ``(x, t, condition) -> output``. The output predicts noise, x0 or v;
        guidance is equivalent for all three wherever the signal is not 0.
      condition: array or tree of arrays for ``denoise_fn``.
      null_condition: condition with the same tree, shapes and dtypes.
      weight: ``float[]``, or ``float[batch]`` with one weight per example. It is an
        array, so a jitted sampler compiles once for all weights. (The paper's weight
        is ``weight - 1``.)

    Returns:
      ``(x, t) -> output``, for ``ddim_sample`` and ``ddpm_sample``. The sum is computed
      in at least float32 and returned in the dtype of the output.

    Raises:
      ValueError: if the conditions do not match. When called, if the weight is neither
        a scalar nor has the leading axes of the output.

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
    """Returns a denoiser guided towards one condition and away from another.

    Its output is ``D(null) + weight (D(positive) - D(null)) - negative_weight
    (D(negative) - D(null))``, from three passes in one call. With ``negative_weight``
    0 it equals ``classifier_free_guidance``.

    Args:
      denoise_fn: ``(x, t, condition) -> output``.
      positive: condition to follow, such as a public attribute's value.
      negative: condition to avoid, such as a private attribute's value.
      null_condition: empty condition. All three have one tree, shapes and dtypes.
      weight: ``float[]`` or ``float[batch]``.
      negative_weight: ``float[]`` or ``float[batch]``, usually >= 0.

    Returns:
      ``(x, t) -> output``, as ``classifier_free_guidance``.

    Raises:
      ValueError: same conditions as ``classifier_free_guidance``.

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


def _guided(denoise_fn, conditions, weights, coefficients_fn):
    """Returns a denoiser that sums the conditions' outputs with coefficients."""
    is_callable(denoise_fn=denoise_fn)
    tree_numeric(**conditions)
    stacked = _stacked(conditions)

    def guided(x, t):
        outputs = jax.vmap(denoise_fn, in_axes=(None, None, 0))(x, t, stacked)
        dtype = coefficients.widest(outputs)
        first = outputs[0]
        ready = [
            checks.per_example(name, weight.astype(dtype), first)
            for name, weight in weights.items()
        ]
        total = sum(
            factor * output.astype(dtype)
            for factor, output in zip(coefficients_fn(*ready), outputs, strict=True)
        )
        return jnp.asarray(total).astype(outputs.dtype)

    return guided


def _stacked(conditions):
    """Stacks matching conditions along a leading axis."""
    (first, expected), *rest = ((n, _describe(c)) for n, c in conditions.items())
    for name, found in rest:
        if found != expected:
            raise ValueError(
                f"{name} must match {first} in tree, shapes and dtypes, {expected}, "
                f"got {found}."
            )
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *conditions.values())


def _describe(tree):
    leaves = [
        (jnp.shape(leaf), str(jnp.result_type(leaf))) for leaf in jax.tree.leaves(tree)
    ]
    return jax.tree.structure(tree), leaves


def _weight(name, weight):
    weight = as_array(name, weight)
    if not jnp.issubdtype(weight.dtype, jnp.number):
        raise TypeError(f"{name} must be a number, got {weight.dtype}.")
    return weight
