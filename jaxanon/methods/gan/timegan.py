"""TimeGAN: generates series in an embedding space; with PrivateHub's fine-tuning."""

import jax
import jax.numpy as jnp
import optax

from jaxanon.core.method import Generation, Method
from jaxanon.core.registry import register
from jaxanon.methods.common import generator, recipes
from jaxanon.methods.common.alternating import (
    Component,
    by_epoch,
    central,
    during,
    with_phases,
)
from jaxanon.methods.common.early_stopping import at_rest
from jaxanon.methods.gan import conditional
from jaxanon.methods.gan.timegan_networks import (
    CRITIC,
    EMBEDDER,
    GENERATOR,
    PARTS,
    RANGE,
    RECOVERY,
    SUPERVISOR,
    TimeGANConfig,
    TimeGANNetworks,
    batch_source,
    networks,
    physical,
    scaled,
)
from jaxanon.methods.privatehub import fine_tuning

HYPER = ("learning_rate", "classifier_learning_rate", "finetune_learning_rate")

HYPER += ("gamma", "confidence_threshold", "margin", "replay")


@register("timegan", config=TimeGANConfig, recipes=recipes.TIMEGAN)
def timegan(spec, config) -> Method:
    """Builds TimeGAN for windows of ``spec``, a baseline of PrivateHub.

    Training has three phases. First, an autoencoder learns to embed and recover
    windows. Second, a supervisor learns to predict the next step of an embedded window.
    Third, all networks train together. In each round of this phase, generator and
    embedder take two steps each. The discriminator takes one step, unless its loss is
    already low. Generator and discriminator are conditioned on the public class at
    every step, unlike the authors', because the comparison needs windows of given
    classes.

    If ``classes_to_hide`` names classes, PrivateHub's app-aware fine-tuning follows,
    applied to this generator, as in the chapter's comparison. The discriminator
    continues to train.

    ``sample`` and ``anonymize`` work as in ``cgan``. Differences from the authors'
    program:

    - One Adam per network continues across phases; the authors use two.
    - The reset gate comes after the matrix product, as in later GRUs, not before it.
    - Phases are in epochs: 50 epochs of 10,000 windows are 3,900 steps, not 50,000.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``TimeGANConfig``.

    Returns:
      ``Method``, with ``sample``.

    Raises:
      ValueError: if a setting is out of range, or ``classes_to_hide`` names an unknown
        class or all classes. Training raises it if the confidence threshold filters
        out all windows.

    Example:
      >>> from jaxanon.datasets import load
      >>> timegan(load("smartwatch").spec).config.features
      (24, 24, 24)

    References:
      Yoon, Jarrett, van der Schaar, Time-series generative adversarial networks,
      NeurIPS 2019, sections 4 and 5.
    """
    nets = networks(spec, config)
    make_fn = lambda key, params, classes: physical(
        nets, params, nets.make(key, params, classes)
    )

    def see_fn(params, windows):
        standard = generator.standardised(nets, windows)
        return scaled(standard, **params[RANGE])

    phases = config.embedding, config.supervising

    def make(rounds):
        ends = config.embedding, sum(phases)
        last = ends[1] + config.joint if config.classes_to_hide else None
        joint, critic = during(rounds, ends[1], last), during(rounds, ends[1])
        raw = during(rounds, 0, last) if config.classes_to_hide else None
        after = last and during(rounds, last)
        return central(
            "timegan",
            config,
            spec,
            batch_source(nets),
            init_fn=nets.init,
            components=(
                embedding(nets, during(rounds, 0, ends[0])),
                supervising(nets, during(rounds, *ends)),
                *joint_components(nets, joint),
                *([discriminating(nets, after)] if after else []),
                judging(nets, critic),
                generator.classifying(nets, raw),
            ),
            hyper={name: getattr(config, name) for name in HYPER},
            finish_fn=lambda key, state, data: {
                RANGE: {"low": data.low, "high": data.high}
            },
        )

    method = with_phases(
        by_epoch(make),
        check_history=fine_tuning.check_kept if config.classes_to_hide else None,
        min_epochs=1 + sum(phases) + (config.joint if config.classes_to_hide else 0),
        phases=(
            "embedding",
            "supervising",
            *(("joint",) if config.classes_to_hide else ()),
        ),
    )
    return method._replace(
        anonymize=conditional.rewriter(nets, see_fn, make_fn),
        generate=Generation(conditional.sampler(nets, make_fn)),
        tokens=True,
    )


