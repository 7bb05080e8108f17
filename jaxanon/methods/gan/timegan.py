"""TimeGAN: a generator of embedded series, and PrivateHub with it for a diffusion."""

import jax
import jax.numpy as jnp
import optax

from jaxanon.core.method import Generation, Method
from jaxanon.core.registry import register
from jaxanon.methods.common import generator
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
    SUPERVISOR,
    TimeGANConfig,
    TimeGANNetworks,
    batch_source,
    networks,
    physical,
    scaled,
)
from jaxanon.methods.gan.timegan_networks import RECOVERY as timegan_networks_RECOVERY
from jaxanon.methods.privatehub import fine_tuning

HYPER = ("learning_rate", "classifier_learning_rate", "finetune_learning_rate")

HYPER += ("gamma", "confidence_threshold", "margin", "replay")


@register("timegan", config=TimeGANConfig)
def timegan(spec, config) -> Method:
    """Builds TimeGAN for windows of ``spec``, a baseline of PrivateHub's.

    Windows learn to be embedded and recovered, then a supervisor learns to foresee the
    next step of what is embedded, then all learn together: in a round generator and
    embedder take two steps each and the critic one, unless it is good enough already.
    Generator and critic are told the public class at every step, which the authors'
    are not: the comparison asks for windows of classes.

    Where there are classes in ``classes_to_hide``, PrivateHub's app-aware fine-tuning
    follows, with this generator in place of a diffusion, which is what the chapter
    compares; the critic learns on.

    ``sample`` and ``anonymize`` are as in ``cgan``. Other than the authors': two Adams
    of one network are one, which goes on from phase to phase; the reset gate comes
    after a product, not before it, as in later recurrent units; and phases are in
    epochs, of which 50 are 3,900 steps of 10,000 windows, not 50,000.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``TimeGANConfig``.

    Returns:
      ``Method``, with ``sample``.

    Raises:
      ValueError: if a setting is out of range, or ``classes_to_hide`` names no class,
        or all. Training raises it where the threshold filters all.
      TypeError: for an unknown setting.

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
            players=(
                embedding(nets, during(rounds, 0, ends[0])),
                supervising(nets, during(rounds, *ends)),
                *players_of_joint(nets, joint),
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
    """The first phase: embedder and recovery, by what is lost between them."""

    def loss_fn(key, params, hyper, batch, given):
        del key, hyper, given
        x = batch.windows
        rebuilt = nets.run(
            params, timegan_networks_RECOVERY, nets.run(params, EMBEDDER, x)
        )
        loss = recovery(x, rebuilt)
        return loss, ({"embedding": loss}, {})

    return Component((EMBEDDER, timegan_networks_RECOVERY), loss_fn, when_fn=when_fn)


def supervising(nets: TimeGANNetworks, when_fn) -> Component:
    """The second phase: the supervisor alone."""

    def loss_fn(key, params, hyper, batch, given):
        del key, hyper, given
        latent = nets.run(params, EMBEDDER, batch.windows)
        loss = supervised(latent, nets.run(params, SUPERVISOR, latent))
        return loss, ({"supervised": loss}, {})

    return Component((SUPERVISOR,), loss_fn, when_fn=when_fn)


def players_of_joint(nets: TimeGANNetworks, when_fn) -> tuple[Component, ...]:
    """Generator and embedder twice, on a batch of their own each."""
    return tuple(
        player(nets, turn, when_fn)
        for turn in range(PARTS - 1)
        for player in (generating, embedding_again)
    )


def generating(nets: TimeGANNetworks, turn: int, when_fn) -> Component:
    """Generator and supervisor."""

    def loss_fn(key, params, hyper, batch, given):
        del given
        loss, info = generator_loss(nets, key, params, hyper, batch.parts[turn])
        return loss, (info, {})

    return Component((GENERATOR, SUPERVISOR), loss_fn, when_fn=when_fn)


def generator_loss(nets: TimeGANNetworks, key, params, hyper, part):
    """``float[]``, what the generator learns by, and its parts."""
    x, labels = part.windows, part.labels[nets.spec.public]
    first, foreseen = nets.imagine(key, params, labels)
    made = nets.run(params, timegan_networks_RECOVERY, foreseen)
    latent = nets.run(params, EMBEDDER, x)
    step = supervised(latent, nets.run(params, SUPERVISOR, latent))
    fooled = real(nets.judge(params, foreseen, labels))
    fooled_at_first = real(nets.judge(params, first, labels))
    moments = moment_distance(x, made)
    loss = fooled + hyper["gamma"] * fooled_at_first
    loss = loss + SUPERVISED * root(step) + MOMENTS * moments
    return loss, {"generator": fooled, "moments": moments}


def embedding_again(nets: TimeGANNetworks, turn: int, when_fn) -> Component:
    """Embedder and recovery, by what is lost and by how hard it is to foresee."""

    def loss_fn(key, params, hyper, batch, given):
        del key, hyper, given
        x = batch.parts[turn].windows
        latent = nets.run(params, EMBEDDER, x)
        step = supervised(latent, nets.run(params, SUPERVISOR, latent))
        lost = recovery(x, nets.run(params, timegan_networks_RECOVERY, latent))
        loss = lost + SUPERVISED_IN_EMBEDDER * step
        return loss, ({"embedder": loss}, {})

    return Component((EMBEDDER, timegan_networks_RECOVERY), loss_fn, when_fn=when_fn)


def judging(nets: TimeGANNetworks, when_fn) -> Component:
    """The critic, which rests where it is good enough."""

    def loss_fn(key, params, hyper, batch, given):
        del given
        part = batch.parts[-1]
        labels = part.labels[nets.spec.public]
        first, foreseen = nets.imagine(key, params, labels)
        latent = nets.run(params, EMBEDDER, part.windows)
        loss = real(nets.judge(params, latent, labels))
        loss += made_up(nets.judge(params, foreseen, labels))
        at_first = made_up(nets.judge(params, first, labels))
        loss += hyper["gamma"] * at_first
        learns = jax.lax.stop_gradient(loss > ENOUGH)
        return jnp.where(learns, loss, 0), ({"critic": loss}, {})

    optimizer = at_rest(optax.scale_by_adam())
    return Component((CRITIC,), loss_fn, when_fn=when_fn, optimizer=optimizer)


def discriminating(nets: TimeGANNetworks, when_fn) -> Component:
    """Generator and supervisor, by PrivateHub's triplet loss and by their own."""

    def loss_fn(key, params, hyper, batch, given):
        del given
        keys = jax.random.split(key, 3)
        labels = batch.labels[nets.spec.public]
        windows = (
            nets.make(keys[0], params, labels),
            batch.positives.windows,
            nets.make(keys[1], params, batch.negatives),
        )
        loss, info = fine_tuning.apart(nets, params, windows, labels, hyper)
        rest, _ = generator_loss(nets, keys[2], params, hyper, batch.parts[0])
        return loss + hyper["replay"] * rest, (info, {})

    return Component(
        (GENERATOR, SUPERVISOR),
        loss_fn,
        when_fn=when_fn,
        learning_rate="finetune_learning_rate",
    )


