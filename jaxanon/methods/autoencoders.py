"""A method of autoencoders, one for each public class or one for all."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.methods import class_means, judges, pool, shown
from jaxanon.methods.central import Player, Room, central
from jaxanon.methods.method import Method
from jaxanon.models.rewriter import Rewriter, rewriter
from jaxanon.models.rewriter_losses import Batch, rewriter_loss


class Design(NamedTuple):
    """What one system of the family differs in from another."""

    networks: Rewriter
    players: tuple[Player, ...]  # on ``Batch``
    hyper: dict[str, float]
    by_class: bool = True  # a model for each public class
    last_means: bool = False  # all models move latents by the last one's means


def networks(spec, config, **options) -> Rewriter:
    """The networks of one model; ``options`` as in ``rewriter``."""
    return rewriter(
        spec.time,
        len(spec.channels),
        [spec.num_classes(name) for name in spec.private],
        latent=config.latent,
        hidden=config.hidden,
        initialisation=config.initialisation,
        **options,
    )


def model_player(nets: Rewriter, groups, weights_fn, form: str) -> Player:
    """The player that learns ``groups`` by ``rewriter_loss``.

    ``weights_fn(hyper)`` are the weights of the KL divergence and of the readers' loss.
    """

    def loss_fn(key, params, hyper, batch, given):
        del key, given
        beta, reading = weights_fn(hyper)
        loss, info = rewriter_loss(
            nets, params, batch, beta=beta, reading=reading, form=form
        )
        return loss, (info, {})

    return Player(groups, loss_fn)


def autoencoders(name: str, spec, config, design: Design) -> Method:
    """Ties a design, the classifiers it relies on and the data into a method.

    Models train side by side, each on batches of its own public class; one that has
    them all trains on batches of the whole pool. A window is anonymized by the model of
    its predicted public class. All models see all windows and one result of each is
    kept: a window's own copy of 0.6 million weights would cost more to read than the
    other models' products cost to compute, from two windows on.

    Args:
      name: of the method.
      spec: ``jaxanon.datasets.Spec``.
      config: ``AutoencoderConfig`` whose sizes are known.
      design: ``Design``.

    Returns:
      ``Method``. Its parameters are ``classifiers`` and, with a leading axis of models,
      the networks' groups. Where the decoder is not told private classes, the latent
      moves between them by ``means``, the ``offsets`` of ``class_means``: exact for the
      parameters at the end of every epoch, and 0 before the first has ended.

    Raises:
      ValueError: for ``anonymization="vector"`` where the decoder is told no class.
    """
    nets, by_class = design.networks, design.by_class
    moved = not nets.told
    if moved and config.anonymization == "vector":
        raise ValueError(
            f"anonymization must be one of {list(shown.ANONYMIZATIONS)} for {name}, "
            "whose decoder is told no class, got 'vector'."
        )
    copies = spec.num_classes(spec.public) if by_class else 1
    hyper = {"step_size": config.step_size, "judge_step_size": config.judge_step_size}
    hyper |= design.hyper

    def windows_of(data):
        """First and number of each model's windows in ``data.order``, ``int32[]``."""
        if by_class:
            return data.starts, data.counts
        return jnp.zeros(1, jnp.int32), jnp.sum(data.counts, keepdims=True)

    def rounds_of(data):
        most = jnp.max(windows_of(data)[1])
        return jnp.maximum(1, (2 * most + config.batch) // (2 * config.batch))

    def draw_fn(key, data, copy):
        rows_key, noise_key = jax.random.split(key)
        public = copy if by_class else None
        drawn = pool.draw(rows_key, data, config.batch, public)
        noise = jax.random.normal(noise_key, (config.batch, config.latent))
        return Batch(drawn.windows, _one_hots(spec, drawn.labels), noise)

    def init_fn(key):
        params = nets.init(key)
        if moved:
            classes = sum(spec.num_classes(private) for private in spec.private)
            rows = 1 if by_class else spec.num_classes(spec.public)
            params["means"] = jnp.zeros((rows, classes, config.latent))
        return params

    def finish_fn(key, state, data):
        del key

        def one(model):
            params, start, count = model
            mean_fn = lambda windows: nets.encode(params, windows)[0]
            return class_means.offsets(
                mean_fn, spec, data, start, count, split_public=not by_class
            )

        renew = lambda: jax.lax.map(one, (state.params, *windows_of(data)))
        old = state.params["means"]
        return {
            "means": class_means.at_epoch_end(state.round, rounds_of(data), renew, old)
        }

    def classes_of(key, seen):
        return {
            private: shown.shown_class(
                jax.random.fold_in(key, index),
                config.anonymization,
                seen[private],
                spec.num_classes(private),
                config.flip,
                config.flip_to,
            )
            for index, private in enumerate(spec.private)
        }

    def vectors_of(key, count):
        return tuple(
            shown.shown_vector(
                jax.random.fold_in(key, index), count, spec.num_classes(private)
            )
            for index, private in enumerate(spec.private)
        )

    def anonymize_fn(key, params, windows):
        noise_key, class_key = jax.random.split(key)
        seen = judges.predict(spec, params, windows)
        if config.anonymization == "vector":
            show, told = {}, vectors_of(class_key, len(windows))
        else:
            show = classes_of(class_key, seen)
            told = _one_hots(spec, show)
        noise = jax.random.normal(noise_key, (len(windows), config.latent))
        public, none = seen[spec.public], jnp.zeros(len(windows), jnp.int32)

        def rewritten(params):
            z = nets.draw(params, windows, noise)
            if moved:
                row = none if by_class else public
                z = z + class_means.transfer(spec, params["means"], row, seen, show)
            return nets.decode(params, z, told)

        models = {group: params[group] for group in params if group != judges.GROUP}
        if design.last_means:
            means = models["means"]
            models["means"] = jnp.broadcast_to(means[-1:], means.shape)
        which = public if by_class else none
        if len(windows) == 1:  # By the one model whose turn it is.
            take = lambda number: jax.tree.map(lambda leaf: leaf[number], models)
            count = len(jax.tree.leaves(models)[0])
            turns = [functools.partial(rewritten, take(n)) for n in range(count)]
            return jax.lax.switch(which[0], turns)
        every = jax.vmap(rewritten)(models)
        return jnp.take_along_axis(every, which[None, :, None, None], axis=0)[0]

    room = Room(
        lambda clients: pool.pool(spec, clients, by_class=by_class),
        draw_fn,
        lambda data: int(rounds_of(data)),
        copies * config.batch,
        copies,
    )
    models = central(
        name,
        config,
        spec,
        room,
        init_fn=init_fn,
        players=design.players,
        hyper=hyper,
        anonymize_fn=anonymize_fn,
        finish_fn=finish_fn if moved else None,
    )
    return judges.beside(models, judges.judges(spec, config.judge_batch, hyper))


def _one_hots(spec, labels):
    return tuple(
        jax.nn.one_hot(labels[name], spec.num_classes(name)) for name in spec.private
    )
