"""PrivateHub at work: windows from nothing, and windows rewritten."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon import kernels
from jaxanon.methods import hub_smoothing
from jaxanon.methods.hub_networks import (
    AVERAGE,
    STATISTICS,
    Judging,
    Networks,
    classify,
)
from jaxanon.methods.hub_room import drawn_statistics
from jaxanon.models.conditions import Condition


def guided(nets: Networks, params, positive: Condition, negative, hyper):
    """``(x, t) -> output`` that leans towards one condition and away from another.

    Args:
      nets: ``Networks``.
      params: of them; the running mean of the denoiser is asked.
      positive: ``Condition``, what to have, of each window.
      negative: what not to have; None where there is nothing to get away from.
      hyper: with ``guidance`` and ``negative_guidance``, ``float[]`` each.
    """
    denoise = lambda x, t, told: nets.denoise(params[AVERAGE], x, t, told)
    null, weight = nets.nothing(len(positive.known)), hyper["guidance"]
    if negative is None:
        return kernels.classifier_free_guidance(denoise, positive, null, weight)
    return kernels.negative_guidance(
        denoise, positive, negative, null, weight, hyper["negative_guidance"]
    )


def denoised(nets: Networks, key, denoise_fn, x, start: int):
    """``x`` at step ``start`` taken back to data.

    There are as many steps as ``sampling_steps`` says, fewer where ``start`` is.
    """
    steps = kernels.diffusion_steps(start, min(nets.config.sampling_steps, start))
    return sampled(nets, key, denoise_fn, x, steps)


def sampled(nets: Networks, key, denoise_fn, x, steps):
    """``x`` taken back along ``steps`` by the solver that the settings name.

    Args:
      nets: with a ``config`` of a diffusion, and its ``schedule``.
      key: typed PRNG key.
      denoise_fn, x, steps: as ``kernels.ddim_sample`` takes them.
    """
    given, kind = (nets.schedule, x, steps), nets.config.prediction
    if nets.config.solver == "dpm":
        return kernels.dpm_solver_sample(denoise_fn, *given, prediction=kind)
    return kernels.ddim_sample(denoise_fn, key, *given, prediction=kind)


def first_step(config) -> int:
    """Where a rewriting begins: the step that ``strength`` says; 0 is none at all."""
    return max(int(config.strength > 0), round(config.strength * config.num_steps))


def synthesise(nets: Networks, key, params, hyper, classes, avoid=None):
    """Windows from pure noise, of given classes.

    Statistics are drawn from the Gaussian of the public class's training windows, so no
    single window of those is asked for, unless it is the only one of its class. Noise
    is all they begin with, also by a schedule that leaves some signal at its end.

    Args:
      nets: ``Networks``.
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
    positive = told(nets, told_key, params, classes)
    shape = len(positive.known), nets.spec.time, nets.bits.channels
    x = jax.random.normal(noise_key, shape)
    negative = avoided(nets, avoid)
    denoise_fn = guided(nets, params, positive, negative, hyper)
    x = denoised(nets, sample_key, denoise_fn, x, nets.config.num_steps)
    return nets.bits.decode(x)


def told(nets: Networks, key, params, classes) -> Condition:
    """Classes, and statistics of windows of them, where the networks know any.

    Args:
      nets: ``Networks``.
      key: typed PRNG key.
      params: of them.
      classes: as ``synthesise`` takes them.
    """
    public = classes[nets.spec.public]
    if nets.config.noisy:
        return nets.nothing(len(public))._replace(classes=classes)
    features = drawn_statistics(key, params[STATISTICS], public)
    return Condition(classes, features, jnp.ones(len(public), bool))


def avoided(nets: Networks, classes) -> Condition | None:
    """Classes to get away from, and nothing else; None where there are none."""
    if not classes:
        return None
    full = filled(nets, classes)
    return nets.nothing(len(full[nets.spec.public]))._replace(classes=full)


def rewrite(nets: Networks, key, params, hyper, windows):
    """Windows noised part of the way, and taken back another way.

    Each is told its public class and led away from its private ones, all as the
    classifiers see them; its statistics are not told. A window of a class to hide, as
    ``suspected``, is made from pure noise as one of another class, drawn evenly, so
    that nothing is left of it. With a strength of 0 all others stay as they are, with
    ``smoothing`` what is made from noise is smoothed.

    Args:
      nets: ``Networks``.
      key: typed PRNG key.
      params: of them.
      hyper: as in ``guided``, and ``suspicion``, ``float[]``.
      windows: ``float32[batch, time, channels]``, standardised.

    Returns:
      ``float32[batch, time, channels]``, standardised.

    References:
      Meng et al., SDEdit, ICLR 2022; Yang and Ardakanian, PrivDiffuser, PoPETs 2025,
      for the negative condition.
    """
    class_key, noise_key, sample_key = jax.random.split(key, 3)
    x0 = nets.bits.encode(windows)
    positive, negative, hidden = _wanted(nets, class_key, params, hyper, x0)
    denoise_fn = guided(nets, params, positive, negative, hyper)
    noise = jax.random.normal(noise_key, x0.shape)
    start, last = first_step(nets.config), nets.config.num_steps
    anew = lambda: denoised(nets, sample_key, denoise_fn, noise, last)

    def part():
        if not start:
            return x0
        x = kernels.diffuse(nets.schedule, x0, noise, start)
        if nets.config.hide and start == last:
            x = jnp.where(hidden[:, None, None], noise, x)
        return denoised(nets, sample_key, denoise_fn, x, start)

    if not nets.config.hide or start == last:
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
        smooth = hub_smoothing.smoothed(made, most)
        made = jnp.where(fresh[:, None, None] & measured, smooth, made)
    return made if start else jnp.where(fresh[:, None, None], made, windows)


