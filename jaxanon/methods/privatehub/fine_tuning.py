"""App-aware fine-tuning: moves generated windows away from classes to hide."""

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

FILTERED = "all filtered"  # Info key: fraction of rounds that filtered every window.

PATIENT = 50  # Maximum number of such rounds in a row.


def discriminating(nets: PrivateHubNetworks, when_fn) -> Component:
    """Returns the denoiser's component with a triplet loss on generated windows.

    The anchor is a generated window of a class that is not hidden. It is used if the
    classifier assigns its class a probability above ``confidence_threshold``. The
    positive is a real window of that class. The negative is a generated window of a
    class to hide, without gradients. The loss compares the classifier's features. A
    round without an anchor has only the ``replay`` loss.
    """
    public = nets.spec.public

    def loss_fn(key, params, hyper, batch: PrivateHubBatch, given):
        del given
        keys = jax.random.split(key, 3)
        anchors = make(nets, keys[0], params[DENOISER], batch)
        negatives = make(nets, keys[1], params[DENOISER], batch.negatives)
        windows = anchors, batch.positives, negatives
        loss, info = filtered_triplet_loss(
            nets, params, windows, batch.labels[public], hyper, nets.config.triplet
        )
        dropout = hyper["condition_dropout"]
        rest = denoising_loss(nets, keys[2], params[DENOISER], dropout, batch)
        return loss + hyper["replay"] * rest, (info, {})

    return Component(
        (DENOISER,), loss_fn, when_fn=when_fn, learning_rate="finetune_learning_rate"
    )


def filtered_triplet_loss(
    nets: Judging, params, windows, labels, hyper, variant: str = "hinge"
):
    """Returns the triplet loss of windows that pass the classifier's threshold.

    Args:
      nets: networks with ``spec``, ``config`` and ``classifiers``.
      params: parameters, with the classifiers'.
      windows: generated windows of classes ``labels``, real windows of these classes,
        and generated windows of classes to hide; ``float[batch, time, d]`` each.
      labels: ``int32[batch]``.
      hyper: hyper-parameters with ``confidence_threshold`` and ``margin``.
      variant: variant of ``triplet``.

    Returns:
      ``float[]``, and an info dict: the loss, the fraction of windows that passed, and
      whether none did.
    """
    generated, real, hidden = windows
    predict = lambda windows: classify(nets, params, nets.spec.public, windows)
    logits, anchors = predict(generated)
    positives = predict(real)[1]
    negatives = predict(jax.lax.stop_gradient(hidden))[1]
    shown = ~is_hidden(nets)[labels]
    mask = shown & passes(logits, labels, hyper["confidence_threshold"])
    mask = jax.lax.stop_gradient(mask.astype(jnp.float32))
    losses = triplet(anchors, positives, negatives, hyper["margin"], variant)
    count = jnp.sum(mask)
    loss = jnp.sum(mask * losses) / jnp.maximum(count, 1)
    info = {
        "triplet": loss,
        "kept": count / jnp.maximum(jnp.sum(shown), 1),
        FILTERED: (count == 0).astype(jnp.float32),
    }
    return loss, info


def make(nets: PrivateHubNetworks, key, denoiser, batch: PrivateHubBatch):
    """Generates encoded windows of a batch's public classes, with gradients.

    The condition holds the public class and the statistics, but no other attribute.
    ``one_step`` starts from the batch's windows at a random step, ``last_steps`` from
    pure noise.

    Returns:
      ``float[batch, time, d]``.
    """
    null, public = nets.nothing(len(batch.windows)), nets.spec.public
    classes = null.classes | {public: batch.labels[public]}
    condition = Condition(classes, batch.condition.features, batch.condition.known)
    prediction, schedule = nets.config.prediction_type, nets.schedule
    if nets.config.gradient == "last_steps":
        return sampled(nets, key, denoiser, batch.windows.shape, condition)
    step_key, noise_key = jax.random.split(key)
    t = drawn_steps(nets, step_key, len(batch.windows))
    noise = jax.random.normal(noise_key, batch.windows.shape)
    x_t = kernels.diffuse(schedule, batch.windows, noise, t)
    output = nets.denoise(denoiser, x_t, t, condition)
    return kernels.convert_denoiser_output(schedule, x_t, output, t, prediction, "x0")


