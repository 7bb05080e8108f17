"""App-aware fine-tuning: what is made of classes to show leaves those to hide."""

import jax
import jax.numpy as jnp

from jaxanon import kernels
from jaxanon.methods.common.alternating import Component
from jaxanon.methods.common.diffusion import DENOISER, denoising_loss, drawn_steps
from jaxanon.methods.common.generator import Judging, classify, is_hidden
from jaxanon.methods.privatehub.data import PrivateHubBatch
from jaxanon.methods.privatehub.networks import PrivateHubNetworks
from jaxanon.models.classifiers import unit
from jaxanon.models.conditions import Condition

FILTERED = "all filtered"  # Of an info: the share of rounds that kept nothing.

PATIENT = 50  # Rounds in a row that may.


def discriminating(nets: PrivateHubNetworks, when_fn) -> Component:
    """The denoiser, by the triplet loss of what it makes of classes to show.

    The anchor is a window made of such a class, kept if the classifier gives its class
    more than ``confidence_threshold``; the positive is a real window of that class, the
    negative one made of a class to hide, through which no gradient goes. All three are
    compared by the classifier's features. A round that keeps nothing learns by
    ``replay`` alone.
    """
    public = nets.spec.public

    def loss_fn(key, params, hyper, batch: PrivateHubBatch, given):
        del given
        keys = jax.random.split(key, 3)
        made = make(nets, keys[0], params[DENOISER], batch)
        secret = make(nets, keys[1], params[DENOISER], batch.negatives)
        windows = made, batch.positives, secret
        loss, info = apart(
            nets, params, windows, batch.labels[public], hyper, nets.config.triplet
        )
        own = hyper["condition_dropout"], batch
        rest = denoising_loss(nets, keys[2], params[DENOISER], *own)
        return loss + hyper["replay"] * rest, (info, {})

    return Component(
        (DENOISER,), loss_fn, when_fn=when_fn, learning_rate="finetune_learning_rate"
    )


def apart(nets: Judging, params, windows, labels, hyper, variant: str = "hinge"):
    """The triplet loss of windows that were made, of those that the classifier passes.

    Args:
      nets: with ``spec``, ``config`` and ``classifiers``.
      params: with the classifiers'.
      windows: made of classes ``labels``, real ones of those, and made of classes to
        hide; ``float[batch, time, d]`` each.
      labels: ``int32[batch]``.
      hyper: with ``confidence_threshold`` and ``margin``.
      variant: as in ``triplet``.

    Returns:
      ``float[]``, and what there is to tell: the share that was kept, and whether none
      was.
    """
    made, real, secret = windows
    read = lambda windows: classify(nets, params, nets.spec.public, windows)
    logits, anchors = read(made)
    positives = read(real)[1]
    negatives = read(jax.lax.stop_gradient(secret))[1]
    shown = ~is_hidden(nets)[labels]
    kept = shown & passes(logits, labels, hyper["confidence_threshold"])
    kept = jax.lax.stop_gradient(kept.astype(jnp.float32))
    losses = triplet(anchors, positives, negatives, hyper["margin"], variant)
    number = jnp.sum(kept)
    loss = jnp.sum(kept * losses) / jnp.maximum(number, 1)
    info = {
        "triplet": loss,
        "kept": number / jnp.maximum(jnp.sum(shown), 1),
        FILTERED: (number == 0).astype(jnp.float32),
    }
    return loss, info


def make(nets: PrivateHubNetworks, key, denoiser, batch: PrivateHubBatch):
    """Windows of a batch's public classes, as bits, with gradients to the denoiser.

    They are told their statistics too, and nothing of other attributes. ``one_step``
    begins at a random step of the batch's own windows, ``last_steps`` in pure noise.

    Returns:
      ``float[batch, time, d]``.
    """
    null, public = nets.nothing(len(batch.windows)), nets.spec.public
    classes = null.classes | {public: batch.labels[public]}
    told = Condition(classes, batch.condition.features, batch.condition.known)
    prediction, schedule = nets.config.prediction_type, nets.schedule
    if nets.config.gradient == "last_steps":
        return sampled(nets, key, denoiser, batch.windows.shape, told)
    step_key, noise_key = jax.random.split(key)
    t = drawn_steps(nets, step_key, len(batch.windows))
    noise = jax.random.normal(noise_key, batch.windows.shape)
    x_t = kernels.diffuse(schedule, batch.windows, noise, t)
    found = nets.denoise(denoiser, x_t, t, told)
    return kernels.convert_denoiser_output(schedule, x_t, found, t, prediction, "x0")


