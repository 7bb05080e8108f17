"""Blinder: a federated, meta-learned, conditional variational anonymizer."""

import dataclasses

import jax
import jax.numpy as jnp
import optax

from jaxanon.core.method import Federation, Method, Schedule
from jaxanon.core.registry import register
from jaxanon.datasets import spec as datasets_spec
from jaxanon.federated.engine.cohort import cohort_size
from jaxanon.federated.meta_learning.maml import fed_maml
from jaxanon.kernels import Objective, portable
from jaxanon.kernels.bounds import check, setting
from jaxanon.methods.common import client_batches
from jaxanon.methods.common.target_class import (
    ANONYMIZATIONS,
    AUTOMATIC,
    settled,
    shown_class,
)
from jaxanon.models import autoencoder, losses
from jaxanon.models import blinder as models
from jaxanon.models.blinder import (
    Critic,
    GuideScale,
    adversary_objective,
    guided_objective,
)
from jaxanon.models.classifiers import Classifier
from jaxanon.models.layers import INITIALISATIONS

VARIANTS = ("paper", "official")
SERVER_OPTIMIZERS = {"adam": optax.adam, "sgd": optax.sgd}


@dataclasses.dataclass(frozen=True, kw_only=True)
class BlinderConfig:
    """Blinder's static settings.

    The defaults grade the windows that leave (``guided``), which keeps and hides more
    than the paper's settings do; ``jaxanon.methods.BLINDER_PAPER`` has those.

    Hyper-parameters that a sweep may vary without compiling anew (``alpha``,
    ``beta``, ``gamma``, ``inner_learning_rate``, ``server_learning_rate``,
    ``discriminator_learning_rate``, ``utility``, ``output_discriminator_weight``) are
    defaults here and arrays in the state.
    """

    latent_dim: int = setting(25, at_least=1, help="size of the latent representation")
    hidden_sizes: tuple[int, ...] = setting(
        (512, 512, 256, 128), at_least=1, help="encoder's widths; the decoder's mirror"
    )
    filters: tuple[int, ...] = setting(
        (), at_least=1, lengths=(0, 2), help="of two convolutions, if any"
    )
    alpha: float = setting(
        1.0,
        at_least=0,
        help="weight of the squared error (not used by variant=official)",
    )
    beta: float = setting(0.5, at_least=0, help="weight of the KL divergence")
    gamma: float = setting(60.0, at_least=0, help="weight of the discriminators' loss")
    initialization: str = setting(
        "lecun",
        choices=INITIALISATIONS,
        help="of the dense layers; released: the published program's, slower to learn",
    )
    variant: str = setting(
        "paper", choices=VARIANTS, help="loss of eq. 4, or as released"
    )
    support_size: int = setting(1, at_least=1, help="windows to adapt on per round")
    query_size: int = setting(15, at_least=1, help="windows to be graded on per round")
    fresh_batches: bool = setting(
        True, help="draw new windows for each round; released: one draw an epoch"
    )
    inner_learning_rate: float = setting(3e-5, above=0, help="step size of adaptation")
    server_optimizer: str = setting(
        "adam", choices=SERVER_OPTIMIZERS, help="sgd: the paper's plain steps"
    )
    server_learning_rate: float = setting(1e-3, above=0, help="step size of the server")
    discriminator_learning_rate: float = setting(
        1e-3, at_least=0, help="step size of the server for the discriminators"
    )
    discriminator_hidden_sizes: tuple[int, ...] = setting(
        (256, 256), at_least=1, help="widths of the discriminators' layers"
    )
    discriminator_rounds: int = setting(
        5, at_least=0, help="further rounds of discriminators and critics alone"
    )
    discriminator_steps: int = setting(5, at_least=0, help="of the inner loop")
    local_steps: int = setting(1, at_least=1, help="times that the inner loop is run")
    ema_decay: float = setting(
        0.998, at_least=0, below=1, help="decay of the averaged parameters; 0: none"
    )
    second_order: bool = setting(
        True, help="differentiate through the inner steps; no is first-order MAML"
    )
    shadows: bool = setting(True, help="train discriminators on shadow samples too")
    client_fraction: float = setting(
        1.0, above=0, at_most=1, help="share of clients in a cohort"
    )
    samples_per_class: int = setting(
        600, at_least=1, help="windows of a class after SMOTE"
    )
    k_neighbors: int = setting(5, at_least=1, help="neighbours of SMOTE")
    extra: int = setting(32, at_least=0, help="further public windows per round")
    guided: bool = setting(True, help="also grade windows; see models.guided")
    utility: float = setting(30.0, at_least=0, help="guided: weight of the public loss")
    output_discriminator_weight: float = setting(
        60.0, at_least=0, help="guided: weight of the critic"
    )
    anonymization: str = setting(
        AUTOMATIC,
        choices=(*ANONYMIZATIONS, AUTOMATIC),
        help="stochastic: a random private class; deterministic: the one after the "
        "predicted; probabilistic: that one or the predicted; automatic: probabilistic "
        "of two classes, stochastic of more",
    )
    flip_probability: float = setting(
        0.52,
        at_least=0,
        at_most=1,
        help="probabilistic, automatic: how often it is the one after",
    )

    __post_init__ = check


