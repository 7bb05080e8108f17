"""PrivateHub at work: windows from nothing, and windows rewritten."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon import kernels
from jaxanon.kernels import portable
from jaxanon.kernels.checks import whole
from jaxanon.methods.common import diffusion, generator
from jaxanon.methods.common.diffusion import denoised, first_step, guided
from jaxanon.methods.common.generator import (
    Judging,
    classify,
    filled,
    is_hidden,
    shown_classes,
)
from jaxanon.methods.privatehub import data
from jaxanon.methods.privatehub.data import drawn_statistics
from jaxanon.methods.privatehub.networks import STATISTICS, PrivateHubNetworks
from jaxanon.models.conditions import Condition


def synthesise(nets: PrivateHubNetworks, key, params, hyper, classes, avoid=None):
    """Windows from pure noise, of given classes.

    Statistics are drawn from the Gaussian of the public class's training windows, so no
    single window of those is asked for, unless it is the only one of its class. Noise
    is all they begin with, also by a schedule that leaves some signal at its end.

    Args:
      nets: ``PrivateHubNetworks``.
      key: typed PRNG key.
      params: of them.
      hyper: as in ``guided``.
      classes: ``int32[batch]`` of each attribute; one that has its number of classes
        is not known.
      avoid: likewise, classes to get away from; None where there are none.

    Returns:
      ``float32[batch, time, channels]``, standardised.
    """
    noise_key, told_key, sample_key = jax.random.split(key, 3)
    positive = draw_conditions(nets, told_key, params, classes)
    shape = len(positive.known), nets.spec.time, nets.bits.channels
    x = jax.random.normal(noise_key, shape)
    negative = avoided(nets, avoid)
    denoise_fn = guided(nets, params, positive, negative, hyper)
    x = denoised(nets, sample_key, denoise_fn, x, nets.config.num_train_timesteps)
    return nets.bits.decode(x)


def draw_conditions(nets: PrivateHubNetworks, key, params, classes) -> Condition:
    """Classes, and statistics of windows of them, where the networks know any.

    Args:
      nets: ``PrivateHubNetworks``.
      key: typed PRNG key.
      params: of them.
      classes: as ``synthesise`` takes them.
    """
    public = classes[nets.spec.public]
    if nets.config.noisy:
        return nets.nothing(len(public))._replace(classes=classes)
    features = drawn_statistics(key, params[STATISTICS], public)
    return Condition(classes, features, jnp.ones(len(public), bool))


def avoided(nets: PrivateHubNetworks, classes) -> Condition | None:
    """Classes to get away from, and nothing else; None where there are none."""
    if not classes:
        return None
    full = filled(nets, classes)
    return nets.nothing(len(full[nets.spec.public]))._replace(classes=full)


def rewrite(nets: PrivateHubNetworks, key, params, hyper, windows):
    """Windows noised part of the way, and taken back another way.

    Each is told its public class and led away from its private ones, all as the
    classifiers see them; its statistics are not told. A window of a class to hide, as
    ``suspected``, is made from pure noise as one of another class, drawn evenly, so
    that nothing is left of it. With a strength of 0 all others stay as they are, with
    ``smoothing`` what is made from noise is smoothed.

    Args:
      nets: ``PrivateHubNetworks``.
      key: typed PRNG key.
      params: of them.
      hyper: as in ``guided``, and ``hide_threshold``, ``float[]``.
      windows: ``float32[batch, time, channels]``, standardised.

    Returns:
      ``float32[batch, time, channels]``, standardised.

    References:
      Meng et al., SDEdit, ICLR 2022; Yang and Ardakanian, PrivDiffuser, PoPETs 2025,
      for the negative condition.
    """
    class_key, noise_key, sample_key = portable.split(key, 3)
    x0 = nets.bits.encode(windows)
    positive, negative, hidden = _wanted(nets, class_key, params, hyper, x0)
    denoise_fn = guided(nets, params, positive, negative, hyper)
    noise = portable.normal(noise_key, x0.shape)
    start, last = first_step(nets.config), nets.config.num_train_timesteps
    anew = lambda: denoised(nets, sample_key, denoise_fn, noise, last)

    def part():
        if not start:
            return x0
        x = kernels.diffuse(nets.schedule, x0, noise, start)
        if nets.config.classes_to_hide and start == last:
            x = jnp.where(hidden[:, None, None], noise, x)
        return denoised(nets, sample_key, denoise_fn, x, start)

    if not nets.config.classes_to_hide or start == last:
        made = part()
    elif len(x0) == 1:  # By the one way that it goes.
        made = jax.lax.cond(hidden[0], anew, part)
    else:
        both = lambda: jnp.where(hidden[:, None, None], anew(), part())
        made = jax.lax.cond(jnp.any(hidden), both, part)
    made = nets.bits.decode(made)
    fresh = hidden | (start == last)
    if nets.config.smoothing:
        most = params[STATISTICS]["roughness"][positive.classes[nets.spec.public]]
        measured = np.array(nets.bits.values)[None, None] == 0
        smooth = data.smoothed(made, most)
        made = jnp.where(fresh[:, None, None] & measured, smooth, made)
    return made if start else jnp.where(fresh[:, None, None], made, windows)


def _wanted(nets, key, params, hyper, x0):
    """What to make of windows, what not, and ``bool[batch]``: which are to hide."""
    public = nets.spec.public
    told = {name: classify(nets, params, name, x0)[0] for name in nets.sizes}
    found = {name: jnp.argmax(each, axis=-1) for name, each in told.items()}
    found[public] = suspected(nets, told[public], hyper["hide_threshold"])
    found = {name: each.astype(jnp.int32) for name, each in found.items()}
    null = nets.nothing(len(x0))
    wanted, hidden = shown_classes(nets, key, found[public])
    avoided = jnp.where(hidden, found[public], nets.sizes[public])
    positive = null._replace(classes=null.classes | {public: wanted})
    negative = null._replace(classes=found | {public: avoided})
    return positive, negative, hidden


def suspected(nets: Judging, logits, hide_threshold):
    """Public classes of windows, ``int32[batch]``, as they are to be treated.

    One to hide where the probabilities of those together are above ``hide_threshold``,
    the likeliest of them, and else the likeliest of the others.

    Args:
      nets: with classes to hide, or none.
      logits: ``float[batch, classes]``, of their classifier.
      hide_threshold: ``float[]`` in [0, 1).
    """
    secret = is_hidden(nets)
    hidden = (
        jnp.sum(jax.nn.softmax(logits), axis=-1, where=secret[None]) > hide_threshold
    )
    apart = jnp.where(secret[None] == hidden[:, None], logits, -jnp.inf)
    return jnp.argmax(apart, axis=-1).astype(jnp.int32)


PART = 2048  # Windows that the denoiser sees at a time; a stream may have any number.


def stream(
    nets: PrivateHubNetworks,
    key,
    state,
    classes,
    samples: int,
    *,
    stride=None,
    avoid=None,
):
    """One stream of each class that was asked for, of any length.

    The noise that sampling starts from is the stream's. At every step each window of it
    is denoised by itself, and where windows overlap the mean of what they say is taken,
    with weights that fall to its ends; so neighbours agree from the first step on, and
    there are no seams to hide. All windows of a stream share their statistics. A stream
    as long as a window is what ``synthesise`` makes.

    Args:
      nets: ``PrivateHubNetworks``.
      key: typed PRNG key.
      state: of PrivateHub, trained.
      classes: ``int32[n]`` of each attribute, of ``generator.every``.
      samples: how many a stream has, a window's at least.
      stride: samples from window to window, at most a window's; default: half of one.
      avoid: as ``synthesise`` takes it.

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
    told = draw_conditions(nets, told_key, state.params, classes)
    cut = starts(samples, time, stride)
    negative = avoided(nets, avoid)
    many, other = jax.tree.map(
        lambda leaf: jnp.repeat(leaf, len(cut), axis=0), (told, negative)
    )

    def of_windows(x, t):
        denoise = lambda x, positive, negative: diffusion.guided(
            nets, state.params, positive, negative, state.hyper
        )(x, t)
        return in_parts(denoise, (x, many, other), PART)

    denoise_fn = overlapping(of_windows, samples, time, cut)
    x = jax.random.normal(noise_key, (len(public), samples, nets.bits.channels))
    x = diffusion.denoised(
        nets, sample_key, denoise_fn, x, nets.config.num_train_timesteps
    )
    return generator.physical(nets, nets.bits.decode(x))


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