def sampled(nets: PrivateHubNetworks, key, denoiser, shape, told: Condition):
    """Windows from pure noise by DDIM; gradients pass through the last steps alone.

    What those steps computed is computed again on the way back, not kept.
    """
    config = nets.config
    noise_key, sample_key = jax.random.split(key)
    denoise_fn = lambda x, t: nets.denoise(denoiser, x, t, told)
    steps = kernels.diffusion_steps(
        config.num_train_timesteps, config.num_inference_steps
    )
    first = config.num_inference_steps - config.gradient_steps
    x = jax.random.normal(noise_key, shape)
    given = {"prediction": config.prediction_type}
    rest = sample_key, nets.schedule
    x = kernels.ddim_sample(denoise_fn, *rest, x, steps[: first + 1], **given)
    x = jax.lax.stop_gradient(x)
    again = jax.checkpoint(denoise_fn)
    return kernels.ddim_sample(again, *rest, x, steps[first:], **given)


def passes(logits, labels, threshold):
    """``bool[batch]``, whether the class that was asked for is more likely than that.

    Example:
      >>> passes(jnp.log(jnp.array([[0.75, 0.25], [0.5, 0.5]])), jnp.array([0, 1]), 0.6)
      Array([ True, False], dtype=bool)

    References:
      PrivateHub, equation 4.8, where the score is not defined.
    """
    chances = jax.nn.softmax(logits)
    own = jnp.take_along_axis(chances, labels[:, None], axis=1)[:, 0]
    return own > threshold


def triplet(anchors, positives, negatives, margin, variant: str = "hinge"):
    """How much nearer anchors are to negatives than to positives, plus the margin.

    Args:
      anchors, positives, negatives: ``float[batch, d]``, features.
      margin: ``float[]``.
      variant: "hinge", of features of length 1, at least 0; "paper": of features as
        they are, without a lower bound, so that the margin has no effect on what is
        learned.

    Returns:
      ``float32[batch]``, squared distances' difference plus the margin.

    Example:
      >>> one, other = jnp.array([[2.0, 0.0]]), jnp.array([[0.0, 1.0]])
      >>> triplet(one, one, other, 0.5), triplet(one, one, other, 0.5, "paper")
      (Array([0.], dtype=float32), Array([-4.5], dtype=float32))
      >>> triplet(one, other, one, 0.5)
      Array([2.5], dtype=float32)

    References:
      Schroff, Kalenichenko, Philbin, FaceNet, CVPR 2015, equation 3; PrivateHub,
      equation 4.9.
    """
    if variant == "hinge":
        anchors, positives, negatives = map(unit, (anchors, positives, negatives))
    squares = lambda one, other: jnp.sum((one - other) ** 2, axis=-1)
    losses = squares(anchors, positives) - squares(anchors, negatives) + margin
    return jnp.maximum(losses, 0) if variant == "hinge" else losses


def check_kept(history: list, *, ended: bool) -> None:
    """Refuses to go on where the threshold filters everything.

    A round may keep nothing by chance. ``PATIENT`` rounds in a row may not, nor, once
    training has ended, every round of fine-tuning that there was.

    Args:
      history: rows as ``Run.history`` has them, from the first on; one at least.
      ended: whether there are no more rounds to come.

    Raises:
      ValueError: naming how many rounds in a row have kept nothing.

    Example:
      >>> row = lambda round, share: {"round": round, "losses": {"all filtered": share}}
      >>> check_kept([row(1, 0.0), row(2, 1.0)], ended=False)
      >>> check_kept([row(40, 0.9), row(80, 1.0)], ended=True)
    """
    in_a_row = tuned = 0
    # A state may begin at a round of its own: of the first row one round is sure.
    before = history[0]["round"] - 1
    for row in history:
        num, losses = row["round"] - before, row["losses"]
        filtered, before = losses.get(FILTERED, 0), row["round"]
        in_a_row = in_a_row + num if filtered == 1 else 0
        tuned += num if filtered or losses.get("kept", 0) else 0
    if in_a_row >= PATIENT or (ended and in_a_row and in_a_row == tuned):
        raise ValueError(
            "threshold filters everything: the classifier gave none of the windows "
            f"that were made more than it, in {in_a_row} rounds or more in a "
            "row, so fine-tuning learns nothing; train anew, in another folder, with a "
            "lower threshold, or with more epochs of pre-training (pretraining)."
        )