@register("blinder", config=BlinderConfig, epochs=22)
def blinder(spec, config) -> Method:
    """Builds Blinder for windows of ``spec``.

    One conditional autoencoder and one discriminator per private attribute are
    meta-learned over clients; a classifier of the public attribute, learned in the same
    rounds, tells the decoder what to rebuild. A window is anonymized by encoding it,
    and decoding a sample of its latent under the predicted public class and a private
    class that has nothing to do with the wearer's.

    Beyond the paper, windows that leave are graded, too (``guided``), and
    ``anonymization="probabilistic"``, the default for two classes, shows the class
    after the predicted one in a share ``flip_probability`` of windows. A little above
    one half it makes up, in the eyes of who learned from raw windows, for what the rest
    of a window still gives away (``bench blinder.flip``: of MotionSense's genders 50.8
    to 50.0 %, by 0.51); who learns from anonymized ones reads the share, too. Of more
    than two classes it hides less than a random one: the wearer's is the one shown, or
    the one before. ``BLINDER_PAPER`` has the paper's settings.

    Args:
      spec: ``jaxanon.datasets.Spec`` with at least one private attribute.
      **settings: fields of ``BlinderConfig``.

    Returns:
      ``Method``.

    Raises:
      ValueError: if a setting is out of range, or nothing is private.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> method = blinder(load("smartwatch").spec, latent_dim=10)
      >>> method.name, method.config.latent_dim
      ('blinder', 10)

    References:
      Yang and Ardakanian, Blinder, ACM TOSN 2023: section 4.1, eq. 1 (the sample of
      the latent); section 4.2, eqs. 2 to 4 (the losses of autoencoder, discriminator
      and both); section 5.1 and Algorithm 1 (meta-learning), 5.2 (anonymization), 6.1
      and 6.2 (classes that are rare or missing).
    """
    networks = networks_of(spec, config)
    judges = classifiers(spec, config)
    critics = _critics(spec, config)
    algorithm = _algorithm(spec, config, networks, judges, critics)

    def prepare(clients):
        return client_batches.prepare(spec, clients, config.k_neighbors)

    def anonymize(key, state, windows):
        params = state.params if state.average is None else state.average
        return anonymized(key, params, windows, spec, config, networks, judges)

    return Method(
        name="blinder",
        config=config,
        spec=spec,
        prepare=prepare,
        init=algorithm.init,
        update=algorithm.update,
        anonymize=anonymize,
        schedule=Schedule(
            lambda data: _rounds_per_epoch(spec, config),
            lambda data: cohort_size(config, len(data.windows)),
        ),
        federation=Federation(algorithm, client_loss_of(spec, judges), pads=True),
    )


def networks_of(spec, config) -> models.BlinderNetworks:
    """The networks that ``config`` asks for.

    Raises:
      ValueError: if nothing is private, or the windows are too short for them.
    """
    if not spec.private:
        raise ValueError(
            f"private must name at least one attribute of {spec.name!r}; it has "
            f"{sorted(spec.classes)}."
        )
    return models.networks(
        spec.time,
        len(spec.channels),
        [spec.num_classes(name) for name in spec.private],
        latent=config.latent_dim,
        hidden=config.hidden_sizes,
        filters=config.filters,
        initialization=config.initialization,
        discriminator_hidden_sizes=config.discriminator_hidden_sizes,
    )


