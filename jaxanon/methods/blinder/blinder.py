"""Blinder: a federated, meta-learned, conditional variational anonymizer."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxanon.core.method import Federation, Incompatible, Method, Schedule
from jaxanon.core.registry import register
from jaxanon.datasets import spec as datasets_spec
from jaxanon.federated.engine.cohort import cohort_size
from jaxanon.federated.meta_learning.maml import fed_maml
from jaxanon.kernels import Objective, portable
from jaxanon.kernels.bounds import check, setting
from jaxanon.methods.blinder import scaling
from jaxanon.methods.common import client_batches, recipes
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
from jaxanon.models.layers import INITIALIZATIONS

VARIANTS = ("paper", "official")
SERVER_OPTIMIZERS = {"adam": optax.adam, "sgd": optax.sgd}


@dataclasses.dataclass(frozen=True, kw_only=True)
class BlinderConfig:
    """Blinder's settings.

    By default, training also uses losses on anonymized windows (``guided``), which
    gives better utility and privacy than the paper's settings (recipe ``"paper"``).

    ``alpha``, ``beta``, ``gamma``, ``inner_learning_rate``, ``server_learning_rate``,
    ``discriminator_learning_rate``, ``utility`` and ``output_discriminator_weight`` are
    hyper-parameters: the state stores them as arrays, so sweeps do not recompile.
    """

    latent_dim: int = setting(25, at_least=1, help="size of the latent representation")
    hidden_sizes: tuple[int, ...] = setting(
        (512, 256, 128),
        at_least=1,
        help="encoder layer widths; the decoder mirrors them",
    )
    filters: tuple[int, ...] = setting(
        (), at_least=1, lengths=(0, 2), help="filters of two optional convolutions"
    )
    alpha: float = setting(
        1.0,
        at_least=0,
        help="weight of the squared error; unused with variant=official",
    )
    beta: float = setting(
        0.5,
        at_least=0,
        help="weight of the KL divergence; guided: per 256 values of a window",
    )
    gamma: float = setting(60.0, at_least=0, help="weight of the discriminators' loss")
    initialization: str = setting(
        "lecun",
        choices=INITIALIZATIONS,
        help="initialization of the dense layers; official: as in the authors' "
        "program, slower to train",
    )
    variant: str = setting(
        "paper", choices=VARIANTS, help="loss of eq. 4, or of the authors' program"
    )
    support_size: int = setting(
        1, at_least=1, help="windows per client and round for adaptation"
    )
    query_size: int | None = setting(
        None,
        at_least=1,
        help="windows per client and round for the outer loss; default: about 168 over "
        "all clients",
    )
    fresh_batches: bool = setting(
        True, help="draw new windows in each round; official: once per epoch"
    )
    inner_learning_rate: float = setting(
        3e-5, above=0, help="learning rate of adaptation"
    )
    server_optimizer: str = setting(
        "adam", choices=SERVER_OPTIMIZERS, help="server optimizer; sgd: as in the paper"
    )
    server_learning_rate: float = setting(1e-3, above=0, help="server learning rate")
    discriminator_learning_rate: float = setting(
        1e-3, at_least=0, help="server learning rate of the discriminators"
    )
    discriminator_hidden_sizes: tuple[int, ...] = setting(
        (256, 256), at_least=1, help="hidden layer widths of the discriminators"
    )
    discriminator_rounds: int = setting(
        3, at_least=0, help="extra rounds that train only the discriminators"
    )
    discriminator_steps: int = setting(
        1, at_least=0, help="discriminator steps in the inner loop"
    )
    local_steps: int = setting(1, at_least=1, help="repetitions of the inner loop")
    ema_decay: float = setting(
        0.9995,
        at_least=0,
        below=1,
        help="maximum decay of the averaged parameters, which first average the last "
        "tenth of the rounds; 0: no averaging",
    )
    second_order: bool = setting(
        False, help="differentiate through the inner steps; False: first-order MAML"
    )
    shadows: bool = setting(
        False, help="also train inner-loop discriminators on shadow samples"
    )
    client_fraction: float | None = setting(
        None,
        above=0,
        at_most=1,
        help="fraction of clients per round; default: all clients, at most 24",
    )
    samples_per_class: int | None = setting(
        None,
        at_least=1,
        help="windows per class after SMOTE, which also sets the rounds per epoch; "
        "default: size of the client's largest class, with rounds that scale with the "
        "data (methods.blinder.scaling)",
    )
    k_neighbors: int = setting(5, at_least=1, help="number of SMOTE neighbours")
    extra: int | None = setting(
        None,
        at_least=0,
        help="extra windows per client and round for the classifiers; default: twice "
        "query_size's default",
    )
    guided: bool = setting(True, help="also train on losses of anonymized windows")
    utility: float = setting(30.0, at_least=0, help="guided: weight of the public loss")
    output_discriminator_weight: float = setting(
        60.0, at_least=0, help="guided: weight of the output discriminator"
    )
    anonymization: str = setting(
        AUTOMATIC,
        choices=(*ANONYMIZATIONS, AUTOMATIC),
        help="target private class: stochastic: random; deterministic: the class after "
        "the predicted one; probabilistic: that class or the predicted one; automatic: "
        "probabilistic for two classes, stochastic for more",
    )
    flip_probability: float = setting(
        0.51,
        at_least=0,
        at_most=1,
        help="probabilistic, automatic: probability of the class after",
    )

    def __post_init__(self):
        check(self)
        if not self.fresh_batches and self.samples_per_class is None:
            raise Incompatible(
                "samples_per_class must be an integer if fresh_batches is False, got "
                "None; it sets the rounds per epoch."
            )


@register(
    "blinder", config=BlinderConfig, epochs=scaling.EPOCHS, recipes=recipes.BLINDER
)
def blinder(spec, config) -> Method:
    """Builds Blinder for windows of ``spec``.

    Blinder meta-learns one conditional autoencoder and one discriminator per private
    attribute over clients, and trains a classifier of the public attribute in the same
    rounds. It anonymizes a window by encoding it and decoding a sample of its latent
    under the predicted public class and a private class independent of the wearer.

    This implementation adds two things to the paper. ``guided`` trains on losses of
    anonymized windows. ``anonymization="probabilistic"``, the default for two classes,
    replaces the predicted class by the next one with probability ``flip_probability``.
    A value slightly above 0.5 offsets the remaining leakage to classifiers trained on
    raw windows. For example, 0.51 lowers their accuracy on MotionSense's gender from
    50.8 to 50.0 % (``bench blinder.flip``). Attackers trained on anonymized windows can
    exploit the bias. For more than two classes it hides less than a random class.
    Recipe ``"paper"`` has the paper's settings.

    Args:
      spec: ``jaxanon.datasets.Spec`` with at least one private attribute.
      **settings: fields of ``BlinderConfig``.

    Raises:
      ValueError: if a setting is out of range, or ``spec`` has no private attribute.

    Example:
      >>> from jaxanon.datasets import load
      >>> method = blinder(load("smartwatch").spec, latent_dim=10)
      >>> method.name, method.config.latent_dim
      ('blinder', 10)

    References:
      Yang and Ardakanian, Blinder, ACM TOSN 2023: section 4.1, eq. 1 (sampling of the
      latent); section 4.2, eqs. 2 to 4 (losses); section 5.1 and Algorithm 1
      (meta-learning); section 5.2 (anonymization); sections 6.1 and 6.2 (rare or
      missing classes).
    """
    networks = build_networks(spec, config)
    classifier_nets = classifiers(spec, config)
    critics = _critics(spec, config)
    algorithm = _algorithm(spec, config, networks, classifier_nets, critics)

    def prepare(clients):
        return client_batches.prepare(spec, clients, config.k_neighbors)

    def anonymize(key, state, windows):
        params = state.params if state.average is None else state.average
        return anonymized(key, params, windows, spec, config, networks, classifier_nets)

    return Method(
        name="blinder",
        config=config,
        spec=spec,
        prepare=prepare,
        init=algorithm.init,
        update=algorithm.update,
        anonymize=anonymize,
        schedule=Schedule(
            lambda data: _rounds_per_epoch(spec, config, data),
            lambda data: _cohort_size(config, len(data.windows)),
        ),
        federation=Federation(
            algorithm, public_loss_fn(spec, classifier_nets), pads=True
        ),
    )


def build_networks(spec, config) -> models.BlinderNetworks:
    """Builds the networks of ``config``.

    Raises:
      ValueError: if ``spec`` has no private attribute, or its windows are too short.
    """
    if not spec.private:
        raise ValueError(
            f"private must name at least one attribute of {spec.name!r}, got none; "
            f"choose from {sorted(spec.classes)}."
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


def _algorithm(spec, config, networks, classifier_nets, critics):
    official = config.variant == "official"
    clients = spec.num_classes("subject")
    query_size = config.query_size or scaling.query_size(clients)
    num_extra = scaling.extra_size(clients) if config.extra is None else config.extra

    def init_fn(key):
        vae_key, critic_key, *keys = jax.random.split(key, 2 + len(classifier_nets))
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
        params["classifiers"] = init_classifiers(keys, spec, classifier_nets)
        return params

    def draw_fn(key, client, data, rows_key=None):
        sizes = (config.support_size, query_size, num_extra + query_size)
        largest = jnp.maximum(1, jnp.max(data.table.counts[client]))
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
                    config.samples_per_class or largest,
                    size,
                ),
                rows_key=rows,
            )
            for one, size, rows in zip(keys, sizes, rows_keys, strict=True)
        )
        weight = jnp.max(query.weights)
        return support, client_batches.Query(query, extra, dropout_key), weight

    kl_scale = scaling.kl_scale(spec.time * len(spec.channels)) if critics else 1.0

    def scale(hyper):
        beta = kl_scale * hyper["beta"]
        return models.LossScale(hyper["alpha"], beta, hyper["gamma"])

    def phases_fn(hyper):
        return models.phases(
            networks,
            scale(hyper),
            hyper["inner_learning_rate"],
            discriminator_steps=config.discriminator_steps,
            local_steps=config.local_steps,
            shadows=config.shadows,
            official=official,
        )

    def main_objective(hyper):
        if not critics:
            return models.joint_objective(networks, scale(hyper), official=official)
        net = classifier_nets[spec.public]
        classify_fn = lambda params, windows: net.apply(
            {"params": params["classifiers"][spec.public]}, windows
        )
        guide = GuideScale(hyper["utility"], hyper["output_discriminator_weight"])
        return guided_objective(
            networks, critics, classify_fn, scale(hyper), guide, official=official
        )

    def objectives_fn(hyper):
        classifier_loss_fn = lambda params, query: classifier_loss(
            params, query.extra, query.key, spec, classifier_nets
        )
        return _on_batch(main_objective(hyper)), Objective(
            ("classifiers",), classifier_loss_fn
        )

    def alone_fn(hyper):
        del hyper
        return _on_batch(adversary_objective(networks, critics, official=official))

    names = ("alpha", "beta", "gamma", "inner_learning_rate", "server_learning_rate")
    names += (
        "discriminator_learning_rate",
        *(("utility", "output_discriminator_weight") if critics else ()),
    )
    published = config.samples_per_class is not None
    rounds = _published_rounds(spec, config) if published else 1
    return fed_maml(
        init_fn,
        draw_fn,
        phases_fn,
        objectives_fn,
        hyper={name: getattr(config, name) for name in names},
        server_optimizer=SERVER_OPTIMIZERS[config.server_optimizer](1.0),
        cohort_size_fn=lambda num_clients: _cohort_size(config, num_clients),
        rounds_per_cohort=rounds,
        rounds_per_list=None if config.fresh_batches else rounds,
        learning_rates_fn=lambda hyper: dict.fromkeys(
            ("discriminators", "critics") if critics else ("discriminators",),
            hyper["discriminator_learning_rate"],
        ),
        ema_decay=config.ema_decay,
        alone_fn=alone_fn,
        alone_rounds=config.discriminator_rounds,
        second_order=config.second_order,
    )


def _on_batch(objective):
    """Returns the objective with a loss that reads the query's batch."""
    loss_fn = lambda params, query: objective.loss_fn(params, query.batch)
    return objective._replace(loss_fn=loss_fn)