def embedding(nets: TimeGANNetworks, when_fn) -> Component:
    """Returns the component of the first phase: embedder and recovery."""

    def loss_fn(key, params, hyper, batch, given):
        del key, hyper, given
        x = batch.windows
        rebuilt = nets.run(params, RECOVERY, nets.run(params, EMBEDDER, x))
        loss = recovery(x, rebuilt)
        return loss, ({"embedding": loss}, {})

    return Component((EMBEDDER, RECOVERY), loss_fn, when_fn=when_fn)


def supervising(nets: TimeGANNetworks, when_fn) -> Component:
    """Returns the component of the second phase: the supervisor."""

    def loss_fn(key, params, hyper, batch, given):
        del key, hyper, given
        latent = nets.run(params, EMBEDDER, batch.windows)
        loss = supervised(latent, nets.run(params, SUPERVISOR, latent))
        return loss, ({"supervised": loss}, {})

    return Component((SUPERVISOR,), loss_fn, when_fn=when_fn)


def joint_components(nets: TimeGANNetworks, when_fn) -> tuple[Component, ...]:
    """Returns generator and embedder components, two each, with separate batches."""
    return tuple(
        component(nets, turn, when_fn)
        for turn in range(PARTS - 1)
        for component in (generating, embedding_again)
    )


def generating(nets: TimeGANNetworks, turn: int, when_fn) -> Component:
    """Returns the component of generator and supervisor in the joint phase."""

    def loss_fn(key, params, hyper, batch, given):
        del given
        loss, info = generator_loss(nets, key, params, hyper, batch.parts[turn])
        return loss, (info, {})

    return Component((GENERATOR, SUPERVISOR), loss_fn, when_fn=when_fn)


def generator_loss(nets: TimeGANNetworks, key, params, hyper, part):
    """Returns ``float[]``, the loss of the generator, and its parts."""
    x, labels = part.windows, part.labels[nets.spec.public]
    first, foreseen = nets.imagine(key, params, labels)
    generated = nets.run(params, RECOVERY, foreseen)
    latent = nets.run(params, EMBEDDER, x)
    step = supervised(latent, nets.run(params, SUPERVISOR, latent))
    fooled = real(nets.discriminate(params, foreseen, labels))
    fooled_at_first = real(nets.discriminate(params, first, labels))
    moments = moment_distance(x, generated)
    loss = fooled + hyper["gamma"] * fooled_at_first
    loss = loss + SUPERVISED * root(step) + MOMENTS * moments
    return loss, {"generator": fooled, "moments": moments}


def embedding_again(nets: TimeGANNetworks, turn: int, when_fn) -> Component:
    """Returns the component of embedder and recovery in the joint phase."""

    def loss_fn(key, params, hyper, batch, given):
        del key, hyper, given
        x = batch.parts[turn].windows
        latent = nets.run(params, EMBEDDER, x)
        step = supervised(latent, nets.run(params, SUPERVISOR, latent))
        lost = recovery(x, nets.run(params, RECOVERY, latent))
        loss = lost + SUPERVISED_IN_EMBEDDER * step
        return loss, ({"embedder": loss}, {})

    return Component((EMBEDDER, RECOVERY), loss_fn, when_fn=when_fn)


