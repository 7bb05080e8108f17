"""TimeGAN: a generator of embedded series, and PrivateHub with it for a diffusion."""

import jax
import jax.numpy as jnp
import optax

from jaxanon.kernels.setting_checks import configured
from jaxanon.methods import aaf, acp, gan_networks, hub_sampling
from jaxanon.methods import timegan_losses as losses
from jaxanon.methods.central import Player, central
from jaxanon.methods.epochs import by_epoch, during
from jaxanon.methods.method import Method
from jaxanon.methods.stopping import at_rest
from jaxanon.methods.timegan_config import TimeGANConfig
from jaxanon.methods.timegan_networks import (
    CRITIC,
    EMBEDDER,
    GENERATOR,
    PARTS,
    RANGE,
    RECOVERY,
    SUPERVISOR,
    Networks,
    networks,
    physical,
    room,
    scaled,
)

HYPER = ("step_size", "classifier_step_size", "fine_step_size")
HYPER += ("gamma", "threshold", "margin", "replay")


def timegan(spec, **settings) -> Method:
    """Builds TimeGAN for windows of ``spec``, a baseline of PrivateHub's.

    Windows learn to be embedded and recovered, then a supervisor learns to foresee the
    next step of what is embedded, then all learn together: in a round generator and
    embedder take two steps each and the critic one, unless it is good enough already.
    Generator and critic are told the public class at every step, which the authors'
    are not: the comparison asks for windows of classes.

    Where there are classes in ``hide``, PrivateHub's app-aware fine-tuning follows,
    with this generator in place of a diffusion, which is what the chapter compares; the
    critic learns on.

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
      ValueError: if a setting is out of range, or ``hide`` names no class, or all.
        Training raises it where the threshold filters all.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> timegan(load("smartwatch").spec).config.features
      (24, 24, 24)

    References:
      Yoon, Jarrett, van der Schaar, Time-series generative adversarial networks,
      NeurIPS 2019, sections 4 and 5.
    """
    config = configured(TimeGANConfig, settings)
    nets = networks(spec, config)
    make_fn = lambda key, params, classes: physical(
        nets, params, nets.make(key, params, classes)
    )

    def see_fn(params, windows):
        standard = hub_sampling.standardised(nets, windows)
        return scaled(standard, **params[RANGE])

    phases = config.embedding, config.supervising

    def make(rounds):
        ends = config.embedding, sum(phases)
        last = ends[1] + config.joint if config.hide else None
        joint, critic = during(rounds, ends[1], last), during(rounds, ends[1])
        raw = during(rounds, 0, last) if config.hide else None
        after = last and during(rounds, last)
        return central(
            "timegan",
            config,
            spec,
            room(nets),
            init_fn=nets.init,
            players=(
                embedding(nets, during(rounds, 0, ends[0])),
                supervising(nets, during(rounds, *ends)),
                *players_of_joint(nets, joint),
                *([discriminating(nets, after)] if after else []),
                judging(nets, critic),
                acp.classifying(nets, raw),
            ),
            hyper={name: getattr(config, name) for name in HYPER},
            finish_fn=lambda key, state, data: {
                RANGE: {"low": data.low, "high": data.high}
            },
        )

    return by_epoch(make)._replace(
        anonymize=gan_networks.rewriter(nets, see_fn, make_fn),
        sample=gan_networks.sampler(nets, make_fn),
        check_history=aaf.check_kept if config.hide else None,
        least_epochs=1 + sum(phases) + (config.joint if config.hide else 0),
        phases=("embedding", "supervising", *(("joint",) if config.hide else ())),
        takes_tokens=True,
    )


def embedding(nets: Networks, when_fn) -> Player:
    """The first phase: embedder and recovery, by what is lost between them."""

    def loss_fn(key, params, hyper, batch, given):
        del key, hyper, given
        x = batch.windows
        rebuilt = nets.run(params, RECOVERY, nets.run(params, EMBEDDER, x))
        loss = losses.recovery(x, rebuilt)
        return loss, ({"embedding": loss}, {})

    return Player((EMBEDDER, RECOVERY), loss_fn, when_fn=when_fn)