def sampled(nets: PrivateHubNetworks, key, denoiser, shape, condition: Condition):
    """Samples windows from pure noise with DDIM; gradients pass through the last steps.

    The backward pass recomputes these steps to save memory.
    """
    config = nets.config
    noise_key, sample_key = jax.random.split(key)
    denoise_fn = lambda x, t: nets.denoise(denoiser, x, t, condition)
    steps = kernels.diffusion_steps(
        config.num_train_timesteps, config.num_inference_steps
    )
    first = config.num_inference_steps - config.gradient_steps
    x = jax.random.normal(noise_key, shape)
    options = {"prediction": config.prediction_type}
    args = sample_key, nets.schedule
    x = kernels.ddim_sample(denoise_fn, *args, x, steps[: first + 1], **options)
    x = jax.lax.stop_gradient(x)
    recomputed = jax.checkpoint(denoise_fn)
    return kernels.ddim_sample(recomputed, *args, x, steps[first:], **options)


def passes(logits, labels, threshold):
    """Returns ``bool[batch]``: whether the requested class exceeds the threshold.

    Example:
      >>> passes(jnp.log(jnp.array([[0.75, 0.25], [0.5, 0.5]])), jnp.array([0, 1]), 0.6)
      Array([ True, False], dtype=bool)

    References:
      PrivateHub, equation 4.8, which does not define the score.
    """
    probabilities = jax.nn.softmax(logits)
    requested = jnp.take_along_axis(probabilities, labels[:, None], axis=1)[:, 0]
    return requested > threshold


def triplet(anchors, positives, negatives, margin, variant: str = "hinge"):
    """Returns the triplet loss of each anchor, in squared distances.

    Args:
      anchors, positives, negatives: ``float[batch, d]``, features.
      margin: ``float[]``.
      variant: "hinge", for features scaled to length 1 and a loss of at least 0;
        "paper", for unscaled features and no lower bound, so that the margin has no
        effect on the gradient.

    Returns:
      ``float32[batch]``: distance to the positive, minus distance to the negative, plus
      the margin.

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
    """Raises if the confidence threshold filters out every generated window.

    A single round may filter all windows by chance. The check fails after ``PATIENT``
    such rounds in a row, or if all rounds of fine-tuning were such rounds when training
    ends.

    Args:
      history: rows of ``Run.history`` from the first; at least one.
      ended: whether training has ended.

    Raises:
      ValueError: with the number of such rounds in a row.

    Example:
      >>> row = lambda round, share: {"round": round, "losses": {"all filtered": share}}
      >>> check_kept([row(1, 0.0), row(2, 1.0)], ended=False)
      >>> check_kept([row(40, 0.9), row(80, 1.0)], ended=True)
    """
    in_a_row = tuned = 0
    # A resumed state starts at a later round; the first row covers at least one round.
    before = history[0]["round"] - 1
    for row in history:
        num, losses = row["round"] - before, row["losses"]
        filtered, before = losses.get(FILTERED, 0), row["round"]
        in_a_row = in_a_row + num if filtered == 1 else 0
        tuned += num if filtered or losses.get("kept", 0) else 0
    if in_a_row >= PATIENT or (ended and in_a_row and in_a_row == tuned):
        raise ValueError(
            "confidence_threshold must be below the classifier's probability for some "
            f"generated windows, got none in {in_a_row} rounds or more in a row, so "
            "fine-tuning learns nothing; retrain in another folder with a lower "
            "confidence_threshold or a longer pretraining."
        )
