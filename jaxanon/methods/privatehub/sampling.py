"""PrivateHub's sampling: generates windows and streams, and anonymizes windows."""

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
    """Generates windows of given classes from pure noise.

    Statistics are drawn from a Gaussian fitted to the public class's training windows,
    so no single window is reproduced on purpose, unless its class has only one.
    Sampling starts from pure noise even if the schedule leaves some signal at its end.

    Args:
      nets: ``PrivateHubNetworks``.
      key: typed PRNG key.
      params: parameters of the networks.
      hyper: hyper-parameters as in ``guided``.
      classes: ``int32[batch]`` of each attribute; the number of classes stands for an
        unknown class.
      avoid: classes to guide away from, in the same form; None for none.

    Returns:
      ``float32[batch, time, channels]``, standardised.
    """
    noise_key, condition_key, sample_key = jax.random.split(key, 3)
    positive = draw_conditions(nets, condition_key, params, classes)
    shape = len(positive.known), nets.spec.time, nets.bits.channels
    x = jax.random.normal(noise_key, shape)
    negative = avoided(nets, avoid)
    denoise_fn = guided(nets, params, positive, negative, hyper)
    x = denoised(nets, sample_key, denoise_fn, x, nets.config.num_train_timesteps)
    return nets.bits.decode(x)


def draw_conditions(nets: PrivateHubNetworks, key, params, classes) -> Condition:
    """Returns conditions of classes, with drawn statistics unless training had noise.

    Args:
      nets: ``PrivateHubNetworks``.
      key: typed PRNG key.
      params: parameters of the networks.
      classes: classes as in ``synthesise``.
    """
    public = classes[nets.spec.public]
    if nets.config.noisy:
        return nets.nothing(len(public))._replace(classes=classes)
    features = drawn_statistics(key, params[STATISTICS], public)
    return Condition(classes, features, jnp.ones(len(public), bool))


def avoided(nets: PrivateHubNetworks, classes) -> Condition | None:
    """Returns the condition of classes to guide away from; None without classes."""
    if not classes:
        return None
    full = filled(nets, classes)
    return nets.nothing(len(full[nets.spec.public]))._replace(classes=full)


def rewrite(nets: PrivateHubNetworks, key, params, hyper, windows):
    """Anonymizes windows: adds part of the noise and denoises with guidance.

    Guidance leads towards the predicted public class and away from the predicted
    private classes; the condition has no statistics. A window of a class to hide, as
    classified by ``suspected``, is generated from pure noise as another class, chosen
    uniformly, so that nothing of it remains. With strength 0, all other windows stay
    unchanged. With ``smoothing``, windows generated from pure noise are smoothed.

    Args:
      nets: ``PrivateHubNetworks``.
      key: typed PRNG key.
      params: parameters of the networks.
      hyper: hyper-parameters as in ``guided``, and ``hide_threshold``, ``float[]``.
      windows: ``float32[batch, time, channels]``, standardised.

    Returns:
      ``float32[batch, time, channels]``, standardised.

    References:
      Meng et al., SDEdit, ICLR 2022; Yang and Ardakanian, PrivDiffuser, PoPETs 2025,
      for the negative condition.
    """
    class_key, noise_key, sample_key = portable.split(key, 3)
    x0 = nets.bits.encode(windows)
    positive, negative, hidden = _conditions(nets, class_key, params, hyper, x0)
    denoise_fn = guided(nets, params, positive, negative, hyper)
    noise = portable.normal(noise_key, x0.shape)
    start, last = first_step(nets.config), nets.config.num_train_timesteps
    generate = lambda: denoised(nets, sample_key, denoise_fn, noise, last)

    def denoise_part():
        if not start:
            return x0
        x = kernels.diffuse(nets.schedule, x0, noise, start)
        if nets.config.classes_to_hide and start == last:
            x = jnp.where(hidden[:, None, None], noise, x)
        return denoised(nets, sample_key, denoise_fn, x, start)

    if not nets.config.classes_to_hide or start == last:
        x = denoise_part()
    elif len(x0) == 1:  # Runs only the branch that the window needs.
        x = jax.lax.cond(hidden[0], generate, denoise_part)
    else:
        both = lambda: jnp.where(hidden[:, None, None], generate(), denoise_part())
        x = jax.lax.cond(jnp.any(hidden), both, denoise_part)
    result = nets.bits.decode(x)
    generated = hidden | (start == last)
    if nets.config.smoothing:
        most = params[STATISTICS]["roughness"][positive.classes[nets.spec.public]]
        measured = np.array(nets.bits.values)[None, None] == 0
        smooth = data.smoothed(result, most)
        result = jnp.where(generated[:, None, None] & measured, smooth, result)
    return result if start else jnp.where(generated[:, None, None], result, windows)


