"""Streams longer than a window, made by windows that overlap and share their noise."""

import jax
import jax.numpy as jnp

from jaxanon.kernels.checks import whole
from jaxanon.methods import hub_sampling
from jaxanon.methods.hub_networks import Networks

PART = 2048  # Windows that the denoiser sees at a time; a stream may have any number.


def stream(
    nets: Networks, key, state, classes, samples: int, *, stride=None, avoid=None
):
    """One stream of each class that was asked for, of any length.

    The noise that sampling starts from is the stream's. At every step each window of it
    is denoised by itself, and where windows overlap the mean of what they say is taken,
    with weights that fall to its ends; so neighbours agree from the first step on, and
    there are no seams to hide. All windows of a stream share their statistics. A stream
    as long as a window is what ``hub_sampling.synthesise`` makes.

    Args:
      nets: ``Networks``.
      key: typed PRNG key.
      state: of PrivateHub, trained.
      classes: ``int32[n]`` of each attribute, of ``hub_sampling.every``.
      samples: how many a stream has, a window's at least.
      stride: samples from window to window, at most a window's; default: half of one.
      avoid: as ``hub_sampling.synthesise`` takes it.

    Returns:
      ``float32[n, samples, channels]``, in physical units.

    Raises:
      TypeError: for numbers that are not whole.
      ValueError: for a stream shorter than a window, or a stride beyond one.

    References:
      Bar-Tal et al., MultiDiffusion, ICML 2023.
    """
    time = nets.spec.time
    samples = whole("samples", samples, least=1)
    stride = max(1, time // 2) if stride is None else whole("stride", stride, least=1)
    if samples < time:
        raise ValueError(
            f"samples must be a window's at least, {time}, got {samples}; make "
            "windows, and cut them."
        )
    if stride > time:
        raise ValueError(
            f"stride must be <= {time}, a window's samples, so that none is left out; "
            f"got {stride}."
        )
    public = classes[nets.spec.public]
    noise_key, told_key, sample_key = jax.random.split(key, 3)
    told = hub_sampling.told(nets, told_key, state.params, classes)
    cut = starts(samples, time, stride)
    negative = hub_sampling.avoided(nets, avoid)
    many, other = jax.tree.map(
        lambda leaf: jnp.repeat(leaf, len(cut), axis=0), (told, negative)
    )

    def of_windows(x, t):
        denoise = lambda x, positive, negative: hub_sampling.guided(
            nets, state.params, positive, negative, state.hyper
        )(x, t)
        return in_parts(denoise, (x, many, other), PART)

    denoise_fn = overlapping(of_windows, samples, time, cut)
    x = jax.random.normal(noise_key, (len(public), samples, nets.bits.channels))
    x = hub_sampling.denoised(nets, sample_key, denoise_fn, x, nets.config.num_steps)
    return hub_sampling.physical(nets, nets.bits.decode(x))


def in_parts(fn, rows, size: int):
    """``fn`` of so many rows at a time, so that memory is bounded.

    Args:
      fn: ``(*rows) -> rows``, each row's by itself.
      rows: tuple of trees of arrays, n rows each.
      size: rows of a call, at most.

    Returns:
      What ``fn`` says of all rows.

    Example:
      >>> in_parts(lambda x: 2 * x, (jnp.arange(5),), 2)
      Array([0, 2, 4, 6, 8], dtype=int32)
    """
    number = len(jax.tree.leaves(rows)[0])
    if number <= size:
        return fn(*rows)
    parts = -(-number // size)
    place = jnp.arange(parts * size).reshape(parts, size) % number
    part = lambda place: fn(*jax.tree.map(lambda leaf: leaf[place], rows))
    made = jax.lax.map(part, place)
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:number], made)


def starts(samples: int, time: int, stride: int) -> list[int]:
    """Where windows begin that cover a stream; the last ends with it.

    Example:
      >>> starts(10, 4, 2), starts(11, 4, 3), starts(4, 4, 2)
      ([0, 2, 4, 6], [0, 3, 6, 7], [0])
    """
    return [*range(0, samples - time, stride), samples - time]


def overlapping(denoise_fn, samples: int, time: int, cut: list[int]):
    """A denoiser of streams made of one of windows.

    Args:
      denoise_fn: ``(x, t) -> output`` of ``float[n * windows, time, d]``, the windows
        of a stream one after another.
      samples: of a stream.
      time: samples of a window.
      cut: where windows begin, of ``starts``.

    Returns:
      ``(x, t) -> output`` of ``float[n, samples, d]``: the mean of what windows say,
      each with a weight that rises to its middle. Rows of noise, of x0 and of v are
      averaged alike, for each is linear in the others.

    Example:
      >>> double = overlapping(lambda x, t: 2 * x, 3, 2, [0, 1])
      >>> double(jnp.array([[[1.0], [2.0], [3.0]]]), 7)[0, :, 0]
      Array([2., 4., 6.], dtype=float32)
    """
    places = jnp.array(cut)[:, None] + jnp.arange(time)[None]
    # A triangle: 1, 2, ..., 2, 1.
    middle = jnp.minimum(jnp.arange(time), jnp.arange(time)[::-1]) + 1.0
    total = jnp.zeros(samples).at[places].add(jnp.broadcast_to(middle, places.shape))

    def of_stream(x, t):
        number, _, d = x.shape
        windows = x[:, places].reshape(-1, time, d)
        said = denoise_fn(windows, t).reshape(number, len(cut), time, d)
        said = said * middle[None, None, :, None].astype(said.dtype)
        both = jnp.zeros_like(x).at[:, places].add(said)
        return both / total[None, :, None].astype(x.dtype)

    return of_stream
