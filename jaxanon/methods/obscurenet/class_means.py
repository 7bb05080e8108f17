"""Mean latents of the private classes over a pool of windows."""

import jax
import jax.numpy as jnp

from jaxanon.methods.common.pool import Pool

CHUNK = 1024  # Windows encoded at a time.


def offsets(mean_fn, spec, data: Pool, start, count, *, split_public: bool):
    """Returns the offset of each private class from the mean of its public class.

    With one private attribute, a class's offset is its mean latent minus the mean of
    the public class, so the difference of two offsets is the published transfer vector.
    With several attributes, the offsets are a least-squares fit with one summand per
    attribute. This accounts for correlated attributes and does not need windows of
    every joint class. A class without windows has offset 0.

    Args:
      mean_fn: ``windows -> float[n, latent]``, latent means rather than samples.
      spec: the windows' ``Spec``.
      data: ``Pool``.
      start, count: ``int32[]``; selects windows ``data.order[start : start + count]``.
      split_public: whether to compute separate offsets for each public class.

    Returns:
      ``float[public classes or 1, private classes of all attributes, latent]``.

    References:
      Hajihassani, Ardakanian, Khazaei, Anonymizing Sensor Data on the Edge, 2021,
      section 5.3 and Algorithm 1, step 4.
    """
    num_public = spec.num_classes(spec.public) if split_public else 1

    def sums(index):
        position = index * CHUNK + jnp.arange(CHUNK)
        rows = data.order[start + jnp.minimum(position, count - 1)]
        z = mean_fn(data.windows[rows])
        public = (
            data.labels[spec.public][rows] if split_public else jnp.zeros_like(rows)
        )
        weights = jax.nn.one_hot(public, num_public) * (position < count)[:, None]
        hot = [
            jax.nn.one_hot(data.labels[name][rows], spec.num_classes(name))
            for name in spec.private
        ]
        seen = jnp.concatenate([jnp.ones((CHUNK, 1)), *hot], axis=-1)
        exact = jax.lax.Precision.HIGHEST
        return (
            jnp.einsum("np,nk,nl->pkl", weights, seen, seen, precision=exact),
            jnp.einsum("np,nk,nl->pkl", weights, seen, z, precision=exact),
        )

    zeros = jax.tree.map(
        lambda like: jnp.zeros(like.shape, like.dtype),
        jax.eval_shape(sums, jnp.int32(0)),
    )
    add = lambda index, total: jax.tree.map(jnp.add, total, sums(index))
    gram, latents = jax.lax.fori_loop(0, -(-count // CHUNK), add, zeros)
    return jax.vmap(_fit)(gram, latents)


def _fit(gram, latents):
    """Solves the least-squares problem of one public class from summed products.

    ``gram`` is ``float[1 + classes, 1 + classes]`` and ``latents`` is
    ``float[1 + classes, latent]``; the first row and column belong to a constant 1.
    """
    mean = latents[0] / jnp.maximum(gram[0, 0], 1)
    rest = latents[1:] - gram[1:, :1] * mean[None]
    # Scaling by the class counts avoids rounding errors for rare classes.
    scale = 1 / jnp.sqrt(jnp.maximum(jnp.diag(gram)[1:], 1))[:, None]
    inverse = jnp.linalg.pinv(scale * gram[1:, 1:] * scale.T, hermitian=True)
    return scale * (inverse @ (scale * rest))


def transfer(spec, class_offsets, row, predicted: dict, shown: dict):
    """Returns the shift of latents from their predicted to their target classes.

    Args:
      spec: the windows' ``Spec``.
      class_offsets: result of ``offsets``.
      row: first index into ``class_offsets``, ``int32[N]``: the public class, or 0.
      predicted: predicted classes by private attribute, ``int32[N]`` each.
      shown: target classes by private attribute, ``int32[N]`` each.

    Returns:
      ``float[N, latent]``.
    """
    moved, first = 0.0, 0
    for name in spec.private:
        moved = moved + class_offsets[row, first + shown[name]]
        moved = moved - class_offsets[row, first + predicted[name]]
        first += spec.num_classes(name)
    return moved


def at_epoch_end(number, rounds_per_epoch, renew_fn, old):
    """Returns ``renew_fn()`` in the last round of each epoch, and ``old`` otherwise.

    Under ``vmap`` over runs, all runs are in the same round, so only one branch is
    executed.

    Args:
      number: index of the current round, from 0, ``int32[]``.
      rounds_per_epoch: ``int32[]``.
      renew_fn: function that returns the new value, a pytree like ``old``.
      old: current value.
    """
    ends = _any_run((number + 1) % rounds_per_epoch == 0)
    return jax.lax.cond(ends, renew_fn, lambda: old)


@jax.custom_batching.custom_vmap
def _any_run(flag):
    return flag


@_any_run.def_vmap
def _over_runs(axis_size, in_batched, flag):
    del axis_size, in_batched
    return jnp.any(flag), False