def _conditions(nets, key, params, hyper, x0):
    """Returns positive and negative conditions and ``bool[batch]``, classes to hide."""
    public = nets.spec.public
    logits = {name: classify(nets, params, name, x0)[0] for name in nets.sizes}
    predicted = {name: jnp.argmax(each, axis=-1) for name, each in logits.items()}
    predicted[public] = suspected(nets, logits[public], hyper["hide_threshold"])
    predicted = {name: each.astype(jnp.int32) for name, each in predicted.items()}
    null = nets.nothing(len(x0))
    shown, hidden = shown_classes(nets, key, predicted[public])
    avoided = jnp.where(hidden, predicted[public], nets.sizes[public])
    positive = null._replace(classes=null.classes | {public: shown})
    negative = null._replace(classes=predicted | {public: avoided})
    return positive, negative, hidden


def suspected(nets: Judging, logits, hide_threshold):
    """Predicts public classes, ``int32[batch]``, with a threshold for hidden ones.

    If the probabilities of the classes to hide sum to more than ``hide_threshold``,
    returns the likeliest of these; otherwise the likeliest of the others.

    Args:
      nets: networks, with or without classes to hide.
      logits: ``float[batch, classes]`` of the classifier.
      hide_threshold: ``float[]`` in [0, 1).
    """
    to_hide = is_hidden(nets)
    hidden = (
        jnp.sum(jax.nn.softmax(logits), axis=-1, where=to_hide[None]) > hide_threshold
    )
    masked = jnp.where(to_hide[None] == hidden[:, None], logits, -jnp.inf)
    return jnp.argmax(masked, axis=-1).astype(jnp.int32)