RECOVERY, SUPERVISED_IN_EMBEDDER = 10.0, 0.1

SUPERVISED, MOMENTS = 100.0, 100.0

ENOUGH = 0.15  # A critic whose loss is not above this rests.

LEAST = 1e-6  # Added to variances, whose root has no slope at 0.


def recovery(x, rebuilt):
    """Ten times the root of the mean squared error.

    Example:
      >>> recovery(jnp.zeros((1, 2, 1)), jnp.full((1, 2, 1), 0.5))
      Array(5., dtype=float32)
    """
    return RECOVERY * root(jnp.mean((x - rebuilt) ** 2))


def supervised(latent, foreseen):
    """Mean squared error of each step as foreseen at the one before.

    Args:
      latent: ``float[batch, time, d]``.
      foreseen: the same shape; what step ``t`` says of step ``t + 1``.

    Example:
      >>> told = jnp.array([[[1.0], [2.0], [3.0]]])
      >>> supervised(told, told + 1), supervised(told, told)
      (Array(0., dtype=float32), Array(1., dtype=float32))
    """
    return jnp.mean((latent[:, 1:] - foreseen[:, :-1]) ** 2)


def moment_distance(x, made):
    """How far means and deviations over a batch lie apart, over steps and channels.

    Example:
      >>> x = jnp.array([[[0.0]], [[2.0]]])
      >>> moment_distance(x, x), moment_distance(x, x + 3)
      (Array(0., dtype=float32), Array(3., dtype=float32))
    """
    spread = lambda x: jnp.sqrt(jnp.var(x, axis=0) + LEAST)
    means = jnp.mean(jnp.abs(x.mean(axis=0) - made.mean(axis=0)))
    return means + jnp.mean(jnp.abs(spread(x) - spread(made)))


def real(logits):
    """Cross-entropy of saying that all are real.

    Example:
      >>> real(jnp.zeros(2))
      Array(0.6931472, dtype=float32)
    """
    return jnp.mean(jax.nn.softplus(-logits))


def made_up(logits):
    """Cross-entropy of saying that none is.

    Example:
      >>> bool(made_up(jnp.array([-9.0])) < 1e-3)
      True
    """
    return jnp.mean(jax.nn.softplus(logits))


def root(square):
    """The square root; at 0 its slope is 0, not infinite.

    Example:
      >>> value, slope = jax.value_and_grad(root)(0.0)
      >>> float(value), float(slope)
      (0.0, 0.0)
    """
    some = square > 0
    return jnp.where(some, jnp.sqrt(jnp.where(some, square, 1)), 0)