def judging(nets: TimeGANNetworks, when_fn) -> Component:
    """Returns the component of the discriminator, which skips steps at a low loss."""

    def loss_fn(key, params, hyper, batch, given):
        del given
        part = batch.parts[-1]
        labels = part.labels[nets.spec.public]
        first, foreseen = nets.imagine(key, params, labels)
        latent = nets.run(params, EMBEDDER, part.windows)
        loss = real(nets.discriminate(params, latent, labels))
        loss += made_up(nets.discriminate(params, foreseen, labels))
        at_first = made_up(nets.discriminate(params, first, labels))
        loss += hyper["gamma"] * at_first
        learns = jax.lax.stop_gradient(loss > ENOUGH)
        return jnp.where(learns, loss, 0), ({"critic": loss}, {})

    optimizer = optax.flatten(at_rest(optax.scale_by_adam()))
    return Component((CRITIC,), loss_fn, when_fn=when_fn, optimizer=optimizer)


def discriminating(nets: TimeGANNetworks, when_fn) -> Component:
    """Returns generator and supervisor with PrivateHub's triplet loss and their own."""

    def loss_fn(key, params, hyper, batch, given):
        del given
        keys = jax.random.split(key, 3)
        labels = batch.labels[nets.spec.public]
        windows = (
            nets.make(keys[0], params, labels),
            batch.positives.windows,
            nets.make(keys[1], params, batch.negatives),
        )
        loss, info = fine_tuning.filtered_triplet_loss(
            nets, params, windows, labels, hyper
        )
        rest, _ = generator_loss(nets, keys[2], params, hyper, batch.parts[0])
        return loss + hyper["replay"] * rest, (info, {})

    return Component(
        (GENERATOR, SUPERVISOR),
        loss_fn,
        when_fn=when_fn,
        learning_rate="finetune_learning_rate",
    )


RECOVERY_WEIGHT, SUPERVISED_IN_EMBEDDER = 10.0, 0.1

SUPERVISED, MOMENTS = 100.0, 100.0

ENOUGH = 0.15  # The discriminator skips a step while its loss is at most this.

LEAST = 1e-6  # Added to variances; the square root has no gradient at 0.


def recovery(x, rebuilt):
    """Returns ten times the root of the mean squared error.

    Example:
      >>> recovery(jnp.zeros((1, 2, 1)), jnp.full((1, 2, 1), 0.5))
      Array(5., dtype=float32)
    """
    return RECOVERY_WEIGHT * root(jnp.mean((x - rebuilt) ** 2))


def supervised(latent, foreseen):
    """Returns the mean squared error of each step's prediction from the step before.

    Args:
      latent: ``float[batch, time, d]``.
      foreseen: same shape; at step ``t``, the prediction for step ``t + 1``.

    Example:
      >>> latent = jnp.array([[[1.0], [2.0], [3.0]]])
      >>> supervised(latent, latent + 1), supervised(latent, latent)
      (Array(0., dtype=float32), Array(1., dtype=float32))
    """
    return jnp.mean((latent[:, 1:] - foreseen[:, :-1]) ** 2)


def moment_distance(x, generated):
    """Returns the distance of batch means and deviations, over steps and channels.

    Example:
      >>> x = jnp.array([[[0.0]], [[2.0]]])
      >>> moment_distance(x, x), moment_distance(x, x + 3)
      (Array(0., dtype=float32), Array(3., dtype=float32))
    """
    std = lambda x: jnp.sqrt(jnp.var(x, axis=0) + LEAST)
    means = jnp.mean(jnp.abs(x.mean(axis=0) - generated.mean(axis=0)))
    return means + jnp.mean(jnp.abs(std(x) - std(generated)))


def real(logits):
    """Returns the cross-entropy of the logits if all windows are real.

    Example:
      >>> real(jnp.zeros(2))
      Array(0.6931472, dtype=float32)
    """
    return jnp.mean(jax.nn.softplus(-logits))


def made_up(logits):
    """Returns the cross-entropy of the logits if all windows are synthetic.

    Example:
      >>> bool(made_up(jnp.array([-9.0])) < 1e-3)
      True
    """
    return jnp.mean(jax.nn.softplus(logits))


def root(square):
    """Returns the square root, with gradient 0 instead of infinity at 0.

    Example:
      >>> value, slope = jax.value_and_grad(root)(0.0)
      >>> float(value), float(slope)
      (0.0, 0.0)
    """
    positive = square > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, square, 1)), 0)