def _critics(spec, config):
    if not config.guided:
        return ()
    return tuple(Critic(spec.num_classes(name)) for name in spec.private)


def _algorithm(spec, config, networks, judges, critics):
    released = config.variant == "official"

    def init_fn(key):
        vae_key, critic_key, *keys = jax.random.split(key, 2 + len(judges))
        channels = len(spec.channels)
        classes = spec.num_classes(spec.public)
        params = networks.init(vae_key, spec.time, channels, classes)
        window = jnp.zeros((1, spec.time, channels))
        if critics:
            critic_keys = jax.random.split(critic_key, len(critics))
            params["critics"] = [
                net.init(one, window)["params"]
                for net, one in zip(critics, critic_keys, strict=True)
            ]
        params["classifiers"] = init_classifiers(keys, spec, judges)
        return params

    def draw_fn(key, client, data, rows_key=None):
        sizes = (
            config.support_size,
            config.query_size,
            config.extra + config.query_size,
        )
        *keys, dropout_key = jax.random.split(key, 4)
        rows_keys = [None] * 3 if rows_key is None else jax.random.split(rows_key, 3)
        support, query, extra = (
            client_batches.draw_batch(
                *(
                    one,
                    client,
                    data,
                    spec,
                    config.latent_dim,
                    config.samples_per_class,
                    size,
                ),
                rows_key=rows,
            )
            for one, size, rows in zip(keys, sizes, rows_keys, strict=True)
        )
        weight = jnp.max(query.weights)
        return support, client_batches.Query(query, extra, dropout_key), weight

    def scale(hyper):
        return models.LossScale(hyper["alpha"], hyper["beta"], hyper["gamma"])

    def phases_fn(hyper):
        return models.phases(
            networks,
            scale(hyper),
            hyper["inner_learning_rate"],
            discriminator_steps=config.discriminator_steps,
            local_steps=config.local_steps,
            shadows=config.shadows,
            released=released,
        )

    def main_objective(hyper):
        if not critics:
            return models.joint_objective(networks, scale(hyper), released=released)
        net = judges[spec.public]
        judge_fn = lambda params, windows: net.apply(
            {"params": params["classifiers"][spec.public]}, windows
        )
        guide = GuideScale(hyper["utility"], hyper["output_discriminator_weight"])
        return guided_objective(
            networks, critics, judge_fn, scale(hyper), guide, released=released
        )

    def objectives_fn(hyper):
        judge = lambda params, query: judging_loss(
            params, query.extra, query.key, spec, judges
        )
        return _on_batch(main_objective(hyper)), Objective(("classifiers",), judge)

    def alone_fn(hyper):
        del hyper
        return _on_batch(adversary_objective(networks, critics, released=released))

    names = ("alpha", "beta", "gamma", "inner_learning_rate", "server_learning_rate")
    names += (
        "discriminator_learning_rate",
        *(("utility", "output_discriminator_weight") if critics else ()),
    )
    rounds = _rounds_per_epoch(spec, config)
    return fed_maml(
        init_fn,
        draw_fn,
        phases_fn,
        objectives_fn,
        hyper={name: getattr(config, name) for name in names},
        server_optimizer=SERVER_OPTIMIZERS[config.server_optimizer](1.0),
        cohort_size_fn=lambda num_clients: cohort_size(config, num_clients),
        rounds_per_cohort=rounds,
        rounds_per_list=None if config.fresh_batches else rounds,
        learning_rates_fn=lambda hyper: dict.fromkeys(
            ("discriminators", "critics") if critics else ("discriminators",),
            hyper["discriminator_learning_rate"],
        ),
        averaging=config.ema_decay,
        alone_fn=alone_fn,
        alone_rounds=config.discriminator_rounds,
        second_order=config.second_order,
    )