def _cohort_size(config, num_clients):
    if config.client_fraction is None:
        return scaling.cohort_size(num_clients)
    return cohort_size(config, num_clients)


def _rounds_per_epoch(spec, config, data):
    if config.samples_per_class is not None:
        return _published_rounds(spec, config)
    windows = int(np.sum(np.asarray(data.table.counts)))
    return scaling.rounds_per_epoch(windows, spec.num_classes(spec.public))


def _published_rounds(spec, config):
    """Returns the batches per pass over the resampled windows: the paper's K / b."""
    windows = spec.num_classes(spec.public) * config.samples_per_class
    query_size = config.query_size or scaling.query_size(spec.num_classes("subject"))
    return max(1, windows // (config.support_size + query_size))


def anonymized(key, params, windows, spec, config, networks, classifier_nets):
    """Anonymizes windows in physical units by decoding other private classes."""
    mean, std = jnp.float32(spec.mean), jnp.float32(spec.std)
    x = (windows - mean[None, None]) / std[None, None]
    predicted = {
        name: jnp.argmax(net.apply({"params": params["classifiers"][name]}, x), -1)
        for name, net in classifier_nets.items()
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
    """Builds classifiers of the attributes whose predictions anonymization needs."""
    counts = {name: spec.num_classes(name) for name in datasets_spec.attributes(spec)}
    how = {name: settled(config.anonymization, count) for name, count in counts.items()}
    return {
        name: Classifier(num_classes=count)
        for name, count in counts.items()
        if name == spec.public or how[name] != "stochastic"
    }


def init_classifiers(keys, spec, classifier_nets):
    """Initializes the classifiers' parameters, by attribute."""
    window = jnp.zeros((1, spec.time, len(spec.channels)))
    return {
        name: net.init(one, window)["params"]
        for (name, net), one in zip(classifier_nets.items(), keys, strict=True)
    }


def classifier_loss(params, batch, key, spec, classifier_nets):
    """Returns the summed cross-entropy of the classifiers, and each one as info."""
    info, total = {}, 0.0
    targets = dict(
        zip(datasets_spec.attributes(spec), (batch.public, *batch.private), strict=True)
    )
    for index, (name, net) in enumerate(classifier_nets.items()):
        own_key = jax.random.fold_in(key, index)
        one = {"params": params["classifiers"][name]}
        logits = net.apply(one, batch.windows, own_key, 0.3)
        loss = losses.cross_entropy(logits, targets[name], batch.weights)
        info[f"{name} classifier"] = loss
        total = total + loss
    return total, info


def public_loss_fn(spec, classifier_nets):
    """Returns the public classifier's loss on one window, for gradient inversion.

    One window without dropout is the attacker's best case. Blinder's clients send mean
    gradients over ``extra + query`` windows; clients of its federated-averaging
    variants send the sum of many steps.
    """
    net = classifier_nets[spec.public]

    def loss_fn(params, window, label):
        logits = net.apply({"params": params}, window[None])
        return losses.cross_entropy(logits, label[None], jnp.ones(1))

    return lambda state: (loss_fn, state.params["classifiers"][spec.public])