def supervising(nets: Networks, when_fn) -> Player:
    """The second phase: the supervisor alone."""

    def loss_fn(key, params, hyper, batch, given):
        del key, hyper, given
        latent = nets.run(params, EMBEDDER, batch.windows)
        loss = losses.supervised(latent, nets.run(params, SUPERVISOR, latent))
        return loss, ({"supervised": loss}, {})

    return Player((SUPERVISOR,), loss_fn, when_fn=when_fn)


def players_of_joint(nets: Networks, when_fn) -> tuple[Player, ...]:
    """Generator and embedder twice, on a batch of their own each."""
    return tuple(
        player(nets, turn, when_fn)
        for turn in range(PARTS - 1)
        for player in (generating, embedding_again)
    )


def generating(nets: Networks, turn: int, when_fn) -> Player:
    """Generator and supervisor."""

    def loss_fn(key, params, hyper, batch, given):
        del given
        loss, info = generator_loss(nets, key, params, hyper, batch.parts[turn])
        return loss, (info, {})

    return Player((GENERATOR, SUPERVISOR), loss_fn, when_fn=when_fn)


def generator_loss(nets: Networks, key, params, hyper, part):
    """``float[]``, what the generator learns by, and its parts."""
    x, labels = part.windows, part.labels[nets.spec.public]
    first, foreseen = nets.imagine(key, params, labels)
    made = nets.run(params, RECOVERY, foreseen)
    latent = nets.run(params, EMBEDDER, x)
    step = losses.supervised(latent, nets.run(params, SUPERVISOR, latent))
    fooled = losses.real(nets.judge(params, foreseen, labels))
    fooled_at_first = losses.real(nets.judge(params, first, labels))
    moments = losses.moments(x, made)
    loss = fooled + hyper["gamma"] * fooled_at_first
    loss = loss + losses.SUPERVISED * losses.root(step) + losses.MOMENTS * moments
    return loss, {"generator": fooled, "moments": moments}


def embedding_again(nets: Networks, turn: int, when_fn) -> Player:
    """Embedder and recovery, by what is lost and by how hard it is to foresee."""

    def loss_fn(key, params, hyper, batch, given):
        del key, hyper, given
        x = batch.parts[turn].windows
        latent = nets.run(params, EMBEDDER, x)
        step = losses.supervised(latent, nets.run(params, SUPERVISOR, latent))
        lost = losses.recovery(x, nets.run(params, RECOVERY, latent))
        loss = lost + losses.SUPERVISED_IN_EMBEDDER * step
        return loss, ({"embedder": loss}, {})

    return Player((EMBEDDER, RECOVERY), loss_fn, when_fn=when_fn)


def judging(nets: Networks, when_fn) -> Player:
    """The critic, which rests where it is good enough."""

    def loss_fn(key, params, hyper, batch, given):
        del given
        part = batch.parts[-1]
        labels = part.labels[nets.spec.public]
        first, foreseen = nets.imagine(key, params, labels)
        latent = nets.run(params, EMBEDDER, part.windows)
        loss = losses.real(nets.judge(params, latent, labels))
        loss += losses.made_up(nets.judge(params, foreseen, labels))
        at_first = losses.made_up(nets.judge(params, first, labels))
        loss += hyper["gamma"] * at_first
        learns = jax.lax.stop_gradient(loss > losses.ENOUGH)
        return jnp.where(learns, loss, 0), ({"critic": loss}, {})

    optimizer = at_rest(optax.scale_by_adam())
    return Player((CRITIC,), loss_fn, when_fn=when_fn, optimizer=optimizer)


def discriminating(nets: Networks, when_fn) -> Player:
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
        loss, info = aaf.apart(nets, params, windows, labels, hyper)
        rest, _ = generator_loss(nets, keys[2], params, hyper, batch.parts[0])
        return loss + hyper["replay"] * rest, (info, {})

    return Player(
        (GENERATOR, SUPERVISOR), loss_fn, when_fn=when_fn, step_size="fine_step_size"
    )