PART = 2048  # Windows per call of the denoiser; a stream may have any number.


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
    """Generates one stream of any length for each requested class.

    Sampling starts from noise of the whole stream. Each step denoises every window of
    the stream separately and averages the outputs where windows overlap, with weights
    that fall towards the window's ends. Adjacent windows therefore agree from the first
    step on and leave no seams. All windows of a stream share their statistics. A stream
    of one window equals the result of ``synthesise``.

    Args:
      nets: ``PrivateHubNetworks``.
      key: typed PRNG key.
      state: trained state of PrivateHub.
      classes: ``int32[n]`` of each attribute, from ``generator.every``.
      samples: length of a stream, at least that of a window.
      stride: samples from window to window, at most a window's length; default: half of
        it.
      avoid: classes as in ``synthesise``.

    Returns:
      ``float32[n, samples, channels]``, in physical units.

    Raises:
      TypeError: if samples or stride is not a whole number.
      ValueError: if the stream is shorter than a window, or the stride longer.

    References:
      Bar-Tal et al., MultiDiffusion, ICML 2023.
    """
    time = nets.spec.time
    samples = whole("samples", samples, least=1)
    stride = max(1, time // 2) if stride is None else whole("stride", stride, least=1)
    if samples < time:
        raise ValueError(
            f"samples must be at least {time}, the length of a window, got {samples}; "
            "generate windows and cut them."
        )
    if stride > time:
        raise ValueError(
            f"stride must be <= {time}, the length of a window, got {stride}; lower it."
        )
    public = classes[nets.spec.public]
    noise_key, condition_key, sample_key = jax.random.split(key, 3)
    positive = draw_conditions(nets, condition_key, state.params, classes)
    first_samples = starts(samples, time, stride)
    positives, negatives = jax.tree.map(
        lambda leaf: jnp.repeat(leaf, len(first_samples), axis=0),
        (positive, avoided(nets, avoid)),
    )

    def denoise_windows(x, t):
        denoise = lambda x, positive, negative: diffusion.guided(
            nets, state.params, positive, negative, state.hyper
        )(x, t)
        return in_parts(denoise, (x, positives, negatives), PART)

    denoise_fn = overlapping(denoise_windows, samples, time, first_samples)
    x = jax.random.normal(noise_key, (len(public), samples, nets.bits.channels))
    x = diffusion.denoised(
        nets, sample_key, denoise_fn, x, nets.config.num_train_timesteps
    )
    return generator.physical(nets, nets.bits.decode(x))


def in_parts(fn, rows, size: int):
    """Applies ``fn`` to at most ``size`` rows at a time, to bound memory.

    Args:
      fn: ``(*rows) -> rows``, independent for each row.
      rows: tuple of trees of arrays, n rows each.
      size: maximum number of rows per call.

    Returns:
      The outputs of ``fn`` for all rows.

    Example:
      >>> in_parts(lambda x: 2 * x, (jnp.arange(5),), 2)
      Array([0, 2, 4, 6, 8], dtype=int32)
    """
    count = len(jax.tree.leaves(rows)[0])
    if count <= size:
        return fn(*rows)
    num_parts = -(-count // size)
    indices = jnp.arange(num_parts * size).reshape(num_parts, size) % count
    apply_part = lambda index: fn(*jax.tree.map(lambda leaf: leaf[index], rows))
    outputs = jax.lax.map(apply_part, indices)
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:count], outputs)


def starts(samples: int, time: int, stride: int) -> list[int]:
    """Returns the first samples of windows that cover a stream; the last ends with it.

    Example:
      >>> starts(10, 4, 2), starts(11, 4, 3), starts(4, 4, 2)
      ([0, 2, 4, 6], [0, 3, 6, 7], [0])
    """
    return [*range(0, samples - time, stride), samples - time]


def overlapping(denoise_fn, samples: int, time: int, first_samples: list[int]):
    """Returns a denoiser of streams from a denoiser of windows.

    Args:
      denoise_fn: ``(x, t) -> output`` of ``float[n * windows, time, d]``, with the
        windows of a stream one after another.
      samples: number of samples in a stream.
      time: number of samples in a window.
      first_samples: first sample of each window, from ``starts``.

    Returns:
      ``(x, t) -> output`` of ``float[n, samples, d]``: the weighted mean of the
      windows' outputs, with weights that rise to a window's middle. Averaging works for
      noise, x0 and v alike, because each is linear in the others.

    Example:
      >>> double = overlapping(lambda x, t: 2 * x, 3, 2, [0, 1])
      >>> double(jnp.array([[[1.0], [2.0], [3.0]]]), 7)[0, :, 0]
      Array([2., 4., 6.], dtype=float32)
    """
    indices = jnp.array(first_samples)[:, None] + jnp.arange(time)[None]
    # Triangular weights: 1, 2, ..., 2, 1.
    weights = jnp.minimum(jnp.arange(time), jnp.arange(time)[::-1]) + 1.0
    total = jnp.zeros(samples).at[indices].add(jnp.broadcast_to(weights, indices.shape))

    def denoise_stream(x, t):
        count, _, d = x.shape
        windows = x[:, indices].reshape(-1, time, d)
        outputs = denoise_fn(windows, t).reshape(count, len(first_samples), time, d)
        outputs = outputs * weights[None, None, :, None].astype(outputs.dtype)
        summed = jnp.zeros_like(x).at[:, indices].add(outputs)
        return summed / total[None, :, None].astype(x.dtype)

    return denoise_stream
