"""Where the windows of each private class lie in the latent, over a whole pool."""

import jax
import jax.numpy as jnp

from jaxanon.methods.common.pool import Pool

CHUNK = 1024  # Windows that are encoded at a time.


def offsets(mean_fn, spec, data: Pool, start, count, *, split_public: bool):
    """How far each private class lies from the mean of its public class.

    With one private attribute the entry of a class is the mean latent over its training
    windows less the mean over all of the public class, so that the difference of two
    entries is the published transfer vector, the difference of two class means. With
    several attributes the entries are the least-squares fit of one summand for each,
    so that classes which go together in people are not counted twice, and no joint
    class needs windows of its own. A class without windows lies at the mean.

    Args:
      mean_fn: ``windows -> float[n, latent]``, the means of latents, not samples.
      spec: the windows' ``Spec``.
      data: ``Pool``.
      start, count: ``int32[]``; the windows ``data.order[start : start + count]``.
      split_public: whether those are of several public classes, each with offsets of
        its own, or of one.

    Returns:
      ``float[public classes or 1, private classes of all attributes, latent]``.

    References:
      Hajihassani, Ardakanian, Khazaei, Anonymizing Sensor Data on the Edge, 2021,
      section 5.3 and Algorithm 1, step 4.
    """
    num_public = spec.num_classes(spec.public) if split_public else 1

    def sums(index):
        place = index * CHUNK + jnp.arange(CHUNK)
        rows = data.order[start + jnp.minimum(place, count - 1)]
        z = mean_fn(data.windows[rows])
        public = (
            data.labels[spec.public][rows] if split_public else jnp.zeros_like(rows)
        )
        weights = jax.nn.one_hot(public, num_public) * (place < count)[:, None]
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
    together, latents = jax.lax.fori_loop(0, -(-count // CHUNK), add, zeros)
    return jax.vmap(_fit)(together, latents)


def _fit(together, latents):
    """Least squares of one public class, from products summed over its windows.

    ``together`` is ``float[1 + classes, 1 + classes]`` and ``latents``
    ``float[1 + classes, latent]``; the first row and column are of a constant 1.
    """
    mean = latents[0] / jnp.maximum(together[0, 0], 1)
    rest = latents[1:] - together[1:, :1] * mean[None]
    # In units in which every class has one window, rare ones are no rounding error.
    scale = 1 / jnp.sqrt(jnp.maximum(jnp.diag(together)[1:], 1))[:, None]
    inverse = jnp.linalg.pinv(scale * together[1:, 1:] * scale.T, hermitian=True)
    return scale * (inverse @ (scale * rest))


def transfer(spec, found, row, predicted: dict, shown: dict):
    """What to add to latents so that they lie where the shown classes do.

    Args:
      spec: the windows' ``Spec``.
      found: of ``offsets``.
      row: ``int32[N]``, whose offsets to take: the public class, or 0.
      predicted: name of each private attribute to ``int32[N]``.
      shown: likewise.

    Returns:
      ``float[N, latent]``.
    """
    moved, first = 0.0, 0
    for name in spec.private:
        moved = moved + found[row, first + shown[name]]
        moved = moved - found[row, first + predicted[name]]
        first += spec.num_classes(name)
    return moved


def at_epoch_end(number, rounds_per_epoch, renew_fn, old):
    """``renew_fn()`` in the last round of every epoch, and ``old`` in all others.

    Runs that are trained side by side are in the same round, so the choice stays a
    choice under ``vmap``, where a condition would otherwise pay for both branches.

    Args:
      number: ``int32[]``, of the round that ends, from 0.
      rounds_per_epoch: ``int32[]``.
      renew_fn: makes what ``old`` is a tree of.
      old: kept otherwise.
    """
    ends = _of_all_runs((number + 1) % rounds_per_epoch == 0)
    return jax.lax.cond(ends, renew_fn, lambda: old)


@jax.custom_batching.custom_vmap
def _of_all_runs(flag):
    return flag


@_of_all_runs.def_vmap
def _over_runs(axis_size, in_batched, flag):
    del axis_size, in_batched
    return jnp.any(flag), False