def _wanted(nets, key, params, hyper, x0):
    """What to make of windows, what not, and ``bool[batch]``: which are to hide."""
    public = nets.spec.public
    told = {name: classify(nets, params, name, x0)[0] for name in nets.sizes}
    found = {name: jnp.argmax(each, axis=-1) for name, each in told.items()}
    found[public] = suspected(nets, told[public], hyper["suspicion"])
    found = {name: each.astype(jnp.int32) for name, each in found.items()}
    null = nets.nothing(len(x0))
    wanted, hidden = shown_classes(nets, key, found[public])
    avoided = jnp.where(hidden, found[public], nets.sizes[public])
    positive = null._replace(classes=null.classes | {public: wanted})
    negative = null._replace(classes=found | {public: avoided})
    return positive, negative, hidden


def suspected(nets: Judging, logits, suspicion):
    """Public classes of windows, ``int32[batch]``, as they are to be treated.

    One to hide where the probabilities of those together are above ``suspicion``, the
    likeliest of them, and else the likeliest of the others.

    Args:
      nets: with classes to hide, or none.
      logits: ``float[batch, classes]``, of their classifier.
      suspicion: ``float[]`` in [0, 1).
    """
    secret = is_hidden(nets)
    hidden = jnp.sum(jax.nn.softmax(logits), axis=-1, where=secret[None]) > suspicion
    apart = jnp.where(secret[None] == hidden[:, None], logits, -jnp.inf)
    return jnp.argmax(apart, axis=-1).astype(jnp.int32)


def shown_classes(nets: Judging, key, found):
    """Public classes as they are, ``int32[batch]``, those to hide drawn anew, evenly.

    Also ``bool[batch]``, which those are.
    """
    secret = is_hidden(nets)
    shown = jnp.log(1.0 - secret)
    other = jax.random.categorical(key, shown, shape=found.shape).astype(jnp.int32)
    return jnp.where(secret[found], other, found), secret[found]


def is_hidden(nets: Judging):
    """``bool[classes]``, which public classes are to hide."""
    names = nets.spec.classes[nets.spec.public]
    return jnp.array([name in nets.config.hide for name in names])


def every(nets: Judging, classes) -> dict:
    """``filled``, where the public attribute is among them.

    Raises:
      ValueError: if it is missing, and as ``filled``.
    """
    if nets.spec.public not in classes:
        raise ValueError(
            f"classes must have {nets.spec.public!r}, of each window to be made, got "
            f"{sorted(classes)}."
        )
    return filled(nets, classes)


def filled(nets: Judging, classes) -> dict:
    """``int32[n]`` of all attributes; those that are not among ``classes`` not known.

    Raises:
      ValueError: if there are others than the spec's, or classes out of range, where
        they are known on the host.
    """
    if unknown := sorted(set(classes) - set(nets.sizes)):
        raise ValueError(
            f"classes must be of {sorted(nets.sizes)}, got {unknown}; nothing else was "
            "learned."
        )
    for name, own in classes.items():
        if not isinstance(own, jax.core.Tracer):
            own, size = np.asarray(own), nets.sizes[name]
            wrong = own[(own < 0) | (own >= size)]
            if len(wrong):
                raise ValueError(
                    f"classes of {name!r} must lie in [0, {size}), got {wrong[0]}; "
                    f"they are {nets.spec.classes[name]}."
                )
    blank = jnp.zeros(len(next(iter(classes.values()))), jnp.int32)
    none = {name: blank + size for name, size in nets.sizes.items()}
    return none | {name: jnp.asarray(own, jnp.int32) for name, own in classes.items()}


def standardised(nets: Judging, windows):
    """Windows as their spec's mean and deviation scale them."""
    mean, std = _scale(nets.spec)
    return (windows - mean) / std


def physical(nets: Judging, windows):
    """The inverse; values of categorical channels come out whole."""
    mean, std = _scale(nets.spec)
    return nets.bits.whole(windows * std + mean).astype(jnp.float32)


def _scale(spec):
    return (jnp.float32(x)[None, None] for x in (spec.mean, spec.std))