def _on_batch(objective):
    """The objective, reading the batch of a query."""
    loss_fn = lambda params, query: objective.loss_fn(params, query.batch)
    return objective._replace(loss_fn=loss_fn)


def _rounds_per_epoch(spec, config):
    """Batches in ``samples_per_class`` windows of each class; the paper's t = K / b."""
    windows = spec.num_classes(spec.public) * config.samples_per_class
    return max(1, windows // (config.support_size + config.query_size))


def anonymized(key, params, windows, spec, config, networks, judges):
    """Windows in physical units, rebuilt under other private classes."""
    mean, std = jnp.float32(spec.mean), jnp.float32(spec.std)
    x = (windows - mean[None, None]) / std[None, None]
    predicted = {
        name: jnp.argmax(net.apply({"params": params["classifiers"][name]}, x), -1)
        for name, net in judges.items()
    }
    noise_key, class_key = portable.split(key)
    z, log_variance = networks.encode(params, x)
    if config.anonymization != "deterministic":
        z = autoencoder.sample(z, log_variance, portable.normal(noise_key, z.shape))
    private, unknown = [], jnp.zeros(len(x), jnp.int32)
    for index, name in enumerate(spec.private):
        num_classes = spec.num_classes(name)
        shown = shown_class(
            portable.fold_in(class_key, index),
            settled(config.anonymization, num_classes),
            predicted.get(name, unknown),
            num_classes,
            config.flip_probability,
        )
        private.append(jax.nn.one_hot(shown, num_classes))
    public = jax.nn.one_hot(predicted[spec.public], spec.num_classes(spec.public))
    rebuilt = networks.decode(params, z, private, public)
    return (rebuilt * std[None, None] + mean[None, None]).astype(jnp.float32)


def classifiers(spec, config) -> dict[str, Classifier]:
    """Classifiers of what has to be known of a window before it is rebuilt."""
    counts = {name: spec.num_classes(name) for name in datasets_spec.attributes(spec)}
    how = {name: settled(config.anonymization, count) for name, count in counts.items()}
    return {
        name: Classifier(num_classes=count)
        for name, count in counts.items()
        if name == spec.public or how[name] != "stochastic"
    }


def init_classifiers(keys, spec, judges):
    """Parameters of the classifiers, by name."""
    window = jnp.zeros((1, spec.time, len(spec.channels)))
    return {
        name: net.init(one, window)["params"]
        for (name, net), one in zip(judges.items(), keys, strict=True)
    }


def judging_loss(params, batch, key, spec, judges):
    """Cross-entropy of the classifiers, summed, and of each; ``key`` for dropout."""
    info, total = {}, 0.0
    targets = dict(
        zip(datasets_spec.attributes(spec), (batch.public, *batch.private), strict=True)
    )
    for index, (name, net) in enumerate(judges.items()):
        own_key = jax.random.fold_in(key, index)
        one = {"params": params["classifiers"][name]}
        logits = net.apply(one, batch.windows, own_key, 0.3)
        loss = losses.cross_entropy(logits, targets[name], batch.weights)
        info[f"{name} classifier"] = loss
        total = total + loss
    return total, info


def client_loss_of(spec, judges):
    """Of a ``Method``: the loss of the public attribute's classifier, of one window.

    The best case of who inverts gradients: a step on one window, without dropout.
    Blinder's clients send a mean over ``extra + query`` windows with it, those of its
    averaged forms what many steps add up to.
    """
    net = judges[spec.public]

    def loss_fn(params, window, label):
        logits = net.apply({"params": params}, window[None])
        return losses.cross_entropy(logits, label[None], jnp.ones(1))

    return lambda state: (loss_fn, state.params["classifiers"][spec.public])


# The paper's settings, where the defaults are others.
BLINDER_PAPER = {
    **{"guided": False, "alpha": 0.9, "beta": 2.0, "gamma": 0.2},
    **{"inner_learning_rate": 1e-4, "ema_decay": 0.0, "client_fraction": 0.4},
    **{"discriminator_hidden_sizes": (128, 128), "discriminator_rounds": 0},
    **{
        "utility": 20.0,
        "output_discriminator_weight": 20.0,
        "anonymization": "stochastic",
        "flip_probability": 0.5,
    },
}
